// A page for `scripts/answer-live`: opens a session in a real browser and does what it reads, one
// object per line of standard input; prints one object per line. `node answer_live.mjs ADDRESS`.

import { createInterface } from "node:readline";
import { armed } from "./chat_stage.mjs";
import { closeBrowser, open } from "./program.mjs";

const [address] = process.argv.slice(2);
const undo = [];
const page = await open({ after: (cleanup) => undo.unshift(cleanup) }, { viewport: { width: 1100, height: 800 } });
await page.goto(address);
const { origin } = new URL(address);

const acts = {
  /** Opens a session by any of its ids. */
  open: async (session) => { await page.goto(`${origin}/s/${session}`); await page.waitForSelector(".session[data-live=on]"); },
  /** Waits until the question can be answered; resolves with its text. */
  asked: async () => { await armed(page); return page.innerText(".ask"); },
  /** Presses the option with this label of a permission. */
  press: async (label) => { await page.click(`.ask button:has-text("${label}")`); },
  /** Chooses and sends the answer to a question. */
  choose: async (label) => { await page.check(`.ask label:has-text("${label}") input`); await armed(page); await page.click(".ask [data-send]"); },
  /** Waits until no question can be answered; resolves with the text of the page. */
  gone: async () => { await page.waitForSelector(".ask", { state: "detached" }); return page.innerText("body"); },
  /** The latest turn, in view. */
  last: async () => { await page.locator(".turn").last().scrollIntoViewIfNeeded(); return page.locator(".turn").last().innerText(); },
  picture: async (path) => { await page.screenshot({ path }); },
};

for await (const line of createInterface({ input: process.stdin })) {
  const [[act, value]] = Object.entries(JSON.parse(line));
  const told = await acts[act](value).then((said) => ({ said: said ?? null }), (error) => ({ error: error.message }));
  console.log(JSON.stringify({ ...told, troubles: page.troubles }));
}
for (const cleanup of undo) await cleanup();
await closeBrowser();
