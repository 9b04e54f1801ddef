//! What the model calls of a session were sent, as the rules see it: which instructions and tools,
//! and how much of each prompt was the prompt of the call before.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use unspool_model::prompt::{InstructionKey, MessageDigest, PieceKind, PromptMessage};
use unspool_model::tools::mcp_server;

use crate::present::prompt::{Call, PromptDifference};

/// The prompts of a session. Without calls if nothing is known about them.
#[derive(Clone, Debug, Default)]
pub struct PromptFacts {
    /// The calls with a reply, in order. Those that the program makes for itself have none.
    pub(super) calls: Vec<CallPromptFacts>,
    /// The instruction files that the prompts of the session's sub-agents have, one list for each.
    pub(super) of_agents: Vec<Vec<String>>,
}

#[derive(Clone, Debug)]
pub(super) struct CallPromptFacts {
    pub request: String,
    pub turn: u32,
    pub step: u32,
    pub model: Option<String>,
    /// The instruction files in it.
    pub instructions: std::sync::Arc<[String]>,
    /// The characters of the tools of each MCP server.
    pub servers: std::sync::Arc<BTreeMap<String, u64>>,
    /// How it differs from the call before. `None` for the first one.
    pub change: Option<PrefixChange>,
    /// Tokens written to the cache, and sent without one.
    pub uncached_tokens: u64,
    pub cached_tokens: u64,
    /// The checks whose text it has, by their number.
    pub checks: Vec<usize>,
}

/// What a prompt does not share with the one before.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct PrefixChange {
    /// Of the prompt before: the characters from the first difference on.
    pub lost_chars: u64,
    pub compacted: bool,
    /// What differs first.
    pub first: String,
}

impl PromptFacts {
    /// From the calls of a session, in order.
    pub fn new<'a>(calls: impl IntoIterator<Item = Call<'a>>) -> PromptFacts {
        let mut facts = PromptFacts::default();
        let mut before: Option<Call<'a>> = None;
        let mut shared = SharedFacts::default();
        for call in calls {
            let Some((turn, step)) = call.step else { continue };
            let (instructions, servers) = shared.of(&call);
            let change = before.as_ref().map(|before| change(before, &call));
            facts.calls.push(CallPromptFacts {
                request: call.prompt.call().request.to_string(),
                turn,
                step,
                model: call.prompt.call().model.as_deref().map(str::to_owned),
                instructions,
                servers,
                change,
                uncached_tokens: call.usage.input.saturating_add(call.usage.cache_write),
                cached_tokens: call.usage.cache_read,
                checks: Vec::new(),
            });
            before = Some(call);
        }
        facts
    }

    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Notes the calls that have the text of a check.
    pub fn add_check(&mut self, check: usize, requests: &[&str]) {
        for call in &mut self.calls {
            if requests.contains(&call.request.as_str()) {
                call.checks.push(check);
            }
        }
    }

    /// Adds the prompts of a sub-agent.
    pub fn add_agent(&mut self, agent: &PromptFacts) {
        if let Some(first) = agent.calls.first() {
            self.of_agents.push(first.instructions.to_vec());
        }
    }
}

type Instructions = std::sync::Arc<[String]>;
type Servers = std::sync::Arc<BTreeMap<String, u64>>;

/// Most calls have the instructions and tools of the call before.
#[derive(Default)]
struct SharedFacts {
    instructions: FxHashMap<InstructionKey, Instructions>,
    servers: FxHashMap<Option<MessageDigest>, Servers>,
}

impl SharedFacts {
    fn of(&mut self, call: &Call<'_>) -> (Instructions, Servers) {
        let prompt = call.prompt;
        let instructions = self.instructions.entry(prompt.instruction_key()).or_insert_with(|| {
            let messages = prompt.instruction_messages();
            let mut files: Vec<String> =
                messages.iter().flat_map(|(_, message)| instruction_files(message)).collect();
            files.sort_unstable();
            files.dedup();
            files.into()
        });
        let servers = self.servers.entry(prompt.call().head).or_insert_with(|| {
            let pieces = prompt.head().into_iter().flat_map(|head| &head.pieces);
            let mut servers = BTreeMap::new();
            for piece in pieces.filter(|piece| piece.kind == PieceKind::ToolSchema) {
                if let Some(server) = piece.label.as_deref().and_then(mcp_server) {
                    *servers.entry(server.to_owned()).or_default() += u64::from(piece.chars);
                }
            }
            servers.into()
        });
        (instructions.clone(), servers.clone())
    }
}

/// What instructions are called if their source does not name the file.
const UNNAMED: &str = "an instruction file";

/// The files of instructions in a message.
fn instruction_files(message: &PromptMessage) -> Vec<String> {
    let mut files = Vec::new();
    for piece in &message.pieces {
        if piece.kind == PieceKind::Instructions {
            files.push(piece.label.clone().unwrap_or_else(|| UNNAMED.to_owned()));
        }
        let spans = piece.spans.iter().filter(|span| span.kind == PieceKind::Instructions);
        files.extend(spans.map(|span| span.label.clone().unwrap_or_else(|| UNNAMED.to_owned())));
    }
    files
}

fn change(before: &Call<'_>, after: &Call<'_>) -> PrefixChange {
    let difference = PromptDifference::between(&before.prompt, &after.prompt);
    let mut lost_chars = 0;
    let mut first = None;
    if difference.head_changed {
        lost_chars = before.prompt.chars();
        first = Some(match (before.prompt.head(), after.prompt.head()) {
            (Some(before), Some(after)) => head_change(before, after),
            (_, _) => "instructions or tools".to_owned(),
        });
    } else if difference.removed > 0 {
        lost_chars = before.prompt.chars_from(difference.shared);
        first = before.prompt.message_at(difference.shared).map(message_name);
    }
    PrefixChange {
        lost_chars,
        compacted: difference.compacted,
        first: first.unwrap_or_else(|| "a message".to_owned()),
    }
}

/// The first piece of the instructions and tools that differs.
fn head_change(before: &PromptMessage, after: &PromptMessage) -> String {
    let mut pieces = before.pieces.iter().zip(&after.pieces);
    let first = pieces.find(|(one, other)| one.digest != other.digest);
    let piece = first.map(|(_, after)| after).or_else(|| {
        let longer = if before.pieces.len() > after.pieces.len() { before } else { after };
        longer.pieces.get(before.pieces.len().min(after.pieces.len()))
    });
    match piece {
        Some(piece) => match &piece.label {
            Some(label) => format!("{} {label}", piece.kind.label()),
            None => piece.kind.label().to_owned(),
        },
        None => "instructions or tools".to_owned(),
    }
}

fn message_name(message: &PromptMessage) -> String {
    match message.pieces.first() {
        Some(piece) => piece.kind.label().to_owned(),
        None => "a message".to_owned(),
    }
}
