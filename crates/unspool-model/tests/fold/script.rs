//! Event scripts that read like tables: builders for events, and a run of them through the
//! assembler and the transcript builder. `table` renders transcripts as short strings to compare.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use unspool_model::assemble::{Assembler, content_hash};
use unspool_model::change::{Change, SkipReason};
use unspool_model::event::{
    AgentEnd, AgentRef, CallRef, EndReason, Event, EventKey, EventKind, ProseDetail, ProseKind,
    ToolCall, ToolEnd, ToolOutcome,
};
use unspool_model::id::SessionId;
use unspool_model::json::Json;
use unspool_model::part::{
    Answer, Body, Data, Decision, Failure, Notice, Question, QuestionItem, QuestionKind, Text, Tool,
};
use unspool_model::provenance::{Evidence, Feed, Name};
use unspool_model::session::{Transcript, Trigger, Turn};
use unspool_model::transcript::TranscriptBuilder;

pub use crate::table::{as_tool, show, shown};

/// One line of a script: an event and its feed, by default the log.
#[derive(Clone)]
pub struct Line {
    pub kind: EventKind,
    pub feed: Feed,
    pub turn: Option<Name>,
    pub generation: Option<u32>,
    pub at: Option<Option<i64>>,
    pub key: Option<u64>,
}

impl From<EventKind> for Line {
    fn from(kind: EventKind) -> Line {
        let feed = Feed::Log;
        Line { kind, feed, turn: None, generation: None, at: None, key: None }
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.feed, self.kind)?;
        if let Some(turn) = &self.turn {
            write!(f, " in {turn:?}")?;
        }
        if let Some(generation) = self.generation {
            write!(f, " of generation {generation}")?;
        }
        self.key.map_or(Ok(()), |key| write!(f, " #{key}"))
    }
}

impl Line {
    pub fn by(self, feed: Feed) -> Line {
        Line { feed, ..self }
    }

    /// From the live stream.
    pub fn stream(self) -> Line {
        self.by(Feed::Stream)
    }

    /// From a hook.
    pub fn hook(self) -> Line {
        self.by(Feed::Hooks)
    }

    pub fn in_turn(self, prompt: &str) -> Line {
        Line { turn: Some(prompt_name(prompt)), ..self }
    }

    pub fn generation(self, generation: u32) -> Line {
        Line { generation: Some(generation), ..self }
    }

    pub fn at(self, second: i64) -> Line {
        Line { at: Some(Some(second)), ..self }
    }

    pub fn key(self, key: u64) -> Line {
        Line { key: Some(key), ..self }
    }

    /// The event of the `nth` line of a script.
    pub fn event(self, nth: u64) -> Event {
        let record = self.key.unwrap_or(nth);
        let second = self.at.unwrap_or(Some(record as i64));
        Event {
            key: EventKey { record, nth: 0 },
            feed: self.feed,
            at: second.map(|second| Timestamp::from_second(second).unwrap()),
            evidence: Evidence {
                feed: self.feed,
                source: 0,
                offset: record,
                length: 1,
                digest: record,
            },
            turn: self.turn,
            generation: self.generation,
            kind: self.kind,
        }
    }
}

/// A running session.
#[derive(Clone, Debug)]
pub struct Run {
    pub assembler: Assembler,
    pub builder: TranscriptBuilder,
    pub next: u64,
}

pub fn session() -> SessionId {
    SessionId::of("test", "s1")
}

pub fn new_builder() -> TranscriptBuilder {
    TranscriptBuilder::new("test", "s1")
}

/// Runs a script from the beginning.
pub fn fold(script: impl IntoIterator<Item = Line>) -> Run {
    let mut run = Run { assembler: Assembler::new(session()), builder: new_builder(), next: 0 };
    run.apply_all(script);
    run
}

/// Runs a script inside a turn that a prompt began.
pub fn reply(script: impl IntoIterator<Item = Line>) -> Run {
    fold([prompt("p1")].into_iter().chain(script))
}

/// The events of a script.
pub fn events(script: impl IntoIterator<Item = Line>) -> Vec<Event> {
    script.into_iter().zip(0..).map(|(line, nth)| line.event(nth)).collect()
}

impl Run {
    pub fn apply(&mut self, line: Line) -> Vec<Change> {
        let event = line.event(self.next);
        self.next += 1;
        let changes = self.assembler.apply(event);
        self.builder.apply_all(changes.clone());
        changes
    }

    pub fn apply_all(&mut self, script: impl IntoIterator<Item = Line>) {
        for line in script {
            self.apply(line);
        }
    }

    pub fn transcript(&self) -> Transcript {
        self.builder.transcript()
    }

    /// The last turn.
    pub fn turn(&self) -> Turn {
        self.transcript().turns.pop().unwrap()
    }

    /// The parts of the last turn.
    pub fn parts(&self) -> Vec<String> {
        shown(&self.turn())
    }

    /// The parts of every turn.
    pub fn turns(&self) -> Vec<Vec<String>> {
        self.transcript().turns.iter().map(shown).collect()
    }

    pub fn tool(&self, call: &str) -> Tool {
        let turns = self.transcript().turns;
        let mut parts = turns.into_iter().flat_map(|turn| turn.parts);
        parts.find_map(|part| as_tool(&part).filter(|tool| tool.call_id == call)).unwrap()
    }

    pub fn state(&self) -> &'static str {
        self.turn().state.name()
    }

    pub fn skipped(&self, kind: SkipReason) -> u64 {
        self.builder.skip_counts().find(|(odd, _)| *odd == kind).map_or(0, |(_, count)| count)
    }

    /// Continues as a new process would: rebuilds the assembler from the stored transcript.
    pub fn restarted(&self) -> Run {
        let assembler = Assembler::resume(&self.builder.rows());
        Run { assembler, builder: self.builder.clone(), next: self.next }
    }
}

// ── Builders ────────────────────────────────────────────────────────────────────────────────────

pub fn prompt_name(id: &str) -> Name {
    Name::Prompt(id.into())
}

pub fn record(id: &str) -> Name {
    Name::Record(id.into())
}

pub fn message(id: &str) -> Name {
    Name::Message(id.into())
}

pub fn block(message: &str, index: u32) -> Name {
    Name::Block(message.into(), index)
}

pub fn words(text: &str) -> Body {
    Body::Text(Text { text: text.to_owned(), ..Text::default() })
}

pub fn prompt(id: &str) -> Line {
    started(vec![prompt_name(id)], vec![words(id)])
}

pub fn started(names: Vec<Name>, user: Vec<Body>) -> Line {
    EventKind::TurnStarted { names, trigger: Trigger::User, user }.into()
}

pub fn over(reason: EndReason) -> Line {
    EventKind::TurnEnded(reason).into()
}

pub fn step(id: &str) -> Line {
    EventKind::StepStarted { step: message(id), model: Some("m".to_owned()) }.into()
}

pub fn step_over(id: &str) -> Line {
    EventKind::StepEnded { step: message(id), stop_reason: None }.into()
}

pub fn grew(prose_kind: ProseKind, text: &str) -> Line {
    EventKind::ProseDelta { prose_kind, block: None, text: text.to_owned() }.into()
}

pub fn grew_in(prose_kind: ProseKind, block: Name, text: &str) -> Line {
    EventKind::ProseDelta { prose_kind, block: Some(block), text: text.to_owned() }.into()
}

pub fn said(prose_kind: ProseKind, text: &str) -> Line {
    said_with(prose_kind, None, text, ProseDetail::default())
}

pub fn said_in(prose_kind: ProseKind, block: Name, text: &str) -> Line {
    said_with(prose_kind, Some(block), text, ProseDetail::default())
}

pub fn said_with(
    prose_kind: ProseKind,
    block: Option<Name>,
    text: &str,
    detail: ProseDetail,
) -> Line {
    EventKind::ProseCompleted { prose_kind, block, text: text.to_owned(), detail }.into()
}

pub fn block_begun(block: Name) -> Line {
    EventKind::BlockStarted { block }.into()
}

pub fn block_over(block: Name) -> Line {
    EventKind::BlockEnded { block }.into()
}

pub fn call_id(id: &str) -> CallRef {
    CallRef::Id(id.into())
}

pub fn called(id: &str, name: &str) -> Line {
    called_with(id, name, r#"{"q":1}"#)
}

pub fn called_with(id: &str, name: &str, input: &str) -> Line {
    let input = Json::parse(input);
    EventKind::ToolCalled(Box::new(ToolCall {
        call: call_id(id),
        parent_call_id: None,
        name: name.to_owned(),
        content_hash: content_hash(name, input.as_ref()),
        input,
        provider_executed: false,
        title: None,
        running: true,
    }))
    .into()
}

pub fn tool_started(id: &str) -> Line {
    EventKind::ToolStarted { call: call_id(id) }.into()
}

pub fn input_grew(id: &str, name: &str, text: &str) -> Line {
    let (call, name, text) = (call_id(id), name.to_owned(), text.to_owned());
    EventKind::ToolInputDelta { call, name, text }.into()
}

pub fn output_grew(id: &str, text: &str) -> Line {
    EventKind::ToolOutputDelta { call: call_id(id), text: text.to_owned() }.into()
}

pub fn ended(id: &str, end: ToolEnd, output: &str) -> Line {
    let output = (!output.is_empty()).then(|| output.to_owned());
    let outcome = ToolOutcome { output, ..ToolOutcome::default() };
    EventKind::ToolEnded { call: call_id(id), end, outcome }.into()
}

pub fn refined(id: &str, outcome: ToolOutcome) -> Line {
    EventKind::ToolRefined { call: call_id(id), outcome }.into()
}

pub fn question(request: Option<&str>, text: &str) -> Question {
    Question {
        request_id: request.map(str::to_owned),
        kind: QuestionKind::Permission,
        items: vec![QuestionItem { question: text.to_owned(), ..QuestionItem::default() }],
    }
}

pub fn ask_question(id: &str, question: Question) -> Line {
    EventKind::QuestionAsked {
        call: call_id(id),
        tool: "Bash".to_owned(),
        question,
        requested: true,
        inferred: false,
    }
    .into()
}

pub fn answered(id: &str, decision: Decision) -> Line {
    let answer = Answer {
        decision,
        text: decision.name().to_owned(),
        choices: Vec::new(),
        observed: true,
        by: None,
    };
    EventKind::QuestionAnswered { call: call_id(id), answer }.into()
}

pub fn agent_of(call: &str, id: &str) -> AgentRef {
    let some = |text: &str| (!text.is_empty()).then(|| Arc::<str>::from(text));
    AgentRef { call: some(call), id: some(id) }
}

pub fn agent_started(call: &str, id: &str) -> Line {
    agent_begun(call, id, false)
}

pub fn background_started(call: &str, id: &str) -> Line {
    agent_begun(call, id, true)
}

fn agent_begun(call: &str, id: &str, background: bool) -> Line {
    let (name, task) = ("Explore".to_owned(), "look".to_owned());
    EventKind::AgentStarted { agent: agent_of(call, id), name, task, background }.into()
}

pub fn agent_went_on(call: &str, id: &str) -> Line {
    let agent = agent_of(call, id);
    EventKind::AgentProgressed { agent, activity: None, background: true }.into()
}

pub fn agent_ended(call: &str, id: &str, end: AgentEnd) -> Line {
    EventKind::AgentEnded { agent: agent_of(call, id), end }.into()
}

pub fn notice(name: Option<&str>, code: &str) -> Line {
    let notice = Notice { code: code.to_owned(), text: code.to_owned() };
    EventKind::Part(name.map(record), Body::Notice(notice)).into()
}

pub fn failed(name: Option<&str>, text: &str) -> Line {
    let failure = Failure { text: text.to_owned(), ..Failure::default() };
    EventKind::Part(name.map(record), Body::Error(failure)).into()
}

pub fn data(name: Option<&str>, kind: &str, payload: &str) -> Line {
    let payload = Json::parse(payload).unwrap();
    EventKind::Part(name.map(record), Body::Data(Data { kind: kind.to_owned(), payload })).into()
}
