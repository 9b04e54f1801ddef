//! A message that does not wait for the end of the turn. Agents that offer it take the message into
//! the turn that runs; with others the turn is interrupted and the message is the next prompt.

use serde_json::{Value, json};

use super::{Chat, Effect, Sent};
use crate::outgoing::{self, Outgoing};
use crate::protocol::{Phase, QueuedMessage};
use crate::wire::RpcError;

impl Chat {
    /// Puts a message before all that can still be moved: behind the one that is being written, and
    /// behind others of its kind.
    pub(super) fn put_first(&mut self, message: QueuedMessage) {
        let goes_before = |other: &QueuedMessage| {
            other.at_once || self.sending == Some(other.id) || self.steering == Some(other.id)
        };
        let at = self.state.queue.iter().take_while(|other| goes_before(other)).count();
        self.state.queue.insert(at, message);
    }

    /// The agent does not say whether it took a message into a turn that is over by now.
    pub(super) fn steering_timed_out(&mut self) {
        let Some(id) = self.steering.take() else { return };
        self.requests.retain(|_, sent| *sent != Sent::Steering { message: id });
        self.queue_as_prompt(id);
        self.state.held =
            Some("it is not known whether the agent took the first message".to_owned());
    }

    fn queue_as_prompt(&mut self, id: u64) {
        for message in self.state.queue.iter_mut().filter(|message| message.id == id) {
            message.at_once = false;
        }
    }

    /// Brings the first message to the agent now, if it does not wait for the end of the turn. While
    /// a question is open it waits: some agents take the question back when they are steered.
    pub(super) fn hurry(&mut self, now: u64) {
        let waits = self.state.phase != Phase::Running
            || !self.state.questions.is_empty()
            || self.steering.is_some()
            || self.sending.is_some();
        let (Some(message), Some(session)) = (self.state.queue.first(), &self.state.session) else {
            return;
        };
        if waits || !message.at_once {
            return;
        }
        if !self.steers {
            let by = message.by.clone();
            let _ = self.cancel(&by, now);
            return;
        }
        let (id, blocks, session) = (message.id, self.blocks(message), session.clone());
        let note = json!({"what": "prompt", "by": message.by});
        self.effects.push(Effect::Note(note));
        let request = self.request(Sent::Steering { message: id });
        let message = outgoing::steering(&request, &session, &blocks);
        self.effects.push(Effect::Send(Outgoing::line(&message)));
        self.steering = Some(id);
    }

    /// What the agent did with a message into its turn.
    pub(super) fn steered(&mut self, message: u64, result: Result<String, RpcError>, now: u64) {
        self.steering = None;
        if self.state.phase == Phase::Idle {
            self.deadline = None;
        }
        let reply = result.map(|reply| serde_json::from_str::<Value>(&reply).unwrap_or_default());
        let is_prompt = match &reply {
            // The turn has ended: the message is the next prompt.
            Ok(reply) => reply["outcome"] == "promptRequired",
            Err(error) => {
                self.state.notice =
                    Some(format!("the agent did not take the message at once: {}", error.message));
                true
            }
        };
        if is_prompt {
            self.queue_as_prompt(message);
        } else {
            self.state.queue.retain(|queued| queued.id != message);
        }
        self.send_next(now);
    }
}
