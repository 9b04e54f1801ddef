// Synthetic logs in Claude Code's format: as long, or as hostile, as a test needs.

const SESSION = "0f0e0d0c-0b0a-4908-8706-050403020100";

/** The records of one session, each linked to its parent. */
export class Log {
  constructor(session = SESSION) {
    this.session = session;
    this.last = null;
    this.count = 0;
    this.lines = [];
  }

  id(kind) { return `${kind}_${String(this.count).padStart(8, "0")}`; }

  record(fields) {
    this.count += 1;
    const uuid = `00000000-0000-4000-8000-${String(this.count).padStart(12, "0")}`;
    const timestamp = new Date(Date.UTC(2026, 10, 15) + this.count * 1000).toISOString();
    const common = { parentUuid: this.last, isSidechain: false, uuid, timestamp, userType: "external",
      cwd: "/home/dev/weather-app", sessionId: this.session, version: "2.1.325", gitBranch: "main" };
    this.lines.push(`${JSON.stringify({ ...common, ...fields })}\n`);
    this.last = uuid;
    return this;
  }

  prompt(text) {
    return this.record({ type: "user", promptId: this.id("prompt"), message: { role: "user", content: text } });
  }

  block(content, reason = null) {
    const message = { id: this.id("msg"), type: "message", role: "assistant", model: "claude-opus-5-5",
      content: [content], stop_reason: reason, usage: { input_tokens: 3, output_tokens: 5 } };
    return this.record({ type: "assistant", message, requestId: this.id("req") });
  }

  say(text) { return this.block({ type: "text", text }, "end_turn"); }

  think(thinking) { return this.block({ type: "thinking", thinking, signature: "" }); }

  call(name, input, output, failed = false) {
    const id = this.id("toolu");
    this.block({ type: "tool_use", id, name, input }, "tool_use");
    const content = [{ tool_use_id: id, type: "tool_result", content: output, is_error: failed }];
    return this.record({ type: "user", message: { role: "user", content } });
  }

  /** Returns the records since the last call. */
  take() {
    const lines = this.lines;
    this.lines = [];
    return lines.join("");
  }
}
