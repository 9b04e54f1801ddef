"""Validates traces in OTLP/JSON. Parses them with the protocol's definitions, then checks what those
do not cover: ids, times, parents, span names, the attributes that the semantic conventions for
generative AI require, and the message parts by type.

usage: traces.py FILE…
"""

import json
import re
import sys

from google.protobuf import json_format
from opentelemetry.proto.trace.v1 import trace_pb2
from opentelemetry.semconv._incubating.attributes import error_attributes, gen_ai_attributes

INTERNAL, CLIENT = 1, 3
NAMES = {
    value
    for module in (gen_ai_attributes, error_attributes)
    for name, value in vars(module).items()
    if name.isupper() and isinstance(value, str)
} | {"error.type"}
# The required fields of each part type.
PARTS = {
    "text": ["content"],
    "reasoning": ["content"],
    "tool_call": ["name"],
    "tool_call_response": ["response"],
    "server_tool_call": ["name", "server_tool_call"],
    "server_tool_call_response": ["server_tool_call_response"],
    "blob": ["modality", "content"],
    "uri": ["modality", "uri"],
    "compaction": [],
}
KINDS = {"invoke_agent": INTERNAL, "chat": CLIENT, "execute_tool": INTERNAL}
REQUIRED = {
    "invoke_agent": ["gen_ai.provider.name", "gen_ai.agent.name"],
    "chat": ["gen_ai.provider.name"],
    "execute_tool": ["gen_ai.tool.name"],
}
SUBJECT = {
    "invoke_agent": "gen_ai.agent.name",
    "chat": "gen_ai.request.model",
    "execute_tool": "gen_ai.tool.name",
}


def plain(value):
    """Converts an AnyValue to a Python value."""
    if not value:
        return None
    ((kind, own),) = value.items()
    if kind == "intValue":
        return int(own)
    if kind == "arrayValue":
        return [plain(one) for one in own.get("values", [])]
    if kind == "kvlistValue":
        return {one["key"]: plain(one["value"]) for one in own.get("values", [])}
    return own


def messages_of(name, messages):
    for message in messages:
        if not isinstance(message.get("role"), str) or not isinstance(message.get("parts"), list):
            yield f"{name}: a message without role or parts"
            continue
        if name == "gen_ai.output.messages" and not isinstance(message.get("finish_reason"), str):
            yield f"{name}: a message without finish_reason"
        for part in message["parts"]:
            kind = part.get("type")
            if kind not in PARTS:
                if not str(kind).startswith("unspool."):
                    yield f"{name}: a part of type {kind!r}"
                continue
            for key in PARTS[kind]:
                if part.get(key) is None and not (key == "response" and key in part):
                    yield f"{name}: {kind} without {key}"
            for key in ("content", "id", "name", "modality", "uri"):
                if key in part and not isinstance(part[key], str):
                    yield f"{name}: {key} of {kind} is no text"


def span_of(span, spans):
    attributes = {}
    for attribute in span["attributes"]:
        if attribute["key"] in attributes:
            yield f"{attribute['key']} stands twice"
        attributes[attribute["key"]] = plain(attribute["value"])
    if not re.fullmatch("[0-9a-f]{32}", span["traceId"]) or not int(span["traceId"], 16):
        yield "traceId is none"
    if not re.fullmatch("[0-9a-f]{16}", span["spanId"]) or not int(span["spanId"], 16):
        yield "spanId is none"
    if int(span["endTimeUnixNano"]) < int(span["startTimeUnixNano"]):
        yield "it ends before it begins"
    if int(span["startTimeUnixNano"]) == 0 and not attributes.get("unspool.time.estimated"):
        yield "it begins in 1970, and nobody says that this is made up"
    seen = set()
    above = span
    while "parentSpanId" in above:
        if above["spanId"] in seen:
            yield "it stands in itself"
            break
        seen.add(above["spanId"])
        if above["parentSpanId"] not in spans:
            yield f"its parent {above['parentSpanId']} is not there"
            break
        above = spans[above["parentSpanId"]]
    for key in attributes:
        if key not in NAMES and not key.startswith("unspool."):
            yield f"the conventions have no {key}"
    operation = attributes.get("gen_ai.operation.name")
    if operation is None:
        if span["name"] != "preamble":
            yield "no gen_ai.operation.name"
        return
    if operation not in KINDS:
        yield f"the operation is {operation!r}"
        return
    if span["kind"] != KINDS[operation]:
        yield f"{operation} of kind {span['kind']}"
    for key in REQUIRED[operation]:
        if not isinstance(attributes.get(key), str):
            yield f"{operation} without {key}"
    subject = attributes.get(SUBJECT[operation])
    if span["name"] != (f"{operation} {subject}" if subject else operation):
        yield f"{operation} is called {span['name']!r}"
    if operation != "invoke_agent" and "parentSpanId" not in span:
        yield f"{operation} without a turn"
    for key in ("gen_ai.input.messages", "gen_ai.output.messages"):
        if key in attributes:
            if not attributes[key]:
                yield f"{key} is empty"
            yield from messages_of(key, attributes[key])
    failed = span.get("status", {}).get("code") == 2
    if failed != ("error.type" in attributes):
        yield "status and error.type disagree"


def judged(path, counts):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    data = json.loads(text)
    try:
        # Rejects unknown fields and wrong types.
        json_format.Parse(text, trace_pb2.TracesData())
    except json_format.ParseError as error:
        return [str(error)]
    problems = []
    spans = {}
    for resource in data["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                if span["spanId"] in spans:
                    problems.append(f"two spans {span['spanId']}")
                spans[span["spanId"]] = span
    if len({span["traceId"] for span in spans.values()}) > 1:
        problems.append("more than one trace")
    for span in spans.values():
        counts["spans"] += 1
        counts["events"] += len(span.get("events", []))
        problems += [f"{span['name']} {span['spanId']}: {problem}" for problem in span_of(span, spans)]
    return problems


def main():
    bad = 0
    counts = {"spans": 0, "events": 0}
    for path in sys.argv[1:]:
        problems = judged(path, counts)
        for problem in problems[:20]:
            print(f"{path}: {problem}")
        bad += bool(problems)
    said = ", ".join(f"{count} {what}" for what, count in counts.items())
    print(f"otel: {len(sys.argv) - 1 - bad} of {len(sys.argv) - 1} traces are valid; {said}")
    if bad or len(sys.argv) == 1:
        sys.exit(1)


main()
