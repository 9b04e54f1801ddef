// A session of many thousand parts: the DOM holds only the visible window (R-X-14), everything can be
// reached in order, and find works outside the loaded window.

import assert from "node:assert/strict";
import { appendFile, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { Log } from "./synthetic_log.mjs";
import { closeBrowser, folder, open, serve, until } from "./program.mjs";

after(closeBrowser);

const MAX_PARTS = 800;

/** Positions of the parts in the DOM, in document order. */
const positions = (page) => page.evaluate(() => [...document.querySelectorAll(".turns [data-at]")].map((one) => one.dataset.at));

function assertOrder(all) {
  const key = (at) => at.split(".").map(Number);
  for (const [n, at] of all.entries()) {
    if (n === 0) continue;
    const [[turn, place], [before, earlier]] = [key(at), key(all[n - 1])];
    assert.ok(turn > before || (turn === before && place > earlier), `${all[n - 1]} comes before ${at}`);
  }
}

// R-X-14
test("a long session can be scrolled from its end to its start and back", async (t) => {
  const [data, home] = [await folder(t), await folder(t)];
  const path = join(home, ".claude/projects/-home-dev-weather-app/long.jsonl");
  await mkdir(dirname(path), { recursive: true });
  const log = new Log();
  for (let turn = 1; turn <= 60; turn += 1) {
    log.prompt(`Prompt ${turn}: please go on`);
    // One turn is longer than any window.
    const calls = turn === 30 ? 1500 : 12;
    for (let call = 0; call < calls; call += 1) {
      if (call % 3 === 0) log.say(`Step ${turn}-${call}`);
      log.call("Bash", { command: `echo ${turn}-${call}` }, turn === 30 && call === 700 ? "the needle of turn thirty" : `${turn}-${call}`);
    }
    log.say(`Turn ${turn} is done`);
  }
  await appendFile(path, log.take());
  const server = await serve(t, data, ["--port", "0"], home);
  const page = await open(t, { viewport: { width: 1200, height: 700 } });
  await page.goto(server.address);
  await until("the session is listed whole", async () => {
    await page.goto(server.origin);
    const link = page.locator(".row a").first();
    if (!(await link.count())) return "no session";
    await link.click();
    await page.waitForSelector(".session[data-live=on] .turn");
    return (await page.locator(".outline li").count()) >= 60 || page.locator(".outline li").count();
  }, 30);

  // It opens at its end.
  const last = async () => (await positions(page)).at(-1);
  assert.match(await last(), /^60\./);
  assert.ok((await positions(page)).length <= MAX_PARTS);
  await page.keyboard.press("Shift+G");

  // Up to the start, a screen at a time; bounded, always in order.
  let most = 0;
  await until("the first turn is reached", async () => {
    await page.evaluate(() => scrollBy({ top: -3000, behavior: "instant" }));
    await page.waitForTimeout(25);
    const all = await positions(page);
    most = Math.max(most, all.length);
    assertOrder(all);
    return all[0].startsWith("1.") && (await page.locator(".turns .gap.before").count()) === 0 || all[0];
  }, 90);
  assert.ok(most <= MAX_PARTS, `${most} parts were in the page`);
  assert.equal(await page.locator(".turns .gap.after").count(), 1, "what was left behind is a gap");

  // New parts at the end do not move the view, and are counted.
  await page.evaluate(() => scrollTo({ top: 0, behavior: "instant" }));
  await page.waitForTimeout(200);
  const top = await page.evaluate(() => scrollY);
  await appendFile(path, log.prompt("One more").say("And one more answer").take());
  await page.waitForSelector(".news:not([hidden])");
  assert.equal(await page.evaluate(() => scrollY), top);

  // Find outside the loaded window, by keyboard only.
  await page.keyboard.press("/");
  await page.keyboard.type("\"needle of turn thirty\"");
  await page.keyboard.press("Enter");
  await until("the hit is shown", async () => (await page.locator(".find-here .count").innerText()) === "1 of 1");
  const hit = page.locator(".part.tool", { hasText: "the needle of turn thirty" });
  await until("the hit is in sight", async () => {
    const box = await hit.first().boundingBox();
    return box !== null && box.y > 0 && box.y < 700 || box;
  });
  assertOrder(await positions(page));
  await page.keyboard.press("Escape");

  // Down from there: the rest of the long turn, and further.
  await until("turn 31 is reached", async () => {
    await page.evaluate(() => scrollBy({ top: 4000, behavior: "instant" }));
    await page.waitForTimeout(25);
    const all = await positions(page);
    assertOrder(all);
    most = Math.max(most, all.length);
    return all.some((at) => at.startsWith("31.")) || all.at(-1);
  }, 60);
  assert.ok(most <= MAX_PARTS, `${most} parts were in the page`);

  // Use the outline to reach a turn that is not loaded, and a key to reach the end.
  await page.locator(".outline li", { hasText: "Prompt 3:" }).locator("a").click();
  await until("turn 3 is in sight", async () => {
    const box = await page.locator(".turn[data-number='3']").boundingBox();
    return box !== null && box.y > 0 && box.y < 300 || box;
  });
  await page.keyboard.press("Shift+G");
  await until("the end is in sight", async () => {
    const said = await page.locator(".part.text").last().innerText();
    const distance = await page.evaluate(() => document.documentElement.scrollHeight - innerHeight - scrollY);
    return said === "And one more answer" && distance < 50 || { said, distance };
  });

  // Filters: errors only, or one tool only.
  await page.focus("select[name=only]");
  await page.waitForSelector("option[value='tool:Bash']", { state: "attached" });
  await page.selectOption("select[name=only]", "tool:Bash");
  await page.waitForSelector(".session[data-live=on] .turn");
  assert.equal(await page.locator(".turns .part:not(.tool)").count(), 0);
  assert.ok((await page.locator(".turns .part.tool").count()) > 100);
  assertOrder(await positions(page));
  await page.selectOption("select[name=only]", "errors");
  await page.waitForSelector(".session[data-live=on]");
  assert.equal(await page.locator(".turns .part").count(), 0);
  assert.deepEqual(page.troubles, []);
});
