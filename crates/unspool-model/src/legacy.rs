//! Converts the flat history of applications without parts into events: messages with thinking,
//! content and calls at offsets, or rows without turns. The events go through the same assembler
//! as all others, so there is only one way to build a transcript (R-000-18, R-000-19, R-003-55,
//! R-004-23).

use jiff::Timestamp;

use crate::assemble::content_hash;
use crate::event::{
    AgentEnd, AgentRef, CallRef, EndReason, Event, EventKey, EventKind, ProseDetail, ProseKind,
    ToolCall, ToolEnd, ToolOutcome,
};
use crate::json::Json;
use crate::part::{AgentState, Body, Data, Text, ToolState};
use crate::provenance::{Evidence, Feed, Name};
use crate::session::Trigger;

/// One row of a flat history, in its order.
#[derive(Clone, PartialEq, Debug)]
pub struct LegacyRow {
    /// The application's id for the row, if it has one.
    pub id: Option<String>,
    pub at: Option<Timestamp>,
    pub said: LegacyRowKind,
}

#[derive(Clone, PartialEq, Debug)]
pub enum LegacyRowKind {
    User(String),
    /// Text of a reply that is stored as separate rows.
    Text(String),
    Think(String),
    Tool(LegacyCall),
    /// A reply that is stored as one message.
    Message(LegacyMessage),
    /// A reply that is stored as an ordered list of blocks.
    Blocks(Vec<LegacyBlock>),
}

/// One block of a reply.
#[derive(Clone, PartialEq, Debug)]
pub enum LegacyBlock {
    Text(String),
    Think(String),
    Call(LegacyCall),
    /// The result of the call with this id.
    Result(LegacyCall),
    Data(Data),
}

/// A reply stored as one message: thinking, content, and the calls and agents at their offsets.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LegacyMessage {
    pub thinking: String,
    pub content: String,
    pub calls: Vec<LegacyCall>,
    pub agents: Vec<LegacyAgent>,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct LegacyCall {
    pub id: String,
    pub name: String,
    pub input: Option<Json>,
    pub output: Option<String>,
    pub state: ToolState,
    /// The number of content characters before it.
    pub offset: usize,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct LegacyAgent {
    /// The call that started it.
    pub call_id: String,
    pub id: String,
    pub name: String,
    pub task: String,
    pub state: AgentState,
    pub background: bool,
}

/// The events of a flat history. Each user row opens a turn that extends to the next user row;
/// rows before the first one belong to turn 0.
pub fn events(rows: &[LegacyRow], source: u16) -> Vec<Event> {
    let mut out = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let mut writer = Writer { row, number, source, nth: 0, out: &mut out };
        match &row.said {
            LegacyRowKind::User(text) => {
                let name = row.id.as_deref().map(|id| Name::Record(id.into()));
                let user = vec![Body::Text(Text { text: text.clone(), ..Text::default() })];
                let names = name.into_iter().collect();
                writer.push(EventKind::TurnStarted { names, trigger: Trigger::User, user });
            }
            LegacyRowKind::Text(text) => writer.say(ProseKind::Text, text),
            LegacyRowKind::Think(text) => writer.say(ProseKind::Reasoning, text),
            LegacyRowKind::Tool(call) => writer.call(call),
            LegacyRowKind::Message(message) => writer.message(message),
            LegacyRowKind::Blocks(blocks) => blocks.iter().for_each(|block| writer.block(block)),
        }
        let last =
            rows.get(number + 1).is_none_or(|next| matches!(next.said, LegacyRowKind::User(_)));
        if last && !matches!(row.said, LegacyRowKind::User(_)) {
            writer.push(EventKind::TurnEnded(EndReason::Idle));
        }
    }
    out
}

struct Writer<'a> {
    row: &'a LegacyRow,
    number: usize,
    source: u16,
    nth: u32,
    out: &'a mut Vec<Event>,
}

impl Writer<'_> {
    fn push(&mut self, kind: EventKind) {
        let record = self.number as u64;
        let feed = Feed::Log;
        self.out.push(Event {
            key: EventKey { record, nth: self.nth },
            feed,
            at: self.row.at,
            evidence: Evidence {
                feed,
                source: self.source,
                offset: record,
                length: 1,
                digest: record,
            },
            turn: None,
            generation: None,
            kind,
        });
        self.nth = self.nth.saturating_add(1);
    }

    fn say(&mut self, prose_kind: ProseKind, text: &str) {
        let (block, text, detail) = (None, text.to_owned(), ProseDetail::default());
        self.push(EventKind::ProseCompleted { prose_kind, block, text, detail });
    }

    fn call(&mut self, call: &LegacyCall) {
        let id = CallRef::Id(call.id.as_str().into());
        self.push(EventKind::ToolCalled(Box::new(ToolCall {
            call: id,
            parent_call_id: None,
            name: call.name.clone(),
            input: call.input.clone(),
            content_hash: content_hash(&call.name, call.input.as_ref()),
            provider_executed: false,
            title: None,
            running: call.state != ToolState::Pending,
        })));
        self.end_call(call);
    }

    fn end_call(&mut self, call: &LegacyCall) {
        let end = match call.state {
            ToolState::Pending | ToolState::Running => return,
            ToolState::Completed => ToolEnd::Completed,
            ToolState::Failed => ToolEnd::Failed,
            ToolState::Denied => ToolEnd::Denied,
            ToolState::Interrupted => ToolEnd::Interrupted,
        };
        let outcome = ToolOutcome { output: call.output.clone(), ..ToolOutcome::default() };
        let call = CallRef::Id(call.id.as_str().into());
        self.push(EventKind::ToolEnded { call, end, outcome });
    }

    fn block(&mut self, block: &LegacyBlock) {
        match block {
            LegacyBlock::Text(text) => self.say(ProseKind::Text, text),
            LegacyBlock::Think(text) => self.say(ProseKind::Reasoning, text),
            LegacyBlock::Call(call) => self.call(call),
            LegacyBlock::Result(call) => self.end_call(call),
            LegacyBlock::Data(data) => self.push(EventKind::Part(None, Body::Data(data.clone()))),
        }
    }

    /// The thinking comes first, since its position was not recorded. The content is split at the
    /// offsets of its calls.
    fn message(&mut self, message: &LegacyMessage) {
        self.say(ProseKind::Reasoning, &message.thinking);
        let mut calls: Vec<&LegacyCall> = message.calls.iter().collect();
        calls.sort_by_key(|call| call.offset);
        let mut rest = message.content.as_str();
        let mut before = 0;
        for call in calls {
            let count = call.offset.saturating_sub(before);
            let cut = rest.char_indices().nth(count).map_or(rest.len(), |(at, _)| at);
            let (text, behind) = rest.split_at(cut);
            self.say(ProseKind::Text, text);
            self.call(call);
            for agent in message.agents.iter().filter(|agent| agent.call_id == call.id) {
                self.agent(agent);
            }
            (rest, before) = (behind, call.offset.max(before));
        }
        self.say(ProseKind::Text, rest);
    }

    fn agent(&mut self, legacy_agent: &LegacyAgent) {
        let agent = AgentRef {
            call: Some(legacy_agent.call_id.as_str().into()),
            id: (!legacy_agent.id.is_empty()).then(|| legacy_agent.id.as_str().into()),
        };
        self.push(EventKind::AgentStarted {
            agent: agent.clone(),
            name: legacy_agent.name.clone(),
            task: legacy_agent.task.clone(),
            background: legacy_agent.background,
        });
        let end = match legacy_agent.state {
            AgentState::Pending | AgentState::Running | AgentState::Background => return,
            AgentState::Completed => AgentEnd::Completed,
            AgentState::Failed => AgentEnd::Failed,
            AgentState::Interrupted => AgentEnd::Interrupted,
        };
        self.push(EventKind::AgentEnded { agent, end });
    }
}

#[cfg(test)]
#[path = "legacy_tests.rs"]
mod tests;
