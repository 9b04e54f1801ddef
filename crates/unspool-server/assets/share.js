// Some turns of a session as a redacted file, or as a link for a guest.

import { dialog } from "./app.js";
import { notify } from "./actions.js";

const make = (tag, properties) => Object.assign(document.createElement(tag), properties);

/** Offers the turns `from` to `to` of a session whose turns are numbered `first` to `last`. */
export function share(session, from, { first, last }) {
  const before = document.activeElement;
  const box = dialog("edit share-turns", "Share turns");
  const field = (name) => {
    const input = make("input", { type: "number", min: first, max: last, value: from, required: true });
    const label = make("label", { textContent: `${name} ` });
    label.append(input);
    return [label, input];
  };
  const [[fromLabel, begin], [toLabel, end]] = [field("From turn"), field("to turn")];
  const html = make("a", { className: "primary", textContent: "Download HTML" });
  const markdown = make("a", { textContent: "Download Markdown" });
  const command = make("button", { type: "button", textContent: "Copy link command" });
  command.title = "A command that makes a link with which a guest sees these turns on this server";
  const cancel = make("button", { type: "button", textContent: "Cancel" });
  const error = make("p", { className: "error" });
  error.setAttribute("role", "alert");
  const buttons = make("div", { className: "buttons" });
  buttons.append(html, markdown, command, cancel);
  const range = make("div", { className: "range" });
  range.append(fromLabel, toLabel);
  const hint = make("p", {
    className: "hint",
    textContent: "Secrets are redacted. Sub-agents that these turns started are included, your notes are not. Read the file before you pass it on.",
  });
  box.append(make("h2", { textContent: "Share turns" }), range, hint, error, buttons);

  const update = () => {
    const [one, two] = [begin.valueAsNumber, end.valueAsNumber];
    const fits = begin.checkValidity() && end.checkValidity() && one <= two;
    error.textContent = fits ? "" : `Choose turns from ${first} to ${last}, the first one first.`;
    for (const control of [html, markdown, command]) control.inert = !fits;
    const turns = one === two ? `${one}` : `${one}-${two}`;
    command.dataset.copy = `unspool share ${session} --turns ${turns}`;
    for (const [link, format, extension] of [[html, "html", "html"], [markdown, "markdown", "md"]]) {
      link.href = `/api/sessions/${session}/export?to=${format}&turns=${turns}`;
      link.download = `unspool-${session}-turns-${turns}.${extension}`;
    }
  };
  for (const input of [begin, end]) {
    input.addEventListener("input", update);
    input.addEventListener("keydown", (event) => { if (event.key === "Enter" && !html.inert) html.click(); });
  }
  begin.addEventListener("change", () => { if (begin.valueAsNumber > end.valueAsNumber) { end.value = begin.value; update(); } });
  for (const link of [html, markdown]) link.addEventListener("click", () => { box.close(); notify("Downloading"); });
  cancel.addEventListener("click", () => box.close());
  box.addEventListener("close", () => { box.remove(); before?.focus?.({ preventScroll: true }); });
  update();
  box.showModal();
  html.focus();
}
