//! What Claude Code sent to the model. Since 2.1.198 or later (2.1.325 was recorded) its log has a
//! record for each request: the messages that it adds to an earlier request, by their SHA-256. A
//! message that the log does not have in another form is written out beside it (a blob); the others
//! are the blocks of one reply, or the user's records between two replies. Their digests are
//! computed here, so a message is only taken for what was sent if the program's own digest agrees.

mod context;
mod open_call;
mod sent;

use serde::{Deserialize, Serialize};
use unspool_model::event::EventKind;
use unspool_model::id::Sha256Stream;
use unspool_model::prompt::{
    MessageDigest, MessageList, Piece, PieceKind, PieceText, PromptCall, PromptGap, PromptMessage,
    PromptRecord, Role,
};
use unspool_model::provenance::Name;

use self::context::ContextTexts;
use self::open_call::OpenCalls;
pub(super) use self::sent::sent_pieces;
use super::super::prompt_pieces::{binary, kept};
use super::super::{Emitter, Fields};
use super::result::content_text;

/// The state between two requests.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Prompts {
    /// This version records requests.
    is_recorded: bool,
    /// The reply that is being written, and the user's records after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<PendingMessage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<PendingMessage>,
    /// What the program added to the prompt since the last request.
    #[serde(skip_serializing_if = "ContextTexts::is_empty")]
    contexts: ContextTexts,
    #[serde(skip_serializing_if = "OpenCalls::is_empty")]
    calls: OpenCalls,
}

/// A message that may grow by the next record.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PendingMessage {
    id: String,
    /// Of the canonical text so far.
    digest: Sha256Stream,
    blocks: u32,
    #[serde(default)]
    prompts: u32,
    pieces: Vec<Piece>,
}

/// Of one message. Each reports the message before it: without a limit that is quadratic.
const MAX_JOINED_PROMPTS: u32 = 16;

impl Prompts {
    pub fn is_idle(&self) -> bool {
        !self.is_recorded
            && self.reply.is_none()
            && self.user.is_none()
            && self.calls.is_empty()
            && self.contexts.is_empty()
    }

    /// Takes note of the version that writes the log.
    pub fn note_version(&mut self, version: &str) {
        let mut numbers = version.split(['.', '-']).map(|number| number.parse::<u32>().ok());
        let mut next = || numbers.next().flatten().unwrap_or_default();
        self.is_recorded |= (next(), next(), next()) > (2, 1, 197);
    }

    // ── Records of the tree ─────────────────────────────────────────────────────────────────

    /// A block of a reply, and the part that it became.
    pub fn reply(&mut self, emit: &mut Emitter<'_>, id: &str, part: Name, block: &Fields<'_>) {
        if !self.is_recorded {
            return;
        }
        flush(emit, Role::Assistant, self.reply.take_if(|reply| reply.id != id));
        flush(emit, Role::User, self.user.take());
        let reply = self.reply.get_or_insert_with(|| PendingMessage::new(id));
        let at = reply.add(block);
        reply_piece(emit, reply, at, Some(part), block);
    }

    /// A record of the user: a prompt, or results of calls, which one message has together.
    pub fn user(&mut self, emit: &mut Emitter<'_>, message: &Fields<'_>, has_results: bool) {
        if !self.is_recorded {
            return;
        }
        flush(emit, Role::Assistant, self.reply.take());
        if !has_results && self.user.is_some() {
            // It is a message of its own, or the end of the one with the results.
            flush(emit, Role::User, self.user.clone());
            let mut alone = PendingMessage::new("");
            alone.add_user(emit, message, &self.contexts);
            flush(emit, Role::User, Some(alone));
            self.user.take_if(|user| user.prompts >= MAX_JOINED_PROMPTS);
        }
        let user = self.user.get_or_insert_with(|| PendingMessage::new(""));
        user.prompts += u32::from(!has_results);
        user.add_user(emit, message, &self.contexts);
    }

    /// What the program adds to the prompt.
    pub fn attachment(&mut self, fields: &Fields<'_>) {
        if self.is_recorded {
            self.contexts.add(fields);
        }
    }

    // ── Records of requests ─────────────────────────────────────────────────────────────────

    /// A message that the tree does not have.
    pub fn blob(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        self.is_recorded = true;
        let Some(sha256) = fields.text("hash") else { return };
        let Some(digest) = MessageDigest::of_sha256(&sha256) else { return };
        let message = fields.fields("message");
        let role = match message.text("role").as_deref() {
            Some("assistant") => Role::Assistant,
            Some("system") => Role::System,
            Some(_) | None => Role::User,
        };
        let text = message.canonical_text().unwrap_or_default();
        let verified = unspool_model::id::sha256(text.as_bytes()) == *sha256;
        // Of the results in it, only those are outputs of calls that the tree has in the same words.
        let outputs = self.user.as_ref().map_or(&[][..], |user| &user.pieces);
        let mut pending = PendingMessage::new("");
        if let Some(text) = message.string("content") {
            let at = pending.add_string(&text);
            pending.add_text(emit, role, &at, &text, &self.contexts);
        }
        for block in message.list("content") {
            let at = pending.add(&block);
            if role == Role::Assistant {
                // It does not say which reply of the transcript it repeats.
                reply_piece(emit, &mut pending, at, None, &block);
            } else {
                let texts = Texts { contexts: &self.contexts, outputs: Some(outputs) };
                user_piece(emit, &mut pending, at, role, &block, texts);
            }
        }
        let pieces = pending.pieces;
        record(emit, PromptRecord::Message(PromptMessage { digest, role, verified, pieces }));
    }

    /// The instructions and tools.
    pub fn shape(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        self.is_recorded = true;
        let Some(sha256) = fields.text("shapeHash") else { return };
        let Some(digest) = MessageDigest::of_sha256(&sha256) else { return };
        let shape = fields.fields("shape");
        let text = shape.canonical_text().unwrap_or_default();
        let verified = unspool_model::id::sha256(text.as_bytes()) == *sha256;
        let mut pieces = Vec::new();
        if let Some(text) = shape.string("system") {
            pieces.push(kept(emit, PieceKind::Policy, "/system", &text));
        }
        for (block, nth) in shape.list("system").zip(1..) {
            // The request has a block before the first one: `PromptGap::BillingBlock`.
            let text = block.string("text").unwrap_or_default();
            pieces.push(kept(emit, PieceKind::Policy, format!("/system/{nth}/text"), &text));
        }
        for (tool, nth) in shape.list("tools").zip(0..) {
            let text = tool.whole();
            let label = tool.string("name").or_else(|| tool.string("type"));
            let piece = kept(emit, PieceKind::ToolSchema, format!("/tools/{nth}"), text.text());
            pieces.push(Piece { label, ..piece });
        }
        let role = Role::Head;
        record(emit, PromptRecord::Message(PromptMessage { digest, role, verified, pieces }));
    }

    /// One attempt to call the model.
    pub fn request(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        self.is_recorded = true;
        flush(emit, Role::Assistant, self.reply.take());
        flush(emit, Role::User, self.user.take());
        self.contexts = ContextTexts::default();
        let Some(request) = fields.text("id") else { return };
        self.begin_call(emit, &request, fields);
        let tail: Vec<String> = fields.read("tail").unwrap_or_default();
        let digest = |sha256: &str| MessageDigest::of_sha256(sha256);
        let call = PromptCall {
            request: request.into(),
            at: emit.at,
            model: fields.fields("params").text("model").map(|model| model.into()),
            head: fields.text("shapeHash").and_then(|sha256| digest(&sha256)),
            base: fields.text("base").map(|base| base.into()),
            keep: fields.number("keep").and_then(|keep| u32::try_from(keep).ok()).unwrap_or(0),
            tail: tail.iter().filter_map(|sha256| digest(sha256)).collect(),
            list: MessageList::Messages,
            gaps: vec![PromptGap::BillingBlock],
        };
        record(emit, PromptRecord::Call(call));
    }
}

impl PendingMessage {
    fn new(id: &str) -> PendingMessage {
        let mut digest = Sha256Stream::default();
        digest.update(b"{\"content\":[");
        PendingMessage { id: id.to_owned(), digest, blocks: 0, prompts: 0, pieces: Vec::new() }
    }

    /// Adds a block. Returns where it stands.
    fn add(&mut self, block: &Fields<'_>) -> String {
        self.add_canonical(&block.canonical_text().unwrap_or_default())
    }

    /// Adds a content that is a string: it counts as one block. Returns where its text stands.
    fn add_string(&mut self, text: &str) -> String {
        let block = serde_json::json!({ "text": text, "type": "text" });
        format!("{}/text", self.add_canonical(&block.to_string()))
    }

    fn add_canonical(&mut self, text: &str) -> String {
        if self.blocks > 0 {
            self.digest.update(b",");
        }
        self.digest.update(text.as_bytes());
        self.blocks = self.blocks.saturating_add(1);
        format!("/content/{}", self.blocks - 1)
    }

    fn add_user(&mut self, emit: &mut Emitter<'_>, message: &Fields<'_>, contexts: &ContextTexts) {
        if let Some(text) = message.string("content") {
            let at = self.add_string(&text);
            return self.add_text(emit, Role::User, &at, &text, contexts);
        }
        for block in message.list("content") {
            let at = self.add(&block);
            user_piece(emit, self, at, Role::User, &block, Texts { contexts, outputs: None });
        }
    }

    fn add_text(
        &mut self,
        emit: &mut Emitter<'_>,
        role: Role,
        at: &str,
        text: &str,
        contexts: &ContextTexts,
    ) {
        let mut piece = kept(emit, context::kind_of(role, text), at, text);
        contexts.mark(&mut piece, text);
        self.pieces.push(piece);
    }
}

fn record(emit: &mut Emitter<'_>, record: PromptRecord) {
    emit.push(EventKind::PromptRecorded(Box::new(record)));
}

/// Reports a message as far as it has grown.
fn flush(emit: &mut Emitter<'_>, role: Role, pending: Option<PendingMessage>) {
    let Some(mut pending) = pending.filter(|pending| pending.blocks > 0) else { return };
    let role_name: &[u8] = match role {
        Role::Assistant => b"assistant",
        Role::Head | Role::System | Role::Developer | Role::User => b"user",
    };
    pending.digest.update(b"],\"role\":\"");
    pending.digest.update(role_name);
    pending.digest.update(b"\"}");
    let Some(digest) = MessageDigest::of_sha256(&pending.digest.hexadecimal()) else { return };
    let (verified, pieces) = (true, pending.pieces);
    record(emit, PromptRecord::Message(PromptMessage { digest, role, verified, pieces }));
}

/// The piece of a block of a reply. Its text is that of the part that the block became.
fn reply_piece(
    emit: &mut Emitter<'_>,
    pending: &mut PendingMessage,
    at: String,
    part: Option<Name>,
    block: &Fields<'_>,
) {
    // A blank text made no part.
    let prose = |kind, field: &str, text: String, emit: &mut Emitter<'_>| {
        let at = format!("{at}/{field}");
        match part.clone().filter(|_| !text.trim().is_empty()) {
            Some(part) => Piece::new(kind, at, PieceText::Prose(part), &text),
            None => kept(emit, kind, at, &text),
        }
    };
    let piece = match block.text("type").as_deref() {
        Some("text") => {
            let text = block.string("text").unwrap_or_default();
            prose(PieceKind::HistoryText, "text", text, emit)
        }
        Some("thinking") => {
            let text = block.string("thinking").unwrap_or_default();
            prose(PieceKind::HistoryReasoning, "thinking", text, emit)
        }
        Some("tool_use") => {
            let id = block.text("id").unwrap_or_default();
            let input = block.json("input").map_or_else(String::new, |json| json.text().to_owned());
            let (kind, at) = (PieceKind::ToolCall, format!("{at}/input"));
            let piece = if part.is_some() {
                let piece = Piece::new(kind, at, PieceText::Input(id.into()), &input);
                let digest = block.canonical_digest("input").unwrap_or(piece.digest);
                Piece { digest, ..piece }
            } else {
                // What is sent again may lack what the program added to the input.
                kept(emit, kind, at, &input)
            };
            Piece { label: block.string("name"), ..piece }
        }
        Some("redacted_thinking") => {
            let data = block.string("data").unwrap_or_default();
            let piece = binary(format!("{at}/data"), &data);
            Piece { kind: PieceKind::HistoryReasoning, ..piece }
        }
        _ => kept(emit, PieceKind::Other, at, block.whole().text()),
    };
    pending.pieces.push(piece);
}

/// The texts that a user's message may repeat.
#[derive(Clone, Copy)]
struct Texts<'a> {
    contexts: &'a ContextTexts,
    /// The outputs of calls, if the message is not where they are from.
    outputs: Option<&'a [Piece]>,
}

impl Texts<'_> {
    /// True if the output of a call is this text.
    fn is_output(&self, of: &PieceText, text: &str) -> bool {
        let is_same = |piece: &Piece| piece.text == *of && piece.is(text);
        self.outputs.is_none_or(|outputs| outputs.iter().any(is_same))
    }
}

/// The pieces of a block of a user's message.
fn user_piece(
    emit: &mut Emitter<'_>,
    pending: &mut PendingMessage,
    at: String,
    role: Role,
    block: &Fields<'_>,
    texts: Texts<'_>,
) {
    match block.text("type").as_deref() {
        Some("text") => {
            let text = block.string("text").unwrap_or_default();
            pending.add_text(emit, role, &format!("{at}/text"), &text, texts.contexts);
        }
        Some("tool_result") => {
            let call = block.text("tool_use_id").unwrap_or_default();
            let output = content_text(block);
            let piece = |at: String, text: &str, emit: &mut Emitter<'_>| {
                let of = PieceText::Output(call.as_ref().into());
                if text == output && texts.is_output(&of, text) {
                    Piece::new(PieceKind::ToolOutput, at, of, text)
                } else {
                    kept(emit, PieceKind::ToolOutput, at, text)
                }
            };
            let at = format!("{at}/content");
            if let Some(text) = block.string("content") {
                pending.pieces.push(piece(at, &text, emit));
                return;
            }
            for (inner, nth) in block.list("content").zip(0..) {
                let at = format!("{at}/{nth}");
                pending.pieces.push(match inner.string("text") {
                    Some(text) => piece(format!("{at}/text"), &text, emit),
                    None => match inner.raw("source") {
                        Some(source) => binary(format!("{at}/source"), source),
                        None => kept(emit, PieceKind::ToolOutput, at, inner.whole().text()),
                    },
                });
            }
        }
        Some("image" | "document") => {
            let source = block.raw("source").unwrap_or_default();
            pending.pieces.push(binary(format!("{at}/source"), source));
        }
        _ => pending.pieces.push(kept(emit, PieceKind::Other, at, block.whole().text())),
    }
}

#[cfg(test)]
#[path = "prompts_tests.rs"]
mod tests;
