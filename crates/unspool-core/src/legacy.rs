//! Converts the flat history of applications without parts into events: messages with thinking,
//! content and calls at offsets, or rows without turns. The events go through the same assembler
//! as all others, so there is only one way to build a transcript (R-000-18, R-000-19, R-003-55,
//! R-004-23).

use jiff::Timestamp;

use crate::assemble::likeness;
use crate::event::{
    AgentEnd, AgentRef, Call, EndReason, Event, Key, Outcome, SaidDetail, ToolCall, ToolEnd, Voice,
    What,
};
use crate::json::Json;
use crate::part::{AgentState, Body, Text, ToolState};
use crate::session::Trigger;
use crate::telling::{Evidence, Name, Telling};

/// One row of a flat history, in its order.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The application's id for the row, if it has one.
    pub id: Option<String>,
    pub at: Option<Timestamp>,
    pub said: RowKind,
}

#[derive(Clone, PartialEq, Debug)]
pub enum RowKind {
    User(String),
    /// Text of a reply that is stored as separate rows.
    Text(String),
    Think(String),
    Tool(LegacyCall),
    /// A reply that is stored as one message.
    Message(LegacyMessage),
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
pub fn events(rows: &[Row], source: u16) -> Vec<Event> {
    let mut out = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let mut writer = Writer { row, number, source, nth: 0, out: &mut out };
        match &row.said {
            RowKind::User(text) => {
                let name = row.id.as_deref().map(|id| Name::Record(id.into()));
                let user = vec![Body::Text(Text { text: text.clone(), ..Text::default() })];
                let names = name.into_iter().collect();
                writer.push(What::TurnStarted { names, trigger: Trigger::User, user });
            }
            RowKind::Text(text) => writer.say(Voice::Text, text),
            RowKind::Think(text) => writer.say(Voice::Reasoning, text),
            RowKind::Tool(call) => writer.call(call),
            RowKind::Message(message) => writer.message(message),
        }
        let last = rows.get(number + 1).is_none_or(|next| matches!(next.said, RowKind::User(_)));
        if last && !matches!(row.said, RowKind::User(_)) {
            writer.push(What::TurnEnded(EndReason::Idle));
        }
    }
    out
}

struct Writer<'a> {
    row: &'a Row,
    number: usize,
    source: u16,
    nth: u32,
    out: &'a mut Vec<Event>,
}

impl Writer<'_> {
    fn push(&mut self, what: What) {
        let record = self.number as u64;
        let telling = Telling::Log;
        self.out.push(Event {
            key: Key { record, nth: self.nth },
            telling,
            at: self.row.at,
            evidence: Evidence {
                telling,
                source: self.source,
                offset: record,
                length: 1,
                digest: record,
            },
            turn: None,
            generation: None,
            what,
        });
        self.nth = self.nth.saturating_add(1);
    }

    fn say(&mut self, voice: Voice, text: &str) {
        let (block, text, detail) = (None, text.to_owned(), SaidDetail::default());
        self.push(What::Said { voice, block, text, detail });
    }

    fn call(&mut self, call: &LegacyCall) {
        let id = Call::Id(call.id.as_str().into());
        self.push(What::ToolCalled(Box::new(ToolCall {
            call: id.clone(),
            parent_call_id: None,
            name: call.name.clone(),
            input: call.input.clone(),
            likeness: likeness(&call.name, call.input.as_ref()),
            provider_executed: false,
            title: None,
            running: call.state != ToolState::Pending,
        })));
        let end = match call.state {
            ToolState::Pending | ToolState::Running => return,
            ToolState::Completed => ToolEnd::Completed,
            ToolState::Failed => ToolEnd::Failed,
            ToolState::Denied => ToolEnd::Denied,
            ToolState::Interrupted => ToolEnd::Interrupted,
        };
        let outcome = Outcome { output: call.output.clone(), ..Outcome::default() };
        self.push(What::ToolEnded { call: id, end, outcome });
    }

    /// The thinking comes first, since its position was not recorded. The content is split at the
    /// offsets of its calls.
    fn message(&mut self, message: &LegacyMessage) {
        self.say(Voice::Reasoning, &message.thinking);
        let mut calls: Vec<&LegacyCall> = message.calls.iter().collect();
        calls.sort_by_key(|call| call.offset);
        let mut rest = message.content.as_str();
        let mut before = 0;
        for call in calls {
            let count = call.offset.saturating_sub(before);
            let cut = rest.char_indices().nth(count).map_or(rest.len(), |(at, _)| at);
            let (text, behind) = rest.split_at(cut);
            self.say(Voice::Text, text);
            self.call(call);
            for agent in message.agents.iter().filter(|agent| agent.call_id == call.id) {
                self.agent(agent);
            }
            (rest, before) = (behind, call.offset.max(before));
        }
        self.say(Voice::Text, rest);
    }

    fn agent(&mut self, told: &LegacyAgent) {
        let agent = AgentRef {
            call: Some(told.call_id.as_str().into()),
            id: (!told.id.is_empty()).then(|| told.id.as_str().into()),
        };
        self.push(What::AgentStarted {
            agent: agent.clone(),
            name: told.name.clone(),
            task: told.task.clone(),
            background: told.background,
        });
        let end = match told.state {
            AgentState::Pending | AgentState::Running | AgentState::Background => return,
            AgentState::Completed => AgentEnd::Completed,
            AgentState::Failed => AgentEnd::Failed,
            AgentState::Interrupted => AgentEnd::Interrupted,
        };
        self.push(What::AgentEnded { agent, end });
    }
}

#[cfg(test)]
#[path = "legacy_tests.rs"]
mod tests;
