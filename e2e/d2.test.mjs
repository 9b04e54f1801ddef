// The D2 compiler accepts our exports and draws the content of the document.

import assert from "node:assert/strict";
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { after, test } from "node:test";
import { judge } from "./judges/d2.mjs";
import { Log } from "./synthetic_log.mjs";
import { folder, root, run } from "./program.mjs";

// The compiler's worker thread would keep the process alive.
after(() => setTimeout(() => process.exit(process.exitCode ?? 0), 500).unref());

/** Small sessions of every agent, including unusual ones. */
const CASES = [
  "ai-sdk/approval-continuation", "ai-sdk/unicode-edge", "ai-sdk/multi-step-interleaved",
  "claude-code/interrupted-mid-tool", "claude-code/odd-output", "claude-code/question-answered",
  "claude-code/error-gives-up", "codex/aborted-and-late-item", "copilot/form-answered",
  "gemini/error-stream-cut", "opencode/text-between-tools", "rows/calls-at-offsets",
];

const ATTACKS = [
  "\"; }\n\"evil\": { link: \"javascript:alert(1)\" }", "a\\", "${x} $y $${z}", "|md\n# x\n|", "``` ||| `",
  "\u001b[31m\u0007\u0000\u0085", "\u202ertl\u2066", "<script>alert(1)</script>", "_", "null", "*", "&a: b", "...@x",
  "&#xFFFF; \uffff <b> </p> <!-- <![CDATA[", "[x](javascript:alert(1)) ![y](javascript:alert(2))",
];

// R-002-21, R-002-22, R-002-23, R-002-26
test("exports are valid D2", async (t) => {
  const data = await folder(t);
  for (const name of CASES) assert.equal(await run(data, ["import", join(root, "fixtures", name)]), 0, name);
  const log = new Log();
  for (const text of ATTACKS) log.prompt(text).think(text).say(text);
  const made = join(data, "made.jsonl");
  await writeFile(made, log.lines.join(""));
  assert.equal(await run(data, ["import", made]), 0);
  const [diagrams, documents] = [join(data, "d2"), join(data, "json")];
  for (const [form, to] of [["d2", diagrams], ["thoughtflow", documents]]) {
    await mkdir(to);
    assert.equal(await run(data, ["export", "--all", "--to", form, "-o", to]), 0);
  }
  const files = (await readdir(diagrams)).sort();
  assert.ok(files.length >= CASES.length + 1, `${files.length} diagrams`);
  const sources = await Promise.all(files.map((file) => readFile(join(diagrams, file), "utf8")));
  let nth = 0;
  for await (const { against, boards, svg } of judge(sources)) {
    const file = files[nth++];
    const thoughtflow = JSON.parse(await readFile(join(documents, `${basename(file, ".d2")}.json`), "utf8"));
    assert.deepEqual(against, [], file);
    const [session, ...runs] = boards;
    const lanes = session.shapes.filter(({ id }) => !id.includes("."));
    assert.equal(lanes.length, thoughtflow.conversations.length, file);
    assert.equal(session.connections.filter(({ src }) => !src.includes(".")).length, lanes.length - 1, file);
    assert.deepEqual(lanes.map(({ link }) => link), runs.map(({ path }) => `root.${path.replace(/\.$/, "")}`), file);
    for (const [at, { shapes, connections }] of runs.entries()) {
      const { steps } = thoughtflow.conversations[at];
      const drawn = shapes.filter(({ link }) => link !== "root");
      assert.equal(drawn.length, Math.max(1, steps.length), file);
      assert.deepEqual(drawn.filter(({ classes }) => classes?.[0] === "note").length, steps.length ? 0 : 1);
      const edges = steps.flatMap(({ depends_on = [] }) => [depends_on].flat());
      assert.equal(connections.length, edges.length || Math.max(0, steps.length - 1), file);
      for (const [which, { label, tooltip, fill }] of drawn.entries()) {
        if (!steps.length) continue;
        assert.ok([...label].length <= 160, label);
        assert.ok(tooltip.includes(steps[which].step_id), file);
        assert.notEqual(fill, undefined);
      }
    }
    // The compiler would accept such a link.
    assert.ok(!/(href|src)="\s*javascript:/i.test(svg), file);
  }
  assert.equal(nth, files.length);
});
