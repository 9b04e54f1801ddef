// Which model calls had a selected text? One action on the page of a session and on those of its prompts.

import { addAction, notify } from "./actions.js";
import { isTyping } from "./app.js";

const MIN_CHARS = 8;
const MAX_CHARS = 200;

/** The longest line of the selection: a page joins and wraps texts, but a line is as it was sent. */
function selectedText() {
  const lines = String(getSelection()).split("\n").map((line) => line.trim());
  const longest = lines.reduce((held, line) => (line.length > held.length ? line : held), "");
  return [...longest].slice(0, MAX_CHARS).join("");
}

/** Offers the search while a text is selected, as a button and as a key. */
export function offerPromptSearch(session) {
  const search = () => {
    const text = selectedText();
    if (text.length < MIN_CHARS) { notify("Select a text first: which calls had it?"); return; }
    location.href = `/s/${session}/prompts?find=${encodeURIComponent(text)}`;
  };
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "prompt-search", hidden: true, textContent: "Which calls had this text? (w)" });
  button.setAttribute("aria-keyshortcuts", "w");
  // A press would end the selection.
  button.addEventListener("pointerdown", (event) => event.preventDefault());
  button.addEventListener("click", search);
  document.body.append(button);
  const main = document.getElementById("main");
  document.addEventListener("selectionchange", () => {
    const selection = getSelection();
    const isInside = selection.rangeCount > 0 && main.contains(selection.anchorNode);
    button.hidden = !isInside || selectedText().length < MIN_CHARS;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "w" || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
    event.preventDefault();
    search();
  });
  addAction({ name: "Which calls had the selected text", keys: "w", run: search });
}
