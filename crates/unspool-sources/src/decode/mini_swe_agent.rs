//! mini-swe-agent 2.4: trajectories, one document for each run. This file declares the format. The
//! document has no session id, and the file of an interactive run is overwritten by the next run, so
//! a run is identified by the time of its first model call.

mod agent;
mod calls;
mod prompt;
mod reply;
mod trajectory;

use jiff::Timestamp;
use unspool_model::id::digest;
use unspool_model::provenance::Feed;

use super::{Fields, Format, Precedence, RecordOwner, SessionsPerFile, resume};

pub use agent::AGENT;

const NAME: &str = "mini-swe-agent";

pub const LOG: Format = Format {
    agent: NAME,
    feed: Feed::Log,
    sessions_per_file: SessionsPerFile::One,
    name: "mini-swe-agent trajectory",
    recognise,
    decoder: || Box::new(trajectory::TrajectoryDecoder::default()),
    resume: resume::<trajectory::TrajectoryDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"info":{"model_stats":{"instance_cost":0.1,"api_calls":1},"config":{"agent":{}},"mini_version":"2.4.6"}}"#,
        r#"{"role":"assistant","content":"t","extra":{"actions":[{"command":"ls"}],"timestamp":1794812926.15}}"#,
        r#"{"trajectory_format":"mini-swe-agent-1.1"}"#,
    ],
};

/// Recognises the fields around the messages, and the message of a model call, which names the run.
fn recognise<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let info = fields.fields("info");
    if info.has("mini_version") && info.has("config") {
        // Of a run that ended before its first model call.
        let config = digest(info.raw("config").unwrap_or_default().as_bytes());
        return Some(RecordOwner::FallbackId(format!("run-{config:016x}").into()));
    }
    let format = fields.text("trajectory_format");
    if format.is_some_and(|format| format.starts_with("mini-swe-agent-")) {
        return Some(RecordOwner::Format);
    }
    let extra = fields.fields("extra");
    let is_model_call = extra.has("actions") || extra.has("response");
    let time = extra.raw("timestamp").filter(|_| is_model_call)?;
    Some(RecordOwner::Session(format!("run-{time}").into()))
}

/// The time of a message, in seconds.
fn time(extra: &Fields<'_>) -> Option<Timestamp> {
    let seconds: f64 = extra.read("timestamp")?;
    Timestamp::from_microsecond((seconds * 1e6) as i64).ok()
}
