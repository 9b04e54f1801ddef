//! What took the room in the prompts of a session: the characters that its calls were sent, by kind
//! and by where they are from, summed over all calls. A message counts once for each call that was
//! sent it. Each message and each call is looked at once.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{CallPrompt, PromptTree};
use crate::prompt::{MessageDigest, Piece, PieceKind, PieceText};
use crate::tools::mcp_server;

/// What all calls of a session were sent of one source.
#[derive(Clone, PartialEq, Debug)]
pub struct SourceShare {
    pub kind: PieceKind,
    /// The tool, the file, the hook: whatever the source of the prompt calls it.
    pub source: Option<String>,
    /// The characters of each call, added up.
    pub chars: u64,
    /// The measured tokens of each call, shared out by characters and added up.
    pub tokens: u64,
}

impl SourceShare {
    /// The MCP server of the tool that it is from.
    pub fn server(&self) -> Option<&str> {
        match self.kind {
            PieceKind::ToolSchema | PieceKind::ToolCall | PieceKind::ToolOutput => {
                mcp_server(self.source.as_deref()?)
            }
            PieceKind::Policy
            | PieceKind::Instructions
            | PieceKind::Skills
            | PieceKind::Agents
            | PieceKind::Environment
            | PieceKind::Hook
            | PieceKind::Reminder
            | PieceKind::McpInstructions
            | PieceKind::UserInstruction
            | PieceKind::HistoryText
            | PieceKind::HistoryReasoning
            | PieceKind::File
            | PieceKind::Summary
            | PieceKind::Other => None,
        }
    }
}

/// How often something was sent, and the tokens for each of its characters.
#[derive(Clone, Copy, Default)]
struct Weight {
    calls: u64,
    tokens_per_char: f64,
}

impl Weight {
    fn add(&mut self, more: Weight) {
        self.calls += more.calls;
        self.tokens_per_char += more.tokens_per_char;
    }
}

impl PromptTree {
    /// What the calls were sent, most first. `tokens` are the measured ones of a call's prompt.
    pub fn sources(&self, tokens: impl Fn(CallPrompt<'_>) -> u64) -> Vec<SourceShare> {
        let tools = self.tools_by_call();
        let mut sums: FxHashMap<(PieceKind, Option<&str>), (u64, f64)> = FxHashMap::default();
        for (digest, weight) in self.weights(tokens) {
            let pieces = self.message(digest).into_iter().flat_map(|message| &message.pieces);
            for (kind, source, chars) in pieces.flat_map(|piece| stretches(piece, &tools)) {
                let sum = sums.entry((kind, source)).or_default();
                sum.0 += chars * weight.calls;
                sum.1 += chars as f64 * weight.tokens_per_char;
            }
        }
        let share = |((kind, source), (chars, tokens)): ((PieceKind, Option<&str>), (u64, f64))| {
            let source = source.map(str::to_owned);
            SourceShare { kind, source, chars, tokens: tokens.round() as u64 }
        };
        let mut shares: Vec<SourceShare> =
            sums.into_iter().map(share).filter(|share| share.chars > 0).collect();
        shares.sort_by(|a, b| (b.chars, a.kind, &a.source).cmp(&(a.chars, b.kind, &b.source)));
        shares
    }

    /// The tools that the calls of the prompts name.
    pub fn called_tools(&self) -> FxHashSet<&str> {
        self.tools_by_call().into_values().collect()
    }

    /// How often each message was sent, and with what.
    fn weights(&self, tokens: impl Fn(CallPrompt<'_>) -> u64) -> FxHashMap<MessageDigest, Weight> {
        let mut weights: FxHashMap<MessageDigest, Weight> = FxHashMap::default();
        let mut nodes = vec![Weight::default(); self.nodes.len()];
        for call in self.calls() {
            let chars = call.chars().max(1);
            let weight = Weight { calls: 1, tokens_per_char: tokens(call) as f64 / chars as f64 };
            if let Some(node) = call.node().last.and_then(|last| nodes.get_mut(last)) {
                node.add(weight);
            }
            if let Some(head) = call.call().head {
                weights.entry(head).or_default().add(weight);
            }
        }
        // A node comes after its parent.
        for (at, node) in self.nodes.iter().enumerate().rev() {
            let weight = nodes[at];
            weights.entry(node.digest).or_default().add(weight);
            if let Some(parent) = node.parent.and_then(|parent| nodes.get_mut(parent)) {
                parent.add(weight);
            }
        }
        weights
    }

    /// The tool of each call: an output does not name it.
    fn tools_by_call(&self) -> FxHashMap<&Arc<str>, &str> {
        let mut tools = FxHashMap::default();
        for piece in self.messages().flat_map(|message| &message.pieces) {
            if let (PieceText::Input(call), Some(label)) = (&piece.text, &piece.label) {
                tools.insert(call, label.as_str());
            }
        }
        tools
    }
}

/// The stretches of a piece with their sources: its spans, and the rest.
fn stretches<'a>(
    piece: &'a Piece,
    tools: &FxHashMap<&'a Arc<str>, &'a str>,
) -> impl Iterator<Item = (PieceKind, Option<&'a str>, u64)> {
    let tool = match &piece.text {
        PieceText::Output(call) => tools.get(call).copied(),
        PieceText::Kept(_) | PieceText::Prose(_) | PieceText::Input(_) | PieceText::Binary => None,
    };
    let own = piece.label.as_deref().or(tool);
    let labels = std::iter::once(own).chain(piece.spans.iter().map(|span| span.label.as_deref()));
    piece.shares().zip(labels).map(|((kind, chars), source)| (kind, source, chars))
}

#[cfg(test)]
#[path = "sources_tests.rs"]
mod tests;
