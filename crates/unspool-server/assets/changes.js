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
const toTranscript = () => { location.href = `/s/${document.querySelector("[data-changes]").dataset.changes}`; };
const keyed = [["Next file", "n", () => step(1)], ["Previous file", "p", () => step(-1)], ["Transcript", "q", toTranscript]];
for (const [name, keys, run] of keyed) addAction({ name, keys, run });
document.addEventListener("keydown", (event) => {
  if (!isTyping(event)) keyed.find(([, key]) => key === event.key)?.[2]();
});

function mark() {
  const at = current();
  links.forEach((link, index) => {
    if (index === at) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
  });
}
addEventListener("scroll", mark, { passive: true });
mark();
