//! Permissions of calls, for sources that say only what a person answered in the agent's own dialog,
//! or that name the tool and nothing else.

use unspool_model::event::{CallRef, EventKind};
use unspool_model::part::{Answer, Decision, Question, QuestionItem, QuestionKind};

use super::Emitter;

/// The question whether a call of this tool may run.
pub fn permission_question(request_id: Option<String>, tool: &str) -> Question {
    let item = QuestionItem { question: format!("Allow {tool}?"), ..QuestionItem::default() };
    Question { request_id, kind: QuestionKind::Permission, items: vec![item] }
}

/// Reports the question whether a call may run, and its answer. `text` is what the person said, or
/// what the source says instead.
pub fn report_permission(
    emit: &mut Emitter<'_>,
    call: CallRef,
    tool: &str,
    decision: Decision,
    text: String,
) {
    let (question, asked, tool) = (permission_question(None, tool), call.clone(), tool.to_owned());
    emit.push(EventKind::QuestionAsked {
        call: asked,
        tool,
        question,
        requested: true,
        inferred: true,
    });
    let answer = Answer { decision, text, choices: Vec::new(), observed: true, by: None };
    emit.push(EventKind::QuestionAnswered { call, answer });
}

/// The same for a call that the person refused.
pub fn report_refusal(emit: &mut Emitter<'_>, call: CallRef, tool: &str, text: String) {
    report_permission(emit, call, tool, Decision::Denied, text);
}
