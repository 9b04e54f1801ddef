// Findings in a browser: over all sessions with filters, beside the session, and each opens at its part.
// Memory operations are a family that can be filtered.

import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { closeBrowser, folder, open, run, serve, until } from "./program.mjs";
import { Log } from "./synthetic_log.mjs";

after(closeBrowser);

const NOTES = "the notes of the team, which nobody changed ".repeat(8);

/** A session in which a command fails three times and a file is read three times, far apart. */
function log(session) {
  const log = new Log(session);
  for (let turn = 0; turn < 3; turn += 1) {
    log.prompt(`Prompt ${turn}`);
    log.call("Bash", { command: "make all" }, "Exit code 2\nmake: no rule to make target", true);
    log.call("Read", { file_path: "/home/dev/weather-app/NOTES.md" }, NOTES);
    for (let nth = 0; nth < 60; nth += 1) log.call("Bash", { command: `ls src/${turn}/${nth}` }, `file-${turn}-${nth}`);
    log.call("save_memory", { text: `remember ${turn}` }, "kept");
    log.say(`Turn ${turn} is done.`);
  }
  return log.take();
}

async function stage(t, options = {}) {
  const data = await folder(t);
  const folderOf = join(data, "home/.claude/projects/-home-dev-weather-app");
  await mkdir(folderOf, { recursive: true });
  for (const nth of [1, 2]) {
    const session = `0f0e0d0c-0b0a-4908-8706-05040302010${nth}`;
    await writeFile(join(folderOf, `${session}.jsonl`), log(session));
  }
  assert.equal(await run(data, ["sync"]), 0);
  const server = await serve(t, data, ["--port", "0"]);
  const page = await open(t, options);
  await page.goto(server.address);
  return { server, page };
}

const inSight = (locator) => locator.evaluate((element) => {
  const box = element.getBoundingClientRect();
  return box.height > 0 && box.bottom > 52 && box.top < innerHeight;
});

test("findings of all sessions are filtered, and each opens at its part", async (t) => {
  const { server, page } = await stage(t);
  await page.locator("nav.pages a", { hasText: "Findings" }).click();
  const rules = () => page.locator(".findings section.calls").evaluateAll((all) => all.map((one) => one.id));
  assert.deepEqual(await rules(), ["fails-again", "read-again"]);
  assert.match(await page.locator(".findings > [role=status]").innerText(), /4 findings in 2 sessions/);
  await page.locator("select[name=rule]").selectOption("fails-again");
  await page.waitForURL(/rule=fails-again/);
  assert.deepEqual(await rules(), ["fails-again"]);
  await page.goto(`${server.origin}/findings?agent=codex`);
  assert.match(await page.locator(".trouble").innerText(), /Nothing found/);

  await page.goto(`${server.origin}/findings?rule=fails-again`);
  const address = await page.locator(".calls li a").first().getAttribute("href");
  const part = new URL(address, server.origin).hash.slice(1);
  await page.locator(".calls li a").first().click();
  await page.waitForSelector(".session[data-live=on]");
  await until("its part is in sight", async () => inSight(page.locator(`[id="${part}"]`)));
  assert.match(await page.locator(`[id="${part}"]`).innerText(), /make all/);
  assert.deepEqual(page.troubles, []);
});

test("a session has its findings beside it, and memory operations are a filter", async (t) => {
  const { page } = await stage(t, { viewport: { width: 1280, height: 700 } });
  await page.locator(".row a").first().click();
  await page.waitForSelector(".session[data-live=on]");
  const panel = page.locator("#findings li a");
  await until("they are there", async () => await panel.count() === 2);
  const entry = panel.filter({ hasText: "NOTES.md" });
  const part = new URL(await entry.getAttribute("href"), page.url()).hash.slice(1);
  await entry.click();
  await until("its part is in sight", async () => inSight(page.locator(`[id="${part}"]`)));
  assert.match(await page.locator(`[id="${part}"]`).innerText(), /NOTES\.md/);

  await page.locator("select[name=only]").selectOption("tool:memory");
  await page.waitForURL(/only=tool(:|%3A)memory/);
  await page.waitForSelector(".session[data-live=on]");
  await until("only memory operations are left", async () => {
    const seen = await page.locator(".part.tool").allInnerTexts();
    return seen.length === 3 && seen.every((text) => /save_memory|remember/.test(text)) || seen.slice(0, 4);
  });
  assert.deepEqual(page.troubles, []);
});
