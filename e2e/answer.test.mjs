// An agent in its own terminal is answered from the browser, through its hook that waits. The hook is
// the real program; `timeout` stands for the agent that started it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { armed } from "./chat_stage.mjs";
import { closeBrowser, folder, open, program, run, serve, until } from "./program.mjs";

after(closeBrowser);

const SESSION = "5f0c1c9e-6f0e-4d0f-9a44-0f6f6f1d2c3b";
const payload = (event, more) => JSON.stringify({ session_id: SESSION, cwd: "/home/dev/weather-app", prompt_id: "p-1", permission_mode: "default", hook_event_name: event, ...more });

async function stage(t) {
  const data = await folder(t);
  await mkdir(join(data, "home"), { recursive: true });
  const report = (event, more = {}) => run(data, ["hook", "--agent", "claude-code"], payload(event, more));
  const ask = (more) => {
    const options = ["--foreground", "60", program, "--data", data, "hook", "--agent", "claude-code", "--answer"];
    const agent = spawn("timeout", options, { env: { PATH: process.env.PATH, HOME: join(data, "home") }, stdio: ["pipe", "pipe", "inherit"] });
    t.after(() => agent.kill("SIGKILL"));
    let said = "";
    agent.stdout.on("data", (chunk) => { said += chunk; });
    agent.stdin.end(payload("PermissionRequest", more));
    return new Promise((resolve) => agent.once("close", () => resolve(said)));
  };
  await report("UserPromptSubmit", { prompt: "Clean up" });
  const server = await serve(t, data, ["--chat"]);
  const page = await open(t);
  await page.goto(server.address);
  let id;
  await until("the session is there", async () => {
    const listed = await page.evaluate(async () => (await fetch("/api/sessions")).json());
    id = listed.sessions?.[0]?.id ?? listed[0]?.id;
    return id ? true : listed;
  });
  await page.goto(`${server.origin}/s/${id}`);
  await page.waitForSelector(".session[data-live=on]");
  return { report, ask, page };
}

const rm = { tool_name: "Bash", tool_input: { command: "rm -rf build" } };

test("a permission is allowed in the browser while the agent's own dialog stands", async (t) => {
  const { report, ask, page } = await stage(t);
  await report("PreToolUse", { ...rm, tool_use_id: "toolu_1" });
  const answered = ask(rm);
  await armed(page);
  assert.equal(await page.locator("[data-call=toolu_1] .ask").count(), 1, "it is at its call");
  assert.ok(await page.isHidden(".composer"), "messages are typed in the agent's terminal");
  await page.click(".ask [data-option='0']");
  assert.deepEqual(JSON.parse(await answered), { hookSpecificOutput: { hookEventName: "PermissionRequest", decision: { behavior: "allow" } } });
  await page.waitForSelector(".ask", { state: "detached" });
  assert.deepEqual(page.troubles, []);
});

test("a refusal says what the agent shall do instead", async (t) => {
  const { report, ask, page } = await stage(t);
  await report("PreToolUse", { ...rm, tool_use_id: "toolu_1" });
  const answered = ask(rm);
  await armed(page);
  await page.fill(".ask-say [data-text]", "Move it to /tmp instead");
  await armed(page);
  await page.click("[data-say]");
  const { decision } = JSON.parse(await answered).hookSpecificOutput;
  assert.equal(decision.behavior, "deny");
  assert.match(decision.message, /Move it to \/tmp instead/);
});

test("a question with several choices is answered", async (t) => {
  const { report, ask, page } = await stage(t);
  const questions = [{ question: "Which parts?", header: "Parts", multiSelect: true, options: [{ label: "Wind", description: "" }, { label: "Rain", description: "" }, { label: "Sun", description: "" }] }];
  const question = { tool_name: "AskUserQuestion", tool_input: { questions } };
  await report("PreToolUse", { ...question, tool_use_id: "toolu_2" });
  const answered = ask(question);
  await armed(page);
  for (const label of ["Wind", "Sun"]) await page.check(`.ask label:has-text("${label}") input`);
  await armed(page);
  await page.click("[data-send]");
  const { decision } = JSON.parse(await answered).hookSpecificOutput;
  assert.deepEqual(decision, { behavior: "allow", updatedInput: { questions, answers: { "Which parts?": "Wind, Sun" } } });
});

test("who answers in the agent's terminal is first, and the page says so", async (t) => {
  const { report, ask, page } = await stage(t);
  await report("PreToolUse", { ...rm, tool_use_id: "toolu_1" });
  const answered = ask(rm);
  await armed(page);
  await report("PostToolUse", { ...rm, tool_use_id: "toolu_1", tool_response: { stdout: "", stderr: "" } });
  assert.equal(await answered, "", "the hook prints nothing");
  await page.waitForSelector(".ask", { state: "detached" });
  await page.waitForSelector("text=agent's terminal");
});
