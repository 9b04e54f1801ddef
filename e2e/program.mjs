// The real program and a real browser, for tests: each test has its own data folder and home.

import { spawn } from "node:child_process";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { createInterface } from "node:readline";
import chromiumBinary from "@sparticuz/chromium";
import { chromium } from "playwright-core";

export const root = join(dirname(fileURLToPath(import.meta.url)), "..");
export const program = process.env.UNSPOOL_PROGRAM ?? join(root, "target/debug/unspool");

/** A port that was free a moment ago. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** A temporary folder, removed after the test. */
export async function folder(test) {
  const path = await mkdtemp(join(tmpdir(), "unspool-e2e-"));
  test.after(() => rm(path, { recursive: true, force: true, maxRetries: 5 }));
  return path;
}

/** Runs the program; resolves with its exit code. */
export function run(data, options, input = "") {
  const child = spawn(program, ["--data", data, ...options], {
    env: { PATH: process.env.PATH, HOME: join(data, "home"), TZ: "UTC", LC_ALL: "C.UTF-8" },
    stdio: ["pipe", "ignore", "inherit"],
  });
  // The program may exit before its stdin is written.
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  return new Promise((resolve) => child.once("exit", (code, signal) => resolve(code ?? signal)));
}

/** Starts `unspool serve` and waits for the line with its URL. */
export async function serve(test, data, options = [], home = join(data, "home")) {
  const child = spawn(program, ["--data", data, "serve", ...options], {
    env: { PATH: process.env.PATH, HOME: home, TZ: "UTC", LC_ALL: "C.UTF-8" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (chunk) => { said += chunk; });
  const ended = new Promise((resolve) => child.once("exit", (code, signal) => resolve(code ?? signal)));
  const stop = async (signal = "SIGTERM") => {
    child.kill(signal);
    return ended;
  };
  test.after(() => stop("SIGKILL"));
  const lines = createInterface({ input: child.stdout });
  const address = await new Promise((resolve, reject) => {
    lines.once("line", resolve);
    ended.then((code) => reject(new Error(`unspool serve ended with ${code}: ${said}`)));
  });
  return { address, origin: new URL(address).origin, pid: child.pid, stop, ended, said: () => said };
}

let browser;

/** A page in its own browser context. Its errors are collected in `troubles`. */
export async function open(test, options = {}) {
  browser ??= await chromium.launch({
    executablePath: await chromiumBinary.executablePath(),
    // With --single-process the browser exits with its first page. With --disable-web-security it
    // sends no Origin, as no browser of a user would.
    args: chromiumBinary.args.filter((arg) => !["--single-process", "--disable-web-security"].includes(arg)),
    headless: true,
  });
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, ...options });
  const page = await context.newPage();
  // A page ignores keys until its scripts have run, even if it is already painted.
  const press = page.keyboard.press.bind(page.keyboard);
  page.keyboard.press = async (...key) => {
    await page.waitForLoadState("load");
    return press(...key);
  };
  const waitForSelector = page.waitForSelector.bind(page);
  page.waitForSelector = async (...what) => {
    const found = await waitForSelector(...what);
    await page.waitForLoadState("load");
    return found;
  };
  page.troubles = [];
  page.on("pageerror", (error) => page.troubles.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") page.troubles.push(`console: ${message.text()}`);
  });
  test.after(() => context.close());
  return page;
}

export async function closeBrowser() {
  await browser?.close();
  browser = undefined;
}

/** Polls until `look` returns true; fails with its last result. */
export async function until(what, look, seconds = 10) {
  const end = Date.now() + seconds * 1000;
  let seen;
  for (;;) {
    seen = await look();
    if (seen === true) return;
    if (Date.now() > end) throw new Error(`${what}: ${JSON.stringify(seen)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The newest build of the puppet, a scripted agent (`crates/unspool/tests/puppet`). */
export async function puppet() {
  const built = join(dirname(program), "deps");
  const names = (await readdir(built)).filter((name) => /^puppet-[0-9a-f]+$/.test(name));
  const found = await Promise.all(names.map(async (name) => [join(built, name), (await stat(join(built, name))).mtimeMs]));
  if (found.length === 0) throw new Error("build the puppet first: cargo test --workspace --no-run");
  return found.sort(([, a], [, b]) => b - a)[0][0];
}
