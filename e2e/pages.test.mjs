// The demo as a new user sees it: the list, search, a session and its folds, both themes, a narrow screen,
// links that survive a restart; then one session by keyboard only, and the actions on its parts.

import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { closeBrowser, folder, freePort, open, root, serve, until } from "./program.mjs";

after(closeBrowser);

const CACHE = "The forecast cache keeps missing";
const ANGLES = "review the weather app from two angles";

/** The demo in a browser, with all its sessions in the list. */
async function demo(t, options = {}, config = "") {
  const data = await folder(t);
  const settings = join(data, "home/.config/unspool");
  await mkdir(settings, { recursive: true });
  await writeFile(join(settings, "config.toml"), config);
  const server = await serve(t, data, ["--demo", "--port", "0"]);
  const page = await open(t, options);
  await page.goto(server.address);
  await until("all demo sessions are listed", async () => {
    await page.goto(server.origin);
    const rows = await page.locator(".row").count();
    return rows >= 9 || rows;
  });
  return { server, page };
}

/** Opens a session and waits until its page is up to date: from then on only the user changes it. */
async function read(page, title) {
  await page.goto(new URL("/", page.url()).href);
  const loaded = page.waitForResponse((answer) => answer.url().includes("/window?"));
  await page.locator(".row a", { hasText: title }).first().click();
  await page.waitForSelector(".session[data-live=on]");
  await loaded;
}

const press = async (page, keys) => { for (const key of keys) await page.keyboard.press(key); };

/** Presses a key until the selected part has this text. */
async function goTo(page, key, words) {
  for (let pressed = 0; pressed < 60; pressed += 1) {
    await page.keyboard.press(key);
    const chosen = await page.locator(".chosen").innerText();
    if (chosen.includes(words)) return;
  }
  throw new Error(`${key} does not lead to “${words}”`);
}

const inSight = (locator) => locator.evaluate((element) => {
  const box = element.getBoundingClientRect();
  return box.height > 0 && box.bottom > 52 && box.top < innerHeight;
});
const clipboard = (page) => page.evaluate(() => navigator.clipboard.readText());

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

  // By keyboard only: down the list, and into a session.
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
  assert.match(link, /^\/s\/\w+\?turn=\d+&part=\w+#p-\w+$/);
  await hit.click();
  await page.waitForSelector(".turn");
  const target = page.locator(new URL(link, server.origin).hash.replace("#", "#"));
  assert.equal(await target.count(), 1);

  // The session in true order: reasoning, text, tools.
  await page.goto(`${server.origin}/`);
  await page.locator(".row a", { hasText: "The forecast cache keeps missing" }).click();
  await page.waitForSelector(".turn");
  const kinds = await page.locator(".turn > [data-kind]").evaluateAll(
    (pieces) => pieces.map((piece) => piece.dataset.kind),
  );
  assert.deepEqual(kinds.slice(0, 8), ["reasoning", "text", "tool", "tool", "tool", "reasoning", "tool", "tool"]);
  const fold = page.locator(".turn > .reasoning-block details.fold").first();
  assert.equal(await fold.evaluate((element) => element.open), false, "collapsed at first (R-004-13)");
  assert.match(await fold.locator("summary").innerText(), /^Reasoning\n/, "without a count of no calls");
  // Folding a thought folds its words: the edit that it led to is in sight (C-23).
  const edit = page.locator(".reasoning-block:has(figure.diff)").first();
  assert.equal(await edit.locator("details.fold").first().evaluate((element) => element.open), false);
  assert.equal(await edit.locator(".part.tool .card > summary").first().isVisible(), true);
  await fold.locator("summary").click();
  assert.match(await fold.innerText(), /cache misses/);
  // An edit is a real diff, with the words that changed marked.
  await page.getByRole("button", { name: "Expand all" }).click();
  const changed = page.locator(".diff tr.added mark").first();
  assert.equal(await changed.isVisible(), true);
  const heights = await page.locator(".diff .lines tr").evaluateAll((rows) => rows.map((row) => row.offsetHeight));
  assert.ok(Math.max(...heights) < 30, `a line of code, and its number, is one line: ${heights}`);
  assert.match(await page.locator(".terminal .exit").first().innerText(), /exit code 3/);
  await page.getByRole("button", { name: "Hide intermediate work" }).click();
  assert.equal(await page.locator(".part.tool").first().isVisible(), false);
  assert.equal(await page.locator(".part.text").first().isVisible(), true);
  await page.getByRole("button", { name: "Hide intermediate work" }).click();

  // Sub-agents in place, joined with their own sessions.
  await page.goto(`${server.origin}/`);
  await page.locator(".row a", { hasText: "review the weather app from two angles" }).click();
  await page.waitForSelector(".tree");
  assert.match(await page.locator(".tree").first().innerText(), /general-purpose.*3 tools · 1 error · 9,832 tokens \+ 17\.7k cached/s);

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

  // A link to a part survives a restart.
  await server.stop();
  const again = await serve(t, data, ["--demo", "--port", port]);
  await page.goto(new URL(link, again.origin).href);
  assert.equal(await page.locator(new URL(link, again.origin).hash).count(), 1);
  assert.deepEqual(page.troubles.filter((trouble) => !trouble.includes("WebSocket")), []);
});

test("a setting folds the calls of a thought too, and its line names them", async (t) => {
  const { page } = await demo(t, {}, 'fold = "all"\n');
  await read(page, CACHE);
  const block = page.locator(".reasoning-block.folds-calls", { has: page.locator("figure.diff") }).first();
  const edit = block.locator(".part.tool").first();
  assert.equal(await edit.isVisible(), false);
  // C-23: the line names what it hides.
  assert.match(await block.locator("summary").first().innerText(), /^Reasoning · Edit src\/cache\.ts/);
  // Seeking an edit opens the thought that hides it.
  await page.evaluate(() => scrollTo({ top: 0, behavior: "instant" }));
  await page.keyboard.press("d");
  assert.equal(await edit.isVisible(), true);
  assert.ok(await inSight(edit));
});

test("a session by keyboard only: from the list to a part, its Markdown, its record", async (t) => {
  const { server, page } = await demo(t, { permissions: ["clipboard-read", "clipboard-write"] });
  const focused = () => page.evaluate(() => document.activeElement.innerText);
  await page.keyboard.press("j");
  const first = await focused();
  await press(page, ["j", "k"]);
  assert.equal(await focused(), first, "down and up again");
  await until("the last row has the focus", async () => {
    await page.keyboard.press("j");
    return (await focused()).includes(CACHE);
  });
  const loaded = page.waitForResponse((answer) => answer.url().includes("/window?"));
  await page.keyboard.press("Enter");
  await page.waitForSelector(".session[data-live=on]");
  await loaded;

  // One part is selected at a time, and it is visible.
  await goTo(page, "j", "I'll start by mapping the project");
  assert.equal(await page.locator(".chosen").count(), 1);
  assert.equal(await inSight(page.locator(".chosen")), true);
  assert.equal(await page.evaluate(() => document.activeElement.classList.contains("chosen")), true, "there is one cursor: the focus");
  const id = (await page.locator(".chosen").getAttribute("id")).slice(2);
  await page.keyboard.press("y");
  await until("the status says so", async () => (await page.locator(".spoken").innerText()) === "Copied as Markdown");
  assert.equal((await clipboard(page)).trim(), "I'll start by mapping the project and looking at the cache implementation.");
  await page.keyboard.press("l");
  await until("a link is copied", async () => (await page.locator(".spoken").innerText()) === "Link copied");
  const link = new URL(await clipboard(page));
  assert.equal(link.origin, server.origin);
  assert.equal(link.searchParams.get("part"), id);
  assert.equal(link.hash, `#p-${id}`);

  // The raw record is exactly the line of the log.
  await page.keyboard.press("r");
  await page.waitForSelector("dialog.raw[open]");
  const log = (await readFile(join(root, "fixtures/claude-code/discovery-loop/log.jsonl"), "utf8")).split("\n");
  const lines = log.filter((line) => line.includes("I'll start by mapping the project"));
  const shown = await page.locator("dialog.raw pre").allInnerTexts();
  assert.deepEqual(shown.map((text) => JSON.parse(text)), lines.map((line) => JSON.parse(line)));
  assert.match(await page.locator("dialog.raw .path").first().innerText(), /112b2623-935f-4249-9e9a-c45c61ba0d98\.jsonl$/);
  await page.keyboard.press("Escape");
  await until("the record is gone", async () => (await page.locator("dialog.raw").count()) === 0);

  // A call is copied with its input and output.
  await goTo(page, "j", "Grep");
  await page.keyboard.press("y");
  await until("the call is copied", async () => (await clipboard(page)).includes("export class ForecastCache<T>") || await clipboard(page));

  // From error to error and edit to edit; `o` opens the selected part.
  await page.keyboard.press("e");
  assert.match(await page.locator(".chosen").innerText(), /missing\.ts.*\[FAILED\]/s);
  assert.equal(await inSight(page.locator(".chosen")), true);
  await page.keyboard.press("d");
  assert.equal(await page.locator(".chosen .diff").count() > 0, true);
  assert.equal(await page.locator(".chosen .diff").first().isVisible(), true, "what hides it is opened");
  const top = await page.locator(".chosen").evaluate((one) => one.getBoundingClientRect().top / innerHeight);
  assert.ok(top > 0 && top < 1 / 3, `in the upper third: ${top}`);
  // Behind the last edit it says so, and where the others are.
  const seek = async (key) => {
    const before = await page.locator(".chosen").getAttribute("id");
    await page.keyboard.press(key);
    return (await page.locator(".chosen").getAttribute("id")) !== before;
  };
  const edit = await page.locator(".chosen").getAttribute("id");
  let passed = 0;
  while (await seek("d")) passed += 1;
  const end = passed === 0 ? "No other edit in the loaded part" : `No edit below; ${passed} above: D`;
  await until("it says that there is none", async () => {
    const said = await page.locator(".spoken").innerText();
    return said === end || said;
  });
  for (; passed > 0; passed -= 1) await seek("D");
  assert.equal(await page.locator(".chosen").getAttribute("id"), edit);
  await page.keyboard.press("o");
  assert.equal(await page.locator(".chosen details.card").evaluate((fold) => fold.open), false);
  await page.keyboard.press("o");
  assert.equal(await page.locator(".chosen details.card").evaluate((fold) => fold.open), true);

  // The help lists all of it and restores the focus.
  await page.keyboard.press("?");
  const help = page.locator("dialog.help[open]");
  const helpText = await help.innerText();
  for (const name of ["Next or previous part", "Copy the part as Markdown", "Next or previous error", "Find in this session", "Stats"]) {
    assert.ok(helpText.includes(name), `${name} in ${helpText}`);
  }
  assert.ok(!helpText.includes("Search all sessions"), "this page uses that key itself");
  assert.deepEqual(await help.locator("h3").allInnerTexts(), ["This page", "Everywhere"]);
  await page.keyboard.press("Escape");
  await until("the help is gone", async () => (await help.count()) === 0);
  await press(page, ["g", "s"]);
  await page.waitForSelector(".row");
  assert.equal(new URL(page.url()).pathname, "/");
  assert.deepEqual(page.troubles.filter((trouble) => !trouble.includes("WebSocket")), []);
});

test("find in a session, show only some of it, usage per step", async (t) => {
  const { page } = await demo(t);
  await read(page, CACHE);
  await page.keyboard.press("/");
  await page.keyboard.type("ttl");
  await page.keyboard.press("Enter");
  const count = page.locator(".find-here .count");
  const at = async () => (await count.innerText()).match(/^(\d+) of (\d+)$/)?.slice(1).map(Number) ?? [];
  await until("something is found", async () => (await at())[1] > 2 || count.innerText());
  const [place, all] = await at();
  assert.equal(place, 1, "from the current position");
  const marked = () => page.evaluate(() => [...CSS.highlights.get("found") ?? []].map((range) => range.toString().toLowerCase()));
  assert.ok((await marked()).length > 2);
  assert.deepEqual([...new Set(await marked())], ["ttl"], "exactly the words are marked");
  // Inside the field keys are text; outside they go to the next hit, wrapping around.
  await page.keyboard.press("Enter");
  await until("the next one", async () => (await at())[0] === 2 || at());
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("n");
  await until("and the next", async () => (await at())[0] === 3 || at());
  for (const _ of [1, 2, 3]) await page.keyboard.press("N");
  await until("back, and round", async () => (await at())[0] === all || at());
  const hit = await page.evaluate(() => {
    const boxes = [...CSS.highlights.get("found")].map((range) => range.getBoundingClientRect());
    return boxes.some((box) => box.height > 0 && box.top > 52 && box.bottom <= innerHeight);
  });
  assert.equal(hit, true, "a hit is in sight, whatever it was folded into");
  await page.keyboard.press("/");
  await page.keyboard.press("Escape");
  assert.equal(await page.locator(".find-here").isVisible(), false);
  assert.deepEqual(await marked(), []);

  // Usage: a footer per step, on request.
  const feet = page.locator(".turns .step-foot");
  assert.equal(await feet.first().isVisible(), false);
  await page.getByRole("button", { name: "Usage per step" }).click();
  assert.equal(await page.getByRole("button", { name: "Usage per step" }).getAttribute("aria-pressed"), "true");
  await page.getByRole("button", { name: "Expand all" }).click();
  const said = await feet.allInnerTexts();
  assert.ok(said.length > 3);
  for (const foot of said) assert.match(foot, /^step \d+ · claude-opus-5-5 · tokens [\d,]+/);
  assert.deepEqual(said.map((foot) => Number(foot.match(/\d+/)[0])), said.map((_, at) => at + 1), "each step once, in order");

  // The part filter is in the URL.
  const kinds = () => page.locator(".turns .part[data-kind]").evaluateAll((parts) => parts.map((part) => part.dataset.kind));
  const everything = (await kinds()).length;
  await page.locator(".actions select").selectOption("errors");
  await page.waitForURL(/only=errors/);
  const failed = await page.locator(".turns .part[data-kind]").allInnerTexts();
  assert.equal(failed.length, 3, "as the outline counts them");
  for (const text of failed) assert.match(text, /FAILED/);
  assert.equal(await page.locator(".turns .part.tool").first().isVisible(), true);
  await page.locator(".actions select").selectOption("edits");
  await page.waitForURL(/only=edits/);
  assert.equal(await page.locator(".turns .part.tool").count(), await page.locator(".turns .part.tool:has(.diff, figure.code)").count());
  // The tools are loaded when the menu is used.
  await page.locator(".actions select").focus();
  await page.waitForSelector("option[value='tool:Bash']", { state: "attached" });
  await page.locator(".actions select").selectOption("tool:Bash");
  await page.waitForURL(/only=tool%3ABash/);
  for (const name of await page.locator(".turns .card-head .name").allInnerTexts()) assert.equal(name, "Bash");
  await page.locator(".actions select").selectOption("kind:reasoning");
  await page.waitForURL(/only=kind%3Areasoning/);
  assert.deepEqual([...new Set(await kinds())], ["reasoning"]);
  await page.locator(".actions select").selectOption("");
  await page.waitForURL((url) => !url.search.includes("only"));
  assert.equal((await kinds()).length, everything);
  assert.deepEqual(page.troubles.filter((trouble) => !trouble.includes("WebSocket")), []);
});

test("a sub-agent's transcript opens where it was started", async (t) => {
  const { page } = await demo(t, { permissions: ["clipboard-read", "clipboard-write"] });
  await read(page, ANGLES);
  const link = page.locator("a[data-inline]").first();
  const id = await link.getAttribute("data-inline");
  await link.focus();
  await page.keyboard.press("Enter");
  const inline = page.locator(`.session.inline[data-session="${id}"]`);
  await inline.locator(".turn").first().waitFor();
  assert.equal(await link.getAttribute("aria-expanded"), "true");
  assert.equal(await inline.evaluate((element) => element.parentElement.dataset.agent !== undefined), true, "in the agent's own node");
  const shown = await inline.innerText();
  assert.match(shown, /Angle one: inspect the cache module/);
  assert.match(shown, /Looking at the cache module\..*Read.*src\/cache\.ts.*Cache report: the TTL compare mixes/s);
  // The same parts in the same order and form as on the page of its own session (R-000-25).
  const parts = (holder) => holder.locator(".part[data-at]").evaluateAll((all) => all.map((part) => part.outerHTML));
  const here = await parts(inline);
  const other = await page.context().newPage();
  await other.goto(new URL(`/s/${id}`, page.url()).href);
  assert.deepEqual(here, await parts(other.locator(".session")));
  await other.close();
  // Copying uses the sub-agent's session.
  await goTo(page, "j", "Looking at the cache module.");
  await goTo(page, "j", "Read");
  await page.keyboard.press("l");
  await until("a link to the sub-agent's part", async () => {
    const copied = await clipboard(page);
    return copied.includes(`/s/${id}?`) || copied;
  });
  await link.click();
  assert.equal(await inline.count(), 0);
  assert.equal(await link.getAttribute("aria-expanded"), "false");
  assert.equal(new URL(page.url()).pathname.startsWith("/s/"), true, "the page is the same one");
  assert.deepEqual(page.troubles.filter((trouble) => !trouble.includes("WebSocket")), []);
});

// R-000-22
test("print shows only the session; reduced motion is respected", async (t) => {
  const { page } = await demo(t, { colorScheme: "dark", reducedMotion: "reduce" });
  await read(page, CACHE);
  const bars = [".top", ".outline", ".actions"];
  for (const bar of bars) assert.equal(await page.locator(bar).first().isVisible(), true, bar);
  await page.emulateMedia({ media: "print" });
  for (const bar of bars) assert.equal(await page.locator(bar).first().isVisible(), false, `${bar} on paper`);
  assert.equal(await page.locator(".turn").first().isVisible(), true);
  const paper = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  assert.equal(paper, "rgb(255, 255, 255)");
  const scheme = await page.evaluate(() => {
    document.documentElement.dataset.theme = "dark";
    return getComputedStyle(document.documentElement).colorScheme;
  });
  assert.equal(scheme, "light", "whatever was chosen for the screen");
  await page.emulateMedia({ media: "screen" });

  const moving = () => page.evaluate(() => {
    const probe = document.createElement("i");
    probe.className = "pulse";
    document.body.append(probe);
    const found = [...document.querySelectorAll("*")].map((one) => getComputedStyle(one));
    const moves = found.filter((style) => style.animationName !== "none" || style.transitionDuration !== "0s");
    probe.remove();
    return moves.length;
  });
  assert.equal(await moving(), 0);
  await page.emulateMedia({ reducedMotion: "no-preference" });
  assert.ok(await moving() > 0, "it would move otherwise");
});
