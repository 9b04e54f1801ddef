// The selected part: keyboard navigation and the action bar of the part under the pointer.

import { notify } from "./actions.js";
import { ID } from "./ids.js";
import { hidingFolds } from "./view.js";

const partOf = (piece) => piece.id.slice(ID.part.length);
const isVisible = (one) => one.checkVisibility() && one.getBoundingClientRect().height > 0;

const SEEK_KEYS = { error: "e", edit: "d", note: "u" };
const has = (one, landmark) => landmark === "note" ? one.querySelector(":scope > .user-note, :scope > .bookmark") !== null
  : one.matches(`[data-landmark~="${landmark}"]`);

function open(fold) { fold.open = true; fold.dataset.chosen = ""; }

/** What a seek says at the end: "No edit below; 2 above: D". */
function nothingFurther(landmark, by, others, isHere) {
  const [here, there] = by > 0 ? ["below", "above"] : ["above", "below"];
  const key = by > 0 ? SEEK_KEYS[landmark].toUpperCase() : SEEK_KEYS[landmark];
  if (isHere && others === 0) return `No other ${landmark} in the loaded part`;
  return others === 0 ? `No ${landmark} in the loaded part` : `No ${landmark} ${here}; ${others} ${there}: ${key}`;
}

export class Cursor {
  constructor(view, follow) {
    this.view = view;
    this.follow = follow;
    this.id = null;
    this.bar = document.createElement("div");
    this.bar.className = "part-bar";
    this.bar.setAttribute("role", "toolbar");
    this.bar.setAttribute("aria-label", "Part");
    this.addButtons([
      ["Link", "Copy a link to this part (l)", () => this.link()],
      ["Copy", "Copy as Markdown (y)", () => this.copy()],
      ["Raw", "Raw record (r)", () => this.raw()],
    ]);
    view.turns.addEventListener("pointerover", (event) => {
      const piece = event.target.closest("[data-at]");
      if (piece && !event.buttons) this.hover(piece);
    });
    view.turns.addEventListener("focusin", ({ target }) => {
      const piece = target.closest(".turn-head, [data-at]");
      if (piece) this.set(piece);
      this.focused = true;
    });
    view.turns.addEventListener("focusout", ({ relatedTarget }) => { if (relatedTarget) this.focused = false; });
    this.bar.addEventListener("click", (event) => event.stopPropagation());
    document.body.append(this.bar);
    // While the page scrolls, the part under the pointer is not a choice: hide the bar.
    let still;
    addEventListener("scroll", () => {
      if (!this.moving) this.bar.classList.remove("shown");
      this.moving = true;
      clearTimeout(still);
      still = setTimeout(() => { this.moving = false; if (this.under?.matches(":hover")) this.hover(this.under); }, 150);
    }, { passive: true });
  }

  addButtons(buttons) {
    for (const [name, title, onClick] of buttons) {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", textContent: name, title, tabIndex: -1 });
      button.addEventListener("click", () => {
        // The part under the pointer is meant, wherever the keyboard was.
        if (this.under?.isConnected) this.set(this.under);
        onClick();
      });
      this.bar.append(button);
    }
  }

  /** The bar floats over the page; it is not inside the transcript. */
  hover(piece) {
    this.under = piece;
    if (this.moving) return;
    const box = piece.getBoundingClientRect();
    if (box.height === 0) return;
    this.bar.classList.add("shown");
    this.bar.style.left = `${Math.min(box.right, innerWidth - 8) - this.bar.offsetWidth}px`;
    this.bar.style.top = `${Math.max(60, box.top - this.bar.offsetHeight / 2)}px`;
  }

  get piece() { return (this.id && document.getElementById(this.id)) || this.under || null; }

  all() { return [...this.view.turns.querySelectorAll(".turn-head, [data-at]")]; }

  pieces() { return this.all().filter(isVisible); }

  set(piece) {
    if (!piece) return;
    document.getElementById(this.id)?.classList.remove("chosen");
    this.id = piece.id;
    piece.classList.add("chosen");
    // The cursor is the real focus: screen readers follow it, and Tab goes on from there.
    if (!piece.contains(document.activeElement)) {
      piece.tabIndex = -1;
      piece.focus({ preventScroll: true });
    }
  }

  /** Restores the selection after a piece was replaced. */
  keep() {
    const piece = this.id && document.getElementById(this.id);
    if (!piece) return;
    const lost = document.activeElement === document.body && !piece.classList.contains("chosen");
    piece.classList.add("chosen");
    if (lost && this.focused) this.set(piece);
  }

  near(all) {
    const at = all.findIndex((one) => one.id === this.id);
    if (at >= 0) {
      const box = all[at].getBoundingClientRect();
      if (box.bottom > 0 && box.top < innerHeight) return at;
    }
    return all.findIndex((one) => one.getBoundingClientRect().bottom > 70) - 1;
  }

  move(by) {
    const all = this.pieces();
    this.show(all[Math.max(0, Math.min(all.length - 1, this.near(all) + by))], by);
  }

  /** Goes to the next part with this landmark, or to the previous one, and opens what hides it. */
  seek(landmark, by) {
    const all = this.all().filter((one) => isVisible(one) || hidingFolds(one.parentElement).length > 0);
    const from = this.near(all);
    const is = (one) => has(one, landmark);
    const [above, below] = [all.slice(0, Math.max(0, from)).filter(is), all.slice(from + 1).filter(is)];
    const to = by > 0 ? below[0] : above.at(-1);
    const isHere = all[from] !== undefined && has(all[from], landmark);
    if (!to) return notify(nothingFurther(landmark, by, by > 0 ? above.length : below.length, isHere));
    hidingFolds(to).forEach(open);
    const card = to.querySelector("details:not([open])");
    if (card && !to.querySelector("details[open]")) open(card);
    this.set(to);
    this.follow.pause();
    scrollBy({ top: to.getBoundingClientRect().top - innerHeight / 6, behavior: "instant" });
    this.hover(to);
  }

  show(piece, by) {
    if (!piece) return;
    this.set(piece);
    if (by < 0) this.follow.pause();
    const box = piece.getBoundingClientRect();
    const fits = box.top > 70 && box.bottom < innerHeight - 20;
    if (!fits) {
      this.follow.pause();
      piece.scrollIntoView({ block: box.height > innerHeight * 0.7 ? "start" : "nearest", behavior: "instant" });
    }
    this.hover(piece);
  }

  fold() {
    const fold = this.piece?.matches("details") ? this.piece : this.piece?.querySelector("details");
    if (fold) { fold.open = !fold.open; fold.dataset.chosen = ""; }
  }

  part() {
    const piece = this.piece;
    return piece?.matches("[data-at]") ? piece : piece?.querySelector("[data-at]");
  }

  owner(part) { return part.closest(".session").dataset.session; }

  async link() {
    const part = this.part();
    if (!part) return;
    const query = `turn=${part.dataset.at.split(".")[0]}&part=${partOf(part)}`;
    await navigator.clipboard.writeText(new URL(`/s/${this.owner(part)}?${query}#${part.id}`, location.href).href);
    notify("Link copied");
  }

  async copy() {
    // On a turn header, copy the whole turn.
    const turn = this.piece?.matches(".turn-head") ? this.piece.closest(".turn") : null;
    const part = this.part();
    if (!part && !turn) return;
    const query = turn ? `turn=${turn.dataset.number}` : `turn=${part.dataset.at.split(".")[0]}&part=${partOf(part)}`;
    const response = await fetch(`/s/${this.owner(turn ?? part)}/markdown?${query}`);
    if (!response.ok) return notify("Could not load it");
    await navigator.clipboard.writeText(await response.text());
    notify("Copied as Markdown");
  }

  async raw() {
    const part = this.part();
    if (!part) return;
    const response = await fetch(`/s/${this.owner(part)}/raw?part=${partOf(part)}`);
    const dialog = document.createElement("dialog");
    dialog.className = "raw";
    dialog.setAttribute("aria-label", "The record of the part");
    dialog.innerHTML = await response.text();
    dialog.addEventListener("close", () => dialog.remove());
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    document.body.append(dialog);
    dialog.showModal();
  }
}
