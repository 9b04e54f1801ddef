// Two sessions side by side: next and previous row of turns, and back to the transcript.

import { isTyping } from "./app.js";
import { addAction, notify } from "./actions.js";

const rows = [...document.querySelectorAll(".compared-row")];

/** The row with the focus, or the last one whose head is above the upper edge. */
function current() {
  const focused = rows.findIndex((row) => row.contains(document.activeElement));
  return focused >= 0 ? focused : rows.filter((row) => row.getBoundingClientRect().top < 0).length - 1;
}

function step(by) {
  const row = rows[current() + by];
  if (!row) {
    notify(rows.length === 0 ? "No turns" : by > 0 ? "This is the last turn" : "This is the first turn");
    return;
  }
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "start", behavior: "instant" });
}

const back = () => { location.href = `/s/${document.querySelector("[data-transcript]").dataset.transcript}`; };
const keyed = [["Transcript", "q", back]];
if (rows.length > 0) keyed.push(["Next turn", "n", () => step(1)], ["Previous turn", "p", () => step(-1)]);
for (const [name, keys, run] of keyed) addAction({ name, keys, run });
document.addEventListener("keydown", (event) => {
  if (!isTyping(event)) keyed.find(([, key]) => key === event.key)?.[2]();
});
for (const button of document.querySelectorAll("[data-row]")) {
  button.addEventListener("click", () => step(Number(button.dataset.row)));
}
