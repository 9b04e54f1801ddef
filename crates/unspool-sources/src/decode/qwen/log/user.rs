//! The `user` records of a session log: prompts, what the user typed while a turn ran, and reports
//! of background agents, which start a turn. Extends `LogDecoder`.

use unspool_model::event::{AgentEnd, AgentRef, EventKind};
use unspool_model::part::{Body, Data, File, Interjection, Notice, Text};
use unspool_model::session::Trigger;

use super::super::super::claude::tag;
use super::super::super::{Emitter, Fields, RecordOutcome};
use super::super::text_of;
use super::super::tool::data_url;
use super::{LogDecoder, record_name};

/// What Qwen Code writes around the files that a prompt mentions.
const FILES_START: &str = "--- Content from referenced files ---";
const FILES_END: &str = "--- End of content ---";

impl LogDecoder {
    pub(super) fn user(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        let message = fields.fields("message");
        let shown = fields.fields("systemPayload").string("displayText");
        match fields.text("subtype").as_deref() {
            Some("mid_turn_user_message") => {
                self.replied = false;
                let text = shown.unwrap_or_else(|| text_of(&message));
                let body = Body::Interjection(Interjection { text });
                emit.push(EventKind::Part(record_name(fields), body));
            }
            Some("notification") => self.notification(emit, fields, shown),
            subtype => {
                let trigger = match subtype {
                    Some("cron") => Trigger::Schedule,
                    Some("goal_runtime") => Trigger::Continuation,
                    _ if fields.flag("isSidechain") => Trigger::Agent,
                    _ if std::mem::take(&mut self.by_command) => Trigger::Command,
                    _ => Trigger::User,
                };
                let user = user_parts(&message, shown);
                let words = user.iter().find_map(Body::prose).unwrap_or_default().to_owned();
                self.start(emit, fields, trigger, &words, user);
            }
        }
        RecordOutcome::InParts
    }

    /// A background agent or command has ended, and the model is told.
    fn notification(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>, shown: Option<String>) {
        let report = text_of(&fields.fields("message"));
        if let Some(id) = tag(&report, "task-id") {
            let end = match tag(&report, "status") {
                Some("completed") => Some(AgentEnd::Completed),
                Some("killed" | "stopped" | "cancelled") => Some(AgentEnd::Interrupted),
                Some("running" | "paused") | None => None,
                Some(_) => Some(AgentEnd::Failed),
            };
            // Commands in the background report in the same way; their ids are of no agent.
            let id = Some(self.agent_id(fields, id).into());
            if let Some(end) = end {
                emit.push(EventKind::AgentEnded { agent: AgentRef { call: None, id }, end });
            }
        }
        let summary = tag(&report, "summary").map(str::to_owned);
        let words = shown.or(summary).unwrap_or_else(|| report.clone());
        let notice = Notice { code: "task-notification".to_owned(), text: words.clone() };
        let mut user = vec![Body::Notice(notice)];
        if let Some(result) = tag(&report, "result") {
            user.push(Body::Text(Text { text: result.to_owned(), ..Text::default() }));
        }
        self.start(emit, fields, Trigger::Agent, &words, user);
    }
}

/// The user's own words, and the files that they mention.
fn user_parts(message: &Fields<'_>, shown: Option<String>) -> Vec<Body> {
    let text = |text: String| Body::Text(Text { text, ..Text::default() });
    let mut user = Vec::new();
    let mut in_files = false;
    let mut file: Option<String> = None;
    for part in message.list("parts") {
        let Some(held) = part.string("text") else {
            user.push(match data_url(&part) {
                Some((media_type, url)) => {
                    Body::File(File { name: file.take(), media_type, url: Some(url), text: None })
                }
                None => Body::Data(Data { kind: "prompt-part".to_owned(), payload: part.whole() }),
            });
            continue;
        };
        let line = held.trim();
        if line == FILES_START {
            in_files = true;
        } else if in_files && line == FILES_END {
            in_files = false;
        } else if let Some(name) = mention_of(line).filter(|_| in_files && file.is_none()) {
            file = Some(name.to_owned());
        } else if in_files {
            let (media_type, url) = (None, None);
            user.push(Body::File(File { name: file.take(), media_type, url, text: Some(held) }));
        } else {
            user.push(text(held));
        }
    }
    if let Some(shown) = shown {
        user.retain(|body| body.prose().is_none());
        user.insert(0, text(shown));
    }
    user
}

/// The name in the line before the content of a file.
fn mention_of(line: &str) -> Option<&str> {
    line.strip_prefix("Content from ")?.strip_suffix(':')
}
