// Authentication, tested with raw requests: includes headers that a browser would never send.

import assert from "node:assert/strict";
import { request } from "node:http";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { closeBrowser, folder, freePort, open, run, serve } from "./program.mjs";

/** Sends a request; resolves with status, headers and text. */
function ask(server, path, headers = {}, method = "GET") {
  const { hostname, port } = new URL(server.origin);
  return new Promise((resolve, reject) => {
    const outgoing = request({ hostname, port, path, method, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => { text += chunk; });
      response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, text }));
    });
    outgoing.on("upgrade", (response, socket) => {
      socket.destroy();
      resolve({ status: response.statusCode, headers: response.headers, text: "" });
    });
    outgoing.on("error", reject);
    outgoing.end();
  });
}

const UPGRADE = {
  connection: "Upgrade", upgrade: "websocket",
  "sec-websocket-version": "13", "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
};

test("requests need the token, our host name and our origin", async (t) => {
  const data = await folder(t);
  const server = await serve(t, data, ["--demo", "--port", String(await freePort())]);
  const token = new URL(server.address).searchParams.get("token");
  const bearer = { authorization: `Bearer ${token}` };

  for (const path of ["/", "/api/sessions", "/api/live", "/assets/app.js", "/s/x", "/nothing"]) {
    const { status, headers, text } = await ask(server, path);
    assert.equal(status, 401, path);
    assert.equal(headers["content-type"], "application/problem+json", path);
    assert.match(JSON.parse(text).detail, /unspool serve/);
  }
  assert.equal((await ask(server, "/?token=wrong")).status, 401);
  assert.equal((await ask(server, "/", { authorization: `Bearer ${token}x` })).status, 401);
  assert.equal((await ask(server, "/", { cookie: "token=x; unspool=y" })).status, 401);

  // The token becomes a cookie and is removed from the URL.
  const let_in = await ask(server, `/s/abc?before=3&token=${token}`);
  assert.equal(let_in.status, 303);
  assert.equal(let_in.headers.location, "/s/abc?before=3");
  const [cookie] = let_in.headers["set-cookie"];
  assert.match(cookie, /; HttpOnly; SameSite=Strict; Path=\//);
  assert.equal((await ask(server, "/", { cookie: cookie.split(";")[0] })).status, 200);
  assert.equal((await ask(server, `//elsewhere.example/?token=${token}`)).headers.location, "/elsewhere.example/");

  // Another host name for this address is DNS rebinding.
  for (const host of ["evil.example", `evil.example:${new URL(server.origin).port}`, "127.0.0.1"]) {
    assert.equal((await ask(server, "/", { ...bearer, host })).status, 421, host);
  }

  // Other sites cannot open sockets or post; our own pages can.
  for (const origin of ["http://evil.example", "null", "https://127.0.0.1"]) {
    assert.equal((await ask(server, "/api/live", { ...bearer, ...UPGRADE, origin })).status, 403, origin);
    assert.equal((await ask(server, "/api/sessions", { ...bearer, origin }, "POST")).status, 403, origin);
  }
  assert.equal((await ask(server, "/api/live", { ...bearer, ...UPGRADE, origin: server.origin })).status, 101);

  // Unknown paths are 404, and there is no path traversal.
  for (const path of ["/assets/../Cargo.toml", "/assets/..%2f..%2fCargo.toml", "/assets/%2e%2e/x", "/s/nosuchsession", "/api/sessions/nosuchsession"]) {
    assert.equal((await ask(server, path, bearer)).status, 404, path);
  }
  const page = await ask(server, "/", bearer);
  const policy = page.headers["content-security-policy"];
  assert.match(policy, /default-src 'none'/);
  assert.doesNotMatch(policy, /unsafe|\*/);
  assert.equal(page.headers["x-content-type-options"], "nosniff");

  // Other users of the machine cannot read the token.
  const { mode } = await stat(join(data, "demo", "token"));
  assert.equal(mode & 0o077, 0);
  assert.equal(await server.stop(), 0, "it shuts down cleanly");
});

test("remote clients log in with the password, without scripts", async (t) => {
  const data = await folder(t);
  const password = "a long password & more";
  assert.equal(await run(data, ["serve", "--set-password"], `${password}\n`), 0);
  const { mode } = await stat(join(data, "password"));
  assert.equal(mode & 0o077, 0);
  const server = await serve(t, data, ["--demo", "--listen", "0.0.0.0", "--port", String(await freePort())]);
  assert.match(server.said(), /not encrypted|Nothing is encrypted/);

  const page = await open(t, { javaScriptEnabled: false });
  await page.goto(`${server.origin}/?q=cache`);
  assert.equal(new URL(page.url()).pathname, "/login");
  await page.fill("input[name=password]", "not the password");
  await page.click("button");
  assert.match(await page.textContent("[role=alert]"), /Wrong password/);
  await new Promise((resolve) => setTimeout(resolve, 1200));
  await page.fill("input[name=password]", password);
  await page.click("button");
  // Redirects to the requested page.
  assert.equal(page.url(), `${server.origin}/?q=cache`);
  assert.ok(await page.$(".results"), await page.content());
  // The login belongs to this browser only.
  const stranger = await open(t);
  await stranger.goto(`${server.origin}/s/x`);
  assert.equal(new URL(stranger.url()).pathname, "/login");
  assert.deepEqual(stranger.troubles, []);
});

after(closeBrowser);
