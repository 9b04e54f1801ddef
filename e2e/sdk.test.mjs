// AI SDK exports, checked by the AI SDK itself: messages of every fixture in three versions, and streams of
// the running server as the real clients assemble them.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { appendFile, mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { Chat } from "@ai-sdk/react";
import { differences, judged, plain, sdk, versions } from "./judges/sdk.mjs";
import { folder, freePort, root, serve, until } from "./program.mjs";

const program = process.env.UNSPOOL_PROGRAM ?? join(root, "target/debug/unspool");
const execute = promisify(execFile);
const fixtures = join(root, "fixtures");

/** The program's stdout, without stderr. */
async function unspool(data, ...options) {
  const { stdout } = await execute(program, ["--data", data, ...options], { env: { PATH: process.env.PATH, HOME: data }, maxBuffer: 1e8 });
  return stdout;
}

async function cases() {
  const found = [];
  for (const agent of (await readdir(fixtures, { withFileTypes: true })).filter((one) => one.isDirectory())) {
    const entries = await readdir(join(fixtures, agent.name), { withFileTypes: true });
    found.push(...entries.filter((one) => one.isDirectory()).map((one) => join(agent.name, one.name)));
  }
  assert.ok(found.length > 200, `${found.length} cases`);
  return found.sort();
}

/** All sessions of an archive in one export format, by id. */
async function exported(data, to, ...options) {
  const out = join(data, `out-${to}-${options.join("")}`);
  await mkdir(out, { recursive: true });
  await unspool(data, "export", "--all", "--to", to, ...options, "-o", out);
  const sessions = new Map();
  for (const name of (await readdir(out)).sort()) sessions.set(name.replace(/\.\w+$/, ""), JSON.parse(await readFile(join(out, name), "utf8")));
  return sessions;
}

// R-001-01 to R-001-04; law 1
test("SDK versions 5, 6 and 7 accept the messages of every fixture losslessly", async (t) => {
  const all = await cases();
  let judgements = 0;
  const against = [];
  for (const name of all) {
    const data = await folder(t);
    await unspool(data, "import", join(fixtures, name));
    // A session without turns: nothing to export.
    if (name === "claude-code/v2-0-30-agent-warms-up") continue;
    for (const [options, judges] of [[[], versions], [["--sdk", "7"], [7]]]) {
      for (const [session, messages] of await exported(data, "uimessage", ...options)) {
        // A session without messages: the SDK does not have that.
        if (messages.length === 0) continue;
        for (const version of judges) {
          const judgement = await judged(messages, version);
          judgements += 1;
          against.push(...judgement.against.map((what) => `${name} ${session} in version ${version}${options.join(" ")}: ${what}`));
        }
      }
    }
  }
  assert.deepEqual(against, []);
  assert.ok(judgements > 800, `${judgements}`);
});

// R-000-20: a call and its result stay together, each in its step.
test("the model history has every call with its result, in order", async (t) => {
  const data = await folder(t);
  await unspool(data, "import", join(fixtures, "ai-sdk/multi-step-interleaved"));
  const [[, messages]] = await exported(data, "uimessage");
  const { history } = await judged(messages, 7);
  const historyLines = history.flatMap(({ role, content }) => typeof content === "string" ? [`${role}: ${content}`]
    : content.map((part) => `${role}: ${part.type} ${part.text ?? part.toolCallId ?? ""}`));
  const kinds = historyLines.map((line) => line.split(" ").slice(0, 2).join(" "));
  assert.deepEqual(kinds.filter((line) => /tool|reasoning/.test(line)).length > 3, true, historyLines.join("\n"));
  for (const [nth, line] of historyLines.entries()) {
    const call = line.match(/^assistant: tool-call (.+)$/)?.[1];
    if (call) assert.ok(historyLines.slice(nth).some((later) => later === `tool: tool-result ${call}`), `${call} in ${historyLines.join("\n")}`);
  }
});

async function serving(t, data, home) {
  const server = await serve(t, data, ["--port", String(await freePort())], home ?? join(data, "home"));
  const headers = { authorization: `Bearer ${new URL(server.address).searchParams.get("token")}` };
  const ask = async (path) => fetch(`${server.origin}${path}`, { headers });
  return { ...server, headers, ask };
}

/** The message that a client of this version assembles from a stream. */
async function consumed(server, version, session, query) {
  const { DefaultChatTransport, readUIMessageStream } = await sdk(version);
  const transport = new DefaultChatTransport({
    api: `${server.origin}/api/chat`, headers: server.headers,
    prepareReconnectToStreamRequest: ({ id, headers }) => ({ api: `${server.origin}/api/chat/${id}/stream?${query}`, headers: headers ?? server.headers }),
  });
  const stream = await transport.reconnectToStream({ chatId: session });
  if (stream === null) return null;
  const errors = [];
  let last;
  for await (const message of readUIMessageStream({ stream, onError: (error) => errors.push(error.message) })) last = message;
  assert.deepEqual(errors, []);
  return plain(last);
}

test("the clients assemble every stream into the exported message, part by part", async (t) => {
  const data = await folder(t);
  await unspool(data, "import", fixtures);
  const common = await exported(data, "uimessage");
  const newer = await exported(data, "uimessage", "--sdk", "7");
  // The server must not end the turns of agents that are gone: the exports were made before.
  const config = join(data, "home/.config/unspool");
  await mkdir(config, { recursive: true });
  await writeFile(join(config, "config.toml"), "idle_after = 1000000000\n");
  const server = await serving(t, data);
  const against = [];
  let streams = 0;
  for (const [session, messages] of common) {
    const turns = await (await server.ask(`/api/sessions/${session}/turns`)).json();
    // Imported messages keep their own ids: match replies by turn order.
    // System messages are separate messages.
    const spoken = turns.filter((turn) => turn.parts.some((part) => part.title !== "System message") || turn.user.some(({ kind }) => !["text", "file"].includes(kind))).map((turn) => turn.number);
    const replies = (all) => all.filter((message) => message.role === "assistant").map((message, nth) => [message, spoken[nth]]);
    const wanted = [
      ...versions.flatMap((version) => replies(messages).map((reply) => [version, version, ...reply])),
      ...replies(newer.get(session)).map((reply) => [7, "7", ...reply]),
    ];
    for (const [version, said, message, turn] of wanted) {
      const query = `turn=${turn}${said === "7" ? "&sdk=7" : ""}`;
      const got = await consumed(server, version, session, query);
      streams += 1;
      against.push(...differences(message, got).map((what) => `${session} ${query} in version ${version}: ${what}`));
    }
    // A reconnecting chat: all messages, and the last reply from the stream.
    const last = messages.at(-1);
    if (last?.role !== "assistant") continue;
    const { DefaultChatTransport } = await sdk(7);
    const chat = new Chat({
      id: session, messages: structuredClone(messages.slice(0, -1)),
      transport: new DefaultChatTransport({ api: `${server.origin}/api/chat?turn=${spoken.at(-1)}`, headers: server.headers }),
    });
    await chat.resumeStream();
    assert.equal(chat.status, "ready", `${session}: ${chat.error}`);
    against.push(...differences(messages, plain(chat.messages)).map((what) => `${session} as a chat: ${what}`));
  }
  assert.deepEqual(against.slice(0, 20), []);
  assert.ok(streams > 1000, `${streams}`);
});

test("a running turn is streamed to its end; without one there is nothing to resume", async (t) => {
  const [data, home] = [await folder(t), await folder(t)];
  const text = await readFile(join(fixtures, "claude-code/discovery-loop/log.jsonl"), "utf8");
  const stamp = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z/g;
  const shift = Date.now() - Math.max(...text.match(stamp).map(Date.parse));
  const lines = text.split("\n").filter(Boolean).map((line) => `${line.replaceAll(stamp, (time) => new Date(Date.parse(time) + shift).toISOString())}\n`);
  const log = join(home, ".claude/projects/-home-dev/live.jsonl");
  await mkdir(dirname(log), { recursive: true });
  const half = Math.floor(lines.length / 2);
  await writeFile(log, lines.slice(0, half).join(""));
  const server = await serving(t, data, home);
  let session;
  await until("it is there and goes on", async () => {
    const [one] = await (await server.ask("/api/sessions")).json();
    session = one?.id;
    return one?.state === "live" || JSON.stringify(one ?? null);
  });
  const followed = consumed(server, 7, session, "");
  for (const line of lines.slice(half)) {
    await appendFile(log, line);
    await new Promise((resolve) => setTimeout(resolve, 60));
  }
  const message = await followed;
  const stored = await (await server.ask(`/api/sessions/${session}/export?to=uimessage`)).json();
  assert.deepEqual(differences(stored.findLast((one) => one.id === message.id), message), []);
  assert.equal(message.metadata.state, "completed");
  assert.ok(message.parts.length > 20, `${message.parts.length}`);
  assert.equal((await server.ask(`/api/chat/${session}/stream`)).status, 204);
  assert.equal((await server.ask(`/api/chat/${session}/stream?turn=99`)).status, 404);
});
