//! Small sessions written by hand, for the tests of the rules.

use jiff::Timestamp;
use serde_json::{Value, json};
use unspool_model::id::{Id, PartId, StepId, TurnId};
use unspool_model::json::Json;
use unspool_model::part::{Body, Part, Place, Text, Tool, ToolState};
use unspool_model::prompt::{
    CallTimes, MessageDigest, MessageList, Piece, PieceKind, PieceText, PromptCall, PromptMessage,
    PromptRecord, PromptTree, Role,
};
use unspool_model::provenance::{Name, Origin, Positions};
use unspool_model::session::{Step, Trigger, Turn, TurnOrigin, TurnState, Usage};

use super::{Finding, Found, History, HistoryBuilder, PromptFacts};

/// Seconds after the start of all sessions.
pub fn second(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

pub fn call(name: &str, input: Value, output: &str) -> Tool {
    Tool {
        name: name.to_owned(),
        state: ToolState::Completed,
        input: Some(Json::from(input)),
        output: Some(output.to_owned()),
        ..Tool::default()
    }
}

pub fn bash(command: &str, output: &str) -> Tool {
    call("Bash", json!({ "command": command }), output)
}

pub fn read(path: &str, output: &str) -> Tool {
    call("Read", json!({ "file_path": path }), output)
}

/// An edit with what Claude Code records of it.
pub fn edit(path: &str, old: &str, new: &str) -> Tool {
    let input = json!({ "file_path": path, "old_string": old, "new_string": new });
    call("Edit", input, "The file has been updated.")
}

pub fn failed(tool: Tool) -> Tool {
    Tool { state: ToolState::Failed, ..tool }
}

pub fn denied(tool: Tool) -> Tool {
    Tool { state: ToolState::Denied, ..tool }
}

/// It ran for so many milliseconds.
pub fn took(tool: Tool, duration_ms: u64) -> Tool {
    Tool { duration_ms: Some(duration_ms), ..tool }
}

pub fn prose(text: &str) -> Body {
    Body::Text(Text { text: text.to_owned(), ..Text::default() })
}

/// A turn of these parts, one second each, in one model call.
pub fn turn_of(number: u32, bodies: Vec<Body>) -> Turn {
    let step = StepId(Id::derive([b"step".as_slice(), &number.to_le_bytes()]));
    let start = i64::from(number) * 1000;
    let part = |(nth, body): (usize, Body)| Part {
        id: part_id(number, nth),
        place: Place(nth as i64),
        step: Some(step),
        started: Some(second(start + nth as i64)),
        ended: Some(second(start + nth as i64 + 1)),
        evidence: Vec::new(),
        origin: Origin::default(),
        body,
    };
    let count = bodies.len() as i64;
    Turn {
        id: TurnId(Id::derive([b"turn".as_slice(), &number.to_le_bytes()])),
        number,
        trigger: Trigger::User,
        user: vec![prose(&format!("prompt {number}"))],
        thinking_mode: false,
        state: TurnState::Completed,
        abandoned: false,
        inherited: false,
        started: Some(second(start)),
        ended: Some(second(start + count)),
        steps: vec![Step {
            id: step,
            name: Name::Preamble,
            at: Positions::default(),
            model: Some("model".into()),
            usage: Usage { input: 100, ..Usage::default() },
            stop_reason: None,
            request: None,
            provenance: None,
        }],
        parts: bodies.into_iter().enumerate().map(part).collect(),
        origin: TurnOrigin::default(),
    }
}

/// The id of the n-th part of a turn, from 0.
pub fn part_id(turn: u32, nth: usize) -> PartId {
    PartId(Id::derive([b"part".as_slice(), &turn.to_le_bytes(), &nth.to_le_bytes()]))
}

pub fn turn(number: u32, calls: Vec<Tool>) -> Turn {
    turn_of(number, calls.into_iter().map(|tool| Body::Tool(Box::new(tool))).collect())
}

pub fn builder(turns: &[Turn]) -> HistoryBuilder {
    let mut builder = HistoryBuilder::default();
    turns.iter().for_each(|turn| builder.add(turn));
    builder
}

pub fn history(turns: &[Turn]) -> History {
    builder(turns).finish()
}

/// What a rule says of a session of one turn.
pub fn found(find: fn(&History) -> Found, calls: Vec<Tool>) -> Vec<Finding> {
    find(&history(&[turn(1, calls)])).findings
}

/// The titles of what a rule says.
pub fn titles(find: fn(&History) -> Found, calls: Vec<Tool>) -> Vec<String> {
    found(find, calls).into_iter().map(|finding| finding.title).collect()
}

/// The parts that a finding names.
pub fn parts(finding: &Finding) -> Vec<PartId> {
    finding.evidence.iter().filter_map(|evidence| evidence.part).collect()
}

/// A prompt of a session: what it is made of.
pub struct TestPrompt {
    pub turn: u32,
    pub model: &'static str,
    /// The tools and the instruction files before the messages, with their lengths.
    pub tools: Vec<(&'static str, usize)>,
    pub files: Vec<&'static str>,
    /// The messages: a letter, repeated.
    pub messages: Vec<(char, usize)>,
}

impl TestPrompt {
    pub fn new(turn: u32, messages: &[(char, usize)]) -> TestPrompt {
        let messages = messages.to_vec();
        TestPrompt { turn, model: "model", tools: Vec::new(), files: Vec::new(), messages }
    }

    fn head(&self) -> PromptMessage {
        let mut pieces = Vec::new();
        for (tool, chars) in &self.tools {
            let text = "s".repeat(*chars);
            let kept = PieceText::Kept(text.clone());
            let mut piece = Piece::new(PieceKind::ToolSchema, "/tools/0".into(), kept, &text);
            piece.label = Some((*tool).to_owned());
            pieces.push(piece);
        }
        for file in &self.files {
            let kept = PieceText::Kept((*file).to_owned());
            let mut piece = Piece::new(PieceKind::Instructions, "/system/0".into(), kept, file);
            piece.label = Some((*file).to_owned());
            pieces.push(piece);
        }
        message(&format!("{:?} {:?}", self.tools, self.files), Role::Head, pieces)
    }
}

fn message(name: &str, role: Role, pieces: Vec<Piece>) -> PromptMessage {
    PromptMessage { digest: MessageDigest::of(name.as_bytes()), role, verified: true, pieces }
}

/// What the calls of a session were sent, the first call of each turn.
pub fn prompts(prompts: &[TestPrompt]) -> PromptFacts {
    let mut records = Vec::new();
    for (nth, prompt) in prompts.iter().enumerate() {
        let head = prompt.head();
        let mut tail = Vec::new();
        for (letter, chars) in &prompt.messages {
            let text = letter.to_string().repeat(*chars);
            let kept = PieceText::Kept(text.clone());
            let piece = Piece::new(PieceKind::HistoryText, "/content".into(), kept, &text);
            let message = message(&text, Role::User, vec![piece]);
            tail.push(message.digest);
            records.push(PromptRecord::Message(message));
        }
        records.push(PromptRecord::Call(PromptCall {
            request: nth.to_string().into(),
            at: None,
            model: Some(prompt.model.into()),
            head: Some(head.digest),
            base: None,
            keep: 0,
            tail,
            list: MessageList::Messages,
            gaps: Vec::new(),
        }));
        records.push(PromptRecord::Message(head));
    }
    let tree = PromptTree::new(records);
    let usage = Usage { cache_write: 1000, cache_read: 200, ..Usage::default() };
    let calls = tree.calls().zip(prompts);
    PromptFacts::new(calls.map(|(prompt, made)| crate::present::prompt::Call {
        prompt,
        step: Some((made.turn, 1)),
        no_reply: false,
        usage,
        times: CallTimes::default(),
    }))
}
