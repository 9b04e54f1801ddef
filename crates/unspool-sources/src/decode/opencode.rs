//! OpenCode 1.18: its database, the output of `opencode export`, the events of its server, and the
//! output of `opencode run --format json`. This file registers the four formats. All use the same
//! message and part ids, so `OpenCodeDecoder` (`decoder.rs`) reads them all.
//!
//! A turn is a user message and all assistant messages that name it as their parent; each of those
//! is a step. Ids sort by time only within a message: their clock wrapped in August 2026 and will
//! wrap again in October 2028. A message written at a wrap has parts on both sides (`wrap_side`).

mod agent;
mod decoder;
mod message;
mod next;
mod part;
mod product;
mod questions;
mod run;
mod session;
mod tool;
mod user;

use std::borrow::Cow;

use jiff::Timestamp;
use unspool_model::provenance::Feed;

use super::{Fields, Format, Precedence, RecordOwner, SessionsPerFile, resume};

pub use agent::AGENT;
pub(super) use decoder::OpenCodeDecoder;
pub(super) use product::Product;
pub(super) use tool::call_id_hash;

const NAME: &str = "opencode";

/// The `type` of the line that starts the text of a session in the database.
pub const SESSION_RECORD_TYPE: &str = "opencode.session";

pub const LOG: Format = Format {
    agent: NAME,
    feed: Feed::Log,
    sessions_per_file: SessionsPerFile::One,
    name: "OpenCode database",
    recognise: |fields| log_owner(fields, SESSION_RECORD_TYPE),
    decoder: || Box::new(OpenCodeDecoder::new(Feed::Log, Product::OpenCode)),
    resume: resume::<OpenCodeDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"type":"opencode.session","id":"ses_a","directory":"/w","time":{"created":1}}"#,
        r#"{"id":"evt_1","seq":0,"type":"session.created.1","data":{"info":{}}}"#,
    ],
};

pub const EXPORT: Format = Format {
    agent: NAME,
    feed: Feed::Log,
    sessions_per_file: SessionsPerFile::One,
    name: "OpenCode export",
    recognise: export_owner,
    decoder: || Box::new(OpenCodeDecoder::new(Feed::Log, Product::OpenCode)),
    resume: resume::<OpenCodeDecoder>,
    precedence: Precedence::General,
    samples: &[r#"{"info":{"id":"msg_1","sessionID":"ses_a","role":"user"},"parts":[]}"#],
};

pub const EVENTS: Format = Format {
    agent: NAME,
    feed: Feed::Stream,
    sessions_per_file: SessionsPerFile::Several,
    name: "OpenCode events",
    recognise: recognise_event,
    decoder: || Box::new(OpenCodeDecoder::new(Feed::Stream, Product::OpenCode)),
    resume: resume::<OpenCodeDecoder>,
    precedence: Precedence::General,
    samples: &[r#"{"id":"evt_1","type":"session.idle","properties":{"sessionID":"ses_a"}}"#],
};

pub const RUN: Format = Format {
    agent: NAME,
    feed: Feed::Stream,
    sessions_per_file: SessionsPerFile::One,
    name: "OpenCode run --format json",
    recognise: recognise_run,
    decoder: || Box::new(OpenCodeDecoder::new(Feed::Stream, Product::OpenCode)),
    resume: resume::<OpenCodeDecoder>,
    precedence: Precedence::General,
    samples: &[
        r#"{"type":"text","timestamp":1,"sessionID":"ses_a","part":{"id":"prt_1","type":"text"}}"#,
    ],
};

/// A record of the text of a session in the database. `head` is the type of its first line.
pub(super) fn log_owner<'a>(fields: &Fields<'a>, head: &str) -> Option<RecordOwner<'a>> {
    if fields.is("type", head) {
        return session_of(fields);
    }
    // A later line says nothing about the program, and never stands first.
    if head != SESSION_RECORD_TYPE {
        return None;
    }
    let id = fields.text("id")?;
    (id.starts_with("evt_") && fields.has("seq") && fields.has("data"))
        .then_some(RecordOwner::Format)
}

pub(super) fn export_owner<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let info = fields.fields("info");
    let id = info.text("id")?;
    if id.starts_with("ses_") && info.has("directory") {
        return session_of(&info);
    }
    let message = id.starts_with("msg_") && info.has("role") && fields.has("parts");
    info.text("sessionID").filter(|_| message).map(RecordOwner::Session)
}

/// Durable events are those of Kilo as well, which repeats each at once: the next event decides. A
/// version of Kilo has been recognised before, so any other decides too.
fn recognise_event<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let owner = event_owner(fields)?;
    let event = unwrap_event(fields);
    let kind = event.text("type")?;
    let durable = ["server.connected", "session.created", "session.updated", "message.updated"];
    let has_version = event.fields("properties").fields("info").has("version");
    let is_durable = durable.contains(&&*kind) || kind == "message.part.updated";
    let undecided = is_durable && !has_version;
    let wrapped = fields.has("payload");
    let wait = |id: Cow<'a, str>| Some(RecordOwner::Ambiguous(id));
    if let RecordOwner::Session(id) = &owner
        && undecided
        && !wrapped
    {
        return wait(id.clone());
    }
    if owner == RecordOwner::Format && kind == "server.connected" {
        wait("".into())
    } else {
        Some(owner)
    }
}

pub(super) fn event_owner<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let event = unwrap_event(fields);
    let kind = event.text("type")?;
    let named = event.text("id").is_some_and(|id| id.starts_with("evt_"));
    if kind == "sync" && event.has("syncEvent") {
        return Some(RecordOwner::Format);
    }
    if fields.has("seq") || !(event.has("properties") || (named && event.has("data"))) {
        return None;
    }
    let body = body_of(&event);
    let info = body.fields("info");
    if kind.starts_with("session.") && info.text("id").is_some_and(|id| id.starts_with("ses_")) {
        return session_of(&info);
    }
    let session = body.text("sessionID").or_else(|| info.text("sessionID"));
    let session = session.or_else(|| body.fields("part").text("sessionID"));
    Some(session.map_or(RecordOwner::Format, RecordOwner::Session))
}

/// Kilo prints the same parts until the first step is over.
fn recognise_run<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let owner = printed_owner(fields)?;
    let decided = fields.is("type", "step_finish") || fields.is("type", "error");
    if let RecordOwner::Session(id) = &owner
        && !decided
    {
        return Some(RecordOwner::Ambiguous(id.clone()));
    }
    Some(owner)
}

pub(super) fn printed_owner<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let is_printed = fields.has("timestamp") && (fields.has("part") || fields.is("type", "error"));
    fields.text("sessionID").filter(|_| is_printed).map(RecordOwner::Session)
}

/// The session of a record, from a session's info.
fn session_of<'a>(info: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let id = info.text("id")?;
    Some(match info.text("parentID") {
        Some(parent) => RecordOwner::SubAgent { id, parent: Some(parent) },
        None => RecordOwner::Session(id),
    })
}

/// Removes the wrapper that a capture or the global stream puts around an event.
pub(super) fn unwrap_event<'a>(fields: &Fields<'a>) -> Fields<'a> {
    if fields.has("payload") && !fields.has("type") {
        fields.fields("payload")
    } else if fields.has("recv") && fields.has("event") {
        fields.fields("event")
    } else {
        *fields
    }
}

/// The body of an event: `properties`, or `data` in version 2 of the API and in the database.
fn body_of<'a>(event: &Fields<'a>) -> Fields<'a> {
    event.fields(if event.has("properties") { "properties" } else { "data" })
}

/// The kind of an event, without the version suffix that the database adds.
fn kind_of<'a>(event: &Fields<'a>) -> Cow<'a, str> {
    let kind = event.text("type").unwrap_or_default();
    match kind.rsplit_once('.') {
        Some((plain, version)) if version.bytes().all(|byte| byte.is_ascii_digit()) => {
            plain.to_owned().into()
        }
        Some(_) | None => kind,
    }
}

/// A timestamp: milliseconds, or RFC 3339 in live events of version 2.
fn time_of(fields: &Fields<'_>, name: &str) -> Option<Timestamp> {
    let number = fields.number(name).and_then(|number| i64::try_from(number).ok());
    match number {
        Some(number) => Timestamp::from_millisecond(number).ok(),
        None => fields.time(name),
    }
}

/// The time from `start` to `end` in milliseconds.
fn duration(time: &Fields<'_>) -> Option<u64> {
    time.number("end")?.checked_sub(time.number("start")?)
}

/// Half the range of the clock in an id: 48 bits, of which the lower 12 are a counter within a
/// millisecond.
const HALF_CLOCK_RANGE: u64 = 1 << 47;

/// The side of a clock wrap on which a part was created, relative to its message: -1 before the
/// wrap that precedes the message, 0 on the message's side, 1 after the next wrap. Parts are
/// created within days of their message, and the clock wraps every 795 days.
fn wrap_side(message: &str, part: &str) -> i8 {
    match (clock(message), clock(part)) {
        (Some(message), Some(part)) if message.saturating_sub(part) > HALF_CLOCK_RANGE => 1,
        (Some(message), Some(part)) if part.saturating_sub(message) > HALF_CLOCK_RANGE => -1,
        (_, _) => 0,
    }
}

/// The clock value in an id.
fn clock(id: &str) -> Option<u64> {
    let (_, made) = id.split_once('_')?;
    u64::from_str_radix(made.get(..12)?, 16).ok()
}

#[cfg(test)]
mod decoder_tests;
#[cfg(test)]
mod wrap_tests;
