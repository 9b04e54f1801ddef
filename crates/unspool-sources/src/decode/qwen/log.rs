//! Qwen Code's session log: `projects/<folder>/chats/<session>.jsonl`, and for sub-agents
//! `subagents/<session>/agent-<agent>.jsonl`. One record is a whole model call, the result of a
//! call, a prompt or a note of the program; it is appended and never changed. Records form a tree
//! by `parentUuid`, in the order of the file.
//!
//! This file owns the state of the decoder, the turns, and what a log says about its session. The
//! model's records are decoded in `log/model.rs`, prompts in `log/user.rs`, and notes of the
//! program in `log/system.rs`.

mod model;
mod system;
mod user;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{EndReason, Event, EventKind};
use unspool_model::id::{SessionId, digest};
use unspool_model::part::{Body, Data};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::{ForkedFrom, Parent, Title, TitleOrigin, Trigger, Usage};

pub(super) use model::RETRY_TEXT;

use super::super::claude::Tree;
use super::super::{Decoder, Emitter, Fields, PromptNames, Record, RecordOutcome};
use super::{agent_session, turn_hash};

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LogDecoder {
    /// The last reported project, branch and version.
    reported: Option<[Option<String>; 3]>,
    /// The parent or the origin of the session was reported.
    named_origin: bool,
    /// The current turn was copied from the session that this one was forked from.
    inherited: bool,
    tree: Tree,
    prompts: PromptNames,
    /// Turns so far, by the hash of their first content.
    firsts: BTreeMap<u64, u32>,
    /// The current turn is named by its first content.
    first_named: bool,
    trigger: Trigger,
    /// The tools of calls without a result.
    calls: BTreeMap<Arc<str>, String>,
    /// Model calls of the turn so far.
    steps: u32,
    /// The current model call of a sub-agent, whose text and calls are several records.
    round: Option<Arc<str>>,
    /// Prose of the current model call so far: reasoning and text.
    prose: [u32; 2],
    /// The last record of the conversation is of the model.
    replied: bool,
    /// A reply was complete; its record follows.
    responded: bool,
    /// A call of the current reply ran or was answered: the model is told and goes on.
    goes_on: bool,
    /// The model has not said yet that it is done.
    running: bool,
    /// The current turn began with a summary; its command has not come yet.
    by_summary: bool,
    /// The user typed a command whose text for the model is the next prompt.
    by_command: bool,
    /// The current turn is a command that the program runs itself.
    is_command: bool,
    retries: u32,
    /// Model calls for a compaction, whose record follows: their names, models and tokens.
    compaction_calls: Vec<(Name, Option<String>, Usage)>,
    /// Failed requests of the turn, by their messages.
    failures: BTreeMap<u64, u32>,
}

impl Decoder for LogDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let uuid = fields.text("uuid");
        let mut emit = Emitter::new(Feed::Log, record, uuid.as_deref(), out);
        emit.at = fields.time("timestamp");
        if fields.is("type", "agent-meta") {
            return agent_meta(&mut emit, fields);
        }
        self.report_session(&mut emit, fields);
        self.report_origin(&mut emit, fields);
        // The stream has no prompts, so a turn is started once more, with a name by its content
        // (`name_by_content`). The assembler takes a second start for progress of the whole feed: what
        // follows in another file of the session would go into this turn, if it did not name its own.
        emit.turn = self.turn();
        let outcome = match fields.text("type").as_deref() {
            Some("user") => self.user(&mut emit, fields),
            Some("assistant") => self.assistant(&mut emit, fields),
            Some("tool_result") => self.tool_result(&mut emit, fields),
            Some("system") => self.system(&mut emit, fields),
            kind => self.data(&mut emit, kind.unwrap_or("record"), fields),
        };
        if let Some(uuid) = uuid {
            self.tree.note(digest(uuid.as_bytes()));
        }
        outcome
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    fn turn(&self) -> Option<Name> {
        self.tree.current().cloned()
    }
}

impl LogDecoder {
    fn report_session(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        let reported = ["cwd", "gitBranch", "version"].map(|name| fields.string(name));
        if reported[0].is_none() || self.reported.as_ref() == Some(&reported) {
            return;
        }
        self.reported = Some(reported.clone());
        let [project, branch, version] = reported;
        emit.push(EventKind::SessionUpdated { project, branch, version, cost: None });
    }

    /// Reports the session that started this one, or that this one was forked from.
    fn report_origin(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        if self.named_origin {
            return;
        }
        if let Some(parent) = fields.text("sessionId").filter(|_| fields.flag("isSidechain")) {
            let session = SessionId::of(super::NAME, &parent);
            let kind = fields.string("agentName");
            emit.push(EventKind::StartedBy(Parent { session, call_id: None, kind }));
            self.named_origin = true;
        } else if let Some(from) = fields.fields("forkedFrom").text("sessionId") {
            let session = SessionId::of(super::NAME, &from);
            emit.push(EventKind::BranchedOff(ForkedFrom { session, turn: None }));
            self.named_origin = true;
        }
    }

    /// Starts a turn.
    fn start(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        trigger: Trigger,
        words: &str,
        user: Vec<Body>,
    ) {
        // No compaction came of them.
        self.report_compaction_calls(emit);
        self.start_after_compaction(emit, fields, trigger, words, user);
    }

    /// Starts a turn, to which the model calls for a compaction belong.
    fn start_after_compaction(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        trigger: Trigger,
        words: &str,
        user: Vec<Body>,
    ) {
        self.rewind(emit, fields);
        // A prompt, not a record: equal words in two files of a session are two turns.
        let prompt = fields.text("uuid").map(|uuid| Name::Prompt(uuid.into()));
        let mut names: Vec<Name> = prompt.into_iter().collect();
        self.inherited = fields.has("forkedFrom");
        // Other feeds of a fork begin with its first prompt of its own.
        if !self.inherited && !words.trim().is_empty() {
            names.push(self.prompts.next(words));
        }
        self.tree.begin(names.first().cloned().unwrap_or(Name::Preamble));
        (self.steps, self.retries, self.prose) = (0, 0, [0, 0]);
        self.failures.clear();
        (self.replied, self.responded, self.round) = (false, false, None);
        (self.first_named, self.by_summary, self.running) = (false, false, true);
        self.trigger = trigger;
        self.is_command = false;
        emit.turn = None;
        emit.push(EventKind::TurnStarted { names, trigger, user });
        emit.turn = self.turn();
        if self.inherited {
            emit.push(EventKind::TurnInherited);
        }
    }

    /// Reports the turns that are abandoned if the parent of a record is in an earlier one.
    fn rewind(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        let turns = fields.text("parentUuid").map(|parent| self.tree.rewind(&parent));
        if let Some(turns) = turns.filter(|turns| !turns.is_empty()) {
            emit.push(EventKind::Rewound { turns });
        }
    }

    /// Names the turn by its first content as well: the stream has no prompts. It has the reports
    /// of agents, by which the turns are named that those start.
    fn name_by_content(&mut self, emit: &mut Emitter<'_>, kind: &str, content: &str) {
        let is_named = self.first_named || self.inherited || self.trigger == Trigger::Agent;
        let Some(turn) = self.tree.current().cloned().filter(|_| !is_named) else { return };
        self.first_named = true;
        let words = turn_hash(kind, content);
        let count = self.firsts.entry(words).or_default();
        let names = vec![turn, Name::ByContent(words, *count)];
        *count += 1;
        let (trigger, user) = (self.trigger, Vec::new());
        // Without a time: the turn began with its prompt.
        let at = emit.at.take();
        emit.push(EventKind::TurnStarted { names, trigger, user });
        emit.at = at;
    }

    fn end(&mut self, emit: &mut Emitter<'_>, reason: EndReason) {
        self.running = false;
        emit.push(EventKind::TurnEnded(reason));
    }

    fn data(&self, emit: &mut Emitter<'_>, kind: &str, fields: &Fields<'_>) -> RecordOutcome {
        let data = Data { kind: kind.to_owned(), payload: fields.whole() };
        emit.push(EventKind::Part(record_name(fields), Body::Data(data)));
        RecordOutcome::InParts
    }

    /// The id of an agent of this session; of a copied turn, that of the origin.
    fn agent_id(&self, fields: &Fields<'_>, agent: &str) -> String {
        agent_session(&call_session(fields), agent)
    }
}

/// The session that a record was first written in.
fn call_session<'a>(fields: &Fields<'a>) -> Cow<'a, str> {
    let origin = fields.fields("forkedFrom").text("sessionId");
    origin.or_else(|| fields.text("sessionId")).unwrap_or_default()
}

fn record_name(fields: &Fields<'_>) -> Option<Name> {
    fields.text("uuid").map(|uuid| Name::Record(uuid.into()))
}

/// The metadata file of a sub-agent: the call that started it, its type and its description.
fn agent_meta(emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
    let meta = fields.fields("meta");
    let root = meta.text("parentSessionId").unwrap_or_default();
    let parent = match meta.text("parentAgentId") {
        Some(agent) => agent_session(&root, &agent),
        None => root.into_owned(),
    };
    let session = SessionId::of(super::NAME, &parent);
    let (call_id, kind) = (meta.string("toolUseId"), meta.string("agentType"));
    emit.push(EventKind::StartedBy(Parent { session, call_id, kind }));
    if let Some(text) = meta.string("description").filter(|text| !text.trim().is_empty()) {
        emit.push(EventKind::TitleSet(Title { text, origin: TitleOrigin::Generated }));
    }
    RecordOutcome::Metadata
}
