//! Remembers what was sent of each turn and writes frames for the rest.

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
    /// In turn order.
    pub told: Vec<ToldTurn>,
}

/// What was sent of a turn.
pub struct ToldTurn {
    pub id: TurnId,
    /// The turn id used in its message ids.
    name: TurnId,
    /// A digest of the user's parts.
    user: Option<u64>,
    /// True if its reply was started.
    begun: bool,
    parts: Vec<ToldPart>,
    ended: Option<TurnState>,
}

impl ToldTurn {
    fn new(id: TurnId) -> ToldTurn {
        ToldTurn { id, name: id, user: None, begun: false, parts: Vec::new(), ended: None }
    }
}

/// What was sent of a part.
#[derive(Clone)]
struct ToldPart {
    id: PartId,
    kind: Kind,
    /// Bytes sent of its text, and of a tool's input and output while they grow.
    text: usize,
    input: usize,
    output: usize,
    /// Digests of what is sent as a whole.
    call: u64,
    result: u64,
    data: u64,
}

impl ToldPart {
    fn new(part: &Part) -> ToldPart {
        let (id, kind) = (part.id, part.body.kind());
        ToldPart { id, kind, text: 0, input: 0, output: 0, call: 0, result: 0, data: 0 }
    }
}

/// The text of a part that consists of text only.
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

    /// Starts the channel over.
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

    /// Applies renamed turn ids. None if two sent turns became one: there is no frame for a removed
    /// message.
    pub fn rename(&mut self, became: &FxHashMap<TurnId, TurnId>) -> Option<()> {
        let mut seen = FxHashSet::default();
        for told in &mut self.told {
            // A chain of renames is at most this long.
            for _ in 0..became.len() {
                told.id = became.get(&told.id).copied().unwrap_or(told.id);
            }
            seen.insert(told.id).then_some(())?;
        }
        Some(())
    }

    /// Encodes what is new of the turn at this index.
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

    /// Encodes what is new of a turn. None if that needs a full snapshot.
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
        // A reply starts with its first part or its end.
        let begins = !told.begun && (!parts.is_empty() || ended.is_some());
        let renamed = told.name != id;
        let mut anew = renamed || touched.anew.contains(&id);
        // Do not digest the user's parts with every delta of the reply.
        let user = match first || touched.heads.contains(&id) {
            true => (!turn.user.is_empty()).then(|| fingerprint(&turn.user)),
            false => told.user,
        };
        let asks = told.user.is_none() && user.is_some();
        // A new message comes last, so its turn must be the last.
        if (begins || asks) && !first {
            last.then_some(())?;
        }
        if told.user != user || (renamed && user.is_some()) {
            // The user's message precedes the reply: a sent reply is replaced and sent again.
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
        // An ended message is restarted if there is more to send.
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

    /// True if there are frames to send.
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

    /// A `message.delta`: text from an offset, or the whole part.
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
        // Sent even if empty: redacted reasoning has no text.
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
        // The final state is sent with the result.
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
