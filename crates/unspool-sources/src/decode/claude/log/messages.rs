//! The `assistant` and `user` records of a session log: the model's replies, tool results, prompts,
//! what the program writes under the user's role, and the summaries of compactions. Extends
//! `LogDecoder`.

use std::sync::Arc;

use unspool_model::event::{EndReason, EventKind};
use unspool_model::part::{Body, Compaction, ContextInfo, Text};
use unspool_model::provenance::Name;
use unspool_model::session::Trigger;

use super::LogDecoder;
use super::turns::name_record;
use crate::decode::claude::NAME;
use crate::decode::claude::context::record_name;
use crate::decode::claude::marks::{Mark, mark};
use crate::decode::claude::message::{block, failure, message_text, usage, user_parts};
use crate::decode::claude::result::{ResultDetails, result};
use crate::decode::injected::{contexts, is_injected, separate};
use crate::decode::{Emitter, Fields, RecordOutcome};

impl LogDecoder {
    pub(super) fn assistant(
        &mut self,
        emit: &mut Emitter<'_>,
        fields: &Fields<'_>,
    ) -> RecordOutcome {
        let message = fields.fields("message");
        if fields.flag("isApiErrorMessage") {
            self.prompts.failed(emit);
            let name = fields.text("uuid").map(|uuid| Name::Record(uuid.into()));
            emit.push(EventKind::Part(name, Body::Error(failure(fields, message_text(&message)))));
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
        let request = fields.text("requestRef");
        if let Some(request) = &request {
            self.prompts.begin_reply(emit, request);
        }
        self.start_step(emit, fields, &id, &message, synthetic);
        if let Some(request) = &request {
            self.prompts.answered(emit, request);
        }
        let mut made = false;
        for content in message.list("content") {
            let reported =
                fields.number("apiBlockIndex").and_then(|index| u32::try_from(index).ok());
            let index = self.blocks.next(&id, reported);
            let name = Name::Block(id.clone(), index);
            let duration = fields.number("thinkingDurationMs");
            made |= block(emit, &mut self.calls, name.clone(), &content, duration);
            if !synthetic {
                self.prompts.reply(emit, &id, name, &content);
            }
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
        name_record(emit, fields, true);
        let request = fields.text("requestRef").unwrap_or_default();
        if !request.is_empty() {
            let (step, request) = (Name::Message(id.clone()), request.as_ref().into());
            emit.push(EventKind::RequestNamed { step, request });
        }
        if let Some((_, thinking)) = self.requests.iter().find(|(id, _)| **id == request) {
            emit.push(EventKind::ThinkingUpdated(*thinking));
        }
    }

    pub(super) fn user(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        self.origins |= fields.has("turnOrigin");
        let message = fields.fields("message");
        let mut results =
            message.list("content").filter(|block| block.is("type", "tool_result")).peekable();
        self.prompts.user(emit, &message, results.peek().is_some());
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
                emit.push(EventKind::Part(record_name(fields), Body::ContextInfo(info)));
            }
            return RecordOutcome::InParts;
        }
        let text = message_text(&message);
        if fields.flag("isCompactSummary") {
            return self.summary(emit, fields, text);
        }
        // What an editor or a hook added stands in blocks of its own beside a command too.
        let user = separate(NAME, user_parts(&message));
        let (context, has_words) = (contexts(&user), !is_injected(&user));
        let words_of = || user.iter().filter_map(Body::prose).collect::<Vec<_>>().join("\n");
        let text = if context.is_empty() { text } else { words_of() };
        let mark = mark(&text);
        if fields.flag("isMeta") && !matches!(mark, Mark::TaskNotification(_)) {
            return self.meta(emit, fields, &text, mark);
        }
        let words =
            |text: &str| vec![Body::Text(Text { text: text.to_owned(), ..Text::default() })];
        match mark {
            Mark::Interruption => {
                self.prompts.failed(emit);
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
            Mark::None if !has_words => {
                self.context(emit, fields, context);
                return RecordOutcome::InParts;
            }
            Mark::None => {
                // The prompt of a sub-agent comes from its parent.
                let agent = self.side_chain == Some(true);
                let trigger = if agent { Trigger::Agent } else { Trigger::User };
                self.start(emit, fields, trigger, user);
                return RecordOutcome::InParts;
            }
        }
        self.context(emit, fields, context);
        RecordOutcome::InParts
    }

    /// What the program added to a message that is no prompt.
    fn context(&self, emit: &mut Emitter<'_>, fields: &Fields<'_>, context: Vec<Body>) {
        let id = fields.text("uuid").unwrap_or_default();
        for (nth, body) in context.into_iter().enumerate() {
            let name = Name::Record(format!("{id}/context/{nth}").into());
            emit.push(EventKind::Part(Some(name), body));
        }
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
        emit.push(EventKind::Part(
            name,
            Body::Compaction(Compaction { summary: text, ..compaction }),
        ));
        RecordOutcome::InParts
    }

    /// Holds a compaction until its summary decides its turn.
    pub(in crate::decode::claude) fn boundary(
        &mut self,
        record: &mut Emitter<'_>,
        fields: &Fields<'_>,
        compaction: Compaction,
    ) {
        let name = fields.text("uuid").map(|uuid| Name::Record(uuid.into()));
        let event = record.event(EventKind::Part(name, Body::Compaction(compaction.clone())));
        self.boundary = Some((event, compaction));
    }
}
