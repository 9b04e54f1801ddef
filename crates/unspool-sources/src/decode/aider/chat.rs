//! One session of a chat history: prompts and commands, replies, and what aider says in between. The
//! file is only appended to, so turns, replies and notices are named by their numbers.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use unspool_model::event::{EndReason, Event, EventKind, ProseDetail, ProseKind};
use unspool_model::part::{Body, Data, Failure, Notice, Text};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::Trigger;

use super::super::cost_sum::CostSum;
use super::super::{Decoder, Emitter, Fields, Record, RecordOutcome};
use super::actions::Actions;
use super::edit_blocks::{Piece, pieces};
use super::question::answered_question;
use super::reply::split_reasoning;
use super::token_line::{message_cost, usage};

/// Commands that send their argument as a prompt, which is then written once more.
const PROMPTING_COMMANDS: [&str; 4] = ["/ask ", "/code ", "/architect ", "/context "];

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ChatDecoder {
    model: Option<String>,
    /// The edit format: a model that only answers questions proposes no edits.
    edit_format: String,
    turns: u32,
    steps: u32,
    notices: u32,
    /// A command whose argument is written again as a prompt.
    command: Option<String>,
    /// When it was typed.
    #[serde(skip_serializing_if = "Option::is_none")]
    command_at: Option<Timestamp>,
    last_reply: String,
    /// The notice that the next line of aider belongs to.
    notice: Option<String>,
    actions: Actions,
    cost: CostSum,
    /// The turn has ended, as far as is known: the next line may still be about its last reply.
    ended: Option<TurnEnding>,
    /// The user stopped the model call whose reply comes next.
    interrupted: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum TurnEnding {
    Completed,
    Failed,
    Interrupted,
}

impl Decoder for ChatDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let mut emit = Emitter::new(Feed::Log, record, None, out);
        let text = fields.string("text").unwrap_or_default();
        match fields.text("aider").as_deref() {
            Some("start") => {
                emit.at = fields.time("started");
                let project = fields.string("project");
                let (branch, version, cost) = (None, None, None);
                emit.push(EventKind::SessionUpdated { project, branch, version, cost });
                RecordOutcome::Metadata
            }
            Some("prompt") => {
                emit.at = fields.time("at");
                self.prompt(&mut emit, text)
            }
            Some("reply") => {
                self.begin_command(&mut emit);
                self.reply(&mut emit, text)
            }
            Some("line") => {
                self.begin_command(&mut emit);
                self.line(&mut emit, &text)
            }
            kind => {
                let kind = kind.unwrap_or("record").to_owned();
                let data = Data { kind, payload: fields.whole() };
                emit.push(EventKind::Part(None, Body::Data(data)));
                RecordOutcome::InParts
            }
        }
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    fn turn(&self) -> Option<Name> {
        (self.turns > 0).then(|| Name::Prompt(self.turns.to_string().into()))
    }
}

impl ChatDecoder {
    fn prompt(&mut self, emit: &mut Emitter<'_>, text: String) -> RecordOutcome {
        self.notice = None;
        // The architect's reply is the prompt of the editor: the same turn goes on.
        if !text.is_empty() && text.trim() == self.last_reply {
            self.last_reply.clear();
            return RecordOutcome::left_out("architect's reply as a prompt");
        }
        let repeated = self.command.as_deref().and_then(|command| command.split_once(' '));
        if repeated.is_some_and(|(_, argument)| argument.trim() == text.trim()) {
            self.command = None;
            emit.at = emit.at.or(self.command_at);
        }
        self.begin_command(emit);
        if PROMPTING_COMMANDS.iter().any(|command| text.starts_with(command)) {
            (self.command, self.command_at) = (Some(text), emit.at);
            return RecordOutcome::Metadata;
        }
        let is_command = text.starts_with('/') || text.starts_with('!');
        let trigger = if is_command { Trigger::Command } else { Trigger::User };
        self.start_turn(emit, trigger, text);
        RecordOutcome::InParts
    }

    /// Begins the turn of a command that no prompt followed.
    fn begin_command(&mut self, emit: &mut Emitter<'_>) {
        if let Some(command) = self.command.take() {
            let at = std::mem::replace(&mut emit.at, self.command_at);
            self.start_turn(emit, Trigger::Command, command);
            emit.at = at;
        }
    }

    fn start_turn(&mut self, emit: &mut Emitter<'_>, trigger: Trigger, text: String) {
        self.turns += 1;
        self.ended = None;
        self.interrupted = false;
        self.last_reply.clear();
        self.actions.begin_reply(emit);
        let user = vec![Body::Text(Text { text, ..Text::default() })];
        let names = vec![Name::Prompt(self.turns.to_string().into())];
        emit.push(EventKind::TurnStarted { names, trigger, user });
        // Only this is known to have happened then.
        emit.at = None;
        if trigger == Trigger::Command {
            self.end_turn(emit, TurnEnding::Completed);
        }
    }

    fn end_turn(&mut self, emit: &mut Emitter<'_>, ending: TurnEnding) {
        self.ended = Some(ending);
        self.end_again(emit);
    }

    /// Ends the turn once more after something that belongs to its last reply: a call opens it.
    fn end_again(&self, emit: &mut Emitter<'_>) {
        let reason = match self.ended {
            Some(TurnEnding::Completed) => EndReason::Completed,
            Some(TurnEnding::Failed) => EndReason::Failed(None),
            Some(TurnEnding::Interrupted) => EndReason::Interrupted,
            None => return,
        };
        emit.push(EventKind::TurnEnded(reason));
    }

    fn reply(&mut self, emit: &mut Emitter<'_>, text: String) -> RecordOutcome {
        self.notice = None;
        self.ended = None;
        self.actions.begin_reply(emit);
        self.steps += 1;
        let step: Arc<str> = self.steps.to_string().into();
        let name = Name::Message(step.clone());
        emit.push(EventKind::StepStarted { step: name, model: self.model.clone() });
        let (reasoning, rest) = split_reasoning(&text);
        let mut index = 0;
        let mut say = |emit: &mut Emitter<'_>, prose_kind, text: String| {
            let (block, detail) = (Some(Name::Block(step.clone(), index)), ProseDetail::default());
            index += 1;
            emit.push(EventKind::ProseCompleted { prose_kind, block, text, detail });
        };
        if let Some(reasoning) = reasoning {
            say(emit, ProseKind::Reasoning, reasoning.to_owned());
        }
        let found = match &*self.edit_format {
            "ask" | "architect" | "context" => vec![Piece::Text(rest.to_owned())],
            _ => pieces(rest),
        };
        for piece in found {
            match piece {
                Piece::Text(text) => say(emit, ProseKind::Text, text),
                Piece::Edit(edit) => self.actions.propose(emit, edit),
            }
        }
        self.last_reply = rest.trim().to_owned();
        // The reply of a stopped model call comes after the line that says so.
        if std::mem::take(&mut self.interrupted) {
            self.end_turn(emit, TurnEnding::Interrupted);
        }
        RecordOutcome::InParts
    }

    fn line(&mut self, emit: &mut Emitter<'_>, line: &str) -> RecordOutcome {
        if self.header(emit, line) {
            return RecordOutcome::Metadata;
        }
        if self.tokens(emit, line) {
            return RecordOutcome::Metadata;
        }
        if line.trim().is_empty() && self.notice.is_none() {
            return RecordOutcome::left_out("empty line");
        }
        if self.actions.edit_line(emit, line) {
            self.notice = None;
            self.end_again(emit);
            return RecordOutcome::InParts;
        }
        if let Some(question) = answered_question(line) {
            let before = self.notice.take().unwrap_or_default();
            let subject = question.subject(&before);
            if self.actions.question(emit, &question, subject) {
                self.take_subject(emit, &before, subject);
            } else {
                self.notice = Some(before).filter(|before| !before.is_empty());
                self.say_notice(emit, "question", line);
                self.notice = None;
            }
            self.end_again(emit);
            return RecordOutcome::InParts;
        }
        if line.starts_with("litellm.") {
            return self.fail(emit, line);
        }
        if line.starts_with("The LLM did not conform to the edit format") {
            self.actions.reject_edits();
        }
        if self.actions.explain_rejection(emit, line) {
            self.notice = None;
            self.end_again(emit);
            return RecordOutcome::InParts;
        }
        if line.starts_with("^C") {
            self.say_notice(emit, "interrupted", line);
            // Also written when nothing runs.
            if self.ended.is_none() {
                self.end_turn(emit, TurnEnding::Interrupted);
                self.interrupted = true;
            }
            return RecordOutcome::InParts;
        }
        let code = if line.starts_with("Retrying in ") {
            "retry"
        } else if line.starts_with("Commit ") {
            self.notice = None;
            "commit"
        } else {
            "informational"
        };
        self.say_notice(emit, code, line);
        if code == "commit" {
            self.notice = None;
        }
        RecordOutcome::InParts
    }

    /// Lines about the program and its models: at the start, and again when these change.
    fn header(&mut self, emit: &mut Emitter<'_>, line: &str) -> bool {
        let model = line.strip_prefix("Model: ").or_else(|| line.strip_prefix("Main model: "));
        if let Some((model, rest)) = model.and_then(|text| text.split_once(" with ")) {
            self.model = Some(model.to_owned());
            let words: Vec<&str> = rest.split_whitespace().collect();
            let at = words.iter().position(|word| *word == "edit");
            let format = at.and_then(|at| words.get(at.checked_sub(1)?));
            self.edit_format = format.copied().unwrap_or_default().to_owned();
            return true;
        }
        if let Some(version) = line.strip_prefix("Aider v") {
            let (project, branch, cost) = (None, None, None);
            let version = Some(version.to_owned());
            emit.push(EventKind::SessionUpdated { project, branch, version, cost });
            return true;
        }
        let marks = ["Weak model: ", "Editor model: ", "Git repo: ", "Repo-map: "];
        self.turns == 0 || marks.iter().any(|mark| line.starts_with(mark))
    }

    /// The line that ends a model call.
    fn tokens(&mut self, emit: &mut Emitter<'_>, line: &str) -> bool {
        let usage = usage(line);
        if usage.is_none() && !line.starts_with("Cost: ") {
            return false;
        }
        self.notice = None;
        self.cost.report(emit, message_cost(line), usage.unwrap_or_default());
        if let Some(usage) = usage.filter(|_| self.steps > 0) {
            let step = Name::Message(self.steps.to_string().into());
            emit.push(EventKind::UsageUpdated { step: step.clone(), usage });
            emit.push(EventKind::StepEnded { step, stop_reason: None });
            // Another reply may follow in this turn, which opens it again.
            self.end_turn(emit, TurnEnding::Completed);
        }
        true
    }

    /// An error of the provider. aider tries again, or gives up without a reply.
    fn fail(&mut self, emit: &mut Emitter<'_>, line: &str) -> RecordOutcome {
        self.notice = None;
        let code = line.strip_prefix("litellm.").and_then(|rest| rest.split(':').next());
        let (code, text) = (code.map(str::to_owned), line.to_owned());
        let name = self.next_name();
        let failure = Failure { code, status: None, text };
        // A model call of its own: aider asks again for the reply.
        self.steps += 1;
        let step = Name::Message(self.steps.to_string().into());
        let model = self.model.clone();
        emit.push(EventKind::StepStarted { step: step.clone(), model });
        emit.push(EventKind::Part(Some(name), Body::Error(failure)));
        emit.push(EventKind::StepEnded { step, stop_reason: None });
        // A reply after this opens the turn again.
        self.end_turn(emit, TurnEnding::Failed);
        RecordOutcome::InParts
    }

    fn next_name(&mut self) -> Name {
        self.notices += 1;
        self.name_of_notice()
    }

    fn name_of_notice(&self) -> Name {
        Name::Record(format!("notice-{}", self.notices).into())
    }

    /// Takes what a question is about out of the notice before it: the call has it. Nothing remains of
    /// most of these notices.
    fn take_subject(&mut self, emit: &mut Emitter<'_>, before: &str, subject: &str) {
        if subject.is_empty() {
            return;
        }
        let rest = before.strip_suffix(subject).unwrap_or(before).trim_matches('\n');
        let code = if rest.is_empty() { "" } else { "informational" };
        let notice = Notice { code: code.to_owned(), text: rest.to_owned() };
        emit.push(EventKind::Part(Some(self.name_of_notice()), Body::Notice(notice)));
    }

    /// Adds a line to the notice before it, or begins a new one.
    fn say_notice(&mut self, emit: &mut Emitter<'_>, code: &str, line: &str) {
        let (name, text) = match self.notice.take() {
            Some(text) => (self.name_of_notice(), format!("{text}\n{line}")),
            None => (self.next_name(), line.to_owned()),
        };
        self.notice = Some(text.clone());
        let text = text.trim_matches('\n').to_owned();
        let notice = Notice { code: code.to_owned(), text };
        emit.push(EventKind::Part(Some(name), Body::Notice(notice)));
    }
}
