//! Claude Code's session log: `~/.claude/projects/<folder>/<session>.jsonl`. One record is one
//! content block, a result or a mark; the order of the file is the order of events (timestamps
//! are not monotonic). Records form a tree by `parentUuid`: a prompt whose parent is not the last
//! record is a rewind.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use unspool_core::event::{EndReason, Event, EventKind};
use unspool_core::id::{SessionId, digest, sha256};
use unspool_core::json::Json;
use unspool_core::part::{Body, Compaction, ContextInfo, Data, Text};
use unspool_core::provenance::{Feed, Name};
use unspool_core::session::{Parent, Title, TitleOrigin, Trigger};

use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome, SideChain};
use super::chains::Chains;
use super::context::record_name;
use super::fork::ForkOrigin;
use super::marks::{Mark, mark};
use super::message::{Blocks, Calls, block, failure, message_text, usage, user_parts};
use super::result::{ResultDetails, result};
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
    prompt_counts: BTreeMap<u64, u32>,
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
        emit.push(EventKind::SessionUpdated { project, branch, version, cost_usd: None });
    }

    /// 2.0.x starts sub-agents with the prompt `Warmup` before the user has typed anything.
    fn is_warm_up(&mut self, kind: &str, fields: &Fields<'_>) -> bool {
        if self.side_chain == Some(true) && self.first.is_none() && kind == "user" {
            let text = message_text(&fields.fields("message"));
            self.warm_up = text == "Warmup" && !fields.has("promptId");
        }
        self.warm_up
    }

    // ── Turns ───────────────────────────────────────────────────────────────────────────────

    /// Starts a turn, or adds to the current one if the prompt is the same.
    pub(super) fn start(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        trigger: Trigger,
        user: Vec<Body>,
    ) {
        // A manual compaction begins with its summary; its command follows.
        if std::mem::take(&mut self.by_summary) {
            let names = self.tree.current().cloned().into_iter().collect();
            return emit.push(EventKind::TurnStarted { names, trigger, user });
        }
        let left = fields.text("parentUuid").map(|parent| self.tree.rewind(&parent));
        if let Some(turns) = left.filter(|turns| !turns.is_empty()) {
            emit.push(EventKind::Rewound { turns });
        }
        let prompt: Option<Arc<str>> = fields.text("promptId").map(|id| id.into());
        let mut names: Vec<Name> = Vec::new();
        match &prompt {
            // A fork writes its own prompt id on every copied record, and a local command has the
            // id of the prompt that follows it.
            Some(prompt)
                if !self.is_copied(emit)
                    && !self.is_local(fields, trigger)
                    && self.prompt.as_ref() != Some(prompt) =>
            {
                names.push(Name::Prompt(prompt.clone()));
                self.prompt = Some(prompt.clone());
            }
            Some(_) => {}
            None => {
                let words = user_words(&user);
                let count = self.prompt_counts.entry(words).or_default();
                names.push(Name::ByContent(words, *count));
                *count += 1;
            }
        }
        // The record of a blocked prompt is also a part, so it cannot name the turn.
        let record = fields.text("uuid").map(|uuid| Name::Record(uuid.into()));
        names.extend(record.filter(|_| fields.text("type").as_deref() == Some("user")));
        self.blocks.forget_but(self.message.take().as_deref());
        self.retries = 0;
        self.interjections.clear();
        self.answered = false;
        self.tree.begin(names.first().cloned().unwrap_or(Name::Preamble));
        emit.push(EventKind::TurnStarted { names, trigger, user });
        self.inherited = self.is_copied(emit);
        if self.inherited {
            emit.push(EventKind::TurnInherited);
        }
    }

    /// True for a command that the program runs itself. Since 2.1.325 others have `turnOrigin`.
    fn is_local(&self, fields: &Fields<'_>, trigger: Trigger) -> bool {
        let shell = message_text(&fields.fields("message")).starts_with("<bash-input>");
        trigger == Trigger::Command && self.origins && !fields.has("turnOrigin") && !shell
    }

    /// True if a record is older than its file: a fork copied it.
    fn is_copied(&self, emit: &Emitter<'_>) -> bool {
        match (self.first, emit.at) {
            (Some(first), Some(at)) => at.as_millisecond() + 1000 < first.as_millisecond(),
            (None, _) | (_, None) => false,
        }
    }

    /// True if a reply has the first timestamp of its file: on resume, 1.0.x copies records with
    /// new times and without request ids.
    fn is_copied_reply(&self, emit: &Emitter<'_>, fields: &Fields<'_>) -> bool {
        emit.at.is_some() && emit.at == self.first && !fields.has("requestId")
    }

    // ── The model ───────────────────────────────────────────────────────────────────────────

    fn assistant(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let message = fields.fields("message");
        if fields.flag("isApiErrorMessage") {
            let name = fields.text("uuid").map(|uuid| Name::Record(uuid.into()));
            emit.push(EventKind::Failed(name, failure(fields, message_text(&message))));
            emit.push(EventKind::TurnEnded(EndReason::Failed(None)));
            return RecordOutcome::InParts;
        }
        let id = message.text("id").or_else(|| fields.text("uuid")).unwrap_or_default();
        // One message is many records.
        let id = self.message.clone().filter(|held| **held == *id).unwrap_or_else(|| id.into());
        let synthetic = message.text("model").as_deref() == Some("<synthetic>");
        if !synthetic && !self.inherited && self.is_copied_reply(emit, fields) {
            self.inherited = true;
            emit.push(EventKind::TurnInherited);
        }
        self.answered = true;
        self.start_step(emit, fields, &id, &message, synthetic);
        let mut made = false;
        for content in message.list("content") {
            let reported =
                fields.number("apiBlockIndex").and_then(|index| u32::try_from(index).ok());
            let index = self.blocks.next(&id, reported);
            let name = Name::Block(id.clone(), index);
            let duration = fields.number("thinkingDurationMs");
            made |= block(emit, &mut self.calls, name, &content, duration);
        }
        let step = Name::Message(id);
        // The usage of copied replies counts in the original session.
        if !synthetic && !self.inherited {
            let usage = usage(&message.fields("usage"));
            emit.push(EventKind::UsageUpdated { step: step.clone(), usage });
        }
        if let Some(stop_reason) = message.string("stop_reason") {
            let done = matches!(&*stop_reason, "end_turn" | "stop_sequence" | "refusal");
            emit.push(EventKind::StepEnded { step, stop_reason: Some(stop_reason) });
            if done {
                emit.push(EventKind::TurnEnded(EndReason::Completed));
            }
        }
        if made { RecordOutcome::InParts } else { RecordOutcome::Metadata }
    }

    fn start_step(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        id: &Arc<str>,
        message: &Fields<'_>,
        synthetic: bool,
    ) {
        if self.message.as_ref() == Some(id) {
            return;
        }
        self.message = Some(id.clone());
        let model = message.string("model").filter(|_| !synthetic);
        emit.push(EventKind::StepStarted { step: Name::Message(id.clone()), model });
        let request = fields.text("requestRef").unwrap_or_default();
        if let Some((_, thinking)) = self.requests.iter().find(|(id, _)| **id == request) {
            emit.push(EventKind::ThinkingUpdated(*thinking));
        }
    }

    // ── The user, and the program under the user's role ─────────────────────────────────────

    fn user(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        self.origins |= fields.has("turnOrigin");
        let message = fields.fields("message");
        let mut results =
            message.list("content").filter(|block| block.is("type", "tool_result")).peekable();
        if results.peek().is_some() {
            let details = ResultDetails {
                structured: fields.raw("toolUseResult"),
                kept: fields.fields("toolUseResult"),
                decision: fields.fields("permissionDecision"),
                denial: fields.string("toolDenialKind"),
                feedback: fields.string("userFeedback"),
            };
            for block in results {
                result(emit, &mut self.calls, &block, &details);
            }
            let text = message_text(&message);
            if !text.trim().is_empty() {
                let info = ContextInfo { title: "Beside the result".to_owned(), text };
                emit.push(EventKind::ContextAdded(record_name(fields), info));
            }
            return RecordOutcome::InParts;
        }
        let text = message_text(&message);
        if fields.flag("isCompactSummary") {
            return self.summary(emit, fields, text);
        }
        let mark = mark(&text);
        if fields.flag("isMeta") && !matches!(mark, Mark::TaskNotification(_)) {
            return self.meta(emit, fields, &text, mark);
        }
        let words =
            |text: &str| vec![Body::Text(Text { text: text.to_owned(), ..Text::default() })];
        match mark {
            Mark::Interruption => {
                self.notice(emit, fields, "interrupted", &text);
                emit.push(EventKind::TurnEnded(EndReason::Interrupted));
            }
            Mark::Command(command) => self.start(emit, fields, Trigger::Command, words(&command)),
            Mark::Shell(command) => {
                self.start(emit, fields, Trigger::Command, words(&format!("! {command}")));
            }
            Mark::CommandOutput(output) => {
                if output.trim().is_empty() {
                    return RecordOutcome::Metadata;
                }
                self.notice(emit, fields, "command-output", output);
                emit.push(EventKind::TurnEnded(EndReason::Completed));
            }
            Mark::ShellOutput { stdout, stderr } => {
                let output = [stdout, stderr].join("\n");
                self.notice(emit, fields, "command-output", output.trim_matches('\n'));
            }
            Mark::TaskNotification(reported) => self.task_notification(emit, fields, reported),
            Mark::HookFeedback(feedback) => {
                self.notice(emit, fields, "hook-feedback", feedback);
            }
            Mark::Caveat => return RecordOutcome::Metadata,
            Mark::None => {
                // The prompt of a sub-agent comes from its parent.
                let agent = self.side_chain == Some(true);
                let trigger = if agent { Trigger::Agent } else { Trigger::User };
                self.start(emit, fields, trigger, user_parts(&message));
            }
        }
        RecordOutcome::InParts
    }

    fn summary(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        text: String,
    ) -> RecordOutcome {
        // An automatic compaction belongs to the current turn; a manual one is a turn of its own,
        // whose command comes after the summary.
        let is_manual = self
            .boundary
            .as_ref()
            .is_some_and(|(_, compaction)| compaction.trigger.as_deref() == Some("manual"));
        if is_manual {
            self.start(emit, fields, Trigger::Command, Vec::new());
            self.by_summary = true;
            // Attachments that follow are restored context, not mentioned by the user.
            self.answered = true;
        }
        let (name, compaction) = match self.boundary.take() {
            Some((event, compaction)) => (event.kind.names().pop(), compaction),
            None => {
                let name = fields.text("uuid").map(|uuid| Name::Record(uuid.into()));
                (name, Compaction::default())
            }
        };
        if self.is_copied(emit) {
            self.forked.report_summary(emit, fields, &text);
        }
        emit.push(EventKind::Compacted(name, Compaction { summary: text, ..compaction }));
        RecordOutcome::InParts
    }

    /// Holds a compaction until its summary decides its turn.
    pub(super) fn boundary(
        &mut self,
        record: &mut Emitter<'_>,
        fields: &Fields<'_>,
        compaction: Compaction,
    ) {
        let name = fields.text("uuid").map(|uuid| Name::Record(uuid.into()));
        let event = record.event(EventKind::Compacted(name, compaction.clone()));
        self.boundary = Some((event, compaction));
    }

    /// The name of an interjection: the n-th with this text in the turn.
    pub(super) fn interjection(&mut self, text: &str) -> Name {
        let words = interjection_hash(text);
        let count = self.interjections.entry(words).or_default();
        *count += 1;
        Name::ByContent(words, *count - 1)
    }

    /// Records outside the tree: state that is written repeatedly.
    fn flat(
        &mut self,
        emit: &mut Emitter<'_>,
        kind: &str,
        fields: &Fields<'_>,
        record: &Record<'_>,
    ) -> RecordOutcome {
        let title = |field: &str, origin| {
            fields.string(field).map(|text| EventKind::TitleSet(Title { text, origin }))
        };
        match kind {
            "custom-title" => title("customTitle", TitleOrigin::Custom).map(|kind| emit.push(kind)),
            "ai-title" => title("aiTitle", TitleOrigin::Generated)
                .or_else(|| title("title", TitleOrigin::Generated))
                .map(|kind| emit.push(kind)),
            // A summary may be of another session: it applies once its leaf occurs here.
            "summary" => {
                let leaf = fields.text("leafUuid").map(|leaf| digest(leaf.as_bytes()));
                if let (Some(leaf), Some(kind)) = (leaf, title("summary", TitleOrigin::Summary)) {
                    if self.tree.contains(leaf) {
                        emit.push(kind);
                    } else {
                        self.summaries.insert(leaf, kind);
                    }
                }
                Some(())
            }
            "cost-state" => {
                let cost_usd = fields.read("totalCostUSD");
                let (project, branch, version) = (None, None, None);
                emit.push(EventKind::SessionUpdated { project, branch, version, cost_usd });
                Some(())
            }
            "queue-operation" => {
                if fields.text("operation").as_deref() == Some("enqueue") {
                    self.queued = fields.string("content");
                }
                Some(())
            }
            "api-request" => {
                let id = fields.string("id").unwrap_or_default();
                let thinking = fields.fields("params").fields("thinking");
                let on = thinking.text("type").is_some_and(|kind| kind != "disabled");
                self.requests.push_front((id, on));
                self.requests.truncate(16);
                Some(())
            }
            "api-request-shape" => {
                let shape = fields.fields("shape");
                self.snapshot(emit, "system-policy", shape.json("system"));
                self.snapshot(emit, "tool-schemas", shape.json("tools"));
                Some(())
            }
            "last-prompt" | "mode" | "permission-mode" | "agent-name" => Some(()),
            "api-request-blob"
            | "atis-latch"
            | "tools-used"
            | "file-history-snapshot"
            | "file-history-delta"
            | "progress" => return RecordOutcome::left_out(kind),
            _ => {
                let payload = Json::parse(record.text).unwrap_or_else(|| Json::string(record.text));
                emit.push(EventKind::DataGiven(None, Data { kind: kind.to_owned(), payload }));
                return RecordOutcome::InParts;
            }
        };
        RecordOutcome::Metadata
    }

    pub(super) fn snapshot(&self, emit: &mut Emitter<'_>, kind: &str, content: Option<Json>) {
        if let Some(content) = content {
            let sha256 = sha256(content.text().as_bytes());
            emit.push(EventKind::SnapshotTaken { kind: kind.to_owned(), sha256, content });
        }
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

/// Identifies a prompt by content in versions without prompt ids.
pub(super) fn prompt_hash(text: &str) -> u64 {
    digest(format!("prompt\n{text}").as_bytes())
}

pub(super) fn interjection_hash(text: &str) -> u64 {
    digest(format!("interjection\n{text}").as_bytes())
}

fn user_words(user: &[Body]) -> u64 {
    prompt_hash(user.iter().find_map(Body::prose).unwrap_or_default())
}

/// Reports what the parent session's log says about a sub-agent.
fn report_chain(emit: &mut Emitter<'_>, chain: SideChain) {
    let SideChain { parent, call, kind, title, .. } = chain;
    let session = SessionId::of(super::AGENT, &parent);
    let call_id = call.map(|call| call.to_string());
    emit.push(EventKind::StartedBy(Parent { session, call_id, kind }));
    if let Some(text) = title {
        emit.push(EventKind::TitleSet(Title { text, origin: TitleOrigin::Generated }));
    }
}

/// Reports the parent session, which a sub-agent's own log names on every record.
fn report_parent(emit: &mut Emitter<'_>, fields: &Fields<'_>) {
    if let Some(parent) = fields.text("sessionId").filter(|_| fields.has("agentId")) {
        let session = SessionId::of(super::AGENT, &parent);
        emit.push(EventKind::StartedBy(Parent { session, call_id: None, kind: None }));
    }
}
