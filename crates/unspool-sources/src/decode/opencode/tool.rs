//! Tool calls: `pending` without input, `running` with input and written again for more output,
//! then `completed` or `error`. Call ids are the provider's, and some providers restart them in
//! each message, so a call is named by message and call id. Extends `OpenCodeDecoder`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{AgentRef, CallRef, EventKind, ToolCall, ToolEnd, ToolOutcome};
use unspool_model::id::digest;
use unspool_model::part::{Body, Decision, TaskItem, TaskList, TaskState};
use unspool_model::provenance::Name;

use super::super::permission::{report_permission, report_refusal};
use super::super::{Emitter, Fields, RecordOutcome};
use super::decoder::OpenCodeDecoder;
use super::questions::{answers, dismissal, questions, suggestion};
use super::user::file;
use super::{duration, time_of};

/// What has been emitted for an open call.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OpenCall {
    /// A digest of its tool, its input and its title.
    called: u64,
    /// The length of the output emitted so far, and its digest.
    output: (usize, u64),
    #[serde(rename = "asked")]
    question: bool,
    agent: Option<String>,
}

pub(super) fn call_of(message: &str, call: &str) -> Arc<str> {
    format!("{message}/{call}").into()
}

/// Matches a call in a capture of the Agent Client Protocol, which has no message ids.
pub(in crate::decode) fn call_id_hash(call: &str) -> u64 {
    digest(format!("call id\n{call}").as_bytes())
}

impl OpenCodeDecoder {
    pub(super) fn tool(
        &mut self,
        emit: &mut Emitter<'_>,
        message: &str,
        id: Arc<str>,
        part: &Fields<'_>,
    ) -> RecordOutcome {
        let state = part.fields("state");
        let call = call_of(message, &part.text("callID").unwrap_or_default());
        let input = state.fields("input");
        let metadata = state.fields("metadata");
        let tool = part.string("tool").unwrap_or_default();
        // OpenCode calls `invalid` in place of a missing tool or one with invalid input.
        let invalid = tool == "invalid";
        let wanted = input.string("tool").filter(|_| invalid);
        let tool = wanted.unwrap_or(tool);
        let status = state.text("status").unwrap_or_default();
        let over = matches!(&*status, "completed" | "error");
        let mut held = self.calls.remove(&id).unwrap_or_default();

        emit.at = time_of(&state.fields("time"), "start").or(emit.at);
        let title = state.string("title").filter(|title| !title.is_empty());
        let whole = status != "pending";
        let raw = state.raw("input").filter(|_| whole);
        let called = digest(format!("{tool}\n{raw:?}\n{title:?}").as_bytes());
        if held.called != called {
            held.called = called;
            emit.push(EventKind::ToolCalled(Box::new(ToolCall {
                call: CallRef::Id(call.clone()),
                parent_call_id: None,
                name: tool.clone(),
                input: state.json("input").filter(|_| whole),
                content_hash: call_id_hash(&part.text("callID").unwrap_or_default()),
                provider_executed: part.fields("metadata").flag("providerExecuted"),
                title,
                running: whole,
            })));
            // Reserve the task list's place right after its call: the list arrives at its end.
            if tool == "todowrite" {
                emit.push(EventKind::BlockStarted { block: tasks_name(&id) });
            }
        }
        match &*tool {
            "task" => self.agent(emit, &call, &mut held, &input, &metadata),
            "question" | "suggest" if whole && !invalid => {
                ask(emit, &call, tool, &mut held, &input)
            }
            _ => {}
        }
        if !over {
            if let Some(output) = metadata.text("output") {
                grow(emit, &call, &mut held, &output);
            }
            self.calls.insert(id, held);
            return RecordOutcome::InParts;
        }
        emit.at = time_of(&state.fields("time"), "end").or(emit.at);
        report_approval(emit, &call, part);
        if !state.is("status", "error") {
            self.completed(emit, &id, &call, part);
            // Kilo completes a question that the user dismissed, and ends the turn.
            if let Some(message) = self.held(message) {
                message.refused |= metadata.flag("dismissed");
            }
        } else {
            let refused = self.failed(emit, &call, part);
            if let Some(message) = self.held(message) {
                message.refused |= refused;
            }
        }
        RecordOutcome::InParts
    }

    fn completed(
        &mut self,
        emit: &mut Emitter<'_>,
        id: &Arc<str>,
        call: &Arc<str>,
        part: &Fields<'_>,
    ) {
        let state = part.fields("state");
        let metadata = state.fields("metadata");
        let tool = part.text("tool").unwrap_or_default();
        let output = state.string("output");
        let end = match &*tool {
            "invalid" => ToolEnd::Failed,
            "bash" => command_end(&metadata, output.as_deref().unwrap_or_default()),
            _ => ToolEnd::Completed,
        };
        let reported: Vec<Vec<String>> = metadata.read("answers").unwrap_or_default();
        if tool == "question" && !reported.is_empty() {
            let question: Vec<String> = state
                .fields("input")
                .list("questions")
                .filter_map(|q| q.string("question"))
                .collect();
            let answer = answers(&question, &reported);
            emit.push(EventKind::QuestionAnswered { call: CallRef::Id(call.clone()), answer });
        }
        if metadata.flag("dismissed") {
            let call = CallRef::Id(call.clone());
            emit.push(EventKind::QuestionAnswered { call, answer: dismissal() });
        }
        let outcome = ToolOutcome {
            output,
            result: state.json("metadata").filter(|_| metadata.is_object()),
            exit_code: metadata.read("exit"),
            duration_ms: duration(&state.fields("time")),
        };
        emit.push(EventKind::ToolEnded { call: CallRef::Id(call.clone()), end, outcome });
        if tool == "todowrite" {
            tasks(emit, id, &metadata);
        }
        for (nth, attached) in state.list("attachments").enumerate() {
            let name = Name::Record(format!("{id}/{nth}").into());
            emit.push(EventKind::Part(Some(name), Body::File(file(&attached))));
        }
    }

    /// Emits a failed call. Returns true if the user refused it without further instructions.
    fn failed(&mut self, emit: &mut Emitter<'_>, call: &Arc<str>, part: &Fields<'_>) -> bool {
        let state = part.fields("state");
        let error = state.string("error").unwrap_or_default();
        let metadata = state.fields("metadata");
        let rejected = error.starts_with("The user rejected permission to use this specific tool");
        let dismissed = error.starts_with("The user dismissed this question");
        let rule = metadata.fields("approval").fields("rule");
        let ruled = error.starts_with("The user has specified a rule which prevents")
            || rule.is("action", "deny");
        let end = if metadata.flag("interrupted") || error == "Task cancelled" {
            ToolEnd::Interrupted
        } else if rejected || dismissed || ruled {
            ToolEnd::Denied
        } else {
            ToolEnd::Failed
        };
        let feedback = error.split_once("with the following feedback: ").map(|(_, text)| text);
        let goes_on = feedback.is_some() || ruled;
        if rejected {
            let text = feedback.unwrap_or("denied").to_owned();
            let tool = part.text("tool").unwrap_or_default();
            report_refusal(emit, CallRef::Id(call.clone()), &tool, text);
        }
        if dismissed {
            let (call, answer) = (CallRef::Id(call.clone()), dismissal());
            emit.push(EventKind::QuestionAnswered { call, answer });
        }
        let outcome = ToolOutcome {
            output: Some(error),
            result: state.json("metadata").filter(|_| metadata.is_object()),
            exit_code: None,
            duration_ms: duration(&state.fields("time")),
        };
        emit.push(EventKind::ToolEnded { call: CallRef::Id(call.clone()), end, outcome });
        (rejected || dismissed) && !goes_on
    }

    /// Emits the sub-agent of a `task` call, as soon as its session is in the metadata.
    fn agent(
        &mut self,
        emit: &mut Emitter<'_>,
        call: &Arc<str>,
        held: &mut OpenCall,
        input: &Fields<'_>,
        metadata: &Fields<'_>,
    ) {
        let background = metadata.flag("background") || input.asks_for_background();
        let Some(id) = metadata.string("sessionId") else { return };
        if background {
            self.background.insert(id.as_str().into());
        }
        if held.agent.as_ref() == Some(&id) && !background {
            return;
        }
        emit.push(EventKind::AgentStarted {
            agent: AgentRef { call: Some(call.clone()), id: Some(id.as_str().into()) },
            name: input.string("subagent_type").unwrap_or_default(),
            task: input.string("description").unwrap_or_default(),
            background,
        });
        held.agent = Some(id);
    }
}

/// Emits the question that a call asks, once.
fn ask(
    emit: &mut Emitter<'_>,
    call: &Arc<str>,
    tool: String,
    held: &mut OpenCall,
    input: &Fields<'_>,
) {
    let is_question = tool == "question";
    let question = if is_question { questions(input, None) } else { suggestion(input, None) };
    if let Some(question) = question.filter(|_| !std::mem::replace(&mut held.question, true)) {
        let (call, requested) = (CallRef::Id(call.clone()), false);
        emit.push(EventKind::QuestionAsked { call, tool, question, requested, inferred: false });
    }
}

/// Kilo says in the call that a person allowed it, and not whether for once or always.
fn report_approval(emit: &mut Emitter<'_>, call: &Arc<str>, part: &Fields<'_>) {
    let approval = part.fields("state").fields("metadata").fields("approval");
    if !approval.is("source", "manual") {
        return;
    }
    let tool = part.text("tool").unwrap_or_default();
    let text = "allowed".to_owned();
    report_permission(emit, CallRef::Id(call.clone()), &tool, Decision::Allowed, text);
}

/// Emits new output. Each update repeats the whole output so far or, once it is long, only its
/// end.
fn grow(emit: &mut Emitter<'_>, call: &Arc<str>, held: &mut OpenCall, output: &str) {
    let (length, reported) = held.output;
    let same = output.get(..length).is_some_and(|begin| reported == digest(begin.as_bytes()));
    let more = output.get(length..).filter(|more| (same || length == 0) && !more.is_empty());
    if let Some(more) = more {
        held.output = (output.len(), digest(output.as_bytes()));
        let (call, text) = (CallRef::Id(call.clone()), more.to_owned());
        emit.push(EventKind::ToolOutputDelta { call, text });
    }
}

/// How a command ended. A stopped command has no exit code; OpenCode appends the reason to
/// `output`, but not to `metadata.output`.
fn command_end(metadata: &Fields<'_>, output: &str) -> ToolEnd {
    let printed = metadata.text("output").unwrap_or_default();
    // Kilo writes this in place of no output at all, and then the reason in both.
    const NO_OUTPUT: &str = "(no output)";
    let is_empty = *printed == *output && output.starts_with(NO_OUTPUT);
    let note = output.strip_prefix(&*printed).filter(|_| !is_empty).unwrap_or(output).trim_start();
    let note = note.strip_prefix(NO_OUTPUT).map_or(note, str::trim_start);
    let note = note.strip_prefix("<shell_metadata>");
    match note.filter(|_| metadata.raw("exit").is_none()) {
        Some(note) if note.contains("User aborted the command") => ToolEnd::Interrupted,
        Some(_) => ToolEnd::Failed,
        None => ToolEnd::Completed,
    }
}

pub(super) fn tasks(emit: &mut Emitter<'_>, part: &str, reported: &Fields<'_>) {
    let items: Vec<TaskItem> = reported.list("todos").map(|item| task(&item)).collect();
    emit.push(EventKind::Part(Some(tasks_name(part)), Body::TaskList(TaskList { items })));
}

pub(super) fn tasks_name(part: &str) -> Name {
    Name::Record(format!("{part}/todos").into())
}

fn task(item: &Fields<'_>) -> TaskItem {
    let state = match item.text("status").as_deref() {
        Some("in_progress") => TaskState::Running,
        Some("completed") => TaskState::Completed,
        Some("cancelled") => TaskState::Cancelled,
        Some(_) | None => TaskState::Pending,
    };
    let text = item.string("content").unwrap_or_default();
    TaskItem { id: item.string("id"), text, state }
}
