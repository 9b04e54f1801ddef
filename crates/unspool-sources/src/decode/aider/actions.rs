//! What aider did with a reply: edits that it applied or not, and commands that it ran. An edit block
//! is a call from the reply on; an edit in another format, and a command, become a call when aider
//! says what it did.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use unspool_model::assemble::content_hash;
use unspool_model::event::{CallRef, EventKind, ToolCall, ToolEnd, ToolOutcome};
use unspool_model::json::Json;
use unspool_model::part::{Answer, Decision, Question, QuestionItem, QuestionKind};

use super::super::Emitter;
use super::edit_blocks::Edit;
use super::question::AnsweredQuestion;

const EDIT_TOOL: &str = "edit";
const SHELL_TOOL: &str = "shell";

/// The edits of the latest reply that have no end yet, and the number of calls so far.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Actions {
    edits: Vec<OpenEdit>,
    count: u32,
    /// aider has said that the edits of the reply do not fit.
    rejected: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenEdit {
    id: Arc<str>,
    path: String,
    search: String,
}

impl Actions {
    /// A new reply: what became of open edits of the one before is not known.
    pub fn begin_reply(&mut self, emit: &mut Emitter<'_>) {
        if self.rejected {
            self.fail_edits(emit, None);
        }
        self.edits.clear();
        self.rejected = false;
    }

    fn call(&mut self, emit: &mut Emitter<'_>, name: &str, input: &serde_json::Value) -> Arc<str> {
        self.count += 1;
        let id: Arc<str> = format!("{name}-{}", self.count).into();
        let input = Some(Json::checked(&input.to_string()));
        emit.push(EventKind::ToolCalled(Box::new(ToolCall {
            call: CallRef::Id(id.clone()),
            parent_call_id: None,
            name: name.to_owned(),
            content_hash: content_hash(name, input.as_ref()),
            input,
            provider_executed: false,
            title: None,
            running: false,
        })));
        id
    }

    /// An edit block of the reply.
    pub fn propose(&mut self, emit: &mut Emitter<'_>, edit: Edit) {
        let Edit { path, search, replace } = edit;
        let input = json!({ "file_path": path, "old_string": search, "new_string": replace });
        let id = self.call(emit, EDIT_TOOL, &input);
        self.edits.push(OpenEdit { id, path, search });
    }

    /// aider says what became of the edits of a file.
    fn end_edits(&mut self, emit: &mut Emitter<'_>, path: &str, end: ToolEnd, line: &str) {
        let edits = std::mem::take(&mut self.edits).into_iter();
        let (of_file, others): (Vec<OpenEdit>, Vec<OpenEdit>) =
            edits.partition(|edit| edit.path == path);
        self.edits = others;
        let mut ids: Vec<Arc<str>> = of_file.into_iter().map(|edit| edit.id).collect();
        if ids.is_empty() {
            ids.push(self.call(emit, EDIT_TOOL, &json!({ "file_path": path })));
        }
        for id in ids {
            finish(emit, id, end, Some(line.to_owned()));
        }
    }

    /// Handles a line about an edit. False if it is about something else.
    pub fn edit_line(&mut self, emit: &mut Emitter<'_>, line: &str) -> bool {
        if let Some(path) = line.strip_prefix("Applied edit to ") {
            self.end_edits(emit, path, ToolEnd::Completed, line);
        } else if let Some(path) = line.strip_prefix("Skipping edits to ") {
            self.end_edits(emit, path, ToolEnd::Denied, line);
        } else if let Some(rest) = line.strip_prefix("Did not apply edit to ") {
            let path = rest.split(" (--dry-run)").next().unwrap_or(rest);
            self.end_edits(emit, path, ToolEnd::Denied, line);
        } else {
            return false;
        }
        true
    }

    /// The edits of the reply do not fit; the message that says which ones follows.
    pub fn reject_edits(&mut self) {
        self.rejected = true;
    }

    /// The message that says which edits do not fit repeats their text. True if it is the output of
    /// one of them.
    pub fn explain_rejection(&mut self, emit: &mut Emitter<'_>, message: &str) -> bool {
        let explains = self.rejected && message.contains("SEARCH/REPLACE block");
        if explains {
            self.rejected = false;
        }
        explains && self.fail_edits(emit, Some(message))
    }

    /// True if there is an edit that failed.
    fn fail_edits(&mut self, emit: &mut Emitter<'_>, message: Option<&str>) -> bool {
        let edits = std::mem::take(&mut self.edits);
        let is_named = |edit: &OpenEdit| {
            message.is_some_and(|text| !edit.search.is_empty() && text.contains(&edit.search))
        };
        let names_some = edits.iter().any(is_named);
        let has_failed = !edits.is_empty();
        for edit in edits {
            let failed = is_named(&edit) || !names_some;
            let end = if failed { ToolEnd::Failed } else { ToolEnd::Completed };
            let output = message.filter(|_| failed).map(str::to_owned);
            finish(emit, edit.id, end, output);
        }
        has_failed
    }

    /// A question about a command or an edit, with its answer. `subject` is what it is about. False
    /// if it is about no call.
    pub fn question(
        &mut self,
        emit: &mut Emitter<'_>,
        question: &AnsweredQuestion<'_>,
        subject: &str,
    ) -> bool {
        if question.question.starts_with("Run shell command") {
            let id = self.call(emit, SHELL_TOOL, &json!({ "command": subject }));
            decide(emit, &id, SHELL_TOOL, question);
            // The output and the exit code of a command are not recorded.
            let end = if question.is_yes() { ToolEnd::Completed } else { ToolEnd::Denied };
            finish(emit, id, end, None);
            return true;
        }
        let is_about_edit = ["Create new file?", "Allow edits to file"]
            .iter()
            .any(|text| question.question.starts_with(text));
        let mut is_about_call = false;
        for edit in self.edits.iter().filter(|edit| is_about_edit && edit.path == subject) {
            is_about_call = true;
            decide(emit, &edit.id, EDIT_TOOL, question);
        }
        is_about_call
    }
}

/// Reports the question about a call, and what the user decided.
fn decide(emit: &mut Emitter<'_>, id: &Arc<str>, tool: &str, question: &AnsweredQuestion<'_>) {
    let call = CallRef::Id(id.clone());
    let item = QuestionItem { question: question.question.to_owned(), ..QuestionItem::default() };
    let asked = Question { request_id: None, kind: QuestionKind::Permission, items: vec![item] };
    let tool = tool.to_owned();
    emit.push(EventKind::QuestionAsked {
        call: call.clone(),
        tool,
        question: asked,
        requested: true,
        inferred: false,
    });
    let decision = if question.is_yes() { Decision::Allowed } else { Decision::Denied };
    let text = question.answer.to_owned();
    let answer = Answer { decision, text, choices: Vec::new(), observed: true, by: None };
    emit.push(EventKind::QuestionAnswered { call, answer });
}

fn finish(emit: &mut Emitter<'_>, id: Arc<str>, end: ToolEnd, output: Option<String>) {
    let outcome = ToolOutcome { output, ..ToolOutcome::default() };
    emit.push(EventKind::ToolEnded { call: CallRef::Id(id), end, outcome });
}
