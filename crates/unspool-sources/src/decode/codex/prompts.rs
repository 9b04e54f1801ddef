//! What Codex sent to the model: the items of its rollout in their order. A call was sent all items
//! before its reply, since the last compaction. Tools are among them only for models that get them
//! as an item ("code mode"), and so are the instructions; the others get the instructions as a message
//! before all items. What a compaction is asked is not in the rollout.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::EventKind;
use unspool_model::prompt::{
    CallTimes, MessageDigest, MessageList, Piece, PieceKind, PieceText, PromptCall, PromptGap,
    PromptMessage, PromptRecord, Role,
};
use unspool_model::provenance::Name;

use super::super::prompt_pieces::{binary, kept, timed};
use super::super::{Emitter, Fields};
use super::block_name;

/// The lines of an output that say how the command fares; what it printed follows them.
const MARK_LINES: usize = 6;

/// The state between two calls.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Prompts {
    /// The instructions, if they are not among the items: then they are sent before them.
    instructions: Option<MessageDigest>,
    /// The call before, and the number of its items.
    last: Option<Arc<str>>,
    count: u32,
    /// The items since.
    tail: Vec<MessageDigest>,
    /// The tools are among the items.
    has_tools: bool,
    /// The history that the thread continues was not found.
    is_continued: bool,
    /// The call that is answered now, for what is learned about it later.
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<PromptCall>,
    /// The state before each turn, with the ordinal of its first record.
    turns: Vec<TurnStart>,
}

#[derive(Serialize, Deserialize)]
struct TurnStart {
    ordinal: Option<u64>,
    last: Option<Arc<str>>,
    count: u32,
    tail: Vec<MessageDigest>,
}

impl Prompts {
    /// The instructions, which stand before all items in each request. They are sent in other words:
    /// sentences about tools that the model does not have are left out (0.166). So their text is not
    /// known, only that they are there.
    pub fn instructions(&mut self, meta: &Fields<'_>) {
        let text = meta.fields("base_instructions").text("text");
        self.instructions = text.map(|text| MessageDigest::of(text.as_bytes()));
    }

    /// The thread continues another one whose history is not there.
    pub fn is_continued(&mut self) {
        self.is_continued = true;
    }

    pub fn start_turn(&mut self, ordinal: Option<u64>) {
        let (last, count, tail) = (self.last.clone(), self.count, self.tail.clone());
        self.turns.push(TurnStart { ordinal, last, count, tail });
    }

    /// The user rewound to before this ordinal.
    pub fn revert(&mut self, end: u64) {
        let is_kept = |turn: &TurnStart| turn.ordinal.is_none_or(|ordinal| ordinal < end);
        let kept = self.turns.partition_point(is_kept);
        if let Some(turn) = self.turns.drain(kept..).next() {
            (self.last, self.count, self.tail) = (turn.last, turn.count, turn.tail);
        }
    }

    /// An item of the rollout.
    pub fn item(&mut self, emit: &mut Emitter<'_>, item: &Fields<'_>) {
        let text = item.whole();
        let digest = MessageDigest::of(text.text().as_bytes());
        let kind = item.text("type").unwrap_or_default();
        let role = role_of(&kind, item);
        self.has_tools |= kind == "additional_tools";
        // Models that get the tools as an item get the instructions as one, too.
        if declared_kinds(item).iter().any(|kind| kind == "model.base_instructions") {
            self.instructions = None;
        }
        let pieces = pieces(emit, &kind, role, item);
        message(emit, digest, role, pieces);
        self.tail.push(digest);
    }

    /// A model call begins to reply.
    pub fn call(
        &mut self,
        emit: &mut Emitter<'_>,
        request: Arc<str>,
        step: Name,
        model: Option<&str>,
    ) {
        let mut gaps = Vec::new();
        if !self.has_tools {
            gaps.push(PromptGap::ToolSchemas);
        }
        if self.is_continued {
            gaps.push(PromptGap::EarlierMessages);
        }
        let mut tail = std::mem::take(&mut self.tail);
        if self.instructions.is_some() {
            gaps.push(PromptGap::Instructions);
        }
        if self.last.is_none() {
            tail.splice(0..0, self.instructions);
        }
        let (base, keep) = (self.last.take(), self.count);
        self.count = keep.saturating_add(u32::try_from(tail.len()).unwrap_or(u32::MAX));
        self.last = Some(request.clone());
        let call = PromptCall {
            request: request.clone(),
            at: emit.at,
            model: model.map(Into::into),
            head: None,
            base,
            keep,
            tail,
            list: MessageList::Input,
            gaps,
        };
        emit.push(EventKind::RequestNamed { step, request });
        emit.push(EventKind::PromptRecorded(Box::new(PromptRecord::Call(call.clone()))));
        self.open = Some(PromptCall { tail: Vec::new(), ..call });
    }

    /// The reply is complete. When the call was sent is not in the rollout.
    pub fn ended(&self, emit: &mut Emitter<'_>) {
        if let Some(call) = &self.open {
            let times = CallTimes { ended: emit.at, ..CallTimes::default() };
            timed(emit, call.request.clone(), times);
        }
    }

    /// The history was replaced by a summary. The last call made that: what it was asked is not in
    /// the rollout.
    pub fn compacted(&mut self, emit: &mut Emitter<'_>, payload: &Fields<'_>) {
        if let Some(mut call) = self.open.take() {
            call.gaps.push(PromptGap::CompactionRequest);
            emit.push(EventKind::PromptRecorded(Box::new(PromptRecord::Call(call))));
        }
        (self.last, self.count) = (None, 0);
        self.tail.clear();
        let mut is_listed = false;
        for item in payload.list("replacement_history") {
            is_listed = true;
            self.item(emit, &item);
        }
        // Older versions do not say what the history is now.
        self.is_continued |= !is_listed;
    }
}

fn message(emit: &mut Emitter<'_>, digest: MessageDigest, role: Role, pieces: Vec<Piece>) {
    let message = PromptMessage { digest, role, verified: false, pieces };
    emit.push(EventKind::PromptRecorded(Box::new(PromptRecord::Message(message))));
}

pub(super) fn role_of(kind: &str, item: &Fields<'_>) -> Role {
    match item.text("role").as_deref() {
        Some("developer") => Role::Developer,
        Some("system") => Role::System,
        Some("assistant") => Role::Assistant,
        Some(_) => Role::User,
        None if kind.ends_with("_output") || kind == "agent_message" => Role::User,
        None if kind == "additional_tools" => Role::Developer,
        None => Role::Assistant,
    }
}

pub(super) fn pieces(
    emit: &mut Emitter<'_>,
    kind: &str,
    role: Role,
    item: &Fields<'_>,
) -> Vec<Piece> {
    let id = item.string("id").filter(|id| !id.is_empty());
    match kind {
        "message" => content(emit, role, id.as_deref(), item),
        "reasoning" => reasoning(emit, id.as_deref(), item),
        "function_call" | "custom_tool_call" => {
            let field = if kind == "function_call" { "arguments" } else { "input" };
            let (Some(text), Some(call)) = (item.string(field), item.text("call_id")) else {
                return vec![whole(emit, PieceKind::ToolCall, item)];
            };
            let at = format!("/{field}");
            let piece = Piece::new(PieceKind::ToolCall, at, PieceText::Input(call.into()), &text);
            vec![Piece { label: item.string("name"), ..piece }]
        }
        "function_call_output" | "custom_tool_call_output" => output(emit, item),
        "additional_tools" => {
            let tools = item.list("tools").zip(0..);
            let piece = |(tool, nth): (Fields<'_>, u32)| {
                let text = tool.whole();
                let label = tool.string("name").or_else(|| tool.string("type"));
                let at = format!("/tools/{nth}");
                let piece = kept(emit, PieceKind::ToolSchema, at, text.text());
                Piece { label, ..piece }
            };
            tools.map(piece).collect()
        }
        "agent_message" => vec![whole(emit, PieceKind::UserInstruction, item)],
        call if call.ends_with("_call") => vec![whole(emit, PieceKind::ToolCall, item)],
        output if output.ends_with("_output") => vec![whole(emit, PieceKind::ToolOutput, item)],
        _ => vec![whole(emit, PieceKind::Other, item)],
    }
}

/// An item without a text of its own, as JSON.
fn whole(emit: &mut Emitter<'_>, kind: PieceKind, item: &Fields<'_>) -> Piece {
    kept(emit, kind, "", item.whole().text())
}

fn content(emit: &mut Emitter<'_>, role: Role, id: Option<&str>, item: &Fields<'_>) -> Vec<Piece> {
    let kinds = declared_kinds(item);
    let mut pieces = Vec::new();
    let is_single = item.list("content").count() == 1;
    for (block, nth) in item.list("content").zip(0..) {
        let Some(text) = block.string("text") else {
            let data = block.raw("image_url").unwrap_or_default();
            pieces.push(binary(format!("/content/{nth}"), data));
            continue;
        };
        let at = format!("/content/{nth}/text");
        let declared = kinds.get(nth).map(String::as_str).unwrap_or_default();
        let kind = kind_of(role, declared, &text);
        // A plan inside the message is shown apart from the rest of its text.
        let is_part = role == Role::Assistant && is_single && !text.contains("<proposed_plan>");
        pieces.push(match id.filter(|_| is_part && !text.trim().is_empty()) {
            Some(id) => Piece::new(kind, at, PieceText::Prose(block_name(id)), &text),
            None => kept(emit, kind, at, &text),
        });
    }
    pieces
}

fn reasoning(emit: &mut Emitter<'_>, id: Option<&str>, item: &Fields<'_>) -> Vec<Piece> {
    let kind = PieceKind::HistoryReasoning;
    let is_single = item.list("summary").count() == 1;
    let mut pieces = Vec::new();
    for (block, nth) in item.list("summary").zip(0u32..) {
        let text = block.string("text").unwrap_or_default();
        let at = format!("/summary/{nth}/text");
        pieces.push(match id.filter(|_| is_single && !text.trim().is_empty()) {
            Some(id) => Piece::new(kind, at, PieceText::Prose(block_name(id)), &text),
            None => kept(emit, kind, at, &text),
        });
    }
    if let Some(text) = item.text("encrypted_content") {
        pieces.push(Piece { kind, ..binary("/encrypted_content", &text) });
    }
    pieces
}

fn output(emit: &mut Emitter<'_>, item: &Fields<'_>) -> Vec<Piece> {
    let call = item.text("call_id").unwrap_or_default();
    // A script's notification is an output beside the result, and what a call said while it ran
    // gives way to its result.
    let is_result = |text: &str| !item.has("name") && !is_running(text);
    let kind = PieceKind::ToolOutput;
    if let Some(text) = item.string("output") {
        return vec![if is_result(&text) {
            let of = PieceText::Output(call.into());
            Piece::new(kind, "/output".to_owned(), of, &text)
        } else {
            kept(emit, kind, "/output", &text)
        }];
    }
    let block = |(block, nth): (Fields<'_>, u32)| match block.string("text") {
        Some(text) => kept(emit, kind, format!("/output/{nth}/text"), &text),
        None => binary(format!("/output/{nth}"), block.raw("image_url").unwrap_or_default()),
    };
    item.list("output").zip(0..).map(block).collect()
}

/// What Codex says that each text of a message is.
pub(super) fn declared_kinds(item: &Fields<'_>) -> Vec<String> {
    let metadata = item.fields("internal_chat_message_metadata_passthrough");
    metadata.read("content_item_kinds").unwrap_or_default()
}

/// True for the output of a call whose process or script runs on.
fn is_running(output: &str) -> bool {
    let is_mark = |line: &str| {
        line.starts_with("Process running with session ID")
            || line.starts_with("Script running with cell ID")
    };
    output.lines().take(MARK_LINES).any(is_mark)
}

/// The kind of a text, by what Codex declares it to be, else by its own words.
fn kind_of(role: Role, declared: &str, text: &str) -> PieceKind {
    match declared {
        "user.text" => return PieceKind::UserInstruction,
        "hooks.additional_context" => return PieceKind::Hook,
        kind if kind.starts_with("environments.") => return PieceKind::Environment,
        kind if kind.contains("skills") => return PieceKind::Skills,
        kind if kind.contains("agents_md") || kind.contains("user_instructions") => {
            return PieceKind::Instructions;
        }
        kind if kind.ends_with("instructions") => return PieceKind::Policy,
        _ => {}
    }
    match role {
        Role::Assistant => PieceKind::HistoryText,
        Role::Head | Role::System | Role::Developer => PieceKind::Policy,
        Role::User if text.starts_with("<environment_context>") => PieceKind::Environment,
        Role::User if text.starts_with("# AGENTS.md instructions") => PieceKind::Instructions,
        Role::User if text.starts_with('<') => PieceKind::Reminder,
        Role::User => PieceKind::UserInstruction,
    }
}
