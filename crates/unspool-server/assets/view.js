// A window on a session: loaded turns, gaps for the rest, and live updates applied where a fresh
// page would have them. The DOM stays bounded however long the session is.

/** Above this many parts, distant ones are removed from the DOM. */
const MAX_PARTS = 260;
const PARTS_AFTER_TRIM = 200;
/** Parts nearer than this are never removed. */
const TRIM_DISTANCE_PX = 2400;
const END = "4294967295.9223372036854775807";

const template = document.createElement("template");

export function element(html) {
  template.innerHTML = html;
  return template.content.firstElementChild;
}

/** The closed folds that hide an element, outermost last. */
export function hidingFolds(target) {
  const folds = [];
  for (let at = target; at; at = at.parentElement) {
    if (at.matches("details:not([open])")) folds.push(at);
    const thought = at.matches(".folds-calls") ? at.querySelector(":scope > .inside > :first-child > details:not([open])") : null;
    if (thought && !thought.contains(target)) folds.push(thought);
  }
  return folds;
}

/** The first visible element of a list. */
function firstVisible(list) {
  return [...list].find((one) => { const box = one.getBoundingClientRect(); return box.bottom > 60 && box.height > 0; });
}

/** The element to keep in place. Closed folds are not measured: that would force their layout. */
function visibleAnchor(turns) {
  let found = firstVisible(turns.children);
  while (found?.matches(".turn, .reasoning-block")) {
    const within = firstVisible((found.querySelector(":scope > .inside") ?? found).children);
    if (!within) break;
    found = within;
  }
  return found;
}

/** Runs a DOM change and keeps the visible content at its scroll position. */
export function inPlace(turns, change) {
  const anchor = visibleAnchor(turns);
  const before = anchor?.getBoundingClientRect().top;
  change();
  if (!anchor?.isConnected) return;
  const moved = anchor.getBoundingClientRect().top - before;
  if (Math.abs(moved) >= 1) scrollBy({ top: moved, behavior: "instant" });
}

function foldKey(fold, within) {
  const holder = fold.closest("[id]") ?? within;
  return `${holder.id}/${[...holder.querySelectorAll("details")].indexOf(fold)}`;
}

/** Moves open questions to the new piece, with the focus: somebody may be writing an answer. */
function keepQuestions(from, to) {
  const questions = from.querySelectorAll(":scope > .ask");
  if (questions.length === 0) return;
  const { activeElement } = document;
  const isUsed = [...questions].some((one) => one.contains(activeElement));
  to.append(...questions);
  // When the new piece is in the page.
  if (isUsed) queueMicrotask(() => activeElement.focus({ preventScroll: true }));
}

/** Keeps folds that the user opened or closed when a piece is replaced. */
function keepFolds(from, to) {
  const choices = new Map();
  for (const fold of from.querySelectorAll("details[data-chosen]")) choices.set(foldKey(fold, from), fold.open);
  if (from.matches("details[data-chosen]")) choices.set(foldKey(from, from), from.open);
  const folds = choices.size === 0 ? [] : [to, ...to.querySelectorAll("details")].filter((one) => one.matches("details"));
  for (const fold of folds) {
    const open = choices.get(foldKey(fold, to));
    if (open === undefined) continue;
    fold.open = open;
    fold.dataset.chosen = "";
  }
  keepQuestions(from, to);
  for (const inline of from.querySelectorAll(".session.inline")) {
    to.querySelector(`[data-inline="${CSS.escape(inline.dataset.session)}"]`)?.closest(".node").append(inline);
  }
}

const isGap = (one) => one?.matches(".gap") ?? false;
const isItem = (one) => one.matches("[data-at], .reasoning-block");
const firstPosition = (one) => one.matches("[data-at]") ? one.dataset.at : one.querySelector("[data-at]")?.dataset.at;
const countParts = (one) => one.querySelectorAll(".part[data-at]").length + (one.matches("[data-at]") ? 1 : 0);

export class View {
  /** `listeners`: callbacks for the head, the tasks, outline entries, inserted ids and the connection. */
  constructor(holder, listeners = {}) {
    this.holder = holder;
    this.turns = holder.querySelector(".turns");
    this.session = holder.dataset.session;
    this.listeners = listeners;
    /** The part filter, applied by the server. */
    this.only = holder.dataset.only ?? null;
    this.queue = null;
    /** Incremented by every jump: responses of an earlier generation are ignored. */
    this.generation = 0;
    this.filling = new Set();
    this.beyond = new Set();
    this.fresh = [];
    this.wait = 250;
    this.gapObserver = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) if (isIntersecting) this.fill(target);
    }, { rootMargin: "1600px 0px" });
    this.turns.addEventListener("click", (event) => {
      const gap = event.target.closest(".gap");
      if (gap && this.owns(gap)) { event.preventDefault(); this.fill(gap); }
    });
    this.watchGaps();
    this.connect();
  }

  owns(one) { return one?.closest(".turns") === this.turns; }

  find(id) {
    const found = id && document.getElementById(id);
    return found && this.owns(found) ? found : null;
  }

  watchGaps() {
    this.gapObserver.disconnect();
    for (const gap of this.turns.querySelectorAll(".gap")) if (this.owns(gap)) this.gapObserver.observe(gap);
  }

  sections() { return [...this.turns.children].filter((one) => one.matches(".turn")); }

  /** True if the end of the session is loaded. */
  hasEnd() {
    const last = this.turns.lastElementChild;
    return !last || (!isGap(last) && !isGap(last.lastElementChild));
  }

  // ---- gaps ----

  async fetchWindow(query, headers = {}) {
    const params = new URLSearchParams({ ...query, ...(this.only ? { only: this.only } : {}) });
    const response = await fetch(`/s/${this.session}/window?${params}`, { headers });
    if (response.status === 304) return null;
    if (!response.ok) throw new Error(`cannot load the session: ${response.status}`);
    return element(await response.text());
  }

  async fill(gap) {
    const kind = gap.dataset.gap;
    if (this.filling.has(kind) || !gap.isConnected) return;
    this.filling.add(kind);
    const { generation } = this;
    let loaded;
    try {
      loaded = await this.fetchWindow({ [kind]: gap.dataset.from });
    } catch {
      return;
    } finally {
      this.filling.delete(kind);
    }
    if (!gap.isConnected || generation !== this.generation) return;
    inPlace(this.turns, () => {
      if (kind === "inside") gap.replaceWith(...(loaded.querySelector(".inside")?.children ?? []));
      else this.insertTurns(loaded, kind, gap);
    });
    if (kind !== "inside") this.later(() => this.trim(kind === "before" ? "after" : "before"));
    this.listeners.entries?.(loaded.querySelectorAll(".entries > li"));
    this.listeners.put?.();
    this.watchGaps();
  }

  /** Inserts loaded turns before or after the present ones. */
  insertTurns(loaded, kind, gap) {
    const all = [...loaded.querySelector(".turns").children];
    const back = kind === "before";
    const sections = all.filter((one) => one.matches(".turn"));
    const edge = all.find((one) => isGap(one) && one.dataset.gap === kind);
    const meets = back ? sections.at(-1) : sections[0];
    const held = meets && this.find(meets.id);
    if (held) {
      // The turn at the seam is present in part: insert its loaded items at the gap.
      const lead = back ? meets.lastElementChild : [...meets.children].find((one) => !one.matches(".turn-head, .user"));
      if (isGap(lead) && lead.dataset.gap !== kind) lead.remove();
      const items = [...meets.children].filter((one) => !one.matches(".turn-head, .user"));
      gap.before(...items);
      sections.splice(sections.indexOf(meets), 1);
    }
    gap.remove();
    const here = this.sections();
    this.dropGaps(this.turns, kind);
    const more = edge ? (back ? [edge, ...sections] : [...sections, edge]) : sections;
    if (here.length === 0) this.turns.append(...more);
    else if (back) here[0].before(...more);
    else here.at(-1).after(...more);
  }

  /** Removes distant parts at one end. */
  trim(end) {
    let count = countParts(this.turns);
    if (count <= MAX_PARTS) return;
    const back = end === "before";
    const isFar = (one) => {
      const box = one.getBoundingClientRect();
      return back ? box.bottom < -TRIM_DISTANCE_PX : box.top > innerHeight + TRIM_DISTANCE_PX;
    };
    const order = (list) => back ? list : list.toReversed();
    // Measure everything before removing anything: each removal moves the rest.
    const gone = [];
    let [cut, far] = [null, []];
    for (const section of order(this.sections())) {
      const items = [...section.children].filter(isItem);
      for (const item of order(items)) {
        if (count <= PARTS_AFTER_TRIM || !isFar(item)) break;
        far.push(item);
        count -= countParts(item);
      }
      if (far.length < items.length || !isFar(section)) { cut = section; break; }
      gone.push(section);
      far = [];
    }
    if (cut && far.length === [...cut.children].filter(isItem).length) far.pop();
    if (gone.length + far.length === 0) return;
    inPlace(this.turns, () => {
      for (const section of gone) section.remove();
      if (gone.length > 0) this.edge(end, gone.at(-1).dataset.number);
      if (far.length > 0) this.cut(cut, far, end);
    });
    this.watchGaps();
  }

  /** Runs in its own frame, to keep frames short. */
  later(change) {
    const { generation } = this;
    requestAnimationFrame(() => setTimeout(() => { if (generation === this.generation && !this.queue) change(); }));
  }

  dropGaps(parent, kind) {
    for (const old of [...parent.children]) if (isGap(old) && old.dataset.gap === kind) old.remove();
  }

  cut(section, far, end) {
    const back = end === "before";
    this.dropGaps(section, end);
    this.dropGaps(this.turns, end);
    for (const item of far) item.remove();
    const items = [...section.children].filter(isItem);
    const stays = back ? items[0] : items.at(-1);
    const inside = stays.matches("[data-at]") ? [stays] : [...stays.querySelectorAll("[data-at]")];
    const gap = this.gap(end, back ? inside[0].dataset.at : inside.at(-1).dataset.at, "Parts not loaded");
    if (back) stays.before(gap); else stays.after(gap);
  }

  edge(end, number) {
    const back = end === "before";
    this.dropGaps(this.turns, end);
    const gap = back ? this.gap(end, `${Number(number) + 1}.0`, "Earlier turns")
      : this.gap(end, `${Number(number) - 1}.${END.split(".")[1]}`, "Later turns");
    if (back) this.turns.prepend(gap); else this.turns.append(gap);
  }

  gap(kind, from, label) {
    const gap = document.createElement("a");
    gap.className = `gap ${kind}`;
    gap.href = `/s/${this.session}?${kind}=${from}`;
    Object.assign(gap.dataset, { gap: kind, from });
    gap.textContent = label;
    return gap;
  }

  /** Shows another window of the session. */
  async jump(query) {
    this.generation += 1;
    const { generation } = this;
    const loaded = await this.fetchWindow(query);
    if (generation !== this.generation) return;
    this.turns.replaceChildren(...loaded.querySelector(".turns").children);
    this.beyond.clear();
    this.listeners.entries?.(loaded.querySelectorAll(".entries > li"));
    this.listeners.put?.();
    this.watchGaps();
  }

  // ---- live updates ----

  /** Reloads the present window and applies the differences. */
  async refresh() {
    const sections = this.sections();
    const [first, last] = [sections[0], sections.at(-1)];
    const cut = first && [...first.children].some((one) => isGap(one) && one.dataset.gap === "before");
    const from = cut ? firstPosition(first.querySelector("[data-at]")) : `${first?.dataset.number ?? 0}.0`;
    const inLast = last && [...last.querySelectorAll("[data-at]")].at(-1);
    const to = this.hasEnd() ? END : inLast?.dataset.at ?? `${last.dataset.number}.0`;
    const version = this.holder.dataset.version;
    const { generation } = this;
    const loaded = await this.fetchWindow({ from, to }, version ? { "If-None-Match": `W/"${version}"` } : {});
    if (generation !== this.generation) { this.reloadPending = true; return; }
    if (!loaded) return;
    inPlace(this.turns, () => this.reconcile(this.turns, loaded.querySelector(".turns"), true));
    Object.assign(this.holder.dataset, { seq: loaded.dataset.seq, version: loaded.dataset.version });
    this.listeners.head?.(loaded.querySelector(".session-head"));
    this.listeners.tasks?.(loaded.querySelector(".tasks"));
    this.listeners.notes?.(loaded.querySelector(".notes"));
    this.listeners.entries?.(loaded.querySelectorAll(".entries > li"));
    this.watchGaps();
  }

  /** Makes the children of one element those of another, and keeps equal nodes. */
  reconcile(held, wanted, deep) {
    const now = [...held.children];
    const next = [...wanted.children].map((one) => {
      const same = one.id ? now.find((old) => old.id === one.id) : now.find((old) => old.isEqualNode(one));
      if (!same) { if (one.id) this.fresh.push(one.id); return one; }
      if (deep && one.matches(".turn") && same.cloneNode(false).isEqualNode(one.cloneNode(false))) {
        this.reconcile(same, one, false);
        return same;
      }
      keepFolds(same, one);
      return same.isEqualNode(one) ? same : one;
    });
    const differs = next.length !== now.length || next.some((one, at) => one !== now[at]);
    if (differs) held.replaceChildren(...next);
  }

  /** Inserts a piece after a sibling, or first. Not inserted if the sibling is not loaded. */
  put(parent, made, after) {
    const held = this.find(made.id);
    if (held) {
      keepFolds(held, made);
      let before = held.previousElementSibling;
      while (isGap(before)) before = before.previousElementSibling;
      if (held.parentElement === parent && (before?.id ?? null) === after) {
        held.replaceWith(made);
        return;
      }
      held.remove();
    }
    const before = after === null ? null : this.find(after);
    const next = before ? before.nextElementSibling : parent?.firstElementChild;
    // The place is inside a gap: the piece is loaded with the gap.
    if (!parent || isGap(next) || (after !== null && before?.parentElement !== parent)) {
      if (!held) this.noteBeyond(made);
      return;
    }
    parent.insertBefore(made, next ?? null);
    if (!held) this.fresh.push(made.id);
  }

  /** Counts a new piece after the loaded window, so that the user is notified. */
  noteBeyond(made) {
    if (this.hasEnd() || this.beyond.has(made.id) || !made.matches("[data-at], .turn")) return;
    const at = firstPosition(made)?.split(".").map(Number);
    const last = [...this.turns.querySelectorAll("[data-at]")].at(-1)?.dataset.at.split(".").map(Number);
    if (!at || !last || at[0] < last[0] || (at[0] === last[0] && at[1] <= last[1])) return;
    this.beyond.add(made.id);
    this.fresh.push(made.id);
  }

  act(act) {
    const acts = {
      head: ({ html }) => this.listeners.head?.(element(html)),
      turn: ({ html, after }) => this.put(this.turns, element(html), after),
      piece: ({ turn, html, after }) => this.put(this.find(turn), element(html), after),
      shell: ({ turn, html, after }) => {
        const made = element(html);
        const held = this.find(made.id);
        if (held) made.querySelector(".inside").append(...held.querySelector(".inside").children);
        this.put(this.find(turn), made, after);
      },
      inner: ({ within, html, after }) => this.put(this.find(within)?.querySelector(".inside"), element(html), after),
      drop: ({ id }) => this.find(id)?.remove(),
      outline: ({ html }) => this.listeners.entries?.([element(html)]),
      tasks: ({ html }) => this.listeners.tasks?.(element(html)),
      load: () => {},
    };
    acts[act.act](act);
  }

  async receive(message) {
    if (this.queue) { this.queue.push(message); return; }
    if (this.only || message.acts.some(({ act }) => act === "load")) { this.load(); return; }
    this.fresh = [];
    for (const act of message.acts) this.act(act);
    this.holder.dataset.seq = message.seq;
    this.listeners.put?.(this.fresh);
  }

  /** Reloads; messages received meanwhile are queued and applied after it. */
  async load() {
    if (this.queue) { this.reloadPending = true; return; }
    this.queue = [];
    this.fresh = [];
    try {
      do { this.reloadPending = false; await this.refresh(); } while (this.reloadPending);
    } catch {
      this.socket?.close();
    }
    const [queue, seq] = [this.queue, Number(this.holder.dataset.seq)];
    this.queue = null;
    this.listeners.put?.(this.fresh);
    for (const message of queue) if (message.seq >= seq) this.receive(message);
  }

  // ---- the connection ----

  connect() {
    const address = new URL("/api/live", location.href);
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(address);
    this.socket = socket;
    socket.onopen = () => socket.send(JSON.stringify({ subscribe: this.session, form: "html" }));
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (message.type === "ready") { this.wait = 250; this.holder.dataset.live = "on"; this.listeners.state?.(""); this.load(); }
      else if (message.type === "html") this.receive(message);
      else if (message.type === "behind") this.load();
      else if (message.type === "deleted") {
        // What is on the screen stays there to be read.
        this.deleted = true;
        this.listeners.state?.("This session was deleted.");
      }
    };
    socket.onclose = () => {
      if (!this.holder.isConnected || this.deleted) return;
      this.holder.dataset.live = "off";
      this.listeners.state?.("not connected");
      setTimeout(() => this.connect(), this.wait);
      this.wait = Math.min(this.wait * 2, 5000);
    };
  }

  close() { this.gapObserver.disconnect(); this.socket?.close(); }
}
