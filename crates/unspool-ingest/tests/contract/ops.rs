//! Random programs for the recorder: events of several sessions in one batch, commits, crashes,
//! changes of the ingest mode, maintenance.

use proptest::prelude::*;
use proptest::sample::select;
use unspool_ingest::recorder::batch::IngestMode;
use unspool_store::store::Maintenance;

use crate::script::Line;

#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there are few, and they are short-lived")]
pub enum RecorderOp {
    /// Applies an event to one of the sessions.
    Apply(usize, Line),
    /// Adds a session to the batch, without writing it.
    Add(usize),
    Commit,
    /// Drops one session from memory and resumes it from the archive and its source: from the last
    /// commit, or from the start.
    Crash(usize, Reread),
    /// Restarts the whole process.
    Reopen(Reread),
    IngestMode(IngestMode),
    Maintenance(Maintenance),
    Rebuild,
}

/// How much of its source is re-read after a crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reread {
    All,
    Rest,
}

/// The sessions of a program. The last two have the ids of sub-agents in the scripts.
pub const SESSIONS: [&str; 3] = ["s1", "a", "c"];

/// Interleaves scripts with random operations. Each script keeps its order.
pub fn program(
    script: impl Strategy<Value = Vec<Line>>,
    restarts: bool,
) -> impl Strategy<Value = Vec<RecorderOp>> {
    let scripts = prop::collection::vec(script, 1..=SESSIONS.len());
    let turns = prop::collection::vec((0..SESSIONS.len(), between(restarts)), 8..24);
    (scripts, turns).prop_map(|(scripts, turns)| {
        let mut lines: Vec<_> = scripts.into_iter().map(Vec::into_iter).collect();
        let mut program = Vec::new();
        for (session, between) in turns {
            // A few lines of one session at a time.
            let session = session % lines.len();
            program.extend(
                lines[session].by_ref().take(4).map(|line| RecorderOp::Apply(session, line)),
            );
            program.extend(between);
        }
        for (session, rest) in lines.into_iter().enumerate() {
            program.extend(rest.map(|line| RecorderOp::Apply(session, line)));
        }
        program.push(RecorderOp::Commit);
        program
    })
}

fn between(restarts: bool) -> BoxedStrategy<Option<RecorderOp>> {
    let session = || 0..SESSIONS.len();
    let usual = prop_oneof![
        4 => Just(None),
        4 => Just(Some(RecorderOp::Commit)),
        1 => session().prop_map(|session| Some(RecorderOp::Add(session))),
        1 => select(vec![IngestMode::Bulk, IngestMode::Live]).prop_map(|mode| Some(RecorderOp::IngestMode(mode))),
        1 => select(vec![Maintenance::IfDue, Maintenance::Full]).prop_map(|how| Some(RecorderOp::Maintenance(how))),
        1 => Just(Some(RecorderOp::Rebuild)),
    ];
    if !restarts {
        return usual.boxed();
    }
    let reread = || select(vec![Reread::All, Reread::Rest]);
    prop_oneof![
        4 => usual,
        1 => (session(), reread()).prop_map(|(session, reread)| Some(RecorderOp::Crash(session, reread))),
        1 => reread().prop_map(|reread| Some(RecorderOp::Reopen(reread))),
    ]
    .boxed()
}
