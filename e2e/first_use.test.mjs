// What a new user looks for first, in a real browser.

import assert from "node:assert/strict";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { closeBrowser, folder, open, root, serve, until } from "./program.mjs";
import { Log } from "./synthetic_log.mjs";

after(closeBrowser);

const PROJECT = ".claude/projects/-home-dev-weather-app";

/** A server on a home with these logs, by name: a text, or the name of a recording. */
async function served(t, logs, options) {
  const [data, home] = [await folder(t), await folder(t)];
  const project = join(home, PROJECT);
  await mkdir(project, { recursive: true });
  for (const [name, log] of Object.entries(logs)) {
    if (log instanceof Log) { await writeFile(join(project, `${name}.jsonl`), log.take()); continue; }
    const recording = join(root, "fixtures/claude-code", log);
    await cp(join(recording, "log.jsonl"), join(project, `${name}.jsonl`));
    await cp(join(recording, "subagents"), join(project, name, "subagents"), { recursive: true }).catch(() => {});
  }
  const server = await serve(t, data, ["--port", "0"], home);
  const page = await open(t, options);
  await page.goto(server.address);
  await until("all are listed", async () => {
    await page.goto(server.origin);
    const rows = await page.locator(".row").count();
    return rows === Object.keys(logs).length || rows;
  });
  return { server, page };
}

test("a failed command shows its end first, and the lines above open", async (t) => {
  const lines = Array.from({ length: 60 }, (_, nth) => `line ${nth + 1} of the check`).join("\n");
  const log = new Log().prompt("Check it").call("Bash", { command: "make check" }, `Exit code 2\n${lines}`, true).say("It is broken.");
  const { page } = await served(t, { one: log });
  await page.click(".row a");
  const card = page.locator(".part.tool", { hasText: "make check" });
  await card.waitFor();
  assert.equal(await card.getByText("line 60 of the check").isVisible(), true, "the end, without a click");
  assert.equal(await card.getByText("exit code 2").isVisible(), true);
  const first = card.locator("details.rest pre");
  assert.equal(await first.isVisible(), false);
  const above = card.locator("details.rest summary");
  assert.equal(await above.innerText(), "36 lines above");
  const [fold, shown] = [await above.boundingBox(), await card.locator(".terminal > pre").boundingBox()];
  assert.ok(fold.y < shown.y, "they open where they stood");
  await above.click();
  assert.match(await first.innerText(), /^line 1 of the check\n/);
  // No scroll box inside the page.
  const boxes = await card.locator("pre").evaluateAll((all) => all.filter((one) => one.scrollHeight > one.clientHeight + 2).length);
  assert.equal(boxes, 0);
});

test("the machinery of the agent is not shown as text, and a background call has its report", async (t) => {
  const { page } = await served(t, { one: "background-command", "466998a9-dd7d-467f-8976-b1e20d65bae5": "subagents-parallel-and-background", three: "slash-command", four: "terminal-after-clear", five: "terminal-errors" });
  const links = await page.locator(".row a[href^='/s/']").evaluateAll((all) => all.map((one) => one.href));
  const wrapper = /<\/?(system-reminder|task-notification|task-id|tool-use-id|command-(name|message|args)|local-command-\w+|tools-used-before-summary|untrusted_context|tool_use_error|bash-\w+)\b/;
  let reports = 0;
  for (const link of new Set(links)) {
    await page.goto(link);
    await page.waitForSelector(".turn");
    await page.getByRole("button", { name: "Expand all" }).click();
    const text = await page.locator(".turns").evaluate((turns) => turns.textContent);
    assert.doesNotMatch(text, wrapper, link);
    assert.doesNotMatch(text, /task-notification|mode-change/, link);
    // The report stands where the agent was started, not only two turns later.
    const started = page.locator(".part", { hasText: "Audit docs" }).first();
    if (await started.count() === 0) continue;
    reports += 1;
    assert.match(await started.innerText(), /Docs report: one image, one PDF/);
    assert.doesNotMatch(await started.innerText(), /report comes later/);
  }
  assert.equal(reports, 1);
});

test("a session without a prompt is a new session, and each turn is a heading", async (t) => {
  const log = new Log().prompt("First question").say("First answer.").prompt("Second question").say("Second answer.");
  const empty = new Log("1f0e0d0c-0b0a-4908-8706-050403020100").say("Hello.");
  const { page } = await served(t, { one: log, two: empty });
  const titles = await page.locator(".row a").allInnerTexts();
  assert.ok(titles.some((title) => title.includes("New session")), titles.join(" | "));
  assert.ok(!titles.some((title) => /[0-9a-f]{8}-[0-9a-f]{4}/.test(title)), titles.join(" | "));
  await page.locator(".row a", { hasText: "First question" }).first().click();
  await page.waitForSelector(".turn");
  assert.equal(await page.locator(".turn h2").count(), 2);
  const names = await page.getByRole("heading", { level: 2 }).allInnerTexts();
  for (const nth of [1, 2]) assert.ok(names.some((name) => name.includes(`Turn ${nth}`)), names.join(" | "));
});

test("the tools of the stats lead to their calls", async (t) => {
  const log = new Log().prompt("Look").call("Bash", { command: "ls" }, "src").call("Read", { file_path: "/a" }, "text").call("Bash", { command: "pwd" }, "/home").say("Done.");
  const { page, server } = await served(t, { one: log });
  await page.goto(`${server.origin}/stats?agent=claude-code`);
  await page.locator("[data-kind=tool] th a", { hasText: "Bash" }).click();
  await page.waitForSelector(".hit-row");
  const { searchParams } = new URL(page.url());
  assert.deepEqual([searchParams.get("tool"), searchParams.get("agent")], ["Bash", "claude-code"]);
  assert.equal(await page.locator(".hit-row").count(), 2);
  assert.match(await page.locator(".understood").innerText(), /All calls of Bash, newest first/);
  // The filter can be taken off.
  await page.locator(".chip[data-without=tool]").click();
  await page.waitForURL((url) => !url.searchParams.has("tool"));
});

test("the text of a session can be selected, and what was summarised stands before what follows", async (t) => {
  // R-003-44
  const { page } = await served(t, { one: "compaction-and-resume" });
  await page.click(".row a");
  await page.waitForSelector(".turn");
  const order = await page.locator(".turns .part").evaluateAll((all) => all.map((one) => one.dataset.kind));
  const banner = order.indexOf("compaction");
  assert.ok(banner >= 0 && banner < order.length - 1, order.join(" "));
  const text = page.locator(".part.text p").last();
  await text.scrollIntoViewIfNeeded();
  const box = await text.boundingBox();
  await page.mouse.move(box.x + 1, box.y + 5);
  await page.mouse.down();
  await page.mouse.move(box.x + Math.min(box.width, 200), box.y + 5, { steps: 5 });
  await page.mouse.up();
  const selected = await page.evaluate(() => getSelection().toString());
  assert.ok(selected.length > 5 && (await text.innerText()).startsWith(selected.trim().slice(0, 5)), selected);
});
