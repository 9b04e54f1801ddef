// A page that grew while an agent worked is the page that is loaded later (law 2; R-000-14, R-000-15,
// R-001-34), and it follows its end only while its reader is there (R-003-42).

import assert from "node:assert/strict";
import { appendFile, mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { closeBrowser, folder, freePort, open, root, serve, until } from "./program.mjs";

after(closeBrowser);

const LOG = ".claude/projects/-home-dev-weather-app/recorded.jsonl";

async function recorded(name) {
  const text = await readFile(join(root, "fixtures/claude-code", name, "log.jsonl"), "utf8");
  return text.split("\n").filter((line) => line !== "").map((line) => `${line}\n`);
}

/** Everything of the transcript, piece by piece. */
const transcript = () => [
  document.getElementById("session-head").outerHTML,
  ...[...document.querySelectorAll(".turns > .turn")].flatMap((turn) => [
    turn.cloneNode(false).outerHTML, ...[...turn.children].map((piece) => piece.outerHTML),
  ]),
  document.querySelector(".outline ol").innerHTML.replaceAll(/ class="(here|)"/g, ""),
];

async function appendSlowly(path, lines) {
  for (let at = 0; at < lines.length; at += 3) {
    await appendFile(path, lines.slice(at, at + 3).join(""));
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
}

for (const name of ["discovery-loop", "subagents-parallel-and-background", "question-answered"]) {
  test(`${name}: the page that grew is the page that is loaded`, async (t) => {
    const data = await folder(t);
    const home = await folder(t);
    const lines = await recorded(name);
    const log = join(home, LOG);
    await mkdir(dirname(log), { recursive: true });
    const first = lines.findIndex((line) => line.includes('"type":"user"')) + 1;
    await appendFile(log, lines.slice(0, first).join(""));
    const server = await serve(t, data, ["--port", String(await freePort())], home);
    const page = await open(t);
    await page.goto(server.address);
    await until("the session is listed", async () => {
      await page.goto(server.origin);
      return (await page.locator(".row").count()) === 1;
    });
    await page.click(".row a");
    await page.waitForSelector(".turn");
    await appendSlowly(log, lines.slice(first));
    const fresh = await open(t);
    await fresh.goto(server.address);
    const address = page.url();
    const loaded = async () => { await fresh.goto(address); return fresh.evaluate(transcript); };
    // All of it has arrived when the page that is loaded stays as it is.
    let last;
    await until("all of the log is shown", async () => {
      const [grown, now] = [await page.evaluate(transcript), await loaded()];
      const same = JSON.stringify(grown) === JSON.stringify(now) && JSON.stringify(now) === last;
      last = JSON.stringify(now);
      return same || { grown: grown.length, loaded: now.length };
    });
    const [grown, now] = [await page.evaluate(transcript), await loaded()];
    assert.ok(now.length > 5);
    for (const [at, piece] of now.entries()) assert.equal(grown[at], piece, `piece ${at}`);
    assert.equal(grown.length, now.length);
    assert.deepEqual(page.troubles, []);
  });
}

test("the page follows its end while its reader is there, and stays put otherwise", async (t) => {
  const data = await folder(t);
  const home = await folder(t);
  const lines = await recorded("discovery-loop");
  const log = join(home, LOG);
  await mkdir(dirname(log), { recursive: true });
  await appendFile(log, lines.slice(0, 40).join(""));
  const server = await serve(t, data, ["--port", String(await freePort())], home);
  const page = await open(t, { viewport: { width: 900, height: 400 } });
  await page.goto(server.address);
  await until("the session is listed", async () => {
    await page.goto(server.origin);
    return (await page.locator(".row").count()) === 1;
  });
  await page.click(".row a");
  await page.waitForSelector(".turn");
  const distance = () => page.evaluate(() => {
    const { scrollHeight, clientHeight, scrollTop } = document.documentElement;
    return scrollHeight - clientHeight - scrollTop;
  });
  const parts = () => page.locator(".turn > *").count();
  const grow = async (from, to) => {
    const before = await parts();
    await appendFile(log, lines.slice(from, to).join(""));
    await until("more parts", async () => (await parts()) > before || (await parts()));
  };
  await page.keyboard.press("Shift+G");
  await grow(40, 52);
  await until("at the end", async () => (await distance()) <= 48 || distance());
  await page.mouse.move(450, 200);
  await page.mouse.wheel(0, -600);
  await until("scrolled up", async () => (await distance()) > 200 || distance());
  await page.waitForTimeout(150);
  const top = await page.evaluate(() => document.documentElement.scrollTop);
  await grow(52, 64);
  assert.equal(await page.evaluate(() => document.documentElement.scrollTop), top);
  assert.match(await page.locator(".news").innerText(), /^\d+ new parts?$/);
  await page.click(".news");
  await until("at the end again", async () => (await distance()) <= 48 || distance());
  assert.equal(await page.locator(".news").isVisible(), false);
  await grow(64, 80);
  await until("still at the end", async () => (await distance()) <= 48 || distance());
  assert.deepEqual(page.troubles, []);
});

test("a page goes on after the server was killed and started again in the middle of a turn", async (t) => {
  const data = await folder(t);
  const home = await folder(t);
  const lines = await recorded("discovery-loop");
  const log = join(home, LOG);
  await mkdir(dirname(log), { recursive: true });
  await appendFile(log, lines.slice(0, 30).join(""));
  const port = String(await freePort());
  const before = await serve(t, data, ["--port", port], home);
  const page = await open(t);
  await page.goto(before.address);
  await until("the session is listed", async () => {
    await page.goto(before.origin);
    return (await page.locator(".row").count()) === 1;
  });
  await page.click(".row a");
  await page.waitForSelector(".turn");
  await before.stop("SIGKILL");
  await appendFile(log, lines.slice(30, 50).join(""));
  const server = await serve(t, data, ["--port", port], home);
  await appendSlowly(log, lines.slice(50));
  const fresh = await open(t);
  await fresh.goto(server.address);
  await until("the page that went on is the page that is loaded", async () => {
    await fresh.goto(page.url());
    const [grown, loaded] = [await page.evaluate(transcript), await fresh.evaluate(transcript)];
    return JSON.stringify(grown) === JSON.stringify(loaded)
      && (await page.locator(".turn-head[data-state=completed]").count()) === 1
      || { differs: loaded.flatMap((piece, at) => grown[at] === piece ? [] : [grown[at], piece]) };
  }, 20);
});
