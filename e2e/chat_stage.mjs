// A machine on which the puppet, a scripted agent, is driven from the browser.

import { existsSync } from "node:fs";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { folder, puppet, run, serve } from "./program.mjs";

export const call = (id, command = "cargo test") => ({ call: { toolCallId: id, title: command, kind: "execute", status: "pending", rawInput: { command } } });
export const done = (id, text) => ({ update: { sessionUpdate: "tool_call_update", toolCallId: id, status: "completed", content: [{ type: "content", content: { type: "text", text } }] } });
export const permission = (id, command = "cargo test") => ({
  permission: {
    toolCall: { toolCallId: id, title: command, kind: "execute", rawInput: { command } },
    options: [{ optionId: "y", name: "Yes", kind: "allow_once" }, { optionId: "n", name: "No", kind: "reject_once" }],
  },
});

/** The chats that have files, with what they keep. */
export async function chats(data) {
  const folder = join(data, "chats");
  const ids = existsSync(folder) ? (await readdir(folder)).filter((name) => name !== "sessions") : [];
  const read = async (id) => ({ id, ...JSON.parse(await readFile(join(folder, id, "state.json"), "utf8")) });
  return Promise.all(ids.map((id) => read(id).catch(() => ({ id, state: {} }))));
}

/** A machine with a puppet that is named claude-code, and a server that lets browsers drive it. */
export async function stage(t, script, options = []) {
  // Chats outlive the server: they are ended before their files are removed.
  let data;
  t.after(async () => { for (const { id } of data ? await chats(data) : []) await run(data, ["chat", "--end", id]); });
  data = await folder(t);
  const [home, project] = [join(data, "home"), join(data, "project")];
  await mkdir(join(home, ".config/unspool"), { recursive: true });
  await mkdir(join(project, "src"), { recursive: true });
  await writeFile(join(project, "src/main.rs"), "fn main() {}\n");
  const [file, log] = [join(data, "script.json"), join(data, "puppet.log")];
  await writeFile(file, JSON.stringify({ session: "s-1", ...script }));
  const command = JSON.stringify([await puppet(), file, log]);
  await writeFile(join(home, ".config/unspool/config.toml"), `[chat]\nroots = [${JSON.stringify(data)}]\n[chat.agents.claude-code]\ncommand = ${command}\n`);
  const server = await serve(t, data, ["--chat", ...options]);
  // The puppet writes while this reads: a line without its end is not yet there.
  const received = async () => (existsSync(log) ? (await readFile(log, "utf8")).split("\n").slice(0, -1).map((line) => JSON.parse(line)) : []);
  const answers = async () => (await received()).filter((line) => line.result && !line.method).map((line) => line.result);
  const prompts = async () => (await received()).filter((line) => line.method === "session/prompt").map((line) => line.params.prompt[0].text);
  return { data, project, server, received, answers, prompts };
}

/** Begins a chat with a first message; ends on the page of its session. */
export async function begin(page, { server, project }, text, address = server.address) {
  await page.goto(address);
  await page.goto(`${server.origin}/new`);
  await page.fill("[name=project]", project);
  await page.fill("textarea", text);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/s\//);
  await page.waitForSelector(".chat:not([hidden])");
}

export const armed = (page) => page.waitForSelector(".ask.armed");
export const settled = (page) => page.waitForFunction(() => /ready/.test(document.querySelector(".chat-status").textContent));

export const form = {
  form: {
    message: "How shall it look?",
    requestedSchema: {
      type: "object",
      properties: {
        unit: { type: "string", title: "Unit", oneOf: [{ const: "c", title: "Celsius" }, { const: "f", title: "<b>Fahrenheit</b>" }] },
        parts: { type: "array", title: "Parts", items: { anyOf: [{ const: "wind", title: "Wind" }, { const: "rain", title: "Rain" }, { const: "sun", title: "Sun" }] } },
        parts_custom: { type: "string", title: "Other" },
      },
      required: ["unit"],
    },
  },
};
