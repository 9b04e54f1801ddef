// The page follows its end while its reader is there, and stays where it is otherwise (R-003-42).
// What came meanwhile is counted, and the place where it begins is marked.

const NEAR = 48;

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
    // Pictures and fonts that come late make the page longer: that is growth too.
    new ResizeObserver(() => { if (this.following) this.stay(); }).observe(view.turns);
  }

  atEnd() {
    const { scrollHeight, clientHeight, scrollTop } = document.documentElement;
    return this.view.hasEnd() && scrollHeight - clientHeight - scrollTop <= NEAR;
  }

  // Only a person goes up: the page's own growth moves nothing, and what shrinks moves both ends.
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

  /** Something was put in: these are new. */
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

  // ---- where the reader left ----

  get key() { return `seen:${this.view.session}`; }

  remember() {
    const last = [...this.view.turns.querySelectorAll(":scope > .turn > [data-at]")].at(-1);
    if (last) localStorage.setItem(this.key, last.id);
  }

  /** Marks what came since the reader was here last. */
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
