//! Telling: what was told of each turn, and the frames for what was not.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use serde_json::{Map, Value, json};
use unspool_core::document::{AnswerDocument, BodyDocument, QuestionDocument};
use unspool_core::id::{PartId, TurnId, digest};
use unspool_core::part::{Body, Kind, Part, Tool, ToolState};
use unspool_core::session::{Session, Turn, TurnState};
use unspool_store::rows::user_part_id;

use super::Touched;

pub struct Teller {
    agent: String,
    pub seq: u64,
    /// In the order in which they stand.
    pub told: Vec<ToldTurn>,
}

/// What was told of a turn.
pub struct ToldTurn {
    pub id: TurnId,
    /// The id that its messages were told under.
    name: TurnId,
    /// A digest of what the user said.
    user: Option<u64>,
    /// Whether its reply was begun.
    begun: bool,
    parts: Vec<ToldPart>,
    ended: Option<TurnState>,
}

impl ToldTurn {
    /// Nothing was told yet.
    fn new(id: TurnId) -> ToldTurn {
        ToldTurn { id, name: id, user: None, begun: false, parts: Vec::new(), ended: None }
    }
}

/// What was told of a part.
#[derive(Clone)]
struct ToldPart {
    id: PartId,
    kind: Kind,
    /// How much of its text; of a tool's input and output while they grow.
    text: usize,
    input: usize,
    output: usize,
    /// Digests of what is told as a whole.
    call: u64,
    result: u64,
    data: u64,
}

impl ToldPart {
    /// Nothing was told yet.
    fn new(part: &Part) -> ToldPart {
        let (id, kind) = (part.id, part.body.kind());
        ToldPart { id, kind, text: 0, input: 0, output: 0, call: 0, result: 0, data: 0 }
    }
}

/// The words of a part that has nothing but words.
pub fn prose(body: &Body) -> Option<&str> {
    match body {
        Body::Text(text) => Some(&text.text),
        Body::Reasoning(reasoning) => Some(&reasoning.text),
        Body::Tool(_)
        | Body::Agent(_)
        | Body::Interjection(_)
        | Body::TaskList(_)
        | Body::SkillLoad(_)
        | Body::McpSnapshot(_)
        | Body::ContextInfo(_)
        | Body::Compaction(_)
        | Body::File(_)
        | Body::Source(_)
        | Body::Patch(_)
        | Body::Notice(_)
        | Body::Error(_)
        | Body::Data(_) => None,
    }
}

fn fingerprint(of: &impl Serialize) -> u64 {
    digest(&serde_json::to_vec(of).unwrap_or_default())
}

fn message(turn: TurnId, side: &str) -> String {
    format!("{turn}:{side}")
}

const USER: &str = "user";
const REPLY: &str = "assistant";

impl Teller {
    pub fn new(agent: &str) -> Teller {
        Teller { agent: agent.to_owned(), seq: 0, told: Vec::new() }
    }

    /// Whatever was told counts no more.
    pub fn begin_channel(&mut self, session: &Session, frames: &mut Vec<Value>) {
        self.told.clear();
        let head = json!({ "session": session.id, "agent": session.agent });
        self.say(frames, "channel.start", head);
    }

    fn say(&mut self, frames: &mut Vec<Value>, kind: &str, fields: Value) {
        self.seq += 1;
        let mut frame = Map::new();
        frame.insert("type".to_owned(), kind.into());
        frame.insert("seq".to_owned(), self.seq.into());
        if let Value::Object(fields) = fields {
            frame.extend(fields);
        }
        frames.push(Value::Object(frame));
    }

    /// Follows turns that are another now. None if two that were told are one: there is no frame
    /// for what is gone.
    pub fn rename(&mut self, became: &FxHashMap<TurnId, TurnId>) -> Option<()> {
        let mut seen = FxHashSet::default();
        for told in &mut self.told {
            // A chain of names is as long as there are names.
            for _ in 0..became.len() {
                told.id = became.get(&told.id).copied().unwrap_or(told.id);
            }
            seen.insert(told.id).then_some(())?;
        }
        Some(())
    }

    /// Tells what is new of the turn at this place.
    pub fn turn_at(
        &mut self,
        at: usize,
        turn: &Turn,
        touched: &Touched,
        frames: &mut Vec<Value>,
    ) -> Option<()> {
        let last = at + 1 >= self.told.len();
        let told = (at < self.told.len()).then(|| self.told.remove(at));
        let told = self.turn(turn, told, last, touched, frames)?;
        self.told.insert(at, told);
        Some(())
    }

    /// Tells what is new of a turn. None where it cannot be told but from the very beginning.
    pub fn turn(
        &mut self,
        turn: &Turn,
        told: Option<ToldTurn>,
        last: bool,
        touched: &Touched,
        frames: &mut Vec<Value>,
    ) -> Option<ToldTurn> {
        let (id, first) = (turn.id, told.is_none());
        let mut told = told.unwrap_or(ToldTurn::new(id));
        let parts: Vec<&Part> = turn.parts.iter().filter(|part| !part.origin.foreign).collect();
        let ended = (turn.state != TurnState::Running).then_some(turn.state);
        // A reply begins with something that is said.
        let begins = !told.begun && (!parts.is_empty() || ended.is_some());
        let renamed = told.name != id;
        let mut anew = renamed || touched.anew.contains(&id);
        // With every word of a reply, nothing is computed of what the user said.
        let user = match first || touched.heads.contains(&id) {
            true => (!turn.user.is_empty()).then(|| fingerprint(&turn.user)),
            false => told.user,
        };
        let asks = told.user.is_none() && user.is_some();
        // What begins stands behind all others, and so must its turn.
        if (begins || asks) && !first {
            last.then_some(())?;
        }
        if told.user != user || (renamed && user.is_some()) {
            // What the user said stands before the reply: one that was told gives way and comes again.
            let gives_way = asks && told.begun;
            let old = if gives_way { REPLY } else { USER };
            let replaces = (gives_way || (renamed && !asks)).then(|| message(told.name, old));
            self.user(turn, replaces, frames);
            told.user = user;
            anew |= gives_way;
        }
        let is =
            |part: &&Part, told: &ToldPart| part.id == told.id && part.body.kind() == told.kind;
        let mut held = told.parts.iter().enumerate();
        anew |= !held.all(|(at, told)| parts.get(at).is_some_and(|part| is(part, told)));
        // What was ended is begun again if there is more to say.
        anew |= told.ended.is_some()
            && (told.ended != ended || self.has_news(id, &parts, &told.parts, touched));
        if begins || (anew && told.begun) {
            let replaces = (renamed && told.begun).then(|| message(told.name, REPLY));
            self.begin(id, REPLY, replaces, frames);
            told = ToldTurn { begun: true, parts: Vec::new(), ended: None, ..told };
        }
        told.name = id;
        self.parts(id, &parts, &mut told.parts, touched, frames);
        if ended.is_some() && told.ended != ended {
            let end = json!({ "message": message(id, REPLY), "state": turn.state.name() });
            self.say(frames, "message.end", end);
            told.ended = ended;
        }
        Some(told)
    }

    /// Whether something would be told.
    fn has_news(
        &mut self,
        turn: TurnId,
        parts: &[&Part],
        told: &[ToldPart],
        touched: &Touched,
    ) -> bool {
        if parts.len() > told.len() {
            return true;
        }
        let (seq, mut frames) = (self.seq, Vec::new());
        self.parts(turn, parts, &mut told.to_vec(), touched, &mut frames);
        self.seq = seq;
        !frames.is_empty()
    }

    fn parts(
        &mut self,
        turn: TurnId,
        parts: &[&Part],
        told: &mut Vec<ToldPart>,
        touched: &Touched,
        frames: &mut Vec<Value>,
    ) {
        let name = message(turn, REPLY);
        for (at, part) in parts.iter().enumerate() {
            match told.get_mut(at) {
                Some(held) if touched.parts.contains(&part.id) => {
                    self.part(&name, part, held, false, frames);
                }
                Some(_) => {}
                None => {
                    let mut held = ToldPart::new(part);
                    self.part(&name, part, &mut held, true, frames);
                    told.push(held);
                }
            }
        }
    }

    fn begin(
        &mut self,
        turn: TurnId,
        role: &str,
        replaces: Option<String>,
        frames: &mut Vec<Value>,
    ) {
        let start = json!({
            "message": message(turn, role), "role": role, "turn": turn, "replaces": replaces,
        });
        self.say(frames, "message.start", start);
    }

    fn user(&mut self, turn: &Turn, replaces: Option<String>, frames: &mut Vec<Value>) {
        self.begin(turn.id, USER, replaces, frames);
        let name = message(turn.id, USER);
        for (nth, body) in turn.user.iter().enumerate() {
            let delta = self.delta(&name, user_part_id(turn.id, nth), body, 0);
            self.say(frames, "message.delta", delta);
        }
        self.say(frames, "message.end", json!({ "message": name, "state": "completed" }));
    }

    /// A part, its words from some place on.
    fn delta(&self, message: &str, part: PartId, body: &Body, from: usize) -> Value {
        let kind = body.kind().name();
        match prose(body) {
            Some(text) => {
                let text = text.get(from..).unwrap_or_default();
                json!({ "message": message, "part": part, "kind": kind, "text": text })
            }
            None => {
                let data = BodyDocument { agent: &self.agent, body };
                json!({ "message": message, "part": part, "kind": kind, "data": data })
            }
        }
    }

    fn part(
        &mut self,
        message: &str,
        part: &Part,
        held: &mut ToldPart,
        first: bool,
        frames: &mut Vec<Value>,
    ) {
        if let Body::Tool(tool) = &part.body {
            return self.tool(message, part.id, tool, held, first, frames);
        }
        let (from, data) = (held.text, held.data);
        match prose(&part.body) {
            Some(text) => held.text = text.len(),
            None => held.data = fingerprint(&part.body),
        }
        // Also when it is empty: that something was thought is told.
        if first || held.text > from || held.data != data {
            let delta = self.delta(message, part.id, &part.body, from);
            self.say(frames, "message.delta", delta);
        }
    }

    fn tool(
        &mut self,
        message: &str,
        part: PartId,
        tool: &Tool,
        held: &mut ToldPart,
        first: bool,
        frames: &mut Vec<Value>,
    ) {
        let running = !tool.state.is_terminal();
        // What becomes of a call is told as its result.
        let state = if running { tool.state } else { ToolState::Running };
        let (input, asked) = (tool.input.as_ref(), (&tool.question, &tool.answer));
        let call = fingerprint(&(&tool.name, &tool.title, input, state, asked));
        let id = if tool.call_id.is_empty() { part.to_string() } else { tool.call_id.clone() };
        if first || call != held.call {
            held.call = call;
            let frame = json!({
                "message": message, "part": part, "tool_call_id": id, "name": tool.name,
                "title": tool.title, "input": input, "state": state.name(),
                "question": tool.question.as_ref().map(QuestionDocument),
                "answer": tool.answer.as_ref().map(AnswerDocument),
            });
            self.say(frames, "message.tool_call", frame);
        }
        let output = tool.output.as_deref().unwrap_or_default();
        let input = if input.is_none() { tool.input_text.as_str() } else { "" };
        let growing =
            [("tool-input", input, &mut held.input), ("tool-output", output, &mut held.output)];
        for (kind, text, told) in growing {
            if let Some(more) = text.get(*told..).filter(|more| running && !more.is_empty()) {
                *told = text.len();
                let delta = json!({ "message": message, "part": part, "kind": kind, "text": more });
                self.say(frames, "message.delta", delta);
            }
        }
        let result = fingerprint(&(tool.state, &tool.output, tool.exit_code));
        if !running && result != held.result {
            held.result = result;
            let frame = json!({
                "message": message, "part": part, "tool_call_id": id,
                "is_error": tool.state != ToolState::Completed, "state": tool.state.name(),
                "output": tool.output, "exit_code": tool.exit_code,
            });
            self.say(frames, "message.tool_result", frame);
        }
    }
}
