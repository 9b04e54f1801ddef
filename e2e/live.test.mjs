// A page that grew live equals the page that is loaded later (law 2; R-000-14, R-000-15, R-001-34), and it
// follows its end only while the user is there (R-003-42).

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { appendFile, mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { closeBrowser, folder, freePort, open, program, root, serve, until } from "./program.mjs";

after(closeBrowser);

const LOG = ".claude/projects/-home-dev-weather-app/recorded.jsonl";

async function recorded(name) {
  const text = await readFile(join(root, "fixtures/claude-code", name, "log.jsonl"), "utf8");
  return text.split("\n").filter((line) => line !== "").map((line) => `${line}\n`);
}

/** The transcript piece by piece, without the user's own changes (folds, selection). */
const transcript = () => {
  const plain = (element) => {
    const copy = element.cloneNode(true);
    for (const one of [copy, ...copy.querySelectorAll(".hit, .chosen, .first-unseen")]) {
      one.classList.remove("hit", "chosen", "first-unseen");
    }
    return copy.outerHTML;
  };
  return [
    plain(document.getElementById("session-head")),
    plain(document.getElementById("tasks")),
    ...[...document.querySelectorAll(".turns > .turn")].flatMap((turn) => [
      turn.cloneNode(false).outerHTML, ...[...turn.children].map(plain),
    ]),
    document.querySelector(".outline ol").innerHTML.replaceAll(/ class="(here|)"/g, ""),
  ];
};

async function appendSlowly(path, lines) {
  for (let at = 0; at < lines.length; at += 3) {
    await appendFile(path, lines.slice(at, at + 3).join(""));
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
}

/** Opens a page on a session that has the first `count` lines of a recording. */
async function watched(t, name, count, options) {
  const [data, home, lines] = [await folder(t), await folder(t), await recorded(name)];
  const log = join(home, LOG);
  await mkdir(dirname(log), { recursive: true });
  await appendFile(log, lines.slice(0, count).join(""));
  const arguments_ = ["--port", String(await freePort())];
  const server = await serve(t, data, arguments_, home);
  const page = await open(t, options);
  await page.goto(server.address);
  await until("the session is listed", async () => {
    await page.goto(server.origin);
    return (await page.locator(".row").count()) === 1;
  });
  await page.click(".row a");
  await page.waitForSelector(".session[data-live=on] .turn");
  const again = () => serve(t, data, arguments_, home);
  return { log, lines: lines.slice(count), server, page, again };
}

/** How the last turn of some recordings ends. */
const ENDS = { "error-gives-up": "failed", "interrupted-mid-tool": "interrupted" };

for (const name of ["discovery-loop", "subagents-parallel-and-background", "question-answered", ...Object.keys(ENDS)]) {
  // R-000-14, R-000-15, R-001-34
  test(`${name}: the live page equals the loaded page`, async (t) => {
    const { log, lines, server, page } = await watched(t, name, 4);
    await appendSlowly(log, lines);
    const fresh = await open(t);
    await fresh.goto(server.address);
    const address = page.url();
    const loaded = async () => { await fresh.goto(address); return fresh.evaluate(transcript); };
    // Everything has arrived when a freshly loaded page no longer changes.
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
    if (ENDS[name]) assert.equal(await page.locator(".turn-head").last().getAttribute("data-state"), ENDS[name]);
    if (name !== "discovery-loop") return;
    // The task list is beside the transcript and stays visible (R-003-43).
    assert.match(await page.locator("#tasks").innerText(), /Tasks 2 of 2\s+☑\s+Reproduce the early expiry\s+☑\s+Fix TTL comparison/);
    await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
    assert.equal(await page.locator("#tasks").isVisible(), true);
    const box = await page.locator("#tasks").boundingBox();
    assert.ok(box.y > 0 && box.y + box.height <= 800, JSON.stringify(box));
  });
}

// R-003-42
test("the page follows its end while the user is there, and keeps its position otherwise", async (t) => {
  const { log, lines, page } = await watched(t, "discovery-loop", 40, { viewport: { width: 900, height: 400 } });
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
  await grow(0, 12);
  await until("at the end", async () => (await distance()) <= 48 || distance());
  await page.mouse.move(450, 200);
  await page.mouse.wheel(0, -600);
  await until("scrolled up", async () => (await distance()) > 200 || distance());
  await page.waitForTimeout(150);
  const top = await page.evaluate(() => document.documentElement.scrollTop);
  await grow(12, 24);
  assert.equal(await page.evaluate(() => document.documentElement.scrollTop), top);
  assert.match(await page.locator(".news").innerText(), /^\d+ new parts?$/);
  await page.click(".news");
  await until("at the end again", async () => (await distance()) <= 48 || distance());
  assert.equal(await page.locator(".news").isVisible(), false);
  await grow(24, 40);
  await until("still at the end", async () => (await distance()) <= 48 || distance());
  assert.deepEqual(page.troubles, []);
});

test("a page continues after the server is killed and restarted in the middle of a turn", async (t) => {
  const { log, lines, server: before, page, again } = await watched(t, "discovery-loop", 30);
  await before.stop("SIGKILL");
  await appendFile(log, lines.slice(0, 20).join(""));
  const server = await again();
  await appendSlowly(log, lines.slice(20));
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

test("`import -` grows an open page word by word", async (t) => {
  const [data, home] = [await folder(t), await folder(t)];
  const server = await serve(t, data, ["--port", "0"], home);
  const stream = (await readFile(join(root, "fixtures/claude-code/discovery-loop/stream.jsonl"), "utf8")).split("\n").map((line) => `${line}\n`);
  const agent = spawn(program, ["--data", data, "import", "-"], { env: { PATH: process.env.PATH, HOME: home, TZ: "UTC" }, stdio: ["pipe", "ignore", "inherit"] });
  t.after(() => agent.kill("SIGKILL"));
  // Line 8 has the first words of a thought.
  agent.stdin.write(stream.slice(0, 8).join(""));
  const page = await open(t);
  await page.goto(server.address);
  await until("the session is listed", async () => {
    await page.goto(server.origin);
    return (await page.locator(".row").count()) === 1;
  });
  await page.click(".row a");
  await page.waitForSelector(".session[data-live=on] .part[data-kind=reasoning]");
  const thought = () => page.locator(".part[data-kind=reasoning]").first().evaluate((part) => part.textContent);
  const seen = [];
  for (const line of stream.slice(8, 30)) {
    const before = await thought();
    agent.stdin.write(line);
    const { event } = JSON.parse(line);
    if (event?.delta?.type !== "thinking_delta") { if (event?.type === "content_block_stop") break; continue; }
    await until("the next words", async () => (await thought()) !== before || before);
    seen.push(await thought());
  }
  assert.ok(seen.length >= 3, `one after the other: ${seen.length}`);
  for (const [at, text] of seen.entries()) if (at > 0) assert.ok(text.length > seen[at - 1].length);
  agent.stdin.end();
});
