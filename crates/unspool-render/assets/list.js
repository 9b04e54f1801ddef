// The list of sessions: up and down by keys.

import { isTyping } from "./app.js";

const links = () => [...document.querySelectorAll(".row > a")];

document.addEventListener("keydown", (event) => {
  if (isTyping(event) || !["j", "k"].includes(event.key)) return;
  const all = links();
  const at = all.indexOf(document.activeElement);
  const to = all[event.key === "j" ? Math.min(at + 1, all.length - 1) : Math.max(at - 1, 0)];
  to?.focus();
  to?.scrollIntoView({ block: "nearest" });
});
