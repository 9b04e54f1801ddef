// What every page does: the theme, copying, and the keys that are the same everywhere.

import { offer, offers } from "./offer.js";
import { openPalette } from "./palette.js";

const root = document.documentElement;
const wish = matchMedia("(prefers-color-scheme: light)");

const chosen = localStorage.getItem("theme");
if (chosen) root.dataset.theme = chosen;

function turnTheme() {
  const now = root.dataset.theme ?? (wish.matches ? "light" : "dark");
  root.dataset.theme = now === "light" ? "dark" : "light";
  localStorage.setItem("theme", root.dataset.theme);
}
document.querySelector(".theme").addEventListener("click", turnTheme);

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  const said = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = said; }, 1500);
});

/** Whether a key is meant for a field and not for the page. A dialog that was just closed has the focus
 *  until the next frame. */
export function isTyping(event) {
  return event.target.closest("input, textarea, select, [contenteditable], dialog[open]") !== null
    || event.ctrlKey || event.metaKey || event.altKey;
}

// ---- help ----

/** A dialog that gives the focus back to where it was. */
export function dialog(className, label) {
  const made = document.createElement("dialog");
  made.className = className;
  made.setAttribute("aria-label", label);
  made.addEventListener("click", (event) => { if (event.target === made) made.close(); });
  document.body.append(made);
  return made;
}

function listed(title, list) {
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
  help ??= dialog("help", "Keys");
  if (help.open) return;
  const all = offers.filter(({ keys }) => keys);
  const own = all.filter((one) => !one.everywhere);
  const close = Object.assign(document.createElement("button"), { textContent: "Close", type: "button" });
  close.addEventListener("click", () => help.close());
  help.replaceChildren(
    Object.assign(document.createElement("h2"), { textContent: "Keys" }),
    ...(own.length > 0 ? [listed("This page", own)] : []), listed("Everywhere", all.filter((one) => one.everywhere && !own.some(({ keys }) => keys === one.keys))), close,
  );
  help.showModal();
}
document.querySelector(".keys")?.addEventListener("click", openHelp);

// ---- going elsewhere ----

export const go = (path) => { location.href = path; };

const search = document.querySelector(".find input");
function toSearch() {
  search.focus();
  search.select();
}

for (const [name, keys, run] of [
  ["Search everything", "/", toSearch],
  ["Go to a session, a page or an action", "Ctrl K", null],
  ["Sessions", "g s", () => go("/")], ["Stats", "g t", () => go("/stats")],
  ["Light or dark", "", turnTheme], ["Keys", "?", openHelp], ["Close", "Esc", null],
]) offer({ name, keys, run, everywhere: true });

const places = { s: "/", t: "/stats" };
let leader = -Infinity;
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
    return;
  }
  if (isTyping(event)) return;
  if (event.key === "/") {
    // A page may look for something else by this key.
    if (offers.some((one) => one.keys === "/" && !one.everywhere)) return;
    event.preventDefault();
    toSearch();
  } else if (event.key === "?") {
    event.preventDefault();
    openHelp();
  } else if (event.timeStamp - leader < 1000 && places[event.key]) {
    leader = -Infinity;
    go(places[event.key]);
  } else {
    leader = event.key === "g" ? event.timeStamp : -Infinity;
  }
});

for (const link of document.querySelectorAll(".pages a")) {
  if (link.pathname === location.pathname) link.setAttribute("aria-current", "page");
}
