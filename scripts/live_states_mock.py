"""A scripted model on loopback for `live-states`. It speaks the streaming APIs of Anthropic
(messages), OpenAI (responses) and Gemini, as far as coding agents use them.

A prompt names a step: `do step NAME`. A step is a pause and then a sentence, an error, the beginning
of a sentence that never ends, or calls of tools; after their results the model answers with a
sentence. A call is a command for the agent's shell tool, or a table of arguments by tool: the first
tool that the agent declares is called.
"""
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STEP = re.compile(r"do step (\w+)")
SHELL = {  # the agents' shell tools and the parameter that takes the command
    "Bash": "command", "bash": "command", "run_shell_command": "command",
    "exec_command": "cmd", "shell_command": "command", "Execute": "command",
}


class Mock:
    """`steps[name] = (pause in seconds, commands or the status of an error)`. `log` holds
    (time, event, step)."""

    def __init__(self, steps):
        self.steps, self.log, self.calls, self.lock = steps, [], 0, threading.Lock()
        # Steps whose tools an agent does not declare.
        self.undeclared = set()
        mock = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.reply({})

            def do_GET(self):
                self.reply({"object": "list", "data": [], "models": []})

            def do_POST(self):
                size = int(self.headers.get("content-length") or 0)
                try:
                    body = json.loads(self.rfile.read(size) or b"{}")
                except ValueError:
                    body = {}
                try:
                    mock.answer(self, self.path.split("?")[0], body)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the agent is gone or was interrupted

            def reply(self, value, status=200):
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def note(self, event, step):
        with self.lock:
            self.log.append((time.time(), event, step))

    def when(self, event, step, since=0.0):
        """The time of the first such event, or None."""
        with self.lock:
            return next((t for t, e, s in self.log if e == event and s == step and t >= since), None)

    def last(self, event, step):
        with self.lock:
            return max((t for t, e, s in self.log if e == event and s == step), default=time.time())

    def id(self, prefix):
        with self.lock:
            self.calls += 1
            return f"{prefix}{self.calls:06d}"

    def answer(self, http, path, body):
        if re.search(r"count_?tokens", path, re.I):
            return http.reply({"input_tokens": 1000, "totalTokens": 1000})
        for ending, speak in (("/messages", anthropic), ("/responses", openai)):
            if path.endswith(ending):
                break
        else:
            if "enerateContent" not in path:
                return http.reply({})
            speak = gemini
        tool, argument = shell_tool(body)
        step, answered = asked(body)
        # Requests without the shell tool ask for titles and summaries.
        pause, then = self.steps.get(step, (0, [])) if tool and not answered else (0, [])
        if tool and step:
            self.note("result" if answered else "request", step)
        stream = body.get("stream") or "streamGenerateContent" in path
        time.sleep(pause)
        if isinstance(then, int):
            error = {"type": "invalid_request_error", "message": "refused", "code": then}
            http.reply({"type": "error", "error": error}, then)
            return self.note("end", step)
        if isinstance(then, str):
            return self.hang(http, speak, body.get("model") or "mock", then)
        more = {"yield_time_ms": 30000} if argument == "cmd" else {"description": "Run it"}
        if tool == "Execute":
            more = {"summary": "Run it", "riskLevel": "medium", "riskLevelReason": "It runs a script."}
        calls = []
        for call in then:
            if isinstance(call, str):
                calls.append((self.id("call_"), tool, {argument: call} | more))
            elif name := next((name for name in call if name in declared(body)), None):
                calls.append((self.id("call_"), name, call[name], namespace(body, name)))
            else:
                self.undeclared.add(step)
        text = "I run it." if calls else "Done." if tool else "Small task"
        frames, whole = speak(self.id("r_"), body.get("model") or "mock", text, calls)
        if not stream:
            http.reply(whole)
        else:
            send_frames(http, frames)
        if tool and step and not calls:
            self.note("end", step)


    def hang(self, http, speak, model, text):
        """The beginning of a reply. The agent waits for the rest until it is interrupted."""
        frames, _ = speak(self.id("r_"), model, text, [])
        if speak is anthropic:
            frames = frames[:3]
        elif speak is openai:
            added = dict(frames[1][1], item=frames[1][1]["item"] | {"content": [], "status": "in_progress"})
            delta = {"type": "response.output_text.delta", "sequence_number": 2, "output_index": 0,
                     "content_index": 0, "item_id": added["item"]["id"], "delta": text}
            frames = [frames[0], ("response.output_item.added", added), (delta["type"], delta)]
        else:
            del frames[0][1]["candidates"][0]["finishReason"]
        send_frames(http, frames)
        time.sleep(60)


def send_frames(http, frames):
    http.send_response(200)
    http.send_header("content-type", "text/event-stream")
    http.send_header("connection", "close")
    http.end_headers()
    for name, frame in frames:
        head = f"event: {name}\n" if name else ""
        http.wfile.write(f"{head}data: {json.dumps(frame)}\n\n".encode())
        http.wfile.flush()
    http.close_connection = True


def declared(body):
    tools = []
    for tool in body.get("tools") or []:
        tools += tool.get("functionDeclarations") or tool.get("tools") or [tool]
    return [tool.get("name") or tool.get("function", {}).get("name") for tool in tools]


def namespace(body, name):
    """The group in which Codex declares a tool, if it does."""
    groups = [tool for tool in body.get("tools") or [] if tool.get("type") == "namespace"]
    return next((group["name"] for group in groups if name in [tool.get("name") for tool in group["tools"]]), None)


def shell_tool(body):
    names = declared(body)
    return next(((name, SHELL[name]) for name in names if name in SHELL), (None, None))


def asked(body):
    """The last step that the user asked for, and whether a tool result came after it."""
    step, answered = None, False
    given = body.get("input")
    given = given if isinstance(given, list) else body.get("messages") or body.get("contents") or []
    for message in given:
        if message.get("type", "").endswith("_call_output"):
            answered = True
        if message.get("role") != "user":
            continue
        content = message.get("content") or message.get("parts") or []
        for part in [{"text": content}] if isinstance(content, str) else content:
            if part.get("type") == "tool_result" or "functionResponse" in part:
                answered = True
            elif found := STEP.findall(part.get("text") or ""):
                step, answered = found[-1], False
    return step, answered


def anthropic(id, model, text, calls):
    usage = {"input_tokens": 1000, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 20}
    blocks = [({"type": "text", "text": ""}, {"type": "text_delta", "text": text}, {"type": "text", "text": text})]
    for call in calls:
        head = {"type": "tool_use", "id": call[0], "name": call[1]}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call[2])}
        blocks.append((head | {"input": {}}, delta, head | {"input": call[2]}))
    stop = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    message = {"id": id, "type": "message", "role": "assistant", "model": model, "usage": usage}
    frames = [("message_start", {"message": message | {"content": [], "stop_reason": None}})]
    for index, (head, delta, _) in enumerate(blocks):
        frames += [("content_block_start", {"index": index, "content_block": head}),
                   ("content_block_delta", {"index": index, "delta": delta}),
                   ("content_block_stop", {"index": index})]
    frames += [("message_delta", {"delta": stop, "usage": usage}), ("message_stop", {})]
    whole = message | stop | {"content": [block for _, _, block in blocks]}
    return [(name, {"type": name} | frame) for name, frame in frames], whole


def openai(id, model, text, calls):
    items = [{"id": id + "m", "type": "message", "role": "assistant", "status": "completed",
              "content": [{"type": "output_text", "text": text, "annotations": []}]}]
    for call in calls:
        items.append({"id": "f" + call[0], "type": "function_call", "call_id": call[0], "name": call[1],
                      "arguments": json.dumps(call[2]), "status": "completed"})
        if call[3:] and call[3]:
            items[-1]["namespace"] = call[3]
    response = {"id": id, "object": "response", "created_at": int(time.time()), "model": model,
                "status": "in_progress", "output": []}
    usage = {"input_tokens": 1000, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 20,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 1020}
    whole = response | {"status": "completed", "output": items, "usage": usage}
    frames = [("response.created", {"response": response})]
    for index, item in enumerate(items):
        frames += [("response.output_item.added", {"output_index": index, "item": item}),
                   ("response.output_item.done", {"output_index": index, "item": item})]
    frames.append(("response.completed", {"response": whole}))
    return [(name, {"type": name, "sequence_number": n} | frame) for n, (name, frame) in enumerate(frames)], whole


def gemini(id, model, text, calls):
    parts = [{"text": text}]
    for call in calls:
        parts.append({"functionCall": {"name": call[1], "args": call[2]}})
    whole = {"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
             "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 20, "totalTokenCount": 1020},
             "modelVersion": model, "responseId": id}
    return [(None, whole)], whole
