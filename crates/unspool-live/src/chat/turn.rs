//! Messages to the agent: the queue, the prompt in flight, and its interruption.

use serde_json::{Value, json};

use super::update::label;
use super::{CANCEL_TIMEOUT, Chat, Effect, Sent};
use crate::outgoing::{self, Outgoing};
use crate::protocol::{Command, Outcome, Phase, PromptImage, QueuedMessage, TurnEnd};
use crate::wire::RpcError;

/// The most that the queue takes.
const MAX_MESSAGES: usize = 100;
const MAX_QUEUE_BYTES: usize = 4 * 1024 * 1024;
/// The longest draft that is kept.
const MAX_DRAFT_BYTES: usize = 2 * 1024 * 1024;

impl Chat {
    pub(super) fn command(&mut self, command: Command, by: &str, now: u64) -> Outcome {
        self.state.notice = None;
        if self.state.phase == Phase::Ended {
            return match command {
                Command::Draft { question: None, text } if text.len() <= MAX_DRAFT_BYTES => {
                    self.state.draft = text;
                    Outcome::Accepted
                }
                Command::End => Outcome::Accepted,
                Command::Prompt { .. }
                | Command::Answer { .. }
                | Command::Cancel
                | Command::Edit { .. }
                | Command::Remove { .. }
                | Command::Move { .. }
                | Command::Release
                | Command::Set { .. }
                | Command::Draft { .. }
                | Command::Clear => refuse("the agent has ended"),
            };
        }
        match command {
            Command::Prompt { text, images, at_once } => {
                self.enqueue(text, images, at_once, by, now)
            }
            Command::Answer { question, answer } => self.answer(&question, &answer, by, now),
            Command::Cancel => self.cancel(by, now),
            Command::Edit { message, text } => self.edit(message, text),
            Command::Remove { message } => self.remove(message),
            Command::Move { message, position } => self.move_message(message, position),
            Command::Release => {
                self.state.held = None;
                self.send_next(now);
                Outcome::Accepted
            }
            Command::Set { option, value } => match self.set(&option, &value) {
                Ok(()) => Outcome::Accepted,
                Err(why) => Outcome::Refused(why),
            },
            Command::Draft { text, .. } if text.len() > MAX_DRAFT_BYTES => {
                refuse("the draft is too long to be kept")
            }
            Command::Draft { question: None, text } => {
                self.state.draft = text;
                Outcome::Accepted
            }
            Command::Draft { question: Some(question), text } => {
                if self.state.questions.iter().any(|open| open.id == question) {
                    self.state.answer_drafts.insert(question, text);
                    return Outcome::Accepted;
                }
                refuse("the question is gone")
            }
            Command::Clear if self.state.phase == Phase::Idle => {
                self.clear(now);
                Outcome::Accepted
            }
            Command::Clear => refuse("the agent is working; interrupt it first"),
            Command::End => {
                self.end_by(by);
                Outcome::Accepted
            }
        }
    }

    fn enqueue(
        &mut self,
        text: String,
        images: Vec<PromptImage>,
        at_once: bool,
        by: &str,
        now: u64,
    ) -> Outcome {
        if text.trim().is_empty() && images.is_empty() {
            return refuse("the message is empty");
        }
        if !images.is_empty() && !self.state.takes_images {
            return refuse("the agent takes no images");
        }
        let size = |text: &str, images: &[PromptImage]| {
            text.len() + images.iter().map(|image| image.data.len()).sum::<usize>()
        };
        let queued = self.state.queue.iter().map(|message| size(&message.text, &message.images));
        let bytes: usize = queued.sum::<usize>() + size(&text, &images);
        if self.state.queue.len() >= MAX_MESSAGES || bytes > MAX_QUEUE_BYTES {
            return refuse("the queue is full; wait until the agent has taken a message");
        }
        let id = self.next_message;
        self.next_message += 1;
        self.state.draft.clear();
        let message = QueuedMessage { id, text, by: by.to_owned(), images, at_once };
        if at_once {
            self.put_first(message);
        } else {
            self.state.queue.push(message);
        }
        self.send_next(now);
        Outcome::Accepted
    }

    /// Sends the first message of the queue, if the agent waits for one.
    pub(super) fn send_next(&mut self, now: u64) {
        let ready = self.state.phase == Phase::Idle
            && self.prompt.is_none()
            && self.sending.is_none()
            && self.steering.is_none()
            && (self.state.held.is_none() || self.state.queue.first().is_some_and(|m| m.at_once))
            && !self.waits_for_setting();
        let Some(session) = self.state.session.clone().filter(|_| ready) else { return };
        let Some(message) = self.state.queue.first() else { return };
        let (id, by, blocks) = (message.id, message.by.clone(), self.blocks(message));
        let request = self.request(Sent::Prompt);
        self.effects.push(Effect::Note(json!({"what": "prompt", "by": by})));
        let lines = vec![outgoing::prompt(&request, &session, &blocks).to_string()];
        self.effects.push(Effect::Send(Outgoing { lines, prompt: Some(id), recorded: None }));
        (self.sending, self.prompt) = (Some(id), Some(request));
        self.state.phase = Phase::Running;
        self.state.plan.clear();
        self.call_kinds.clear();
        self.last_line = now;
    }

    /// The content of a message on the wire.
    pub(super) fn blocks(&self, message: &QueuedMessage) -> Value {
        let links = (self.find_links)(&self.spec.folder, &message.text);
        outgoing::blocks(&message.text, &links, &message.images)
    }

    /// A prompt is in the agent's standard input: it is no longer ours.
    pub(super) fn written(&mut self, prompt: Option<u64>) {
        if let Some(prompt) = prompt.filter(|prompt| self.sending == Some(*prompt)) {
            self.state.queue.retain(|message| message.id != prompt);
            self.sending = None;
        }
    }

    /// A message that never reached the agent goes back to where it was typed.
    pub(super) fn give_back(&mut self) {
        let Some(id) = self.sending.take() else { return };
        let Some(at) = self.state.queue.iter().position(|message| message.id == id) else { return };
        // The composer takes text alone: a message with images stays in the queue.
        if !self.state.queue[at].images.is_empty() {
            return;
        }
        let message = self.state.queue.remove(at);
        let draft = std::mem::take(&mut self.state.draft);
        self.state.draft = match draft.as_str() {
            "" => message.text,
            draft => format!("{}\n{draft}", message.text),
        };
    }

    pub(super) fn prompt_ended(&mut self, result: Result<String, RpcError>, now: u64) {
        self.written(self.sending);
        self.prompt = None;
        let number = self.state.last_turn.as_ref().map_or(1, |turn| turn.number + 1);
        let (stop_reason, error) = match result {
            Ok(reply) => {
                let reply: Value = serde_json::from_str(&reply).unwrap_or_default();
                (reply["stopReason"].as_str().map(label), None)
            }
            Err(error) => {
                let hint = self.log_in_hint(&error);
                (None, Some(format!("{}{hint}", error.message)))
            }
        };
        if self.state.phase == Phase::Ended {
            return;
        }
        // Some agents end an interrupted turn as if it were complete.
        let cancelled = self.state.phase == Phase::Cancelling;
        let hold = match (&error, stop_reason.as_deref()) {
            (Some(_), _) => Some("the last message failed"),
            // It was interrupted for the sake of this message.
            (None, _) if self.state.queue.first().is_some_and(|first| first.at_once) => None,
            (None, Some("cancelled")) => Some("the last message was interrupted"),
            (None, _) if cancelled => Some("the last message was interrupted"),
            (None, _) => None,
        };
        self.state.last_turn = Some(TurnEnd { number, stop_reason, error });
        self.decline_all();
        (self.state.phase, self.state.stuck, self.deadline) = (Phase::Idle, false, None);
        self.state.silent_since = None;
        self.state.held = hold.filter(|_| !self.state.queue.is_empty()).map(str::to_owned);
        if self.steering.is_some() {
            self.deadline = Some(now + CANCEL_TIMEOUT);
        }
        self.send_next(now);
        // It was meant for the turn that is over.
        for message in &mut self.state.queue {
            message.at_once &= self.steering == Some(message.id);
        }
    }

    pub(super) fn cancel(&mut self, by: &str, now: u64) -> Outcome {
        match self.state.phase {
            Phase::Running => {}
            Phase::Cancelling => return refuse("the agent is stopping already"),
            Phase::Starting | Phase::Idle | Phase::Ended => {
                return refuse("there is nothing to interrupt");
            }
        }
        let Some(session) = self.state.session.clone() else {
            return refuse("there is nothing to interrupt");
        };
        // One write: an agent that reads the cancellation must not wait for an answer.
        let mut lines = vec![outgoing::cancel(&session).to_string()];
        lines.extend(self.close_questions(by));
        self.effects.push(Effect::Send(Outgoing { lines, ..Outgoing::default() }));
        self.state.phase = Phase::Cancelling;
        self.deadline = Some(now + CANCEL_TIMEOUT);
        Outcome::Accepted
    }

    /// A message that can still be changed. One that is on its way cannot.
    fn queued(&mut self, id: u64) -> Result<usize, Outcome> {
        let at = self.state.queue.iter().position(|message| message.id == id);
        match at.filter(|_| self.sending != Some(id) && self.steering != Some(id)) {
            Some(at) => Ok(at),
            None => Err(refuse("the message was sent already")),
        }
    }

    fn edit(&mut self, id: u64, text: String) -> Outcome {
        if text.trim().is_empty() {
            return refuse("the message is empty; take it back instead");
        }
        match self.queued(id) {
            Ok(at) => {
                self.state.queue[at].text = text;
                Outcome::Accepted
            }
            Err(refused) => refused,
        }
    }

    fn remove(&mut self, id: u64) -> Outcome {
        match self.queued(id) {
            Ok(at) => {
                self.state.queue.remove(at);
                if self.state.queue.is_empty() {
                    self.state.held = None;
                }
                Outcome::Accepted
            }
            Err(refused) => refused,
        }
    }

    fn move_message(&mut self, id: u64, position: usize) -> Outcome {
        match self.queued(id) {
            Ok(at) => {
                let message = self.state.queue.remove(at);
                let sending = usize::from(self.sending.is_some());
                let position = position.clamp(sending, self.state.queue.len().max(sending));
                self.state.queue.insert(position.min(self.state.queue.len()), message);
                Outcome::Accepted
            }
            Err(refused) => refused,
        }
    }
}

pub(super) fn refuse(why: &str) -> Outcome {
    Outcome::Refused(why.to_owned())
}
