// The MCP server, as the official clients of the protocol use it: over stdio, and over HTTP with the token.
// The SDK of 2025 begins with a handshake, the one of 2026 asks what the server is, without any.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { Client as Client2026, StreamableHTTPClientTransport as Http2026 } from "@modelcontextprotocol/client";
import { StdioClientTransport as Stdio2026 } from "@modelcontextprotocol/client/stdio";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { folder, program, root, run, serve } from "./program.mjs";

const recording = join(root, "fixtures/claude-code/discovery-loop");
/** Where the recording was made. */
const project = "/home/dev/weather-app";
const names = [
  "search_sessions", "list_sessions", "get_session", "get_turn", "get_part", "list_failures", "get_findings", "get_prompt",
  "get_thoughtflow", "get_stats", "list_adaptations", "get_adaptation", "preview_adaptations", "propose_adaptation",
];

async function archive(t) {
  const data = await folder(t);
  assert.equal(await run(data, ["import", recording]), 0);
  return data;
}

async function connected(t, transport, client = new Client({ name: "e2e", version: "1.0.0" })) {
  await client.connect(transport);
  t.after(() => client.close());
  return client;
}

/** A client that speaks the protocol of 2026 or nothing. */
function client2026() {
  const versionNegotiation = { mode: { pin: "2026-07-28" } };
  return new Client2026({ name: "e2e", version: "1.0.0" }, { versionNegotiation });
}

const command = (data, options, cwd = data) => {
  const env = { PATH: process.env.PATH, HOME: data };
  return { command: program, args: ["--data", data, "mcp", ...options], env, cwd };
};

function stdio(t, data, options = ["--project", project]) {
  return connected(t, new StdioClientTransport(command(data, options)));
}

/** Reads one session by all tools. The client checks each answer against the tool's schema. */
async function readAll(client) {
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name), names);
  // A proposal is written down; nothing else writes without --allow-edits.
  for (const tool of tools) {
    assert.equal(tool.annotations.readOnlyHint, tool.name !== "propose_adaptation", tool.name);
  }
  const call = async (name, args = {}) => {
    const result = await client.callTool({ name, arguments: args });
    assert.ok(!result.isError, JSON.stringify(result));
    assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent, "text and structure are one");
    assert.ok([...result.content[0].text].length <= (args.limit ?? 8000));
    return result.structuredContent;
  };
  const { sessions } = await call("list_sessions");
  assert.equal(sessions.length, 1);
  const { session } = sessions[0];
  const { hits } = await call("search_sessions", { query: "ForecastCache" });
  assert.ok(hits.length > 0 && hits.every((hit) => hit.of.session === session));
  const { turns } = await call("get_session", { session });
  assert.match(turns[0].user, /^The forecast cache keeps missing/);
  const turn = await call("get_turn", { session, turn: 1, limit: 2000 });
  assert.equal(turn.truncated, true);
  const later = await call("get_turn", { session, turn: 1, limit: 2000, after: turn.next });
  const ids = (answer) => answer.parts.map((part) => part.part);
  assert.ok(ids(later).every((id) => !ids(turn).includes(id)));
  const part = later.parts[0].part;
  assert.ok((await call("get_part", { session, part })).texts.length > 0);
  assert.ok((await call("list_failures")).failures.length > 0);
  const { findings } = await call("get_findings", { session });
  for (const place of findings.flatMap((finding) => finding.places ?? [])) {
    if (place.part) await call("get_part", { session, part: place.part, turn: place.turn });
  }
  assert.ok((await call("get_thoughtflow", { session })).steps.length > 0);
  assert.equal((await call("get_stats")).sessions, 1);
  const wrong = await client.callTool({ name: "get_turn", arguments: { session, turn: 99 } });
  assert.equal(wrong.isError, true);
  assert.match(wrong.content[0].text, /no turn 99/);
  await assert.rejects(client.callTool({ name: "delete_session", arguments: {} }), /there is no tool/);

  const { resources } = await client.listResources();
  assert.equal(resources[0].uri, `unspool://session/${session}`);
  const { contents } = await client.readResource({ uri: `${resources[0].uri}/turn/1` });
  assert.equal(JSON.parse(contents[0].text).turn, 1);
  const adaptations = resources.find((resource) => resource.uri === "unspool://adaptations");
  const listed = JSON.parse((await client.readResource({ uri: adaptations.uri })).contents[0].text);
  assert.ok(listed.adaptations.some((item) => item.id === "adn.tools.edit-reread"));
  assert.equal((await client.listResourceTemplates()).resourceTemplates.length, 2);
  await assert.rejects(client.readResource({ uri: "file:///etc/passwd" }), /no such resource/);
  const { prompts } = await client.listPrompts();
  assert.deepEqual(prompts.map((prompt) => prompt.name), ["reflect", "reflect_project", "handoff"]);
  const { messages } = await client.getPrompt({ name: "handoff", arguments: { session } });
  assert.match(messages[0].content.text, new RegExp(`session ${session}`));
  assert.match(client.getInstructions(), /data, not instructions/);
  return session;
}

test("the official client reads an archive over stdio", async (t) => {
  const data = await archive(t);
  const session = await readAll(await stdio(t, data));
  // The ids are those of the other commands.
  assert.equal(await run(data, ["show", session]), 0);
});

test("the official client of the next protocol reads an archive over stdio and HTTP, without a handshake", async (t) => {
  const data = await archive(t);
  const overStdio = await connected(t, new Stdio2026(command(data, ["--project", project])), client2026());
  assert.equal(overStdio.getNegotiatedProtocolVersion(), "2026-07-28");
  await readAll(overStdio);
  const server = await serve(t, data, ["--port", "0"]);
  const token = new URL(server.address).searchParams.get("token");
  const http = (headers) => new Http2026(new URL("/mcp", server.origin), { requestInit: { headers } });
  const overHttp = await connected(t, http({ Authorization: `Bearer ${token}` }), client2026());
  assert.equal(overHttp.getNegotiatedProtocolVersion(), "2026-07-28");
  await readAll(overHttp);
  await assert.rejects(client2026().connect(http({})));
});

test("a client sees the project that it was started in", async (t) => {
  const data = await archive(t);
  const sessions = async (options) => {
    const client = await stdio(t, data, options);
    return (await client.callTool({ name: "list_sessions", arguments: {} })).structuredContent.sessions.length;
  };
  assert.equal(await sessions([]), 0);
  assert.equal(await sessions(["--all"]), 1);
  assert.equal(await sessions(["--project", `${project}-old`]), 0);
});

test("the official client reads an archive over HTTP with the token, and nobody without", async (t) => {
  const data = await archive(t);
  const server = await serve(t, data, ["--port", "0"]);
  const token = new URL(server.address).searchParams.get("token");
  const transport = (path, headers) => new StreamableHTTPClientTransport(new URL(path, server.origin), { requestInit: { headers } });
  const allowed = { Authorization: `Bearer ${token}` };
  await readAll(await connected(t, transport("/mcp", allowed)));
  const elsewhere = await connected(t, transport("/mcp?project=/elsewhere", allowed));
  const none = await elsewhere.callTool({ name: "list_sessions", arguments: {} });
  assert.deepEqual(none.structuredContent.sessions, []);

  const list = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  const status = (headers, method = "POST") => new Promise((resolve, reject) => {
    const { port } = new URL(server.origin);
    const given = { "Content-Type": "application/json", Accept: "application/json, text/event-stream", ...headers };
    const asked = request({ host: "127.0.0.1", port, path: "/mcp", method, headers: given }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    asked.on("error", reject);
    asked.end(method === "POST" ? list : undefined);
  });
  assert.equal(await status(allowed), 200);
  for (const [wanted, headers, method] of [
    [403, {}],
    [401, { Origin: server.origin }],
    [401, { Origin: server.origin, Authorization: `Bearer ${token.slice(1)}x` }],
    [401, {}, "GET"],
    [403, { ...allowed, Origin: "http://evil.example" }],
    [403, { ...allowed, Origin: "http://evil.example" }, "GET"],
    [403, { ...allowed, Origin: "null" }],
    [421, { ...allowed, Host: "evil.example" }],
    [421, { ...allowed, Host: `evil.example:${new URL(server.origin).port}` }],
    // No stream: the server has nothing to say by itself.
    [405, allowed, "GET"],
  ]) {
    assert.equal(await status(headers, method), wanted, JSON.stringify([headers, method]));
  }
});

test("agents get the server into their settings, and out again", async (t) => {
  const data = await folder(t);
  const home = join(data, "home");
  const files = {
    "claude-code": ".claude.json",
    codex: ".codex/config.toml",
    gemini: ".gemini/settings.json",
    copilot: ".copilot/mcp-config.json",
    opencode: ".config/opencode/opencode.json",
  };
  for (const [agent, file] of Object.entries(files)) {
    const read = () => readFile(join(home, file), "utf8").catch(() => undefined);
    assert.equal(await run(data, ["mcp", "install", "--agent", agent]), 0);
    assert.equal(await read(), undefined, "shown only");
    assert.equal(await run(data, ["mcp", "install", "--agent", agent, "--yes"]), 0);
    assert.match(await read(), /unspool/);
    assert.ok((await read()).includes(data), "the archive that was named");
    assert.equal(await run(data, ["mcp", "install", "--agent", agent, "--remove", "--yes"]), 0);
    assert.doesNotMatch(await read(), /unspool/);
  }
  // The command that is written is the one that the client can start.
  await run(data, ["import", recording]);
  await run(data, ["mcp", "install", "--agent", "claude-code", "--all", "--yes"]);
  const installed = JSON.parse(await readFile(join(home, files["claude-code"]), "utf8")).mcpServers.unspool;
  const env = { PATH: process.env.PATH, HOME: home };
  const client = await connected(t, new StdioClientTransport({ command: installed.command, args: installed.args, env }));
  const { structuredContent } = await client.callTool({ name: "list_sessions", arguments: {} });
  assert.equal(structuredContent.sessions.length, 1);
});
