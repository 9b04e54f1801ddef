// The list beside the transcript: what runs, what waits, what grew since you looked; J and K go to the
// next and the previous session.

import { isTyping } from "./app.js";
import { addAction, notify } from "./actions.js";

const REFRESH_MS = 3000;
const session = document.querySelector(".session[data-session]");
const side = document.querySelector(".side");
const list = side?.querySelector(".beside");
const switches = [...(side?.querySelectorAll("[data-side]") ?? [])];
const template = document.createElement("template");
let etag = null;

const chosen = () => localStorage.getItem("side") ?? "outline";
const isShown = () => chosen() === "sessions" && document.visibilityState === "visible";
const readKey = (id) => `read:${id}`;

/** Marks rows that grew since they were open here. The open one is being read. */
function markUnread() {
  for (const row of list.querySelectorAll("li")) {
    const { session: id, seq } = row.dataset;
    const isOpen = id === session.dataset.session;
    if (isOpen) localStorage.setItem(readKey(id), seq);
    const read = localStorage.getItem(readKey(id));
    row.querySelector(".unread").hidden = isOpen || read === null || Number(seq) <= Number(read);
    const link = row.querySelector("a");
    if (isOpen) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
}

async function refresh() {
  const response = await fetch("/beside", { headers: etag ? { "If-None-Match": etag } : {} }).catch(() => null);
  if (response?.status === 304) markUnread();
  if (!response?.ok) return;
  etag = response.headers.get("ETag");
  template.innerHTML = await response.text();
  // Focus stays on the row it was on.
  const focused = document.activeElement?.closest(".beside li")?.dataset.session;
  list.replaceChildren(template.content);
  markUnread();
  if (focused) list.querySelector(`[data-session="${CSS.escape(focused)}"] a`)?.focus();
}

function show() {
  const sessions = chosen() === "sessions";
  side.querySelector(".outline").hidden = sessions;
  list.hidden = !sessions;
  for (const button of switches) button.setAttribute("aria-pressed", String(button.dataset.side === chosen()));
  if (sessions) refresh();
}

async function step(by) {
  if (list.childElementCount === 0) await refresh();
  const rows = [...list.querySelectorAll("li")];
  const at = rows.findIndex((row) => row.dataset.session === session.dataset.session);
  const next = rows[at + by];
  if (next) location.href = next.querySelector("a").href;
  else notify(by > 0 ? "This is the last session in the list" : "This is the first session in the list");
}

if (session && list) {
  side.querySelector(".side-switch").hidden = false;
  for (const button of switches) {
    button.addEventListener("click", () => {
      localStorage.setItem("side", button.dataset.side);
      show();
    });
  }
  for (const [name, keys, by] of [["Next session", "J", 1], ["Previous session", "K", -1]]) {
    addAction({ name, keys, run: () => step(by) });
  }
  const toggle = () => {
    localStorage.setItem("side", chosen() === "sessions" ? "outline" : "sessions");
    show();
  };
  addAction({ name: "Switch the side panel between outline and sessions", keys: "s", run: toggle });
  document.addEventListener("keydown", (event) => {
    // `g s` goes to the list.
    if (isTyping(event) || event.defaultPrevented) return;
    if (event.key === "J" || event.key === "K") step(event.key === "J" ? 1 : -1);
    else if (event.key === "s") toggle();
  });
  localStorage.setItem(readKey(session.dataset.session), session.dataset.seq);
  setInterval(() => { if (isShown()) refresh(); }, REFRESH_MS);
  document.addEventListener("visibilitychange", () => { if (isShown()) refresh(); });
  show();
}
