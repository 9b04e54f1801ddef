//! Remembers what was sent of each turn and writes frames for the rest.

use rustc_hash::FxHashSet;
use serde::Serialize;
use serde_json::{Map, Value, json};
use unspool_model::change::Touched;
use unspool_model::document::BodyDocument;
use unspool_model::id::{PartId, TurnId, digest};
use unspool_model::part::{Body, Kind, Part, Tool};
use unspool_model::session::{Session, Turn, TurnState};
use unspool_store::rows::user_part_id;

use super::frame_parts::{call_fields, frame_kind, result_fields};

pub struct FrameWriter {
    agent: String,
    pub seq: u64,
    /// In turn order.
    pub sent: Vec<SentTurn>,
}

/// What was sent of a turn.
pub struct SentTurn {
    pub id: TurnId,
    /// The turn id used in its message ids.
    name: TurnId,
    /// A digest of the user's parts.
    user: Option<u64>,
    /// True if its reply was started.
    begun: bool,
    parts: Vec<SentPart>,
    ended: Option<TurnState>,
}

impl SentTurn {
    fn new(id: TurnId) -> SentTurn {
        SentTurn { id, name: id, user: None, begun: false, parts: Vec::new(), ended: None }
    }
}

/// What was sent of a part.
#[derive(Clone)]
struct SentPart {
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

impl SentPart {
    fn new(part: &Part) -> SentPart {
        let (id, kind) = (part.id, part.body.kind());
        SentPart { id, kind, text: 0, input: 0, output: 0, call: 0, result: 0, data: 0 }
    }
}

fn fingerprint(of: &impl Serialize) -> u64 {
    digest(&serde_json::to_vec(of).unwrap_or_default())
}

fn message_id(turn: TurnId, side: &str) -> String {
    format!("{turn}:{side}")
}

const USER: &str = "user";
const REPLY: &str = "assistant";

impl FrameWriter {
    pub fn new(agent: &str) -> FrameWriter {
        FrameWriter { agent: agent.to_owned(), seq: 0, sent: Vec::new() }
    }

    /// Starts the channel over.
    pub fn begin_channel(&mut self, session: &Session, frames: &mut Vec<Value>) {
        self.sent.clear();
        let head = json!({ "session": session.id, "agent": session.agent });
        self.push_frame(frames, "channel.start", head);
    }

    fn push_frame(&mut self, frames: &mut Vec<Value>, kind: &str, fields: Value) {
        self.seq += 1;
        let mut frame = Map::new();
        frame.insert("type".to_owned(), kind.into());
        frame.insert("seq".to_owned(), self.seq.into());
        if let Value::Object(fields) = fields {
            frame.extend(fields);
        }
        frames.push(Value::Object(frame));
    }

    /// Forgets what was sent of the parts of these turns, which are among the `last` ones. They are
    /// sent again or never.
    pub fn forget_parts(&mut self, turns: &FxHashSet<TurnId>, last: usize) {
        let last = self.sent.iter_mut().rev().take(last);
        for sent in last.filter(|sent| turns.contains(&sent.id)) {
            sent.parts = Vec::new();
        }
    }

    /// Applies renamed turn ids. None if two sent turns became one: there is no frame for a removed
    /// message.
    pub fn rename(&mut self, renamed: &[(TurnId, TurnId)]) -> Option<()> {
        for (turn, to) in renamed {
            for sent in self.sent.iter_mut().filter(|sent| sent.id == *turn) {
                sent.id = *to;
            }
        }
        let mut seen = FxHashSet::default();
        self.sent.iter().all(|sent| seen.insert(sent.id)).then_some(())
    }

    /// Encodes what is new of the turn at this index.
    pub fn turn_at(
        &mut self,
        at: usize,
        turn: &Turn,
        touched: &Touched,
        frames: &mut Vec<Value>,
    ) -> Option<()> {
        let last = at + 1 >= self.sent.len();
        let sent = (at < self.sent.len()).then(|| self.sent.remove(at));
        let sent = self.turn(turn, sent, last, touched, frames)?;
        self.sent.insert(at, sent);
        Some(())
    }

    /// Encodes what is new of a turn. None if that needs a full snapshot.
    pub fn turn(
        &mut self,
        turn: &Turn,
        sent: Option<SentTurn>,
        last: bool,
        touched: &Touched,
        frames: &mut Vec<Value>,
    ) -> Option<SentTurn> {
        let (id, first) = (turn.id, sent.is_none());
        let mut sent = sent.unwrap_or(SentTurn::new(id));
        let parts: Vec<&Part> = turn.parts.iter().filter(|part| !part.origin.is_hidden()).collect();
        let ended = (turn.state != TurnState::Running).then_some(turn.state);
        // A reply starts with its first part or its end.
        let begins = !sent.begun && (!parts.is_empty() || ended.is_some());
        let renamed = sent.name != id;
        let mut restart = renamed || touched.rewritten.contains(&id);
        // Do not digest the user's parts with every delta of the reply.
        let user = match first || touched.heads.contains(&id) {
            true => (!turn.user.is_empty()).then(|| fingerprint(&turn.user)),
            false => sent.user,
        };
        let asks = sent.user.is_none() && user.is_some();
        // A new message comes last, so its turn must be the last.
        if (begins || asks) && !first {
            last.then_some(())?;
        }
        if sent.user != user || (renamed && user.is_some()) {
            // The user's message precedes the reply: a sent reply is replaced and sent again.
            let gives_way = asks && sent.begun;
            let old = if gives_way { REPLY } else { USER };
            let replaces = (gives_way || (renamed && !asks)).then(|| message_id(sent.name, old));
            self.user(turn, replaces, frames);
            sent.user = user;
            restart |= gives_way;
        }
        let is =
            |part: &&Part, sent: &SentPart| part.id == sent.id && part.body.kind() == sent.kind;
        let mut held = sent.parts.iter().enumerate();
        restart |= !held.all(|(at, sent)| parts.get(at).is_some_and(|part| is(part, sent)));
        // An ended message is restarted if there is more to send.
        restart |= sent.ended.is_some()
            && (sent.ended != ended || self.has_frames(id, &parts, &sent.parts, touched));
        if begins || (restart && sent.begun) {
            let replaces = (renamed && sent.begun).then(|| message_id(sent.name, REPLY));
            self.start_message(id, REPLY, replaces, frames);
            sent = SentTurn { begun: true, parts: Vec::new(), ended: None, ..sent };
        }
        sent.name = id;
        self.parts(id, &parts, &mut sent.parts, touched, frames);
        if ended.is_some() && sent.ended != ended {
            let end = json!({ "message": message_id(id, REPLY), "state": turn.state.name() });
            self.push_frame(frames, "message.end", end);
            sent.ended = ended;
        }
        Some(sent)
    }

    /// True if there are frames to send.
    fn has_frames(
        &mut self,
        turn: TurnId,
        parts: &[&Part],
        sent: &[SentPart],
        touched: &Touched,
    ) -> bool {
        if parts.len() > sent.len() {
            return true;
        }
        let (seq, mut frames) = (self.seq, Vec::new());
        self.parts(turn, parts, &mut sent.to_vec(), touched, &mut frames);
        self.seq = seq;
        !frames.is_empty()
    }

    fn parts(
        &mut self,
        turn: TurnId,
        parts: &[&Part],
        sent: &mut Vec<SentPart>,
        touched: &Touched,
        frames: &mut Vec<Value>,
    ) {
        let name = message_id(turn, REPLY);
        for (at, part) in parts.iter().enumerate() {
            match sent.get_mut(at) {
                Some(held) if touched.parts.contains(&part.id) => {
                    self.part(&name, part, held, false, frames);
                }
                Some(_) => {}
                None => {
                    let mut held = SentPart::new(part);
                    self.part(&name, part, &mut held, true, frames);
                    sent.push(held);
                }
            }
        }
    }

    fn start_message(
        &mut self,
        turn: TurnId,
        role: &str,
        replaces: Option<String>,
        frames: &mut Vec<Value>,
    ) {
        let start = json!({
            "message": message_id(turn, role), "role": role, "turn": turn, "replaces": replaces,
        });
        self.push_frame(frames, "message.start", start);
    }

    fn user(&mut self, turn: &Turn, replaces: Option<String>, frames: &mut Vec<Value>) {
        self.start_message(turn.id, USER, replaces, frames);
        let name = message_id(turn.id, USER);
        for (nth, body) in turn.user.iter().enumerate() {
            let delta = self.delta(&name, user_part_id(turn.id, nth), body, 0);
            self.push_frame(frames, "message.delta", delta);
        }
        self.push_frame(frames, "message.end", json!({ "message": name, "state": "completed" }));
    }

    /// A `message_id.delta`: text from an offset, or the whole part.
    fn delta(&self, message_id: &str, part: PartId, body: &Body, from: usize) -> Value {
        let kind = frame_kind(body.kind());
        match body.streamed_text() {
            Some(text) => {
                let text = text.get(from..).unwrap_or_default();
                json!({ "message": message_id, "part": part, "kind": kind, "text": text })
            }
            None => {
                let data = BodyDocument { agent: &self.agent, body };
                json!({ "message": message_id, "part": part, "kind": kind, "data": data })
            }
        }
    }

    fn part(
        &mut self,
        message_id: &str,
        part: &Part,
        held: &mut SentPart,
        first: bool,
        frames: &mut Vec<Value>,
    ) {
        if let Body::Tool(tool) = &part.body {
            return self.tool(message_id, part.id, tool, held, first, frames);
        }
        let (from, data) = (held.text, held.data);
        match part.body.streamed_text() {
            Some(text) => held.text = text.len(),
            None => held.data = fingerprint(&part.body),
        }
        // Sent even if empty: redacted reasoning has no text.
        if first || held.text > from || held.data != data {
            let delta = self.delta(message_id, part.id, &part.body, from);
            self.push_frame(frames, "message.delta", delta);
        }
    }

    fn tool(
        &mut self,
        message_id: &str,
        part: PartId,
        tool: &Tool,
        held: &mut SentPart,
        first: bool,
        frames: &mut Vec<Value>,
    ) {
        let running = !tool.state.is_terminal();
        let fields = call_fields(&self.agent, part, tool);
        let call = fingerprint(&fields);
        let input = tool.input.as_ref();
        if first || call != held.call {
            // A call frame says that the call runs: its result follows again.
            (held.call, held.result) = (call, Default::default());
            self.push_frame(frames, "message.tool_call", in_message(message_id, fields));
        }
        let output = tool.output.as_deref().unwrap_or_default();
        let input = if input.is_none() { tool.input_text.as_str() } else { "" };
        let growing =
            [("tool-input", input, &mut held.input), ("tool-output", output, &mut held.output)];
        for (kind, text, sent) in growing {
            if let Some(more) = text.get(*sent..).filter(|more| running && !more.is_empty()) {
                *sent = text.len();
                let delta =
                    json!({ "message": message_id, "part": part, "kind": kind, "text": more });
                self.push_frame(frames, "message.delta", delta);
            }
        }
        let result = fingerprint(&(tool.state, &tool.output, tool.exit_code));
        if !running && result != held.result {
            held.result = result;
            let fields = result_fields(&self.agent, part, tool);
            let frame = in_message(message_id, fields);
            self.push_frame(frames, "message.tool_result", frame);
        }
    }
}

/// The fields of a frame of a message.
fn in_message(message_id: &str, fields: Map<String, Value>) -> Value {
    let mut all = Map::from_iter([("message".to_owned(), message_id.into())]);
    all.extend(fields);
    Value::Object(all)
}
