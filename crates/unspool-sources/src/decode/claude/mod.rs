//! Claude Code, 1.0.100 to 2.1.325: its log, its stream-json and its hooks. What the three have
//! in common is here: content blocks, tool results, and the marks that the program puts into
//! users' messages.

mod context;
mod hooks;
mod log;
mod marks;
mod message;
mod result;
mod stream;

use unspool_core::telling::Telling;

use super::{Fields, Format, Recognised};

const AGENT: &str = "claude-code";

pub const LOG: Format = Format {
    agent: AGENT,
    telling: Telling::Log,
    name: "Claude Code session log",
    recognise: recognise_log,
    decoder: || Box::new(log::LogDecoder::default()),
};

pub const STREAM: Format = Format {
    agent: AGENT,
    telling: Telling::Stream,
    name: "Claude Code stream-json",
    recognise: recognise_stream,
    decoder: || Box::new(stream::StreamDecoder::default()),
};

pub const HOOKS: Format = Format {
    agent: AGENT,
    telling: Telling::Hooks,
    name: "Claude Code hook payloads",
    recognise: recognise_hooks,
    decoder: || Box::new(hooks::HooksDecoder::default()),
};

fn recognise_log(fields: &Fields<'_>) -> Option<Recognised> {
    let kind = fields.text("type")?;
    // A sub-agent's own log names its parent's session on every record.
    if fields.flag("isSidechain")
        && let Some(agent) = fields.string("agentId")
    {
        return Some(Recognised::Session(agent));
    }
    if let Some(session) = fields.string("sessionId") {
        return Some(Recognised::Session(session));
    }
    // 1.0.100 writes summaries of other sessions, and they name no session.
    (kind == "summary" && fields.has("leafUuid")).then_some(Recognised::Format)
}

fn recognise_stream(fields: &Fields<'_>) -> Option<Recognised> {
    if fields.has("hook_event_name") {
        return None;
    }
    let inner = fields.fields("msg");
    let fields = if fields.has("dir") && fields.has("msg") { &inner } else { fields };
    let kind = fields.text("type")?;
    let session = fields.string("session_id").filter(|id| !id.is_empty());
    match (&*kind, session) {
        // A resumed process starts its hooks under an id that it then drops.
        ("system", Some(session)) => {
            let started = fields.text("subtype").is_some_and(|subtype| subtype == "init");
            Some(if started { Recognised::Session(session) } else { Recognised::Format })
        }
        ("assistant" | "user" | "stream_event" | "result", Some(session)) => {
            Some(Recognised::Session(session))
        }
        ("control_request" | "control_response" | "control_cancel_request", _) => {
            Some(Recognised::Format)
        }
        ("user", None) => fields.has("message").then_some(Recognised::Format),
        (_, Some(_)) => Some(Recognised::Format),
        (_, None) => None,
    }
}

fn recognise_hooks(fields: &Fields<'_>) -> Option<Recognised> {
    let event = fields.text("hook_event_name")?;
    // What happens inside a sub-agent belongs to its own session; that it stops, to its parent's.
    let inside = !matches!(&*event, "SubagentStart" | "SubagentStop");
    let agent = fields.string("agent_id").filter(|_| inside);
    Some(Recognised::Session(agent.or_else(|| fields.string("session_id"))?))
}
