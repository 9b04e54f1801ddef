// Two sessions side by side, and some turns of a session as a file.

import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { closeBrowser, folder, open, run, serve } from "./program.mjs";
import { Log } from "./synthetic_log.mjs";

after(closeBrowser);

const OTHER = "1f0e0d0c-0b0a-4908-8706-050403020100";
const picture = (page, name) => process.env.PICTURES && page.screenshot({ path: join(process.env.PICTURES, name), fullPage: true });

/** A log with new files, as Claude Code records them. */
class Session extends Log {
  write(path, content) {
    const [id, filePath] = [this.id("toolu"), `/home/dev/weather-app/${path}`];
    this.block({ type: "tool_use", id, name: "Write", input: { file_path: filePath, content } }, "tool_use");
    const result = [{ tool_use_id: id, type: "tool_result", content: "created" }];
    const toolUseResult = { type: "create", filePath, content, structuredPatch: [], originalFile: null };
    return this.record({ type: "user", message: { role: "user", content: result }, toolUseResult });
  }
}

/** A server with two sessions that were given the same task. */
async function served(t, options) {
  const data = await folder(t);
  const one = new Session().prompt("Mend the cache").call("Bash", { command: "make check" }, "Exit code 2\nbroken", true)
    .write("src/cache.ts", "a\nb\n").say("Mended.").prompt("Also the docs").write("README.md", "docs\n").say("Done.");
  const two = new Session(OTHER).prompt("Mend the cache").write("src/cache.ts", "a\nc\n").say("It works.")
    .prompt("Something else entirely").say("No.").prompt("Also the docs").write("README.md", "docs\n").say("Done.");
  await mkdir(join(data, "logs"));
  await writeFile(join(data, "logs/one.jsonl"), one.take());
  await writeFile(join(data, "logs/two.jsonl"), two.take());
  assert.equal(await run(data, ["import", join(data, "logs")]), 0);
  const server = await serve(t, data, ["--port", "0"]);
  const page = await open(t, options);
  await page.goto(server.address);
  const link = await page.locator(".row a", { hasText: "Mend the cache" }).first().getAttribute("href");
  return { server, page, link };
}

test("two sessions are compared: chosen from the page of one, turn by turn, by keyboard", async (t) => {
  const { server, page, link } = await served(t);
  await page.goto(server.origin + link);
  await page.getByRole("link", { name: "Compare", exact: true }).click();
  await page.waitForURL(/\/compare\?a=/);
  assert.equal(await page.locator("h1").innerText(), "Compare with which session?");
  const offered = page.locator(".row");
  assert.match(await offered.first().innerText(), /same first prompt/);
  await picture(page, "compare-choice.png");
  await offered.first().locator("a").click();
  await page.waitForURL(/&b=/);

  // The same prompts stand in one row; what only one session has stands alone.
  const rows = page.locator(".compared-row");
  assert.equal(await rows.count(), 3);
  assert.deepEqual(await rows.evaluateAll((all) => all.map((row) => row.classList.contains("same"))), [true, false, true]);
  assert.match(await rows.nth(1).innerText(), /no such turn/);
  const files = page.locator("tr[data-verdict]");
  assert.deepEqual(await files.evaluateAll((all) => all.map((row) => `${row.cells[0].innerText} ${row.dataset.verdict}`).sort()),
    ["README.md same", "src/cache.ts different"]);
  const tool = page.locator("table.numbers tr", { hasText: "Bash" });
  assert.match(await tool.innerText(), /1, 1 failed/);
  await picture(page, "compare-dark.png");

  // Keys: next and previous turn have the focus, and a turn opens in its transcript.
  await page.keyboard.press("n");
  const focused = () => page.evaluate(() => [...document.querySelectorAll(".compared-row")].indexOf(document.activeElement));
  assert.equal(await focused(), 0);
  await page.keyboard.press("n");
  assert.equal(await focused(), 1);
  await page.keyboard.press("p");
  assert.equal(await focused(), 0);
  await page.keyboard.press("p");
  assert.match(await page.locator("body").innerText(), /This is the first turn/);
  await rows.nth(2).getByRole("link", { name: "Turn 2" }).click();
  await page.waitForURL(/\/s\/.*turn=2/);
  assert.match(await page.locator(".transcript").innerText(), /Also the docs/);
  await page.goBack();
  await page.getByRole("link", { name: "Swap" }).click();
  await page.waitForURL(new RegExp(`b=${link.split("/").pop()}`));
  await page.keyboard.press("q");
  await page.waitForURL(/\/s\//);
  assert.deepEqual(page.troubles, []);
});

for (const colorScheme of ["dark", "light"]) {
  test(`a comparison on a phone, ${colorScheme}: it fits, and everything has a name`, async (t) => {
    const { server, page, link } = await served(t, { viewport: { width: 400, height: 800 }, colorScheme });
    const choice = `/compare?a=${link.split("/").pop()}`;
    await page.goto(server.origin + choice);
    const other = await page.locator(".row a").first().getAttribute("href");
    for (const path of [choice, other]) {
      await page.goto(server.origin + path);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, path);
      assert.equal(await page.locator("h1").count(), 1);
      const nameless = await page.locator("a, button, input:not([type=hidden]), select").evaluateAll((all) => all
        .filter((one) => !(one.textContent.trim() || one.getAttribute("aria-label") || one.closest("label")?.textContent.trim()))
        .map((one) => one.outerHTML));
      assert.deepEqual(nameless, [], path);
      // Every table says what its columns and rows are.
      const heads = await page.locator("table").evaluateAll((all) => all.map((table) => [table.caption?.textContent, table.querySelectorAll("th[scope=col]").length > 1, table.querySelectorAll("tbody th[scope=row]").length === table.tBodies[0].rows.length]));
      for (const [caption, columns, named] of heads) assert.ok(caption && columns && named, path);
    }
    await picture(page, `compare-400-${colorScheme}.png`);
  });
}

test("some turns are shared as a redacted file, with one click", async (t) => {
  const { server, page, link } = await served(t);
  await page.goto(server.origin + link);
  await page.waitForSelector(".turn");
  // The turn at the cursor is offered.
  await page.keyboard.press("]");
  await page.keyboard.press("x");
  const box = page.getByRole("dialog", { name: "Share turns" });
  await box.waitFor();
  const [first, last] = [box.getByLabel("From turn"), box.getByLabel("to turn", { exact: true })];
  const chosen = await first.inputValue();
  assert.equal(await last.inputValue(), chosen);
  await picture(page, "share.png");
  const download = box.getByRole("link", { name: "Download HTML" });
  assert.equal(await download.evaluate((one) => one === document.activeElement), true, "Enter downloads");
  // A range that does not exist is not offered.
  await last.fill("99");
  assert.match(await box.getByRole("alert").innerText(), /Choose turns from 1 to/);
  await first.fill("2");
  await last.fill("2");
  assert.equal(await box.getByRole("alert").count(), 0);
  const copied = await box.getByRole("button", { name: "Copy link command" }).getAttribute("data-copy");
  assert.match(copied, /^unspool share \w+ --turns 2$/);
  const [file] = await Promise.all([page.waitForEvent("download"), download.click()]);
  assert.match(file.suggestedFilename(), /^unspool-\w+-turns-2\.html$/);
  const text = await readFile(await file.path(), "utf8");
  assert.match(text, /<section class="turn"[^>]*aria-label="Turn 2"/);
  assert.doesNotMatch(text, /Mend the cache|Turn 1"/);
  // From the menu, too, and the focus comes back.
  await page.locator(".menu summary").click();
  await page.getByRole("button", { name: "Share turns" }).click();
  await box.waitFor();
  await page.keyboard.press("Escape");
  await box.waitFor({ state: "detached" });
  assert.deepEqual(page.troubles, []);
});
