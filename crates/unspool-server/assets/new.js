// The page that begins a chat. When the archive has its session, the page of the session goes on.

import "./app.js";
import { Chat } from "./chat.js";

const page = document.querySelector(".new-chat");
const panel = page.querySelector(".chat");
if (panel) {
  const [agent, project] = [page.querySelector("[name=agent]"), page.querySelector("[name=project]")];
  const chat = new Chat(panel, {
    turns: page,
    target: null,
    begin: ({ session, agent: name }) => (chat.target
      ? { restart: { chat: chat.target, session: session ?? null, agent: name } }
      : { new: { agent: agent.value, project: project.value } }),
    recorded: (session) => { location.href = `/s/${session}`; },
  });
  chat.started = (id) => {
    for (const field of [agent, project]) field.disabled = true;
    chat.follow(id);
  };
  chat.focus();
}
