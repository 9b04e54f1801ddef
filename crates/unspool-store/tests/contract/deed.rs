//! Random programs for the recorder: events of several sessions in one batch, commits, crashes,
//! changes of the ingest mode, maintenance.

use proptest::prelude::*;
use proptest::sample::select;
use unspool_store::batch::Pace;
use unspool_store::contract::Tidy;

use crate::script::Line;

#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there are few, and they are short-lived")]
pub enum Deed {
    /// Applies an event to one of the sessions.
    Tell(usize, Line),
    /// Adds a session to the batch, without writing it.
    Add(usize),
    Commit,
    /// Drops one session from memory and resumes it from the archive and its source: from the last
    /// commit, or from the start.
    Crash(usize, Again),
    /// Restarts the whole process.
    Reopen(Again),
    Pace(Pace),
    Tidy(Tidy),
    Rebuild,
}

/// How much of its source is re-read after a crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Again {
    All,
    Rest,
}

/// The sessions of a program. The last two have the ids of sub-agents in the scripts.
pub const SESSIONS: [&str; 3] = ["s1", "a", "c"];

/// Interleaves scripts with random operations. Each script keeps its order.
pub fn program(
    script: impl Strategy<Value = Vec<Line>>,
    restarts: bool,
) -> impl Strategy<Value = Vec<Deed>> {
    let scripts = prop::collection::vec(script, 1..=SESSIONS.len());
    let turns = prop::collection::vec((0..SESSIONS.len(), between(restarts)), 8..24);
    (scripts, turns).prop_map(|(scripts, turns)| {
        let mut lines: Vec<_> = scripts.into_iter().map(Vec::into_iter).collect();
        let mut program = Vec::new();
        for (session, between) in turns {
            // A few lines of one session at a time.
            let session = session % lines.len();
            program.extend(lines[session].by_ref().take(4).map(|line| Deed::Tell(session, line)));
            program.extend(between);
        }
        for (session, rest) in lines.into_iter().enumerate() {
            program.extend(rest.map(|line| Deed::Tell(session, line)));
        }
        program.push(Deed::Commit);
        program
    })
}

fn between(restarts: bool) -> BoxedStrategy<Option<Deed>> {
    let session = || 0..SESSIONS.len();
    let usual = prop_oneof![
        4 => Just(None),
        4 => Just(Some(Deed::Commit)),
        1 => session().prop_map(|session| Some(Deed::Add(session))),
        1 => select(vec![Pace::Bulk, Pace::Live]).prop_map(|pace| Some(Deed::Pace(pace))),
        1 => select(vec![Tidy::WhenDue, Tidy::Thorough]).prop_map(|how| Some(Deed::Tidy(how))),
        1 => Just(Some(Deed::Rebuild)),
    ];
    if !restarts {
        return usual.boxed();
    }
    let again = || select(vec![Again::All, Again::Rest]);
    prop_oneof![
        4 => usual,
        1 => (session(), again()).prop_map(|(session, again)| Some(Deed::Crash(session, again))),
        1 => again().prop_map(|again| Some(Deed::Reopen(again))),
    ]
    .boxed()
}
