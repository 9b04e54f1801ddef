//! Tool calls: pending → running → completed | failed | denied | interrupted. No event moves a
//! state backward. Refinements apply at any time and in any order. A question belongs to its tool
//! and is never a part; `question` has the rules for it.

mod question;

pub(super) use question::shown_answer;

use std::sync::Arc;

use crate::change::{Change, DeltaField, PartPatch, SkipReason, ToolPatch};
use crate::event::{CallRef, ToolCall, ToolEnd, ToolOutcome};
use crate::id::digest;
use crate::json::Json;
use crate::part::{Body, Tool, ToolState};
use crate::provenance::{Feed, Name};
use crate::rank::PartField;

use super::fold::ToolFold;
use super::part::PartIndex;
use super::{Assembler, Head};

/// The content hash of a call, for feeds that omit the call id.
pub fn content_hash(tool: &str, input: Option<&Json>) -> u64 {
    let input = input.map_or(0, Json::canonical_digest);
    digest(format!("{tool}\n{input}").as_bytes())
}

impl Assembler {
    fn find_tool(&mut self, head: &Head, call: &CallRef) -> Option<PartIndex> {
        let name = match call {
            CallRef::Id(id) => Name::Call(id.clone()),
            CallRef::ByContent(content, nth) => Name::ByContent(*content, *nth),
        };
        let turn = if name.is_local() { self.turn_for(head) } else { 0 };
        self.find_part(turn, &name).filter(|at| self.part(*at).tool.is_some())
    }

    /// Opens a tool part for a new call.
    fn open_tool(&mut self, head: &Head, call: &CallRef, tool: Tool) -> PartIndex {
        let turn = self.turn_for(head);
        self.close_nameless(head);
        let name = match call {
            CallRef::Id(id) => Name::Call(id.clone()),
            CallRef::ByContent(content, nth) => Name::ByContent(*content, *nth),
        };
        let fold =
            ToolFold { call_id: tool.call_id.clone(), state: tool.state, ..ToolFold::default() };
        let at = self.open_part(head, turn, Some(name), Body::Tool(Box::new(tool)));
        self.part(at).tool = Some(Box::new(fold));
        self.settle_hidden(at);
        // In a turn that is over the call is interrupted, until a feed reports its end.
        if self.is_over(turn) {
            self.advance(at, ToolState::Interrupted);
        }
        at
    }

    /// Opens a part for a call of which only the reference is known.
    pub(super) fn open_bare_tool(&mut self, head: &Head, call: &CallRef) -> PartIndex {
        self.open_tool(head, call, new_tool(call))
    }

    pub(super) fn grow_input(&mut self, head: &Head, call: &CallRef, name: &str, text: String) {
        let at = match self.find_tool(head, call) {
            Some(found) => {
                let turn = self.turn_for(head);
                self.arrive(head, turn, found)
            }
            None => {
                let tool = Tool { name: name.to_owned(), ..new_tool(call) };
                self.open_tool(head, call, tool)
            }
        };
        let part = self.part(at);
        // A complete input is not replaced by deltas.
        if part.origin.ranks.holder(PartField::Input).is_some() || text.is_empty() {
            return;
        }
        self.grow_tool(head, at, DeltaField::Input, text);
    }

    /// Extends a streamed text of a call. If two feeds stream it, the stronger one replaces the
    /// text, since it starts from the beginning; so does a rewritten log. Another capture of the
    /// same stream is ignored, since it repeats the first one.
    fn grow_tool(&mut self, head: &Head, at: PartIndex, field: DeltaField, text: String) {
        let streams = match field {
            DeltaField::Input => PartField::InputText,
            DeltaField::Output | DeltaField::Text => PartField::OutputText,
        };
        let part = self.part(at);
        let (id, by) = (part.id, part.origin.ranks.holder(streams));
        if !part.origin.ranks.claim(streams, head.feed) {
            return;
        }
        let source = head.evidence.source;
        let grown_by = part.tool.as_ref().and_then(|tool| tool.grown_by).unwrap_or(source);
        if by == Some(head.feed) && grown_by == source {
            return self.emit(Change::PartDelta { part: id, field, text });
        }
        let anew = head.feed == Feed::Log && grown_by < source;
        if by == Some(head.feed) && !anew {
            return;
        }
        if let Some(tool) = &mut part.tool {
            tool.grown_by = Some(source);
        }
        let mut tool = ToolPatch::default();
        match field {
            DeltaField::Input => tool.input_text = Some(text),
            DeltaField::Output | DeltaField::Text => tool.output = Some(text),
        }
        self.emit_tool_patch(at, tool);
    }

    fn emit_tool_patch(&mut self, at: PartIndex, tool: ToolPatch) {
        self.emit_part_patch(at, PartPatch { tool: Some(Box::new(tool)), ..PartPatch::default() });
    }

    pub(super) fn call_tool(&mut self, head: &Head, call: ToolCall) {
        let turn = self.turn_for(head);
        self.close_nameless(head);
        self.reopen_for(head, turn, &call.call);
        let found = self.find_tool(head, &call.call);
        let whole = call.input.is_some();
        let state = if call.running { ToolState::Running } else { ToolState::Pending };
        let at = match found {
            Some(found) => self.arrive(head, turn, found),
            None => self.open_tool(head, &call.call, Tool { state, ..new_tool(&call.call) }),
        };
        let mut patch = self.seen_by(head, at);
        let part = self.part(at);
        let ranks = &mut part.origin.ranks;
        let mut tool = ToolPatch {
            name: ranks.take(PartField::Name, head.feed, Some(call.name)),
            input: ranks.take(PartField::Input, head.feed, call.input),
            parent_call_id: ranks.take(PartField::ParentCall, head.feed, call.parent_call_id),
            title: ranks.take(PartField::Title, head.feed, call.title),
            provider_executed: call.provider_executed.then_some(true),
            ..ToolPatch::default()
        };
        if let Some(fold) = &mut part.tool {
            fold.provider_executed |= call.provider_executed;
            if tool.input.is_some() && part.origin.ranks.drop(PartField::InputText) {
                tool.input_text = Some(String::new());
            }
            if let CallRef::Id(id) = &call.call
                && fold.call_id.is_empty()
            {
                fold.call_id = id.to_string();
                tool.call_id = Some(id.to_string());
            }
        }
        patch.tool = Some(Box::new(tool));
        self.emit_part_patch(at, patch);
        self.place_agents(at);
        // Hooks of parallel calls arrive in any order, so only log and stream are counted, and only
        // events that name the call: others find it by what was counted.
        let named = matches!(call.call, CallRef::Id(_));
        if whole && named && head.feed != Feed::Hooks {
            self.add_content_hash(at, call.content_hash);
        }
        self.advance(at, state);
    }

    /// Reopens an ended turn for a call that is new in this feed.
    fn reopen_for(&mut self, head: &Head, turn: usize, call: &CallRef) {
        let reported = match self.find_tool(head, call) {
            Some(at) => self.part(at).origin.at.of(head.feed).is_some(),
            None => false,
        };
        if !reported {
            self.reopen(head, turn);
        }
    }

    /// Counts the call under its content hash, so that events without an id find it. A part that
    /// such an event opened before is merged into this one.
    pub(super) fn add_content_hash(&mut self, at: PartIndex, content_hash: u64) {
        let Some(fold) = &mut self.part(at).tool else { return };
        // The log may have the input in another form than the stream: each form counts once.
        if fold.call_id.is_empty() || fold.content_hashes.contains(&content_hash) {
            return;
        }
        fold.content_hashes.push(content_hash);
        let name = self.turns[at.0].count_occurrence(Feed::Log, at.1, content_hash);
        self.emit_origin(at);
        let nameless = self.turns[at.0].set_local(name, at.1).filter(|other| {
            let other = &self.turns[at.0].parts[*other];
            !other.gone && other.tool.as_ref().is_some_and(|tool| tool.call_id.is_empty())
        });
        if let Some(nameless) = nameless {
            self.merge_parts(at.0, nameless, at.1);
        }
    }

    pub(super) fn start_tool(&mut self, head: &Head, call: &CallRef) {
        match self.find_tool(head, call) {
            Some(at) => self.advance_reported(head, at, ToolState::Running),
            None => {
                let tool = Tool { state: ToolState::Running, ..new_tool(call) };
                self.open_tool(head, call, tool);
            }
        }
    }

    pub(super) fn grow_output(&mut self, head: &Head, call: &CallRef, text: String) {
        let at = match self.find_tool(head, call) {
            Some(at) => at,
            None => {
                let tool = Tool { state: ToolState::Running, ..new_tool(call) };
                self.open_tool(head, call, tool)
            }
        };
        self.advance(at, ToolState::Running);
        let part = self.part(at);
        if part.origin.ranks.holder(PartField::Output).is_some() || text.is_empty() {
            return;
        }
        self.grow_tool(head, at, DeltaField::Output, text);
    }

    pub(super) fn end_tool(
        &mut self,
        head: &Head,
        call: &CallRef,
        end: ToolEnd,
        outcome: ToolOutcome,
    ) {
        self.close_nameless(head);
        let at = match self.find_tool(head, call) {
            Some(at) => at,
            // The call was never seen: keep the result where it arrived.
            None => self.open_tool(head, call, new_tool(call)),
        };
        let origin = &mut self.part(at).origin;
        origin.rejected |= end == ToolEnd::Rejected;
        origin.denied |= end == ToolEnd::Denied;
        let patch = self.outcome_patch(head, at, outcome);
        self.emit_part_patch(at, patch);
        let state = match end {
            ToolEnd::Completed => ToolState::Completed,
            ToolEnd::Failed => ToolState::Failed,
            ToolEnd::Denied => ToolState::Denied,
            ToolEnd::Interrupted | ToolEnd::Rejected => ToolState::Interrupted,
        };
        self.advance_reported(head, at, state);
        self.settle_tool(at);
        // The state of an idle turn depends on the states of its calls.
        if self.is_over(at.0) {
            self.settle(at.0);
        }
    }

    pub(super) fn refine_tool(&mut self, head: &Head, call: &CallRef, outcome: ToolOutcome) {
        let at = match self.find_tool(head, call) {
            Some(at) => at,
            None => self.open_tool(head, call, new_tool(call)),
        };
        let patch = self.outcome_patch(head, at, outcome);
        self.emit_part_patch(at, patch);
        self.settle_tool(at);
    }

    fn outcome_patch(&mut self, head: &Head, at: PartIndex, outcome: ToolOutcome) -> PartPatch {
        let part = self.part(at);
        let ranks = &mut part.origin.ranks;
        let tool = ToolPatch {
            output: ranks.take(PartField::Output, head.feed, outcome.output),
            result: ranks.take(PartField::Result, head.feed, outcome.result),
            exit_code: ranks.take(PartField::ExitCode, head.feed, outcome.exit_code),
            duration_ms: ranks.take(PartField::Duration, head.feed, outcome.duration_ms),
            ..ToolPatch::default()
        };
        if tool.output.is_some() {
            ranks.drop(PartField::OutputText);
        }
        if let Some(fold) = part.tool.as_mut().filter(|_| tool.exit_code.is_some()) {
            fold.exit_code = tool.exit_code;
        }
        PartPatch {
            evidence: vec![head.evidence],
            tool: Some(Box::new(tool)),
            ..PartPatch::default()
        }
    }

    // ── State ───────────────────────────────────────────────────────────────────────────────

    /// Applies a reported state. The strongest feed with an end decides it; a second, different
    /// end from the same feed is a contradiction.
    fn advance_reported(&mut self, head: &Head, at: PartIndex, state: ToolState) {
        let part = self.part(at);
        let Some(fold) = &part.tool else { return };
        let holder = part.origin.ranks.holder(PartField::State);
        if !state.is_terminal() {
            if fold.state.is_terminal() && holder == Some(head.feed) {
                self.count(SkipReason::Contradiction);
            }
            return self.advance(at, state);
        }
        if holder == Some(head.feed) {
            // `settle_tool` distinguishes interrupted from denied.
            let cut = |state| matches!(state, ToolState::Interrupted | ToolState::Denied);
            let held = fold.reported_state.unwrap_or(fold.state);
            let same = held == state || (cut(held) && cut(state));
            return self.count(if same {
                SkipReason::Duplicate
            } else {
                SkipReason::Contradiction
            });
        }
        if !part.origin.ranks.claim(PartField::State, head.feed) {
            return;
        }
        let ended = part.origin.ranks.take(PartField::Ended, head.feed, head.at);
        self.set_state(at, state, ended);
        self.emit_origin(at);
    }

    /// Applies an inferred state: only forward, and never over a terminal one.
    pub(super) fn advance(&mut self, at: PartIndex, state: ToolState) {
        let Some(fold) = &self.part(at).tool else { return };
        if !fold.state.is_terminal() && state > fold.state {
            self.set_state(at, state, None);
        }
    }

    /// Calls that only the end of their turn interrupted run again: the turn goes on after all.
    pub(super) fn resume_tools(&mut self, turn: usize) {
        if self.is_over(turn) {
            return;
        }
        for part in 0..self.turns[turn].parts.len() {
            let at = (turn, part);
            let inferred = self.peek(at).is_interrupted_by_end();
            if inferred {
                self.set_state(at, ToolState::Running, None);
            }
        }
    }

    pub(super) fn set_state(
        &mut self,
        at: PartIndex,
        state: ToolState,
        ended: Option<jiff::Timestamp>,
    ) {
        let Some(fold) = &mut self.part(at).tool else { return };
        let changed = fold.reported_state.unwrap_or(fold.state) != state;
        let reported_state = fold.reported_state.map(|_| state);
        if changed {
            (fold.state, fold.reported_state) = (state, reported_state);
        }
        let tool = changed.then(|| {
            Box::new(ToolPatch { state: Some(state), reported_state, ..ToolPatch::default() })
        });
        self.emit_part_patch(at, PartPatch { ended, tool, ..PartPatch::default() });
        if changed {
            self.settle_tool(at);
            if let Some(agents) = self.agents_of(at) {
                self.settle_agents(agents, None);
            }
        }
    }
}

fn new_tool(call: &CallRef) -> Tool {
    let call_id = match call {
        CallRef::Id(id) => Arc::<str>::clone(id).to_string(),
        CallRef::ByContent(..) => String::new(),
    };
    Tool { call_id, ..Tool::default() }
}
