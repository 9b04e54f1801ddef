// One session: what is told live is put where a fresh page would have it; the page follows its end
// while its reader is there, and stays where it is otherwise.

const page = document.querySelector(".session");
const turns = page.querySelector(".turns");
const outline = page.querySelector(".outline ol");
const news = page.querySelector(".news");
const state = document.querySelector(".link-state");

// ---- following the end ----

const NEAR = 48;
let following = atEnd();
let unseen = 0;

function atEnd() {
  const { scrollHeight, clientHeight, scrollTop } = document.documentElement;
  return scrollHeight - clientHeight - scrollTop <= NEAR;
}

// Only a person goes up: the page's own growth moves nothing, and what shrinks moves both ends.
let lastTop = 0;
let lastHeight = 0;
addEventListener("scroll", () => {
  const { scrollTop, scrollHeight } = document.documentElement;
  if (atEnd()) {
    following = true;
    seen();
  } else if (scrollTop < lastTop && scrollHeight >= lastHeight) {
    following = false;
  }
  lastTop = scrollTop;
  lastHeight = scrollHeight;
}, { passive: true });

function toEnd() {
  scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
  seen();
}

function seen() {
  unseen = 0;
  news.hidden = true;
}

news.addEventListener("click", () => { following = true; toEnd(); });

// ---- what is told live ----

const pattern = document.createElement("template");

function element(html) {
  pattern.innerHTML = html;
  return pattern.content.firstElementChild;
}

/** What a reader opened or closed stays so when the piece is told anew. */
function keepFolds(from, to) {
  if (!from) return;
  const choices = new Map();
  for (const fold of from.querySelectorAll("details[data-chosen]")) choices.set(foldKey(fold, from), fold.open);
  if (from.matches("details[data-chosen]")) choices.set(foldKey(from, from), from.open);
  if (choices.size === 0) return;
  const folds = [...to.querySelectorAll("details")];
  if (to.matches("details")) folds.push(to);
  for (const fold of folds) {
    const open = choices.get(foldKey(fold, to));
    if (open === undefined) continue;
    fold.open = open;
    fold.dataset.chosen = "";
  }
}

function foldKey(fold, within) {
  const holder = fold.closest("[id]") ?? within;
  return `${holder.id}/${[...holder.querySelectorAll("details")].indexOf(fold)}`;
}

turns.addEventListener("click", (event) => {
  const fold = event.target.closest("summary")?.parentElement;
  if (fold) fold.dataset.chosen = "";
});

let fresh = 0;

/** Puts an element behind another one of the same parent, or first. */
function put(parent, html, after) {
  const made = element(html);
  const held = document.getElementById(made.id);
  if (held === null) fresh += 1;
  keepFolds(held, made);
  const before = after === null ? null : document.getElementById(after);
  const place = before ? before.nextElementSibling : parent.firstElementChild;
  if (held && (place === held || held.previousElementSibling === before)) {
    held.replaceWith(made);
  } else {
    held?.remove();
    parent.insertBefore(made, before ? before.nextElementSibling : parent.firstElementChild);
  }
}

const acts = {
  head: ({ html }) => document.getElementById("session-head").replaceWith(element(html)),
  turn: ({ html, after }) => put(turns, html, after),
  piece: ({ turn, html, after }) => put(document.getElementById(turn), html, after),
  drop: ({ id }) => document.getElementById(id)?.remove(),
  outline: ({ html, after }) => {
    const made = element(html);
    const held = outline.querySelector(`[data-turn="${CSS.escape(made.dataset.turn)}"]`);
    if (held) held.replaceWith(made);
    else {
      const before = after && outline.querySelector(`[data-turn="${CSS.escape(after)}"]`);
      if (before) before.after(made); else outline.append(made);
    }
  },
};

function apply(message) {
  const stay = following;
  fresh = 0;
  for (const act of message.acts) acts[act.act](act);
  page.dataset.seq = message.seq;
  if (stay) toEnd();
  else if (fresh > 0) {
    unseen += fresh;
    news.textContent = unseen === 1 ? "1 new part" : `${unseen} new parts`;
    news.hidden = false;
  }
}

// ---- the connection ----

let wait = 250;

function connect() {
  const address = new URL("/api/live", location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(address);
  socket.onopen = () => {
    wait = 250;
    const first = turns.firstElementChild?.id ?? null;
    socket.send(JSON.stringify({
      subscribe: page.dataset.session, form: "html", since: Number(page.dataset.seq), first,
    }));
  };
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.type === "html") { state.textContent = ""; apply(message); }
    else if (message.type === "ready") state.textContent = "";
    else if (message.type === "behind") socket.close();
  };
  socket.onclose = () => {
    state.textContent = "not connected";
    setTimeout(connect, wait);
    wait = Math.min(wait * 2, 5000);
  };
}
connect();

// ---- earlier turns ----

const older = () => document.getElementById("older");

async function loadOlder(link) {
  if (link.dataset.busy) return;
  link.dataset.busy = "1";
  const answer = await fetch(`/s/${page.dataset.session}/turns?before=${link.dataset.before}`);
  if (!answer.ok) { delete link.dataset.busy; return; }
  pattern.innerHTML = await answer.text();
  const height = document.documentElement.scrollHeight;
  const next = pattern.content.querySelector("#older");
  next?.remove();
  const entries = pattern.content.querySelector("ol.entries");
  entries?.remove();
  if (entries) outline.prepend(...entries.children);
  turns.prepend(pattern.content);
  if (next) link.replaceWith(next); else link.remove();
  scrollBy({ top: document.documentElement.scrollHeight - height, behavior: "instant" });
  watchOlder();
}

const sight = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) loadOlder(entry.target);
}, { rootMargin: "600px" });

function watchOlder() {
  const link = older();
  if (link) sight.observe(link);
}
document.addEventListener("click", (event) => {
  const link = event.target.closest("#older");
  if (link) { event.preventDefault(); loadOlder(link); }
});
watchOlder();

// ---- folding, and finding one's way ----

const deeds = {
  fold: () => setFolds(false),
  unfold: () => setFolds(true),
  brief: (button) => {
    const on = turns.classList.toggle("brief");
    button.setAttribute("aria-pressed", String(on));
  },
};

function setFolds(open) {
  for (const fold of turns.querySelectorAll("details")) { fold.open = open; fold.dataset.chosen = ""; }
}

page.querySelector(".actions").addEventListener("click", (event) => {
  const button = event.target.closest("[data-act]");
  if (button) deeds[button.dataset.act](button);
});

function go(direction) {
  const heads = [...turns.querySelectorAll(":scope > .turn")];
  const top = 80;
  const at = heads.findLastIndex((turn) => turn.getBoundingClientRect().top <= top);
  const to = heads[Math.max(0, Math.min(heads.length - 1, at + direction))];
  to?.scrollIntoView({ block: "start" });
}

document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "j") scrollBy({ top: 120 });
  else if (event.key === "k") scrollBy({ top: -120 });
  else if (event.key === "]") go(1);
  else if (event.key === "[") go(-1);
  else if (event.key === "G") { following = true; toEnd(); }
});

const watch = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const line = outline.querySelector(`[data-turn="${CSS.escape(entry.target.id)}"]`);
    line?.classList.toggle("here", entry.isIntersecting);
  }
}, { rootMargin: "-64px 0px -55% 0px" });
for (const turn of turns.children) watch.observe(turn);
new MutationObserver((records) => {
  for (const record of records) for (const node of record.addedNodes) {
    if (node instanceof HTMLElement) watch.observe(node);
  }
}).observe(turns, { childList: true });

// A link to a part opens what it stands in.
function reveal() {
  let target = location.hash && document.getElementById(location.hash.slice(1));
  // A call whose agents stand for it is shown as they are.
  if (target && target.childElementCount === 0) target = target.nextElementSibling;
  if (!target) return;
  for (let at = target; at; at = at.parentElement) if (at.matches("details")) at.open = true;
  for (const fold of target.querySelectorAll("details")) fold.open = true;
  following = false;
  target.scrollIntoView({ block: "center" });
}
addEventListener("hashchange", reveal);
reveal();

if (following && location.hash === "" && page.querySelector(".growing")) toEnd();
