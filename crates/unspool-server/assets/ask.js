// Open questions of the agent: below the call that they are about, or above the composer. A question
// never takes the focus. Its buttons do nothing for a moment after they appeared or moved, so that a
// click that was meant for something else answers nothing (R-X-10).

import { notify } from "./actions.js";
import { element, hidingFolds } from "./view.js";

const GUARD_MS = 300;
const DRAFT_MS = 400;

/** True if a call of the transcript is the one that a question is about. Some agents' calls are named
 *  with their message in front, and a form is named by its request. */
function isAbout(question, call) {
  const own = call.slice(call.indexOf("/") + 1);
  if (question.call === null) return call.startsWith("elicitation ") && own === question.request;
  return call === question.call || own === question.call;
}

export class Asks {
  /** `send` sends a command and returns a promise of its outcome. */
  constructor(turns, fallback, send, talk) {
    Object.assign(this, { turns, fallback, send, talk, open: new Map(), watching: false });
    // A click that brings the window to the front was not meant for what is in it.
    const shown = () => { for (const ask of this.open.values()) ask.movedAt = performance.now(); };
    document.addEventListener("visibilitychange", shown);
    addEventListener("focus", shown);
  }

  update(questions) {
    const ids = new Set(questions.map(({ id }) => id));
    for (const [id, ask] of this.open) {
      if (!ids.has(id)) { ask.box.remove(); this.open.delete(id); }
    }
    for (const question of questions) if (!this.open.has(question.id)) this.add(question);
    this.place();
    this.watch();
  }

  add(question) {
    const box = element(question.html);
    const ask = { question, box, movedAt: performance.now(), at: "", pressed: null, read: false };
    this.open.set(question.id, ask);
    const text = box.querySelector("[data-text]");
    if (text && question.draft) text.value = question.draft;
    box.addEventListener("input", () => this.keepDraft(ask));
    box.addEventListener("pointerdown", (event) => {
      ask.pressed = this.isArmed(ask) ? event.target.closest("button") : null;
    });
    box.addEventListener("focusin", () => { ask.focusedAt = performance.now(); });
    // The transcript would choose the part.
    for (const type of ["pointerover", "focusin", "click"]) box.addEventListener(type, (event) => event.stopPropagation());
    box.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { event.target.blur(); event.stopPropagation(); }
      // A key that is held down was pressed for something else.
      if (event.key === "Enter" && (event.repeat || event.target.matches("input"))) event.preventDefault();
    });
    box.addEventListener("click", (event) => this.click(ask, event));
  }

  /** True if its buttons have been where they are for a moment, in a window that is used. */
  isArmed(ask) {
    this.notice(ask);
    const rests = ask.at !== "" && performance.now() - ask.movedAt >= GUARD_MS;
    return rests && document.visibilityState === "visible" && document.hasFocus();
  }

  /** Notices whether its buttons have moved. */
  notice(ask) {
    const at = [ask.box, ask.box.querySelector(".ask-answers")].map((part) => {
      const { top, left, width } = part.getBoundingClientRect();
      return `${Math.round(top)} ${Math.round(left)} ${Math.round(width)}`;
    }).join(" ");
    if (at !== ask.at) { ask.at = at; ask.movedAt = performance.now(); }
  }

  click(ask, event) {
    const button = event.target.closest("button");
    if (!button || button.disabled) return;
    const byPointer = event.detail > 0;
    const meant = byPointer ? ask.pressed === button : this.isArmed(ask) && performance.now() - ask.focusedAt >= GUARD_MS;
    ask.pressed = null;
    if (!meant) { this.hint(ask, "This appeared just now: read it, then answer."); return; }
    if (button.matches(".ask-all")) this.readAll(ask);
    else if ("option" in button.dataset) this.choose(ask, button);
    else if ("send" in button.dataset) { if (this.isRead(ask)) this.answer(ask, { form: this.form(ask) }); }
    else if ("say" in button.dataset) this.refuse(ask);
    else if ("decline" in button.dataset) this.answer(ask, "decline");
    else if ("discuss" in button.dataset) { this.answer(ask, "discuss"); this.talk(); }
  }

  choose(ask, button) {
    if ("allows" in button.dataset && !this.isRead(ask)) return;
    this.answer(ask, { option: ask.question.options[Number(button.dataset.option)] });
  }

  /** Nobody allows what they could not see: shows all of it first. */
  isRead(ask) {
    if (ask.read || !this.isCut(ask)) return true;
    this.readAll(ask);
    this.hint(ask, ask.read ? "Read all of it first; then answer." : "It is too long to be shown here: answer it where its call is shown, or in the agent’s terminal.");
    return false;
  }

  isCut(ask) {
    const subject = ask.box.querySelector(".ask-subject");
    const folds = subject.querySelectorAll("details:not([open])").length > 0;
    return folds || ask.box.querySelector(".ask-omitted") !== null || subject.scrollHeight > subject.clientHeight + 2;
  }

  readAll(ask) {
    ask.box.classList.add("whole");
    ask.box.querySelector(".ask-all").hidden = true;
    for (const fold of ask.box.querySelectorAll("details")) fold.open = true;
    const omits = ask.box.querySelector(".ask-omitted") !== null;
    // A call that is too long for the box is in the part itself, if that is loaded.
    const part = ask.box.parentElement.matches("[data-call]") ? ask.box.parentElement : null;
    if (omits && part) for (const fold of part.querySelectorAll("details")) fold.open = true;
    ask.read = !omits || part !== null;
  }

  form(ask) {
    const values = {};
    for (const set of ask.box.querySelectorAll("fieldset")) {
      const field = ask.question.fields[Number(set.dataset.field)];
      const chosen = [...set.querySelectorAll("input:checked")].map(({ value }) => field.values[Number(value)]);
      const text = set.querySelector("[data-text]")?.value.trim() ?? "";
      values[field.name] = { chosen, own_words: null };
      if (text && field.has_own_words) values[field.name].own_words = text;
      else if (text) values[field.name].chosen = [text];
    }
    return values;
  }

  async answer(ask, answer) {
    const buttons = ask.box.querySelectorAll("button");
    for (const button of buttons) button.disabled = true;
    const outcome = await this.send({ answer: { question: ask.question.id, answer } });
    if (outcome === "accepted") return;
    for (const button of buttons) button.disabled = false;
    const first = outcome.already && `${outcome.already.by} was first: ${outcome.already.answer}`;
    // The question may be gone already.
    if (ask.box.isConnected) this.hint(ask, outcome.refused ?? first);
    else notify(outcome.refused ?? first);
  }

  /** Refuses with words that the agent reads. They are the draft of the question. */
  async refuse(ask) {
    const text = ask.box.querySelector("[data-text]").value.trim();
    if (text === "") { this.hint(ask, "Write first what to say to the agent."); return; }
    clearTimeout(ask.draftTimer);
    await this.send({ draft: { question: ask.question.id, text } });
    this.answer(ask, ask.question.refusal);
  }

  hint(ask, text) { ask.box.querySelector(".ask-hint").textContent = text; }

  keepDraft(ask) {
    clearTimeout(ask.draftTimer);
    ask.draftTimer = setTimeout(() => {
      const text = ask.box.querySelector("[data-text]")?.value ?? "";
      if (this.open.has(ask.question.id)) this.send({ draft: { question: ask.question.id, text } });
    }, DRAFT_MS);
  }

  // ---- where it stands ----

  /** Puts each question where it belongs. Called whenever the transcript changed. */
  place() {
    if (this.open.size === 0) return;
    const calls = [...this.turns.querySelectorAll("[data-call]")];
    for (const ask of this.open.values()) {
      // Ids may come again: the last call is the one that is asked about.
      const part = calls.findLast((one) => isAbout(ask.question, one.dataset.call));
      const isShown = part && hidingFolds(part).length === 0 && part.checkVisibility();
      const home = isShown ? part : this.fallback;
      if (ask.box.parentElement === home && ask.box.isConnected) continue;
      const { activeElement } = document;
      home.append(ask.box);
      // Moving an element takes its focus away.
      if (ask.box.contains(activeElement)) activeElement.focus({ preventScroll: true });
      const all = ask.box.querySelector(".ask-all");
      all.hidden = ask.read || !this.isCut(ask);
    }
  }

  /** Notices in every frame whether a question has moved. */
  watch() {
    if (this.watching || this.open.size === 0) return;
    this.watching = true;
    const look = () => {
      let visible = false;
      if (this.open.size === 0) { this.watching = false; document.body.classList.remove("ask-visible"); return; }
      for (const ask of this.open.values()) {
        if (!ask.box.isConnected || !ask.box.checkVisibility()) this.place();
        ask.box.classList.toggle("armed", this.isArmed(ask));
        const { top, bottom } = ask.box.getBoundingClientRect();
        visible ||= top < innerHeight - 40 && bottom > 100;
      }
      document.body.classList.toggle("ask-visible", visible);
      requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  }
}
