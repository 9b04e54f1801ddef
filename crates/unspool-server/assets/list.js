// The session list and search results: filters, search while typing, infinite scroll, live updates and
// keyboard navigation.

import { isTyping } from "./app.js";
import { addAction } from "./actions.js";
import { takeAttention } from "./attention.js";

const page = document.querySelector("[data-list]");
const listing = page?.querySelector(".listing");
const results = page?.querySelector(".found");
const live = page?.querySelector("section.live");
const template = document.createElement("template");

function fragment(html) {
  template.innerHTML = html;
  return template.content;
}

// ---- filters: submit on change, without empty fields ----

for (const form of document.querySelectorAll(".filters")) {
  form.classList.add("auto");
  const send = () => {
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (value !== "") query.set(name, value);
    const text = query.toString();
    location.href = text ? `${form.action}?${text}` : form.action;
  };
  // After navigating back, show the filters of the URL, not the last input.
  addEventListener("pageshow", () => form.reset());
  form.addEventListener("change", send);
  form.addEventListener("submit", (event) => { event.preventDefault(); send(); });
}
const chosen = () => Object.fromEntries(new URLSearchParams(page.dataset.query));

// ---- search while typing ----

const field = document.querySelector(".find input");
let typing, latest = 0;

async function search() {
  const own = ++latest;
  const query = new URLSearchParams(page.dataset.query);
  query.delete("by");
  query.delete("after");
  if (field.value.trim() === "") query.delete("q"); else query.set("q", field.value);
  const text = query.toString();
  history.replaceState(history.state, "", text ? `/?${text}` : "/");
  if (!query.has("q")) {
    show(false);
    return;
  }
  const response = await fetch(`/found?${text}`).catch(() => null);
  if (own !== latest || !response?.ok) return;
  results.replaceChildren(fragment(await response.text()));
  show(true);
}

function show(found) {
  results.hidden = !found;
  if (listing) listing.hidden = found;
  const sum = page.querySelector(":scope > .sum");
  if (sum) sum.hidden = found;
}

if (page && results) {
  field.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(search, 150);
  });
  // Enter opens the search page with the active filters.
  field.form.addEventListener("submit", (event) => {
    event.preventDefault();
    const query = new URLSearchParams(page.dataset.query);
    for (const name of ["by", "after", "q"]) query.delete(name);
    if (field.value.trim() !== "") query.set("q", field.value);
    location.href = `/?${query}`;
  });
  if (listing && field.value.trim() !== "") search();
}

// ---- more of the list ----

async function more(link) {
  if (link.dataset.busy) return;
  link.dataset.busy = "1";
  const response = await fetch(`/rows?${link.dataset.more}`).catch(() => null);
  if (!response?.ok) { delete link.dataset.busy; return; }
  const got = fragment(await response.text());
  const list = listing.querySelector("ol.all");
  // Live sessions and rows that arrived meanwhile are already present.
  for (const row of got.querySelectorAll(".row")) if (document.getElementById(row.id)) row.remove();
  list.append(...got.querySelector("ol").children);
  const next = got.querySelector("#more");
  if (next) link.replaceWith(next); else link.remove();
  watch();
}

const moreObserver = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) more(entry.target);
}, { rootMargin: "1200px" });

function watch() {
  const link = document.getElementById("more");
  if (link) moreObserver.observe(link);
}
document.addEventListener("click", (event) => {
  const link = event.target.closest("#more");
  if (link) { event.preventDefault(); more(link); }
});
watch();

// ---- live updates ----

const TOTALS_EVERY = 5000;
let totalsTimer, totalsAt = 0;

/** The totals and the counts of the filters follow the rows, at most every few seconds. */
function refreshTotals() {
  if (totalsTimer || !page.querySelector(":scope > .sum")) return;
  totalsTimer = setTimeout(async () => {
    totalsTimer = undefined;
    totalsAt = Date.now();
    if (document.hidden) { addEventListener("visibilitychange", refreshTotals, { once: true }); return; }
    const response = await fetch(`/?${page.dataset.query}`).catch(() => null);
    if (!response?.ok) return;
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const selector of [".sum", ".filters"]) {
      const [held, got] = [page.querySelector(selector), fresh.querySelector(selector)];
      if (!held || !got || held.innerHTML === got.innerHTML) continue;
      // Not under the hands of the user.
      if (held.contains(document.activeElement)) refreshTotals();
      else held.replaceChildren(...got.childNodes);
    }
  }, Math.max(300, totalsAt + TOTALS_EVERY - Date.now()));
}

/** Inserts a row where a fresh page would have it. */
function place(row, isLive) {
  const held = document.getElementById(row.id);
  const focused = held?.contains(document.activeElement);
  const now = live.querySelector("ol");
  const all = listing.querySelector("ol.all");
  if (isLive) {
    if (held && now.contains(held) && held.dataset.order === row.dataset.order) held.replaceWith(row);
    else {
      drop(held);
      // Those that wait come first.
      const next = [...now.children].find((one) => one.dataset.order >= row.dataset.order);
      now.insertBefore(row, next ?? null);
    }
  } else if (held && !now.contains(held)) {
    held.replaceWith(row);
  } else if (all) {
    drop(held);
    putByTime(all, row);
  } else {
    drop(held);
  }
  live.hidden = now.childElementCount === 0;
  if (focused) row.querySelector("a").focus({ preventScroll: true });
}

/** Removes a row, and the heading of its day with the last row. */
function drop(row) {
  const before = row?.previousElementSibling;
  const after = row?.nextElementSibling;
  row?.remove();
  if (before?.matches(".day") && (after === null || after?.matches(".day"))) before.remove();
}

function putByTime(all, row) {
  const at = (one) => Number(one.dataset.started ?? -Infinity);
  const rows = [...all.querySelectorAll(".row")];
  const next = rows.find((one) => at(one) < at(row) || (at(one) === at(row) && one.id > row.id));
  // After the loaded rows: it is loaded with the next page.
  if (!next && document.getElementById("more")) return;
  const same = rows.find((one) => one.dataset.day === row.dataset.day);
  const head = (one) => one?.previousElementSibling?.matches(".day") ? one.previousElementSibling : one;
  if (same) {
    const before = next && next.dataset.day === row.dataset.day ? next : null;
    if (before) before.before(row);
    else rows.filter((one) => one.dataset.day === row.dataset.day).at(-1).after(row);
    return;
  }
  const day = document.createElement("li");
  day.className = "day";
  day.append(Object.assign(document.createElement("h2"), { textContent: row.dataset.day }));
  if (next) head(next).before(day, row); else all.append(day, row);
}

const state = document.querySelector(".link-state");
let wait = 250;

/** Catches up on missed updates: applies the newest rows of a fresh page. */
async function catchUp() {
  const response = await fetch(`/rows?${page.dataset.query}`).catch(() => null);
  if (!response?.ok) return;
  for (const row of [...fragment(await response.text()).querySelectorAll(".row")]) {
    const held = document.getElementById(row.id);
    if (held?.outerHTML !== row.outerHTML) place(row, row.classList.contains("live"));
  }
  refreshTotals();
}

function connect() {
  const address = new URL("/api/live", location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(address);
  socket.onopen = () => {
    wait = 250;
    socket.send(JSON.stringify({ subscribe: "sessions", query: chosen() }));
  };
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.type === "ready") {
      state.textContent = "";
      if (listing) catchUp(); else if (!message.empty) location.reload();
    } else if (message.type === "rows") {
      if (!listing) { location.reload(); return; }
      for (const { html, live: isLive } of message.rows) place(fragment(html).firstElementChild, isLive);
      refreshTotals();
    } else if (message.type === "deleted") {
      for (const id of message.ids) document.getElementById(id)?.remove();
      refreshTotals();
    } else if (takeAttention(message)) {
      return;
    } else if (message.type === "behind" && listing) {
      catchUp();
    }
  };
  socket.onclose = () => {
    state.textContent = "not connected";
    setTimeout(connect, wait);
    wait = Math.min(wait * 2, 5000);
  };
}
if (live || document.querySelector(".welcome")) connect();

// ---- the demo ----

const demo = document.querySelector("form.demo");
demo?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const status = demo.querySelector(".said");
  const button = demo.querySelector("button");
  button.disabled = true;
  status.textContent = "Opening…";
  const response = await fetch("/demo", { method: "POST", headers: { accept: "application/json" } }).catch(() => null);
  const result = await response?.json().catch(() => null);
  if (response?.ok && result) { location.href = result.address; return; }
  button.disabled = false;
  status.textContent = result?.detail ?? "No response from the server; is it still running?";
});

// ---- keys ----

const rowLinks = () => [...document.querySelectorAll(".row > a")].filter((link) => link.offsetParent !== null);

function step(by) {
  const all = rowLinks();
  const at = all.indexOf(document.activeElement);
  const to = all[Math.max(0, Math.min(all.length - 1, at + by))];
  to?.focus();
  to?.scrollIntoView({ block: "nearest" });
}

if (page) {
  const filters = () => document.querySelector(".filters select")?.focus();
  addAction({ name: "Down", keys: "j" });
  addAction({ name: "Up", keys: "k" });
  addAction({ name: "Open", keys: "Enter" });
  addAction({ name: "Filters", keys: "f", run: filters });
  addAction({ name: "Clear all filters", keys: "x", run: () => { location.href = "/"; } });
  document.addEventListener("keydown", (event) => {
    if (event.target === field && event.key === "ArrowDown") { event.preventDefault(); step(1); return; }
    if (event.target === field && event.key === "Escape") { field.blur(); return; }
    if (isTyping(event)) return;
    if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "f") filters();
    else if (event.key === "x" && location.search !== "") location.href = "/";
  });
  for (const [name, selector] of [["Group by project", ".by a:last-child"], ["Group by day", ".by a:first-child"]]) {
    const link = page.querySelector(selector);
    if (link && !link.hasAttribute("aria-current")) addAction({ name, run: () => link.click() });
  }
}
