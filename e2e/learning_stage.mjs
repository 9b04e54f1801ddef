// Sessions of a scripted agent that misses edits until its prompt has the text of an adaptation: what
// `unspool reflect`, `adapt` and `reflect verify` need to be shown. Each session is a rollout as Codex 0.166
// writes it; the text in it is what the hook prints.

import { spawnSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { program } from "./program.mjs";

export const ID = "adn.tools.edit-reread";
const FILE = "/home/dev/weather-app/src/forecast.rs";

/** Runs the program in the home of a data folder and returns what it printed. */
export function unspool(data, options, input = "") {
  const env = { PATH: process.env.PATH, HOME: join(data, "home"), TZ: "UTC", LC_ALL: "C.UTF-8" };
  const done = spawnSync(program, ["--data", data, ...options], { env, input, encoding: "utf8" });
  if (done.status !== 0) throw new Error(`unspool ${options.join(" ")}: ${done.stderr}`);
  return done.stdout;
}

/** Writes a session that begins at this time, in which some of six edits miss. */
export async function session(data, number, at, missed) {
  const id = `01a1dca7-8783-7e12-90f3-${String(number).padStart(12, "0")}`;
  const cwd = "/home/dev/weather-app";
  const payload = { session_id: id, cwd, hook_event_name: "SessionStart", source: "startup" };
  const printed = unspool(data, ["hook", "--adapt", "--agent", "codex"], JSON.stringify(payload));
  const lines = [];
  const turn = `turn-${id}`;
  const add = (type, body) => {
    const timestamp = new Date(at + lines.length * 50).toISOString();
    lines.push(JSON.stringify({ timestamp, ordinal: lines.length, type, payload: body }));
  };
  const item = (body, kinds) => add("response_item", {
    ...body, internal_chat_message_metadata_passthrough: { turn_id: turn, content_item_kinds: kinds },
  });
  const message = (role, kind, text) => {
    const type = role === "assistant" ? "output_text" : "input_text";
    item({ type: "message", id: `msg_${id}_${lines.length}`, role, content: [{ type, text }] }, [kind]);
  };
  const usage = { input_tokens: 100, output_tokens: 10, total_tokens: 110 };
  const answered = () => add("token_usage_record", {
    thread_id: id, session_id: id, turn_id: turn, response_id: `resp_${id}_${lines.length}`, usage,
  });
  add("session_meta", {
    session_id: id, id, timestamp: new Date(at).toISOString(), cwd, originator: "codex_exec", cli_version: "0.166.0",
    source: "exec", base_instructions: { text: "You are an agent." },
  });
  add("event_msg", { type: "task_started", turn_id: turn });
  add("turn_context", { turn_id: turn, cwd, model: "gpt-5.6-sol" });
  if (printed) message("developer", "hooks.additional_context", JSON.parse(printed).hookSpecificOutput.additionalContext);
  message("user", "user.text", `Round the forecast of station ${number}.`);
  for (let nth = 0; nth < 6; nth += 1) {
    const call = `call_${id}_${nth}`;
    const input = `*** Begin Patch\n*** Update File: ${FILE}\n@@\n-let t = ${nth};\n+let t = round(${nth});\n*** End Patch`;
    item({ type: "custom_tool_call", id: `c${nth}`, status: "completed", call_id: call, name: "apply_patch", input }, []);
    answered();
    const output = nth < missed
      ? `apply_patch verification failed: Failed to find expected lines in ${FILE}:\nlet t = ${nth};`
      : JSON.stringify({ output: `Success. Updated the following files:\nM ${FILE}\n`, metadata: { exit_code: 0, duration_seconds: 0.1 } });
    item({ type: "custom_tool_call_output", id: `o${nth}`, call_id: call, output }, []);
  }
  message("assistant", "", "Done.");
  answered();
  add("event_msg", { type: "task_complete", turn_id: turn });
  const folder = join(data, "home/.codex/sessions/2026/11/15");
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, `rollout-2026-11-15T00-00-00-${id}.jsonl`), `${lines.join("\n")}\n`);
}

/** Six sessions in which most edits miss, two days ago, and proposals against what was found in them. */
export async function before(data) {
  const days = 48 * 3600 * 1000;
  for (const [nth, missed] of [6, 4, 5, 3, 6, 4].entries()) {
    await session(data, nth, Date.now() - days + nth * 3600 * 1000, missed);
  }
  unspool(data, ["sync"]);
  unspool(data, ["adapt", "propose"]);
}

/** Six sessions in which few edits miss. */
export async function after(data) {
  for (const [nth, missed] of [1, 0, 0, 1, 0, 0].entries()) await session(data, 6 + nth, Date.now() + nth * 1000, missed);
  unspool(data, ["sync"]);
}
