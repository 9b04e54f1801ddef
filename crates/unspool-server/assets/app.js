// Shared by all pages: theme, copy buttons, help and global keys.

import { addAction, actions } from "./actions.js";
import { openPalette } from "./palette.js";
import "./attention.js";

const root = document.documentElement;

// The key with which this browser drives agents. Pages of other ports cannot read it here.
if (location.hash.startsWith("#drive=")) {
  localStorage.setItem("drive", location.hash.slice("#drive=".length));
  history.replaceState(null, "", location.pathname + location.search);
}
const prefersLight = matchMedia("(prefers-color-scheme: light)");

const chosen = localStorage.getItem("theme");
if (chosen) root.dataset.theme = chosen;

function toggleTheme() {
  const now = root.dataset.theme ?? (prefersLight.matches ? "light" : "dark");
  root.dataset.theme = now === "light" ? "dark" : "light";
  localStorage.setItem("theme", root.dataset.theme);
}
document.querySelector(".theme").addEventListener("click", toggleTheme);

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  const label = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = label; }, 1500);
});

/** True if a key is meant for an input field. A dialog that was just closed keeps the focus until the
 *  next frame. */
export function isTyping(event) {
  return event.target.closest("input, textarea, select, [contenteditable], dialog[open]") !== null
    || event.ctrlKey || event.metaKey || event.altKey;
}

// ---- help ----

/** A modal dialog; closing it restores the focus. */
export function dialog(className, label) {
  const made = document.createElement("dialog");
  made.className = className;
  made.setAttribute("aria-label", label);
  made.addEventListener("click", (event) => { if (event.target === made) made.close(); });
  document.body.append(made);
  return made;
}

function keySection(title, list) {
  const section = document.createElement("section");
  section.append(Object.assign(document.createElement("h3"), { textContent: title }));
  const rows = document.createElement("dl");
  for (const { keys, name } of list) {
    const term = document.createElement("dt");
    for (const one of keys.split(" ")) term.append(Object.assign(document.createElement("kbd"), { textContent: one }), " ");
    rows.append(term, Object.assign(document.createElement("dd"), { textContent: name }));
  }
  section.append(rows);
  return section;
}

let help;
function openHelp() {
  help ??= dialog("help", "Keyboard shortcuts");
  if (help.open) return;
  const all = actions.filter(({ keys }) => keys);
  const own = all.filter((one) => !one.everywhere);
  const close = Object.assign(document.createElement("button"), { textContent: "Close", type: "button" });
  close.addEventListener("click", () => help.close());
  help.replaceChildren(
    Object.assign(document.createElement("h2"), { textContent: "Keyboard shortcuts" }),
    ...(own.length > 0 ? [keySection("This page", own)] : []), keySection("Everywhere", all.filter((one) => one.everywhere && !own.some(({ keys }) => keys === one.keys))), close,
  );
  help.showModal();
}
document.querySelector(".keys")?.addEventListener("click", openHelp);

// ---- navigation ----

export const go = (path) => { location.href = path; };

const search = document.querySelector(".find input");
function toSearch() {
  search.focus();
  search.select();
}

for (const [name, keys, run] of [
  ["Search all sessions", "/", toSearch],
  ["Go to a session, a page or an action", "Ctrl K", null],
  ["Sessions", "g s", () => go("/")], ["Stats", "g t", () => go("/stats")],
  ["Findings", "g f", () => go("/findings")],
  ["Adaptations", "g a", () => go("/adaptations")],
  ["Switch between light and dark", "", toggleTheme], ["Log out", "", () => go("/logout")], ["Keyboard shortcuts", "?", openHelp], ["Close", "Esc", null],
]) addAction({ name, keys, run, everywhere: true });

const places = { s: "/", t: "/stats", f: "/findings", a: "/adaptations" };
let leader = -Infinity;
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
    return;
  }
  if (isTyping(event)) return;
  if (event.key === "/") {
    // A page may use this key for its own search.
    if (actions.some((one) => one.keys === "/" && !one.everywhere)) return;
    event.preventDefault();
    toSearch();
  } else if (event.key === "?") {
    event.preventDefault();
    openHelp();
  } else if (event.timeStamp - leader < 1000 && places[event.key]) {
    leader = -Infinity;
    event.preventDefault();
    go(places[event.key]);
  } else {
    leader = event.key === "g" ? event.timeStamp : -Infinity;
  }
});

for (const link of document.querySelectorAll(".pages a")) {
  if (link.pathname !== location.pathname) continue;
  link.setAttribute("aria-current", "page");
  // The pages scroll sideways on a phone.
  link.parentElement.scrollLeft = link.offsetLeft - link.parentElement.offsetLeft;
}
