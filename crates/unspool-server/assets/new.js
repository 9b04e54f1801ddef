// The page that begins a chat. When the archive has its session, the page of the session goes on.

import "./app.js";
import { Chat } from "./chat.js";

const page = document.querySelector(".new-chat");
const panel = page.querySelector(".chat");
if (panel) {
  const [agent, project] = [page.querySelector("[name=agent]"), page.querySelector("[name=project]")];
  const chosen = () => JSON.stringify({ new: { agent: agent.value, project: project.value } });
  let tried;
  const chat = new Chat(panel, {
    turns: page,
    target: null,
    // The same agent starts again with what it kept; another one is another chat.
    begin: ({ session, agent: name }) => {
      const again = chat.target && name && (session || tried === chosen());
      tried = chosen();
      return again ? { restart: { chat: chat.target, session: session ?? null, agent: name } } : JSON.parse(tried);
    },
    recorded: (session) => { location.href = `/s/${session}`; },
  });
  chat.started = (id) => chat.follow(id);
  chat.focus();
}
