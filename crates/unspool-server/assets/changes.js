// What a session changed: next and previous file, and the file in view marked in the list.

import { isTyping } from "./app.js";
import { addAction, notify } from "./actions.js";

const files = [...document.querySelectorAll(".changed-file")];
const links = [...document.querySelectorAll(".changes-page .outline a")];
const TOP_PX = 90;

/** The file that is read: the last one whose head is above the upper edge. */
function current() {
  const above = files.filter((file) => file.getBoundingClientRect().top <= TOP_PX);
  return above.length - 1;
}

function step(by) {
  const next = current() + by;
  const file = files[next];
  if (!file) {
    notify(files.length === 0 ? "No file changed" : by > 0 ? "This is the last file" : "This is the first file");
    return;
  }
  file.focus({ preventScroll: true });
  scrollTo({ top: scrollY + file.getBoundingClientRect().top - TOP_PX + 10, behavior: "instant" });
}

for (const button of document.querySelectorAll("[data-file]")) {
  button.addEventListener("click", () => step(Number(button.dataset.file)));
}
for (const [name, keys, by] of [["Next file", "n", 1], ["Previous file", "p", -1]]) {
  addAction({ name, keys, run: () => step(by) });
}
addAction({ name: "Transcript", keys: "q", run: () => { location.href = `/s/${document.querySelector("[data-changes]").dataset.changes}`; } });

document.addEventListener("keydown", (event) => {
  if (isTyping(event)) return;
  if (event.key === "n" || event.key === "p") step(event.key === "n" ? 1 : -1);
  if (event.key === "q") location.href = `/s/${document.querySelector("[data-changes]").dataset.changes}`;
});

function mark() {
  const at = current();
  links.forEach((link, index) => {
    if (index === at) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
  });
}
addEventListener("scroll", mark, { passive: true });
mark();
