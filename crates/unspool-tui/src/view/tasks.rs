//! The agent's tasks, below the transcript, where they do not scroll (R-003-43): of a chat as the agent
//! says them, of a session that runs elsewhere as its log has them.

use unspool_live::protocol::{Phase, PlanEntry};
use unspool_view::block::{Check, Tone};
use unspool_view::lines::{self, Line, Style};
use unspool_view::present::format;

use crate::state::State;

/// The most tasks that are shown.
const MAX_LINES: usize = 5;
const MAX_CHARS: usize = 80;

/// A title and the tasks around the one that the agent works on; nothing while it does not work.
pub fn lay_out(state: &State, width: usize) -> Vec<Line> {
    let tasks = match state.visible_chat().filter(|chat| !chat.state.plan.is_empty()) {
        Some(chat) if matches!(chat.state.phase, Phase::Running | Phase::Cancelling) => {
            chat.state.plan.iter().map(planned).collect()
        }
        Some(_) => Vec::new(),
        None => watched(state),
    };
    if tasks.is_empty() { Vec::new() } else { lines_of(&tasks, width) }
}

fn planned(entry: &PlanEntry) -> (String, Check) {
    let check = match entry.status.as_str() {
        "completed" => Check::Done,
        "in_progress" => Check::Running,
        _ => Check::Open,
    };
    (entry.text.clone(), check)
}

/// The tasks of an open session that is live.
fn watched(state: &State) -> Vec<(String, Check)> {
    let transcript = state.transcript().filter(|_| state.replay.is_none());
    let live = transcript.filter(|held| held.session_row.as_ref().is_some_and(|row| row.is_live()));
    live.map(|transcript| transcript.tasks.lines().collect()).unwrap_or_default()
}

fn lines_of(tasks: &[(String, Check)], width: usize) -> Vec<Line> {
    let done = tasks.iter().filter(|(_, check)| *check == Check::Done).count();
    let current = tasks.iter().position(|(_, check)| *check == Check::Running).unwrap_or(done);
    let first = current.saturating_sub(1).min(tasks.len().saturating_sub(MAX_LINES));
    let mut title = Line::of("── ", Style::gutter());
    let text = format!("Tasks · {done} of {} done ", tasks.len());
    title.push(&text, Style { strong: true, ..Style::tone(Tone::Muted) });
    let rest = width.min(lines::MAX_LINE_WIDTH).saturating_sub(title.width());
    title.push(&"─".repeat(rest), Style::gutter());
    let mut out = vec![lines::clip(title, width)];
    for (text, check) in tasks.iter().skip(first).take(MAX_LINES) {
        let (mark, tone) = match check {
            Check::Done => ("☑ ", Tone::Muted),
            Check::Running => ("▸ ", Tone::Running),
            Check::Open => ("☐ ", Tone::Pending),
            Check::Cancelled => ("☒ ", Tone::Muted),
        };
        let mut line = Line::of(mark, Style::tone(tone));
        line.push(&format::first_line(text, MAX_CHARS), Style::tone(tone));
        out.push(lines::clip(line, width));
    }
    out
}
