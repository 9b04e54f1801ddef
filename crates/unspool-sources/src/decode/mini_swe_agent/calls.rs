//! Commands and their results. A result that says "action was not executed" has three causes, and
//! the message after it tells which: the user refused the command, the user interrupted it, or it
//! ended the run, which means that it was executed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::assemble::content_hash;
use unspool_model::event::{CallRef, EventKind, ToolCall, ToolEnd, ToolOutcome};
use unspool_model::json::Json;

use super::super::permission::report_refusal;
use super::super::{Emitter, Fields};

/// The only tool.
pub(super) const TOOL: &str = "bash";
const NOT_EXECUTED: &str = "action was not executed";
/// What a command prints first to end the run.
const SUBMIT_MARK: &str = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT";

/// The commands of the latest model call that have no end yet.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OpenCalls {
    /// Without a result, in order.
    waiting: Vec<OpenCall>,
    /// With a result that says that they were not executed.
    unexecuted: Vec<OpenCall>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenCall {
    id: Arc<str>,
    submits: bool,
}

/// What the message after commands without a result says about them.
pub(super) enum Resolution {
    Refused(String),
    Interrupted,
    /// The run or its task ended, with this output.
    Submitted(Option<String>),
    /// Nothing: the next model call, or an error.
    Unknown,
}

impl OpenCalls {
    /// Emits a call. `id` is the provider's, or else made from the place of the message.
    pub fn start(
        &mut self,
        emit: &mut Emitter<'_>,
        id: Arc<str>,
        name: &str,
        input: Option<Json>,
        command: &str,
        title: Option<String>,
    ) {
        emit.push(EventKind::ToolCalled(Box::new(ToolCall {
            call: CallRef::Id(id.clone()),
            parent_call_id: None,
            name: name.to_owned(),
            content_hash: content_hash(name, input.as_ref()),
            input,
            provider_executed: false,
            title,
            running: true,
        })));
        self.waiting.push(OpenCall { id, submits: command.contains(SUBMIT_MARK) });
    }

    /// Emits the result of a call, or of the oldest one if the result names none.
    pub fn end(
        &mut self,
        emit: &mut Emitter<'_>,
        id: Option<&str>,
        extra: &Fields<'_>,
        content: String,
    ) {
        let at = match id {
            Some(id) => self.waiting.iter().position(|call| &*call.id == id),
            None => Some(0).filter(|_| !self.waiting.is_empty()),
        };
        let call = match at {
            Some(at) => self.waiting.remove(at),
            None => OpenCall { id: id.unwrap_or_default().into(), submits: false },
        };
        if extra.is("exception_info", NOT_EXECUTED) {
            return self.unexecuted.push(call);
        }
        let exception = extra.string("exception_info").filter(|text| !text.is_empty());
        let code: Option<i64> = extra.read("returncode");
        // The whole output; the message may have only its beginning and its end.
        let output = extra.string("raw_output").unwrap_or(content);
        let output = match &exception {
            Some(exception) if output.is_empty() => exception.clone(),
            Some(exception) => format!("{}\n{exception}", output.trim_end_matches('\n')),
            None => output,
        };
        let end = if exception.is_some() { ToolEnd::Failed } else { ToolEnd::Completed };
        let outcome = ToolOutcome {
            output: Some(output),
            result: exception.as_ref().and_then(|_| extra.json("exception_info")),
            // A command that did not end has -1.
            exit_code: code.filter(|_| exception.is_none()),
            duration_ms: None,
        };
        emit.push(EventKind::ToolEnded { call: CallRef::Id(call.id), end, outcome });
    }

    /// Ends the calls that the message before this one left open.
    pub fn resolve(&mut self, emit: &mut Emitter<'_>, resolution: &Resolution) {
        let unexecuted = std::mem::take(&mut self.unexecuted);
        let waiting = std::mem::take(&mut self.waiting);
        match resolution {
            Resolution::Submitted(output) => {
                // The first one that has no result ended the run, the others did not run. Without
                // any results, commands before it did.
                let had_results = !unexecuted.is_empty();
                let calls: Vec<OpenCall> = unexecuted.into_iter().chain(waiting).collect();
                let marked = calls.iter().position(|call| call.submits);
                let first = if had_results { 0 } else { calls.len().saturating_sub(1) };
                let at = marked.unwrap_or(first);
                for (place, call) in calls.into_iter().enumerate() {
                    let end = if place > at { ToolEnd::Interrupted } else { ToolEnd::Completed };
                    let output = output.clone().filter(|_| place == at);
                    finish(emit, call.id, end, output);
                }
            }
            Resolution::Refused(text) => {
                for call in unexecuted.into_iter().chain(waiting) {
                    let refused = CallRef::Id(call.id.clone());
                    report_refusal(emit, refused, TOOL, text.clone());
                    finish(emit, call.id, ToolEnd::Denied, None);
                }
            }
            Resolution::Interrupted => {
                for call in unexecuted.into_iter().chain(waiting) {
                    finish(emit, call.id, ToolEnd::Interrupted, None);
                }
            }
            Resolution::Unknown => {
                for call in unexecuted {
                    finish(emit, call.id, ToolEnd::Failed, Some(NOT_EXECUTED.to_owned()));
                }
            }
        }
    }

    /// Ends calls that the program did not accept.
    pub fn reject(&mut self, emit: &mut Emitter<'_>, why: &str) -> bool {
        let calls = std::mem::take(&mut self.waiting);
        let has_calls = !calls.is_empty();
        for call in calls {
            finish(emit, call.id, ToolEnd::Failed, Some(why.to_owned()));
        }
        has_calls
    }
}

fn finish(emit: &mut Emitter<'_>, id: Arc<str>, end: ToolEnd, output: Option<String>) {
    let outcome = ToolOutcome { output, ..ToolOutcome::default() };
    emit.push(EventKind::ToolEnded { call: CallRef::Id(id), end, outcome });
}
