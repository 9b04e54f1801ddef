// What a session changed, in a browser: the files with their net diffs, the keys, the way to the calls.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test } from "node:test";
import { closeBrowser, folder, open, root, run, serve } from "./program.mjs";

after(closeBrowser);

test("what changed: files, net diffs, keys and links", async (t) => {
  const data = await folder(t);
  assert.equal(await run(data, ["import", join(root, "crates/unspool/tests/changes/codex-edits/log.jsonl")]), 0);
  const server = await serve(t, data, ["--port", "0"]);
  const page = await open(t);
  await page.goto(server.address);
  await page.locator(".row a").first().click();
  await page.locator(".actions a", { hasText: "What changed" }).click();
  await page.waitForURL("**/changes");
  assert.match(await page.locator(".changes-head").innerText(), /6 files changed +\+28 +−11\s+1 edit failed and is not included\./);
  const heads = await page.locator(".changed-file h2").allInnerTexts();
  assert.deepEqual(heads.map((head) => head.replace(/ +/g, " ")), [
    "src/app.ts +13 −2", "src/cache.ts unchanged after 2 edits", "src/new.ts new +9", "README.md +4 −3",
    "notes.txt +1 −1", "src/old.ts deleted −4", "src/convert.ts moved from src/units.ts +1 −1",
  ]);
  // The second edit changed lines that the first one added: only the last text is left.
  const app = page.locator(".changed-file").first();
  assert.match(await app.innerText(), /Math\.round\(sum/);
  assert.doesNotMatch(await app.innerText(), /return sum \/ report\.readings\.length;/);

  for (const [key, file] of [["n", "src/app.ts"], ["n", "src/cache.ts"], ["n", "src/new.ts"], ["p", "src/cache.ts"]]) {
    await page.keyboard.press(key);
    assert.match(await page.evaluate(() => document.activeElement.querySelector("h2").innerText), new RegExp(file));
  }
  const editor = await app.locator(".editor").getAttribute("href");
  assert.match(editor, /^vscode:\/\/file\/home\/dev\/weather\/src\/app\.ts:\d+$/);
  if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, "changes.png") });

  await app.locator("a", { hasText: "Edit 2" }).click();
  await page.waitForURL(/part=/);
  assert.match(await page.locator(".transcript").innerText(), /humidity \?\? 0/);
  await page.goto(`${page.url().split("?")[0]}/changes?turn=99`);
  assert.match(await page.locator("main").innerText(), /this session has no turn 99/);
});

test("what changed on a narrow screen does not scroll sideways", async (t) => {
  const data = await folder(t);
  assert.equal(await run(data, ["import", join(root, "crates/unspool/tests/changes/codex-edits/log.jsonl")]), 0);
  const server = await serve(t, data, ["--port", "0"]);
  const page = await open(t, { viewport: { width: 400, height: 800 }, colorScheme: "light" });
  await page.goto(server.address);
  await page.goto(`${await page.locator(".row a").first().evaluate((link) => link.href)}/changes`);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
  if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, "changes-400.png") });
});
