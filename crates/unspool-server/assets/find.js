// Find in session. The server searches, so hits outside the loaded window are found too.

import { ID } from "./ids.js";
import { notify } from "./actions.js";
import { hidingFolds } from "./view.js";

export class Find {
  constructor(view, follow, form) {
    this.view = view;
    this.follow = follow;
    this.form = form;
    this.input = form.querySelector("input");
    this.count = form.querySelector(".count");
    this.hits = [];
    this.at = -1;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (this.searched === this.input.value) this.next(1); else await this.search();
    });
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { event.preventDefault(); this.close(); }
    });
    form.querySelector("button").addEventListener("click", () => this.close());
    new MutationObserver(() => this.paint()).observe(view.turns, { childList: true, subtree: true });
  }

  open() {
    this.form.hidden = false;
    this.input.focus();
    this.input.select();
  }

  close() {
    this.form.hidden = true;
    this.input.blur();
    this.searched = null;
    this.hits = [];
    this.paint();
  }

  async search() {
    this.searched = this.input.value;
    const query = new URLSearchParams({ q: this.searched });
    const response = await fetch(`/s/${this.view.session}/find?${query}`);
    const found = response.ok ? await response.json() : { hits: [], words: [] };
    this.hits = found.hits;
    this.words = found.words;
    this.at = -1;
    this.count.title = found.understood ?? "";
    if (this.hits.length === 0) { this.count.textContent = "no matches"; this.paint(); return; }
    // Start at the current scroll position.
    const top = [...this.view.turns.querySelectorAll("[data-at]")].find((one) => one.getBoundingClientRect().bottom > 70);
    const from = top ? this.hits.findIndex((hit) => after(hit.at, top.dataset.at)) : 0;
    this.at = (from < 0 ? 0 : from) - 1;
    await this.next(1);
  }

  async next(by) {
    if (this.hits.length === 0) { if (this.form.hidden) this.open(); return; }
    this.at = (this.at + by + this.hits.length) % this.hits.length;
    const hit = this.hits[this.at];
    this.count.textContent = `${this.at + 1} of ${this.hits.length}`;
    this.follow.pause();
    const id = elementId(hit);
    if (!document.getElementById(id)) await this.view.jump({ turn: hit.turn, ...(hit.part ? { part: hit.part } : {}) });
    const target = document.getElementById(id);
    if (!target) return notify("The part of this hit is not shown; show everything to see it");
    for (const fold of hidingFolds(target)) fold.open = true;
    for (const fold of target.querySelectorAll("details")) fold.open = true;
    target.scrollIntoView({ block: "center", behavior: "instant" });
    this.paint(target);
  }

  /** Highlights matches without changing the DOM: copying and comparing elements are not affected. */
  paint(current) {
    if (!CSS.highlights) return;
    CSS.highlights.delete("found");
    if (!this.searched || this.hits.length === 0) return;
    const shown = new Set(this.hits.map((hit) => elementId(hit)));
    const ranges = [];
    for (const id of shown) {
      const holder = document.getElementById(id);
      if (holder) ranges.push(...this.ranges(holder));
      if (ranges.length > 2000) break;
    }
    CSS.highlights.set("found", new Highlight(...ranges));
    if (current) {
      const first = this.ranges(current)[0];
      const box = first?.getBoundingClientRect();
      if (box && (box.top < 70 || box.bottom > innerHeight)) scrollBy({ top: box.top - innerHeight / 2, behavior: "instant" });
    }
  }

  ranges(holder) {
    const found = [];
    const texts = document.createTreeWalker(holder, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode.data.toLowerCase();
      for (const word of this.words) {
        for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
          const range = new Range();
          range.setStart(texts.currentNode, at);
          range.setEnd(texts.currentNode, at + word.length);
          found.push(range);
        }
      }
    }
    return found;
  }
}

const elementId = (hit) => hit.part ? ID.part + hit.part : ID.user + hit.turn_id;

/** True if a position is at or after another. */
function after(one, other) {
  const [turn, place] = one.split(".").map(Number);
  const [otherTurn, otherPlace] = other.split(".").map(Number);
  return turn > otherTurn || (turn === otherTurn && place >= otherPlace);
}
