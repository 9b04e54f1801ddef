// An agent for `bench_chat.mjs`: speaks the Agent Client Protocol and does what a prompt says. Every
// text that it sends has the time in it. `node bench_agent.mjs LOG` appends to LOG when it got what.

import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pause, now } from "./bench_clock.mjs";

const [log] = process.argv.slice(2);
let session = `bench-${process.pid}`;
const waiting = new Map();
let [next, cancelled] = [0, null];

const note = (what) => appendFileSync(log, `${JSON.stringify({ ...what, at: now() })}\n`);
/** Resolves when the pipe has room, so that a flood does not fill the memory. */
const write = (message) => new Promise((resolve) => {
  if (process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)) resolve();
  else process.stdout.once("drain", resolve);
});
const update = (change) => write({ method: "session/update", params: { sessionId: session, update: change } });
const chunk = (kind, text) => update({ sessionUpdate: `agent_${kind}_chunk`, content: { type: "text", text } });
const stamp = () => `[${now().toFixed(2)}] `;

const acts = {
  /** Text that grows. */
  ticks: async (count, every) => {
    for (let nth = 0; nth < count; nth += 1) { await chunk("message", stamp()); await pause(every); }
  },
  /** Parts that begin: thoughts and texts take turns. */
  parts: async (count, every) => {
    for (let nth = 0; nth < count; nth += 1) { await chunk(nth % 2 ? "message" : "thought", stamp()); await pause(every); }
  },
  asks: async (count) => {
    for (let nth = 0; nth < count; nth += 1) {
      const id = `q${next += 1}`;
      const options = [{ optionId: "y", name: "Yes", kind: "allow_once" }, { optionId: "n", name: "No", kind: "reject_once" }];
      const answered = new Promise((resolve) => { waiting.set(id, resolve); });
      await write({ id, method: "session/request_permission", params: { sessionId: session, toolCall: { toolCallId: `c${next}`, title: stamp().trim(), kind: "execute", rawInput: { command: stamp().trim() } }, options } });
      await answered;
      await pause(100);
    }
  },
  /** `count` updates of `size` bytes, as fast as they are taken. */
  updates: async (count, size) => {
    const text = "x".repeat(Math.max(1, size));
    for (let nth = 0; nth < count; nth += 1) await chunk("message", text);
  },
  /** A number of updates a second, for some seconds. */
  flood: async (rate, seconds) => {
    const begin = now();
    for (let sent = 0; sent < rate * seconds;) {
      const due = Math.min(rate * seconds, Math.floor(((now() - begin) / 1000) * rate));
      for (; sent < due; sent += 1) await chunk("message", sent % 500 === 0 ? stamp() : "y ");
      await pause(2);
    }
    note({ what: "flooded", took: now() - begin });
  },
  /** A command whose output, `megabytes` in the end, is told as a growing whole. */
  grow: async (megabytes, seconds) => {
    await update({ sessionUpdate: "tool_call", toolCallId: "g", title: "build", kind: "execute", status: "in_progress", rawInput: { command: "build" } });
    const line = "Compiling a crate with a long name v1.2.3 (registry)\n";
    const steps = seconds * 10;
    const piece = line.repeat(Math.ceil((megabytes * 1e6) / steps / line.length));
    let text = "";
    for (let nth = 0; nth < steps; nth += 1) {
      text += piece;
      await update({ sessionUpdate: "tool_call_update", toolCallId: "g", status: "in_progress", content: [{ type: "content", content: { type: "text", text } }] });
      await pause(100);
    }
    note({ what: "grown", bytes: text.length });
  },
  wait: () => new Promise((resolve) => { cancelled = resolve; }),
  /** Hears no interruption. */
  deaf: () => new Promise(() => {}),
};

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  const reply = (result) => write({ id: message.id, result });
  if (message.method === "initialize") reply({ protocolVersion: 1, agentInfo: { name: "bench", version: "1" }, agentCapabilities: { sessionCapabilities: { resume: {} } } });
  else if (message.method === "session/new") reply({ sessionId: session });
  else if (message.method === "session/resume") { session = message.params.sessionId; reply({}); }
  else if (message.method === "session/prompt") {
    const [act, ...numbers] = message.params.prompt[0].text.split(" ");
    note({ what: "prompt" });
    acts[act](...numbers.map(Number)).then(() => reply({ stopReason: "end_turn" }));
  } else if (message.method === "session/cancel") { note({ what: "cancel" }); cancelled?.(); }
  else if (message.result !== undefined) { note({ what: "answer", id: message.id }); waiting.get(message.id)?.(); }
}
