// First start with the demo: the list, search, a session, its folds, both themes, a narrow screen, and
// links that hold after a restart.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { closeBrowser, folder, freePort, open, serve, until } from "./program.mjs";

after(closeBrowser);

test("the demo, from the list to one part of one session", async (t) => {
  const data = await folder(t);
  const port = String(await freePort());
  const server = await serve(t, data, ["--demo", "--port", port]);
  const page = await open(t, { colorScheme: "dark" });
  await page.goto(server.address);
  assert.equal(new URL(page.url()).search, "", "the token has left the address");
  await until("all demo sessions are listed", async () => {
    await page.goto(server.origin);
    const rows = await page.locator(".row").count();
    return rows >= 9 || rows;
  });
  const agents = await page.locator(".row .agent-name").allInnerTexts();
  assert.deepEqual([...new Set(agents)].sort(), ["claude-code", "codex", "copilot", "gemini"]);

  // By keys alone: down the list, and into a session.
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  assert.equal(await page.evaluate(() => document.activeElement.closest(".row") !== null), true);
  await page.keyboard.press("/");
  await page.keyboard.type("ttl compare mixes");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".results .hit-row");
  assert.match((await page.locator(".results mark").allInnerTexts()).join(" "), /TTL/i);
  assert.equal(await page.locator(".find input").inputValue(), "ttl compare mixes");
  const hit = page.locator(".hit-row a", { hasText: "Cache report" }).first();
  const link = await hit.getAttribute("href");
  assert.match(link, /^\/s\/\w+\?part=\w+#p-\w+$/);
  await hit.click();
  await page.waitForSelector(".turn");
  const target = page.locator(new URL(link, server.origin).hash.replace("#", "#"));
  assert.equal(await target.count(), 1);

  // A session in true order: thought, said, done.
  await page.goto(`${server.origin}/`);
  await page.locator(".row a", { hasText: "The forecast cache keeps missing" }).click();
  await page.waitForSelector(".turn");
  const kinds = await page.locator(".turn > [data-kind]").evaluateAll(
    (pieces) => pieces.map((piece) => piece.dataset.kind),
  );
  assert.deepEqual(kinds.slice(0, 8), ["reasoning", "text", "tool", "tool", "tool", "reasoning", "tool", "tool"]);
  const fold = page.locator(".turn > details.reasoning").first();
  assert.equal(await fold.evaluate((element) => element.open), false, "collapsed at first (R-004-13)");
  assert.match(await fold.locator("summary").innerText(), /^Reasoning \(0 tool calls\)/);
  await fold.locator("summary").click();
  assert.match(await fold.innerText(), /cache misses/);
  // An edit is a real diff, with the words that changed marked.
  await page.getByRole("button", { name: "Expand all" }).click();
  const changed = page.locator(".diff tr.added mark").first();
  assert.equal(await changed.isVisible(), true);
  assert.match(await page.locator(".terminal .exit").first().innerText(), /exit code 3/);
  await page.getByRole("button", { name: "Hide intermediate work" }).click();
  assert.equal(await page.locator(".part.tool").first().isVisible(), false);
  assert.equal(await page.locator(".part.text").first().isVisible(), true);
  await page.getByRole("button", { name: "Hide intermediate work" }).click();

  // Sub-agents in their place, with what their own sessions know.
  await page.goto(`${server.origin}/`);
  await page.locator(".row a", { hasText: "review the weather app from two angles" }).click();
  await page.waitForSelector(".tree");
  assert.match(await page.locator(".tree").first().innerText(), /general-purpose.*3 tools · 27,556 tokens/s);

  // Both themes; a phone's width without a sideways scroll.
  const base = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const dark = await base();
  await page.click("button.theme");
  const light = await base();
  assert.notEqual(dark, light);
  await page.reload();
  assert.equal(await base(), light, "the choice stays");
  await page.setViewportSize({ width: 360, height: 740 });
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);

  // A link to a part holds when the program is started again.
  await server.stop();
  const again = await serve(t, data, ["--demo", "--port", port]);
  await page.goto(new URL(link, again.origin).href);
  assert.equal(await page.locator(new URL(link, again.origin).hash).count(), 1);
  assert.deepEqual(page.troubles.filter((told) => !told.includes("WebSocket")), []);
});
