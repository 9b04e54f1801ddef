//! ThoughtFlow: a session as runs of dependent steps, as one JSON document (R-002-04).
//! docs/thoughtflow.md describes the mapping.

mod address;
mod document;
mod payload;
mod prompt;
mod recorded;
mod recorded_steps;
mod run;
mod step_text;

use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::Value;
use unspool_model::document::time;
use unspool_model::id::Id;
use unspool_model::json::Json;
use unspool_model::part::{Body, Part};
use unspool_model::session::{Session, Turn};

use recorded::PromptLog;
use run::PromptSources;

use super::{Options, ProjectError, Projection, SessionStream, WriteMethod};
pub use address::{address_of_step, part_of_step};
pub use document::{Conversation, Depends, Document, FlowStep, Head, Label, Status, UnknownStep};
pub use step_text::{
    MAX_TITLE_CHARS, MAX_TOOLTIP_CHARS, StepText, first_sentence, format_duration,
};

pub const PROJECTION: Projection = Projection {
    name: "thoughtflow",
    title: "ThoughtFlow (JSON)",
    extension: "json",
    media_type: "application/json",
    about: "runs, their steps and dependencies, as ThoughtFlow's consolidated JSON",
    has_notes: false,
    has_turns: false,
    method: WriteMethod::Projected(write),
};

/// The agent of sessions imported from ThoughtFlow, and the kind of the data part with their
/// session-level fields.
const AGENT: &str = "thoughtflow";
const SESSION_DATA_KIND: &str = "thoughtflow-session";
/// The same for conversation-level fields.
const CONVERSATION_DATA_KIND: &str = "thoughtflow-conversation";

/// The runs of a session, one at a time.
pub struct Flow<'a> {
    pub head: Head,
    session: Session,
    stream: SessionStream<'a>,
    /// The turn number of the last run.
    number: u32,
    /// Cache of snapshot contents by digest.
    snapshots: FxHashMap<String, Option<Json>>,
    /// What the agent recorded of its prompts.
    prompts: Option<PromptLog>,
    /// Conversations of other programs are given back as they were.
    gives_back: bool,
}

impl<'a> Flow<'a> {
    pub fn new(mut stream: SessionStream<'a>) -> Result<Flow<'a>, ProjectError> {
        // Before the first turn is read: a secret in a prompt may be in a turn, too.
        let prompts = stream.prompts()?.map(PromptLog::new);
        // A document starts with its first run, whichever session that was copied from.
        let copied = stream.inherited_start();
        // A document of another program keeps the id that it gave.
        let session = &stream.head.session;
        let given = Some(&session.agent_session_id)
            .filter(|given| session.agent == AGENT && given.parse::<Id>().is_err());
        let head = Head {
            session_id: given.map_or_else(|| session.id.to_string(), Clone::clone),
            started_at: time(copied.into_iter().chain(stream.head.started).min()),
            ended_at: time(stream.head.ended),
        };
        Ok(Flow {
            head,
            session: stream.head.session.clone(),
            stream,
            number: 0,
            snapshots: FxHashMap::default(),
            prompts,
            gives_back: true,
        })
    }

    /// Every run from its parts, whose ids its steps have: for links to them.
    pub fn from_parts(self) -> Flow<'a> {
        Flow { gives_back: false, ..self }
    }

    pub fn next_run(&mut self) -> Result<Option<Conversation>, ProjectError> {
        let Some(mut turn) = self.stream.next_turn()? else { return Ok(None) };
        if self.session.agent == AGENT && turn.number == 0 {
            self.restore_session(&mut turn);
            if turn.parts.is_empty() && turn.steps.is_empty() && turn.user.is_empty() {
                return self.next_run();
            }
        }
        if let Some(written) = self.written(&turn)? {
            self.number = turn.number;
            return Ok(Some(written));
        }
        let channel = channel(&mut turn);
        self.number = turn.number;
        let Flow { session, stream, snapshots, prompts, .. } = self;
        let mut failed = None;
        let mut content = |sha256: &str| {
            if let Some(content) = snapshots.get(sha256) {
                return content.clone();
            }
            let content = stream.snapshot(sha256).unwrap_or_else(|error| {
                failed = Some(error);
                None
            });
            snapshots.insert(sha256.to_owned(), content.clone());
            content
        };
        let conversation = {
            let mut sources = PromptSources { content: &mut content, log: prompts.as_mut() };
            run::conversation(session, channel, &turn, &mut sources)
        };
        failed.map_or(Ok(Some(conversation)), Err)
    }

    /// The conversation as another program wrote it. None of its steps follows from a part: they have
    /// ids, times and fields of their own.
    fn written(&self, turn: &Turn) -> Result<Option<Conversation>, ProjectError> {
        let source = turn.parts.iter().rev().find_map(|part| {
            let Body::Data(data) = &part.body else { return None };
            let kept =
                Some(data.payload.value()).filter(|_| data.kind == CONVERSATION_DATA_KIND)?;
            kept["source"].as_str().map(str::to_owned)
        });
        let Some(source) = source
            .filter(|_| self.gives_back && self.session.agent_session_id == self.head.session_id)
        else {
            return Ok(None);
        };
        let written = self.stream.snapshot(&source)?;
        Ok(written.and_then(|written| {
            let run: Conversation = written.read()?;
            Some(Conversation { source: Some(written), ..run })
        }))
    }

    /// An imported document keeps its agent name in a data part before the first prompt. Restores
    /// the name, and drops the part unless it holds more.
    fn restore_session(&mut self, turn: &mut Turn) {
        turn.parts.retain(|part| {
            let Body::Data(data) = &part.body else { return true };
            let kept: Option<serde_json::Map<String, Value>> = data.payload.read();
            let Some(kept) = kept.filter(|_| data.kind == SESSION_DATA_KIND) else { return true };
            let name = kept.get("name").and_then(Value::as_str);
            name.map(|name| self.session.agent = name.to_owned()).is_none() || kept.len() > 1
        });
    }

    /// The number of the turn that was the last run.
    pub fn number(&self) -> u32 {
        self.number
    }

    pub fn document(mut self) -> Result<Document, ProjectError> {
        let mut conversations = Vec::new();
        while let Some(run) = self.next_run()? {
            conversations.push(run);
        }
        Ok(Document { head: self.head, conversations })
    }
}

/// Writes one line per step, so that documents can be compared with a line diff.
fn write(stream: SessionStream<'_>, _: &Options, out: &mut dyn Write) -> Result<(), ProjectError> {
    let mut flow = Flow::new(stream)?;
    write_list_start(out, &flow.head, "conversations")?;
    let mut between = "\n";
    while let Some(mut run) = flow.next_run()? {
        out.write_all(between.as_bytes())?;
        between = ",\n";
        if run.source.is_some() {
            out.write_all(to_json(&run)?.as_bytes())?;
            continue;
        }
        let steps = std::mem::take(&mut run.steps);
        let head = to_json(&run)?;
        // `steps` is the last field and empty here: strip its end and append the steps.
        out.write_all(head.strip_suffix("]}").unwrap_or(&head).as_bytes())?;
        for (nth, step) in steps.iter().enumerate() {
            out.write_all(if nth == 0 { b"\n" } else { b",\n" })?;
            out.write_all(to_json(step)?.as_bytes())?;
        }
        out.write_all(b"]}")?;
    }
    out.write_all(b"]}\n")?;
    Ok(())
}

/// Writes an object up to its last field, the opened list.
fn write_list_start(
    out: &mut dyn Write,
    head: &impl Serialize,
    list: &str,
) -> Result<(), ProjectError> {
    let head = to_json(head)?;
    let head = head.strip_suffix('}').unwrap_or(&head);
    Ok(write!(out, "{head},\"{list}\":[")?)
}

fn to_json(value: &impl Serialize) -> Result<String, ProjectError> {
    Ok(serde_json::to_string(value).map_err(io::Error::from)?)
}

/// The channel between user and agent. Only imported ThoughtFlow documents have another one than
/// `text`: it is moved from the data part back into its own field.
fn channel(turn: &mut Turn) -> String {
    let found = turn.parts.iter().enumerate().rev().find_map(|(at, part)| {
        let Body::Data(data) = &part.body else { return None };
        let kept = Some(data.payload.value()).filter(|_| data.kind == CONVERSATION_DATA_KIND)?;
        let channel = kept["fields"]["channel"].as_str()?.to_owned();
        Some((at, kept, channel))
    });
    let Some((at, mut kept, channel)) = found else { return "text".to_owned() };
    if let Value::Object(fields) = &mut kept["fields"] {
        fields.remove("channel");
        if fields.is_empty() {
            kept.as_object_mut().map(|kept| kept.remove("fields"));
        }
    }
    if kept.as_object().is_some_and(serde_json::Map::is_empty) {
        turn.parts.remove(at);
    } else if let Some(Part { body: Body::Data(data), .. }) = turn.parts.get_mut(at) {
        data.payload = Json::from(kept);
    }
    channel
}

#[cfg(test)]
#[path = "thoughtflow_tests.rs"]
mod tests;
