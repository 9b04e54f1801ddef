//! Tool results: the text that the model got, the structured result that the program kept, and
//! whether the call was denied. Shared by log, stream and hooks.

use std::sync::Arc;

use unspool_model::event::{AgentEnd, AgentRef, CallRef, EventKind, ToolEnd, ToolOutcome};
use unspool_model::part::{Answer, Decision};

use super::super::{Emitter, Fields, json_of};
use super::message::{Calls, request};

/// The fields next to a result, which have different names in log and stream.
pub(super) struct ResultDetails<'a> {
    /// The structured result, and its fields if it is an object.
    pub structured: Option<&'a str>,
    pub kept: Fields<'a>,
    pub decision: Fields<'a>,
    /// `user-rejected`, `permission-rule`.
    pub denial: Option<String>,
    pub feedback: Option<String>,
}

pub(super) fn result(
    emit: &mut Emitter<'_>,
    calls: &mut Calls,
    block: &Fields<'_>,
    details: &ResultDetails<'_>,
) {
    let id: Arc<str> = block.text("tool_use_id").unwrap_or_default().into();
    let tool = calls.remove(&id).unwrap_or_default();
    let output = content_text(block);
    let is_error = block.flag("is_error");
    let end = end_of(is_error, &output, details);
    if let Some(answer) = answer(&tool, end, &output, details) {
        // An answer implies a question. `AskUserQuestion` has already emitted its own.
        if tool != "AskUserQuestion" {
            let question = request(None, &tool, &Fields::default());
            let (call, tool, requested) = (CallRef::Id(id.clone()), tool.clone(), true);
            emit.push(EventKind::QuestionAsked {
                call,
                tool,
                question,
                requested,
                inferred: false,
            });
        }
        emit.push(EventKind::QuestionAnswered { call: CallRef::Id(id.clone()), answer });
    }
    let structured = details.structured.and_then(json_of);
    if details.kept.is_object() {
        report_agent(emit, &id, &tool, &details.kept);
    }
    let exit_code = (tool == "Bash" && is_error).then(|| exit_code(&output)).flatten();
    // Keep blocks that are not text (images).
    let result = structured.or_else(|| block.json("content").filter(|_| !block.is_text("content")));
    let outcome = ToolOutcome { output: Some(output), result, exit_code, duration_ms: None };
    emit.push(EventKind::ToolEnded { call: CallRef::Id(id), end, outcome });
}

/// The result of a tool that the provider ran.
pub(super) fn server_result(emit: &mut Emitter<'_>, calls: &mut Calls, block: &Fields<'_>) {
    let id: Arc<str> = block.text("tool_use_id").unwrap_or_default().into();
    calls.remove(&id);
    let content = block.fields("content");
    let failed = content.text("type").is_some_and(|kind| kind.ends_with("_error"));
    let end = if failed { ToolEnd::Failed } else { ToolEnd::Completed };
    let titles: Vec<String> = block
        .list("content")
        .map(|hit| {
            let title = hit.string("title").unwrap_or_default();
            format!("{title} {}", hit.text("url").unwrap_or_default())
        })
        .collect();
    let output =
        if failed { content.string("error_code").unwrap_or_default() } else { titles.join("\n") };
    let outcome = ToolOutcome {
        output: Some(output),
        result: block.json("content"),
        ..ToolOutcome::default()
    };
    emit.push(EventKind::ToolEnded { call: CallRef::Id(id), end, outcome });
}

fn end_of(is_error: bool, output: &str, details: &ResultDetails<'_>) -> ToolEnd {
    // Before 2.1.197 only this text distinguishes a rejection from a failure.
    let rejected = details.structured == Some("\"User rejected tool use\"")
        || (details.denial.is_none() && output.starts_with("The user doesn't want to proceed"));
    let interrupted = details.kept.flag("interrupted");
    if details.decision.text("decision").as_deref() == Some("reject")
        || details.denial.as_deref() == Some("permission-rule")
    {
        ToolEnd::Denied
    } else if details.denial.as_deref() == Some("user-rejected") || (is_error && rejected) {
        ToolEnd::Rejected
    } else if interrupted {
        ToolEnd::Interrupted
    } else if is_error {
        ToolEnd::Failed
    } else {
        ToolEnd::Completed
    }
}

/// A person's answer, if the result holds one. A rule that allowed the call is not a person.
fn answer(tool: &str, end: ToolEnd, output: &str, details: &ResultDetails<'_>) -> Option<Answer> {
    let choices: Vec<(String, String)> = answers(&details.kept);
    if !choices.is_empty() {
        let text: Vec<&str> = choices.iter().map(|(_, answer)| answer.as_str()).collect();
        let text = text.join(" · ");
        return Some(Answer {
            decision: Decision::Answered,
            text,
            choices,
            observed: true,
            by: None,
        });
    }
    let plain = |decision, text: String| {
        Some(Answer { decision, text, choices: Vec::new(), observed: true, by: None })
    };
    match details.decision.text("source").as_deref() {
        Some("user_temporary") => plain(Decision::Allowed, "allowed once".to_owned()),
        Some("user_permanent") if details.decision.has("grantScope") => {
            plain(Decision::Allowed, "allowed always".to_owned())
        }
        Some("user_reject") => {
            let decision =
                if tool == "AskUserQuestion" { Decision::Declined } else { Decision::Denied };
            plain(decision, details.feedback.clone().unwrap_or_else(|| output.to_owned()))
        }
        _ => {
            let feedback = details.feedback.clone().filter(|_| end == ToolEnd::Rejected)?;
            plain(Decision::Denied, feedback)
        }
    }
}

/// `AskUserQuestion`: pairs of question text and answer, in order.
pub(super) fn answers(kept: &Fields<'_>) -> Vec<(String, String)> {
    kept.fields("answers").pairs()
}

/// Reports the sub-agent that a call started. Versions before 2.0.30 name no agent, and before
/// 2.1.20 background agents ran in the foreground.
pub(super) fn report_agent(emit: &mut Emitter<'_>, call: &Arc<str>, tool: &str, kept: &Fields<'_>) {
    if !matches!(tool, "Agent" | "Task") {
        return;
    }
    let id = kept.text("agentId").map(|id| id.into());
    let agent = AgentRef { call: Some(call.clone()), id };
    let background = kept.flag("isAsync");
    emit.push(EventKind::AgentProgressed { agent: agent.clone(), activity: None, background });
    if !background && kept.has("content") {
        emit.push(EventKind::AgentEnded { agent, end: AgentEnd::Completed });
    }
}

/// The text of a result: a string, or the texts of its blocks.
pub(in crate::decode) fn content_text(block: &Fields<'_>) -> String {
    match block.string("content") {
        Some(text) => text,
        None => {
            let texts: Vec<String> =
                block.list("content").filter_map(|inner| inner.string("text")).collect();
            texts.join("\n")
        }
    }
}

/// A failing command's result begins with its exit code (2.1.x).
fn exit_code(output: &str) -> Option<i64> {
    let rest = output.strip_prefix("Exit code ")?;
    rest.split(['\n', ' ']).next()?.parse().ok()
}

/// The text of a structured response of a hook, used until the log has the text that the model saw.
pub(super) fn response_text(fields: &Fields<'_>) -> Option<String> {
    if let Some(text) = fields.string("tool_response") {
        return Some(text);
    }
    let kept = fields.fields("tool_response");
    let said = kept.list("llmContent").find_map(|part| part.string("text"));
    kept.string("stdout")
        .or_else(|| kept.fields("file").string("content"))
        .or_else(|| kept.string("llmContent").or(said))
}
