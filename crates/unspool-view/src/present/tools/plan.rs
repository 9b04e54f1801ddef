//! Planning tools: to-do lists, tasks, and plans submitted for approval. Also the current task list
//! of a session.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use unspool_model::part::{Body, Part, TaskItem};

use super::call::{CardContent, ParsedCall};
use crate::block::{Block, Check, List, ListItem, Span};
use crate::present::{ansi, format, markdown};

/// A complete to-do list.
pub fn todos(call: &ParsedCall) -> CardContent {
    let items: Vec<ListItem> = listed(call).iter().map(|one| task(one.check, &one.text)).collect();
    let done = items.iter().filter(|item| item.check == Some(Check::Done)).count();
    let summary = format!("{done} of {} done", format::count(items.len(), "task"));
    let mut shown = CardContent::new(call.name(), vec![Span::plain(summary)]);
    if items.is_empty() {
        return super::generic::unknown(call);
    }
    // OpenCode returns the list, and it follows the call as a task list part of its own.
    let has_own_part = call.tool.name == "todowrite" && call.result.get("todos").is_some();
    if !has_own_part {
        shown.body.push(Block::List(List { start: None, tight: true, items }));
    }
    shown
}

/// The list of a call: of objects, or of lines `1. [completed] Look at the code`.
fn listed(call: &ParsedCall) -> Vec<Task> {
    let lists = ["todos", "plan", "items"].iter().filter_map(|key| call.input.get(key));
    for list in lists {
        if let Some(list) = list.as_array() {
            return list.iter().filter_map(Task::read).collect();
        }
        if let Some(lines) = list.as_str() {
            return lines.lines().filter_map(Task::read_line).collect();
        }
    }
    Vec::new()
}

fn read_todo(todo: &Value) -> Option<(&str, Check)> {
    let text = ["content", "step", "text", "description", "subject"]
        .iter()
        .find_map(|key| todo.get(key)?.as_str())?;
    Some((text, check(todo.get("status").and_then(Value::as_str).unwrap_or_default())))
}

/// An item of a task list.
pub fn task(check: Check, text: &str) -> ListItem {
    let mut span = Span::plain(text);
    match check {
        Check::Done => span = span.dim(),
        Check::Running => span = span.strong(),
        Check::Cancelled => span.style.strike = true,
        Check::Open => {}
    }
    ListItem { check: Some(check), blocks: vec![Block::Paragraph { spans: vec![span] }] }
}

fn check(status: &str) -> Check {
    match status {
        "completed" | "done" => Check::Done,
        "in_progress" | "in-progress" | "running" => Check::Running,
        "cancelled" | "canceled" | "deleted" => Check::Cancelled,
        _ => Check::Open,
    }
}

/// The current task list of a session, derived from its calls.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Tasks(Vec<Task>);

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Task {
    id: Option<String>,
    text: String,
    check: Check,
}

impl<'a> FromIterator<&'a Part> for Tasks {
    fn from_iter<I: IntoIterator<Item = &'a Part>>(parts: I) -> Tasks {
        let mut tasks = Tasks::default();
        parts.into_iter().for_each(|part| tasks.take(&part.body));
        tasks
    }
}

impl Tasks {
    /// Applies a part, in session order. Most parts do not concern tasks.
    pub fn take(&mut self, body: &Body) {
        if let Body::TaskList(list) = body {
            let task = |item: &TaskItem| Task {
                id: item.id.clone(),
                text: item.text.clone(),
                check: item.state.into(),
            };
            self.0 = list.items.iter().map(task).collect();
        }
        let Body::Tool(tool) = body else { return };
        let call = ParsedCall::new(tool);
        if !unspool_model::tools::is_plan(&tool.name) || call.is_failed() {
            return;
        }
        let list = listed(&call);
        let (id, subject) =
            (call.text(&["taskId", "task_id", "id"]), call.text(&["subject", "title"]));
        if !list.is_empty() {
            self.0 = list;
        } else if let Some(held) =
            self.0.iter_mut().find(|task| id.is_some() && task.id.as_deref() == id)
        {
            held.text = subject.map_or_else(|| std::mem::take(&mut held.text), str::to_owned);
            held.check = call.text(&["status"]).map_or(held.check, check);
        } else if let Some(subject) = subject {
            let id = call.result.pointer("/task/id").and_then(Value::as_str).or(id);
            let (id, text) = (id.map(str::to_owned), subject.to_owned());
            self.0.push(Task { id, text, check: Check::Open });
        }
    }

    /// Number of tasks, and how many of them are done.
    pub fn counts(&self) -> (usize, usize) {
        (self.0.len(), self.0.iter().filter(|task| task.check == Check::Done).count())
    }

    /// Each task in one line.
    pub fn lines(&self) -> impl Iterator<Item = (String, Check)> {
        self.0.iter().map(|task| (super::line(&task.text), task.check))
    }

    pub fn block(&self) -> Block {
        let items = self.0.iter().map(|one| task(one.check, &super::line(&one.text))).collect();
        Block::List(List { start: None, tight: true, items })
    }
}

impl Task {
    fn read(todo: &Value) -> Option<Task> {
        let (text, check) = read_todo(todo)?;
        let id = todo.get("id").and_then(Value::as_str).map(str::to_owned);
        Some(Task { id, text: text.to_owned(), check })
    }

    fn read_line(line: &str) -> Option<Task> {
        let line = line.trim_start();
        let rest = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let rest = rest.strip_prefix('.').unwrap_or(line).trim_start();
        let (status, text) = rest.strip_prefix('[')?.split_once(']')?;
        Some(Task { id: None, text: text.trim().to_owned(), check: check(status) })
    }
}

/// TaskCreate.
pub fn create(call: &ParsedCall) -> CardContent {
    let id = call.result.pointer("/task/id").and_then(Value::as_str);
    let mut summary: Vec<Span> =
        id.map(|id| Span::plain(format!("#{} ", super::line(id))).dim()).into_iter().collect();
    let subject = call.text(&["subject", "title"]).unwrap_or_default();
    summary.push(Span::plain(super::line(subject)));
    let description = call.text(&["description"]).unwrap_or_default();
    CardContent::new(call.name(), summary).with(markdown::blocks(description))
}

/// TaskUpdate.
pub fn update(call: &ParsedCall) -> CardContent {
    let id = call.text(&["taskId", "task_id", "id"]).unwrap_or_default();
    let mut summary = vec![Span::plain(format!("#{} ", super::line(id))).dim()];
    let from = call.result.pointer("/statusChange/from").and_then(Value::as_str);
    if let Some(from) = from {
        summary.push(Span::plain(format!("{} → ", super::line(from))).dim());
    }
    if let Some(status) = call.text(&["status"]) {
        summary.push(Span::plain(super::line(status)));
    }
    if let Some(subject) = call.text(&["subject"]) {
        summary.push(Span::plain(format!("  {}", super::line(subject))));
    }
    let description = call.text(&["description"]).unwrap_or_default();
    CardContent::new(call.name(), summary).with(markdown::blocks(description))
}

/// TaskList and TaskGet.
pub fn list(call: &ParsedCall) -> CardContent {
    let tasks = call.result.get("tasks").and_then(Value::as_array);
    let items = tasks.into_iter().flatten().filter_map(Task::read);
    let items: Vec<ListItem> = items.map(|one| task(one.check, &one.text)).collect();
    let id = call.text(&["taskId"]).map(|id| Span::plain(format!("#{}", super::line(id))));
    let mut shown = CardContent::new(call.name(), id.into_iter().collect());
    if !items.is_empty() {
        shown.summary.push(Span::plain(format::count(items.len(), "task")));
        shown.body.push(Block::List(List { start: None, tight: true, items }));
    } else {
        shown.body.extend(call.output().map(|output| Block::Terminal(ansi::terminal(output))));
    }
    shown
}

/// ExitPlanMode: the plan as shown to the user.
pub fn exit(call: &ParsedCall) -> CardContent {
    let kept = call.result.get("plan").and_then(Value::as_str);
    let plan = kept.or_else(|| call.text(&["plan", "summary"])).unwrap_or_default();
    let head = plan.trim_start().lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
    CardContent::new(call.name(), vec![Span::plain(super::line(head))]).with(markdown::blocks(plan))
}
