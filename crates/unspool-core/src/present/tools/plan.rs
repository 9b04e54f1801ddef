//! Plans: to-do lists, tasks, and the plan that a person is asked to approve.

use serde_json::Value;

use super::call::{Call, Shown};
use crate::block::{Block, Check, List, ListItem, Span};
use crate::present::{ansi, format, markdown};

/// A whole to-do list at once.
pub fn todos(call: &Call) -> Shown {
    let list = ["todos", "plan", "items"].iter().find_map(|key| call.input.get(key)?.as_array());
    let items: Vec<ListItem> = list.into_iter().flatten().filter_map(item).collect();
    let done = items.iter().filter(|item| item.check == Some(Check::Done)).count();
    let summary = format!("{done} of {} done", format::count(items.len(), "task"));
    let mut shown = Shown::new(call.name(), vec![Span::plain(summary)]);
    if items.is_empty() {
        return super::generic::unknown(call);
    }
    // OpenCode gives the list back, and it stands behind its call as a part of its own.
    let told = call.tool.name == "todowrite" && call.result.get("todos").is_some();
    if !told {
        shown.body.push(Block::List(List { start: None, tight: true, items }));
    }
    shown
}

fn item(todo: &Value) -> Option<ListItem> {
    let text = ["content", "step", "text", "description", "subject"]
        .iter()
        .find_map(|key| todo.get(key)?.as_str())?;
    let check = check(todo.get("status").and_then(Value::as_str).unwrap_or_default());
    Some(task(check, text))
}

/// An item of a task list.
pub fn task(check: Check, text: &str) -> ListItem {
    let mut span = Span::plain(text);
    match check {
        Check::Done => span = span.dim(),
        Check::Running => span = span.strong(),
        Check::Cancelled => span.look.strike = true,
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

/// TaskCreate.
pub fn create(call: &Call) -> Shown {
    let id = call.result.pointer("/task/id").and_then(Value::as_str);
    let mut summary: Vec<Span> =
        id.map(|id| Span::plain(format!("#{} ", super::line(id))).dim()).into_iter().collect();
    let subject = call.text(&["subject", "title"]).unwrap_or_default();
    summary.push(Span::plain(super::line(subject)));
    let description = call.text(&["description"]).unwrap_or_default();
    Shown::new(call.name(), summary).with(markdown::blocks(description))
}

/// TaskUpdate.
pub fn update(call: &Call) -> Shown {
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
    Shown::new(call.name(), summary).with(markdown::blocks(description))
}

/// TaskList and TaskGet.
pub fn list(call: &Call) -> Shown {
    let tasks = call.result.get("tasks").and_then(Value::as_array);
    let items: Vec<ListItem> = tasks.into_iter().flatten().filter_map(item).collect();
    let id = call.text(&["taskId"]).map(|id| Span::plain(format!("#{}", super::line(id))));
    let mut shown = Shown::new(call.name(), id.into_iter().collect());
    if !items.is_empty() {
        shown.summary.push(Span::plain(format::count(items.len(), "task")));
        shown.body.push(Block::List(List { start: None, tight: true, items }));
    } else {
        shown.body.extend(call.output().map(|output| Block::Terminal(ansi::terminal(output))));
    }
    shown
}

/// ExitPlanMode: the plan as the person saw it.
pub fn exit(call: &Call) -> Shown {
    let kept = call.result.get("plan").and_then(Value::as_str);
    let plan = kept.or_else(|| call.text(&["plan", "summary"])).unwrap_or_default();
    let head = plan.trim_start().lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
    Shown::new(call.name(), vec![Span::plain(super::line(head))]).with(markdown::blocks(plan))
}
