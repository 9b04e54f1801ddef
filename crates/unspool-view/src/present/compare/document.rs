//! A comparison as JSON, for `unspool compare --json`.

use serde::Serialize;
use unspool_model::id::SessionId;

use super::{Calls, Comparison, FileCell, TurnCell};
use crate::present::changes::FileStatus;

#[derive(Serialize)]
pub struct ComparisonDocument<'a> {
    sessions: [HeadDocument<'a>; 2],
    notes: &'a [String],
    figures: Vec<FigureDocument<'a>>,
    turns: Vec<RowDocument<'a>>,
    tools: Vec<ToolDocument<'a>>,
    files: Vec<FileDocument<'a>>,
}

#[derive(Serialize)]
struct HeadDocument<'a> {
    id: SessionId,
    title: &'a str,
    agent: &'a str,
}

#[derive(Serialize)]
struct FigureDocument<'a> {
    name: &'a str,
    values: &'a [String; 2],
}

#[derive(Serialize)]
struct RowDocument<'a> {
    same_prompt: bool,
    turns: [Option<TurnDocument<'a>>; 2],
}

#[derive(Serialize)]
struct TurnDocument<'a> {
    number: u32,
    prompt: &'a str,
    state: &'a str,
    duration_ms: Option<u64>,
    calls: u64,
    failed: u64,
    files: usize,
    tokens: &'a str,
    cost: &'a str,
}

#[derive(Serialize)]
struct ToolDocument<'a> {
    name: &'a str,
    calls: [u64; 2],
    failed: [u64; 2],
}

#[derive(Serialize)]
struct FileDocument<'a> {
    name: &'a str,
    verdict: &'a str,
    changes: [Option<ChangeDocument>; 2],
}

#[derive(Serialize)]
struct ChangeDocument {
    status: FileStatus,
    added: usize,
    removed: usize,
}

impl TurnDocument<'_> {
    fn of(turn: &TurnCell) -> TurnDocument<'_> {
        let Calls { all, failed } = turn.calls;
        TurnDocument {
            number: turn.number,
            prompt: &turn.said,
            state: turn.state,
            duration_ms: turn.duration_ms,
            calls: all,
            failed,
            files: turn.files,
            tokens: &turn.tokens,
            cost: &turn.cost,
        }
    }
}

impl Comparison {
    pub fn document(&self) -> ComparisonDocument<'_> {
        let head = |at: usize| {
            let head = &self.heads[at];
            HeadDocument { id: head.id, title: &head.title, agent: &head.agent }
        };
        let turns = self.turns.iter().map(|row| RowDocument {
            same_prompt: row.is_same,
            turns: row.turns.each_ref().map(|turn| turn.as_ref().map(TurnDocument::of)),
        });
        let tools = self.tools.iter().map(|tool| ToolDocument {
            name: &tool.name,
            calls: tool.calls.map(|calls| calls.all),
            failed: tool.calls.map(|calls| calls.failed),
        });
        let change = |change: FileCell| {
            let FileCell { status, added, removed } = change;
            ChangeDocument { status, added, removed }
        };
        let files = self.files.iter().map(|file| FileDocument {
            name: &file.name,
            verdict: file.verdict.name(),
            changes: file.changes.map(|cell| cell.map(change)),
        });
        let figures = self.figures.iter();
        ComparisonDocument {
            sessions: [head(0), head(1)],
            notes: &self.notes,
            figures: figures
                .map(|figure| FigureDocument { name: figure.name, values: &figure.values })
                .collect(),
            turns: turns.collect(),
            tools: tools.collect(),
            files: files.collect(),
        }
    }
}
