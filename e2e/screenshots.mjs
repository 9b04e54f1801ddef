// The screenshots of the docs: the demo's pages in both themes. The recordings have fixed times and no
// running turns, so the screenshots do not depend on the current time.

import { mkdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
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

await mkdir(into, { recursive: true });
try {
  const data = await folder(here);
  const server = await serve(here, data, ["--demo", "--port", "0"]);
  for (const theme of ["dark", "light"]) await take({ ...server, data }, theme);
} finally {
  for (const cleanup of undo) await cleanup();
  await closeBrowser();
}
