//! Kilo Code CLI 7.7: OpenCode with another name and additions. Its database, export, events and
//! printed parts are OpenCode's, so OpenCode's decoder reads them; this file registers the formats
//! and says what tells the two apart.
//!
//! The database has a table of Kilo's own (`agent.rs`). Events are Kilo's if they have kinds
//! that OpenCode lacks, or a version of Kilo. A printed step is Kilo's if it has a duration.

mod agent;

use unspool_model::provenance::Feed;

use super::opencode::{
    OpenCodeDecoder, Product, event_owner, export_owner, log_owner, printed_owner, unwrap_event,
};
use super::{Fields, Format, Precedence, RecordOwner, SessionsPerFile, resume};

pub use agent::AGENT;

const NAME: &str = "kilo";

/// The `type` of the line that starts the text of a session in the database.
pub(super) const SESSION_RECORD_TYPE: &str = "kilo.session";

/// The first version of Kilo that is OpenCode. OpenCode has not come to it.
const FIRST_MAJOR_VERSION: u64 = 7;

pub const LOG: Format = Format {
    agent: NAME,
    feed: Feed::Log,
    sessions_per_file: SessionsPerFile::One,
    name: "Kilo database",
    recognise: |fields| log_owner(fields, SESSION_RECORD_TYPE),
    decoder: || Box::new(OpenCodeDecoder::new(Feed::Log, Product::Kilo)),
    resume: resume::<OpenCodeDecoder>,
    precedence: Precedence::Specific,
    samples: &[r#"{"type":"kilo.session","id":"ses_a","directory":"/w","time":{"created":1}}"#],
};

pub const EXPORT: Format = Format {
    agent: NAME,
    feed: Feed::Log,
    sessions_per_file: SessionsPerFile::One,
    name: "Kilo export",
    recognise: |fields| is_kilos(&fields.fields("info")).then(|| export_owner(fields)).flatten(),
    decoder: || Box::new(OpenCodeDecoder::new(Feed::Log, Product::Kilo)),
    resume: resume::<OpenCodeDecoder>,
    precedence: Precedence::Specific,
    samples: &[r#"{"info":{"id":"ses_a","directory":"/w","version":"7.7.9"}}"#],
};

pub const EVENTS: Format = Format {
    agent: NAME,
    feed: Feed::Stream,
    sessions_per_file: SessionsPerFile::Several,
    name: "Kilo events",
    recognise: recognise_event,
    decoder: || Box::new(OpenCodeDecoder::new(Feed::Stream, Product::Kilo)),
    resume: resume::<OpenCodeDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"id":"evt_1","type":"session.turn.open","properties":{"sessionID":"ses_a"}}"#,
        r#"{"type":"sync","syncEvent":{"type":"session.created.1","seq":0}}"#,
        r#"{"id":"evt_1","type":"session.created","properties":{"info":{"id":"ses_a","version":"7.7.9"}}}"#,
    ],
};

pub const RUN: Format = Format {
    agent: NAME,
    feed: Feed::Stream,
    sessions_per_file: SessionsPerFile::One,
    name: "Kilo run --format json",
    recognise: |fields| {
        let part = fields.fields("part");
        let is_timed = fields.is("type", "step_finish") && part.has("metrics");
        is_timed.then(|| printed_owner(fields)).flatten()
    },
    decoder: || Box::new(OpenCodeDecoder::new(Feed::Stream, Product::Kilo)),
    resume: resume::<OpenCodeDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"type":"step_finish","timestamp":1,"sessionID":"ses_a","part":{"id":"prt_1","metrics":{}}}"#,
    ],
};

fn recognise_event<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let event = unwrap_event(fields);
    let kind = event.text("type")?;
    // OpenCode repeats durable events only in the stream of all projects, which wraps each event.
    let repeated = kind == "sync" && !fields.has("payload");
    let own = ["session.turn.", "session.queue.", "session.drain.", "suggestion."];
    let is_own = repeated
        || own.iter().any(|prefix| kind.starts_with(prefix))
        || is_kilos(&event.fields("properties").fields("info"));
    is_own.then(|| event_owner(fields)).flatten()
}

/// True if a session says that Kilo wrote it.
fn is_kilos(info: &Fields<'_>) -> bool {
    let version = info.text("version").unwrap_or_default();
    let major = version.split('.').next().and_then(|major| major.parse::<u64>().ok());
    major.is_some_and(|major| major >= FIRST_MAJOR_VERSION)
}
