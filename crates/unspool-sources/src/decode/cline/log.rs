//! The lines of a conversation of Cline, of its manifest and of its compaction. A result of a call
//! is a message of the user; so is what Cline tells the model by itself, which only a mark or its
//! wording tells from a prompt.
//!
//! This file owns the state of the decoder and what is said about the session. Messages are decoded
//! in `message.rs`, results in `result.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{EndReason, Event, EventKind};
use unspool_model::id::{SessionId, sha256};
use unspool_model::json::Json;
use unspool_model::part::{Body, Compaction, Data};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::{ForkedFrom, Parent, Title, TitleOrigin};

use super::super::cost_sum::CostSum;
use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome};
use super::message::{strip_input_mark, time_of};

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LogDecoder {
    /// When the session was made, in milliseconds: its id begins with it. Older messages were
    /// copied from another session.
    created: Option<u64>,
    pub(super) is_agent: bool,
    pub(super) inherited: bool,
    turn: Option<Name>,
    /// The tools of calls without a result.
    pub(super) calls: BTreeMap<Arc<str>, String>,
    pub(super) cost: CostSum,
}

impl Decoder for LogDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let id = fields.text("id");
        let mut emit = Emitter::new(Feed::Log, record, id.as_deref(), out);
        if super::is_head(fields) {
            return self.head(&mut emit, fields);
        }
        match fields.text("type").as_deref() {
            Some("cline.manifest") => manifest(&mut emit, fields),
            Some("cline.compaction") => compaction(&mut emit, fields),
            // The fields after the messages of a document.
            Some(_) | None if !fields.has("role") => {
                snapshot(&mut emit, fields.json("system_prompt"));
                RecordOutcome::Metadata
            }
            Some(_) | None => self.message(&mut emit, fields),
        }
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    fn turn(&self) -> Option<Name> {
        self.turn.clone()
    }
}

impl LogDecoder {
    fn head(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let origin = fields.fields("origin");
        let id = fields.text("sessionId").unwrap_or_default();
        self.is_agent = origin.has("parentThreadId");
        self.created = id.split('_').next().and_then(|time| time.parse().ok());
        let (project, branch, cost) = (None, None, None);
        let version = origin.string("version");
        emit.push(EventKind::SessionUpdated { project, branch, version, cost });
        if let Some(parent) = origin.text("parentThreadId") {
            let session = SessionId::of(super::NAME, &parent);
            let (call_id, kind) = (fields.string("callId"), fields.string("agent"));
            emit.push(EventKind::StartedBy(Parent { session, call_id, kind }));
        }
        RecordOutcome::Metadata
    }

    fn message(&mut self, emit: &mut Emitter<'_>, message: &Fields<'_>) -> RecordOutcome {
        emit.at = time_of(message);
        let key: Arc<str> = message.text("id").unwrap_or_default().into();
        let sent = message.number("ts");
        // The sub-agents of a session have its id as the start of theirs.
        self.inherited = !self.is_agent
            && matches!((self.created, sent), (Some(made), Some(sent)) if sent < made);
        match message.text("role").as_deref() {
            Some("user") => self.user(emit, message, &key),
            Some("assistant") => self.assistant(emit, message, &key),
            role => {
                let kind = format!("message/{}", role.unwrap_or_default());
                let data = Data { kind, payload: message.whole() };
                emit.push(EventKind::Part(Some(Name::Record(key)), Body::Data(data)));
                RecordOutcome::InParts
            }
        }
    }

    pub(super) fn begin(&mut self, name: Name) {
        self.turn = Some(name);
        self.calls.clear();
    }

    pub(super) fn end(&mut self, emit: &mut Emitter<'_>, reason: EndReason) {
        emit.push(EventKind::TurnEnded(reason));
    }
}

/// What the manifest says about the session.
fn manifest(emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
    emit.at = fields.time("started_at");
    let (version, cost) = (None, None);
    let (project, branch) = (fields.string("cwd"), fields.fields("git").string("branch"));
    emit.push(EventKind::SessionUpdated { project, branch, version, cost });
    if let Some(text) = fields.string("title").filter(|title| !title.is_empty()) {
        // A title is the first prompt unless the user changed it; nothing else tells.
        let prompt = fields.string("prompt").unwrap_or_default();
        let is_prompt = strip_input_mark(&prompt).0.trim() == text.trim();
        let origin = if is_prompt { TitleOrigin::Prompt } else { TitleOrigin::Custom };
        emit.push(EventKind::TitleSet(Title { text, origin }));
    }
    // A fork also has the origin of the session that it was forked from.
    let imported = fields.fields("importedFrom");
    let own = |id| (super::NAME, id);
    let origin = fields.fields("fork").text("forkedFromSessionId").map(own);
    let origin = origin.or_else(|| fields.text("restoredFromSessionId").map(own));
    let origin = origin.or_else(|| {
        Some((agent_of_tool(&imported.text("tool")?), imported.text("sourceSessionId")?))
    });
    if let Some((agent, id)) = origin {
        let session = SessionId::of(agent, &id);
        emit.push(EventKind::BranchedOff(ForkedFrom { session, turn: None }));
    }
    snapshot(emit, fields.json("systemPrompt"));
    let end = fields.fields("end");
    if let Some(prompt) = end.text("prompt") {
        emit.turn = Some(Name::Prompt(prompt.into()));
        emit.at = end.time("at");
        let is_cancelled = end.is("status", "cancelled");
        let reason = if is_cancelled { EndReason::Interrupted } else { EndReason::Failed(None) };
        emit.push(EventKind::TurnEnded(reason));
    }
    RecordOutcome::Metadata
}

fn snapshot(emit: &mut Emitter<'_>, content: Option<Json>) {
    if let Some(content) = content {
        let (kind, sha256) = ("system-policy".to_owned(), sha256(content.text().as_bytes()));
        emit.push(EventKind::SnapshotTaken { kind, sha256, content });
    }
}

/// The agent of a session that Cline imported.
fn agent_of_tool(tool: &str) -> &'static str {
    let is = |name: &str| tool.to_lowercase().replace([' ', '_'], "-").contains(name);
    if is("codex") {
        "codex"
    } else if is("opencode") {
        "opencode"
    } else {
        "claude-code"
    }
}

/// The summary that the model gets in place of older messages. The conversation keeps those.
fn compaction(emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
    let metadata = fields.fields("metadata");
    let after = fields.text("after").unwrap_or_default();
    emit.turn = fields.text("prompt").map(|prompt| Name::Prompt(prompt.into()));
    let compaction = Compaction {
        tokens_before: metadata.number("tokensBefore"),
        summary: metadata.string("summary").unwrap_or_default(),
        ..Compaction::default()
    };
    let name = Name::Record(format!("{after}/compaction").into());
    emit.push(EventKind::Part(Some(name), Body::Compaction(compaction)));
    RecordOutcome::InParts
}
