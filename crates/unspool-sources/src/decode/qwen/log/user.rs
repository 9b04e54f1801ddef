//! The `user` records of a session log: prompts, what the user typed while a turn ran, and reports
//! of background agents, which start a turn. Extends `LogDecoder`.

use unspool_model::event::{AgentEnd, AgentRef, EventKind};
use unspool_model::part::{Body, Data, File, Interjection, Notice, Text};
use unspool_model::session::Trigger;

use super::super::super::claude::tag;
use super::super::super::injected::separate_text;
use super::super::super::referenced_files::{Referenced, ReferencedFiles};
use super::super::super::{Emitter, Fields, RecordOutcome};
use super::super::text_of;
use super::super::tool::data_url;
use super::{LogDecoder, record_name};

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

/// The user's own words, the files that they mention, and what hooks and editors added.
fn user_parts(message: &Fields<'_>, shown: Option<String>) -> Vec<Body> {
    let mut user = Vec::new();
    let mut files = ReferencedFiles::default();
    for part in message.list("parts") {
        match part.string("text") {
            Some(text) => match files.read(text) {
                Some(Referenced::File(file)) => user.push(Body::File(file)),
                Some(Referenced::Words(text)) => {
                    user.extend(separate_text(super::super::NAME, text))
                }
                None => {}
            },
            None => user.push(match data_url(&part) {
                Some((media_type, url)) => {
                    let name = files.take_name();
                    Body::File(File { name, media_type, url: Some(url), text: None })
                }
                None => Body::Data(Data { kind: "prompt-part".to_owned(), payload: part.whole() }),
            }),
        }
    }
    if let Some(text) = shown {
        let first = user.iter().position(|body| body.prose().is_some()).unwrap_or(0);
        user.retain(|body| body.prose().is_none());
        let words = Body::Text(Text { text, ..Text::default() });
        user.insert(first.min(user.len()), words);
    }
    user
}
