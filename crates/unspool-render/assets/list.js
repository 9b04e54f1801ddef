// The list of sessions and what a search found: filters, searching while one types, more of the list when
// its end is near, what is told live, and up and down by keys.

import { isTyping } from "./app.js";
import { offer } from "./offer.js";

const page = document.querySelector("[data-list]");
const listing = page?.querySelector(".listing");
const results = page?.querySelector(".found");
const live = page?.querySelector("section.live");
const pattern = document.createElement("template");

function fragment(html) {
  pattern.innerHTML = html;
  return pattern.content;
}

// ---- filters: a form that sends itself, without what was left empty ----

for (const form of document.querySelectorAll(".filters")) {
  form.classList.add("auto");
  const send = () => {
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (value !== "") query.set(name, value);
    const said = query.toString();
    location.href = said ? `${form.action}?${said}` : form.action;
  };
  // Who comes back sees what the address says, not what was chosen last.
  addEventListener("pageshow", () => form.reset());
  form.addEventListener("change", send);
  form.addEventListener("submit", (event) => { event.preventDefault(); send(); });
}
const chosen = () => Object.fromEntries(new URLSearchParams(page.dataset.query));

// ---- searching while one types ----

const field = document.querySelector(".find input");
let typing, latest = 0;

async function search() {
  const own = ++latest;
  const query = new URLSearchParams(page.dataset.query);
  query.delete("by");
  query.delete("after");
  if (field.value.trim() === "") query.delete("q"); else query.set("q", field.value);
  const said = query.toString();
  history.replaceState(history.state, "", said ? `/?${said}` : "/");
  if (!query.has("q")) {
    show(false);
    return;
  }
  const answer = await fetch(`/found?${said}`).catch(() => null);
  if (own !== latest || !answer?.ok) return;
  results.replaceChildren(fragment(await answer.text()));
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
  // Enter looks for more, among what is chosen.
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
  const answer = await fetch(`/rows?${link.dataset.more}`).catch(() => null);
  if (!answer?.ok) { delete link.dataset.busy; return; }
  const got = fragment(await answer.text());
  const list = listing.querySelector("ol.all");
  // What is live stands above, and what came meanwhile may be here already.
  for (const row of got.querySelectorAll(".row")) if (document.getElementById(row.id)) row.remove();
  list.append(...got.querySelector("ol").children);
  const next = got.querySelector("#more");
  if (next) link.replaceWith(next); else link.remove();
  watch();
}

const near = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) more(entry.target);
}, { rootMargin: "1200px" });

function watch() {
  const link = document.getElementById("more");
  if (link) near.observe(link);
}
document.addEventListener("click", (event) => {
  const link = event.target.closest("#more");
  if (link) { event.preventDefault(); more(link); }
});
watch();

// ---- what is told live ----

/** Puts a row where a page that is loaded now would have it. */
function place(row, isLive) {
  const held = document.getElementById(row.id);
  const focused = held?.contains(document.activeElement);
  const now = live.querySelector("ol");
  const all = listing.querySelector("ol.all");
  if (isLive) {
    if (held && now.contains(held)) held.replaceWith(row);
    else { drop(held); now.prepend(row); }
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

/** Takes a row away, and its day with the last of its rows. */
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
  // Behind all that is loaded: it comes with the rest.
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

/** What happened while nobody told us: the newest rows as a page has them that is loaded now. */
async function catchUp() {
  const answer = await fetch(`/rows?${page.dataset.query}`).catch(() => null);
  if (!answer?.ok) return;
  for (const row of [...fragment(await answer.text()).querySelectorAll(".row")]) {
    const held = document.getElementById(row.id);
    if (held?.outerHTML !== row.outerHTML) place(row, row.classList.contains("live"));
  }
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
  const said = demo.querySelector(".said");
  const button = demo.querySelector("button");
  button.disabled = true;
  said.textContent = "Opening…";
  const answer = await fetch("/demo", { method: "POST", headers: { accept: "application/json" } }).catch(() => null);
  const told = await answer?.json().catch(() => null);
  if (answer?.ok && told) { location.href = told.address; return; }
  button.disabled = false;
  said.textContent = told?.detail ?? "The server does not answer; is it still running?";
});

// ---- keys ----

const links = () => [...document.querySelectorAll(".row > a")].filter((link) => link.offsetParent !== null);

function step(by) {
  const all = links();
  const at = all.indexOf(document.activeElement);
  const to = all[Math.max(0, Math.min(all.length - 1, at + by))];
  to?.focus();
  to?.scrollIntoView({ block: "nearest" });
}

if (page) {
  const filters = () => document.querySelector(".filters select")?.focus();
  offer({ name: "Down", keys: "j" });
  offer({ name: "Up", keys: "k" });
  offer({ name: "Open", keys: "Enter" });
  offer({ name: "Filters", keys: "f", run: filters });
  offer({ name: "Take all filters off", keys: "x", run: () => { location.href = "/"; } });
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
    if (link && !link.hasAttribute("aria-current")) offer({ name, run: () => link.click() });
  }
}
