// What a session changed: next and previous file, the file in view marked in the list, and what git still
// has of it, which is loaded after the page because git takes a moment.

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

const SAID = { stands: "stands at HEAD", uncommitted: "not committed", gone: "gone from HEAD and from disk" };

/** Marks the added lines of a file by their states, which are in the order of its diff. */
function markLines(file, states) {
  file.querySelectorAll("tr.added").forEach((row, at) => {
    const [state, commit] = (states[at] ?? "unknown").split(":");
    if (!(state in SAID)) return;
    row.classList.add(`is-${state}`);
    const said = commit ? `${SAID[state]}, in ${commit}` : SAID[state];
    row.title = said;
    row.querySelector(".sign").setAttribute("aria-label", `added, ${said}`);
  });
}

async function askGit() {
  const holder = document.getElementById("in-git");
  const { changes, turn } = document.querySelector("[data-changes]").dataset;
  const response = await fetch(`/s/${changes}/changes/git${turn ? `?turn=${turn}` : ""}`).catch(() => null);
  if (!response?.ok) return;
  const template = document.createElement("template");
  template.innerHTML = await response.text();
  for (const line of template.content.querySelectorAll("[data-file-of]")) {
    const file = files[Number(line.dataset.fileOf)];
    if (!file) continue;
    markLines(file, line.dataset.states.split(" "));
    delete line.dataset.states;
    file.querySelector(".changed-by").after(line);
  }
  holder.replaceChildren(template.content);
  holder.hidden = holder.childElementCount === 0;
}

if (files.length > 0) askGit();
