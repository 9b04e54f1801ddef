//! A prompt and the list of calls as data: what a terminal shows, in this process or over a
//! connection. Texts that are long are cut here and are asked for one at a time.

use serde::{Deserialize, Serialize};
use unspool_model::prompt::PieceKind;

use super::{Call, PromptDifference, Share, ShownPiece, findable, place, shares};
use crate::block::{Alignment, Block, Field, Notice, Span, Table, Tone};
use crate::present::format;

/// Characters of a piece that come with its prompt.
const MAX_PIECE_CHARS: usize = 2_000;
/// Characters of all pieces that come with a prompt: it may have thousands.
const MAX_PROMPT_CHARS: usize = 1_000_000;
/// Characters of one piece that was asked for.
const MAX_WHOLE_CHARS: usize = 4_000_000;

/// The calls of a session, or those that were sent a text.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PromptCalls {
    pub calls: Vec<CallRow>,
    /// How many calls the session has.
    pub all: usize,
}

/// One call of a list.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CallRow {
    pub request: String,
    pub place: String,
    pub chars: u64,
    /// Measured tokens of the prompt; 0 if the call was not answered.
    pub tokens: u64,
    pub shares: Vec<Share>,
    /// What changed since the call before.
    pub change: String,
}

impl CallRow {
    pub fn new(call: &Call<'_>, difference: Option<&PromptDifference>) -> CallRow {
        CallRow {
            request: call.prompt.call().request.to_string(),
            place: place(call),
            chars: call.prompt.chars(),
            tokens: call.usage.prompt(),
            shares: shares(&call.prompt),
            change: difference.map(PromptDifference::words).unwrap_or_default(),
        }
    }
}

/// The prompt of one call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PromptView {
    pub request: String,
    pub place: String,
    /// Its number among the calls of the session, from 1, and how many there are.
    pub number: usize,
    pub calls: usize,
    /// The requests of the calls before and after it.
    pub previous: Option<String>,
    pub next: Option<String>,
    /// What it was, how long, and what is not known of it.
    pub head: Vec<Block>,
    pub shares: Vec<Share>,
    /// The call that it is compared with, and what changed since.
    pub since: Option<(String, String)>,
    pub pieces: Vec<PieceView>,
}

/// A piece of a prompt.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PieceView {
    /// Its number in the prompt.
    pub number: usize,
    pub kind: PieceKind,
    pub title: String,
    /// The beginning of its text, in one line.
    pub summary: String,
    /// Its text is not stored, or not the one that was sent.
    pub is_unknown: bool,
    /// The call before was not sent it.
    pub is_new: bool,
    /// It has the text that is looked for.
    pub is_hit: bool,
    /// What to look for in other calls.
    pub find: Option<String>,
    pub blocks: Vec<Block>,
    /// How many characters of the text are not in the blocks.
    pub rest: u64,
}

/// Where a call is among those of its session.
pub struct CallNeighbours {
    pub number: usize,
    pub calls: usize,
    pub previous: Option<String>,
    pub next: Option<String>,
}

impl PromptView {
    /// Presents a prompt. `before` is the call that it is compared with; `find` a text to look for.
    pub fn new(
        call: &Call<'_>,
        neighbours: CallNeighbours,
        pieces: &[ShownPiece<'_>],
        before: Option<(&Call<'_>, &PromptDifference)>,
        find: Option<&str>,
    ) -> PromptView {
        let CallNeighbours { number, calls, previous, next } = neighbours;
        let mut left = MAX_PROMPT_CHARS;
        let view = |(number, shown): (usize, &ShownPiece<'_>)| {
            let limit = MAX_PIECE_CHARS.min(left);
            let mut view = PieceView::cut(number, shown, limit);
            left -= limit.min(shown.piece.chars as usize);
            view.is_new = before.is_none_or(|(_, difference)| difference.has_added(shown));
            let has = |find: &str| shown.text.as_ref().is_some_and(|text| text.contains(find));
            view.is_hit = find.is_some_and(has);
            view
        };
        PromptView {
            request: call.prompt.call().request.to_string(),
            place: place(call),
            number,
            calls,
            previous,
            next,
            head: head(call, pieces),
            shares: shares(&call.prompt),
            since: before.map(|(before, difference)| (place(before), difference.words())),
            pieces: pieces.iter().enumerate().map(view).collect(),
        }
    }
}

impl PieceView {
    /// A piece with its whole text.
    pub fn whole(number: usize, shown: &ShownPiece<'_>) -> PieceView {
        PieceView::cut(number, shown, MAX_WHOLE_CHARS)
    }

    fn cut(number: usize, shown: &ShownPiece<'_>, limit: usize) -> PieceView {
        let piece = shown.piece;
        let mut title = piece.kind.label().to_owned();
        if let Some(label) = &piece.label {
            title.push_str(&format!(" · {}", format::first_line(label, 80)));
        }
        title.push_str(&format!(" · {} · {}", format::compact(u64::from(piece.chars)), shown.at));
        let text = shown.text.as_deref().unwrap_or_default();
        let end = text.char_indices().nth(limit).map_or(text.len(), |(at, _)| at);
        let rest = if end < text.len() { text[end..].chars().count() as u64 } else { 0 };
        PieceView {
            number,
            kind: piece.kind,
            title,
            summary: super::summary(shown),
            is_unknown: shown.is_unknown(),
            is_new: true,
            is_hit: false,
            find: findable(shown).map(str::to_owned),
            blocks: super::piece_blocks(shown, &text[..end]),
            rest,
        }
    }
}

/// What a prompt was, without a picture of what fills it, which is as wide as the screen.
fn head(call: &Call<'_>, pieces: &[ShownPiece<'_>]) -> Vec<Block> {
    let mut blocks: Vec<Block> = vec![Block::Fields { fields: super::fields(call) }];
    blocks.push(share_table(call));
    let notice = |text| Block::Notice(Notice { tone: Tone::Warning, code: None, text });
    blocks.extend(super::unknown(call, pieces).map(notice));
    blocks
}

fn share_table(call: &Call<'_>) -> Block {
    let row = |share: Share| {
        let name = vec![swatch(share.kind, 1), Span::plain(format!(" {}", share.kind.label()))];
        let others = [
            format::number(share.chars),
            format!("{} %", share.percent),
            super::estimate(call, share.chars),
        ];
        let others = others.map(|cell| vec![Span::plain(cell)]);
        std::iter::once(name).chain(others).collect()
    };
    let right = Alignment::Right;
    let header = ["What", "Characters", "Share", "Tokens (shared out)"];
    Block::Table(Table {
        alignments: vec![Alignment::Left, right, right, right],
        header: header.map(|name| vec![Span::plain(name)]).to_vec(),
        rows: shares(&call.prompt).into_iter().map(row).collect(),
    })
}

/// What fills a prompt, as one bar of at most `width` cells. Kinds are in one order for all calls,
/// and neighbours differ in their fill, so that the bar can be read without colours.
pub fn bar(shares: &[Share], width: usize) -> Vec<Span> {
    let mut shares = shares.to_vec();
    shares.sort_unstable_by_key(|share| share.kind);
    let all: u64 = shares.iter().map(|share| share.chars).sum();
    let cells = |chars: u64| {
        let cells = u128::from(chars) * width as u128 * 2 / u128::from(all.max(1));
        usize::try_from(cells.div_ceil(2)).unwrap_or(width).min(width)
    };
    let (mut end, mut drawn) = (0, 0);
    let mut spans = Vec::new();
    for share in shares {
        end += share.chars;
        let until = cells(end);
        if until > drawn {
            spans.push(swatch(share.kind, until - drawn));
            drawn = until;
        }
    }
    spans
}

/// The fill of a kind. Kinds beside each other have different characters.
fn swatch(kind: PieceKind, cells: usize) -> Span {
    let (fill, tone) = match kind {
        PieceKind::Policy => ("█", Tone::Running),
        PieceKind::ToolSchema => ("▒", Tone::Muted),
        PieceKind::Instructions => ("█", Tone::Failed),
        PieceKind::Skills => ("▒", Tone::User),
        PieceKind::Agents => ("▓", Tone::Running),
        PieceKind::Environment => ("░", Tone::Muted),
        PieceKind::Hook => ("█", Tone::Warning),
        PieceKind::Reminder => ("▓", Tone::Interrupted),
        PieceKind::McpInstructions => ("▒", Tone::Accent),
        PieceKind::UserInstruction => ("█", Tone::User),
        PieceKind::HistoryText => ("▓", Tone::Accent),
        PieceKind::HistoryReasoning => ("░", Tone::Accent),
        PieceKind::ToolCall => ("▒", Tone::Ok),
        PieceKind::ToolOutput => ("█", Tone::Ok),
        PieceKind::File => ("▓", Tone::Warning),
        PieceKind::Summary => ("▒", Tone::Interrupted),
        PieceKind::Other => ("░", Tone::Pending),
    };
    Span::plain(fill.repeat(cells)).toned(tone)
}

/// The fields of a prompt's difference, for its head.
pub fn since(view: &PromptView) -> Option<Field> {
    let (place, words) = view.since.as_ref()?;
    Some(Field::new(format!("Since {place}"), vec![Span::plain(words.clone())]))
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
