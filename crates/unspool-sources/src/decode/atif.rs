//! The Agent Trajectory Interchange Format (ATIF 1.0 to 1.8, Harbor): a run as one document of steps.
//! Many programs write it, Unspool among them (`--to atif`). `read::document` cuts a document into
//! its head, one line per step and its tail; a line may also be a whole trajectory, as in data sets.
//!
//! A step has one message, one text of reasoning and a list of calls, so their order within a model
//! call is lost, and so are the states of calls. Our own exports keep both in `extra.unspool`
//! (`order.rs`), and what is read from one of them has the order of the session that it was made of.

mod calls;
mod check;
mod content;
mod document;
mod metrics;
mod order;
mod steps;
mod subagents;
mod trajectory;

use std::borrow::Cow;

use unspool_model::id::digest;
use unspool_model::provenance::Feed;

use super::{Fields, Format, Precedence, RecordOwner, SessionsPerFile, resume};
use crate::agents::Agent;
use crate::discover::holds;
use crate::read::own_file::{Lines, OwnFile};

const NAME: &str = "atif";

pub const AGENT: Agent = Agent { files: &[DOCUMENT], ..Agent::new(NAME, "ATIF", &[TRAJECTORY]) };

/// A document under any name.
const DOCUMENT: OwnFile = OwnFile {
    is_named: |_| false,
    begins: Some(("json", |text| holds(text, b"\"ATIF-v"))),
    lines: Lines::AsUsual,
    beside: None,
};

pub const TRAJECTORY: Format = Format {
    agent: NAME,
    feed: Feed::Log,
    // A document is one run, a file of lines has one on each.
    sessions_per_file: SessionsPerFile::Several,
    name: "ATIF trajectory",
    recognise,
    decoder: || Box::new(trajectory::TrajectoryDecoder::default()),
    resume: resume::<trajectory::TrajectoryDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"schema_version":"ATIF-v1.8","session_id":"s1","agent":{"name":"a","version":"1"}}"#,
        r#"{"step_id":1,"source":"user","message":"t"}"#,
        r#"{"schema_version":"ATIF-v1.6","session_id":"s1","agent":{"name":"a","version":"1"},"steps":[{"step_id":1,"source":"user","message":"t"}]}"#,
    ],
};

/// What Harbor 0.24 writes as the session id if it knows none.
const PLACEHOLDER_IDS: [&str; 2] = ["unknown", "copilot-cli"];

/// Recognises the fields around the steps, and the steps. A trajectory without an id is identified by
/// its first step.
fn recognise<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    if fields.text("schema_version").is_some_and(|version| version.starts_with("ATIF-")) {
        let of_step = || fields.list("steps").next().map(|step| Cow::Owned(run_id(&step)));
        let id = trajectory_id(fields).or_else(of_step);
        return Some(id.map_or(RecordOwner::Format, RecordOwner::Session));
    }
    let source = fields.text("source");
    let is_source = source.is_some_and(|source| ["user", "agent", "system"].contains(&&*source));
    let is_step = is_source && fields.has("step_id") && fields.has("message");
    is_step.then(|| RecordOwner::FallbackId(run_id(fields).into()))
}

/// The id of a trajectory. Several trajectories of one run may share a session id.
fn trajectory_id<'a>(fields: &Fields<'a>) -> Option<Cow<'a, str>> {
    let ids = ["trajectory_id", "session_id"].into_iter().filter_map(|name| fields.text(name));
    { ids }.find(|id| !id.is_empty() && !PLACEHOLDER_IDS.contains(&&**id))
}

fn run_id(first: &Fields<'_>) -> String {
    let said = ["timestamp", "source", "message"].map(|name| first.raw(name).unwrap_or_default());
    format!("run-{:016x}", digest(said.join("\n").as_bytes()))
}

#[cfg(test)]
mod decoder_tests;
