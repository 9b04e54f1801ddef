//! Codex's rollout: `~/.codex/sessions/<date>/rollout-<time>-<thread>.jsonl`. It records most
//! things twice: as items for the model (`response_item`) and as events for display (`event_msg`).
//! The items set the order. Events refer to them by id and add what they lack: turn boundaries,
//! which text the user typed, the outcome of a call.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::assemble::prose_content_hash;
use unspool_model::event::{Event, EventKind, ProseKind};
use unspool_model::id::{SessionId, digest, sha256};
use unspool_model::part::{Body, Data, Interjection, Notice};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::{ForkedFrom, Parent, Trigger};

use super::super::injected::is_injected;
use super::super::{Decoder, Emitter, Fields, PromptNames, Record, RecordOutcome};
use super::metadata::usage;
use super::prompts::Prompts;
use super::review::Review;
use super::{NAME, block_name, step_name, turn_name};

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogDecoder {
    pub(super) thread: Option<Arc<str>>,
    /// The thread was forked from another one.
    forked: bool,
    /// A sub-agent's file starts with a copy of its parent's records: skip them until the
    /// sub-agent's first turn.
    copying: bool,
    /// The turns of the thread, with the ordinal of the record that started each.
    turns: Vec<(Option<u64>, Arc<str>)>,
    pub(super) turn: Option<Arc<str>>,
    /// The turn has its prompt.
    pub(super) prompted: bool,
    /// Another agent's message started the turn.
    by_agent: bool,
    pub(super) model: Option<String>,
    /// Completed model calls of the turn, and whether one is in progress.
    pub(super) steps: u32,
    in_step: bool,
    /// This version writes a `token_usage_record` per response.
    pub(super) records_usage: bool,
    /// The running totals (input, output) that older versions write instead.
    pub(super) total: Option<(u64, u64)>,
    pub(super) compactions: u32,
    interjections: u32,
    pub(super) calls: BTreeMap<Arc<str>, OpenCall>,
    /// Code-mode scripts that are still running, newest last.
    pub(super) scripts: Vec<Arc<str>>,
    /// This version repeats the model's prose as display events. Prose without such an event was
    /// then not meant for display.
    pub(super) announces: bool,
    /// Prose of display events whose model item has not come yet: item id and text.
    pub(super) announced: Vec<(Option<String>, String)>,
    /// Prose of model items whose display event has not come yet.
    pub(super) unannounced: Vec<UnannouncedProse>,
    pub(super) plan: Option<(String, String)>,
    pub(super) review: Option<Review>,
    /// Written by `codex exec`, whose stream identifies a turn by its first content.
    by_exec: bool,
    /// Occurrences of each prose content in the turn, for versions without item ids (0.137).
    alike: BTreeMap<u64, u32>,
    /// How many turns without an id have started.
    pub(super) unnamed: u32,
    /// The thread continues another rollout's history, whose head has to come next.
    expects: bool,
    #[serde(rename = "first_told")]
    first_named: bool,
    firsts: BTreeMap<u64, u32>,
    #[serde(default, rename = "prompts")]
    prompt_names: PromptNames,
    #[serde(default, rename = "sent")]
    pub(super) prompts: Prompts,
}

/// A call that later records may refer to.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OpenCall {
    pub tool: String,
    /// Its item or its output reported how it ended.
    pub ended: bool,
    /// The id of its process or script that runs on after the first output.
    pub runs: Option<String>,
    /// Ids and texts of its questions.
    #[serde(rename = "asked")]
    pub request: Vec<(String, String)>,
}

/// Prose that waits for its display event.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UnannouncedProse {
    pub id: String,
    pub reasoning: bool,
    pub text: String,
}

impl Decoder for LogDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let kind = fields.text("type").unwrap_or_default();
        let payload = fields.fields("payload");
        let mut emit = Emitter::new(Feed::Log, record, None, out);
        emit.at = fields.time("timestamp");
        let own = payload.fields("turn_attribution").has("parent_turn_id");
        if self.copying && kind == "event_msg" && payload.is("type", "task_started") && own {
            self.copying = false;
        }
        if kind == "session_meta" {
            return self.session(&mut emit, &payload);
        }
        if self.copying {
            // The sub-agent's model is sent what its parent's was.
            if kind == "response_item" {
                self.prompts.item(&mut emit, &payload);
            }
            return RecordOutcome::left_out("copied from the parent");
        }
        if std::mem::take(&mut self.expects) {
            self.prompts.is_continued();
            let name = Name::ByContent(digest(b"history"), 0);
            let code = "informational".to_owned();
            let text = "What came before is in another rollout, which was not found.".to_owned();
            emit.push(EventKind::Part(Some(name), Body::Notice(Notice { code, text })));
        }
        emit.turn = self.turn.as_ref().map(turn_name);
        match &*kind {
            "response_item" => self.response(&mut emit, &payload),
            "event_msg" => self.event(&mut emit, fields, &payload),
            "turn_context" => {
                self.model = payload.string("model").or(self.model.take());
                RecordOutcome::Metadata
            }
            "token_usage_record" => {
                self.records_usage = true;
                self.usage(&mut emit, &payload.fields("usage"));
                self.prompts.ended(&mut emit);
                RecordOutcome::Metadata
            }
            "compacted" => {
                self.prompts.compacted(&mut emit, &payload);
                self.compacted(&mut emit, &payload)
            }
            // The user's answers are in the output of the call.
            "retained_context" | "inter_agent_communication_metadata" => RecordOutcome::Metadata,
            "world_state" => RecordOutcome::left_out("world_state"),
            _ => {
                let payload = payload.whole();
                emit.push(EventKind::Part(
                    None,
                    Body::Data(Data { kind: kind.into_owned(), payload }),
                ));
                RecordOutcome::InParts
            }
        }
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    fn turn(&self) -> Option<Name> {
        self.turn.as_ref().map(turn_name)
    }
}

impl LogDecoder {
    // ── The session ─────────────────────────────────────────────────────────────────────────

    fn session(&mut self, emit: &mut Emitter<'_>, meta: &Fields<'_>) -> RecordOutcome {
        let id: Arc<str> = meta.text("id").unwrap_or_default().into();
        let base = meta.fields("history_base");
        if let Some(thread) = &self.thread {
            self.expects = false;
            if *thread != id {
                // The head of the parent, followed by a copy of its records.
                self.copying |= !self.forked && self.turns.is_empty();
            } else if base.is("thread_id", thread) {
                self.revert(emit, base.number("end_ordinal_exclusive"));
            }
            return RecordOutcome::Metadata;
        }
        self.thread = Some(id);
        self.by_exec = meta.is("originator", "codex_exec");
        // If there is a base, its head comes next.
        self.expects = base.is_object();
        emit.push(EventKind::SessionUpdated {
            project: meta.string("cwd"),
            branch: meta.fields("git").string("branch"),
            version: meta.string("cli_version"),
            cost: None,
        });
        if let Some(parent) = meta.text("parent_thread_id") {
            let session = SessionId::of(NAME, &parent);
            emit.push(EventKind::StartedBy(Parent { session, call_id: None, kind: None }));
        } else if let Some(from) = meta.text("forked_from_id") {
            self.forked = true;
            let session = SessionId::of(NAME, &from);
            emit.push(EventKind::BranchedOff(ForkedFrom { session, turn: None }));
        }
        self.prompts.instructions(meta);
        if let Some(content) = meta.json("base_instructions") {
            let (kind, sha256) = ("system-policy".to_owned(), sha256(content.text().as_bytes()));
            emit.push(EventKind::SnapshotTaken { kind, sha256, content });
        }
        RecordOutcome::Metadata
    }

    /// The user rewound: turns that started at or after this ordinal are abandoned.
    fn revert(&mut self, emit: &mut Emitter<'_>, end: Option<u64>) {
        let Some(end) = end else { return };
        self.prompts.revert(end);
        let kept = self.turns.partition_point(|(began, _)| began.is_none_or(|began| began < end));
        let turns: Vec<Name> = self.turns.drain(kept..).map(|(_, id)| turn_name(&id)).collect();
        if !turns.is_empty() {
            emit.push(EventKind::Rewound { turns });
        }
    }

    // ── Turns and steps ─────────────────────────────────────────────────────────────────────

    /// Enters a turn; starts it if it is new.
    pub(super) fn enter(
        &mut self,
        emit: &mut Emitter<'_>,
        turn: &str,
        trigger: Trigger,
        ordinal: Option<u64>,
    ) {
        if self.turns.iter().any(|(_, seen)| **seen == *turn) {
            return;
        }
        self.flush(emit);
        let turn: Arc<str> = turn.into();
        self.turns.push((ordinal, turn.clone()));
        self.prompts.start_turn(ordinal);
        self.turn = Some(turn.clone());
        emit.turn = Some(turn_name(&turn));
        (self.steps, self.in_step, self.prompted) = (0, false, false);
        (self.compactions, self.interjections) = (0, 0);
        self.by_agent = trigger == Trigger::Agent;
        self.first_named = false;
        self.announced.clear();
        self.alike.clear();
        let names = vec![turn_name(&turn)];
        emit.push(EventKind::TurnStarted { names, trigger, user: Vec::new() });
        if self.is_inherited() {
            emit.push(EventKind::TurnInherited);
        }
    }

    /// Names prose by its item id, or by its content if it has none.
    pub(super) fn prose_name(&mut self, prose_kind: ProseKind, id: &str, text: &str) -> Name {
        if !id.is_empty() {
            return block_name(id);
        }
        let content = prose_content_hash(prose_kind, text);
        let count = self.alike.entry(content).or_default();
        *count += 1;
        Name::ByContent(content, *count - 1)
    }

    /// Names the turn by the hash of its first content as well: the `exec` stream has no turn ids.
    pub(super) fn first(&mut self, emit: &mut Emitter<'_>, hash: u64) {
        let Some(turn) = self.turn.as_ref().filter(|_| self.by_exec && !self.first_named) else {
            return;
        };
        self.first_named = true;
        let words = super::exec::turn_hash(hash);
        let count = self.firsts.entry(words).or_default();
        let names = vec![turn_name(turn), Name::ByContent(words, *count)];
        *count += 1;
        let trigger = if self.by_agent { Trigger::Agent } else { Trigger::User };
        emit.push(EventKind::TurnStarted { names, trigger, user: Vec::new() });
    }

    /// True if the turn is older than the thread. Ids are UUID version 7, which sort by time.
    pub(super) fn is_inherited(&self) -> bool {
        let by_time = |id: &str| id.len() == 36 && id.as_bytes().get(14) == Some(&b'7');
        match (&self.thread, &self.turn) {
            (Some(thread), Some(turn)) => {
                self.forked && by_time(thread) && by_time(turn) && turn < thread
            }
            (None, _) | (_, None) => false,
        }
    }

    /// A user message: the prompt of the turn, or an interjection.
    pub(super) fn user(
        &mut self,
        emit: &mut Emitter<'_>,
        id: Option<&str>,
        user: Vec<Body>,
    ) -> RecordOutcome {
        if user.is_empty() {
            return RecordOutcome::Metadata;
        }
        let Some(turn) = self.turn.clone().filter(|_| !self.prompted) else {
            let texts: Vec<&str> = user.iter().filter_map(Body::prose).collect();
            let text = texts.join("\n");
            if is_injected(&user) {
                user.into_iter().for_each(|body| emit.push(EventKind::Part(None, body)));
                return RecordOutcome::InParts;
            }
            let nth = self.interjections;
            self.interjections += 1;
            let name = id.map(|id| Name::Record(id.into())).unwrap_or_else(|| {
                Name::ByContent(super::call::text_hash("interjection", &text), nth)
            });
            emit.push(EventKind::Part(Some(name), Body::Interjection(Interjection { text })));
            return RecordOutcome::InParts;
        };
        self.prompted = true;
        let by_text = self.prompt_names.next_of(&user);
        let names = [turn_name(&turn)].into_iter().chain(by_text).collect();
        let trigger = if self.by_agent { Trigger::Agent } else { Trigger::User };
        emit.push(EventKind::TurnStarted { names, trigger, user });
        RecordOutcome::InParts
    }

    /// Starts a step at the first item of a response.
    pub(super) fn step(&mut self, emit: &mut Emitter<'_>) {
        let Some(turn) = self.turn.as_ref().filter(|_| !self.in_step) else { return };
        self.in_step = true;
        let step = step_name(turn, self.steps);
        emit.push(EventKind::StepStarted { step: step.clone(), model: self.model.clone() });
        let request = format!("{turn}/{}", self.steps);
        self.prompts.call(emit, request.into(), step, self.model.as_deref());
    }

    /// Ends a step with the token usage of its response.
    pub(super) fn usage(&mut self, emit: &mut Emitter<'_>, value: &Fields<'_>) {
        let Some(turn) = &self.turn else { return };
        let step = step_name(turn, self.steps);
        self.steps += 1;
        self.in_step = false;
        if !self.is_inherited() {
            emit.push(EventKind::UsageUpdated { step, usage: usage(value) });
        }
    }
}
