//! GitHub Copilot CLI 1.0: its log, its live events and its hooks. Log and live events are one
//! format: the same records with the same ids, and beside them, live only, what is said while it
//! is being said (`ephemeral`). So both are read by one decoder.

mod ask;
mod events;
mod hooks;
mod live;
mod message;
mod tool;

use unspool_core::telling::Telling;

use super::{Fields, Format, Recognised, Tells, resume};

const AGENT: &str = "copilot";

pub const LOG: Format = Format {
    agent: AGENT,
    telling: Telling::Log,
    tells: Tells::Several,
    name: "Copilot CLI session log",
    recognise: recognise_log,
    decoder: || Box::new(events::EventsDecoder::new(false)),
    resume: resume::<events::EventsDecoder>,
};

pub const STREAM: Format = Format {
    agent: AGENT,
    telling: Telling::Stream,
    tells: Tells::Several,
    name: "Copilot CLI live events",
    recognise: recognise_stream,
    decoder: || Box::new(events::EventsDecoder::new(true)),
    resume: resume::<events::EventsDecoder>,
};

pub const HOOKS: Format = Format {
    agent: AGENT,
    telling: Telling::Hooks,
    tells: Tells::Several,
    name: "Copilot CLI hook payloads",
    recognise: recognise_hooks,
    decoder: || Box::new(hooks::HooksDecoder::default()),
    resume: resume::<hooks::HooksDecoder>,
};

/// A log and the live events of the SDK both begin with the start of the session; the second
/// record tells them apart, because nothing of a log is ephemeral.
fn recognise_log<'a>(fields: &Fields<'a>) -> Option<Recognised<'a>> {
    if !is_event(fields) || fields.flag("ephemeral") {
        return None;
    }
    let place = place(fields);
    Some(if let Recognised::Session(id) = place { Recognised::Perhaps(id) } else { place })
}

fn recognise_stream<'a>(fields: &Fields<'a>) -> Option<Recognised<'a>> {
    if is_event(fields) {
        return Some(place(fields));
    }
    // The last line that `--output-format json` prints is the only one that names the session.
    let is_result = fields.is("type", "result") && fields.has("exitCode");
    fields.text("sessionId").filter(|_| is_result).map(Recognised::Session)
}

fn is_event(fields: &Fields<'_>) -> bool {
    let named = fields.text("type").is_some_and(|kind| kind.contains('.') || kind == "abort");
    named && fields.has("id") && fields.has("timestamp") && fields.fields("data").is_object()
}

fn place<'a>(fields: &Fields<'a>) -> Recognised<'a> {
    let kind = fields.text("type").unwrap_or_default();
    let data = fields.fields("data");
    match (&*kind, fields.text("agentId")) {
        // That a sub-agent begins and ends is its parent's matter.
        ("subagent.started" | "subagent.completed" | "subagent.failed", _) => Recognised::Own,
        (_, Some(id)) => {
            let parent = events::started_by(&data).map(|parent| parent.to_owned().into());
            Recognised::SubAgent { id, parent }
        }
        ("session.start", None) => match data.text("sessionId") {
            Some(id) => Recognised::Session(id),
            None => Recognised::Own,
        },
        (_, None) => Recognised::Own,
    }
}

/// Payloads do not say which event they are of, so whoever keeps them writes it beside them.
fn recognise_hooks<'a>(fields: &Fields<'a>) -> Option<Recognised<'a>> {
    let event = fields.text("event")?;
    let payload = fields.fields("payload");
    let session = payload.text("sessionId")?;
    let inside = !matches!(&*event, "subagentStart" | "subagentStop");
    Some(match payload.text("agentId").filter(|_| inside) {
        Some(id) => Recognised::SubAgent { id, parent: payload.text("parentAgentId") },
        None => Recognised::Session(session),
    })
}
