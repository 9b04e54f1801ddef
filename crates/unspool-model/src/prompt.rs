//! What each model call was sent: its instructions and tools, and the messages of the conversation.
//!
//! Sources write a prompt as the difference to an earlier one, and so it is kept: a call names the
//! messages that it adds to those of another call. A message is kept once, by its digest, as an
//! ordered list of pieces, and the text of a piece is a part of the transcript or content that is
//! kept once. So what a prompt costs does not depend on its length. Nothing here places a part.

mod frame;
pub(crate) mod knowledge;
mod texts;
mod times;
mod tree;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::id::{digest, sha256};
use crate::provenance::Name;

pub use frame::{AdaptationFrame, adaptation_frames};
pub use knowledge::{PromptGrade, PromptKnowledge};
pub use texts::{PieceTexts, RecordedPrompts};
pub use times::{CallTimes, PromptTimes};
pub use tree::{CallPrompt, InstructionKey, PromptTree, SourceShare};

/// What a source says about prompts, in the order in which it says it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptRecord {
    Message(PromptMessage),
    Call(PromptCall),
    Answer(PromptAnswer),
    Timed(PromptTimes),
}

/// The step that answers a request, for sources that know the request itself and not how the log
/// calls it. If the log has the call too, the one that is known whole counts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PromptAnswer {
    pub request: Arc<str>,
    pub step: Name,
}

/// Identifies a message by its content: the first half of its SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageDigest(u128);

/// A message of a prompt, or the instructions and tools before the messages.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PromptMessage {
    pub digest: MessageDigest,
    pub role: Role,
    /// The source's own digest of what was sent agrees with the pieces.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verified: bool,
    pub pieces: Vec<Piece>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Instructions and tools, which stand before the messages of a request.
    Head,
    System,
    Developer,
    User,
    Assistant,
}

/// One model call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PromptCall {
    /// The source's name for the request. The step that answers it refers to it.
    pub request: Arc<str>,
    /// When it was recorded. [`PromptTimes`] have when it was sent, if the source says that.
    pub at: Option<Timestamp>,
    pub model: Option<Arc<str>>,
    /// The instructions and tools.
    pub head: Option<MessageDigest>,
    /// The call whose messages this one begins with, and how many of them it keeps.
    pub base: Option<Arc<str>>,
    pub keep: u32,
    /// The messages after those.
    pub tail: Vec<MessageDigest>,
    /// The field of the request that has the messages.
    #[serde(default, skip_serializing_if = "MessageList::is_default")]
    pub list: MessageList,
    /// What the source leaves out of every prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<PromptGap>,
}

/// How an API calls the list of messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageList {
    #[default]
    Messages,
    /// OpenAI's Responses.
    Input,
    /// The attribute of a span of OpenTelemetry; how the provider got it is not known.
    SpanInput,
}

impl MessageList {
    fn is_default(&self) -> bool {
        *self == MessageList::default()
    }

    /// The JSON pointer of a place in the n-th message.
    pub fn pointer(self, message: u32, at: &str) -> String {
        match self {
            MessageList::Messages => format!("/messages/{message}{at}"),
            MessageList::Input => format!("/input/{message}{at}"),
            MessageList::SpanInput => format!("/gen_ai.input.messages/{message}{at}"),
        }
    }
}

/// What a source does not record of a prompt.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptGap {
    /// The first block of the system prompt, in which Claude Code identifies itself for billing.
    BillingBlock,
    ToolSchemas,
    Instructions,
    /// The messages before those that are there: the history of another session.
    EarlierMessages,
    /// What the model was told to do to summarise the conversation.
    CompactionRequest,
    /// What hooks added when the session started.
    HookContext,
    /// Everything but the pieces that are there.
    MostOfIt,
}

impl PromptGap {
    /// What is missing, for a sentence such as "Not in the log: …".
    pub fn label(self) -> &'static str {
        match self {
            PromptGap::BillingBlock => "the billing header at the start of the system prompt",
            PromptGap::ToolSchemas => "tool schemas",
            PromptGap::Instructions => "the exact instructions, which are its first message",
            PromptGap::EarlierMessages => "earlier messages",
            PromptGap::CompactionRequest => "the request to summarise the conversation",
            PromptGap::HookContext => "what hooks added when the session started",
            PromptGap::MostOfIt => "most of the prompt",
        }
    }
}

/// One text of a message.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Piece {
    pub kind: PieceKind,
    /// Where it stands: a JSON pointer in its message, or in the request for instructions and tools.
    pub at: String,
    pub text: PieceText,
    /// The length of the text in characters.
    pub chars: u32,
    /// A digest of the text. What is stored of a part is shown as sent only if it agrees.
    pub digest: u64,
    /// The tool, the file, or whatever else it is from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What is inside a longer text, in order and without overlap.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<PieceSpan>,
}

/// Where the text of a piece is.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PieceText {
    /// Kept once, by its SHA-256 in hexadecimal.
    Kept(String),
    /// The text of a part.
    Prose(Name),
    /// The input of a call, as JSON.
    Input(Arc<str>),
    /// The output of a call.
    Output(Arc<str>),
    /// Not text, and not kept a second time: an image, a document.
    Binary,
}

/// A stretch of a piece, in characters; `end` is exclusive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PieceSpan {
    pub kind: PieceKind,
    pub start: u32,
    pub end: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

macro_rules! piece_kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $label:literal;)*) => {
        /// What a piece is for.
        #[derive(
            Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize,
        )]
        #[serde(rename_all = "kebab-case")]
        pub enum PieceKind {
            $($(#[$doc])* $variant,)*
        }

        impl PieceKind {
            pub const ALL: &[PieceKind] = &[$(PieceKind::$variant,)*];

            /// The name in JSON.
            pub fn name(self) -> &'static str {
                match self { $(PieceKind::$variant => $name,)* }
            }

            /// What people see.
            pub fn label(self) -> &'static str {
                match self { $(PieceKind::$variant => $label,)* }
            }
        }
    };
}

piece_kinds! {
    /// The vendor's own instructions.
    Policy = "policy", "system prompt";
    ToolSchema = "tool-schema", "tool schemas";
    /// Instructions of the user or the project: CLAUDE.md, AGENTS.md.
    Instructions = "instructions", "instruction files";
    Skills = "skills", "skills";
    Agents = "agents", "sub-agent types";
    Environment = "environment", "environment";
    /// What a hook added.
    Hook = "hook", "hooks";
    Reminder = "reminder", "reminders";
    McpInstructions = "mcp-instructions", "MCP instructions";
    UserInstruction = "user-instruction", "prompts";
    HistoryText = "history-text", "replies";
    HistoryReasoning = "history-reasoning", "reasoning";
    ToolCall = "tool-call", "tool calls";
    ToolOutput = "tool-output", "tool output";
    File = "file", "files";
    Summary = "summary", "summaries";
    Other = "other", "other";
}

impl PieceKind {
    /// True for pieces of the instruction string; the others are the conversation and the tools.
    pub fn is_instruction(self) -> bool {
        match self {
            PieceKind::Policy
            | PieceKind::Instructions
            | PieceKind::Skills
            | PieceKind::Agents
            | PieceKind::Environment
            | PieceKind::Hook
            | PieceKind::Reminder
            | PieceKind::McpInstructions => true,
            PieceKind::ToolSchema
            | PieceKind::UserInstruction
            | PieceKind::HistoryText
            | PieceKind::HistoryReasoning
            | PieceKind::ToolCall
            | PieceKind::ToolOutput
            | PieceKind::File
            | PieceKind::Summary
            | PieceKind::Other => false,
        }
    }
}

impl Piece {
    /// A piece with this text, which stands in a part or is kept elsewhere.
    pub fn new(kind: PieceKind, at: String, text: PieceText, value: &str) -> Piece {
        let chars = u32::try_from(value.chars().count()).unwrap_or(u32::MAX);
        let digest = digest(value.as_bytes());
        Piece { kind, at, text, chars, digest, label: None, spans: Vec::new() }
    }

    /// True if it is nothing but the conversation: no instructions, tools or words of the user.
    pub fn is_conversation(&self) -> bool {
        let is_other = |kind: PieceKind| {
            kind.is_instruction()
                || matches!(kind, PieceKind::ToolSchema | PieceKind::UserInstruction)
        };
        !is_other(self.kind) && !self.spans.iter().any(|span| is_other(span.kind))
    }

    /// True if this is the text of the piece.
    pub fn is(&self, text: &str) -> bool {
        digest(text.as_bytes()) == self.digest
    }

    /// The characters of each kind: of its spans, and of the rest.
    pub fn shares(&self) -> impl Iterator<Item = (PieceKind, u64)> + '_ {
        let length = |span: &PieceSpan| u64::from(span.end.saturating_sub(span.start));
        let spanned: u64 = self.spans.iter().map(length).sum();
        let rest = u64::from(self.chars).saturating_sub(spanned);
        let spans = self.spans.iter().map(move |span| (span.kind, length(span)));
        std::iter::once((self.kind, rest)).chain(spans)
    }
}

impl PromptMessage {
    /// True if it has nothing but the conversation.
    pub fn is_conversation(&self) -> bool {
        self.pieces.iter().all(Piece::is_conversation)
    }

    /// Its length in characters.
    pub fn chars(&self) -> u64 {
        self.pieces.iter().map(|piece| u64::from(piece.chars)).sum()
    }
}

impl MessageDigest {
    /// The digest of a message's canonical text.
    pub fn of(text: &[u8]) -> MessageDigest {
        MessageDigest::of_sha256(&sha256(text)).unwrap_or(MessageDigest(0))
    }

    /// From a SHA-256 in hexadecimal.
    pub fn of_sha256(hexadecimal: &str) -> Option<MessageDigest> {
        let half = hexadecimal.get(..32)?;
        u128::from_str_radix(half, 16).ok().map(MessageDigest)
    }
}

impl fmt::Display for MessageDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for MessageDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for MessageDigest {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<MessageDigest, &'static str> {
        MessageDigest::of_sha256(text).ok_or("not the digest of a message")
    }
}

impl Serialize for MessageDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MessageDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<MessageDigest, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}
