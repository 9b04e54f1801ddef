//! A comparison as blocks, for the command line.

use super::{ComparedRow, Comparison, FileCell, TurnCell};
use crate::block::{Alignment, Block, Span, Table};
use crate::present::format;

/// Tables of figures, turns, tools and files.
pub fn blocks(comparison: &Comparison) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (name, head) in ["First", "Second"].iter().zip(&comparison.heads) {
        blocks.push(Block::Paragraph {
            spans: vec![
                Span::plain(format!("{name}:  ")).dim(),
                Span::plain(head.title.clone()).strong(),
                Span::plain(format!("  {} · {}", head.agent, head.id)).dim(),
            ],
        });
    }
    let notes = comparison.notes.iter();
    blocks.extend(
        notes.map(|note| Block::Paragraph { spans: vec![Span::plain(note.clone()).dim()] }),
    );
    let figures = comparison.figures.iter().map(|figure| {
        let [left, right] = figure.values.clone();
        vec![cell(figure.name), cell(dash(left)), cell(dash(right))]
    });
    blocks.push(table("", figures.collect(), Alignment::Left));
    blocks.push(heading("Turns"));
    blocks.push(turns(&comparison.turns));
    if !comparison.tools.is_empty() {
        let rows = comparison.tools.iter().map(|tool| {
            let [left, right] = tool.calls.map(|calls| calls.text());
            vec![cell(tool.name.clone()), cell(left), cell(right)]
        });
        blocks.push(heading("Tools"));
        blocks.push(table("Tool", rows.collect(), Alignment::Right));
    }
    if !comparison.files.is_empty() {
        let rows = comparison.files.iter().map(|file| {
            let [left, right] =
                file.changes.map(|change| dash(change.map(FileCell::text).unwrap_or_default()));
            let name = vec![Span::plain(file.name.clone()).path()];
            vec![name, cell(left), cell(right), cell(file.verdict.text())]
        });
        let mut files = table("File", rows.collect(), Alignment::Left);
        if let Block::Table(table) = &mut files {
            table.header.push(Vec::new());
            table.alignments.push(Alignment::Left);
        }
        blocks.push(heading("Files"));
        blocks.push(files);
    }
    blocks
}

fn heading(text: &str) -> Block {
    Block::Heading { level: 2, spans: vec![Span::plain(text)] }
}

fn cell(text: impl Into<String>) -> Vec<Span> {
    vec![Span::plain(text.into())]
}

fn dash(text: String) -> String {
    if text.is_empty() { "–".to_owned() } else { text }
}

/// A table with a column for each session.
fn table(first: &str, rows: Vec<Vec<Vec<Span>>>, alignment: Alignment) -> Block {
    Block::Table(Table {
        alignments: vec![Alignment::Left, alignment, alignment],
        header: vec![cell(first), cell("First"), cell("Second")],
        rows,
    })
}

fn turns(rows: &[ComparedRow]) -> Block {
    let rows = rows.iter().map(|row| {
        let [left, right] = &row.turns;
        let mark = if row.is_same { "=" } else { "" };
        vec![turn(left.as_ref(), true), cell(mark), turn(right.as_ref(), !row.is_same)]
    });
    Block::Table(Table {
        alignments: vec![Alignment::Left, Alignment::Center, Alignment::Left],
        header: vec![cell("First"), Vec::new(), cell("Second")],
        rows: rows.collect(),
    })
}

/// A turn in a cell. A prompt that stands on the left already is not repeated.
fn turn(turn: Option<&TurnCell>, with_prompt: bool) -> Vec<Span> {
    let Some(turn) = turn else { return cell("–") };
    let mut spans = vec![Span::plain(format!("{} ", turn.number)).dim()];
    if with_prompt {
        spans.push(Span::plain(format::first_line(&turn.said, 60)).strong());
        spans.push(Span::plain(" "));
    }
    spans.push(Span::plain(turn.state).toned(turn.tone));
    let facts = turn.facts();
    if !facts.is_empty() {
        spans.push(Span::plain(format!(" · {}", facts.join(" · "))).dim());
    }
    spans
}
