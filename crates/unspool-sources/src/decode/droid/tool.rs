//! Tool calls: what a call means beyond itself, and its result: the state, the exit code, and whether
//! a person or a rule refused the call. Most of that stands only in the text of the result. Shared by
//! session file and stream.

use std::sync::Arc;

use unspool_model::event::{CallRef, EventKind, ToolEnd, ToolOutcome};
use unspool_model::json::Json;

use super::super::claude::message::Calls;
use super::super::{Emitter, Fields};
use super::{question, task};

/// The tool that runs commands.
const EXECUTE_TOOL: &str = "Execute";
/// The result of a call that a person refused, and after `Error: ` of one that was interrupted.
const CANCELLED: &str = "Tool execution cancelled by user";
/// How the result of a command begins that was stopped together with `droid exec`.
const TERMINATED: &str = "Error: Command terminated by signal: ";
/// Results of calls that the options of `droid exec` do not allow.
const REFUSED: &[&str] = &["Error: Exec ended early: insufficient permission"];

/// Emits what a call means beyond itself: a question, or an agent in the background.
pub(super) fn begin_call(emit: &mut Emitter<'_>, call: &Arc<str>, tool: &str, input: &Fields<'_>) {
    match tool {
        question::ASK_TOOL => question::ask(emit, call, input),
        "Task" => task::report_background(emit, call, input),
        _ => {}
    }
}

/// Emits the end of a call and returns how it ended.
pub(super) fn emit_result(
    emit: &mut Emitter<'_>,
    calls: &mut Calls,
    id: &Arc<str>,
    is_error: bool,
    output: String,
    content: Option<Json>,
) -> ToolEnd {
    let tool = calls.remove(id).unwrap_or_default();
    let end = end_of(&tool, is_error, &output);
    if tool == question::ASK_TOOL {
        question::answer(emit, id, &output);
    }
    if tool == "Task" {
        task::report_result(emit, id, end, &output);
    }
    let exit_code = (tool == EXECUTE_TOOL).then(|| exit_code(&output)).flatten();
    // Edits return an object as text, with the changed lines.
    let is_edit = matches!(&*tool, "Edit" | "Create" | "ApplyPatch");
    let structured = Some(&output).filter(|text| is_edit && text.starts_with('{'));
    let result = content.or_else(|| structured.and_then(|text| Json::parse(text)));
    let outcome = ToolOutcome { output: Some(output), result, exit_code, duration_ms: None };
    emit.push(EventKind::ToolEnded { call: CallRef::Id(id.clone()), end, outcome });
    end
}

fn end_of(tool: &str, is_error: bool, output: &str) -> ToolEnd {
    let is_refused = |output: &str| {
        let not_permitted = format!("Error: Tool {tool} is not permitted in this exec session");
        output.starts_with(&not_permitted) || REFUSED.iter().any(|text| output.starts_with(text))
    };
    if is_error && output == CANCELLED {
        // The end of the turn tells whether that was an answer.
        ToolEnd::Rejected
    } else if is_error
        && (output.strip_prefix("Error: ") == Some(CANCELLED) || output.starts_with(TERMINATED))
    {
        ToolEnd::Interrupted
    } else if is_error && is_refused(output) {
        ToolEnd::Denied
    } else if is_error || (tool == EXECUTE_TOOL && is_timeout(output)) {
        ToolEnd::Failed
    } else {
        ToolEnd::Completed
    }
}

/// A command that ran too long is not marked as an error. It has no line with an exit code, which
/// the output of every other command ends with.
fn is_timeout(output: &str) -> bool {
    output.starts_with("Command timed out after ") && exit_code(output).is_none()
}

/// The exit code of a command, from the line that Droid appends to its output.
fn exit_code(output: &str) -> Option<i64> {
    let last = output.trim_end().lines().next_back()?;
    let code = last.strip_prefix("[Process exited with code ")?.strip_suffix(']')?;
    code.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    // C-25
    #[test]
    fn the_text_of_a_result_decides() {
        let run = |is_error, output| (end_of("Execute", is_error, output), exit_code(output));
        let timeout = "Command timed out after 2 seconds. Consider increasing the timeout.";
        assert_eq!(run(false, timeout), (ToolEnd::Failed, None));
        let echoed = format!("{timeout}\n\n\n[Process exited with code 0]");
        assert_eq!(run(false, &echoed), (ToolEnd::Completed, Some(0)));
        let failed = "Error: Command failed (exit code: 3)\nok\n\n\n[Process exited with code 3]";
        assert_eq!(run(true, failed), (ToolEnd::Failed, Some(3)));
        assert_eq!(run(true, CANCELLED).0, ToolEnd::Rejected);
        let stopped = format!("Error: {CANCELLED}");
        assert_eq!(run(true, &stopped).0, ToolEnd::Interrupted);
        let terminated = "Error: Command terminated by signal: SIGTERM\nbefore";
        assert_eq!(run(true, terminated).0, ToolEnd::Interrupted);
        assert_eq!(run(false, CANCELLED).0, ToolEnd::Completed);
        let denied =
            "Error: Tool Edit is not permitted in this exec session. Available tools: Read";
        assert_eq!(end_of("Edit", true, denied), ToolEnd::Denied);
        assert_eq!(end_of("Read", true, denied), ToolEnd::Failed);
    }
}
