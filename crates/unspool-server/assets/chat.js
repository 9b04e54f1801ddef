// A chat with an agent: its state, its queue and its composer. What happened is in the transcript;
// what can be answered or sent comes from the host of the chat.

import { notify } from "./actions.js";
import { Asks } from "./ask.js";
import { Completion } from "./complete.js";
import { PastedImages } from "./images.js";

const DRAFT_MS = 400;
/** What a page of this server has, and pages of other ports have not. */
const driveKey = () => localStorage.getItem("drive") ?? "";
const WORKING = new Set(["running", "cancelling"]);

export class Chat {
  /** `target` is a session, or a chat that has none yet. `begin` says how to start the agent. */
  constructor(panel, { turns, target, begin, recorded }) {
    Object.assign(this, { panel, target, home: target, begin, recorded, state: { phase: "none" }, number: 0, waiting: new Map(), sent: [], past: null, editing: null, unsent: null, wait: 250 });
    this.area = panel.querySelector("textarea");
    this.hintText = panel.querySelector(".composer-hint");
    this.asks = new Asks(turns, panel.querySelector(".chat-questions"), (command) => this.command(command), () => this.focus());
    this.completion = new Completion(this.area, panel.querySelector(".chat-completions"), {
      commands: () => this.state.commands ?? [],
      files: async () => {
        const response = await fetch(`/chats/${this.target}/files`, { headers: { "Unspool-Key": driveKey() } });
        return response.ok ? response.json() : [];
      },
    });
    this.images = new PastedImages(this.area, panel.querySelector(".chat-images"), {
      refusal: () => (this.isRunning && !this.state.takes_images ? "this agent takes no images" : null),
      say: (text) => this.say(text),
    });
    panel.hidden = false;
    panel.querySelector("form").addEventListener("submit", (event) => { event.preventDefault(); this.submit(); });
    this.area.addEventListener("keydown", (event) => this.key(event));
    this.area.addEventListener("input", () => { this.past = null; this.grow(); this.keepDraft(); });
    panel.querySelector(".interrupt").addEventListener("click", () => this.command("cancel"));
    panel.querySelector(".end-agent").addEventListener("click", (event) => this.end(event.target));
    panel.querySelector(".chat-queue").addEventListener("click", (event) => this.queue(event));
    panel.querySelector(".chat-options").addEventListener("change", (event) => this.set(event));
    setInterval(() => this.showStatus(), 1000);
    if (target) this.connect();
    this.show();
  }

  /** True if an agent runs that is driven from here. */
  get isRunning() { return this.state.phase !== "none" && this.state.phase !== "ended" && !this.state.answers_only; }

  focus() { this.area.focus(); }

  // ---- the connection ----

  connect() {
    const address = new URL("/api/live", location.href);
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(address);
    this.socket = socket;
    socket.onopen = () => { this.state = { phase: "none" }; socket.send(JSON.stringify({ chat: this.target, key: driveKey() })); };
    socket.onmessage = ({ data }) => { if (socket === this.socket) this.receive(JSON.parse(data)); };
    socket.onclose = () => {
      if (socket !== this.socket) return;
      for (const { resolve } of this.waiting.values()) resolve({ refused: "the connection was lost: the message may have arrived, look before you send it again" });
      this.waiting.clear();
      if (this.gone) return;
      this.state.lost = true;
      this.showStatus();
      setTimeout(() => this.connect(), this.wait);
      this.wait = Math.min(this.wait * 2, 5000);
    };
  }

  receive(message) {
    const { type } = message;
    if (type === "chat") this.take(message);
    else if (type === "done") {
      this.waiting.get(message.number)?.resolve(message.outcome);
      this.waiting.delete(message.number);
      // After whoever waits for it.
      setTimeout(() => this.goOn(), 0);
    }
    else if (type === "notice") notify(message.text);
    else if (type === "recorded") { this.recordedAs = message.session; this.goOn(); }
    else if (type === "gone" || type === "error") {
      this.say(message.text ?? message.detail);
      // The chat that was started is gone; the session is still there.
      if (this.home && this.target !== this.home) this.follow(this.home);
      else this.gone = true;
    }
  }

  take(message) {
    this.wait = 250;
    const { phase } = this.state;
    Object.assign(this.state, message, { lost: false });
    if (this.state.phase !== phase) this.since = performance.now();
    if (message.draft !== undefined) this.takeDraft(message.draft);
    if (message.notice) notify(message.notice);
    this.show();
    // The agent did not start, or the text was changed meanwhile: it is not sent by itself.
    if (this.state.phase === "ended" || (this.unsent !== null && this.area.value.trim() !== this.unsent)) this.unsent = null;
    // Whether the agent takes images is known when it has started.
    const waits = this.state.phase === "starting" && !this.images.isEmpty;
    if (this.unsent !== null && this.isRunning && !waits) {
      const text = this.unsent;
      this.unsent = null;
      this.prompt(text);
    }
  }

  /** Tells that the archive has the session. A page that leaves then must have sent its message. */
  goOn() {
    const busy = this.unsent !== null || this.waiting.size > 0 || this.starting || this.trouble !== undefined
      || this.editing !== null || !this.images.isEmpty || document.activeElement?.closest(".ask");
    if (!this.recordedAs || busy) return;
    if (this.area.value !== (this.storedDraft ?? "")) { this.storeDraft(); return; }
    if (document.activeElement === this.area) sessionStorage.setItem("compose", "1");
    this.recorded?.(this.recordedAs);
  }

  /** Sends a command. The promise is what became of it. */
  command(command) {
    if (this.socket?.readyState !== WebSocket.OPEN) return Promise.resolve({ refused: "there is no connection to the server" });
    this.number += 1;
    const { number } = this;
    this.socket.send(JSON.stringify({ number, do: command }));
    return new Promise((resolve) => { this.waiting.set(number, { resolve }); });
  }

  // ---- what it shows ----

  show() {
    const { state, panel } = this;
    const put = (selector, html) => {
      const held = panel.querySelector(selector);
      if (held.innerHTML !== (html ?? "")) held.innerHTML = html ?? "";
      held.hidden = !html;
    };
    put(".chat-notices", state.notices);
    put(".chat-plan", state.plan);
    put(".chat-queue", state.queue);
    if (!panel.querySelector(".chat-options").contains(document.activeElement)) {
      put(".chat-options", this.isRunning ? state.options : "");
      this.shownOptions = state.option_values;
    }
    this.asks.update(state.questions ?? []);
    const works = this.isRunning && WORKING.has(state.phase);
    panel.querySelector(".interrupt").hidden = !works || state.stuck;
    const end = panel.querySelector(".end-agent");
    end.hidden = !this.isRunning;
    end.classList.toggle("plain", !state.stuck);
    // An agent that asks from its own terminal reads its messages there.
    const inUse = document.activeElement === this.area || this.area.value !== "";
    panel.querySelector(".composer").hidden = Boolean(state.answers_only && state.questions?.length) && !inUse;
    panel.classList.toggle("works", works);
    this.showStatus();
  }

  showStatus() {
    const { state } = this;
    const seconds = Math.floor((performance.now() - (this.since ?? performance.now())) / 1000);
    const counts = state.phase === "starting" || (state.phase === "running" && !state.questions?.length);
    let text = state.status ?? "";
    if (state.lost) text = "not connected";
    else if (this.starting) text = "starting the agent";
    else if (state.phase === "none") text = this.target ? "connecting" : "";
    else if (counts) text += seconds < 60 ? ` ${seconds} s` : ` ${Math.floor(seconds / 60)} min ${seconds % 60} s`;
    const held = this.panel.querySelector(".chat-status");
    if (held.textContent !== text) held.textContent = text;
    const send = this.panel.querySelector(".send");
    const working = this.isRunning && WORKING.has(state.phase);
    send.textContent = this.editing !== null ? "Change" : working ? "Queue" : state.held && this.area.value.trim() === "" ? "Send the queue" : this.isRunning ? "Send" : "Start and send";
    const sends = working ? "Enter queues · Ctrl-Enter sends now" : "Enter sends";
    const hint = this.isRunning ? `${sends} · Shift-Enter new line` : "Enter starts the agent and sends this";
    this.hintText.textContent = this.trouble ?? hint;
    this.hintText.classList.toggle("tone-failed", this.trouble !== undefined);
  }

  /** Says what went wrong, until the next attempt. */
  say(text) { this.trouble = text; this.showStatus(); }

  grow() {
    this.area.style.height = "auto";
    this.area.style.height = `${Math.min(this.area.scrollHeight + 2, innerHeight * 0.4)}px`;
  }

  setText(text) { this.area.value = text; this.grow(); }

  // ---- drafts ----

  takeDraft(draft) {
    if (draft === this.storedDraft) return;
    // What was typed here and is not stored stays.
    const untouched = this.area.value === "" || this.area.value === this.storedDraft;
    this.storedDraft = draft;
    if (this.editing === null && this.unsent === null && untouched) this.setText(draft);
  }

  keepDraft() {
    clearTimeout(this.draftTimer);
    this.draftTimer = setTimeout(() => this.storeDraft(), DRAFT_MS);
  }

  storeDraft() {
    if (!this.isRunning || this.editing !== null || this.area.value === this.storedDraft) return;
    const text = this.area.value;
    this.command({ draft: { question: null, text } }).then((outcome) => { if (outcome === "accepted") this.storedDraft = text; });
  }

  // ---- sending ----

  key(event) {
    const { completion } = this;
    if (event.key === "Enter" && completion.isExact) completion.close();
    if (completion.isOpen && ["ArrowUp", "ArrowDown", "Tab", "Enter", "Escape"].includes(event.key) && !event.shiftKey) {
      event.preventDefault();
      if (event.key === "Escape") completion.close();
      else if (event.key === "ArrowUp") completion.move(-1);
      else if (event.key === "ArrowDown") completion.move(1);
      else completion.accept();
      return;
    }
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); if (!event.repeat) this.submit(event.ctrlKey || event.metaKey); }
    else if (event.key === "Escape") { event.preventDefault(); if (this.editing !== null) this.stopEditing(); else this.area.blur(); }
    else if (event.key === "ArrowUp" && !this.area.value.slice(0, this.area.selectionStart).includes("\n")) this.recall(event, 1);
    else if (event.key === "ArrowDown" && this.past !== null && !this.area.value.slice(this.area.selectionEnd).includes("\n")) this.recall(event, -1);
  }

  /** Earlier messages, the last one first. */
  recall(event, by) {
    const earlier = this.sent.toReversed();
    const at = (this.past ?? -1) + by;
    if (at >= earlier.length || earlier.length === 0) return;
    event.preventDefault();
    if (this.past === null) this.typed = this.area.value;
    this.past = at < 0 ? null : at;
    this.setText(at < 0 ? this.typed : earlier[at]);
  }

  /** `atOnce` does not wait for the end of the turn. */
  submit(atOnce = false) {
    const text = this.area.value.trim();
    delete this.trouble;
    if (this.editing !== null) { this.change(text); return; }
    if (text === "" && this.images.isEmpty) { if (this.state.held) this.command("release"); return; }
    const [name, ...rest] = text.split(/\s+/);
    if (this.isRunning && name === "/clear") { this.setText(""); this.tell(this.command("clear")); return; }
    if (this.isRunning && name === "/end") { this.setText(""); this.tell(this.command("end")); return; }
    if (this.isRunning && (name === "/mode" || name === "/model")) { this.choose(name.slice(1), rest.join(" ")); return; }
    if (!this.isRunning) { this.start(text); return; }
    this.setText("");
    this.prompt(text, atOnce);
  }

  async prompt(text, atOnce = false) {
    const images = this.images.take();
    if (text !== "") this.sent.push(text);
    if (this.area.value.trim() === text) this.setText("");
    clearTimeout(this.draftTimer);
    const outcome = await this.command({ prompt: { text, images, at_once: atOnce } });
    if (outcome !== "accepted") {
      this.putBack(text);
      this.images.putBack(images);
      this.say(outcome.refused ?? "the message was not sent");
      return;
    }
    this.storeDraft();
  }

  /** No message vanishes: it is back where it was typed. */
  putBack(text) { this.setText(this.area.value ? `${text}\n${this.area.value}` : text); }

  /** Starts the agent; the message is sent as soon as it is there. */
  async start(text) {
    if (this.starting) return;
    this.starting = true;
    this.showStatus();
    try {
      const body = JSON.stringify(this.begin(this.state));
      const response = await fetch("/new", { method: "POST", headers: { "Content-Type": "application/json", "Unspool-Key": driveKey() }, body });
      const answer = await response.json();
      if (!response.ok) { this.say(answer.detail); return; }
      this.unsent = text;
      this.started?.(answer.chat);
    } catch {
      this.say("the server does not answer");
    } finally {
      this.starting = false;
      this.showStatus();
    }
  }

  /** Follows another chat. */
  follow(target) {
    this.target = target;
    this.gone = false;
    const old = this.socket;
    this.connect();
    old?.close();
  }

  async tell(outcome) {
    const became = await outcome;
    if (became !== "accepted") this.say(became.refused ?? "nothing was done");
  }

  /** Ends the agent at the second click: the first may have been meant for another button. */
  end(button) {
    const since = performance.now() - (this.askedToEnd ?? -Infinity);
    if (this.state.stuck || (since > 400 && since < 4000)) { delete this.askedToEnd; button.textContent = "End"; this.tell(this.command("end")); return; }
    if (since <= 400) return;
    this.askedToEnd = performance.now();
    button.textContent = "Really end it?";
    setTimeout(() => { button.textContent = "End"; }, 4000);
  }

  // ---- options ----

  set(event) {
    const at = Number(event.target.dataset.setting);
    const { id, values } = this.shownOptions[at];
    event.target.blur();
    this.tell(this.command({ set: { option: id, value: values[Number(event.target.value)] } }));
  }

  choose(category, name) {
    for (const select of this.panel.querySelectorAll(".chat-options select")) {
      const label = select.closest("label").querySelector("span").textContent.toLowerCase();
      const option = [...select.options].find((one) => one.textContent.toLowerCase() === name.toLowerCase());
      if (label !== category) continue;
      if (!option) { select.focus(); this.say(`there is no ${category} ${name}`); return; }
      this.setText("");
      select.value = option.value;
      select.dispatchEvent(new Event("change", { bubbles: true }));
      return;
    }
    this.say(`this agent offers no ${category}s`);
  }

  // ---- the queue ----

  queue(event) {
    const button = event.target.closest("[data-queue]");
    if (!button) return;
    const message = Number(button.closest("[data-message]").dataset.message);
    const at = this.state.queued.findIndex(([id]) => id === message);
    const act = button.dataset.queue;
    if (act === "edit") {
      if (this.editing === null) this.before = this.area.value;
      this.editing = message;
      this.setText(this.state.queued[at][1]);
      this.focus();
      this.showStatus();
    } else if (act === "remove") this.takeBack(message, this.state.queued[at][1]);
    else this.tell(this.command({ move: { message, position: at + (act === "up" ? -1 : 1) } }));
  }

  async takeBack(message, text) {
    const outcome = await this.command({ remove: { message } });
    if (outcome !== "accepted") { this.say(outcome.refused); return; }
    this.sent.push(text);
    notify("Taken back; ↑ in the composer brings it again");
  }

  async change(text) {
    const message = this.editing;
    this.stopEditing();
    const outcome = await this.command({ edit: { message, text } });
    if (outcome !== "accepted") { this.putBack(text); this.say(outcome.refused ?? "the message was sent already"); }
  }

  stopEditing() { this.editing = null; this.setText(this.before ?? ""); this.showStatus(); }
}
