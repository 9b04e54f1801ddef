// Chats with several surfaces and on small screens: a real browser, a real terminal, and the puppet.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { after, test } from "node:test";
import { armed, begin, call, form, permission, settled, stage } from "./chat_stage.mjs";
import { closeBrowser, open, program, until } from "./program.mjs";

after(closeBrowser);

const asking = { prompts: { go: [call("c"), permission("c"), { say: "Done." }] } };

/** All messages that a page showed for a moment. */
async function listen(page) {
  await page.evaluate(() => {
    window.spoken = [];
    const held = document.querySelector(".spoken");
    new MutationObserver(() => window.spoken.push(held.textContent)).observe(held, { childList: true, characterData: true, subtree: true });
  });
}
const heard = (page, what) => page.waitForFunction((text) => window.spoken.some((one) => one.includes(text)), what);

test("C-24: the other of two pages learns who answered, and nobody is told of their own answer", async (t) => {
  const it = await stage(t, asking);
  const page = await open(t);
  await begin(page, it, "go");
  await armed(page);
  const second = await page.context().newPage();
  await second.goto(page.url());
  await armed(second);
  await Promise.all([listen(page), listen(second)]);
  await second.click(".ask [data-option='0']");
  await heard(page, "answered by another browser: allow once (Yes)");
  await second.waitForSelector("text=Done.");
  assert.ok(!(await second.evaluate(() => window.spoken)).some((one) => /answered by|was first/.test(one)));
  // Too late: who was first is said, also where the question is gone.
  assert.equal((await it.answers()).length, 1);
});

test("C-24: a page and a terminal learn of each other", async (t) => {
  const script = { prompts: { go: [call("c"), permission("c"), { say: "First." }], more: [call("d"), permission("d"), { say: "Second." }] } };
  const it = await stage(t, script);
  const page = await open(t);
  await begin(page, it, "go");
  await armed(page);
  await listen(page);
  // `script` is a terminal for the program.
  const environment = { PATH: process.env.PATH, HOME: join(it.data, "home"), TERM: "xterm-256color", LC_ALL: "C.UTF-8", COLUMNS: "100", LINES: "36" };
  const terminal = spawn("script", ["-qfec", `stty rows 36 cols 100; exec ${program} --data ${it.data}`, "/dev/null"], { env: environment });
  t.after(() => terminal.kill("SIGKILL"));
  let screen = "";
  terminal.stdout.on("data", (chunk) => { screen += chunk; });
  // Cells that do not change are not written: compare without what stands between words.
  const shown = (what) => until(what, () => screen.replace(/\x1b\[[0-9;?]*[a-zA-Z]/g, "").replace(/\s/g, "").includes(what.replace(/\s/g, "")) || screen.slice(-500), 30);
  await shown("Waiting for you");
  terminal.stdin.write("\r");
  await shown("allow once  Yes");
  await new Promise((resolve) => setTimeout(resolve, 500));
  terminal.stdin.write("\t1\r");
  await heard(page, "answered by the terminal: allow once (Yes)");
  await page.waitForSelector("text=First.");
  await settled(page);
  await page.fill("textarea", "more");
  await page.keyboard.press("Enter");
  await armed(page);
  await page.click(".ask [data-option='1']");
  await shown("answered by the browser: refuse (No)");
  assert.equal((await it.answers()).length, 2);
});

for (const colorScheme of ["dark", "light"]) {
  test(`a chat on a phone, ${colorScheme}: nothing is wider than the screen, every control has a name`, async (t) => {
    const it = await stage(t, { prompts: { go: [{ say: "Two questions." }, call("c", "cargo test --workspace --all-targets --no-fail-fast"), permission("c", "cargo test --workspace --all-targets --no-fail-fast"), { say: "Now a form." }, form, { say: "Done." }] } });
    const page = await open(t, { viewport: { width: 400, height: 800 }, colorScheme });
    const fits = async (what) => {
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${what}: ${wide} pixels beyond the edge`);
      const nameless = await page.evaluate(() => [...document.querySelectorAll("button, a[href], input:not([type=hidden]), select, textarea")]
        .filter((one) => one.checkVisibility())
        .filter((one) => !(one.innerText?.trim() || one.ariaLabel || one.title || one.labels?.[0]?.innerText.trim() || document.getElementById(one.getAttribute("aria-labelledby"))?.textContent))
        .map((one) => one.outerHTML.slice(0, 120)));
      assert.deepEqual(nameless, [], what);
      if (process.env.UNSPOOL_PICTURES) await page.screenshot({ path: join(process.env.UNSPOOL_PICTURES, `${what.replaceAll(" ", "-")}-${colorScheme}.png`) });
    };
    await page.goto(it.server.address);
    await page.goto(`${it.server.origin}/new`);
    await fits("new chat");
    await begin(page, it, "go");
    await armed(page);
    await page.locator(".ask").scrollIntoViewIfNeeded();
    await fits("permission");
    await page.click(".ask [data-option='0']");
    await page.waitForSelector("text=Now a form.");
    await armed(page);
    await page.locator(".ask").scrollIntoViewIfNeeded();
    await fits("form");
    await page.fill(".composer textarea", "next");
    await page.keyboard.press("Enter");
    await page.waitForSelector('.chat-queue :text-is("next")');
    await page.locator(".composer").scrollIntoViewIfNeeded();
    await fits("queue");
  });
}

test("chat law 8: no browser names a program", async (t) => {
  const it = await stage(t, { prompts: { go: [{ say: "Hello." }] } });
  const { origin } = it.server;
  const page = await open(t);
  await begin(page, it, "go");
  const cookies = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join("; ");
  const key = await page.evaluate(() => localStorage.getItem("drive"));
  const headers = { "Content-Type": "application/json", Cookie: cookies, Origin: origin, "Unspool-Key": key };
  const asked = async (body) => (await fetch(`${origin}/new`, { method: "POST", headers, body: JSON.stringify(body) })).status;
  assert.equal(await asked({ new: { agent: "sh", project: it.project } }), 400, "an agent that is not in the list");
  assert.equal(await asked({ new: { agent: "claude-code", project: "/" } }), 403, "a folder that is not in the list");
  for (const more of [{ command: ["sh"] }, { env: { PATH: "/tmp" } }, { wrap: ["sh"] }]) {
    assert.equal(await asked({ new: { agent: "claude-code", project: it.project, ...more } }), 422, JSON.stringify(more));
  }
});
