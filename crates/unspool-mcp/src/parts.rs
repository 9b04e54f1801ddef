//! What a part is told as: its fields, and its texts by name.

use std::borrow::Cow;
use std::fmt::Write;

use unspool_model::id::SessionId;
use unspool_model::part::{Answer, Body, Part, Question, TaskItem, TaskState};

use crate::exit::Exit;
use crate::item::{Item, SafeValue};

/// The texts of a part by name, in the order in which they are told.
pub type Texts<'a> = Vec<(&'static str, Cow<'a, str>)>;

/// Whether the structured result of a call is told beside its output, which mostly says the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    Brief,
    Full,
}

/// The fields of a part without its texts.
pub fn head(item: &mut Item, exit: &mut Exit<'_>, agent: &str, part: &Part) {
    item.id("part", &part.id).word("kind", part.body.kind().name()).time("at", part.started);
    match &part.body {
        Body::Tool(tool) => {
            item.field(exit, "tool", Some(&tool.name)).word("state", tool.state.name());
            item.number_if("duration_ms", tool.duration_ms);
            if let Some(code) = tool.exit_code.filter(|code| *code != 0) {
                item.field(exit, "exit_code", Some(&code.to_string()));
            }
        }
        Body::Agent(agents) => {
            let told = agents.agents.iter().map(|sub_agent| {
                let mut item = Item::new();
                // A temporary id has no session.
                if !sub_agent.id.starts_with("temp_") {
                    item.id("session", &SessionId::of(agent, &sub_agent.id));
                }
                item.field(exit, "name", Some(&sub_agent.name))
                    .word("state", sub_agent.state.name());
                item.done()
            });
            let told: Vec<SafeValue> = told.collect();
            item.list("sub_agents", told);
        }
        Body::Error(failure) => {
            item.field(exit, "code", failure.code.as_deref());
        }
        Body::Notice(notice) => {
            item.field(exit, "code", Some(&notice.code));
        }
        Body::Data(data) => {
            item.field(exit, "data_kind", Some(&data.kind));
        }
        Body::SkillLoad(skill) => {
            item.field(exit, "name", Some(&skill.name));
        }
        Body::ContextInfo(info) => {
            item.field(exit, "title", Some(&info.title));
        }
        Body::File(file) => {
            item.field(exit, "name", file.name.as_deref());
        }
        Body::Patch(patch) => {
            item.field(exit, "path", patch.path.as_deref());
        }
        Body::Source(source) => {
            item.field(exit, "title", source.title.as_deref());
        }
        Body::Compaction(compaction) => {
            item.number_if("tokens_before", compaction.tokens_before);
            item.number_if("tokens_after", compaction.tokens_after);
        }
        Body::Text(_)
        | Body::Reasoning(_)
        | Body::Interjection(_)
        | Body::TaskList(_)
        | Body::McpSnapshot(_) => {}
    }
}

/// The texts of a body that are not empty.
pub fn texts(body: &Body, detail: Detail) -> Texts<'_> {
    let mut texts: Texts<'_> = Vec::new();
    match body {
        Body::Text(text) => texts.push(("text", text.text.as_str().into())),
        Body::Reasoning(reasoning) => texts.push(("text", reasoning.text.as_str().into())),
        Body::Tool(tool) => {
            let input = tool.input.as_ref().map_or(tool.input_text.as_str(), |json| json.text());
            texts.push(("input", input.into()));
            let earlier = tool.earlier.iter().map(|it| (&it.question, Some(&it.answer)));
            let last = tool.question.iter().map(|question| (question, tool.answer.as_ref()));
            let asked: Vec<String> = earlier
                .chain(last)
                .map(|(question, answer)| question_text(question, answer))
                .collect();
            texts.push(("question", asked.join("\n").into()));
            texts.push(("output", tool.output.as_deref().unwrap_or_default().into()));
            let result = tool.result.as_ref().map_or("", |json| json.text());
            if detail == Detail::Full || tool.output.is_none() {
                texts.push(("result", result.into()));
            }
        }
        Body::Agent(agents) => {
            let tasks = agents.agents.iter().map(|agent| format!("{}: {}", agent.name, agent.task));
            texts.push(("text", tasks.collect::<Vec<_>>().join("\n").into()));
        }
        Body::Interjection(said) => texts.push(("text", said.text.as_str().into())),
        Body::TaskList(list) => {
            let lines: Vec<String> = list.items.iter().map(task).collect();
            texts.push(("text", lines.join("\n").into()));
        }
        Body::SkillLoad(skill) => texts.push(("text", skill.text.as_str().into())),
        Body::McpSnapshot(snapshot) => {
            let servers = snapshot.servers.iter();
            let lines = servers.map(|it| format!("{}: {}", it.name, it.tools.join(", ")));
            texts.push(("text", lines.collect::<Vec<_>>().join("\n").into()));
        }
        Body::ContextInfo(info) => texts.push(("text", info.text.as_str().into())),
        Body::Compaction(compaction) => texts.push(("text", compaction.summary.as_str().into())),
        Body::File(file) => {
            // Inline data such as an image is not text.
            let url = file.url.as_deref().filter(|url| !url.starts_with("data:"));
            texts.push(("url", url.unwrap_or_default().into()));
            texts.push(("text", file.text.as_deref().unwrap_or_default().into()));
        }
        Body::Source(source) => {
            texts.push(("url", source.url.as_deref().unwrap_or_default().into()));
            texts.push(("text", source.quote.as_deref().unwrap_or_default().into()));
        }
        Body::Patch(patch) => texts.push(("text", patch.diff.as_str().into())),
        Body::Notice(notice) => texts.push(("text", notice.text.as_str().into())),
        Body::Error(failure) => texts.push(("text", failure.text.as_str().into())),
        Body::Data(data) => texts.push(("text", data.payload.text().into())),
    }
    texts.retain(|(_, text)| !text.is_empty());
    texts
}

fn question_text(question: &Question, answer: Option<&Answer>) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    for item in &question.items {
        let _ = writeln!(text, "{}", item.question);
    }
    if let Some(answer) = answer {
        let _ = writeln!(text, "{}: {}", answer.decision.name(), answer.text);
    }
    text
}

fn task(item: &TaskItem) -> String {
    let state = match item.state {
        TaskState::Pending => "pending",
        TaskState::Running => "running",
        TaskState::Completed => "completed",
        TaskState::Cancelled => "cancelled",
    };
    format!("[{state}] {}", item.text)
}
