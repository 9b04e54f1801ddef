// What a session changed, in a browser: the files with their net diffs, the keys, the way to the calls.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cp, mkdir, readFile, realpath, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { closeBrowser, folder, open, root, run, serve, until } from "./program.mjs";

after(closeBrowser);

test("what changed: files, net diffs, keys and links", async (t) => {
  const data = await folder(t);
  assert.equal(await run(data, ["import", join(root, "crates/unspool/tests/changes/codex-edits/log.jsonl")]), 0);
  const server = await serve(t, data, ["--port", "0"]);
  const page = await open(t);
  await page.goto(server.address);
  await page.locator(".row a").first().click();
  await page.locator(".actions a", { hasText: "What changed" }).click();
  await page.waitForURL("**/changes");
  assert.match(await page.locator(".changes-head").innerText(), /6 files changed +\+28 +−11\s+1 edit failed and is not included\./);
  const heads = await page.locator(".changed-file h2").allInnerTexts();
  assert.deepEqual(heads.map((head) => head.replace(/ +/g, " ")), [
    "src/app.ts +13 −2", "src/cache.ts unchanged after 2 edits", "src/new.ts new +9", "README.md +4 −3",
    "notes.txt +1 −1", "src/old.ts deleted −4", "src/convert.ts moved from src/units.ts +1 −1",
  ]);
  // The second edit changed lines that the first one added: only the last text is left.
  const app = page.locator(".changed-file").first();
  assert.match(await app.innerText(), /Math\.round\(sum/);
  assert.doesNotMatch(await app.innerText(), /return sum \/ report\.readings\.length;/);

  for (const [key, file] of [["n", "src/app.ts"], ["n", "src/cache.ts"], ["n", "src/new.ts"], ["p", "src/cache.ts"]]) {
    await page.keyboard.press(key);
    assert.match(await page.evaluate(() => document.activeElement.querySelector("h2").innerText), new RegExp(file));
  }
  const editor = await app.locator(".editor").getAttribute("href");
  assert.match(editor, /^vscode:\/\/file\/home\/dev\/weather\/src\/app\.ts:\d+$/);
  if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, "changes.png") });

  await app.locator("a", { hasText: "Edit 2" }).click();
  await page.waitForURL(/part=/);
  assert.match(await page.locator(".transcript").innerText(), /humidity \?\? 0/);
  await page.goto(`${page.url().split("?")[0]}/changes?turn=99`);
  assert.match(await page.locator("main").innerText(), /this session has no turn 99/);
});

test("what changed on a narrow screen does not scroll sideways", async (t) => {
  const data = await folder(t);
  assert.equal(await run(data, ["import", join(root, "crates/unspool/tests/changes/codex-edits/log.jsonl")]), 0);
  const server = await serve(t, data, ["--port", "0"]);
  const page = await open(t, { viewport: { width: 400, height: 800 }, colorScheme: "light" });
  await page.goto(server.address);
  await page.goto(`${await page.locator(".row a").first().evaluate((link) => link.href)}/changes`);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
  if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, "changes-400.png") });
});

const CASES = join(root, "crates/unspool/tests/changes");

/** A repository in which the session worked: committed but for one file, and edited by hand since. */
async function repository(t) {
  const path = join(await realpath(await folder(t)), "weather");
  await cp(join(CASES, "before"), path, { recursive: true });
  const git = (...words) => execFileSync("git", ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", ...words], { cwd: path });
  const commit = (subject, at) => {
    const env = { ...process.env, GIT_AUTHOR_DATE: at, GIT_COMMITTER_DATE: at };
    execFileSync("git", ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "-qm", subject], { cwd: path, env });
  };
  git("init", "-q", "-b", "main");
  git("add", "-A");
  commit("Begin", "2026-11-09T10:00:00Z");
  git("apply", join(CASES, "codex-edits/diff.patch"));
  git("add", "-A", "--", ".", ":!src/new.ts");
  commit("Show the humidity <b>", "2026-11-10T16:30:00Z");
  const app = await readFile(join(path, "src/app.ts"), "utf8");
  await writeFile(join(path, "src/app.ts"), app.replace("// Seconds for which a report is fresh.\n", ""));
  await mkdir(join(path, "docs"));
  await rename(join(path, "notes.txt"), join(path, "docs/notes.txt"));
  git("add", "-A", "--", ".", ":!src/new.ts");
  commit("Move the notes", "2026-11-11T10:00:00Z");
  return path;
}

/** An archive with the session, which was in this folder. */
async function archive(t, project) {
  const data = await folder(t);
  const log = await readFile(join(CASES, "codex-edits/log.jsonl"), "utf8");
  const moved = join(data, "log.jsonl");
  await writeFile(moved, log.replaceAll("/home/dev/weather", project));
  assert.equal(await run(data, ["import", moved]), 0);
  return data;
}

test("what changed: the commits it ended in, and which lines still stand", async (t) => {
  const project = await repository(t);
  const server = await serve(t, await archive(t, project), ["--port", "0"]);
  const page = await open(t);
  await page.goto(server.address);
  await page.goto(`${await page.locator(".row a").first().evaluate((link) => link.href)}/changes`);
  await page.locator("#in-git h2").waitFor();
  const commits = await page.locator("#in-git .commits li").allInnerTexts();
  assert.equal(commits.length, 1, "the commits by hand hold no line of the session");
  assert.match(commits[0], /2026-11-10 +Show the humidity <b> +\d+ of \d+ lines/);
  const lines = (file, state) => page.locator(`#file-${file} tr.added.is-${state} .line`).allInnerTexts();
  const app = await lines(0, "stands");
  assert.ok(app.includes("  return Math.round(sum / report.readings.length);"), app.join("\n"));
  assert.deepEqual(await lines(0, "gone"), ["// Seconds for which a report is fresh."]);
  assert.deepEqual(await lines(0, "uncommitted"), []);
  assert.match(await page.locator("#file-0 .standing").innerText(), /of 13 added lines stand at HEAD, 1 is gone/);
  const title = await page.locator("#file-0 tr.is-stands").first().getAttribute("title");
  assert.match(title, /^stands at HEAD, in [0-9a-f]{10}$/);
  // The new file is in no commit: its lines are neither gone nor at HEAD.
  assert.equal((await lines(2, "uncommitted")).length, 8);
  assert.equal((await lines(2, "gone")).length + (await lines(2, "stands")).length, 0);
  assert.deepEqual(await lines(4, "stands"), ["Done: the service allows 60 requests a minute."], "in spite of its new name");
  if (process.env.PICTURES) await page.screenshot({ path: join(process.env.PICTURES, "standing.png"), fullPage: true });
  const id = page.url().match(/\/s\/([^/]+)/)[1];
  const json = await (await page.request.get(`${server.origin}/api/sessions/${id}/commits`)).json();
  assert.equal(json.commits[0].subject, "Show the humidity <b>");
  const notes = json.files.find((file) => file.name === "notes.txt");
  assert.deepEqual(notes.lines, [{ line: 3, state: "stands", commit: json.commits[0].commit }]);
  assert.deepEqual(page.troubles, []);

  for (const colorScheme of ["light", "dark"]) {
    const narrow = await open(t, { viewport: { width: 400, height: 800 }, colorScheme });
    await narrow.goto(server.address);
    await narrow.goto(page.url());
    await narrow.locator("#in-git h2").waitFor();
    assert.equal(await narrow.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
    if (process.env.PICTURES) await narrow.screenshot({ path: join(process.env.PICTURES, `standing-400-${colorScheme}.png`) });
  }
});

test("what changed says nothing of git where the project is in no repository", async (t) => {
  const project = join(await realpath(await folder(t)), "weather");
  await cp(join(CASES, "before"), project, { recursive: true });
  const server = await serve(t, await archive(t, project), ["--port", "0"]);
  const page = await open(t);
  await page.goto(server.address);
  const asked = page.waitForResponse(/changes\/git/);
  await page.goto(`${await page.locator(".row a").first().evaluate((link) => link.href)}/changes`);
  assert.equal((await asked).status(), 200);
  await until("the answer is taken", () => page.evaluate(() => document.readyState === "complete"));
  assert.equal(await page.locator("#in-git").isVisible(), false);
  assert.equal(await page.locator(".standing").count(), 0);
});
