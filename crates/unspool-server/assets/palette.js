// The command palette: sessions by title, pages, and the actions of this page.

import { dialog } from "./app.js";
import { actions } from "./actions.js";

let box, field, list, latestRequest = 0;

function make() {
  box = dialog("palette", "Go to");
  field = Object.assign(document.createElement("input"), {
    type: "search", placeholder: "Type the name of a session, a page or an action", autocomplete: "off",
  });
  field.setAttribute("role", "combobox");
  field.setAttribute("aria-label", "Go to");
  field.setAttribute("aria-expanded", "true");
  field.setAttribute("aria-controls", "palette-list");
  list = document.createElement("div");
  list.id = "palette-list";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Suggestions");
  box.append(field, list);
  field.addEventListener("input", update);
  field.addEventListener("keydown", (event) => {
    const all = entries();
    const at = all.findIndex((one) => one.ariaSelected === "true");
    if (event.key === "ArrowDown") select(all[Math.min(at + 1, all.length - 1)]);
    else if (event.key === "ArrowUp") select(all[Math.max(at - 1, 0)]);
    else if (event.key === "Enter") all[at]?.click();
    else return;
    event.preventDefault();
  });
}

const entries = () => [...list.querySelectorAll("[role=option]")];

function select(entry) {
  for (const one of entries()) one.ariaSelected = String(one === entry);
  if (!entry) return;
  field.setAttribute("aria-activedescendant", entry.id);
  entry.scrollIntoView({ block: "nearest" });
}

function show(sessions) {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = ({ name }) => words.every((word) => name.toLowerCase().includes(word));
  const buttons = actions.filter(fits).filter(({ run }) => run).map(({ name, keys, run }) => {
    const made = Object.assign(document.createElement("button"), { type: "button", tabIndex: -1 });
    made.append(Object.assign(document.createElement("span"), { className: "title", textContent: name }));
    if (keys) made.append(Object.assign(document.createElement("kbd"), { textContent: keys }));
    made.addEventListener("click", () => { box.close(); run(); });
    return made;
  });
  if (words.length > 0) {
    const made = Object.assign(document.createElement("button"), { type: "button", tabIndex: -1 });
    const name = `Search all sessions for “${field.value.trim()}”`;
    made.append(Object.assign(document.createElement("span"), { className: "title", textContent: name }));
    made.addEventListener("click", () => { location.href = `/?q=${encodeURIComponent(field.value.trim())}`; });
    sessions = [...sessions, made];
  }
  for (const session of sessions) session.tabIndex = -1;
  list.replaceChildren(...(words.length > 0 ? [...buttons, ...sessions] : [...sessions, ...buttons]));
  [...list.children].forEach((one, at) => {
    one.setAttribute("role", "option");
    one.id = `palette-${at}`;
  });
  select(list.firstElementChild);
}

let wait;
function update() {
  clearTimeout(wait);
  wait = setTimeout(async () => {
    const own = ++latestRequest;
    const response = await fetch(`/suggested?q=${encodeURIComponent(field.value)}`).catch(() => null);
    const pattern = document.createElement("template");
    if (response?.ok) pattern.innerHTML = await response.text();
    if (own === latestRequest) show([...pattern.content.children]);
  }, 80);
}

export function openPalette() {
  if (!box) make();
  if (box.open) { box.close(); return; }
  field.value = "";
  show([]);
  update();
  box.showModal();
  field.focus();
}
