//! What differs from agent to agent in the Agent Client Protocol.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{CallRef, ProseKind};
use unspool_model::provenance::Name;

use super::super::Fields;
use super::super::codex::failure_name;
use super::super::opencode::call_id_hash;

/// Who speaks the protocol: an agent itself, or a program between it and the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Adapter {
    Claude,
    Codex,
    Copilot,
    Droid,
    Gemini,
    OpenCode,
    Kilo,
    Qwen,
    Other,
}

/// The names that a chunk of prose has.
pub(super) enum ChunkName {
    /// None: consecutive chunks of a kind are one run.
    None,
    /// The model call.
    Step(Name),
    /// The block, as in the log.
    Block(Name),
}

impl Adapter {
    /// By the name of the agent on our command line.
    pub fn of_agent(agent: &str) -> Adapter {
        match agent {
            "claude-code" => Adapter::Claude,
            "codex" => Adapter::Codex,
            "copilot" => Adapter::Copilot,
            "droid" => Adapter::Droid,
            "gemini" => Adapter::Gemini,
            "opencode" => Adapter::OpenCode,
            "kilo" => Adapter::Kilo,
            "qwen" => Adapter::Qwen,
            _ => Adapter::Other,
        }
    }

    pub fn agent(self) -> &'static str {
        match self {
            Adapter::Claude => "claude-code",
            Adapter::Codex => "codex",
            Adapter::Copilot => "copilot",
            Adapter::Droid => "droid",
            Adapter::Gemini => "gemini",
            Adapter::OpenCode => "opencode",
            Adapter::Kilo => "kilo",
            Adapter::Qwen => "qwen",
            Adapter::Other => "acp",
        }
    }

    /// By the name in the reply to `initialize`.
    pub fn of_program(name: &str) -> Adapter {
        match name {
            "@agentclientprotocol/claude-agent-acp" | "@zed-industries/claude-code-acp" => {
                Adapter::Claude
            }
            "codex-acp" | "@agentclientprotocol/codex-acp" | "@zed-industries/codex-acp" => {
                Adapter::Codex
            }
            "Copilot" => Adapter::Copilot,
            "@factory/cli" => Adapter::Droid,
            "gemini-cli" => Adapter::Gemini,
            "OpenCode" => Adapter::OpenCode,
            "Kilo" => Adapter::Kilo,
            "qwen-code" => Adapter::Qwen,
            _ => Adapter::Other,
        }
    }

    /// True if the agent writes a log that has plans, usage and compactions: then the capture must
    /// not report them a second time.
    pub fn has_log(self) -> bool {
        self != Adapter::Other
    }

    /// The name of an error that ends a turn, if the log may lack the error and has this name for it
    /// otherwise.
    pub fn failure_name(self) -> Option<Name> {
        (self == Adapter::Codex).then(failure_name)
    }

    /// The error in a chunk of prose that may be the program's: Droid says why a prompt fails in the
    /// model's place, before it replies with the error itself.
    pub fn error_words(self, chunk: &str) -> Option<&str> {
        if self == Adapter::Droid { chunk.strip_prefix("Error: ") } else { None }
    }

    /// What the id of a chunk's message names.
    pub fn chunk_name(self, prose_kind: ProseKind, id: &str) -> ChunkName {
        match (self, prose_kind) {
            (Adapter::OpenCode, ProseKind::Reasoning) | (Adapter::Codex, _) => {
                ChunkName::Block(Name::Block(id.into(), 0))
            }
            // Kilo names the message of reasoning, too.
            (Adapter::Claude | Adapter::Kilo | Adapter::Other, _)
            | (Adapter::OpenCode, ProseKind::Text) => ChunkName::Step(Name::Message(id.into())),
            (Adapter::Copilot | Adapter::Droid | Adapter::Gemini | Adapter::Qwen, _) => {
                ChunkName::None
            }
        }
    }

    /// How a call is found. OpenCode's log names calls by message and id, because models use ids
    /// again; the protocol has no messages.
    pub fn call(self, id: &Arc<str>) -> CallRef {
        match self {
            Adapter::OpenCode | Adapter::Kilo => CallRef::ByContent(call_id_hash(id), 0),
            Adapter::Claude
            | Adapter::Codex
            | Adapter::Copilot
            | Adapter::Droid
            | Adapter::Gemini
            | Adapter::Qwen
            | Adapter::Other => CallRef::Id(id.clone()),
        }
    }

    /// The name of a call's tool, if a message has it.
    pub fn tool_name(self, id: &str, call: &Fields<'_>) -> Option<String> {
        let claude = || call.fields("_meta").fields("claudeCode").string("toolName");
        match self {
            // The id is the name, twice, with a time and a number.
            Adapter::Gemini => id.split_once("__").map(|(name, _)| name.to_owned()),
            Adapter::OpenCode | Adapter::Kilo if call.is("sessionUpdate", "tool_call") => {
                call.string("title")
            }
            Adapter::Qwen => call.fields("_meta").string("toolName"),
            Adapter::Claude
            | Adapter::Codex
            | Adapter::Copilot
            | Adapter::Droid
            | Adapter::OpenCode
            | Adapter::Kilo
            | Adapter::Other => call.string("name").or_else(claude),
        }
    }

    /// The call whose sub-agent made this one; the empty text if it is not known.
    pub fn parent_call(self, call: &Fields<'_>) -> Option<String> {
        let meta = call.fields("_meta");
        let of_claude = meta.fields("claudeCode").string("parentToolUseId");
        let of_copilot = meta.fields("github.com/copilot").has("agentId").then(String::new);
        of_claude.or(of_copilot)
    }

    /// True for a call that stands for a compaction: the log has that.
    pub fn is_compaction(self, call: &Fields<'_>) -> bool {
        self == Adapter::Claude
            && call.fields("_meta").fields("claudeCode").is("toolName", "compact")
    }

    /// True if the content of an unfinished call is its output so far. Others describe the call
    /// there.
    pub fn streams_output(self) -> bool {
        matches!(self, Adapter::Copilot | Adapter::OpenCode | Adapter::Kilo)
    }

    /// True if the prose of sub-agents comes unmarked between that of the main agent.
    pub fn mixes_prose(self) -> bool {
        self == Adapter::Copilot
    }

    /// True if the history that `session/load` repeats may come after the next prompt. The list of
    /// commands follows it.
    pub fn repeats_late(self) -> bool {
        self == Adapter::Gemini
    }
}
