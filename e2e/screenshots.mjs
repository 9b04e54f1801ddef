// The screenshots of the docs: the demo's pages in both themes. The recordings have fixed times and no
// running turns, so the screenshots do not depend on the current time.

import { mkdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { armed, begin, call, done, form, permission, stage } from "./chat_stage.mjs";
import { ID, after, before, unspool } from "./learning_stage.mjs";
import { closeBrowser, folder, open, root, run, serve, until } from "./program.mjs";

const into = process.argv[2] ?? "docs/images";
/** Keep the files small. */
const LARGEST = 150 * 1024;

/** Its title has emoji that few machines have a font for. */
const ODD = "9c68e3ba-a126-444b-8b25-ea39ba34c06d";
/** If set, use the style sheets of the working tree instead of the built-in ones. */
const drafting = process.env.UNSPOOL_DRAFT !== undefined;

const undo = [];
const here = { after: (cleanup) => undo.unshift(cleanup) };

async function sheet() {
  const files = ["theme.css", "page.css", "transcript.css"].map((name) => join(root, "crates/unspool-export/assets", name));
  return (await Promise.all(files.map((file) => readFile(file, "utf8")))).join("\n");
}

async function follow(page, title) {
  await page.goto(new URL("/", page.url()).href);
  await page.locator(".row a", { hasText: title }).first().click();
  await page.waitForSelector(".session[data-live=on]");
}

/** Scrolls so that an element is at this distance from the top. */
async function toTop(locator, room) {
  await locator.evaluate((element, above) => {
    scrollTo({ top: scrollY + element.getBoundingClientRect().top - above, behavior: "instant" });
  }, room);
}

const pages = {
  list: (page) => page.goto(new URL("/", page.url()).href),
  session: async (page) => {
    await follow(page, "The forecast cache keeps missing");
    const block = page.locator(".reasoning-block:has(figure.diff)").first();
    const edit = block.locator(".part.tool details:has(figure.diff)").first();
    if (!(await edit.evaluate((fold) => fold.open))) await edit.locator("summary").first().click();
    await toTop(block, 470);
  },
  agents: async (page) => {
    await follow(page, "review the weather app from two angles");
    const link = page.locator("a[data-inline]").first();
    await link.click();
    await page.waitForSelector(".session.inline[data-live=on] .turn");
    await toTop(page.locator(".tree").first(), 140);
  },
  // Search in one session: equally ranked hits are ordered by import order.
  search: async (page) => {
    await page.goto(new URL("/?q=fahrenheit&agent=gemini&kind=tool", page.url()).href);
    await page.waitForSelector(".results .hit-row");
  },
  findings: (page) => page.goto(new URL("/findings", page.url()).href),
  stats: (page) => page.goto(new URL("/stats", page.url()).href),
};

async function take(server, theme) {
  const page = await open(here, {
    viewport: { width: 1280, height: 860 }, colorScheme: theme, reducedMotion: "reduce", timezoneId: "UTC", locale: "en-GB",
  });
  if (drafting) await page.route("**/assets/style.css", async (route) => route.fulfill({ contentType: "text/css", body: await sheet() }));
  await page.goto(server.address);
  await until("all demo sessions are listed", async () => {
    await page.goto(server.origin);
    const rows = await page.locator(".row").count();
    return rows >= 9 || rows;
  });
  await run(join(server.data, "demo"), ["rename", ODD, "Please print some strange output."]);
  for (const [name, show] of Object.entries(pages)) {
    await show(page);
    await page.mouse.move(0, 0);
    await page.evaluate(() => document.fonts.ready);
    const path = join(into, `web-${name}-${theme}.png`);
    await page.screenshot({ path, animations: "disabled", caret: "hide" });
    const { size } = await stat(path);
    console.log(`${path}  ${Math.round(size / 1024)} KB`);
    if (size > LARGEST) throw new Error(`${path} is larger than ${LARGEST / 1024} KB`);
  }
  if (page.troubles.length > 0) throw new Error(page.troubles.join("\n"));
}

async function picture(page, name) {
  await page.mouse.move(0, 0);
  const path = join(into, `web-chat-${name}-dark.png`);
  await page.screenshot({ path, animations: "disabled", caret: "hide" });
  console.log(`${path}  ${Math.round((await stat(path)).size / 1024)} KB`);
}

/** Pictures of a chat, with the puppet as the agent. */
async function takeChats() {
  const plan = { update: { sessionUpdate: "plan", entries: [
    { content: "Read the parser", priority: "high", status: "completed" },
    { content: "Run the tests", priority: "high", status: "in_progress" },
    { content: "Mend the parser", priority: "high", status: "pending" }] } };
  const diff = "rm -rf target/cache\ncargo test --workspace -- --nocapture parser::";
  const script = { prompts: {
    "Why do the parser tests fail?": [{ say: "I clear the cache and run the tests of the parser first." }, call("c", diff), permission("c", diff), done("c", "2 failed"), { say: "Two tests fail." }],
    "Show the forecast": [{ say: "Before I begin:" }, JSON.parse(JSON.stringify(form).replace("<b>", "").replace("</b>", ""))],
    "Mend it": [plan, { say: "Two tests fail: the parser drops the last line." }, { wait: "cancel" }],
  } };
  const show = async (name, text, prepare, changed = script) => {
    const it = await stage(here, changed, ["--port", "0"]);
    const page = await open(here, { viewport: { width: 1000, height: 620 }, colorScheme: "dark", reducedMotion: "reduce", timezoneId: "UTC", locale: "en-GB" });
    await (changed === script ? begin(page, it, text) : page.goto(it.server.address));
    await prepare(page, it);
    await picture(page, name);
  };
  await show("permission", "Why do the parser tests fail?", armed);
  await show("question", "Show the forecast", async (page) => {
    await armed(page);
    for (const label of ["Celsius", "Wind", "Sun"]) await page.check(`.ask label:has-text("${label}") input`);
    await page.fill(".ask [data-text]", "the tide");
    await armed(page);
  });
  await show("queue", "Mend it", async (page) => {
    await page.waitForSelector(".chat-plan li");
    for (const text of ["Then run the linter.", "And write the changelog."]) {
      await page.fill("textarea", text);
      await page.keyboard.press("Enter");
      await page.waitForSelector(`.chat-queue :text-is("${text}")`);
    }
  });
  await show("refused", "", async (page, it) => {
    await page.goto(`${it.server.origin}/new`);
    await page.fill("[name=project]", it.project);
    await page.fill("textarea", "Why do the parser tests fail?");
    await page.keyboard.press("Enter");
    await page.waitForSelector("text=no API key");
    await page.evaluate(() => { document.querySelector("[name=project]").value = "/home/dev/weather-app"; });
  }, { start: [{ stderr: "Error: no API key; set ANTHROPIC_API_KEY or log in" }, { exit: 1 }] });
}

/** Pictures of the loop: a proposal, and what it changed. */
async function takeLearning() {
  const data = await folder(here);
  await before(data);
  const server = await serve(here, data, ["--port", "0"]);
  const look = { viewport: { width: 1000, height: 760 }, reducedMotion: "reduce", timezoneId: "UTC", locale: "en-GB" };
  const show = async (name, path, theme, prepare) => {
    const page = await open(here, { ...look, colorScheme: theme });
    await page.goto(server.address);
    await page.goto(server.origin + path);
    await prepare(page);
    await page.mouse.move(0, 0);
    const file = join(into, `web-${name}-${theme}.png`);
    await page.screenshot({ path: file, animations: "disabled", caret: "hide" });
    console.log(`${file}  ${Math.round((await stat(file)).size / 1024)} KB`);
  };
  for (const theme of ["dark", "light"]) {
    await show("proposals", "/adaptations", theme, (page) => page.waitForSelector(".proposal"));
  }
  const proposals = JSON.parse(unspool(data, ["adapt", "proposals", "--json"]));
  unspool(data, ["adapt", "apply", String(proposals.find((one) => one.id === ID).number)]);
  await after(data);
  for (const theme of ["dark", "light"]) {
    await show("effect", `/adaptations/${ID}`, theme, async (page) => {
      await page.waitForSelector(".effect .verdict");
      // The days of the sessions depend on today.
      await page.locator(".effect .ends").evaluate((ends) => {
        const days = ["2026-11-13", "2026-11-15", "2026-11-15"];
        [...ends.children].forEach((end, nth) => { end.textContent = days[nth]; });
      });
      await toTop(page.locator(".effect"), 70);
    });
  }
}

await mkdir(into, { recursive: true });
try {
  await takeLearning();
  await takeChats();
  const data = await folder(here);
  const server = await serve(here, data, ["--demo", "--port", "0"]);
  for (const theme of ["dark", "light"]) await take({ ...server, data }, theme);
} finally {
  for (const cleanup of undo) await cleanup();
  await closeBrowser();
}
