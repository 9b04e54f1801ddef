//! The prompts that an agent recorded, as ThoughtFlow writes them: the instruction pieces of each
//! request, the string that they make, and the snapshots that follow from them. What is not recorded
//! is named and never filled in (law 10).
//!
//! Each call has its whole instruction string, and the conversation is left to the steps of the run:
//! else a document would grow with the square of the session. `MAX_PROMPT_CHARS` bounds what is
//! written in all.

use std::rc::Rc;

use jiff::Timestamp;
use rustc_hash::FxHashMap;
use unspool_model::id::sha256;
use unspool_model::prompt::{
    CallPrompt, CallTimes, InstructionKey, Piece, PieceKind, PromptGap, RecordedPrompts,
    adaptation_frames,
};
use unspool_model::provenance::Name;

/// Characters of prompts that are put together for one document. A call after that says how long its
/// instructions are. Claude Code's are 60,000 characters, so this is enough for some 500 calls.
const MAX_PROMPT_CHARS: u64 = 32 * 1024 * 1024;
/// What a piece costs beside its text.
const PIECE_CHARS: u64 = 64;

/// The recorded prompts of a session, put together call by call.
pub struct PromptLog {
    prompts: RecordedPrompts,
    /// Consecutive calls have mostly the same instructions.
    last: Option<(InstructionKey, Rc<ComposedPrompt>)>,
    /// When each snapshot was first sent.
    produced: FxHashMap<String, Option<Timestamp>>,
    /// Characters that may still be written.
    room: u64,
}

/// The prompt of one call.
pub struct RecordedPrompt {
    pub at: Option<Timestamp>,
    pub times: CallTimes,
    /// `None` if the document has no room for it.
    pub composed: Option<Rc<ComposedPrompt>>,
    pub truth: PromptTruth,
}

/// How far a prompt is known.
pub struct PromptTruth {
    pub unknown_messages: u32,
    pub unknown_pieces: usize,
    pub gaps: Vec<PromptGap>,
    /// The length of its instructions, tools and user's words.
    pub chars: u64,
}

/// The instructions of a prompt, in the order of the request.
#[derive(Default)]
pub struct ComposedPrompt {
    pub parts: Vec<PromptPart>,
    /// The instruction pieces, joined by one newline.
    pub final_prompt: String,
    /// The last words of the user.
    pub user: Option<PromptPart>,
    pub tools: Vec<ToolSchema>,
    pub adaptations: Vec<Adaptation>,
    /// Pieces whose text is not known.
    pub unknown_pieces: usize,
    chars: u32,
}

/// A stretch of the final prompt, or the user's words, which stand beside it.
pub struct PromptPart {
    pub kind: PartKind,
    pub value: String,
    /// Where its piece stands in the request.
    pub at: String,
    pub label: Option<String>,
    /// In the final prompt, in characters; `end` is exclusive.
    pub span: Option<(u32, u32)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartKind {
    Piece(PieceKind),
    /// Between the tags of a frame, and the tags.
    Adaptations,
}

pub struct ToolSchema {
    pub name: String,
    pub schema: String,
}

pub struct Adaptation {
    pub content: String,
    /// `None` if the frame does not name them.
    pub ids: Option<Vec<String>>,
}

impl PartKind {
    /// A type of R-002-16.
    pub fn type_name(self) -> &'static str {
        match self {
            PartKind::Adaptations => "prompt_adaptations",
            PartKind::Piece(kind) => match kind {
                PieceKind::Policy => "personality",
                PieceKind::ToolSchema => "tool_schemas_snapshot",
                PieceKind::Instructions | PieceKind::UserInstruction => "user_instruction",
                PieceKind::Skills
                | PieceKind::Agents
                | PieceKind::Environment
                | PieceKind::Hook
                | PieceKind::Reminder
                | PieceKind::McpInstructions
                | PieceKind::HistoryText
                | PieceKind::HistoryReasoning
                | PieceKind::ToolCall
                | PieceKind::ToolOutput
                | PieceKind::File
                | PieceKind::Summary
                | PieceKind::Other => "context_preamble",
            },
        }
    }

    /// The kind in the JSON of prompts.
    pub fn name(self) -> &'static str {
        match self {
            PartKind::Piece(kind) => kind.name(),
            PartKind::Adaptations => "adaptations",
        }
    }
}

impl PromptLog {
    pub fn new(prompts: RecordedPrompts) -> PromptLog {
        let (last, produced) = (None, FxHashMap::default());
        PromptLog { prompts, last, produced, room: MAX_PROMPT_CHARS }
    }

    /// The prompt of the call that a step answers; `logged` is what its log calls the request.
    pub fn prompt(&mut self, logged: Option<&str>, step: &Name) -> Option<RecordedPrompt> {
        let call = self.prompts.tree.call_of_step(logged, step)?;
        let kinds = call.chars_by_kind().into_iter();
        let is_written = |kind: PieceKind| {
            kind.is_instruction()
                || matches!(kind, PieceKind::ToolSchema | PieceKind::UserInstruction)
        };
        let chars = kinds.filter(|(kind, _)| is_written(*kind)).map(|(_, chars)| chars).sum();
        let mut truth = PromptTruth {
            unknown_messages: call.unknown_messages(),
            unknown_pieces: 0,
            gaps: call.call().gaps.clone(),
            chars,
        };
        let is_head_known = call.call().head.is_none() || call.head().is_some();
        truth.unknown_messages += u32::from(!is_head_known);
        let at = call.call().at;
        let key = call.instruction_key();
        let held = self.last.as_ref().filter(|(last, _)| *last == key);
        let composed = match held.map(|(_, composed)| composed.clone()) {
            Some(composed) => Some(composed),
            None if chars > self.room => None,
            None => Some(Rc::new(compose(&self.prompts, call))),
        };
        // It is written once more, even if it was put together for the call before.
        let cost = |composed: &Rc<ComposedPrompt>| {
            u64::from(composed.chars) + PIECE_CHARS * composed.parts.len() as u64
        };
        let composed = composed.filter(|composed| cost(composed) <= self.room);
        if let Some(composed) = &composed {
            self.room -= cost(composed);
            self.last = Some((key, composed.clone()));
            truth.unknown_pieces = composed.unknown_pieces;
        }
        let times = self.prompts.tree.times(&call.call().request, logged);
        Some(RecordedPrompt { at: times.sent.or(at), times, composed, truth })
    }

    /// When a snapshot was first sent: its program had put it together for that call.
    pub fn produced(&mut self, version: &str, at: Option<Timestamp>) -> Option<Timestamp> {
        *self.produced.entry(version.to_owned()).or_insert(at)
    }
}

impl PromptTruth {
    pub fn is_complete(&self) -> bool {
        self.unknown_messages == 0 && self.unknown_pieces == 0
    }

    pub fn has_gap(&self, gap: PromptGap) -> bool {
        self.gaps.contains(&gap) || self.gaps.contains(&PromptGap::MostOfIt)
    }

    /// True if adaptations would be in what is known.
    pub fn shows_adaptations(&self) -> bool {
        self.is_complete()
            && !self.has_gap(PromptGap::Instructions)
            && !self.has_gap(PromptGap::EarlierMessages)
            && !self.has_gap(PromptGap::HookContext)
    }

    /// True if all tools are in what is known.
    pub fn shows_tools(&self) -> bool {
        self.unknown_messages == 0 && !self.has_gap(PromptGap::ToolSchemas)
    }
}

impl ComposedPrompt {
    /// The text of the stretches of one kind, joined by newlines. `None` if there are none.
    pub fn text_of(&self, kind: PieceKind) -> Option<String> {
        let parts = self.parts.iter().filter(|part| part.kind == PartKind::Piece(kind));
        let values: Vec<&str> = parts.map(|part| part.value.as_str()).collect();
        (!values.is_empty()).then(|| values.join("\n"))
    }

    /// The schemas of all tools as a JSON list. `None` if there are none.
    pub fn schemas(&self) -> Option<String> {
        let schemas: Vec<&str> = self.tools.iter().map(|tool| tool.schema.as_str()).collect();
        (!schemas.is_empty()).then(|| format!("[{}]", schemas.join(",")))
    }

    /// The version of the tools.
    pub fn tools_version(&self) -> Option<String> {
        self.schemas().map(|schemas| sha256(schemas.as_bytes()))
    }
}

fn compose(prompts: &RecordedPrompts, call: CallPrompt<'_>) -> ComposedPrompt {
    let mut composed = ComposedPrompt::default();
    let list = call.call().list;
    for (number, message) in call.instruction_messages() {
        for piece in message.pieces.iter().filter(|piece| !piece.is_conversation()) {
            let Some(text) = prompts.text(piece) else {
                composed.unknown_pieces += 1;
                continue;
            };
            let at = number.map_or_else(|| piece.at.clone(), |n| list.pointer(n, &piece.at));
            composed.add(piece, text, at);
        }
    }
    composed
}

impl ComposedPrompt {
    fn add(&mut self, piece: &Piece, text: &str, at: String) {
        if piece.kind == PieceKind::ToolSchema {
            let name = piece.label.clone().unwrap_or_default();
            self.tools.push(ToolSchema { name, schema: text.to_owned() });
            return;
        }
        let is_whole = piece.kind.is_instruction();
        if piece.kind == PieceKind::UserInstruction {
            let kind = PartKind::Piece(piece.kind);
            let (value, label) = (text.to_owned(), piece.label.clone());
            self.user = Some(PromptPart { kind, value, at: at.clone(), label, span: None });
        }
        let stretches = stretches(piece, text);
        if is_whole {
            self.begin_piece();
        }
        for (kind, label, value) in stretches {
            let is_instruction = match kind {
                PartKind::Adaptations => true,
                PartKind::Piece(kind) => kind.is_instruction(),
            };
            if !is_whole && !is_instruction {
                continue;
            }
            if !is_whole {
                self.begin_piece();
            }
            let start = self.chars;
            self.push(value);
            // Space between two texts is in the string, and nothing of its own.
            if !value.trim().is_empty() {
                let span = Some((start, self.chars));
                let (value, at, label) = (value.to_owned(), at.clone(), label.map(str::to_owned));
                self.parts.push(PromptPart { kind, value, at, label, span });
            }
        }
        for frame in adaptation_frames(text) {
            let ids = frame.ids.map(|ids| ids.into_iter().map(str::to_owned).collect());
            self.adaptations.push(Adaptation { content: frame.content.into_owned(), ids });
        }
    }

    fn begin_piece(&mut self) {
        if !self.final_prompt.is_empty() {
            self.push("\n");
        }
    }

    fn push(&mut self, text: &str) {
        self.final_prompt.push_str(text);
        let chars = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        self.chars = self.chars.saturating_add(chars);
    }
}

/// The text of a piece, cut where another text or a frame in it begins or ends.
fn stretches<'t>(piece: &'t Piece, text: &'t str) -> Vec<(PartKind, Option<&'t str>, &'t str)> {
    let frames = adaptation_frames(text);
    // The places of the spans in bytes, in one pass.
    let mut bytes = text.char_indices().map(|(at, _)| at).chain([text.len()]).zip(0u32..);
    let mut spans = Vec::with_capacity(piece.spans.len());
    let mut last = (0, 0);
    let mut place = |at: u32| {
        if last.1 != at {
            last = bytes.find(|(_, chars)| *chars == at)?;
        }
        Some(last.0)
    };
    for span in &piece.spans {
        let (Some(start), Some(end)) = (place(span.start), place(span.end)) else { break };
        spans.push((start, end, span));
    }
    let span_cuts = spans.iter().flat_map(|(start, end, _)| [*start, *end]);
    let frame_cuts = frames.iter().flat_map(|frame| [frame.start, frame.end]);
    let mut cuts: Vec<usize> = span_cuts.chain(frame_cuts).chain([0, text.len()]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let (mut spans, mut frames) = (spans.iter().peekable(), frames.iter().peekable());
    let mut stretches = Vec::with_capacity(cuts.len());
    for (start, end) in cuts.iter().zip(cuts.iter().skip(1)) {
        while spans.next_if(|(_, span_end, _)| span_end <= start).is_some() {}
        while frames.next_if(|frame| frame.end <= *start).is_some() {}
        let span = spans.peek().filter(|(from, ..)| from <= start).map(|(.., span)| *span);
        let in_frame = frames.peek().is_some_and(|frame| frame.start <= *start);
        let Some(value) = text.get(*start..*end).filter(|value| !value.is_empty()) else {
            continue;
        };
        stretches.push(match span {
            _ if in_frame => (PartKind::Adaptations, None, value),
            Some(span) => (PartKind::Piece(span.kind), span.label.as_deref(), value),
            None => (PartKind::Piece(piece.kind), piece.label.as_deref(), value),
        });
    }
    stretches
}

#[cfg(test)]
#[path = "recorded_tests.rs"]
mod tests;
