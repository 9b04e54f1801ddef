// Notes, bookmarks, the name and the tags of a session, written in a browser and seen live in others.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { closeBrowser, folder, open, root, run, serve, until } from "./program.mjs";

after(closeBrowser);

const program = process.env.UNSPOOL_PROGRAM ?? join(root, "target/debug/unspool");
const log = join(root, "fixtures/claude-code/discovery-loop/log.jsonl");

async function show(data, ...options) {
  const { stdout } = await promisify(execFile)(program, ["--data", data, ...options]);
  return stdout;
}

async function session(t, options) {
  const data = await folder(t);
  assert.equal(await run(data, ["import", log]), 0);
  const server = await serve(t, data, ["--port", "0"]);
  const page = await open(t, options);
  await page.goto(server.address);
  await page.locator(".row a").first().click();
  await page.waitForSelector(".session[data-live=on]");
  return { data, server, page, id: await page.locator(".session").getAttribute("data-session") };
}

test("a bookmark, a note, a name and tags are written in the page and seen in another one", async (t) => {
  const { data, server, page, id } = await session(t);
  const other = await open(t);
  await other.goto(server.address);
  await other.goto(`${server.origin}/s/${id}`);
  await other.waitForSelector(".session[data-live=on]");

  const list = await open(t);
  await list.goto(server.address);
  await list.waitForSelector(".row");

  // A bookmark on the second part; the focus stays there and a screen reader hears of it.
  const part = page.locator(".part[data-at]").nth(1);
  const place = await part.getAttribute("id");
  await part.evaluate((one) => one.scrollIntoView({ block: "center" }));
  await part.click({ position: { x: 2, y: 2 } });
  await page.evaluate((to) => { const one = document.getElementById(to); one.tabIndex = -1; one.focus(); }, place);
  await page.keyboard.press("b");
  await page.waitForSelector(`#${place} > .bookmark`);
  assert.equal(await page.locator("[role=status].spoken").innerText(), "Bookmark saved");
  assert.equal(await page.evaluate(() => document.activeElement.id), place);
  await other.waitForSelector(`#${place} > .bookmark`);
  await page.keyboard.press("b");
  await until("the bookmark is gone", async () => (await other.locator(".bookmark").count()) === 0);

  // A note there. It is text, whatever is in it.
  await page.keyboard.press("m");
  await page.waitForSelector("dialog.edit[open]");
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "TEXTAREA");
  await page.keyboard.type("look <b>here</b>\nwhy twice?");
  await page.locator("dialog.edit button", { hasText: "Save" }).click();
  for (const one of [page, other]) {
    await one.waitForSelector(`#${place} > .user-note`);
    assert.equal(await one.locator(`#${place} > .user-note .note-text`).innerText(), "look <b>here</b>\nwhy twice?");
    assert.equal(await one.locator("#notes li a").first().innerText().then((text) => text.replace(/\s+/g, " ")), "1 look <b>here</b> why twice?");
  }
  await until("the focus returns", () => page.evaluate((to) => document.activeElement.id === to, place));
  // A second time it is edited, and b does not throw it away.
  await page.keyboard.press("b");
  assert.match(await page.locator("[role=status].spoken").innerText(), /m edits it/);
  await page.keyboard.press("m");
  await page.waitForSelector("dialog.edit[open]");
  assert.equal(await page.locator("dialog.edit textarea").inputValue(), "look <b>here</b>\nwhy twice?");
  await page.keyboard.press("Escape");
  await page.locator("#notes li a").first().click();
  await page.waitForURL(new RegExp(`#${place}`));

  // The head of a turn has a note of its own.
  await page.evaluate(() => { const one = document.querySelector(".turn-head"); one.tabIndex = -1; one.focus(); });
  await page.keyboard.press("b");
  await other.waitForSelector(".turn-head > .bookmark");

  await page.locator("[data-act=rename]").click();
  await page.locator("dialog.edit input").fill("My own name");
  await page.keyboard.press("Enter");
  await page.locator("[data-act=tags]").click();
  await page.locator("dialog.edit input").fill("cache, to read");
  await page.keyboard.press("Enter");
  await until("the tags in the other page", async () => /to read/.test(await other.locator("#session-head").innerText()));
  await until("the name in the other page", async () => (await other.locator("#session-head h1").innerText()) === "My own name");
  await until("the name in the list", async () => /My own name/.test(await list.locator(".row").first().innerText()));
  await page.locator("[data-act=tags]").click();
  await page.getByRole("button", { name: "Remove the tag cache" }).click();
  await until("the tag is gone", async () => !/cache,/.test(await other.locator("#session-head").innerText()));
  await page.keyboard.press("Escape");
  await page.locator("[data-act=note]").click();
  await page.locator("dialog.edit textarea").fill("all in all fine");
  await page.keyboard.press("Control+Enter");
  await until("the note on the session", async () => /all in all fine/.test(await other.locator("#session-head").innerText()));

  const shown = await show(data, "show", id, "--full");
  assert.match(shown, /My own name/);
  assert.match(shown, /✎ look <b>here<\/b>\n +why twice\?/);
  assert.match(shown, /✎ all in all fine/);
  // What is written elsewhere comes here.
  await show(data, "note", id, "from the command line", "--turn", "1");
  await until("a note from the command line", async () => /from the command line/.test(await page.locator(".turn-head").first().innerText()));
  await page.goto(`${server.origin}/?q=twice`);
  await page.waitForSelector(".hit-row");
  assert.match(await page.locator(".hit-row").first().innerText(), /why twice\?/);
  if (process.env.PICTURES) {
    await other.bringToFront();
    await other.screenshot({ path: join(process.env.PICTURES, "notes.png") });
  }
  assert.deepEqual(page.troubles, []);
});

test("what cannot be saved stays in its field, and says why", async (t) => {
  const { server, page } = await session(t, { viewport: { width: 400, height: 800 }, colorScheme: "light" });
  await page.locator("[data-act=note]").click();
  await page.locator("dialog.edit textarea").fill("do not lose me");
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
  if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, "notes-400.png") });
  await server.stop();
  await page.locator("dialog.edit .primary").click();
  await until("the reason", async () => /Not saved/.test(await page.locator("dialog.edit [role=alert]").innerText()));
  assert.equal(await page.locator("dialog.edit textarea").inputValue(), "do not lose me");
});
