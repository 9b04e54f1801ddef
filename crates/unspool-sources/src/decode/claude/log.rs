//! Claude Code's session log: `~/.claude/projects/<folder>/<session>.jsonl`. One record is one
//! content block, a result or a mark; the order of the file is the order of events (timestamps
//! are not monotonic). Records form a tree by `parentUuid`: a prompt whose parent is not the last
//! record is a rewind.
//!
//! This file owns the state of the decoder, and what a log says about its session. The records are
//! decoded in `log/`, and in `context.rs`.

mod flat;
mod messages;
mod turns;

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use unspool_model::event::{Event, EventKind};
use unspool_model::id::{SessionId, digest};
use unspool_model::part::Compaction;
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::{Parent, Title, TitleOrigin};

pub(super) use turns::interjection_hash;

use super::super::{Decoder, Emitter, Fields, PromptNames, Record, RecordOutcome, SideChain};
use super::chains::Chains;
use super::fork::ForkOrigin;
use super::message::{Blocks, Calls, message_text};
use super::prompts::Prompts;
use super::tree::Tree;

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LogDecoder {
    /// True if this is the log of a sub-agent: then every record is in a side chain.
    side_chain: Option<bool>,
    #[serde(skip_serializing_if = "Chains::is_idle")]
    chains: Chains,
    /// The side chain of this decoder, until it is reported.
    follows: Option<SideChain>,
    pub(super) calls: Calls,
    /// The prompt that last named a turn, in versions with prompt ids.
    prompt: Option<Arc<str>>,
    /// True if this version writes `turnOrigin`.
    origins: bool,
    /// The first timestamp of the log.
    first: Option<jiff::Timestamp>,
    /// The current turn was copied from the session that this one was forked from.
    inherited: bool,
    forked: ForkOrigin,
    /// An agent that 2.0.x starts only to warm up its cache, without a task.
    warm_up: bool,
    /// The current turn began with a summary; its command has not come yet.
    by_summary: bool,
    #[serde(skip_serializing_if = "Tree::is_empty")]
    tree: Tree,
    /// How often each prompt text was seen, in versions without prompt ids.
    #[serde(rename = "alike")]
    prompt_names: PromptNames,
    /// The current message.
    message: Option<Arc<str>>,
    blocks: Blocks,
    /// Whether thinking was on for the latest requests, by request id.
    requests: VecDeque<(String, bool)>,
    /// The last reported project, branch and version.
    #[serde(rename = "told")]
    reported: Option<[Option<String>; 3]>,
    /// Titles that wait for the record that they summarise.
    summaries: BTreeMap<u64, EventKind>,
    /// A compaction that waits for its summary in the next record.
    boundary: Option<(Event, Compaction)>,
    /// Counts within the turn, for parts that log and stream name differently.
    pub(super) retries: u32,
    interjections: BTreeMap<u64, u32>,
    /// True once the model has answered in this turn.
    pub(super) answered: bool,
    /// What requests to the model were sent.
    #[serde(skip_serializing_if = "Prompts::is_idle")]
    pub(super) prompts: Prompts,
    /// The last queued input: a prompt that a hook blocks leaves no other trace.
    pub(super) queued: Option<String>,
}

impl Decoder for LogDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let kind = fields.text("type").unwrap_or_default();
        if !(kind == "user" && fields.flag("isCompactSummary")) {
            out.extend(self.boundary.take().map(|(event, _)| event));
        }
        let uuid = fields.text("uuid");
        let mut emit = Emitter::new(Feed::Log, record, uuid.as_deref(), out);
        emit.at = fields.time("timestamp");
        if kind == "agent-meta" {
            return super::meta::meta(&mut emit, fields);
        }
        self.side_chain = self.side_chain.or_else(|| fields.truth("isSidechain"));
        self.chains.report(&mut emit);
        if self.is_warm_up(&kind, fields) {
            return RecordOutcome::left_out("warm-up");
        }
        match self.follows.take() {
            Some(chain) => report_chain(&mut emit, chain),
            None if self.first.is_none() && self.side_chain == Some(true) => {
                report_parent(&mut emit, fields);
            }
            None => {}
        }
        self.first = self.first.or(emit.at);
        self.forked.report(&mut emit, fields);
        self.report_session(&mut emit, fields);
        let outcome = match &*kind {
            "assistant" => self.assistant(&mut emit, fields),
            "user" => self.user(&mut emit, fields),
            "attachment" => self.attachment(&mut emit, fields),
            "system" => self.system(&mut emit, fields),
            _ => self.flat(&mut emit, &kind, fields, record),
        };
        if let Some(uuid) = uuid {
            let uuid = digest(uuid.as_bytes());
            self.tree.note(uuid);
            if let Some(title) = self.summaries.remove(&uuid) {
                emit.push(title);
            }
        }
        outcome
    }

    fn save(&self) -> Option<String> {
        let mut fields: serde_json::Map<String, Value> =
            serde_json::from_value(serde_json::to_value(self).ok()?).ok()?;
        // Omit unchanged fields: most are, and a log may hold very many side chains.
        fields.retain(|_, value| !is_nothing(value));
        serde_json::to_string(&fields).ok()
    }

    fn turn(&self) -> Option<Name> {
        self.tree.current().cloned()
    }

    fn side_chain(&mut self, session: &str, fields: &Fields<'_>) -> Option<SideChain> {
        // A sub-agent's own log names it on every record.
        if self.side_chain == Some(true) || fields.is("agentId", session) {
            return None;
        }
        self.chains.chain_of(session, fields)
    }

    fn ended_chains(&mut self) -> Vec<Arc<str>> {
        self.chains.ended()
    }

    fn begin_side_chain(&mut self, chain: &SideChain) {
        self.side_chain = Some(true);
        self.follows = Some(chain.clone());
    }
}

impl LogDecoder {
    fn report_session(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) {
        let reported = ["cwd", "gitBranch", "version"].map(|name| fields.text(name));
        let nothing = reported[0].is_none() && reported[1].is_none();
        let same = |held: &[Option<String>; 3]| {
            held.iter()
                .zip(&reported)
                .all(|(held, reported)| held.as_deref() == reported.as_deref())
        };
        if self.reported.as_ref().is_some_and(|held| nothing || same(held)) {
            return;
        }
        if nothing && emit.at.is_none() {
            return;
        }
        let reported = reported.map(|text| text.map(Cow::into_owned));
        self.reported = Some(reported.clone());
        let [project, branch, version] = reported;
        if let Some(version) = &version {
            self.prompts.note_version(version);
        }
        emit.push(EventKind::SessionUpdated { project, branch, version, cost: None });
    }

    /// 2.0.x starts sub-agents with the prompt `Warmup` before the user has typed anything.
    fn is_warm_up(&mut self, kind: &str, fields: &Fields<'_>) -> bool {
        if self.side_chain == Some(true) && self.first.is_none() && kind == "user" {
            let text = message_text(&fields.fields("message"));
            self.warm_up = text == "Warmup" && !fields.has("promptId");
        }
        self.warm_up
    }
}

/// True if a field has its initial value.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        // An optional field that is set.
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        Value::Array(held) => held.is_empty(),
        Value::Object(held) => held.is_empty(),
    }
}

/// Reports what the parent session's log says about a sub-agent.
fn report_chain(emit: &mut Emitter<'_>, chain: SideChain) {
    let SideChain { parent, call, kind, title, .. } = chain;
    let session = SessionId::of(super::NAME, &parent);
    let call_id = call.map(|call| call.to_string());
    emit.push(EventKind::StartedBy(Parent { session, call_id, kind }));
    if let Some(text) = title {
        emit.push(EventKind::TitleSet(Title { text, origin: TitleOrigin::Generated }));
    }
}

/// Reports the parent session, which a sub-agent's own log names on every record.
fn report_parent(emit: &mut Emitter<'_>, fields: &Fields<'_>) {
    if let Some(parent) = fields.text("sessionId").filter(|_| fields.has("agentId")) {
        let session = SessionId::of(super::NAME, &parent);
        emit.push(EventKind::StartedBy(Parent { session, call_id: None, kind: None }));
    }
}
