//! Which request is being answered. The log has a request before its reply, and one that is tried again
//! has no reply: it is a step without parts, so that retries are seen as the calls that they are.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use unspool_model::event::EventKind;
use unspool_model::prompt::CallTimes;
use unspool_model::provenance::Name;

use super::super::super::prompt_pieces::timed;
use super::super::super::{Emitter, Fields};
use super::Prompts;

/// Requests that wait for a reply. The program tries one after the other.
const MAX_OPEN_CALLS: usize = 32;

/// The requests that have no reply yet, and the one whose reply is being written.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct OpenCalls {
    waiting: VecDeque<OpenCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answered: Option<OpenCall>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenCall {
    request: Arc<str>,
    sent: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
}

impl OpenCalls {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.answered.is_none()
    }
}

impl Prompts {
    pub(super) fn begin_call(
        &mut self,
        emit: &mut Emitter<'_>,
        request: &str,
        fields: &Fields<'_>,
    ) {
        let (sent, model) = (emit.at, fields.fields("params").string("model"));
        self.calls.waiting.push_back(OpenCall { request: request.into(), sent, model });
        if self.calls.waiting.len() > MAX_OPEN_CALLS
            && let Some(call) = self.calls.waiting.pop_front()
        {
            unanswered(emit, call, None);
        }
    }

    /// The reply to a request comes. Those before it got none, and their steps are before its step.
    pub fn begin_reply(&mut self, emit: &mut Emitter<'_>, request: &str) {
        let OpenCalls { waiting, answered } = &mut self.calls;
        if let Some(at) = waiting.iter().position(|call| *call.request == *request) {
            for call in waiting.drain(..at) {
                unanswered(emit, call, None);
            }
            *answered = waiting.pop_front();
        }
    }

    /// A record of the reply to a request.
    pub fn answered(&self, emit: &mut Emitter<'_>, request: &str) {
        let answered = &self.calls.answered;
        let Some(call) = answered.as_ref().filter(|call| *call.request == *request) else { return };
        let times = CallTimes { sent: call.sent, first_token: None, ended: emit.at };
        timed(emit, call.request.clone(), times);
    }

    /// All requests that wait have failed. The last one has just ended.
    pub fn failed(&mut self, emit: &mut Emitter<'_>) {
        let last = self.calls.waiting.pop_back();
        for call in self.calls.waiting.drain(..) {
            unanswered(emit, call, None);
        }
        let ended = emit.at;
        last.into_iter().for_each(|call| unanswered(emit, call, ended));
    }

    /// A turn begins. The first request of a turn may be written before the prompt, but it was not
    /// sent before it.
    pub fn begin_turn(&mut self, emit: &mut Emitter<'_>) {
        let (began, waiting) = (emit.at, &mut self.calls.waiting);
        while let Some(call) = waiting.pop_front_if(|call| call.sent < began) {
            // The turn before may have ended, and nothing of it goes on.
            unanswered(emit, OpenCall { model: None, ..call }, None);
        }
    }
}

/// A request without a reply. The step has its name. Only one with a model may reopen its turn.
fn unanswered(emit: &mut Emitter<'_>, call: OpenCall, ended: Option<Timestamp>) {
    let OpenCall { request, sent, model } = call;
    let step = Name::Message(request.clone());
    if model.is_some() {
        emit.push(EventKind::StepStarted { step: step.clone(), model });
    }
    emit.push(EventKind::RequestNamed { step, request: request.clone() });
    timed(emit, request, CallTimes { sent, first_token: None, ended });
}
