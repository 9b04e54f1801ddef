//! What a model call was sent, as blocks: what fills it, its pieces in order, and what changed since
//! the call before. Texts are as they were sent; a piece that is not known says so.

mod context;
mod view;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::prompt::{
    CallPrompt, CallTimes, MessageList, Piece, PieceKind, PromptCall, Role,
};
use unspool_model::session::Usage;

use super::format;
use crate::block::{Alignment, Block, Code, Field, Fold, Notice, Span, Table, Tone};

pub use context::{CONTEXT_ROWS, OWN_TOOLS, PromptContext, ServerShare, UnusedServer};
pub use view::{CallNeighbours, CallRow, PieceView, PromptCalls, PromptView, bar, since};

/// Characters of a text that is looked for.
const MIN_FIND_CHARS: usize = 24;
const MAX_FIND_CHARS: usize = 200;

/// One model call and its prompt.
#[derive(Clone)]
pub struct Call<'a> {
    pub prompt: CallPrompt<'a>,
    /// The turn and the step that the call is; `None` if its source does not say that.
    pub step: Option<(u32, u32)>,
    /// It failed, was tried again, or is not answered yet.
    pub no_reply: bool,
    /// The tokens of the call, if it was answered.
    pub usage: Usage,
    pub times: CallTimes,
}

/// A piece of one prompt, with its text.
pub struct ShownPiece<'a> {
    pub role: Role,
    /// The number of its message; `None` for instructions and tools.
    pub message: Option<u32>,
    pub piece: &'a Piece,
    /// Where it stands in the request, as a JSON pointer.
    pub at: String,
    /// `None` if it is not known, or no text.
    pub text: Option<Arc<str>>,
}

impl ShownPiece<'_> {
    /// True if it is no text: an image, encrypted reasoning.
    pub fn is_binary(&self) -> bool {
        self.piece.text == unspool_model::prompt::PieceText::Binary
    }

    /// True if its text is not stored, or not the one that was sent.
    pub fn is_unknown(&self) -> bool {
        self.text.is_none() && !self.is_binary()
    }
}

/// What a prompt has that the one before had not, and the other way round.
pub struct PromptDifference {
    /// Messages at the beginning that both have.
    pub shared: u32,
    pub added: u32,
    pub removed: u32,
    /// The instructions or tools differ.
    pub head_changed: bool,
    /// Messages gave way to a summary of the conversation.
    pub compacted: bool,
}

impl PromptDifference {
    pub fn between(before: &CallPrompt<'_>, after: &CallPrompt<'_>) -> PromptDifference {
        let shared = after.shared_messages(*before);
        // A span has what is new in its call, and nothing else.
        let is_new = after.call().list == MessageList::SpanInput;
        PromptDifference {
            shared,
            added: after.message_count().saturating_sub(shared),
            removed: before.message_count().saturating_sub(if is_new { u32::MAX } else { shared }),
            head_changed: before.call().head != after.call().head,
            compacted: before.message_count() > shared
                && after.chars_of(PieceKind::Summary) > before.chars_of(PieceKind::Summary),
        }
    }

    /// True for a piece that the prompt before had not.
    pub fn has_added(&self, shown: &ShownPiece<'_>) -> bool {
        match shown.message {
            Some(message) => message >= self.shared,
            None => self.head_changed,
        }
    }

    /// In words: "+2 messages", "instructions changed, −12 messages, +1 message".
    pub fn words(&self) -> String {
        let mut words = Vec::new();
        if self.compacted {
            words.push("compacted".to_owned());
        }
        if self.head_changed {
            words.push("instructions or tools changed".to_owned());
        }
        if self.removed > 0 {
            words.push(format!("−{}", format::count(self.removed as usize, "message")));
        }
        words.push(format!("+{}", format::count(self.added as usize, "message")));
        words.join(", ")
    }
}

/// Where a call stands: "2.1", the step of its turn.
pub fn place(call: &Call<'_>) -> String {
    match call.step {
        Some((turn, step)) if call.no_reply => format!("{turn}.{step}, no reply"),
        Some((turn, step)) => format!("{turn}.{step}"),
        None if call.no_reply => "no reply".to_owned(),
        None => "no step".to_owned(),
    }
}

/// How long a call took, if its source says that.
pub fn took(call: &Call<'_>) -> Option<String> {
    call.times.after_sent(call.times.ended).map(format::duration)
}

/// How long a call took, and when its reply began.
fn time_words(call: &Call<'_>) -> Option<String> {
    let first = call.times.after_sent(call.times.first_token).map(format::duration);
    match (took(call), first) {
        (Some(took), Some(first)) => Some(format!("{took}, the first token after {first}")),
        (Some(took), None) => Some(took),
        (None, first) => first.map(|first| format!("the first token after {first}")),
    }
}

/// All calls of a session: what fills each, and what changed.
pub fn calls(calls: &[(Call<'_>, Option<PromptDifference>)]) -> Block {
    let header =
        ["Call", "Messages", "Characters", "Prompt tokens", "Took", "Most of it", "Change"];
    let right = Alignment::Right;
    let row = |(call, difference): &(Call<'_>, Option<PromptDifference>)| {
        let tokens = call.usage.prompt();
        let tokens = if tokens > 0 { format::compact(tokens) } else { String::new() };
        [
            place(call),
            call.prompt.message_count().to_string(),
            format::compact(call.prompt.chars()),
            tokens,
            took(call).unwrap_or_default(),
            largest(&call.prompt),
            difference.as_ref().map(PromptDifference::words).unwrap_or_default(),
        ]
        .map(|cell| vec![Span::plain(cell)])
        .to_vec()
    };
    Block::Table(Table {
        alignments: vec![
            Alignment::Left,
            right,
            right,
            right,
            right,
            Alignment::Left,
            Alignment::Left,
        ],
        header: header.map(|name| vec![Span::plain(name)]).to_vec(),
        rows: calls.iter().map(row).collect(),
    })
}

/// The two kinds that fill most of a prompt.
fn largest(prompt: &CallPrompt<'_>) -> String {
    let shares = shares(prompt);
    let words = |share: &Share| format!("{} {} %", share.kind.label(), share.percent);
    shares.iter().take(2).map(words).collect::<Vec<_>>().join(", ")
}

/// The share of one kind in a prompt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Share {
    pub kind: PieceKind,
    pub chars: u64,
    pub percent: u64,
}

/// What fills a prompt, largest first.
pub fn shares(prompt: &CallPrompt<'_>) -> Vec<Share> {
    let all = prompt.chars().max(1);
    let share = |(kind, chars): (PieceKind, u64)| Share {
        kind,
        chars,
        percent: (chars.saturating_mul(200) / all).div_ceil(2),
    };
    let mut shares: Vec<Share> = prompt.chars_by_kind().into_iter().map(share).collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.chars));
    shares
}

/// The head of one call: what it was, how long, and what is not known of it.
pub fn head(call: &Call<'_>, pieces: &[ShownPiece<'_>]) -> Vec<Block> {
    let mut blocks = vec![Block::Fields { fields: fields(call) }, share_table(call)];
    blocks.extend(
        unknown(call, pieces)
            .map(|text| Block::Notice(Notice { tone: Tone::Warning, code: None, text })),
    );
    blocks
}

fn fields(call: &Call<'_>) -> Vec<Field> {
    let PromptCall { model, .. } = call.prompt.call();
    let field = |name: &str, value: String| Field::new(name, vec![Span::plain(value)]);
    let mut fields = vec![field("Call", place(call))];
    fields.extend(model.as_ref().map(|model| field("Model", model.to_string())));
    let messages = format::count(call.prompt.message_count() as usize, "message");
    let chars = format::number(call.prompt.chars());
    fields.push(field("Length", format!("{messages}, {chars} characters")));
    let tokens = call.usage.prompt();
    if tokens > 0 {
        let cached = format::compact(call.usage.cache_read);
        let measured = format!("{} measured, {cached} of them cached", format::number(tokens));
        fields.push(field("Tokens", measured));
    }
    fields.extend(time_words(call).map(|words| field("Took", words)));
    fields
}

/// The tokens of so many characters of a prompt. No source counts tokens by piece: the measured sum
/// is shared out by characters.
fn estimate(call: &Call<'_>, chars: u64) -> String {
    let tokens = call.usage.prompt();
    let all = call.prompt.chars().max(1);
    let estimate = u128::from(tokens) * u128::from(chars) / u128::from(all);
    let estimate = u64::try_from(estimate).unwrap_or(u64::MAX);
    if tokens > 0 { format!("~{}", format::compact(estimate)) } else { String::new() }
}

fn share_table(call: &Call<'_>) -> Block {
    let row = |share: Share| {
        let bar = "█".repeat(usize::try_from(share.percent.div_ceil(5)).unwrap_or(0).min(20));
        [
            share.kind.label().to_owned(),
            format::number(share.chars),
            format!("{} %", share.percent),
            estimate(call, share.chars),
            bar,
        ]
        .map(|cell| vec![Span::plain(cell)])
        .to_vec()
    };
    let right = Alignment::Right;
    let header = ["What", "Characters", "Share", "Tokens (shared out)", ""];
    Block::Table(Table {
        alignments: vec![Alignment::Left, right, right, right, Alignment::Left],
        header: header.map(|name| vec![Span::plain(name)]).to_vec(),
        rows: shares(&call.prompt).into_iter().map(row).collect(),
    })
}

/// What is not known of a prompt, in one sentence.
pub fn unknown(call: &Call<'_>, pieces: &[ShownPiece<'_>]) -> Option<String> {
    let mut missing: Vec<String> =
        call.prompt.call().gaps.iter().map(|gap| gap.label().to_owned()).collect();
    let messages = call.prompt.unknown_messages();
    if messages > 0 {
        missing.push(format::count(messages as usize, "message"));
    }
    if call.prompt.call().head.is_some() && call.prompt.head().is_none() {
        missing.push("the instructions and tools".to_owned());
    }
    let texts = pieces.iter().filter(|piece| piece.is_unknown()).count();
    if texts > 0 {
        missing.push(format!("the text of {}", format::count(texts, "piece")));
    }
    (!missing.is_empty()).then(|| format!("Not in the log: {}.", missing.join(", ")))
}

/// The beginning of a text by which the calls that had it can be found.
pub fn findable<'a>(shown: &'a ShownPiece<'_>) -> Option<&'a str> {
    let text = shown.text.as_deref()?;
    // The first line of some length: those before it are titles and marks.
    let mut lines = text.lines().map(str::trim);
    let line = lines.find(|line| line.chars().count() >= MIN_FIND_CHARS).unwrap_or(text.trim());
    let end = line.char_indices().nth(MAX_FIND_CHARS).map_or(line.len(), |(at, _)| at);
    Some(&line[..end]).filter(|line| !line.is_empty())
}

/// One piece: its head, and its text behind a fold.
pub fn piece(shown: &ShownPiece<'_>, open: bool) -> Block {
    piece_up_to(shown, open, usize::MAX).0
}

/// The same with at most so many characters of the text, and how many more there are.
pub fn piece_up_to(shown: &ShownPiece<'_>, open: bool, limit: usize) -> (Block, usize) {
    let text = shown.text.as_deref().unwrap_or_default();
    // Bytes are counted in no time, and there are no fewer of them than characters.
    let cut = (text.len() > limit).then(|| text.char_indices().nth(limit)).flatten();
    let end = cut.map_or(text.len(), |(at, _)| at);
    let rest = cut.map_or(0, |_| (shown.piece.chars as usize).saturating_sub(limit));
    let mut title = vec![Span::plain(shown.piece.kind.label())];
    if let Some(label) = &shown.piece.label {
        title.push(Span::plain(format!(" · {label}")));
    }
    let chars = format::number(u64::from(shown.piece.chars));
    title.push(Span::plain(format!(" · {chars} characters · {}", shown.at)));
    let blocks = piece_blocks(shown, &text[..end]);
    let tone = if shown.is_unknown() { Tone::Warning } else { Tone::Muted };
    (Block::Fold(Fold { title, summary: summary(shown), open, tone, blocks }), rest)
}

/// A piece in one line.
fn summary(shown: &ShownPiece<'_>) -> String {
    match &shown.text {
        Some(text) => format::first_line(text, 80),
        None if shown.is_binary() => "not text".to_owned(),
        None => "not in the log".to_owned(),
    }
}

/// What is inside a piece, and its text or the beginning of it.
fn piece_blocks(shown: &ShownPiece<'_>, text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let spans = shown.piece.spans.iter().filter(|span| span.label.is_some());
    let inside: Vec<String> = spans
        .filter_map(|span| Some(format!("{}: {}", span.kind.label(), span.label.as_ref()?)))
        .collect();
    if !inside.is_empty() {
        let text = format!("Holds {}.", inside.join("; "));
        blocks.push(Block::Paragraph { spans: vec![Span::plain(text)] });
    }
    if !text.is_empty() {
        let json = matches!(shown.piece.kind, PieceKind::ToolCall | PieceKind::ToolSchema);
        let language = json.then(|| "json".to_owned());
        blocks.push(Block::Code(Code { language, text: text.to_owned(), first_line: None }));
    }
    blocks
}
