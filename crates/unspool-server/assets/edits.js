// The user's own name, tags and notes of a session. The server hands each change to the process that
// records; every open page of the session then fetches its window again.

import { dialog } from "./app.js";
import { notify } from "./actions.js";
import { ID } from "./ids.js";

/** Sends a change and returns what the name, the tags and the notes are then. */
async function send(session, edit) {
  let response;
  try {
    response = await fetch(`/api/sessions/${session}`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(edit),
    });
  } catch {
    throw new Error("Not saved: the server does not answer. What you typed is still here.");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.detail ?? `Not saved: the server answered ${response.status}`);
  return answer;
}

const make = (tag, properties) => Object.assign(document.createElement(tag), properties);

/** A dialog with one field. It stays open, with what was typed, until `save` succeeds. */
function ask({ label, field, value, hint, buttons, after }) {
  const box = dialog("edit", label);
  const form = make("form", { method: "dialog" });
  const caption = make("label", { textContent: label });
  const error = make("p", { className: "error" });
  error.setAttribute("role", "alert");
  Object.assign(field, { value, id: "edit-field", autocomplete: "off" });
  caption.htmlFor = field.id;
  const row = make("div", { className: "buttons" });
  const run = async (save) => {
    error.textContent = "";
    row.inert = true;
    try {
      await save(field.value);
      box.close();
    } catch (reason) {
      error.textContent = reason.message;
      field.focus();
    } finally {
      row.inert = false;
    }
  };
  for (const [name, save] of buttons) {
    const button = make("button", { type: "button", textContent: name });
    button.addEventListener("click", () => run(save));
    row.append(button);
  }
  row.firstElementChild.className = "primary";
  const cancel = make("button", { type: "button", textContent: "Cancel" });
  cancel.addEventListener("click", () => box.close());
  row.append(cancel);
  form.append(caption, field, ...(hint ? [hint] : []), error, row);
  form.addEventListener("submit", (event) => { event.preventDefault(); run(buttons[0][1]); });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(buttons[0][1]); }
  });
  box.append(form);
  box.addEventListener("close", () => { box.remove(); after?.(); });
  box.showModal();
  field.focus();
  field.select();
}

export class Edits {
  constructor(view, cursor) {
    this.view = view;
    this.cursor = cursor;
  }

  /** Saves a change, says so, and shows it even if the connection for live updates is lost. */
  async save(session, edit, said) {
    const answer = await send(session, edit);
    notify(said);
    if (this.view.holder.dataset.live !== "on") this.view.load();
    return answer;
  }

  /** The turn or part at the cursor, or else the session as a whole. */
  target() {
    const piece = this.cursor.piece;
    if (!piece) return { session: this.view.session, piece: null, on: {}, name: "this session" };
    const session = this.cursor.owner(piece);
    if (piece.matches(".turn-head")) {
      const turn = piece.closest(".turn");
      return { session, piece, on: { turn_id: turn.id.slice(ID.turn.length) }, name: `turn ${turn.dataset.number}` };
    }
    return { session, piece, on: { part: piece.id.slice(ID.part.length) }, name: "this part" };
  }

  /** Puts the focus back to where the note is; the piece may have been replaced meanwhile. */
  back(piece) {
    const now = piece && document.getElementById(piece.id);
    if (now) { this.cursor.id = null; this.cursor.set(now); }
  }

  async bookmark() {
    const { session, piece, on } = this.target();
    if (!piece) return notify("Choose a turn or part first: j and k");
    if (piece.querySelector(":scope > .user-note")) return notify("There is a note here: m edits it");
    const held = piece.querySelector(":scope > .bookmark");
    try {
      const note = { ...on, text: held ? null : "" };
      await this.save(session, { note }, held ? "Bookmark removed" : "Bookmark saved");
    } catch (reason) {
      notify(reason.message);
    }
    this.back(piece);
  }

  async note(whole = false) {
    const at = whole ? { session: this.view.session, piece: null, on: {}, name: "this session" } : this.target();
    const response = await fetch(`/api/sessions/${at.session}/notes`).catch(() => null);
    const notes = response?.ok ? await response.json() : [];
    const is = (one) => (at.on.part ? one.part === at.on.part
      : at.on.turn_id ? one.turn_id === at.on.turn_id : one.on === "session");
    const held = notes.find(is);
    const save = (text, said) => this.save(at.session, { note: { ...at.on, text } }, said);
    const field = make("textarea", { rows: 5, maxLength: 16384 });
    ask({
      label: `Note on ${at.name}`, field, value: held?.text ?? "",
      buttons: [
        ["Save", (text) => save(text.trim() === "" && !at.piece ? null : text, text.trim() ? "Note saved" : "Bookmark saved")],
        ...(held ? [["Remove", () => save(null, "Note removed")]] : []),
      ],
      after: () => this.back(at.piece),
    });
  }

  async rename() {
    const session = this.view.session;
    const title = document.querySelector("#session-head h1").textContent;
    const field = make("input", { type: "text", maxLength: 500 });
    const button = document.activeElement;
    ask({
      label: "Name of the session", field, value: title,
      buttons: [
        ["Save", (name) => this.save(session, { name: name.trim() || null }, "Renamed")],
        ["Use the agent's title", () => this.save(session, { name: null }, "The agent's title is used again")],
      ],
      after: () => button?.focus(),
    });
  }

  async tags() {
    const session = this.view.session;
    const button = document.activeElement;
    let held;
    try {
      held = await send(session, {});
    } catch (reason) {
      return notify(reason.message);
    }
    const list = make("ul", { className: "tag-list" });
    list.setAttribute("aria-label", "Tags");
    const show = (tags) => list.replaceChildren(...tags.map((tag) => {
      const item = make("li", { textContent: tag });
      const remove = make("button", { type: "button", textContent: "×" });
      remove.setAttribute("aria-label", `Remove the tag ${tag}`);
      remove.addEventListener("click", async () => {
        try {
          show((await this.save(session, { remove_tags: [tag] }, "Tag removed")).tags);
          field.focus();
        } catch (reason) {
          notify(reason.message);
        }
      });
      item.append(remove);
      return item;
    }));
    const field = make("input", { type: "text", maxLength: 200, placeholder: "Tags, separated by commas" });
    show(held.tags);
    ask({
      label: "Add tags", field, value: "", hint: list,
      buttons: [["Add", async (text) => {
        const tags = text.split(",").map((tag) => tag.trim()).filter((tag) => tag !== "");
        if (tags.length > 0) await this.save(session, { add_tags: tags }, "Tagged");
      }]],
      after: () => button?.focus(),
    });
  }
}
