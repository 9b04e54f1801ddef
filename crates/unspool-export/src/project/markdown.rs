//! Markdown for an issue or a pull request: reasoning and the output of tools folded, diffs fenced
//! as diffs.

use std::io::Write;

use serde::{Deserialize, Serialize};
use unspool_model::id::PartId;
use unspool_view::present::notes::head_notes;
use unspool_view::present::{self, Item, TurnView};

use super::turn_views::TurnViews;
use super::{Options, ProjectError, Projection, SessionStream, WriteMethod};
use crate::markdown;

pub const PROJECTION: Projection = Projection {
    name: "markdown",
    title: "Markdown",
    extension: "md",
    media_type: "text/markdown; charset=utf-8",
    about: "Markdown for a pull request, with reasoning and tool output folded",
    has_notes: true,
    has_turns: true,
    method: WriteMethod::Projected(write),
};

fn write(
    stream: SessionStream<'_>,
    options: &Options,
    out: &mut dyn Write,
) -> Result<(), ProjectError> {
    let head = present::session(&stream.head, &options.prices);
    out.write_all(markdown::session(&head).as_bytes())?;
    out.write_all(b"\n\n")?;
    let notes = markdown::head_notes(&head_notes(&stream.notes));
    if !notes.is_empty() {
        writeln!(out, "{notes}\n")?;
    }
    let mut views = TurnViews { stream };
    while let Some(view) = views.next_turn()? {
        out.write_all(markdown::turn(&view).as_bytes())?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// What of a session is written as Markdown.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Excerpt {
    Session,
    /// The title and the facts.
    Head,
    /// A turn, by its number.
    Turn(u32),
    /// The user's message of a turn.
    Prompt(u32),
    Parts {
        turn: u32,
        parts: Vec<PartId>,
    },
}

impl Excerpt {
    /// The first turn that it needs.
    pub fn first_turn(&self) -> u32 {
        match self {
            Excerpt::Session | Excerpt::Head => 0,
            Excerpt::Turn(turn) | Excerpt::Prompt(turn) | Excerpt::Parts { turn, .. } => *turn,
        }
    }
}

/// Writes an excerpt from a stream that starts at its first turn. Returns false if the session does
/// not have it.
pub fn write_excerpt(
    stream: SessionStream<'_>,
    excerpt: &Excerpt,
    options: &Options,
    out: &mut dyn Write,
) -> Result<bool, ProjectError> {
    let text = match excerpt {
        Excerpt::Session => {
            write(stream, options, out)?;
            return Ok(true);
        }
        Excerpt::Head => Some(markdown::session(&present::session(&stream.head, &options.prices))),
        Excerpt::Turn(number) => turn_view(stream, *number)?.map(|view| markdown::turn(&view)),
        Excerpt::Prompt(number) => {
            turn_view(stream, *number)?.map(|view| markdown::blocks(&view.user))
        }
        Excerpt::Parts { turn, parts } => {
            turn_view(stream, *turn)?.and_then(|view| join_parts(&view, parts))
        }
    };
    out.write_all(text.as_deref().unwrap_or_default().as_bytes())?;
    Ok(text.is_some())
}

fn turn_view(stream: SessionStream<'_>, number: u32) -> Result<Option<TurnView>, ProjectError> {
    let first = TurnViews { stream }.next_turn()?;
    Ok(first.filter(|view| view.header.number == number))
}

/// These parts in their order. `None` if the turn has none of them.
fn join_parts(view: &TurnView, parts: &[PartId]) -> Option<String> {
    let views = view.items.iter().flat_map(|item| match item {
        Item::Part(part) => std::slice::from_ref(part),
        Item::Reasoning(block) => block.parts.as_slice(),
    });
    let found = views.filter(|view| parts.contains(&view.id)).map(markdown::part);
    let found: Vec<String> = found.collect();
    (!found.is_empty()).then(|| found.join("\n\n"))
}
