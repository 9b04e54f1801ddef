// Completion in the composer: `/` names commands, `@` files of the project.

const MAX_SHOWN = 8;
const OWN_COMMANDS = [["clear", "begin a new session in this chat"], ["mode", "set the agent's mode"], ["model", "set the model"], ["end", "end the agent and the chat"]];

export class Completion {
  constructor(area, list, sources) {
    Object.assign(this, { area, list, sources, found: [], at: 0, files: null });
    area.addEventListener("input", () => this.update());
    area.addEventListener("blur", () => this.close());
    list.addEventListener("pointerdown", (event) => {
      const row = event.target.closest("li");
      if (!row) return;
      event.preventDefault();
      this.at = Number(row.dataset.nth);
      this.accept();
    });
  }

  get isOpen() { return !this.list.hidden; }

  /** True if what is chosen is written already. */
  get isExact() { return this.found[this.at]?.[0] === this.word().text; }

  word() {
    const { value, selectionStart } = this.area;
    const start = value.slice(0, selectionStart).search(/\S*$/);
    return { start, text: value.slice(start, selectionStart) };
  }

  async update() {
    const { start, text } = this.word();
    // Listed anew for each word: the agent makes files meanwhile.
    if (!text.startsWith("@")) this.files = null;
    if (text.startsWith("/") && start === 0) {
      const agents = this.sources.commands();
      const own = OWN_COMMANDS.filter(([name]) => !agents.some(([other]) => other === name));
      this.offer([...agents, ...own].filter(([name]) => name.startsWith(text.slice(1))).map(([name, about]) => [`/${name}`, about]));
    } else if (text.startsWith("@")) {
      this.files ??= this.sources.files();
      const files = await this.files;
      const now = this.word();
      if (!now.text.startsWith("@")) { this.close(); return; }
      const wanted = now.text.slice(1).toLowerCase();
      const hits = files.filter((file) => file.toLowerCase().includes(wanted));
      const rank = (file) => (file.toLowerCase().startsWith(wanted) || file.toLowerCase().includes(`/${wanted}`) ? 0 : 1);
      this.offer(hits.slice(0, 400).sort((a, b) => rank(a) - rank(b) || a.length - b.length).map((file) => [`@${file}`, ""]));
    } else this.close();
  }

  offer(found) {
    this.found = found.slice(0, MAX_SHOWN);
    this.at = 0;
    this.list.hidden = this.found.length === 0;
    this.paint();
  }

  paint() {
    this.list.replaceChildren(...this.found.map(([text, about], nth) => {
      const row = document.createElement("li");
      row.dataset.nth = nth;
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", String(nth === this.at));
      row.append(Object.assign(document.createElement("b"), { textContent: text }), Object.assign(document.createElement("span"), { textContent: about }));
      return row;
    }));
  }

  move(by) { this.at = (this.at + by + this.found.length) % this.found.length; this.paint(); }

  accept() {
    const { start, text } = this.word();
    const chosen = this.found[this.at]?.[0];
    this.close();
    if (!chosen) return;
    this.area.setRangeText(`${chosen} `, start, start + text.length, "end");
    this.area.dispatchEvent(new Event("input", { bubbles: true }));
    this.close();
  }

  close() { this.list.hidden = true; this.found = []; }
}
