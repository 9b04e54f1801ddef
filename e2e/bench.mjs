// Benchmarks of the web server and pages: the real program in a real browser. `scripts/bench web` builds
// the program and runs this; an argument selects one measurement: list, many, long, paint, subscribers.

import { spawnSync } from "node:child_process";
import { appendFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { subscribe } from "./bench_socket.mjs";
import { Log } from "./synthetic_log.mjs";
import { closeBrowser, open, root, serve, until } from "./program.mjs";

const folders = [];
const ends = [];
const test = { after: (end) => ends.push(end) };
const wanted = process.argv.slice(2);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function folder() {
  const path = await mkdtemp(join(tmpdir(), "unspool-bench-"));
  folders.push(path);
  return path;
}

function share(values, part) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
}

function row(what, value, goal) {
  console.log(`${what.padEnd(58)} ${String(value).padStart(16)}   ${goal}`);
}

const ms = (value) => `${value.toFixed(1)} ms`;

async function logged(home, name, text) {
  const path = join(home, ".claude/projects/-home-dev-weather-app", `${name}.jsonl`);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
  return path;
}

async function ask(server, path) {
  const token = new URL(server.address).searchParams.get("token");
  const began = performance.now();
  const answer = await fetch(server.origin + path, { headers: { authorization: `Bearer ${token}` } });
  const reader = answer.body.getReader();
  await reader.read();
  const first = performance.now() - began;
  while (!(await reader.read()).done);
  return { status: answer.status, first, all: performance.now() - began };
}

const sessions = async (server) => {
  const token = new URL(server.address).searchParams.get("token");
  const answer = await fetch(`${server.origin}/api/sessions`, { headers: { authorization: `Bearer ${token}` } });
  return answer.json();
};

async function settled(server, parts) {
  await until("everything is stored", async () => {
    const [first] = await sessions(server);
    if (!first) return "nothing";
    const answer = await ask(server, `/s/${first.id}`);
    return answer.status === 200 && (parts?.(first) ?? true) || first.title;
  }, 300);
  return (await sessions(server))[0].id;
}

// ---- the list of many sessions ----

async function list() {
  const [data, home] = [await folder(), await folder()];
  const count = 10_000;
  for (let nth = 0; nth < count; nth += 1) {
    const id = `${String(nth).padStart(8, "0")}-0000-4000-8000-000000000000`;
    const log = new Log(id).prompt(`Prompt ${nth} of many`).say("Done");
    await logged(home, id, log.take());
  }
  const server = await serve(test, data, ["--port", "0"], home);
  await until("all sessions are stored", async () => {
    const answer = await ask(server, "/");
    const found = (await sessions(server)).length;
    return answer.status === 200 && found >= 1000 || found;
  }, 300);
  await pause(3000);
  const times = [];
  for (let nth = 0; nth < 60; nth += 1) times.push((await ask(server, "/")).first);
  row("first page of 10,000 sessions, first byte, median", ms(share(times, 0.5)), "under 100 ms");
  row("first page of 10,000 sessions, first byte, 95 %", ms(share(times, 0.95)), "under 100 ms");
  await server.stop();
}

// ---- the list of very many sessions, in a browser ----

async function many() {
  const [data, home] = [await folder(), await folder()];
  const made = spawnSync("cargo", ["run", "--quiet", "--release", "-p", "unspool-ingest", "--example", "large_archive", "--", data, "50000"], { cwd: root, stdio: ["ignore", "ignore", "inherit"] });
  if (made.status !== 0) throw new Error("the sessions could not be made");
  const server = await serve(test, data, ["--port", "0"], home);
  await pause(2000);
  const times = [];
  for (let nth = 0; nth < 40; nth += 1) times.push((await ask(server, "/")).first);
  row("first page of 50,000 sessions, first byte, median", ms(share(times, 0.5)), "");
  row("first page of 50,000 sessions, first byte, 95 %", ms(share(times, 0.95)), "");
  const page = await open(test, { viewport: { width: 1280, height: 900 } });
  await page.goto(server.address);
  await pause(2500);
  const { rate, slow } = await scroll(page, 100);
  row("scrolling through 50,000 sessions, frames a second", rate.toFixed(1), "60");
  row("scrolling through them, time between frames, 95 %", ms(slow), "17 ms");
  row("scrolling through them, rows in the page", await page.locator(".row").count(), "bounded");
  await server.stop();
}

// ---- a session of 100,000 parts ----

/** Writes this many parts in turns of different lengths; one turn has a fifth of them. */
function longLog(parts) {
  const log = new Log();
  let made = 0;
  for (let turn = 0; made < parts; turn += 1) {
    log.prompt(`Prompt ${turn}`);
    const own = turn === 40 ? parts / 5 : 240;
    for (let nth = 0; nth < own && made < parts; nth += 3, made += 3) {
      log.think(`What to do about step ${nth} of turn ${turn}, and why`);
      log.call("Bash", { command: `make step-${nth}` }, `step ${nth}\n${"ok ".repeat(20)}`);
      log.say(`Step **${nth}** is done:\n\n\`\`\`rust\nfn step_${nth}() -> u32 { ${nth} }\n\`\`\``);
    }
  }
  return log;
}

async function scroll(page, by) {
  await page.mouse.move(640, 450);
  const frames = page.evaluate(() => new Promise((resolve) => {
    const times = [];
    const end = performance.now() + 5000;
    const step = (now) => { times.push(now); if (now < end) requestAnimationFrame(step); else resolve(times); };
    requestAnimationFrame(step);
  }));
  const end = Date.now() + 4800;
  while (Date.now() < end) { await page.mouse.wheel(0, by); await pause(16); }
  const times = await frames;
  const gaps = times.slice(1).map((time, at) => time - times[at]);
  return { rate: (1000 * gaps.length) / (times.at(-1) - times[0]), slow: share(gaps, 0.95) };
}

async function long() {
  const [data, home] = [await folder(), await folder()];
  await logged(home, "long", longLog(100_000).take());
  const server = await serve(test, data, ["--port", "0"], home);
  // The import is complete when nothing was added for a while.
  let [last, calm] = ["", 0];
  await until("everything is stored", async () => {
    const now = JSON.stringify(await sessions(server));
    calm = now === last && now !== "[]" ? calm + 1 : 0;
    last = now;
    await pause(1000);
    return calm >= 6 || calm;
  }, 300);
  const id = (await sessions(server))[0].id;
  const page = await open(test, { viewport: { width: 1280, height: 900 } });
  await page.goto(server.address);
  const paints = [];
  for (let nth = 0; nth < 9; nth += 1) {
    // The browser tears down the previous page about a second later and paints nothing meanwhile.
    await pause(2500);
    await page.goto(`${server.origin}/s/${id}${nth % 3 === 1 ? "?turn=40" : ""}`);
    await page.waitForSelector(".session[data-live=on]");
    paints.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN));
  }
  row("session of 100,000 parts, first paint, median", ms(share(paints, 0.5)), "under 300 ms");
  row("session of 100,000 parts, first paint, slowest of 9", ms(share(paints, 1)), "under 300 ms");
  row("session of 100,000 parts, parts in the page", await page.locator("[data-at]").count(), "bounded");

  // Scroll up at about 2,000 pixels a second through windows that must be loaded; then, as the baseline of
  // this machine, back down through loaded content.
  // As above.
  await pause(2500);
  const loading = await scroll(page, -100);
  const count = await page.locator("[data-at]").count();
  await page.evaluate(() => { for (const gap of document.querySelectorAll(".gap")) gap.remove(); scrollTo(0, 0); });
  const still = await scroll(page, 100);
  row("scrolling through it, frames a second", loading.rate.toFixed(1), "60");
  row("scrolling through it, time between frames, 95 %", ms(loading.slow), "17 ms");
  row("the same where nothing is loaded, frames a second", still.rate.toFixed(1), "");
  row("scrolling, parts in the page afterwards", count, "bounded");
  const memory = await readFile(`/proc/${server.pid}/status`, "utf8");
  row("server, resident memory", `${(Number(/VmRSS:\s+(\d+)/.exec(memory)[1]) / 1024).toFixed(0)} MB`, "");
  await server.stop();
}

// ---- from a line in a log to paint ----

async function paint() {
  const [data, home] = [await folder(), await folder()];
  const log = new Log();
  for (let nth = 0; nth < 40; nth += 1) log.prompt(`Prompt ${nth}`).say(`Answer ${nth}`);
  const path = await logged(home, "live", log.prompt("Now").take());
  const server = await serve(test, data, ["--port", "0"], home);
  const id = await settled(server);
  const page = await open(test, { viewport: { width: 1280, height: 900 } });
  await page.goto(server.address);
  await page.goto(`${server.origin}/s/${id}`);
  await page.waitForSelector(".session[data-live=on]");
  await page.evaluate(() => {
    window.seen = {};
    new MutationObserver(() => {
      for (const part of document.querySelectorAll(".part.text")) {
        const word = /word-(\d+)/.exec(part.textContent)?.[1];
        // Painted with the next frame.
        if (word && !(word in seen)) { seen[word] = null; requestAnimationFrame(() => setTimeout(() => { seen[word] = Date.now(); })); }
      }
    }).observe(document.querySelector(".turns"), { childList: true, subtree: true, characterData: true });
  });
  const written = [];
  for (let nth = 0; nth < 100; nth += 1) {
    log.say(`word-${nth}`);
    const text = log.take();
    written.push(Date.now());
    await appendFile(path, text);
    await pause(60 + Math.random() * 60);
  }
  await pause(1000);
  const seen = await page.evaluate(() => window.seen);
  const delays = written.map((at, nth) => (seen[nth] ?? Infinity) - at);
  row("a line in the log to paint in the browser, median", ms(share(delays, 0.5)), "");
  row("a line in the log to paint in the browser, 95 %", ms(share(delays, 0.95)), "under 150 ms");
  row("lines that were never seen", delays.filter((delay) => delay === Infinity).length, "0");
  await server.stop();
}

// ---- a thousand subscribers ----

async function subscribers() {
  const [data, home] = [await folder(), await folder()];
  const log = new Log();
  const path = await logged(home, "watched", log.prompt("Now").say("Yes").take());
  const server = await serve(test, data, ["--port", "0"], home);
  const id = await settled(server);
  await pause(500);
  const token = new URL(server.address).searchParams.get("token");
  const answer = await fetch(`${server.origin}/api/sessions/${id}`, { headers: { authorization: `Bearer ${token}` } });
  const { seq } = await answer.json();
  const watchers = Array.from({ length: 1000 }, () => ({ seq, frames: 0, odd: 0 }));
  const began = /"from_seq":(\d+),"seq":(\d+)/;
  for (const watcher of watchers) {
    watcher.socket = subscribe(server, { id, seq }, (frame) => {
      const found = began.exec(frame.subarray(0, 160).toString("latin1"));
      if (!found || Number(found[1]) !== watcher.seq) { watcher.odd += 1; return; }
      watcher.seq = Number(found[2]);
      watcher.frames += 1;
    });
    await pause(1);
  }
  await pause(1500);
  const start = Date.now();
  const count = 1000;
  for (let nth = 0; nth < count; nth += 1) {
    await appendFile(path, log.say(`Change ${nth}`).take());
    await pause(Math.max(0, start + (nth + 1) * 10 - Date.now()));
  }
  const took = (Date.now() - start) / 1000;
  const end = async () => (await (await fetch(`${server.origin}/api/sessions/${id}`, { headers: { authorization: `Bearer ${token}` } })).json()).seq;
  let last = await end();
  await until("everybody has everything", async () => {
    last = await end();
    return watchers.every((watcher) => watcher.seq === last) || watchers.filter((watcher) => watcher.seq !== last).length;
  }, 60);
  const memory = await readFile(`/proc/${server.pid}/status`, "utf8");
  row("1,000 subscribers, lines a second", (count / took).toFixed(0), "100");
  row("1,000 subscribers, changes lost or out of order", watchers.reduce((sum, one) => sum + one.odd, 0), "0");
  row("1,000 subscribers, frames each, median", share(watchers.map((one) => one.frames), 0.5), "");
  row("1,000 subscribers, server's highest memory", `${(Number(/VmHWM:\s+(\d+)/.exec(memory)[1]) / 1024).toFixed(0)} MB`, "under 300 MB");
  watchers.forEach((watcher) => watcher.socket.destroy());
  await server.stop();
}

const all = { list, many, long, paint, subscribers };
try {
  for (const [name, measure] of Object.entries(all)) {
    if (wanted.length === 0 || wanted.includes(name)) await measure();
  }
} finally {
  for (const end of ends) await end();
  await closeBrowser();
  for (const path of folders) await rm(path, { recursive: true, force: true, maxRetries: 5 });
}
