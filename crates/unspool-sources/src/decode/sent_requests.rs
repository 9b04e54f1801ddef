//! Prompts out of the requests themselves, for all decoders of traces: a request repeats what the one
//! before it had, so it is reported as the difference to the one with the longest equal beginning.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use unspool_model::event::EventKind;
use unspool_model::prompt::{
    CallTimes, MessageDigest, MessageList, PromptAnswer, PromptCall, PromptGap, PromptMessage,
    PromptRecord,
};
use unspool_model::provenance::Name;

use super::Emitter;
use super::prompt_pieces::timed;

/// Requests that a later one may continue. A session has a few chains: its own, and sub-agents.
const MAX_CHAINS: usize = 16;

/// The latest requests of a session.
#[derive(Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct SentRequests(VecDeque<SentRequest>);

#[derive(Serialize, Deserialize)]
struct SentRequest {
    request: Arc<str>,
    head: Option<MessageDigest>,
    messages: Vec<MessageDigest>,
}

/// A request, as far as it is the same for all agents.
pub(super) struct Request {
    pub name: Arc<str>,
    pub at: Option<Timestamp>,
    pub times: CallTimes,
    pub model: Option<Arc<str>>,
    pub list: MessageList,
    pub gaps: Vec<PromptGap>,
    /// The step that answers it.
    pub step: Option<Name>,
}

impl SentRequests {
    /// Reports a request. `head` and `message` make the messages that were not reported before.
    pub fn report(
        &mut self,
        emit: &mut Emitter<'_>,
        request: Request,
        head: Option<MessageDigest>,
        messages: Vec<MessageDigest>,
        mut message: impl FnMut(&mut Emitter<'_>, Option<usize>) -> PromptMessage,
    ) {
        let equal = |sent: &SentRequest| {
            let pairs = sent.messages.iter().zip(&messages);
            pairs.take_while(|(one, other)| one == other).count()
        };
        let base = self.0.iter().max_by_key(|sent| equal(sent)).filter(|sent| equal(sent) > 0);
        let keep = base.map_or(0, equal);
        let base = base.map(|sent| sent.request.clone());
        let push = |emit: &mut Emitter<'_>, record| {
            emit.push(EventKind::PromptRecorded(Box::new(record)));
        };
        if head.is_some() && !self.0.iter().any(|sent| sent.head == head) {
            let head = message(emit, None);
            push(emit, PromptRecord::Message(head));
        }
        for nth in keep..messages.len() {
            let message = message(emit, Some(nth));
            push(emit, PromptRecord::Message(message));
        }
        let Request { name, at, times, model, list, gaps, step } = request;
        let call = PromptCall {
            request: name.clone(),
            at,
            model,
            head,
            base,
            keep: u32::try_from(keep).unwrap_or(u32::MAX),
            tail: messages.get(keep..).unwrap_or_default().to_vec(),
            list,
            gaps,
        };
        push(emit, PromptRecord::Call(call));
        timed(emit, name.clone(), times);
        if let Some(step) = step {
            push(emit, PromptRecord::Answer(PromptAnswer { request: name.clone(), step }));
        }
        self.0.push_back(SentRequest { request: name, head, messages });
        if self.0.len() > MAX_CHAINS {
            self.0.pop_front();
        }
    }
}
