//! Two sessions side by side: the same task given to two agents, or a session and its branch. Decides
//! which turns stand in one row, and what is said of each. The sessions come from
//! `unspool_query::compare`, without the content of their parts.

mod align;
mod blocks;
mod document;
mod totals;

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_model::id::SessionId;
use unspool_model::part::{Body, ToolState};
use unspool_model::price::{Prices, Spending};
use unspool_model::skeleton::Skeleton;
use unspool_model::summary::Summary;

use self::align::align;
pub use self::blocks::blocks;
pub use self::document::ComparisonDocument;
use super::changes::{Changes, FileChange, FileStatus};
use super::{TurnHeader, UNTITLED, format, short_cost};
use crate::block::Tone;

/// Characters of a prompt or a title that are shown.
const MAX_SAID: usize = 300;

/// One of the two sessions, without the content of its parts.
pub struct ComparedSession {
    pub summary: Summary,
    pub turns: Vec<ComparedTurn>,
    pub changes: Changes,
}

/// A turn without the content of its parts.
pub struct ComparedTurn {
    header: TurnHeader,
    /// What the user said, whole.
    prompt: String,
    /// Calls and failed calls, by tool.
    tools: BTreeMap<String, Calls>,
    spending: Spending,
}

/// Calls of a tool, and how many of them failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Calls {
    pub all: u64,
    pub failed: u64,
}

/// Two sessions side by side. The first one is on the left.
pub struct Comparison {
    pub heads: [ComparedHead; 2],
    /// What the reader must know about the whole, one sentence each.
    pub notes: Vec<String>,
    pub figures: Vec<ComparedFigure>,
    pub turns: Vec<ComparedRow>,
    pub tools: Vec<ComparedTool>,
    pub files: Vec<ComparedFile>,
}

pub struct ComparedHead {
    pub id: SessionId,
    pub title: String,
    /// The agent with its version.
    pub agent: String,
}

/// A figure of both sessions, as text. Empty if it is not known.
pub struct ComparedFigure {
    pub name: &'static str,
    pub values: [String; 2],
}

/// Turns in one row: of one session or of both.
pub struct ComparedRow {
    pub turns: [Option<TurnCell>; 2],
    /// Both have the same prompt.
    pub is_same: bool,
}

pub struct TurnCell {
    pub number: u32,
    /// The beginning of the prompt, on one line.
    pub said: String,
    pub state: &'static str,
    pub tone: Tone,
    pub abandoned: bool,
    pub duration_ms: Option<u64>,
    pub calls: Calls,
    pub tokens: String,
    pub cost: String,
    /// Files that the turn itself edited.
    pub files: usize,
}

pub struct ComparedTool {
    pub name: String,
    pub calls: [Calls; 2],
}

pub struct ComparedFile {
    pub name: String,
    /// `None` if this session did not change it.
    pub changes: [Option<FileCell>; 2],
    pub verdict: Verdict,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileCell {
    pub status: FileStatus,
    pub added: usize,
    pub removed: usize,
}

/// Whether both sessions changed a file in the same way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Same,
    Different,
    /// A log does not have the net change, so nobody knows.
    Unknown,
    OnlyOne,
}

impl Verdict {
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Same => "same change",
            Verdict::Different => "different",
            Verdict::Unknown => "cannot be compared",
            Verdict::OnlyOne => "only one",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Verdict::Same => "same",
            Verdict::Different => "different",
            Verdict::Unknown => "unknown",
            Verdict::OnlyOne => "only-one",
        }
    }
}

impl ComparedTurn {
    pub fn of(skeleton: &Skeleton) -> ComparedTurn {
        let mut tools: BTreeMap<String, Calls> = BTreeMap::new();
        for part in &skeleton.parts {
            if let Some(tool) = &part.tool {
                let calls = tools.entry(tool.to_string()).or_default();
                calls.all += 1;
                calls.failed += u64::from(part.state == Some(ToolState::Failed));
            }
        }
        let turn = &skeleton.turn;
        let said: Vec<&str> = turn.user.iter().filter_map(Body::prose).collect();
        ComparedTurn {
            header: TurnHeader::of(turn),
            prompt: said.join("\n"),
            tools,
            spending: turn.spending(),
        }
    }

    /// What makes two turns the same: the words of the prompt, whatever the white space. A turn
    /// without words is like any other of its kind.
    fn key(&self) -> String {
        let words: Vec<&str> = self.prompt.split_whitespace().collect();
        match words.is_empty() {
            true => format!("\0{}", self.header.facts().first().map_or("", |fact| fact.text)),
            false => words.join(" "),
        }
    }

    fn calls(&self) -> Calls {
        let sum = |sum: Calls, calls: &Calls| Calls {
            all: sum.all + calls.all,
            failed: sum.failed + calls.failed,
        };
        self.tools.values().fold(Calls::default(), sum)
    }
}

impl ComparedSession {
    fn head(&self) -> ComparedHead {
        let session = &self.summary.session;
        let title = self.summary.title.as_deref().unwrap_or(UNTITLED);
        let version = session.facts.version.as_ref().map(|version| format!(" {version}"));
        ComparedHead {
            id: session.id,
            title: format::first_line(title, MAX_SAID),
            agent: format!("{}{}", session.agent, version.unwrap_or_default()),
        }
    }

    fn cells(&self, prices: &Prices) -> Vec<TurnCell> {
        let own = self.summary.session.id;
        let mut files: FxHashMap<u32, FxHashSet<&str>> = FxHashMap::default();
        for file in &self.changes.files {
            for edit in file.edits.iter().filter(|edit| edit.session == own) {
                files.entry(edit.turn).or_default().insert(&file.path);
            }
        }
        let cell = |turn: &ComparedTurn| {
            let header = &turn.header;
            TurnCell {
                number: header.number,
                said: format::first_line(&turn.prompt, MAX_SAID),
                state: header.state_text(),
                tone: header.tone,
                abandoned: header.abandoned,
                duration_ms: header.duration_ms.filter(|took| *took > 0),
                calls: turn.calls(),
                tokens: format::token_sum(header.usage.fresh(), header.usage.cache_read),
                cost: short_cost(&turn.spending, prices),
                files: files.get(&header.number).map_or(0, FxHashSet::len),
            }
        };
        self.turns.iter().map(cell).collect()
    }

    /// The time in its turns: a session that was resumed the next day did not work all night.
    fn working_ms(&self) -> u64 {
        let times = self.turns.iter().filter_map(|turn| turn.header.duration_ms);
        times.fold(0, u64::saturating_add)
    }

    fn tools(&self) -> BTreeMap<&str, Calls> {
        let mut all: BTreeMap<&str, Calls> = BTreeMap::new();
        for (name, calls) in self.turns.iter().flat_map(|turn| &turn.tools) {
            let sum = all.entry(name).or_default();
            sum.all += calls.all;
            sum.failed += calls.failed;
        }
        all
    }
}

/// Compares two sessions.
pub fn compare(left: &ComparedSession, right: &ComparedSession, prices: &Prices) -> Comparison {
    let sides = [left, right];
    let keys = sides.map(|side| side.turns.iter().map(ComparedTurn::key).collect::<Vec<_>>());
    let [left_keys, right_keys] = &keys;
    let mut cells = sides.map(|side| side.cells(prices).into_iter().map(Some).collect::<Vec<_>>());
    let mut take =
        |side: usize, at: Option<usize>| at.and_then(|at| cells.get_mut(side)?.get_mut(at)?.take());
    let row = |pair: &align::Pair| ComparedRow {
        turns: [take(0, pair.left), take(1, pair.right)],
        is_same: pair.is_same,
    };
    let turns: Vec<ComparedRow> = align(left_keys, right_keys).iter().map(row).collect();
    Comparison {
        heads: sides.map(ComparedSession::head),
        notes: totals::notes(sides, &turns),
        figures: totals::figures(sides, prices),
        tools: totals::tools(sides),
        files: totals::files(sides),
        turns,
    }
}

impl Calls {
    /// `12, 2 failed`.
    pub fn text(self) -> String {
        match self.failed {
            0 => format::number(self.all),
            failed => format!("{}, {} failed", format::number(self.all), format::number(failed)),
        }
    }
}

impl TurnCell {
    /// What is said of the turn below its prompt.
    pub fn facts(&self) -> Vec<String> {
        let mut facts = Vec::new();
        facts.extend(self.abandoned.then(|| "abandoned".to_owned()));
        facts.extend(self.duration_ms.map(format::duration));
        let calls = usize::try_from(self.calls.all).unwrap_or(usize::MAX);
        facts.extend((calls > 0).then(|| format::count(calls, "call")));
        let failed = self.calls.failed;
        facts.extend((failed > 0).then(|| format!("{} failed", format::number(failed))));
        facts.extend(
            (self.files > 0).then(|| format!("{} edited", format::count(self.files, "file"))),
        );
        let tokens = &self.tokens;
        facts.extend((!tokens.is_empty()).then(|| format!("{tokens} tokens")));
        facts.extend(Some(self.cost.clone()).filter(|cost| !cost.is_empty()));
        facts
    }
}

impl FileCell {
    fn of(file: &FileChange) -> FileCell {
        FileCell { status: file.status, added: file.added, removed: file.removed }
    }

    /// `new +12 −3`.
    pub fn text(self) -> String {
        let word = match self.status {
            FileStatus::New => "new ",
            FileStatus::Deleted => "deleted ",
            FileStatus::Moved => "moved ",
            FileStatus::Modified | FileStatus::Unchanged => "",
        };
        format!("{word}+{} −{}", self.added, self.removed)
    }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
