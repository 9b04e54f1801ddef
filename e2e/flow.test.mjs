// The ThoughtFlow page: it opens, it can be panned and zoomed, and its steps link to the transcript.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, test } from "node:test";
import { closeBrowser, folder, open, root, run, serve, until } from "./program.mjs";

after(closeBrowser);

test("a step links to its part", async (t) => {
  const data = await folder(t);
  assert.equal(await run(data, ["import", join(root, "fixtures/claude-code/discovery-loop")]), 0);
  const { address } = await serve(t, data);
  const page = await open(t);
  await page.goto(address);
  await page.click("a[href^='/s/']");
  await page.click("a:text-is('ThoughtFlow')");
  await page.waitForSelector(".flow-view svg");
  const steps = await page.locator(".flow-step").count();
  assert.ok(steps > 10, `${steps} steps`);

  // Zooming keeps the centre; the wheel alone scrolls.
  const width = () => page.locator(".flow").evaluate((svg) => svg.getBoundingClientRect().width);
  const before = await width();
  await page.keyboard.press("+");
  assert.ok(await width() > before);
  await page.keyboard.press("0");
  assert.ok(Math.abs(await width() - before) < 2);
  const box = await page.locator(".flow-view").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.wheel(0, 200);
  // The browser animates the wheel: the picture is dragged once it stands still.
  await until("it scrolls", () => page.locator(".flow-view").evaluate(async (view) => {
    const before = view.scrollTop;
    await new Promise((done) => setTimeout(done, 100));
    return (before > 50 && view.scrollTop === before) || [before, view.scrollTop];
  }));

  // Dragging pans and is not a click.
  const at = await page.locator(".flow-view").evaluate((view) => view.scrollTop);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2 + 40, { steps: 4 });
  await page.mouse.up();
  await until("it was pulled", () => page.locator(".flow-view").evaluate((view, at) => Math.abs(at - 40 - view.scrollTop) < 3 || view.scrollTop, at));
  assert.match(page.url(), /\/thoughtflow$/);

  const step = page.locator(".flow-step.is-tool").first();
  const id = await step.getAttribute("data-step");
  assert.match(await step.locator("title").textContent(), /tool call/);
  await step.click();
  await page.waitForURL(new RegExp(`#p-${id}$`));
  await page.waitForSelector(`#p-${id}`);
  await until("the part is in sight", () => page.locator(`#p-${id}`).evaluate((part) => {
    const { top, bottom } = part.getBoundingClientRect();
    return (bottom > 0 && top < innerHeight) || [top, bottom];
  }));
  assert.deepEqual(page.troubles, []);
});

test("without scripts the picture scrolls", async (t) => {
  const data = await folder(t);
  assert.equal(await run(data, ["import", join(root, "fixtures/claude-code/interrupted-mid-tool")]), 0);
  const { address } = await serve(t, data);
  const page = await open(t, { javaScriptEnabled: false });
  await page.goto(address);
  await page.click("a[href^='/s/']");
  await page.click("a:text-is('ThoughtFlow')");
  // Nine steps, and four snapshots of what the prompts were made of.
  assert.equal(await page.locator(".flow-step").count(), 13);
  assert.equal(await page.locator("[data-zoom]:visible").count(), 0);
  assert.ok(await page.locator(".flow-lane.aborted").isVisible());
});
