// Driving an agent from the browser: the real server, a real browser, and the puppet as the agent.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { closeBrowser, folder, open, puppet, run, serve, until } from "./program.mjs";

after(closeBrowser);

const call = (id, command = "cargo test") => ({ call: { toolCallId: id, title: command, kind: "execute", status: "pending", rawInput: { command } } });
const done = (id, text) => ({ update: { sessionUpdate: "tool_call_update", toolCallId: id, status: "completed", content: [{ type: "content", content: { type: "text", text } }] } });
const permission = (id, command = "cargo test") => ({
  permission: {
    toolCall: { toolCallId: id, title: command, kind: "execute", rawInput: { command } },
    options: [{ optionId: "y", name: "Yes", kind: "allow_once" }, { optionId: "n", name: "No", kind: "reject_once" }],
  },
});

/** A machine with a puppet that is named claude-code, and a server that lets browsers drive it. */
async function stage(t, script, options = []) {
  const data = await folder(t);
  const [home, project] = [join(data, "home"), join(data, "project")];
  await mkdir(join(home, ".config/unspool"), { recursive: true });
  await mkdir(join(project, "src"), { recursive: true });
  await writeFile(join(project, "src/main.rs"), "fn main() {}\n");
  const [file, log] = [join(data, "script.json"), join(data, "puppet.log")];
  await writeFile(file, JSON.stringify({ session: "s-1", ...script }));
  const command = JSON.stringify([await puppet(), file, log]);
  await writeFile(join(home, ".config/unspool/config.toml"), `[chat]\nroots = [${JSON.stringify(data)}]\n[chat.agents.claude-code]\ncommand = ${command}\n`);
  const server = await serve(t, data, ["--chat", ...options]);
  t.after(async () => {
    // Chats outlive the server.
    const chats = existsSync(join(data, "chats")) ? (await import("node:fs")).readdirSync(join(data, "chats")) : [];
    for (const chat of chats.filter((name) => name !== "sessions")) await run(data, ["chat", "--end", chat]);
  });
  const received = async () => (existsSync(log) ? (await readFile(log, "utf8")).trim().split("\n").map((line) => JSON.parse(line)) : []);
  const answers = async () => (await received()).filter((line) => line.result && !line.method).map((line) => line.result);
  const prompts = async () => (await received()).filter((line) => line.method === "session/prompt").map((line) => line.params.prompt[0].text);
  return { data, project, server, received, answers, prompts };
}

/** Begins a chat with a first message; ends on the page of its session. */
async function begin(page, { server, project }, text, address = server.address) {
  await page.goto(address);
  await page.goto(`${server.origin}/new`);
  await page.fill("[name=project]", project);
  await page.fill("textarea", text);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/s\//);
  await page.waitForSelector(".chat:not([hidden])");
}

const armed = (page) => page.waitForSelector(".ask.armed");
const settled = (page) => page.waitForFunction(() => /ready/.test(document.querySelector(".chat-status").textContent));

test("R-003-13, R-003-43: a chat begins in the browser, and a permission is answered below its call", async (t) => {
  const it = await stage(t, { prompts: { go: [{ say: "Tests first." }, call("c"), permission("c"), done("c", "12 passed"), { say: "All pass." }] } });
  const page = await open(t);
  await begin(page, it, "go");
  await armed(page);
  const place = await page.evaluate(() => {
    const ask = document.querySelector(".ask");
    return { part: ask.closest("[data-call]")?.dataset.call, after: ask.compareDocumentPosition(document.querySelector(".composer")) & Node.DOCUMENT_POSITION_FOLLOWING };
  });
  assert.equal(place.part, "c", "it is at its call");
  assert.ok(place.after, "the composer is the last thing in the page");
  if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, "chat-permission.png"), fullPage: true });
  assert.deepEqual(await it.answers(), []);
  await page.click(".ask [data-option='0']");
  await page.waitForSelector("text=All pass.");
  assert.deepEqual(await it.answers(), [{ outcome: { outcome: "selected", optionId: "y" } }]);
  await page.waitForSelector(".ask", { state: "detached" });
  await settled(page);
  assert.deepEqual(page.troubles, []);
});
