// The D2 compiler itself as a judge of diagrams. Nothing here does its work.
//
//   node e2e/judges/d2.mjs FILE.d2 …
//
// It takes seconds to start, so one process judges them all. For each file one line of JSON: what was
// drawn, board by board, or what the compiler has against it.

import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { D2 } from "@terrastruct/d2";

/** What the compiler says, with line and column. */
function explained(error) {
  try {
    return JSON.parse(error.message).map((one) => one.errmsg ?? JSON.stringify(one)).join("\n");
  } catch {
    return error?.message ?? String(error);
  }
}

/** A board and all below it, by their paths. */
function boards(diagram, path = "") {
  const own = {
    path,
    shapes: (diagram.shapes ?? []).map(({ id, label, link, tooltip, classes, fill }) => ({ id, label, link, tooltip, classes, fill })),
    connections: (diagram.connections ?? []).map(({ src, dst }) => ({ src, dst })),
  };
  const below = (diagram.layers ?? []).flatMap((layer) => boards(layer, `${path}layers.${layer.name}.`));
  return [own, ...below];
}

/** Compiles one diagram after the other, and draws its first board. */
export async function* judge(sources) {
  const d2 = new D2();
  for (const source of sources) {
    try {
      const compiled = await d2.compile(source, { layout: "dagre" });
      const svg = await d2.render(compiled.diagram, { ...compiled.renderOptions, noXMLTag: true });
      yield { against: /<svg[\s>]/.test(svg) ? [] : ["nothing was drawn"], boards: boards(compiled.diagram), svg };
    } catch (error) {
      yield { against: [explained(error)], boards: [] };
    }
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const files = process.argv.slice(2);
  const sources = await Promise.all(files.map((file) => readFile(file, "utf8")));
  let nth = 0;
  let refused = 0;
  for await (const { against, boards: drawn } of judge(sources)) {
    if (against.length) refused += 1;
    const counts = drawn.map(({ path, shapes, connections }) => [path, shapes.length, connections.length]);
    console.log(JSON.stringify({ file: files[nth++], against, boards: counts }));
  }
  // The compiler's thread would keep the process.
  process.exit(refused ? 1 : 0);
}
