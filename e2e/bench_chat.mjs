// How fast a chat is: from the agent to the capture, to those who read the archive, to the screen of a
// browser; from an answer to the agent. Run by `scripts/bench chat`; the goals are in the last column.

import { execFile } from "node:child_process";
import { existsSync, openSync, readSync, readdirSync, readFileSync, statSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { ms, now, pause, share } from "./bench_clock.mjs";
import { subscribe } from "./bench_socket.mjs";
import { closeBrowser, open, program, root, serve, until } from "./program.mjs";

const wanted = process.argv.slice(2);
const undo = [];
const here = { after: (cleanup) => undo.unshift(cleanup) };
const row = (what, value, goal) => console.log(`${what.padEnd(62)} ${String(value).padStart(12)}   ${goal}`);

const data = await mkdtemp(join(tmpdir(), "uc-"));
here.after(() => rm(data, { recursive: true, force: true, maxRetries: 5 }));
const [home, project, log] = [join(data, "home"), join(data, "project"), join(data, "agent.log")];
await mkdir(join(home, ".config/unspool"), { recursive: true });
await mkdir(project);
await writeFile(join(home, ".config/unspool/config.toml"), "");
const environment = { PATH: process.env.PATH, HOME: home, TZ: "UTC", LC_ALL: "C.UTF-8" };
const run = (...options) => promisify(execFile)(program, ["--data", data, ...options], { env: environment, cwd: project });

const noted = (what) => (existsSync(log) ? readFileSync(log, "utf8").trim().split("\n").map((line) => JSON.parse(line)).filter((one) => one.what === what) : []);
const stamps = (text) => [...text.matchAll(/\[(\d{13}\.\d+)\]/g)].map(([, at]) => Number(at));
const memory = (pid, field = "VmRSS") => Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1024;

/** A connection to the host of a chat. */
async function attach(chat, hear = () => {}) {
  const socket = connect(join(data, "chats", chat, "sock"));
  const client = { socket, state: {}, number: 0, done: new Map() };
  const begin = now();
  await new Promise((resolve, reject) => {
    socket.once("error", reject);
    createInterface({ input: socket }).on("line", (line) => {
      const message = JSON.parse(line);
      if (message.hello) { Object.assign(client, { process: message.hello.process, attached: now() - begin }); client.state = message.hello.state; resolve(); }
      if (message.changed) Object.assign(client.state, message.changed);
      if (message.done) client.done.get(message.done.number)?.(message.done.outcome);
      hear(message);
    });
  });
  client.send = (command) => {
    client.number += 1;
    const { number } = client;
    socket.write(`${JSON.stringify({ number, by: "bench", do: command })}\n`);
    return new Promise((resolve) => { client.done.set(number, resolve); });
  };
  client.turn = async (text, seconds = 60) => {
    const before = client.state.last_turn?.number ?? 0;
    await client.send({ prompt: { text } });
    await until(`the turn ${text}`, () => (client.state.last_turn?.number ?? 0) > before, seconds);
  };
  here.after(() => socket.destroy());
  return client;
}

/** A chat that asks its surfaces. */
async function chat() {
  const { stdout } = await run("chat", "-p", "ticks 1 1", "--detach", "--json", "--permissions", "ask", "--", process.execPath, join(root, "e2e/bench_agent.mjs"), log);
  const { chat: id, agent_session_id: session } = JSON.parse(stdout);
  here.after(() => run("chat", "--end", id).catch(() => {}));
  const client = await attach(id);
  await until("the chat is ready", () => client.state.phase === "idle");
  return { id, session, client };
}

/** Reads a file as it grows; calls `hear` with what came. */
function tail(path, hear) {
  const file = openSync(path, "r");
  let [at, open] = [statSync(path).size, true];
  const buffer = Buffer.alloc(1 << 20);
  const look = () => {
    for (let read = readSync(file, buffer, 0, buffer.length, at); read > 0; read = readSync(file, buffer, 0, buffer.length, at)) {
      at += read;
      hear(buffer.toString("utf8", 0, read));
    }
    if (open) setImmediate(look);
  };
  look();
  return () => { open = false; };
}

const measures = {
  async latency() {
    const server = await serve(here, data, ["--chat", "--port", "0"], home);
    const { client, id } = await chat();
    const authorization = `Bearer ${new URL(server.address).searchParams.get("token")}`;
    const sessions = async () => {
      const found = await (await fetch(`${server.origin}/api/sessions`, { headers: { authorization } })).json();
      return found.sessions ?? found;
    };
    await until("the session is listed", async () => (await sessions()).length === 1);
    const [{ id: listed }] = await sessions();
    const { seq } = await (await fetch(`${server.origin}/api/sessions/${listed}`, { headers: { authorization } })).json();
    const [captured, published] = [[], []];
    const stop = tail(client.state.capture, (text) => { const at = now(); for (const sent of stamps(text)) captured.push(at - sent); });
    const told = new Set();
    const watcher = subscribe(server, { id: listed, seq }, (frame) => {
      const at = now();
      // A change may have the text so far: only what is new counts.
      for (const sent of stamps(frame.toString())) if (!told.has(sent)) { told.add(sent); published.push(at - sent); }
    });
    await client.turn("ticks 400 10");
    stop();
    await pause(500);
    watcher.destroy();
    row("a chunk of the agent to the capture, 95 %", ms(share(captured, 0.95)), "at most 2 ms");
    row("  to those who read the archive, 95 %", ms(share(published, 0.95)), "at most 15 ms");
    row("  chunks that they got", `${published.length} of 400`, "");

    const page = await open(here);
    await page.addInitScript(() => {
      window.seen = {};
      const look = () => {
        const at = performance.timeOrigin + performance.now();
        const text = document.querySelector(".turns")?.innerText + (document.querySelector(".ask")?.innerText ?? "");
        for (const [, sent] of text.matchAll(/\[(\d{13}\.\d+)\]/g)) window.seen[sent] ??= at - Number(sent);
        requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    });
    await page.goto(server.address);
    await page.goto(`${server.origin}/s/${listed}`);
    await page.waitForSelector(".session[data-live=on]");
    const seen = async (from) => Object.entries(await page.evaluate(() => window.seen)).filter(([sent]) => Number(sent) > from).map(([, took]) => took);
    let from = now();
    await client.turn("parts 100 200");
    await pause(500);
    const begun = await seen(from);
    row("first chunk of a part to paint in the browser, 95 %", ms(share(begun, 0.95)), "at most 60 ms");
    row("  parts that were seen", `${begun.length} of 100`, "");
    from = now();
    await client.turn("ticks 200 30");
    await pause(500);
    row("later text to paint in the browser, 95 %", ms(share(await seen(from), 0.95)), "at most 130 ms");

    // Questions: to the browser, and answers to the agent and to another surface.
    const heard = [];
    const other = await attach(id, (message) => { if (message.changed?.answers?.length) heard.push(now()); });
    row("attach to a chat", ms(other.attached), "at most 300 ms");
    from = now();
    const answered = [];
    const turn = client.turn("asks 40");
    for (let nth = 0; nth < 40; nth += 1) {
      await until("a question", () => client.state.questions.length === 1 && client.state.questions[0].id !== answered.at(-1)?.id);
      const { id: question } = client.state.questions[0];
      await pause(300);
      answered.push({ id: question, at: now() });
      await client.send({ answer: { question, answer: { option: "y" } } });
    }
    await turn;
    const got = noted("answer").slice(-40).map(({ at }) => at);
    row("a question to the screen of the browser, 95 %", ms(share(await seen(from), 0.95)), "at most 100 ms");
    row("an answer to the agent, 95 %", ms(share(answered.map(({ at }, nth) => got[nth] - at), 0.95)), "at most 10 ms");
    row("an answer to another surface, 95 %", ms(share(answered.map(({ at }, nth) => heard[nth] - at), 0.95)), "at most 100 ms");

    const waits = client.turn("wait");
    await until("it works", () => client.state.phase === "running");
    await pause(200);
    const at = now();
    await client.send("cancel");
    await waits;
    row("an interruption to the agent", ms(noted("cancel").at(-1).at - at), "at most 5 ms");
    await run("chat", "--end", id);
    await server.stop();
  },

  async memory() {
    const { client } = await chat();
    await pause(1000);
    row("memory of a host without work", `${memory(client.process).toFixed(1)} MB`, "at most 12 MB");
    const begin = now();
    await client.turn("updates 100000 10000", 600);
    const took = (now() - begin) / 1000;
    row("memory of a host after 100,000 updates and 1 GB of wire", `${memory(client.process, "VmHWM").toFixed(1)} MB`, "at most 32 MB");
    row("  which took", `${took.toFixed(1)} s`, "");
  },

  async flood() {
    const server = await serve(here, data, ["--port", "0"], home);
    const { client, session } = await chat();
    await client.turn("flood 50000 10", 120);
    const took = noted("flooded").at(-1).took / 1000;
    row("50,000 updates a second for 10 s, sent in", `${took.toFixed(1)} s`, "");
    const size = async () => {
      const shown = JSON.parse((await run("show", session, "--json")).stdout);
      const texts = shown.turns.at(-1).parts.filter((part) => part.kind === "text").map((part) => part.text ?? "");
      return { updates: texts.join("").match(/\[|y /g)?.length ?? 0 };
    };
    await until("the transcript is complete", async () => { const { updates } = await size(); return updates === 500_000 || updates; }, 120).catch((error) => row("  not complete", error.message, ""));
    row("  updates in the transcript", (await size()).updates, "500000");
    await server.stop();
  },

  async growth() {
    const { client } = await chat();
    const before = statSync(client.state.capture).size;
    await client.turn("grow 10 60", 300);
    const wrote = (statSync(client.state.capture).size - before) / 1e6;
    row("capture of 10 MB of output, told as a growing whole in a minute", `${wrote.toFixed(1)} MB`, "at most 40 MB");
  },

  async processes() {
    const { id, client } = await chat();
    const agents = () => readdirSync("/proc").filter((pid) => /^\d+$/.test(pid)).filter((pid) => { try { return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(log); } catch { return false; } });
    row("processes of the agent while it runs", agents().length, "");
    await run("chat", "--end", id);
    await pause(6000);
    row("processes left 6 s after `chat --end`", agents().length + Number(existsSync(`/proc/${client.process}`)), "0");
  },
};

try {
  for (const [name, measure] of Object.entries(measures)) if (wanted.length === 0 || wanted.includes(name)) await measure();
} finally {
  for (const cleanup of undo) await cleanup();
  await closeBrowser();
}
