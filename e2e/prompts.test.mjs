// What model calls were sent: the list of calls, one call, and the calls that were sent a text.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test } from "node:test";
import { closeBrowser, folder, open, root, run, serve } from "./program.mjs";

after(closeBrowser);

test("a rule is found in the calls that were sent it", async (t) => {
  const data = await folder(t);
  assert.equal(await run(data, ["import", join(root, "fixtures/claude-code/discovery-loop")]), 0);
  const { address } = await serve(t, data);
  const page = await open(t);
  await page.goto(address);
  await page.click("a[href^='/s/']");
  await page.click("a:text-is('Prompts')");
  await page.waitForSelector(".prompt-calls");
  const rows = page.locator(".prompt-calls tbody tr");
  const calls = await rows.count();
  assert.ok(calls > 4, `${calls} calls`);
  // A later prompt is longer, and its bar has the same unit.
  const width = (at) => rows.nth(at).locator("rect").evaluateAll((stretches) =>
    stretches.reduce((sum, stretch) => sum + Number(stretch.getAttribute("width")), 0));
  assert.ok(await width(calls - 1) > await width(0));

  // One call: what is new in it, then all of it.
  await rows.nth(1).locator("a").click();
  await page.waitForSelector(".prompt-piece");
  const pieces = await page.locator(".prompt-piece").count();
  await page.click("a:text-is('Only what is new')");
  await page.waitForSelector("a:text-is('Whole prompt')");
  const fresh = await page.locator(".prompt-piece").count();
  assert.ok(fresh > 0 && fresh < pieces, `${fresh} of ${pieces}`);
  await page.click("a:text-is('Whole prompt')");
  await page.waitForSelector("a:text-is('Only what is new')");

  // One click from an instruction to the calls that had it.
  await page.locator("a:text-is('Which calls had this?')").first().click();
  await page.waitForSelector(".prompts-page p[role=status]");
  assert.match(await page.textContent(".prompts-page p[role=status]"), new RegExp(`${calls} of ${calls} calls`));
  assert.deepEqual(page.troubles, []);
});

test("a phone shows the calls without scrolling sideways", async (t) => {
  const data = await folder(t);
  assert.equal(await run(data, ["import", join(root, "fixtures/claude-code/discovery-loop")]), 0);
  const { address } = await serve(t, data);
  const page = await open(t, { viewport: { width: 400, height: 800 } });
  await page.goto(address);
  const session = await page.locator("a[href^='/s/']").first().getAttribute("href");
  for (const path of ["", "first"]) {
    await page.goto(new URL(`${session.split("?")[0]}/prompts`, address).href);
    if (path) await page.locator(".prompt-calls tbody a").first().click();
    await page.waitForSelector(".prompts-page");
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(over <= 0, `${over} px too wide`);
  }
});
