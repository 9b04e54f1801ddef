// Follows the end of the session while the user is there, and keeps the position otherwise
// (R-003-42). New parts are counted, and the first unseen one is marked.

const END_TOLERANCE_PX = 48;

export class Follow {
  constructor(view, button) {
    this.view = view;
    this.button = button;
    this.unseen = 0;
    this.mark = null;
    this.following = this.atEnd();
    this.top = 0;
    this.height = 0;
    addEventListener("scroll", () => this.scrolled(), { passive: true });
    button.addEventListener("click", () => this.toEnd());
    // Late images and fonts make the page longer too.
    new ResizeObserver(() => { if (this.following) this.stay(); }).observe(view.turns);
  }

  atEnd() {
    const { scrollHeight, clientHeight, scrollTop } = document.documentElement;
    return this.view.hasEnd() && scrollHeight - clientHeight - scrollTop <= END_TOLERANCE_PX;
  }

  // Only the user scrolls up: growth does not move the position, and shrinking changes the height.
  scrolled() {
    const { scrollTop, scrollHeight } = document.documentElement;
    if (this.atEnd()) {
      this.following = true;
      this.seen();
    } else if (scrollTop < this.top && scrollHeight >= this.height) {
      this.following = false;
    }
    this.top = scrollTop;
    this.height = scrollHeight;
  }

  stay() {
    scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
  }

  async toEnd() {
    if (!this.view.hasEnd()) await this.view.jump({});
    this.following = true;
    this.stay();
    this.seen();
  }

  pause() { this.following = false; }

  seen() {
    this.unseen = 0;
    this.button.hidden = true;
    if (document.visibilityState === "visible") this.remember();
  }

  /** Called after content was inserted; `fresh` are the new ids. */
  put(fresh = []) {
    if (this.following && document.visibilityState === "visible") {
      this.stay();
      this.seen();
      return;
    }
    if (this.following) this.stay();
    if (fresh.length > 0) {
      this.unseen += fresh.length;
      this.mark ??= fresh[0];
      this.button.textContent = this.unseen === 1 ? "1 new part" : `${this.unseen} new parts`;
      this.button.hidden = this.following;
    }
    this.showMark();
  }

  // ---- where the user left ----

  get key() { return `seen:${this.view.session}`; }

  remember() {
    const last = [...this.view.turns.querySelectorAll(":scope > .turn > [data-at]")].at(-1);
    if (last) localStorage.setItem(this.key, last.id);
  }

  /** Marks the first part that is new since the last visit. */
  recall() {
    const seen = localStorage.getItem(this.key);
    const left = seen && document.getElementById(seen);
    if (!left) return;
    const all = [...this.view.turns.querySelectorAll(":scope > .turn > [data-at]")];
    this.mark = all[all.indexOf(left) + 1]?.id ?? null;
    this.showMark();
  }

  showMark() {
    for (const old of this.view.turns.querySelectorAll(".first-unseen")) {
      if (old.id !== this.mark) old.classList.remove("first-unseen");
    }
    if (this.mark) document.getElementById(this.mark)?.classList.add("first-unseen");
  }
}
