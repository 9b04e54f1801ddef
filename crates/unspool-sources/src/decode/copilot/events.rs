//! Copilot's events: `~/.copilot/session-state/<session>/events.jsonl`, the SDK's stream, and the
//! output of `-p --output-format json`. Events happened in file order; `parentId` is only the
//! previous record. One file holds the session and all its sub-agents.
//!
//! This file owns the state of the decoder, the session and its turns. `events/` decodes
//! sub-agents; `message.rs`, `tool.rs`, `questions.rs` and `live.rs` decode the rest.

mod agents;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{AgentEnd, EndReason, Event, EventKind};
use unspool_model::id::sha256;
use unspool_model::part::{
    Body, Compaction, ContextInfo, Data, Failure, File, Interjection, Notice, Text,
};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::Trigger;

pub(super) use agents::started_by;

use super::super::{Decoder, Emitter, Fields, PromptNames, Record, RecordOutcome, SessionContext};
use super::live::LiveState;
use super::message::Step;

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsDecoder {
    /// True for the live stream, false for the log.
    is_live: bool,
    /// The session that started this one, and the call that did.
    parent: Option<(String, Option<String>)>,
    /// Project, branch and version; a sub-agent inherits those of its parent.
    #[serde(rename = "surroundings")]
    session_context: SessionContext,
    /// The interaction id of the current turn.
    interaction: Option<Arc<str>>,
    /// Occurrences of each prompt text: hooks have no other name for a prompt.
    prompts: PromptNames,
    /// What hooks added when the session started. The next prompt is sent with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    added: Vec<String>,
    pub(super) step: Step,
    /// Tool names of the calls that have no result yet.
    pub(super) calls: BTreeMap<Arc<str>, String>,
    pub(super) live: LiveState,
}

impl Decoder for EventsDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let feed = if self.is_live { Feed::Stream } else { Feed::Log };
        let id = fields.text("id");
        let mut emit = Emitter::new(feed, record, id.as_deref(), out);
        emit.at = fields.time("timestamp");
        let kind = fields.text("type").unwrap_or_default();
        let data = fields.fields("data");
        let event = EventRecord { kind, id: id.unwrap_or_default(), data, whole: *fields };
        self.emit_parent(&mut emit, &event.data);
        self.event(&mut emit, &event)
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    fn turn(&self) -> Option<Name> {
        self.interaction.clone().map(Name::Prompt)
    }

    fn session_context(&self) -> Option<SessionContext> {
        Some(self.session_context.clone())
    }

    fn inherit_context(&mut self, session_context: SessionContext) {
        self.session_context = session_context;
    }
}

/// The fields of one event.
pub(super) struct EventRecord<'a> {
    pub kind: Cow<'a, str>,
    /// The same in every feed.
    pub id: Cow<'a, str>,
    pub data: Fields<'a>,
    whole: Fields<'a>,
}

impl EventRecord<'_> {
    pub fn name(&self) -> Name {
        Name::Record((&*self.id).into())
    }
}

impl EventsDecoder {
    pub fn new(is_live: bool) -> EventsDecoder {
        EventsDecoder { is_live, ..EventsDecoder::default() }
    }

    fn event(&mut self, emit: &mut Emitter<'_>, event: &EventRecord<'_>) -> RecordOutcome {
        let data = &event.data;
        match &*event.kind {
            "session.start" => self.session(emit, event),
            "session.resume" => {
                emit.push(EventKind::SessionResumed);
                self.session(emit, event)
            }
            "session.shutdown" => {
                // The process exited with a turn open, so the turn never completed.
                if self.interaction.is_some() {
                    emit.push(EventKind::TurnEnded(EndReason::Idle));
                }
                emit.push(EventKind::SessionEnded);
                RecordOutcome::Metadata
            }
            "user.message" => self.user(emit, event),
            "system.message" => {
                if let Some(content) = data.json("content") {
                    let (kind, sha256) = ("system-policy", sha256(content.text().as_bytes()));
                    emit.push(EventKind::SnapshotTaken { kind: kind.to_owned(), sha256, content });
                }
                RecordOutcome::Metadata
            }
            "assistant.turn_start" => self.start_step(emit, event),
            "assistant.turn_end" => self.end_step(emit),
            "assistant.message" => self.message(emit, data),
            "session.usage_record" => self.usage(emit, &data.fields("usage")),
            "tool.execution_start" => self.tool_starts(emit, data),
            "tool.execution_complete" => self.tool_ends(emit, data),
            "permission.requested" => self.permission_request(emit, data),
            "permission.completed" => self.permission_response(emit, data),
            "subagent.started" => self.agent_starts(emit, &event.whole, data),
            "subagent.completed" => self.agent_ends(emit, &event.whole, data, AgentEnd::Completed),
            "subagent.failed" => self.agent_ends(emit, &event.whole, data, AgentEnd::Failed),
            "session.error" => session_error(emit, event),
            // Only its time says something: that the log goes on here.
            "session.usage_checkpoint" => {
                let (project, branch, version, cost) = (None, None, None, None);
                emit.push(EventKind::SessionUpdated { project, branch, version, cost });
                RecordOutcome::Metadata
            }
            "abort" => {
                emit.push(EventKind::TurnEnded(EndReason::Interrupted));
                RecordOutcome::Metadata
            }
            "session.compaction_complete" => self.compaction(emit, event),
            "session.compaction_start" => RecordOutcome::Metadata,
            "session.truncation" => self.truncation(emit, event),
            "system.notification" => self.notification(emit, event),
            "session.mode_changed" => {
                self.change(emit, event, "mode-change", "previousMode", "newMode")
            }
            "session.model_change" => {
                self.change(emit, event, "model-change", "previousModel", "newModel")
            }
            "session.permissions_changed" => self.change(
                emit,
                event,
                "permission-mode",
                "previousAllowAllPermissionMode",
                "allowAllPermissionMode",
            ),
            "subagent.configured"
            | "subagent.selected"
            | "session.mode_notice_delivered"
            | "external_tool.requested"
            | "external_tool.completed"
            | "result" => RecordOutcome::Metadata,
            "hook.end" if data.is("hookType", "sessionStart") => self.hook_context(event),
            kind if kind.starts_with("hook.") || kind.starts_with("model.") => {
                RecordOutcome::left_out(kind)
            }
            _ => self.live(emit, event),
        }
    }

    fn notification(&mut self, emit: &mut Emitter<'_>, event: &EventRecord<'_>) -> RecordOutcome {
        let text = event.data.string("content").unwrap_or_default();
        let text = text.trim().trim_start_matches("<system_notification>");
        let text = text.trim_end_matches("</system_notification>").trim();
        self.notice(emit, event, "task-notification", text.to_owned())
    }

    /// Keeps an event of unknown type as a data part.
    pub(super) fn unknown(&self, emit: &mut Emitter<'_>, event: &EventRecord<'_>) -> RecordOutcome {
        let kind = event.kind.clone().into_owned();
        let data = Data { kind, payload: event.data.whole() };
        emit.push(EventKind::Part(Some(event.name()), Body::Data(data)));
        RecordOutcome::InParts
    }

    // ── The session ─────────────────────────────────────────────────────────────────────────

    fn session(&mut self, emit: &mut Emitter<'_>, event: &EventRecord<'_>) -> RecordOutcome {
        let context = event.data.fields("context");
        let SessionContext { project, branch, version } = &mut self.session_context;
        // A resumed process does not repeat unchanged values.
        *project = context.string("cwd").or(project.take());
        *branch = context.string("branch").or(branch.take());
        *version = event.data.string("copilotVersion").or(version.take());
        self.report_session_context(emit);
        // A killed process writes no end for its turn.
        if event.kind == "session.resume" && self.interaction.is_some() {
            emit.push(EventKind::TurnEnded(EndReason::Idle));
        }
        RecordOutcome::Metadata
    }

    fn report_session_context(&self, emit: &mut Emitter<'_>) {
        let SessionContext { project, branch, version } = self.session_context.clone();
        emit.push(EventKind::SessionUpdated { project, branch, version, cost: None });
    }

    /// Emits a notice for a setting that changed. Before the first turn it is an initial value.
    fn change(
        &mut self,
        emit: &mut Emitter<'_>,
        event: &EventRecord<'_>,
        code: &str,
        from: &str,
        to: &str,
    ) -> RecordOutcome {
        let (from, to) = (event.data.text(from), event.data.text(to));
        match to.filter(|to| self.interaction.is_some() && from.as_ref() != Some(to)) {
            Some(to) => {
                let from = from.map(|from| format!("{from} → ")).unwrap_or_default();
                self.notice(emit, event, code, format!("{from}{to}"))
            }
            None => RecordOutcome::Metadata,
        }
    }

    pub(super) fn notice(
        &self,
        emit: &mut Emitter<'_>,
        event: &EventRecord<'_>,
        code: &str,
        text: String,
    ) -> RecordOutcome {
        emit.push(EventKind::Part(
            Some(event.name()),
            Body::Notice(Notice { code: code.to_owned(), text }),
        ));
        RecordOutcome::InParts
    }

    fn truncation(&self, emit: &mut Emitter<'_>, event: &EventRecord<'_>) -> RecordOutcome {
        let count = |name: &str| event.data.number(name).unwrap_or(0);
        let text = format!(
            "{} messages with {} tokens were dropped from the model's context",
            count("messagesRemovedDuringTruncation"),
            count("tokensRemovedDuringTruncation"),
        );
        self.notice(emit, event, "truncation", text)
    }

    /// Compaction runs in the background and takes effect at its end, which has the summary.
    fn compaction(&self, emit: &mut Emitter<'_>, event: &EventRecord<'_>) -> RecordOutcome {
        let data = &event.data;
        if data.truth("success") == Some(false) {
            let why = data.string("error").or_else(|| data.string("outcome"));
            let text = format!("Compaction failed: {}", why.unwrap_or_default());
            return self.notice(emit, event, "compaction-failed", text);
        }
        let trigger = match data.text("trigger").as_deref() {
            None | Some("manual") => "manual",
            Some(_) => "auto",
        };
        let compaction = Compaction {
            trigger: Some(trigger.to_owned()),
            tokens_before: data.number("preCompactionTokens"),
            tokens_after: data.number("postCompactionTokens"),
            duration_ms: None,
            summary: data.string("summaryContent").unwrap_or_default(),
        };
        emit.push(EventKind::Part(Some(event.name()), Body::Compaction(compaction)));
        RecordOutcome::InParts
    }

    /// What a hook of the session's start adds stands in no other record; that of a prompt's hook is in
    /// `transformedContent`.
    fn hook_context(&mut self, event: &EventRecord<'_>) -> RecordOutcome {
        let added = event.data.fields("output").string("additionalContext");
        match added.filter(|text| !text.trim().is_empty()) {
            Some(text) => {
                self.added.push(text);
                RecordOutcome::InParts
            }
            None => RecordOutcome::left_out("hook.end"),
        }
    }

    // ── Turns ───────────────────────────────────────────────────────────────────────────────

    fn user(&mut self, emit: &mut Emitter<'_>, event: &EventRecord<'_>) -> RecordOutcome {
        let data = &event.data;
        let text = data.string("content").unwrap_or_default();
        let interaction: Arc<str> =
            data.text("interactionId").unwrap_or_else(|| event.id.clone()).as_ref().into();
        if data.is("delivery", "steering") || self.interaction.as_ref() == Some(&interaction) {
            emit.push(EventKind::Part(
                Some(event.name()),
                Body::Interjection(Interjection { text }),
            ));
            return RecordOutcome::InParts;
        }
        if self.parent.is_some() && self.interaction.is_none() {
            self.report_session_context(emit);
        }
        let alike = self.prompts.next(&text);
        let context =
            |text| Body::ContextInfo(ContextInfo { title: "Hook context".to_owned(), text });
        let mut user: Vec<Body> =
            std::mem::take(&mut self.added).into_iter().map(context).collect();
        user.extend(with_additions(text, data.string("transformedContent")));
        user.extend(data.list("attachments").map(|attachment| attached(&attachment)));
        // The prompt of a sub-agent comes from its parent.
        let trigger = if self.parent.is_some() { Trigger::Agent } else { Trigger::User };
        self.begin(emit, interaction, Some(alike), trigger, user);
        RecordOutcome::InParts
    }

    fn begin(
        &mut self,
        emit: &mut Emitter<'_>,
        interaction: Arc<str>,
        alike: Option<Name>,
        trigger: Trigger,
        user: Vec<Body>,
    ) {
        self.interaction = Some(interaction.clone());
        let names = [Name::Prompt(interaction)].into_iter().chain(alike).collect();
        emit.push(EventKind::TurnStarted { names, trigger, user });
    }

    /// Starts a turn without a prompt when the model continues on its own.
    pub(super) fn continue_turn(&mut self, emit: &mut Emitter<'_>, data: &Fields<'_>) {
        if let Some(interaction) = data.text("interactionId")
            && self.interaction.as_deref() != Some(&*interaction)
        {
            self.begin(emit, interaction.into(), None, Trigger::Continuation, Vec::new());
        }
    }
}

/// The user's words, and in their places what Copilot and hooks put around them for the model. The
/// time alone is no context: the turn has it.
fn with_additions(text: String, sent: Option<String>) -> Vec<Body> {
    let sent = sent.unwrap_or_default();
    let around = sent.split_once(&text).filter(|_| !text.is_empty());
    let added = |added: &str| {
        let added = added.trim();
        let time = added.strip_prefix("<current_datetime>");
        let rest = time.and_then(|time| time.split_once("</current_datetime>"));
        let text = rest.map_or(added, |(_, rest)| rest.trim()).to_owned();
        let title = "Added by Copilot".to_owned();
        (!text.is_empty()).then_some(Body::ContextInfo(ContextInfo { title, text }))
    };
    let (before, after) = around.unwrap_or_default();
    let (before, after) = (added(before), added(after));
    let words = Body::Text(Text { text, ..Text::default() });
    before.into_iter().chain([words]).chain(after).collect()
}

fn session_error(emit: &mut Emitter<'_>, event: &EventRecord<'_>) -> RecordOutcome {
    let failure = Failure {
        code: event.data.string("errorType"),
        status: event.data.number("statusCode"),
        text: event.data.string("message").unwrap_or_default(),
    };
    emit.push(EventKind::Part(Some(event.name()), Body::Error(failure)));
    emit.push(EventKind::TurnEnded(EndReason::Failed(None)));
    RecordOutcome::InParts
}

fn attached(attachment: &Fields<'_>) -> Body {
    let text = |names: &[&str]| names.iter().find_map(|name| attachment.string(name));
    let media_type = text(&["mimeType"]);
    let url = text(&["path", "filePath", "url"]).or_else(|| {
        let media = media_type.as_deref().unwrap_or("application/octet-stream");
        Some(format!("data:{media};base64,{}", attachment.text("data")?))
    });
    let name = text(&["displayName", "name", "title"]);
    Body::File(File { name, media_type, url, text: text(&["text"]) })
}
