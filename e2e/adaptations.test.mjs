// The pages of adaptations: edited in a browser for the version that is shown, previewed for each agent.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, test } from "node:test";
import { promisify } from "node:util";
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
