// An agent that waits is shown and told: in the list, the tab's title and icon, and one notification
// of the browser; none for what somebody already looks at.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { appendFile, copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { closeBrowser, folder, freePort, open, run, serve, until } from "./program.mjs";

after(closeBrowser);

const SESSION = "5a3f7c1e-0000-4000-8000-00000000a77e";
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A Claude Code session of this machine: its log, its hooks and a process of its name. */
class Agent {
  static async start(t, data, home) {
    const agent = new Agent();
    Object.assign(agent, { data, home, log: join(home, ".claude/projects/-p", `${SESSION}.jsonl`), count: 0 });
    await mkdir(join(home, ".claude/projects/-p"), { recursive: true });
    await copyFile("/bin/sleep", join(home, "claude"));
    const child = spawn(join(home, "claude"), ["600"], { cwd: home, stdio: "ignore" });
    t.after(() => child.kill("SIGKILL"));
    return agent;
  }

  async write(type, message) {
    this.count += 1;
    const uuid = `00000000-0000-4000-8000-${String(this.count).padStart(12, "0")}`;
    const record = {
      type, message, uuid, parentUuid: null, sessionId: SESSION, cwd: this.home, version: "2.1.325",
      isSidechain: false, userType: "external", timestamp: new Date().toISOString(),
    };
    await appendFile(this.log, `${JSON.stringify(record)}\n`);
  }

  prompt(text) { return this.write("user", { role: "user", content: text }); }

  call(id, command) {
    const content = [{ type: "tool_use", id, name: "Bash", input: { command } }];
    return this.write("assistant", {
      id: `msg_${id}`, role: "assistant", type: "message", model: "claude-opus-5-5", content,
      stop_reason: "tool_use", usage: { input_tokens: 1, output_tokens: 1 },
    });
  }

  result(id) {
    return this.write("user", { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "done" }] });
  }

  /** Hooks may be read before or after the log. */
  async ask(id, command) {
    for (const event of ["PreToolUse", "PermissionRequest"]) {
      const payload = {
        session_id: SESSION, transcript_path: this.log, cwd: this.home, hook_event_name: event,
        tool_name: "Bash", tool_input: { command }, ...(event === "PreToolUse" ? { tool_use_id: id } : {}),
      };
      await run(this.data, ["hook", "--agent", "claude-code"], JSON.stringify(payload));
    }
  }
}

/** Records the notifications of a page. A browser without a screen denies all of them, so this stands for its
 *  constructor; everything around it is real. */
async function recordNotifications(page) {
  await page.addInitScript(() => {
    window.raised = [];
    window.Notification = class {
      static permission = "granted";
      static requestPermission() { return Promise.resolve("granted"); }
      constructor(title, options) { window.raised.push(`${title}: ${options.body}`); }
    };
  });
}

const raised = (page) => page.evaluate(() => window.raised);

test("an agent that waits is told once, and not where somebody looks", async (t) => {
  const [data, home] = [await folder(t), await folder(t)];
  const agent = await Agent.start(t, data, home);
  await agent.prompt("Clean up");
  const server = await serve(t, data, ["--port", String(await freePort())], home);
  const page = await open(t);
  await recordNotifications(page);
  await page.goto(server.address);
  await until("the session is listed", async () => {
    await page.goto(server.origin);
    return (await page.locator(".row").count()) === 1;
  });
  const link = await page.locator(".row a").getAttribute("href");
  await page.goto(`${server.origin}/stats`);
  const title = await page.title();
  await pause(2500);

  await agent.call("toolu_1", "rm -rf build/");
  await agent.ask("toolu_1", "rm -rf build/");
  await until("the notification", async () => (await raised(page)).length > 0);
  assert.deepEqual(await raised(page), ["claude-code waits for you: rm -rf build/"]);
  assert.equal(await page.title(), `(1 waiting) ${title}`);
  assert.equal(await page.locator("link[rel=icon]").getAttribute("href"), "/assets/icon-waiting.svg");
  await pause(3000);
  assert.equal((await raised(page)).length, 1, "once");

  // The list and the session say what it waits for.
  await page.goto(server.origin);
  const row = page.locator(".row .now.waiting");
  await until("the row", async () => (await row.innerText()).startsWith("Waiting for you: rm -rf build/"));
  await page.goto(server.origin + link);
  await page.waitForSelector(".waiting-bar:not([hidden])");
  assert.equal(await page.locator(".waiting-bar").innerText(), "Waiting for you: rm -rf build/. Answer in the agent’s terminal.");
  assert.match(await page.title(), /^Waiting: rm -rf build\/ · /);
  assert.equal(await page.locator(".card-head .badge").first().innerText(), "[WAITING]");
  assert.match(await page.locator(".question").innerText(), /Answer in the agent's terminal/);

  // Somebody looks at the session: the next wait shows there and raises nothing.
  await page.bringToFront();
  await agent.result("toolu_1");
  await until("the wait is over", async () => page.locator(".waiting-bar").isHidden());
  assert.equal(await page.title(), await page.evaluate(() => document.title.replace(/^Waiting.*? · /, "")));
  await agent.call("toolu_2", "git push");
  await agent.ask("toolu_2", "git push");
  await page.waitForSelector(".waiting-bar:not([hidden])");
  await pause(1500);
  assert.deepEqual(await raised(page), []);
});
