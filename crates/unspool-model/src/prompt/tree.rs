//! The prompts of one session, put together from differences. Messages form a tree: a prompt is the
//! way from a message back to the first one, so equal beginnings are held once and each prompt has
//! its sums at hand.

mod sources;

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{CallTimes, MessageDigest, PieceKind, PromptCall, PromptMessage, PromptRecord};
use crate::provenance::Name;

pub use sources::SourceShare;

const KINDS: usize = PieceKind::ALL.len();

/// The prompts of a session.
#[derive(Clone, Debug, Default)]
pub struct PromptTree {
    messages: FxHashMap<MessageDigest, PromptMessage>,
    calls: Vec<CallNode>,
    by_request: FxHashMap<Arc<str>, usize>,
    answers: FxHashMap<Arc<str>, Name>,
    times: FxHashMap<Arc<str>, CallTimes>,
    /// The calls that a step answers, as a source says that knows the requests themselves.
    by_step: FxHashMap<Name, usize>,
    nodes: Vec<Node>,
    /// The message after another one: equal beginnings are the same nodes, however they were sent.
    next: FxHashMap<(Option<usize>, MessageDigest), usize>,
}

#[derive(Clone, Debug)]
struct CallNode {
    call: PromptCall,
    /// The last message; `None` if it has none.
    last: Option<usize>,
    /// Messages before the tail that are not known, because the base is not.
    lost: u32,
}

#[derive(Clone, Debug)]
struct Node {
    parent: Option<usize>,
    /// A message further back, so that one at any depth is found in a logarithmic number of steps.
    jump: Option<usize>,
    digest: MessageDigest,
    /// The number of messages up to here.
    depth: u32,
    /// The last message up to here with anything but the conversation.
    instructions: Option<usize>,
    /// Characters by kind, and messages that are not known, up to here.
    chars: [u64; KINDS],
    unknown: u32,
}

/// Calls with equal keys were sent the same instructions at the same places.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct InstructionKey {
    head: Option<MessageDigest>,
    last: Option<usize>,
    lost: u32,
}

/// The prompt of one call.
#[derive(Clone, Copy, Debug)]
pub struct CallPrompt<'a> {
    tree: &'a PromptTree,
    at: usize,
}

impl PromptTree {
    pub fn new(records: impl IntoIterator<Item = PromptRecord>) -> PromptTree {
        let mut tree = PromptTree::default();
        let mut calls = Vec::new();
        for record in records {
            match record {
                // A message may be recorded after the call that sends it: another feed, another file.
                PromptRecord::Message(message) => tree.add_message(message),
                PromptRecord::Call(call) => calls.push(call),
                PromptRecord::Answer(answer) => {
                    tree.answers.insert(answer.request, answer.step);
                }
                PromptRecord::Timed(timed) => {
                    tree.times.entry(timed.request).or_default().join(timed.times);
                }
            }
        }
        calls.into_iter().for_each(|call| tree.add_call(call));
        for (at, node) in tree.calls.iter().enumerate() {
            if let Some(step) = tree.answers.get(&node.call.request) {
                tree.by_step.insert(step.clone(), at);
            }
        }
        tree
    }

    fn add_message(&mut self, message: PromptMessage) {
        match self.messages.get_mut(&message.digest) {
            Some(held) if message.verified && !held.verified => *held = message,
            Some(_) => {}
            None => drop(self.messages.insert(message.digest, message)),
        }
    }

    fn add_call(&mut self, call: PromptCall) {
        if let Some(held) = self.by_request.get(&call.request) {
            // Said again, with what was learned about it since.
            let gaps = &mut self.calls[*held].call.gaps;
            gaps.extend(call.gaps);
            gaps.sort_unstable();
            gaps.dedup();
            return;
        }
        let base = call.base.as_ref().and_then(|base| self.by_request.get(base));
        let from = base.and_then(|base| self.calls[*base].last);
        let mut last = from.and_then(|from| self.ancestor(from, call.keep));
        let kept = last.map_or(0, |last| self.nodes[last].depth);
        let lost = call.keep.saturating_sub(kept);
        for digest in &call.tail {
            last = Some(self.add_node(last, *digest));
        }
        self.by_request.insert(call.request.clone(), self.calls.len());
        self.calls.push(CallNode { call, last, lost });
    }

    /// The message at this depth on the way to a node.
    fn ancestor(&self, node: usize, depth: u32) -> Option<usize> {
        let mut at = Some(node).filter(|_| depth > 0);
        while let Some(node) = at.map(|at| &self.nodes[at]).filter(|node| node.depth > depth) {
            let is_short = |jump: &usize| self.nodes[*jump].depth >= depth;
            at = node.jump.filter(is_short).or(node.parent);
        }
        at
    }

    fn add_node(&mut self, parent: Option<usize>, digest: MessageDigest) -> usize {
        if let Some(held) = self.next.get(&(parent, digest)) {
            return *held;
        }
        self.next.insert((parent, digest), self.nodes.len());
        let before = parent.map(|parent| &self.nodes[parent]);
        let mut node = Node {
            parent,
            jump: parent.map(|parent| self.jump_of(parent)),
            digest,
            depth: before.map_or(1, |before| before.depth.saturating_add(1)),
            instructions: before.and_then(|before| before.instructions),
            chars: before.map_or([0; KINDS], |before| before.chars),
            unknown: before.map_or(0, |before| before.unknown),
        };
        match self.messages.get(&digest) {
            Some(message) => {
                add_chars(&mut node.chars, message);
                if !message.is_conversation() {
                    node.instructions = Some(self.nodes.len());
                }
            }
            None => node.unknown = node.unknown.saturating_add(1),
        }
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// The last message that two prompts have in common.
    fn common(&self, one: usize, other: usize) -> Option<usize> {
        let depth = self.nodes[one].depth.min(self.nodes[other].depth);
        let (mut one, mut other) = (self.ancestor(one, depth)?, self.ancestor(other, depth)?);
        while one != other {
            // At equal depths, jumps are equally long.
            let (a, b) = (&self.nodes[one], &self.nodes[other]);
            (one, other) = match (a.jump, b.jump) {
                (Some(jump), Some(others)) if jump != others => (jump, others),
                (_, _) => (a.parent?, b.parent?),
            };
        }
        Some(one)
    }

    /// Where the child of a node jumps to: over two jumps of equal length, else to its parent.
    fn jump_of(&self, parent: usize) -> usize {
        let depth = |node: usize| self.nodes[node].depth;
        let first = self.nodes[parent].jump;
        let second = first.and_then(|first| self.nodes[first].jump);
        match (first, second) {
            (Some(first), Some(second))
                if depth(parent) - depth(first) == depth(first) - depth(second) =>
            {
                second
            }
            (_, _) => parent,
        }
    }

    /// The calls, in the order in which they were recorded.
    pub fn calls(&self) -> impl ExactSizeIterator<Item = CallPrompt<'_>> {
        (0..self.calls.len()).map(|at| CallPrompt { tree: self, at })
    }

    /// The call with this request.
    pub fn call(&self, request: &str) -> Option<CallPrompt<'_>> {
        let at = *self.by_request.get(request)?;
        Some(CallPrompt { tree: self, at })
    }

    /// The call that a step answers: the one that its log names, or the request itself. If both are
    /// there, the request counts if it is known whole.
    pub fn call_of_step(&self, logged: Option<&str>, step: &Name) -> Option<CallPrompt<'_>> {
        let logged = logged.and_then(|request| self.call(request));
        let sent = self.by_step.get(step).map(|at| CallPrompt { tree: self, at: *at });
        sent.filter(|sent| logged.is_none() || sent.is_whole()).or(logged)
    }

    /// When a call was made and answered. `logged` is what a log calls the same request.
    pub fn times(&self, request: &str, logged: Option<&str>) -> CallTimes {
        let of = |request: &str| self.times.get(request).copied().unwrap_or_default();
        of(request).joined(logged.map(of).unwrap_or_default())
    }

    /// The calls that were sent one of these messages.
    pub fn calls_with(&self, wanted: &FxHashSet<MessageDigest>) -> Vec<CallPrompt<'_>> {
        let mut has: Vec<bool> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let before = node.parent.is_some_and(|parent| has[parent]);
            has.push(before || wanted.contains(&node.digest));
        }
        let is_wanted = |call: &CallPrompt<'_>| {
            let node = call.node();
            node.call.head.is_some_and(|head| wanted.contains(&head))
                || node.last.is_some_and(|last| has[last])
        };
        self.calls().filter(is_wanted).collect()
    }

    pub fn message(&self, digest: MessageDigest) -> Option<&PromptMessage> {
        self.messages.get(&digest)
    }

    /// Each message once, in the order of their digests.
    pub fn messages_mut(&mut self) -> impl Iterator<Item = &mut PromptMessage> {
        let mut messages: Vec<&mut PromptMessage> = self.messages.values_mut().collect();
        messages.sort_unstable_by_key(|message| message.digest);
        messages.into_iter()
    }

    pub fn calls_mut(&mut self) -> impl Iterator<Item = &mut PromptCall> {
        self.calls.iter_mut().map(|node| &mut node.call)
    }

    /// Each message once, in no order.
    pub fn messages(&self) -> impl Iterator<Item = &PromptMessage> {
        self.messages.values()
    }

    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
}

fn add_chars(chars: &mut [u64; KINDS], message: &PromptMessage) {
    for (kind, share) in message.pieces.iter().flat_map(|piece| piece.shares()) {
        chars[kind as usize] += share;
    }
}

impl<'a> CallPrompt<'a> {
    fn node(&self) -> &'a CallNode {
        &self.tree.calls[self.at]
    }

    fn last(&self) -> Option<&'a Node> {
        self.node().last.map(|last| &self.tree.nodes[last])
    }

    pub fn call(&self) -> &'a PromptCall {
        &self.node().call
    }

    /// The step that answers it, if its source says that.
    pub fn answered_by(&self) -> Option<&'a Name> {
        self.tree.answers.get(&self.call().request)
    }

    /// True if nothing is missing that was sent.
    pub fn is_whole(&self) -> bool {
        let call = self.call();
        let has_head = call.head.is_none() || self.head().is_some();
        call.gaps.is_empty() && self.unknown_messages() == 0 && has_head
    }

    /// The instructions and tools; `None` if the source does not say what they were.
    pub fn head(&self) -> Option<&'a PromptMessage> {
        self.tree.message(self.call().head?)
    }

    /// Digests of its messages, in order.
    pub fn digests(&self) -> Vec<MessageDigest> {
        let mut digests = Vec::new();
        let mut at = self.node().last;
        while let Some(node) = at.map(|at| &self.tree.nodes[at]) {
            digests.push(node.digest);
            at = node.parent;
        }
        digests.reverse();
        digests
    }

    /// Its messages, in order, each with its number in the request. `None` for one that is not
    /// known.
    pub fn messages(&self) -> impl Iterator<Item = (u32, Option<&'a PromptMessage>)> + use<'a> {
        let tree = self.tree;
        let from = self.node().lost;
        (from..).zip(self.digests()).map(move |(number, digest)| (number, tree.message(digest)))
    }

    /// Names its instructions and where they stand.
    pub fn instruction_key(&self) -> InstructionKey {
        let last = self.last().and_then(|last| last.instructions);
        InstructionKey { head: self.call().head, last, lost: self.node().lost }
    }

    /// The messages with anything but the conversation, in order: first what stands before all
    /// messages, then each with its number in the request. Messages between them are not visited.
    pub fn instruction_messages(&self) -> Vec<(Option<u32>, &'a PromptMessage)> {
        let mut messages = Vec::new();
        let mut at = self.last().and_then(|last| last.instructions);
        while let Some(node) = at.map(|at| &self.tree.nodes[at]) {
            let number = self.node().lost.saturating_add(node.depth.saturating_sub(1));
            messages.extend(self.tree.message(node.digest).map(|found| (Some(number), found)));
            let parent = node.parent.map(|parent| &self.tree.nodes[parent]);
            at = parent.and_then(|parent| parent.instructions);
        }
        messages.extend(self.head().map(|head| (None, head)));
        messages.reverse();
        messages
    }

    /// The number of its messages.
    pub fn message_count(&self) -> u32 {
        self.node().lost + self.last().map_or(0, |last| last.depth)
    }

    /// How many of its messages are not in the log.
    pub fn unknown_messages(&self) -> u32 {
        self.node().lost + self.last().map_or(0, |last| last.unknown)
    }

    /// Characters by kind, without kinds that it has nothing of.
    pub fn chars_by_kind(&self) -> Vec<(PieceKind, u64)> {
        let mut chars = self.last().map_or([0; KINDS], |last| last.chars);
        if let Some(head) = self.head() {
            add_chars(&mut chars, head);
        }
        let all = PieceKind::ALL.iter().map(|kind| (*kind, chars[*kind as usize]));
        all.filter(|(_, chars)| *chars > 0).collect()
    }

    /// Characters of one kind.
    pub fn chars_of(&self, kind: PieceKind) -> u64 {
        let found = self.chars_by_kind().into_iter().find(|(held, _)| *held == kind);
        found.map_or(0, |(_, chars)| chars)
    }

    /// Its length in characters, as far as it is known.
    pub fn chars(&self) -> u64 {
        self.chars_by_kind().iter().map(|(_, chars)| chars).sum()
    }

    /// The characters of its messages from this one on, as far as they are known.
    pub fn chars_from(&self, number: u32) -> u64 {
        let sum = |node: &Node| node.chars.iter().sum::<u64>();
        let Some(last) = self.last() else { return 0 };
        let before = self.node_before(number).map_or(0, |node| sum(&self.tree.nodes[node]));
        sum(last).saturating_sub(before)
    }

    /// The message with this number in the request.
    pub fn message_at(&self, number: u32) -> Option<&'a PromptMessage> {
        let node = self.node_before(number.saturating_add(1))?;
        self.tree.message(self.tree.nodes[node].digest)
    }

    /// The last message before the one with this number.
    fn node_before(&self, number: u32) -> Option<usize> {
        let depth = number.checked_sub(self.node().lost)?;
        self.node().last.and_then(|last| self.tree.ancestor(last, depth))
    }

    /// How many messages from the first on it shares with another prompt of the session.
    pub fn shared_messages(&self, other: CallPrompt<'_>) -> u32 {
        let (Some(mine), Some(others)) = (self.node().last, other.node().last) else { return 0 };
        self.tree.common(mine, others).map_or(0, |node| self.tree.nodes[node].depth)
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
