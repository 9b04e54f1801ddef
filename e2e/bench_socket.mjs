// The live socket of a server, for benchmarks: without the cost of a library.

import { createHash, randomBytes } from "node:crypto";
import { connect } from "node:net";

/** A minimal WebSocket client that subscribes to a session and reads text frames. */
export function subscribe(server, session, hear) {
  const { port } = new URL(server.origin);
  const token = new URL(server.address).searchParams.get("token");
  const socket = connect(Number(port), "127.0.0.1");
  const key = randomBytes(16).toString("base64");
  socket.write(`GET /api/live HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: 13\r\nAuthorization: Bearer ${token}\r\n\r\n`);
  let held = Buffer.alloc(0);
  let open = false;
  socket.on("data", (chunk) => {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    if (!open) {
      const end = held.indexOf("\r\n\r\n");
      if (end < 0) return;
      const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
      if (!held.subarray(0, end).toString().includes(accept)) throw new Error(held.subarray(0, end).toString());
      held = held.subarray(end + 4);
      open = true;
      const subscription = Buffer.from(JSON.stringify({ subscribe: session.id, form: "json", since: session.seq }));
      const mask = randomBytes(4);
      const frame = Buffer.alloc(6 + subscription.length);
      frame[0] = 0x81;
      frame[1] = 0x80 | subscription.length;
      mask.copy(frame, 2);
      subscription.forEach((byte, at) => { frame[6 + at] = byte ^ mask[at % 4]; });
      socket.write(frame);
    }
    for (;;) {
      if (held.length < 2) return;
      let [start, length] = [2, held[1] & 0x7f];
      if (length === 126) { if (held.length < 4) return; [start, length] = [4, held.readUInt16BE(2)]; }
      else if (length === 127) { if (held.length < 10) return; [start, length] = [10, Number(held.readBigUInt64BE(2))]; }
      if (held.length < start + length) return;
      if ((held[0] & 0x0f) === 1) hear(held.subarray(start, start + length));
      held = held.subarray(start + length);
    }
  });
  return socket;
}
