// The HTML export, opened from disk in a real browser: it loads nothing, runs no agent content, and opens
// however long the session is.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { Log } from "./synthetic_log.mjs";
import { closeBrowser, folder, freePort, open, root, serve, until } from "./program.mjs";

after(closeBrowser);

const program = process.env.UNSPOOL_PROGRAM ?? join(root, "target/debug/unspool");
const execute = promisify(execFile);
const unspool = async (data, ...options) => execute(program, ["--data", data, ...options], { env: { PATH: process.env.PATH, HOME: data }, maxBuffer: 1e8 });

/** A page that records all of its requests. */
async function saved(t, file) {
  const page = await open(t);
  page.requested = [];
  page.on("request", (request) => page.requested.push(request.url()));
  await page.goto(`file://${file}`);
  return page;
}

test("a session with its sub-agents in one file", async (t) => {
  const data = await folder(t);
  await unspool(data, "import", join(root, "fixtures/claude-code/subagents-parallel-and-background"));
  const { stdout } = await unspool(data, "list", "--json");
  const parent = JSON.parse(stdout).find((session) => session.parent === null);
  const file = join(data, "page.html");
  await unspool(data, "export", parent.id, "--to", "html", "-o", file);
  const page = await saved(t, file);
  assert.ok(await page.locator(".transcript").count() > 2, "its sub-agents are there");
  assert.match(await page.locator("h1").first().innerText(), /two angles/);
  const link = page.locator("a.transcript-of").first();
  const target = await link.getAttribute("href");
  await link.click();
  assert.equal(new URL(page.url()).hash, target);
  assert.equal(await page.locator(target).evaluate((one) => Math.abs(one.getBoundingClientRect().top) < 200), true);
  const fold = page.locator(".reasoning-block details.fold").first();
  await fold.locator("summary").first().click();
  assert.equal(await fold.evaluate((one) => one.open), true);
  assert.deepEqual(page.requested.filter((url) => !url.startsWith("file://") && !url.startsWith("data:")), []);
  assert.deepEqual(page.troubles, []);
});

test("a long and hostile session in one file: all of it, in order, as it is scrolled to", async (t) => {
  const data = await folder(t);
  const log = new Log();
  const hostile = `</script><script>document.title = "run"</script><img src="https://evil.example/x.png" onerror="document.title='run'">`;
  for (let turn = 1; turn <= 40; turn += 1) {
    log.prompt(`Prompt ${turn} ${hostile}`);
    for (let call = 0; call < 60; call += 1) log.call("Bash", { command: `echo ${turn}-${call}` }, `${turn}-${call} ${hostile}`);
    log.say(`Turn ${turn} is done. ${hostile}`);
  }
  await mkdir(join(data, "logs"));
  await writeFile(join(data, "logs/long.jsonl"), log.take());
  await unspool(data, "import", join(data, "logs"));
  const { stdout } = await unspool(data, "list", "--json");
  const [session] = JSON.parse(stdout);
  const file = join(data, "page.html");
  await unspool(data, "export", session.id, "--to", "html", "-o", file);
  const page = await saved(t, file);
  assert.ok(await page.locator(".later").count() > 10, "what is far down waits");
  await until("the end is there", async () => {
    await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
    return page.getByText("Turn 40 is done.").isVisible();
  });
  // A link into a deferred part.
  const waiting = await page.evaluate(() => document.querySelector(".later")?.nextElementSibling.textContent.match(/id="(p-\w+)"/)?.[1]);
  assert.ok(waiting);
  await page.goto(`file://${file}#${waiting}`);
  await until("it is in sight", async () => page.locator(`#${waiting}`).isVisible());
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  const said = await page.locator(".turns .part.text").allTextContents();
  assert.deepEqual(said.map((text) => Number(text.match(/Turn (\d+) is done/)[1])), Array.from({ length: 40 }, (_, nth) => nth + 1));
  assert.equal(await page.locator(".later").count(), 0);
  assert.match(await page.title(), /Prompt 1/);
  assert.deepEqual(page.requested.filter((url) => !url.startsWith("file://") && !url.startsWith("data:")), []);
  assert.deepEqual(page.troubles, []);
});

// R-002-28, R-002-29, R-002-30
test("artifacts of an idle live session are written once, and subscribers receive their URLs", async (t) => {
  const [data, home] = [await folder(t), await folder(t)];
  const log = new Log();
  const now = Date.now();
  const fresh = (text) => text.replaceAll(/"timestamp":"[^"]+"/g, () => `"timestamp":"${new Date(now).toISOString()}"`);
  await mkdir(join(home, ".claude/projects/-home-dev-weather-app"), { recursive: true });
  const path = join(home, ".claude/projects/-home-dev-weather-app/live.jsonl");
  log.prompt("Draw this").call("Bash", { command: "true" }, "done");
  await writeFile(path, fresh(log.take()));
  const server = await serve(t, data, ["--port", String(await freePort())], home);
  const page = await open(t);
  await page.goto(server.address);
  let session;
  await until("it is there", async () => {
    session = await page.evaluate(async () => (await (await fetch("/api/sessions")).json())[0]?.id);
    return session !== undefined;
  });
  await page.evaluate((id) => new Promise((resolve) => {
    window.messages = [];
    const socket = new WebSocket(`ws://${location.host}/api/live`);
    socket.onopen = () => { socket.send(JSON.stringify({ subscribe: id, form: "json" })); };
    socket.onmessage = ({ data: text }) => { window.messages.push(JSON.parse(text)); resolve(); };
  }), session);
  log.say("It is drawn.");
  await writeFile(path, fresh(log.take()), { flag: "a" });
  const drawn = () => page.evaluate(() => window.messages.filter(({ type }) => type === "thoughtflow.artifacts"));
  await until("the notice arrives", async () => (await drawn()).length === 1 || page.evaluate(() => window.messages.map(({ type }) => type)));
  const [{ json, d2 }] = await drawn();
  assert.equal(json, `${server.origin}/thoughtflow/${session}.json`);
  const read = (url) => page.evaluate(async (address) => { const answer = await fetch(address); return [answer.status, answer.headers.get("content-type"), await answer.text()]; }, url);
  const [status, kind, text] = await read(json);
  assert.equal(status, 200);
  assert.match(kind, /^application\/json/);
  const flow = JSON.parse(text);
  assert.deepEqual(flow.conversations.map((run) => run.status), ["completed"]);
  assert.match((await read(d2))[1], /^text\/plain/);
  assert.equal((await read(`${server.origin}/thoughtflow/nobody.json`))[0], 404);
  const { stdout } = await execute("cat", [join(data, "thoughtflow", `${session}.json`)]);
  assert.equal(stdout, text, "what lies beside the archive is what is served");
  await new Promise((resolve) => setTimeout(resolve, 1500));
  assert.equal((await drawn()).length, 1, "once");
});
