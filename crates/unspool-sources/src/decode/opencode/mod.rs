//! OpenCode 1.18: its database, what `opencode export` writes, the events of its server, and what
//! `opencode run --format json` prints. All of them speak of the same messages and parts by the
//! same ids, so one decoder reads them all (`teller.rs`).
//!
//! A turn is a user's message and all messages of the model that name it as their parent; each of
//! these is a step. Ids are ordered by time inside a message and nowhere else: their clock wrapped
//! in August 2026 and does so again in October 2028; a message that was written then has parts of
//! both sides (`lap`).

mod ask;
mod message;
mod next;
mod part;
mod run;
mod session;
mod teller;
mod tool;
mod user;

use std::borrow::Cow;

use jiff::Timestamp;
use unspool_core::telling::Telling;

use super::{Fields, Format, Recognised, Tells, resume};
use teller::Teller;

const AGENT: &str = "opencode";

/// What the text of a session in the database begins with.
const HEAD: &str = "opencode.session";

pub const LOG: Format = Format {
    agent: AGENT,
    telling: Telling::Log,
    tells: Tells::One,
    name: "OpenCode database",
    recognise: recognise_log,
    decoder: || Box::new(Teller::new(Telling::Log)),
    resume: resume::<Teller>,
};

pub const EXPORT: Format = Format {
    agent: AGENT,
    telling: Telling::Log,
    tells: Tells::One,
    name: "OpenCode export",
    recognise: recognise_export,
    decoder: || Box::new(Teller::new(Telling::Log)),
    resume: resume::<Teller>,
};

pub const EVENTS: Format = Format {
    agent: AGENT,
    telling: Telling::Stream,
    tells: Tells::Several,
    name: "OpenCode events",
    recognise: recognise_event,
    decoder: || Box::new(Teller::new(Telling::Stream)),
    resume: resume::<Teller>,
};

pub const RUN: Format = Format {
    agent: AGENT,
    telling: Telling::Stream,
    tells: Tells::One,
    name: "OpenCode run --format json",
    recognise: recognise_run,
    decoder: || Box::new(Teller::new(Telling::Stream)),
    resume: resume::<Teller>,
};

fn recognise_log<'a>(fields: &Fields<'a>) -> Option<Recognised<'a>> {
    if fields.is("type", HEAD) {
        return whose(fields);
    }
    let id = fields.text("id")?;
    (id.starts_with("evt_") && fields.has("seq") && fields.has("data"))
        .then_some(Recognised::Format)
}

fn recognise_export<'a>(fields: &Fields<'a>) -> Option<Recognised<'a>> {
    let info = fields.fields("info");
    let id = info.text("id")?;
    if id.starts_with("ses_") && info.has("directory") {
        return whose(&info);
    }
    let message = id.starts_with("msg_") && info.has("role") && fields.has("parts");
    info.text("sessionID").filter(|_| message).map(Recognised::Session)
}

fn recognise_event<'a>(fields: &Fields<'a>) -> Option<Recognised<'a>> {
    let event = unwrapped(fields);
    let kind = event.text("type")?;
    let named = event.text("id").is_some_and(|id| id.starts_with("evt_"));
    if kind == "sync" && event.has("syncEvent") {
        return Some(Recognised::Format);
    }
    if fields.has("seq") || !(event.has("properties") || (named && event.has("data"))) {
        return None;
    }
    let body = body_of(&event);
    let info = body.fields("info");
    if kind.starts_with("session.") && info.text("id").is_some_and(|id| id.starts_with("ses_")) {
        return whose(&info);
    }
    let session = body.text("sessionID").or_else(|| info.text("sessionID"));
    let session = session.or_else(|| body.fields("part").text("sessionID"));
    Some(session.map_or(Recognised::Format, Recognised::Session))
}

fn recognise_run<'a>(fields: &Fields<'a>) -> Option<Recognised<'a>> {
    let told = fields.has("timestamp") && (fields.has("part") || fields.is("type", "error"));
    fields.text("sessionID").filter(|_| told).map(Recognised::Session)
}

/// Whose record it is, by what is told of the session.
fn whose<'a>(info: &Fields<'a>) -> Option<Recognised<'a>> {
    let id = info.text("id")?;
    Some(match info.text("parentID") {
        Some(parent) => Recognised::SubAgent { id, parent: Some(parent) },
        None => Recognised::Session(id),
    })
}

/// An event without what a capture or the global stream puts around it.
fn unwrapped<'a>(fields: &Fields<'a>) -> Fields<'a> {
    if fields.has("payload") && !fields.has("type") {
        fields.fields("payload")
    } else if fields.has("recv") && fields.has("event") {
        fields.fields("event")
    } else {
        *fields
    }
}

/// What an event carries. The second version of the API calls it `data`, as the database does.
fn body_of<'a>(event: &Fields<'a>) -> Fields<'a> {
    event.fields(if event.has("properties") { "properties" } else { "data" })
}

/// The kind of an event, without the version that the database puts behind it.
fn kind_of<'a>(event: &Fields<'a>) -> Cow<'a, str> {
    let kind = event.text("type").unwrap_or_default();
    match kind.rsplit_once('.') {
        Some((plain, version)) if version.bytes().all(|byte| byte.is_ascii_digit()) => {
            plain.to_owned().into()
        }
        Some(_) | None => kind,
    }
}

/// A time: milliseconds, or RFC 3339 in live events of the second version.
fn moment(fields: &Fields<'_>, name: &str) -> Option<Timestamp> {
    let number = fields.number(name).and_then(|number| i64::try_from(number).ok());
    match number {
        Some(number) => Timestamp::from_millisecond(number).ok(),
        None => fields.time(name),
    }
}

/// How long something took.
fn duration(time: &Fields<'_>) -> Option<u64> {
    time.number("end")?.checked_sub(time.number("start")?)
}

/// Half of what the clock in an id counts to: 48 bits, of which the lower 12 count inside a
/// millisecond.
const HALF_A_LAP: u64 = 1 << 47;

/// On which side of a wrap a part was made, seen from its message: before the one that the message
/// came behind (-1), on the message's side (0), or behind the next one (1). Parts are made within
/// days of their message, and the clock wraps every 795 days.
fn lap(message: &str, part: &str) -> i8 {
    match (clock(message), clock(part)) {
        (Some(message), Some(part)) if message.saturating_sub(part) > HALF_A_LAP => 1,
        (Some(message), Some(part)) if part.saturating_sub(message) > HALF_A_LAP => -1,
        (_, _) => 0,
    }
}

/// When an id was made, as far as it says.
fn clock(id: &str) -> Option<u64> {
    let (_, made) = id.split_once('_')?;
    u64::from_str_radix(made.get(..12)?, 16).ok()
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod wrap_tests;
