// The pages of adaptations: edited in a browser for the version that is shown, previewed for each agent,
// proposals that a person decides, and what an adaptation changed.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { after as sessionsAfter, before as sessionsBefore } from "./learning_stage.mjs";
import { closeBrowser, folder, open, program, run, serve, until } from "./program.mjs";

after(closeBrowser);

const ID = "adn.tools.edit-reread";
const unspool = async (data, ...options) =>
  (await promisify(execFile)(program, ["--data", data, ...options])).stdout;

test("an adaptation is edited, previewed, and not overwritten by an older page", async (t) => {
  const data = await folder(t);
  assert.equal(await run(data, ["sync"]), 0);
  const server = await serve(t, data, ["--port", "0"]);
  const page = await open(t);
  await page.goto(server.address);
  await page.locator("nav.pages a", { hasText: "Adaptations" }).click();
  await page.locator("a", { hasText: "Read a file again before editing it" }).click();
  await page.waitForSelector(".adaptation-edit");
  await until("nothing is delivered yet", async () => /^Nothing/.test(await page.locator(".preview").innerText()));

  await page.locator("textarea[name=content]").fill("Read it <b>again</b>.");
  await page.locator("input[name=enabled]").check();
  await page.locator(".adaptation-edit button").click();
  await until("it is saved", async () => /^Saved/.test(await page.locator(".saved").innerText()));
  assert.equal(await page.locator(".state").innerText(), "on");
  await until("the preview has it", async () => /Read it <b>again<\/b>\./.test(await page.locator(".preview").innerText()));
  const listed = JSON.parse(await unspool(data, "adapt", "list", "--enabled", "--json"));
  assert.deepEqual(listed.items.map((item) => [item.id, item.content, item.version]), [[ID, "Read it <b>again</b>.", 2]]);

  // Somebody changes it meanwhile: what was typed stays, and nothing is lost.
  await unspool(data, "adapt", "update", ID, "--title", "Changed elsewhere");
  await page.locator("textarea[name=content]").fill("Mine.");
  await page.locator(".adaptation-edit button").click();
  await until("it is refused", async () => /has version 3, not 2/.test(await page.locator(".error").innerText()));
  assert.equal(await page.locator("textarea[name=content]").inputValue(), "Mine.");
  const kept = JSON.parse(await unspool(data, "adapt", "show", ID, "--json"));
  assert.deepEqual([kept.title, kept.content], ["Changed elsewhere", "Read it <b>again</b>."]);

  // A trial says so, and its preview too.
  await page.reload();
  await page.locator("select[name=trial]").selectOption("half");
  await page.locator(".adaptation-edit button").click();
  await until("the trial began", async () => /half/.test(await page.locator(".state").innerText()));
  await until("its preview says so", async () => (await page.locator(".preview").innerText()).includes(`half of the sessions also: ${ID}`));
});

test("a proposal is applied with a click, and the page shows what that changed", async (t) => {
  const data = await folder(t);
  await sessionsBefore(data);
  const server = await serve(t, data, ["--port", "0"]);
  const page = await open(t, { viewport: { width: 400, height: 800 } });
  await page.goto(server.address);
  await page.goto(`${server.origin}/adaptations`);
  const proposal = page.locator(".proposal", { hasText: ID });
  assert.match(await proposal.innerText(), /edit-missed: 28 of 36 edits in 6 sessions/);
  await page.goto(`${server.origin}/adaptations/${ID}`);
  await until("there is no verdict yet", async () => /too little to say/.test(await page.locator(".effect").innerText()));

  await page.goto(`${server.origin}/adaptations`);
  await proposal.locator("button", { hasText: /^Apply$/ }).click();
  await until("it is decided", async () => await page.locator(".proposal", { hasText: ID }).count() === 0);
  const shown = JSON.parse(await unspool(data, "adapt", "show", ID, "--json"));
  assert.equal(shown.enabled, true);
  // Another window decided it meanwhile: the page says so.
  const [other] = JSON.parse(await unspool(data, "adapt", "proposals", "--json")).filter((one) => one.state === "open");
  if (other) {
    await unspool(data, "adapt", "dismiss", String(other.number));
    const row = page.locator(`.decide[data-number="${other.number}"]`);
    await row.locator("button", { hasText: /^Apply$/ }).click();
    await until("it is refused", async () => /decided already/.test(await row.locator(".error").innerText()));
  }

  await sessionsAfter(data);
  await page.goto(`${server.origin}/adaptations/${ID}`);
  await until("it helped", async () => /fewer/.test(await page.locator(".effect .verdict").innerText()));
  const effect = page.locator(".effect");
  assert.equal(await effect.locator("svg .slot").count(), 12);
  assert.equal(await effect.locator(".arm .whisker").count(), 6);
  assert.match(await effect.innerText(), /2 of 36 edits in 6 sessions/);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.equal(wide, 400, "nothing is wider than the screen");
  // A bar leads to its session.
  await effect.locator("svg a").last().click();
  await page.waitForSelector(".session[data-live=on]");
  assert.deepEqual(page.troubles.filter((what) => !/400/.test(what)), []);
});
