//! What is said of two sessions as a whole: notes, figures, tools and files.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_model::id::SessionId;
use unspool_model::price::Prices;
use unspool_model::session::{Session, TurnState};

use super::{
    Calls, ComparedFigure, ComparedFile, ComparedRow, ComparedSession, ComparedTool, FileCell,
    Verdict,
};
use crate::block::DiffKind;
use crate::present::changes::{Basis, FileChange, FileStatus};
use crate::present::{format, short_cost};

pub(super) fn notes(sides: [&ComparedSession; 2], rows: &[ComparedRow]) -> Vec<String> {
    let mut notes = Vec::new();
    let [left, right] = sides.map(|side| &side.summary.session);
    let is_fork = |one: &Session, other: SessionId| {
        one.forked_from.as_ref().is_some_and(|from| from.session == other)
    };
    if is_fork(right, left.id) {
        notes.push("The second session is a branch of the first.".to_owned());
    }
    if is_fork(left, right.id) {
        notes.push("The first session is a branch of the second.".to_owned());
    }
    let same = rows.iter().filter(|row| row.is_same).count();
    if same == 0 {
        notes.push(
            "No prompt is in both sessions: turns stand beside each other by their order."
                .to_owned(),
        );
    }
    let is_running = |side: &&ComparedSession| {
        side.turns.iter().any(|turn| turn.header.state == TurnState::Running)
    };
    if sides.iter().any(is_running) {
        notes.push("A turn is still running: its figures grow.".to_owned());
    }
    if sides.iter().any(|side| side.changes.commands > 0) {
        let text = "Shell commands ran. The logs do not say which files they changed.";
        notes.push(text.to_owned());
    }
    notes.push("The time of a turn includes waiting for you.".to_owned());
    notes
}

pub(super) fn figures(sides: [&ComparedSession; 2], prices: &Prices) -> Vec<ComparedFigure> {
    let mut all = Vec::new();
    let mut add = |name, value: &dyn Fn(&ComparedSession) -> String| {
        let values = sides.map(value);
        if values.iter().any(|value| !value.is_empty()) {
            all.push(ComparedFigure { name, values });
        }
    };
    let session = |side: &ComparedSession| side.summary.session.facts.clone();
    add("Models", &|side| side.summary.models.join(", "));
    add("Project", &|side| session(side).project.unwrap_or_default());
    add("Branch", &|side| session(side).branch.unwrap_or_default());
    add("Started", &|side| {
        let started = side.summary.started;
        started.map(|at| at.strftime("%Y-%m-%d %H:%M UTC").to_string()).unwrap_or_default()
    });
    add("Turns", &|side| format::number(side.turns.len() as u64));
    add("Time in turns", &|side| match side.working_ms() {
        0 => String::new(),
        time => format::duration(time),
    });
    add("Tool calls", &|side| {
        let calls = side.tools().values().fold(Calls::default(), |sum, calls| Calls {
            all: sum.all + calls.all,
            failed: sum.failed + calls.failed,
        });
        calls.text()
    });
    let summary = |side: &ComparedSession| side.summary.clone();
    add("Tokens with sub-agents", &|side| {
        let usage = summary(side).usage_with_agents;
        format::token_sum(usage.fresh(), usage.cache_read)
    });
    add("Cost with sub-agents", &|side| short_cost(&side.summary.spending_with_agents, prices));
    add("Files changed", &|side| {
        let is_changed = |file: &&FileChange| file.status != FileStatus::Unchanged;
        let (added, removed) = side.changes.counts();
        match side.changes.files.iter().filter(is_changed).count() {
            0 => "none".to_owned(),
            count => format!("{} (+{added} −{removed})", format::number(count as u64)),
        }
    });
    add("Failed edits", &|side| match side.changes.failed_edits {
        0 => String::new(),
        count => format::number(count),
    });
    all
}

/// The tools of both sessions, most calls first.
pub(super) fn tools(sides: [&ComparedSession; 2]) -> Vec<ComparedTool> {
    let mut all: BTreeMap<&str, [Calls; 2]> = BTreeMap::new();
    for (at, side) in sides.iter().enumerate() {
        for (name, calls) in side.tools() {
            if let Some(held) = all.entry(name).or_default().get_mut(at) {
                *held = calls;
            }
        }
    }
    let mut tools: Vec<ComparedTool> = all
        .into_iter()
        .map(|(name, calls)| ComparedTool { name: name.to_owned(), calls })
        .collect();
    tools.sort_by_key(|tool| {
        std::cmp::Reverse(tool.calls.iter().map(|calls| calls.all).sum::<u64>())
    });
    tools
}

/// The files that one or both changed: first those of the left session, in its order.
pub(super) fn files(sides: [&ComparedSession; 2]) -> Vec<ComparedFile> {
    let by_name = sides.map(|side| {
        let changed = side.changes.files.iter();
        let changed = changed.filter(|file| file.status != FileStatus::Unchanged);
        changed.map(|file| (file.name.as_str(), file)).collect::<FxHashMap<_, _>>()
    });
    let mut seen: FxHashSet<&str> = FxHashSet::default();
    let names = sides.iter().flat_map(|side| &side.changes.files).map(|file| file.name.as_str());
    let names: Vec<&str> = names.filter(|name| seen.insert(name)).collect();
    let file = |name: &str| {
        let found = [by_name[0].get(name).copied(), by_name[1].get(name).copied()];
        let verdict = match found {
            [None, None] => return None,
            [Some(left), Some(right)] => verdict(left, right),
            [Some(_), None] | [None, Some(_)] => Verdict::OnlyOne,
        };
        let changes = found.map(|file| file.map(FileCell::of));
        Some(ComparedFile { name: name.to_owned(), changes, verdict })
    };
    names.into_iter().filter_map(file).collect()
}

fn verdict(left: &FileChange, right: &FileChange) -> Verdict {
    if left.basis != Basis::Net || right.basis != Basis::Net {
        return Verdict::Unknown;
    }
    let lines = |file: &FileChange| -> Vec<(DiffKind, String)> {
        let lines = file.diff.hunks.iter().flat_map(|hunk| &hunk.lines);
        lines.map(|line| (line.kind, line.text())).collect()
    };
    let is_same = left.status == right.status
        && left.moved_from == right.moved_from
        && lines(left) == lines(right);
    if is_same { Verdict::Same } else { Verdict::Different }
}
