// The page of one session: outline, keys, filters, find.

import "./beside.js";
import "./findings.js";
import { isTyping } from "./app.js";
import { Chat } from "./chat.js";
import { Cursor } from "./cursor.js";
import { Edits } from "./edits.js";
import { Find } from "./find.js";
import { Follow } from "./follow.js";
import { ID } from "./ids.js";
import { addAction, notify } from "./actions.js";
import { offerPromptSearch } from "./prompt_search.js";
import { share } from "./share.js";
import { View, element, hidingFolds } from "./view.js";

const page = document.querySelector(".session");
const outline = page.querySelector(".outline ol");
const state = document.querySelector(".link-state");

let follow;
let chat;
const view = new View(page, {
  state: (text) => { state.textContent = text; },
  head: (head) => document.getElementById("session-head").replaceWith(head),
  tasks: (made) => {
    const held = document.getElementById("tasks");
    const [fold, now] = [made.querySelector("details"), held.querySelector("details")];
    if (fold && now) fold.open = now.open;
    held.replaceWith(made);
  },
  notes: (made) => {
    const held = document.getElementById("notes");
    const [fold, now] = [made.querySelector("details"), held.querySelector("details")];
    if (fold) fold.open = now?.open ?? !matchMedia("(max-width: 60rem)").matches;
    held.replaceWith(made);
  },
  entries: (entries) => {
    for (const entry of [...entries]) putEntry(entry);
    dropTakenBack();
  },
  put: (fresh) => { follow?.put(fresh); cursor?.keep(); chat?.asks.place(); },
});
follow = new Follow(view, page.querySelector(".news"));
const cursor = new Cursor(view, follow);
// Who opens a session that runs or waits wants to see its end.
if ("liveNow" in page.dataset && !location.hash && !location.search) follow.toEnd();
const edits = new Edits(view, cursor);
cursor.addButtons([
  ["Bookmark", "Set or remove a bookmark (b)", () => edits.bookmark()],
  ["Note", "Write a note (m)", () => edits.note()],
]);
function openPrompt() {
  const at = cursor.piece?.dataset.at ?? cursor.piece?.closest(".turn")?.querySelector("[data-at]")?.dataset.at;
  if (at) location.href = `/s/${view.session}/prompts?at=${encodeURIComponent(at)}`;
  else notify("Select a part first: j and k move between them");
}
cursor.addButtons([["Prompt", "What the model call of this part was sent (p)", openPrompt]]);
/** The turn at the cursor, or else the one at the upper edge of the window. */
function shareTurns() {
  const numbers = [...outline.children].map((line) => Number(line.dataset.number));
  if (numbers.length === 0) return notify("There is no turn to share yet");
  const atTop = view.sections().findLast((turn) => turn.getBoundingClientRect().top <= 80) ?? view.sections()[0];
  const turn = cursor.piece?.closest(".session > .transcript > .turns > .turn") ?? atTop;
  share(view.session, Number(turn?.dataset.number ?? numbers[0]), { first: Math.min(...numbers), last: Math.max(...numbers) });
}
cursor.addButtons([["Share", "Share this turn, or some turns (x)", shareTurns]]);
offerPromptSearch(view.session);
const find = new Find(view, follow, page.querySelector(".find-here"));

// ---- the chat ----

const panel = page.querySelector(".chat");
if (panel) {
  chat = new Chat(panel, {
    turns: view.turns,
    target: view.session,
    begin: () => ({ resume: { session: view.session } }),
    // `/clear` began another session in the same chat.
    recorded: (session) => { if (session !== view.session) location.href = `/s/${session}`; },
  });
  // A chat that does not start says why; the session is followed again when it is gone.
  chat.started = (id) => chat.follow(id);
  if (sessionStorage.getItem("compose")) { sessionStorage.removeItem("compose"); chat.focus(); }
  // Growth of the composer keeps the end in view for who is there.
  new ResizeObserver(() => { if (follow.following) follow.stay(); }).observe(panel);
  addAction({ name: "Write to the agent", keys: "i", run: () => chat.focus() });
}

// ---- the outline ----

// On a narrow screen the notes stand above the transcript: closed, so that they do not hide it.
if (matchMedia("(max-width: 60rem)").matches) {
  const fold = document.querySelector("#notes details");
  if (fold) fold.open = false;
}

function putEntry(made) {
  const held = outline.querySelector(`[data-turn="${CSS.escape(made.dataset.turn)}"]`);
  const number = Number(made.dataset.number);
  if (held) {
    made.className = held.className;
    if (held.isEqualNode(made)) return;
    held.replaceWith(made);
  } else {
    const next = [...outline.children].findLast((one) => Number(one.dataset.number) < number);
    if (next) next.after(made); else outline.prepend(made);
  }
  // Two feeds may begin a turn each, which is then found to be one: it has the number of the other.
  for (const twin of [made.previousElementSibling, made.nextElementSibling]) {
    if (twin && Number(twin.dataset.number) === number) twin.remove();
  }
}

/** Numbers behind the last turn were those of turns that were merged into others. */
function dropTakenBack() {
  if (!view.hasEnd() || view.only) return;
  const last = Number(view.sections().at(-1)?.dataset.number);
  while (Number(outline.lastElementChild?.dataset.number) > last) outline.lastElementChild.remove();
}

const here = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const line = outline.querySelector(`[data-turn="${CSS.escape(entry.target.id)}"]`);
    line?.classList.toggle("here", entry.isIntersecting);
  }
}, { rootMargin: "-64px 0px -55% 0px" });
const watchTurns = () => { here.disconnect(); for (const turn of view.sections()) here.observe(turn); };
watchTurns();
new MutationObserver(watchTurns).observe(view.turns, { childList: true });

/** Goes to an element of the session; loads its window if needed. */
async function go(id, query) {
  if (!document.getElementById(id)) await view.jump(query);
  follow.pause();
  history.replaceState(null, "", `?${new URLSearchParams(query)}#${id}`);
  reveal();
}

page.addEventListener("click", async (event) => {
  const link = event.target.closest("a[href^='#']");
  const id = link?.getAttribute("href").slice(1);
  const line = link?.closest("[data-number]");
  if (id?.startsWith(ID.turn) && line) {
    event.preventDefault();
    await go(id, { turn: line.dataset.number });
  } else if (id?.startsWith(ID.part)) {
    event.preventDefault();
    await go(id, { part: id.slice(ID.part.length) });
  }
});

// Opens the folds around the linked part and scrolls to it.
function reveal() {
  let target = location.hash && document.getElementById(location.hash.slice(1));
  // A call that is represented by its agent tree is an empty element: use the tree.
  if (target && target.childElementCount === 0) target = target.nextElementSibling;
  if (!target) return;
  for (const fold of hidingFolds(target)) fold.open = true;
  for (const fold of target.querySelectorAll("details")) fold.open = true;
  follow.pause();
  const isTurn = target.matches(".turn");
  target.scrollIntoView({ block: isTurn ? "start" : "center", behavior: "instant" });
  for (const old of view.turns.querySelectorAll(".hit")) old.classList.remove("hit");
  if (!isTurn) { target.classList.add("hit"); cursor.set(target); }
}
addEventListener("hashchange", reveal);

// ---- inline sub-agents ----

view.turns.addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-inline]");
  if (!link || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const node = link.closest(".node");
  const open = node.querySelector(":scope > .session.inline");
  if (open) { open.view?.close(); open.remove(); link.setAttribute("aria-expanded", "false"); return; }
  const response = await fetch(`/s/${link.dataset.inline}/inline`);
  if (!response.ok) { location.href = link.href; return; }
  const inline = element(await response.text());
  node.append(inline);
  link.setAttribute("aria-expanded", "true");
  inline.view = new View(inline);
});

// ---- folding, hiding, copying ----

view.turns.addEventListener("click", (event) => {
  const fold = event.target.closest("summary")?.parentElement;
  if (fold) fold.dataset.chosen = "";
});

function setFolds(open) {
  for (const fold of view.turns.querySelectorAll("details")) { fold.open = open; fold.dataset.chosen = ""; }
}

const toggle = (name) => (button) => {
  const on = view.turns.classList.toggle(name);
  button.setAttribute("aria-pressed", String(on));
};

const handlers = {
  fold: () => setFolds(false),
  unfold: () => setFolds(true),
  brief: toggle("brief"),
  usage: toggle("with-usage"),
  find: () => find.open(),
  note: () => edits.note(true),
  rename: () => edits.rename(),
  tags: () => edits.tags(),
  share: shareTurns,
  markdown: async () => {
    const response = await fetch(`/s/${view.session}/markdown`);
    if (response.ok) { await navigator.clipboard.writeText(await response.text()); notify("Copied as Markdown"); }
  },
};

page.querySelector(".actions").addEventListener("click", (event) => {
  const button = event.target.closest("[data-act]");
  if (button) handlers[button.dataset.act](button);
});

// The part filter. Its tools are loaded on first use.
for (const filterMenu of page.querySelectorAll(".actions select")) {
  const list = async () => {
    const response = await fetch(`/s/${view.session}/tools`);
    for (const [tool, count] of response.ok ? await response.json() : []) {
      const value = `tool:${tool}`;
      const held = [...filterMenu.options].find((one) => one.value === value);
      const option = held ?? filterMenu.appendChild(new Option(tool, value));
      option.textContent = `${tool} (${count})`;
    }
  };
  filterMenu.addEventListener("focus", list, { once: true });
  filterMenu.addEventListener("pointerenter", list, { once: true });
  filterMenu.addEventListener("change", () => {
    const query = new URLSearchParams(location.search);
    for (const name of ["turn", "part", "before", "after"]) query.delete(name);
    if (filterMenu.value) query.set("only", filterMenu.value); else query.delete("only");
    location.search = query;
  });
}

function step(direction) {
  const heads = view.sections();
  const at = heads.findLastIndex((turn) => turn.getBoundingClientRect().top <= 80);
  const on = heads[at]?.getBoundingClientRect().top < 60 && direction < 0 ? at : at + direction;
  const to = heads[Math.max(0, Math.min(heads.length - 1, on))];
  if (to) { follow.pause(); to.scrollIntoView({ block: "start", behavior: "instant" }); cursor.set(to.querySelector("[data-at]")); }
}

const keys = {
  j: () => cursor.move(1),
  k: () => cursor.move(-1),
  o: () => cursor.fold(),
  Enter: () => cursor.fold(),
  y: () => cursor.copy(),
  l: () => cursor.link(),
  r: () => cursor.raw(),
  p: openPrompt,
  x: shareTurns,
  "]": () => step(1),
  "[": () => step(-1),
  e: () => cursor.seek("error", 1),
  E: () => cursor.seek("error", -1),
  d: () => cursor.seek("edit", 1),
  D: () => cursor.seek("edit", -1),
  u: () => cursor.seek("note", 1),
  U: () => cursor.seek("note", -1),
  b: () => edits.bookmark(),
  B: () => edits.bookmark(),
  m: () => edits.note(),
  M: () => edits.note(),
  n: () => find.next(1),
  N: () => find.next(-1),
  h: () => page.querySelector("[data-act=brief]").click(),
  G: () => follow.toEnd(),
  i: () => chat?.focus(),
};

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || isTyping(event)) return;
  if (event.key === "/") { event.preventDefault(); event.stopImmediatePropagation(); find.open(); return; }
  if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
  const action = keys[event.key];
  if (action) { event.preventDefault(); action(); }
}, { capture: true });

addAction({ name: "Find in this session", keys: "/", run: () => find.open() });
addAction({ name: "Next or previous part", keys: "j k", run: () => cursor.move(1) });
addAction({ name: "Open or close a part", keys: "o", run: () => cursor.fold() });
addAction({ name: "Next prompt", keys: "]", run: () => step(1) });
addAction({ name: "Previous prompt", keys: "[", run: () => step(-1) });
addAction({ name: "Next or previous error", keys: "e E", run: keys.e });
addAction({ name: "Next or previous edit", keys: "d D", run: keys.d });
addAction({ name: "Set or remove a bookmark", keys: "b", run: () => edits.bookmark() });
addAction({ name: "Write a note", keys: "m", run: () => edits.note() });
addAction({ name: "Next or previous note", keys: "u U", run: keys.u });
addAction({ name: "Rename the session", run: () => edits.rename() });
addAction({ name: "Tag the session", run: () => edits.tags() });
addAction({ name: "Next or previous hit", keys: "n N", run: () => find.next(1) });
addAction({ name: "Copy the part as Markdown", keys: "y", run: () => cursor.copy() });
addAction({ name: "Copy a link to the part", keys: "l", run: () => cursor.link() });
addAction({ name: "Show the raw record of the part", keys: "r", run: () => cursor.raw() });
addAction({ name: "What the model call of the part was sent", keys: "p", run: openPrompt });
addAction({ name: "Share turns", keys: "x", run: shareTurns });
addAction({ name: "Compare with another session", run: () => { location.href = `/compare?a=${view.session}`; } });
addAction({ name: "Hide intermediate work", keys: "h", run: keys.h });
addAction({ name: "Go to the end and follow", keys: "G", run: () => follow.toEnd() });
addAction({ name: "Expand all", run: () => setFolds(true) });
addAction({ name: "Collapse all", run: () => setFolds(false) });

follow.recall();
reveal();
if (follow.following && location.hash === "" && page.querySelector(".growing")) follow.stay();
