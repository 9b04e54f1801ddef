// Agent output is hostile (law 8): it is not executed, loads nothing, and cannot imitate Unspool's own
// interface.

import assert from "node:assert/strict";
import { appendFile, cp, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { Log } from "./synthetic_log.mjs";
import { closeBrowser, folder, open, root, serve, until } from "./program.mjs";

after(closeBrowser);

const ATTACKS = [
  "<script>window.hacked = 1</script>",
  "<img src=x onerror=\"window.hacked = 1\">",
  "<svg onload=\"window.hacked = 1\"><animate onbegin=\"window.hacked = 1\" attributeName=x></svg>",
  "\"><iframe src=\"https://elsewhere.example/\"></iframe>",
  "<style>* { background: url(https://elsewhere.example/x) }</style><link rel=stylesheet href=https://elsewhere.example/x.css>",
  "<base href=https://elsewhere.example/><meta http-equiv=refresh content=\"0;url=https://elsewhere.example/\">",
  "[click](javascript:window.hacked=1) [data](data:text/html,<script>window.hacked=1</script>) <javascript:window.hacked=1>",
  "![picture](https://elsewhere.example/pixel.png)",
  "<form action=https://elsewhere.example/><button id=main name=body>x</button></form><a id=session-head name=turns>x</a>",
  "\u001b]8;;javascript:window.hacked=1\u0007link\u001b]8;;\u0007 \u001b[2J\u001b[31mred\u001b[999999999;99999m\u001b[38;5;999mx",
  "\u202egnp.exe\u202c \u2066isolated\u2069 \u200b a\u0000b\u0085c\u2028d\u007f",
  "[Thinking] I am not thinking\n[OK] [FAILED] [RUNNING]\nReasoning (7 tool calls)",
  "</code></pre></div></section><section class=\"turn\" id=\"t-x\" onclick=\"window.hacked=1\">",
  "```html\" onclick=\"window.hacked=1\n</code><script>window.hacked=1</script>\n```",
  "| a | <b onclick=window.hacked=1> |\n|---|---|\n| ' onmouseover='window.hacked=1 | \" |",
  "{{constructor.constructor('window.hacked=1')()}} ${window.hacked=1} <%= 1 %>",
  "\u001b[1m".repeat(5000),
  "𝕏".repeat(3000),
];

/** A line wider than any screen. */
const HUGE = "𝕏".repeat(1000) + "a".repeat(200000);

/** What a page must never contain, whatever the log contains. */
const findings = () => {
  const bad = [];
  if (window.hacked !== undefined) bad.push("something ran");
  for (const one of document.querySelectorAll("*")) {
    // The part bar floats, and our script sets its position.
    if (one.matches(".part-bar")) continue;
    for (const { name, value } of one.attributes) {
      if (name.startsWith("on") || name === "style" || name === "srcdoc") bad.push(`${one.tagName} ${name}`);
      if (["href", "src", "action"].includes(name) && /^\s*(javascript|data:text|vbscript)/i.test(value)) bad.push(`${one.tagName} ${name}=${value}`);
    }
    if (one.closest(".transcript") && ["SCRIPT", "IFRAME", "STYLE", "LINK", "BASE", "META", "OBJECT", "EMBED"].includes(one.tagName)) bad.push(one.tagName);
  }
  // Unspool's own labels are in elements that agent text cannot reach.
  for (const badge of document.querySelectorAll(".badge")) if (!badge.closest(".card-head")) bad.push("a badge outside of a card");
  if (document.querySelectorAll("#session-head").length !== 1 || document.querySelectorAll("main").length !== 1) bad.push("an element of ours was doubled");
  const text = document.querySelector(".transcript").innerText;
  // eslint-disable-next-line no-control-regex
  if (/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.test(text)) bad.push("a control character");
  return bad;
};

test("agent output does not run, load anything or imitate the interface", async (t) => {
  const [data, home] = [await folder(t), await folder(t)];
  const projects = join(home, ".claude/projects/-home-dev-weather-app");
  await mkdir(projects, { recursive: true });
  const log = new Log();
  for (const attack of ATTACKS) {
    log.prompt(attack).think(attack).say(attack);
    log.call("Bash", { command: attack, description: attack }, attack);
    log.call("Edit", { file_path: attack, old_string: "a", new_string: attack }, attack);
    log.call("Write", { file_path: `/tmp/${attack}`, content: attack }, attack, true);
    log.call(attack.slice(0, 60), { [attack.slice(0, 40)]: attack, url: "javascript:window.hacked=1" }, [{ type: "text", text: attack }]);
    log.call("WebFetch", { url: attack, prompt: attack }, attack);
    log.call("TodoWrite", { todos: [{ content: attack, status: "in_progress", activeForm: attack }] }, attack);
    log.call("AskUserQuestion", { questions: [{ question: attack, header: attack, options: [{ label: attack, description: attack }], multiSelect: false }] }, attack);
  }
  log.prompt("go on").say(HUGE).call("Bash", { command: "x" }, HUGE);
  log.record({ type: "summary", summary: ATTACKS[0], leafUuid: log.last });
  await appendFile(join(projects, "hostile.jsonl"), log.take());
  for (const name of ["odd-output", "whitespace-only-text", "images-read-by-tools"]) {
    await cp(join(root, "fixtures/claude-code", name, "log.jsonl"), join(projects, `${name}.jsonl`));
  }
  const server = await serve(t, data, ["--port", "0"], home);
  const page = await open(t);
  const requested = [];
  page.on("request", (request) => requested.push(request.url()));
  page.on("dialog", (dialog) => { requested.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  await page.goto(server.address);
  await until("all are listed", async () => {
    await page.goto(server.origin);
    return (await page.locator(".row").count()) >= 4 || page.locator(".row").count();
  }, 20);
  const links = await page.locator(".row > a").evaluateAll((all) => all.map((one) => one.getAttribute("href")));
  for (const link of links) {
    await page.goto(new URL(link.split("?")[0] + "?turn=0", server.origin).href);
    await page.waitForSelector(".session[data-live=on] .turn");
    // Open every fold, scroll from top to bottom, hover everything hoverable.
    let before = -1;
    await until("the end", async () => {
      await page.evaluate(() => document.querySelector("[data-act=unfold]").click());
      await page.evaluate(() => scrollBy({ top: 60000, behavior: "instant" }));
      await page.waitForTimeout(60);
      const now = await page.evaluate(() => scrollY);
      const same = now === before && (await page.locator(".turns .gap.after").count()) === 0;
      before = now;
      assert.deepEqual(await page.evaluate(findings), [], link);
      return same || now;
    }, 60);
  }
  // The same in the list, the search, the palette and in copied text.
  for (const path of ["/", "/?q=hacked", "/?q=Thinking"]) {
    await page.goto(new URL(path, server.origin).href);
    assert.equal(await page.evaluate(() => window.hacked), undefined, path);
  }
  const elsewhere = requested.filter((url) => !url.startsWith(server.origin) && !url.startsWith("data:image/"));
  assert.deepEqual(elsewhere, [], "nothing is loaded from elsewhere");
  // The text is shown, as text.
  await page.goto(`${server.origin}${links.find((link) => link)}`);
  const policy = page.troubles.filter((trouble) => /content security/i.test(trouble));
  assert.deepEqual(policy, [], "not even the policy had to step in");
});

test("text that imitates reasoning or a state is shown as text", async (t) => {
  const [data, home] = [await folder(t), await folder(t)];
  const path = join(home, ".claude/projects/-home-dev-weather-app/fake.jsonl");
  await mkdir(dirname(path), { recursive: true });
  const fake = "[Thinking] I only say so [OK] Reasoning (3 tool calls)";
  await appendFile(path, new Log().prompt("x").say(fake).take());
  const server = await serve(t, data, ["--port", "0"], home);
  const page = await open(t);
  await page.goto(server.address);
  await until("it is listed", async () => {
    await page.goto(server.origin);
    return (await page.locator(".row").count()) === 1;
  });
  await page.click(".row a");
  await page.waitForSelector(".session[data-live=on] .turn");
  assert.equal(await page.locator(".part.text", { hasText: fake }).count(), 1);
  assert.equal(await page.locator(".reasoning-block, .part.reasoning, .badge").count(), 0);
});
