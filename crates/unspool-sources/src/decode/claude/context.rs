//! Log records other than prompts and replies: texts that the program wrote for the model,
//! attachments, and system records.

use unspool_model::event::{AgentEnd, AgentRef, EndReason, EventKind};
use unspool_model::part::{
    Body, Compaction, ContextInfo, Data, File, Interjection, Notice, SkillLoad, Text,
};
use unspool_model::provenance::Name;
use unspool_model::session::Trigger;

use super::super::{Emitter, Fields, RecordOutcome};
use super::log::LogDecoder;
use super::marks::{Mark, mark, tag};
use super::message::file_of;

/// The name of the n-th retry of a turn: log and stream share no id for it.
pub(super) fn retry_name(nth: u32) -> Name {
    Name::ByContent(unspool_model::id::digest(b"retry"), nth)
}

pub(super) fn record_name(fields: &Fields<'_>) -> Option<Name> {
    fields.text("uuid").map(|uuid| Name::Record(uuid.into()))
}

impl LogDecoder {
    pub(super) fn notice(
        &self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        code: &str,
        text: &str,
    ) {
        let notice = Notice { code: code.to_owned(), text: text.to_owned() };
        emit.push(EventKind::Part(record_name(fields), Body::Notice(notice)));
    }

    /// A text that the program wrote for the model.
    pub(super) fn meta(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        text: &str,
        mark: Mark<'_>,
    ) -> RecordOutcome {
        if let Mark::HookFeedback(feedback) = mark {
            self.notice(emit, fields, "hook-feedback", feedback);
            return RecordOutcome::InParts;
        }
        if mark == Mark::Caveat || text.trim().is_empty() {
            return RecordOutcome::Metadata;
        }
        if text.starts_with("[Image") {
            return RecordOutcome::left_out("image note");
        }
        if let Some(call) = fields.string("sourceToolUseID") {
            let skill = SkillLoad {
                name: skill_name(text).unwrap_or_default(),
                call_id: Some(call),
                text: text.to_owned(),
            };
            emit.push(EventKind::Part(record_name(fields), Body::SkillLoad(skill)));
        } else if self.answered {
            self.notice(emit, fields, "continuation", text);
        } else if let Some(name) = skill_name(text) {
            let skill = SkillLoad { name, call_id: None, text: text.to_owned() };
            emit.push(EventKind::Part(record_name(fields), Body::SkillLoad(skill)));
        } else {
            let info = ContextInfo { title: "Expanded prompt".to_owned(), text: text.to_owned() };
            emit.push(EventKind::Part(record_name(fields), Body::ContextInfo(info)));
        }
        RecordOutcome::InParts
    }

    /// The report of a background agent or command, which starts a turn.
    pub(super) fn task_notification(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
        report: &str,
    ) {
        self.agent_reported(emit, report);
        self.start(emit, fields, Trigger::Agent, task_report(report));
    }

    fn agent_reported(&self, emit: &mut Emitter<'_>, report: &str) {
        let Some(id) = tag(report, "task-id") else { return };
        // Background commands report in the same way; their ids match no agent.
        let agent = AgentRef { call: None, id: Some(id.into()) };
        let end = match tag(report, "status") {
            Some("completed") => AgentEnd::Completed,
            Some("killed" | "stopped" | "cancelled") => AgentEnd::Interrupted,
            Some(_) => AgentEnd::Failed,
            None => return,
        };
        emit.push(EventKind::AgentEnded { agent, end });
    }

    pub(super) fn attachment(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
    ) -> RecordOutcome {
        self.prompts.attachment(fields);
        let attachment = fields.fields("attachment");
        let kind = attachment.string("type").unwrap_or_default();
        match &*kind {
            "file" => {
                let file = mentioned_file(&attachment);
                if self.answered {
                    let title = file.name.clone().unwrap_or_default();
                    let text = file.text.clone().unwrap_or_default();
                    let info = ContextInfo { title, text };
                    emit.push(EventKind::Part(record_name(fields), Body::ContextInfo(info)));
                } else {
                    emit.push(EventKind::UserAdded(Body::File(file)));
                }
            }
            "queued_command" => {
                let text = attachment.string("prompt").unwrap_or_default();
                if let Mark::TaskNotification(report) = mark(&text) {
                    self.agent_reported(emit, report);
                    let summary = tag(report, "summary").unwrap_or(report);
                    self.notice(emit, fields, "task-notification", summary);
                } else {
                    let name = self.interjection(&text);
                    emit.push(EventKind::Part(
                        Some(name),
                        Body::Interjection(Interjection { text }),
                    ));
                }
            }
            "hook_blocking_error" => {
                // A blocked stop occurs again as the text for the model.
                if attachment.text("hookEvent").as_deref() == Some("Stop") {
                    return RecordOutcome::Metadata;
                }
                let error = attachment.fields("blockingError");
                let text = error.string("blockingError").unwrap_or_default();
                self.notice(emit, fields, "hook-feedback", text.trim());
            }
            "hook_additional_context" => {
                let content: Vec<String> = attachment.read("content").unwrap_or_default();
                let event = attachment.text("hookEvent").unwrap_or_default();
                let info = ContextInfo { title: format!("{event} hook"), text: content.join("\n") };
                emit.push(EventKind::Part(record_name(fields), Body::ContextInfo(info)));
            }
            "plan_mode" => self.notice(emit, fields, "mode-change", "Plan mode"),
            "plan_mode_exit" => self.notice(emit, fields, "mode-change", "Left plan mode"),
            "auto_mode" => self.notice(emit, fields, "mode-change", "Auto mode"),
            "prompt_snapshot" => {
                self.snapshot(emit, "system-policy", attachment.json("systemPrompt"));
                self.snapshot(emit, "tool-schemas", attachment.json("tools"));
                return RecordOutcome::Metadata;
            }
            "model" | "environment" | "date" | "session_context" => return RecordOutcome::Metadata,
            "deferred_tools_delta"
            | "deferred_tools_record"
            | "agent_listing_delta"
            | "skill_listing"
            | "mcp_instructions_delta"
            | "instructions"
            | "remote_session_change"
            | "hook_success"
            | "hook_permission_decision"
            | "task_reminder"
            | "total_tokens_reminder"
            | "command_permissions" => {
                return RecordOutcome::left_out(format!("attachment/{kind}"));
            }
            _ => {
                let kind = format!("attachment/{kind}");
                let payload = attachment.whole();
                emit.push(EventKind::Part(record_name(fields), Body::Data(Data { kind, payload })));
            }
        }
        RecordOutcome::InParts
    }

    pub(super) fn system(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let subtype = fields.string("subtype").unwrap_or_default();
        let content = fields.string("content").unwrap_or_default();
        match &*subtype {
            "api_error" => {
                self.prompts.failed(emit);
                let error = fields.fields("error");
                let why = error.string("formatted").or_else(|| error.string("message"));
                let notice = retry(
                    fields.number("retryAttempt"),
                    fields.number("maxRetries"),
                    &why.unwrap_or_default(),
                );
                emit.push(EventKind::Part(Some(retry_name(self.retries)), Body::Notice(notice)));
                self.retries += 1;
            }
            "compact_boundary" => {
                let report = fields.fields("compactMetadata");
                let compaction = Compaction {
                    trigger: report.string("trigger"),
                    tokens_before: report.number("preTokens"),
                    tokens_after: report.number("postTokens"),
                    duration_ms: report.number("durationMs"),
                    summary: String::new(),
                };
                self.boundary(emit, fields, compaction);
            }
            "informational" => {
                if content.starts_with("UserPromptSubmit operation blocked by hook") {
                    self.blocked_prompt(emit, fields, &content);
                } else {
                    self.notice(emit, fields, "informational", &content);
                }
            }
            "local_command" => match mark(&content) {
                Mark::CommandOutput(output) if !output.trim().is_empty() => {
                    self.notice(emit, fields, "command-output", output);
                }
                Mark::CommandOutput(_)
                | Mark::Interruption
                | Mark::Command(_)
                | Mark::Shell(_)
                | Mark::ShellOutput { .. }
                | Mark::TaskNotification(_)
                | Mark::HookFeedback(_)
                | Mark::Caveat
                | Mark::None => return RecordOutcome::Metadata,
            },
            "model_refusal_no_fallback" => {
                self.notice(emit, fields, "refusal", &refusal(fields, content));
            }
            "stop_hook_summary" => return RecordOutcome::Metadata,
            "turn_duration" => {
                emit.push(EventKind::TurnEnded(EndReason::Completed));
                return RecordOutcome::Metadata;
            }
            _ => {
                let kind = format!("system/{subtype}");
                let payload = fields.whole();
                emit.push(EventKind::Part(record_name(fields), Body::Data(Data { kind, payload })));
            }
        }
        RecordOutcome::InParts
    }

    /// A prompt that a hook blocked: this is its only record.
    fn blocked_prompt(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>, content: &str) {
        let prompt = content.split_once("\n\nOriginal prompt: ").map(|(_, prompt)| prompt);
        let text = prompt.map(str::to_owned).or_else(|| self.queued.take()).unwrap_or_default();
        let user = vec![Body::Text(Text { text, ..Text::default() })];
        self.start(emit, fields, Trigger::User, user);
        let why = content.split_once("\n\nOriginal prompt: ").map_or(content, |(why, _)| why);
        self.notice(emit, fields, "hook-feedback", why);
        emit.push(EventKind::TurnEnded(EndReason::Completed));
    }
}

/// What the report of a background agent or command says, without its tags.
pub(super) fn task_report(report: &str) -> Vec<Body> {
    let text = tag(report, "summary").unwrap_or(report).to_owned();
    let mut user = vec![Body::Notice(Notice { code: "task-notification".to_owned(), text })];
    if let Some(result) = tag(report, "result") {
        user.push(Body::Text(Text { text: result.to_owned(), ..Text::default() }));
    }
    user
}

pub(super) fn retry(attempt: Option<u64>, of: Option<u64>, why: &str) -> Notice {
    let count = match (attempt, of) {
        (Some(attempt), Some(of)) => format!("Retry {attempt} of {of}: "),
        (Some(attempt), None) => format!("Retry {attempt}: "),
        (None, _) => "Retry: ".to_owned(),
    };
    Notice { code: "retry".to_owned(), text: format!("{count}{why}") }
}

pub(super) fn refusal(fields: &Fields<'_>, content: String) -> String {
    if !content.is_empty() {
        return content;
    }
    let explained = fields.string("apiRefusalExplanation");
    explained.unwrap_or_else(|| "The model refused, and no other model takes over.".to_owned())
}

fn mentioned_file(attachment: &Fields<'_>) -> File {
    let content = attachment.fields("content");
    let file = content.fields("file");
    let name = attachment.string("filename");
    match file.text("base64") {
        Some(data) => {
            let media_type = file.string("type").filter(|media| media.contains('/'));
            let media = media_type.clone().unwrap_or_else(|| "image/png".to_owned());
            File { name, media_type, url: Some(format!("data:{media};base64,{data}")), text: None }
        }
        None if content.has("source") => file_of(&content.fields("source"), name),
        None => File { name, media_type: None, url: None, text: file.string("content") },
    }
}

/// The name of a skill: its text begins with the path of its folder.
pub(super) fn skill_name(text: &str) -> Option<String> {
    let folder = text.strip_prefix("Base directory for this skill: ")?.lines().next()?;
    Some(folder.rsplit('/').next().unwrap_or(folder).to_owned())
}
