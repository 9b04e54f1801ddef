//! Tool calls: an entry of `toolCallStates` is the call, its state and its result. The document is
//! rewritten while calls run, so an entry may come again in a later state.

use std::sync::Arc;

use unspool_model::assemble::content_hash;
use unspool_model::event::{
    AgentEnd, AgentRef, CallRef, EventKind, ToolCall, ToolEnd, ToolOutcome,
};
use unspool_model::json::Json;
use unspool_model::part::{
    Answer, Body, Decision, Question, QuestionItem, QuestionKind, QuestionOption, TaskItem,
    TaskList, TaskState,
};
use unspool_model::provenance::Name;

use super::super::permission::report_refusal;
use super::super::{Emitter, Fields};

const ASK_TOOL: &str = "AskQuestion";
const AGENT_TOOL: &str = "Subagent";

/// Emits a call in its present state. Returns true if the user refused it, which ends the turn.
pub(super) fn emit_call(emit: &mut Emitter<'_>, state: &Fields<'_>) -> bool {
    let call = state.fields("toolCall");
    let id = state.text("toolCallId").or_else(|| call.text("id")).unwrap_or_default();
    let id: Arc<str> = id.into();
    let status = state.text("status").unwrap_or_default();
    emit_request(emit, &id, &call, Some(state), status != "generated" && status != "generating");
    let name = call.fields("function").string("name").unwrap_or_default();
    let end = match &*status {
        // The exit code of a command is nowhere; a command that failed is `done` as well.
        "done" => Some(ToolEnd::Completed),
        "errored" => Some(ToolEnd::Failed),
        "canceled" => Some(ToolEnd::Denied),
        _ => None,
    };
    let texts: Vec<String> =
        state.list("output").filter_map(|item| item.string("content")).collect();
    let output = Some(texts.join("\n")).filter(|_| !texts.is_empty());
    if let Some(end) = end {
        report_answer(emit, &id, &name, end, output.as_deref().unwrap_or_default());
        report_agent_end(emit, &id, &name, end);
    }
    let call = CallRef::Id(id.clone());
    let outcome = ToolOutcome { output, ..ToolOutcome::default() };
    match end {
        Some(end) => emit.push(EventKind::ToolEnded { call, end, outcome }),
        // What a command has printed so far.
        None if outcome.output.is_some() => emit.push(EventKind::ToolRefined { call, outcome }),
        None => {}
    }
    if name == "Checklist" {
        report_tasks(emit, &id, &input_text(state, "checklist"));
    }
    end == Some(ToolEnd::Denied)
}

/// Emits a call as the model requested it.
pub(super) fn emit_request(
    emit: &mut Emitter<'_>,
    id: &Arc<str>,
    call: &Fields<'_>,
    state: Option<&Fields<'_>>,
    running: bool,
) {
    let function = call.fields("function");
    let name = function.string("name").unwrap_or_default();
    // The arguments are the model's text, and `parsedArgs` is empty if they are not JSON.
    let arguments = function.text("arguments").unwrap_or_default();
    let parsed = state.and_then(|state| state.json("parsedArgs"));
    let input = Json::parse(&arguments)
        .or_else(|| parsed.filter(|input| input.text() != "{}" || arguments.is_empty()))
        .or_else(|| Some(Json::string(&arguments)));
    emit.push(EventKind::ToolCalled(Box::new(ToolCall {
        call: CallRef::Id(id.clone()),
        parent_call_id: None,
        content_hash: content_hash(&name, input.as_ref()),
        name: name.clone(),
        input,
        provider_executed: false,
        title: None,
        running,
    })));
    let Some(state) = state else { return };
    match &*name {
        ASK_TOOL => ask(emit, id, &state.fields("parsedArgs")),
        AGENT_TOOL => {
            let agent = AgentRef { call: Some(id.clone()), id: None };
            let name = input_text(state, "subagent_name");
            let name = if name.is_empty() { "agent".to_owned() } else { name };
            let task = input_text(state, "description");
            emit.push(EventKind::AgentStarted { agent, name, task, background: false });
        }
        _ => {}
    }
}

fn input_text(state: &Fields<'_>, name: &str) -> String {
    state.fields("parsedArgs").string(name).unwrap_or_default()
}

fn ask(emit: &mut Emitter<'_>, id: &Arc<str>, input: &Fields<'_>) {
    let options: Vec<String> = input.read("options").unwrap_or_default();
    let kind = if options.is_empty() { QuestionKind::Text } else { QuestionKind::Choice };
    let option = |label| QuestionOption { label, description: None };
    let item = QuestionItem {
        question: input.string("question").unwrap_or_default(),
        options: options.into_iter().map(option).collect(),
        ..QuestionItem::default()
    };
    let question = Question { request_id: None, kind, items: vec![item] };
    let (call, tool) = (CallRef::Id(id.clone()), ASK_TOOL.to_owned());
    emit.push(EventKind::QuestionAsked { call, tool, question, requested: true, inferred: false });
}

/// The answer of a person: to a question, or the refusal of a call.
fn report_answer(emit: &mut Emitter<'_>, id: &Arc<str>, name: &str, end: ToolEnd, output: &str) {
    let call = CallRef::Id(id.clone());
    let is_question = name == ASK_TOOL;
    let decision = match end {
        ToolEnd::Completed if is_question => Decision::Answered,
        ToolEnd::Denied if is_question => Decision::Declined,
        ToolEnd::Denied => return report_refusal(emit, call, name, output.to_owned()),
        ToolEnd::Completed | ToolEnd::Failed | ToolEnd::Interrupted | ToolEnd::Rejected => return,
    };
    let text = chosen(output).unwrap_or(output).to_owned();
    let answer = Answer { decision, text, choices: Vec::new(), observed: true, by: None };
    emit.push(EventKind::QuestionAnswered { call, answer });
}

/// The option of `User selected option 2: "Fahrenheit"`.
fn chosen(output: &str) -> Option<&str> {
    let (_, option) = output.strip_prefix("User selected option ")?.split_once(": \"")?;
    option.strip_suffix('"')
}

/// The steps of a sub-agent are nowhere: the call and its result are all there is.
fn report_agent_end(emit: &mut Emitter<'_>, id: &Arc<str>, name: &str, end: ToolEnd) {
    if name != AGENT_TOOL {
        return;
    }
    let agent = AgentRef { call: Some(id.clone()), id: None };
    let end = match end {
        ToolEnd::Completed => AgentEnd::Completed,
        ToolEnd::Failed => AgentEnd::Failed,
        ToolEnd::Denied | ToolEnd::Interrupted | ToolEnd::Rejected => AgentEnd::Interrupted,
    };
    emit.push(EventKind::AgentEnded { agent, end });
}

/// The whole list of tasks, as Markdown.
fn report_tasks(emit: &mut Emitter<'_>, id: &Arc<str>, checklist: &str) {
    let item = |line: &str| {
        let rest = line.trim().strip_prefix("- [").or_else(|| line.trim().strip_prefix("* ["))?;
        let (mark, text) = rest.split_once(']')?;
        let is_done = mark.eq_ignore_ascii_case("x");
        let state = if is_done { TaskState::Completed } else { TaskState::Pending };
        Some(TaskItem { id: None, text: text.trim().to_owned(), state })
    };
    let items: Vec<TaskItem> = checklist.lines().filter_map(item).collect();
    if !items.is_empty() {
        let name = Name::Record(format!("{id}/tasks").into());
        emit.push(EventKind::Part(Some(name), Body::TaskList(TaskList { items })));
    }
}
