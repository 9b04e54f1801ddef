//! Lays a chat out as lines: questions, queue, notices and the composer, which follow the transcript
//! inside its scroll area (R-003-43).

use std::time::Instant;

use unspool_live::protocol::{Phase, QueuedMessage};
use unspool_view::block::Tone;
use unspool_view::lines::{self, Break, Line, Style};
use unspool_view::present::format;

use super::composer::MAX_COMPLETIONS;
use super::question_layout::question;
use super::{ChatPane, Focus};
use crate::transcript::QuestionBox;

/// The most lines of the composer.
const MAX_COMPOSER_LINES: usize = 12;

/// The questions that are shown below their calls, and those of them that are off the screen.
pub struct InlineQuestions {
    pub shown: Vec<String>,
    pub hidden: Vec<String>,
}

/// The lines of a chat below its transcript, with the questions that have no call.
pub fn tail(chat: &ChatPane, inline: &InlineQuestions, width: usize, now: Instant) -> QuestionBox {
    let mut out = QuestionBox::default();
    for open in &chat.state.questions {
        let Some(pane) = chat.questions.get(&open.id) else { continue };
        if inline.hidden.contains(&open.id) {
            let text = format!("? {} · tab goes there", first_line(&open.text));
            let line = Line::of(&text, Style::tone(Tone::Accent));
            out.lines.extend([Line::default(), lines::clip(line, width)]);
        } else if !inline.shown.contains(&open.id) {
            out.lines.push(Line::default());
            out.add(question(chat, open, pane, width));
        }
    }
    out.lines.push(Line::default());
    if chat.state.answers_only {
        let text = "the agent runs in its own terminal: the first answer counts, here or there";
        out.lines.extend(sentence(text, Tone::Muted, width));
        return out;
    }
    out.lines.extend(notices(chat, width));
    out.lines.extend(queue(chat, width));
    out.lines.extend(composer(chat, width, now));
    out
}

fn first_line(text: &str) -> String {
    format::first_line(text, 80)
}

fn sentence(text: &str, tone: Tone, width: usize) -> Vec<Line> {
    let width = width.min(lines::MAX_LINE_WIDTH);
    text.lines().flat_map(|line| words(line, Style::tone(tone), width)).collect()
}

/// Text in lines that are broken between words.
pub fn words(text: &str, style: Style, width: usize) -> Vec<Line> {
    lines::wrap(Line::of(text, style), width, Break::Words)
}

/// What a person should know before they type.
fn notices(chat: &ChatPane, width: usize) -> Vec<Line> {
    let state = &chat.state;
    let mut out = Vec::new();
    let mut say = |text: &str, tone| out.extend(sentence(text, tone, width));
    if let Some(reason) = &chat.lost {
        say(&format!("✕ {reason}"), Tone::Failed);
    } else if state.phase == Phase::Ended {
        let reason = state.reason.as_deref().unwrap_or("the agent has ended");
        say(&format!("✕ {reason}"), Tone::Failed);
    }
    if chat.is_over() {
        say("enter starts the agent again", Tone::Muted);
    }
    let failed = state.last_turn.as_ref().and_then(|turn| turn.error.as_deref());
    if let Some(error) = failed.filter(|_| state.phase == Phase::Idle) {
        say(&format!("✕ the last message failed: {error}"), Tone::Failed);
    }
    if let Some(why) = &state.unrecorded {
        say(&format!("! not recorded: {why}"), Tone::Warning);
    }
    if state.stuck {
        say("! the agent does not stop; ctrl-c ends it", Tone::Warning);
    }
    if state.silent_since.is_some() {
        say("! the agent has been silent for more than 5 minutes", Tone::Warning);
    }
    if let Some(why) = &state.held {
        say(&format!("‖ the queue waits: {why}; enter sends it"), Tone::Warning);
    }
    out
}

fn queue(chat: &ChatPane, width: usize) -> Vec<Line> {
    let row = |(at, message): (usize, &QueuedMessage)| {
        let chosen = chat.focus == Focus::Queue(message.id);
        let editing = chat.editing.as_ref().is_some_and(|(id, _)| *id == message.id);
        let mark = if chosen { "▸ " } else { "  " };
        let mut line = Line::of(mark, Style::tone(Tone::Accent));
        let label = if editing { "editing" } else { "queued" };
        line.push(&format!("{label} {}  ", at + 1), Style::tone(Tone::Pending));
        let mut rows = message.text.trim().lines();
        line.push(&first_line(rows.next().unwrap_or_default()), Style::tone(Tone::User));
        let more = rows.count();
        if more > 0 {
            line.push(&format!("  +{}", format::count(more, "line")), Style::gutter());
        }
        lines::clip(line, width)
    };
    let mut out: Vec<Line> = chat.state.queue.iter().enumerate().map(row).collect();
    if matches!(chat.focus, Focus::Queue(_)) {
        let hint = "enter edits · delete takes back · alt-↑ alt-↓ move · esc leaves";
        out.push(lines::clip(Line::of(&format!("  {hint}"), Style::gutter()), width));
    }
    out
}

fn composer(chat: &ChatPane, width: usize, now: Instant) -> Vec<Line> {
    let focused = chat.focus == Focus::Composer;
    let inner = width.saturating_sub(4).max(1);
    let field = &chat.composer.field;
    let mut content = field.lines(inner, MAX_COMPOSER_LINES, focused);
    if field.is_empty() {
        let hint = match chat.state.phase {
            Phase::Starting | Phase::Idle => "message · / commands · @ files",
            Phase::Running | Phase::Cancelling => "message: it waits until the agent is done",
            Phase::Ended => "message",
        };
        let mut line = Line::default();
        if focused {
            line.push(" ", Style { inverse: true, ..Style::default() });
        }
        line.push(hint, Style::tone(Tone::Muted));
        content = vec![lines::clip(line, inner)];
    }
    let hint = match &chat.focus {
        Focus::Composer => composer_hint(chat),
        Focus::Transcript => "i writes".to_owned(),
        Focus::Question(_) | Focus::Queue(_) => "esc comes back here".to_owned(),
    };
    let border = if focused { Style::tone(Tone::Accent) } else { Style::gutter() };
    let mut out = frame(&status(chat, now), &hint, content, width, &border);
    if let Some(completion) = chat.composer.completion.as_ref().filter(|_| focused) {
        let first = (completion.at + 1).saturating_sub(MAX_COMPLETIONS);
        let shown = completion.candidates.iter().enumerate().skip(first).take(MAX_COMPLETIONS);
        for (at, candidate) in shown {
            let chosen = at == completion.at;
            let mut line =
                Line::of(if chosen { "  ▸ " } else { "    " }, Style::tone(Tone::Accent));
            line.push(&candidate.text, Style { strong: chosen, ..Style::default() });
            let description = first_line(&candidate.description);
            line.push(&format!("  {description}"), Style::tone(Tone::Muted));
            out.push(lines::clip(line, width));
        }
    }
    out
}

fn composer_hint(chat: &ChatPane) -> String {
    let interrupt = match chat.state.phase {
        Phase::Running => " · ctrl-c interrupts",
        Phase::Cancelling if chat.state.stuck => " · ctrl-c ends the agent",
        Phase::Starting | Phase::Idle | Phase::Cancelling | Phase::Ended => "",
    };
    let tab = match (chat.state.questions.is_empty(), chat.state.queue.is_empty()) {
        (false, _) => " · tab answers",
        (true, false) => " · tab queue",
        (true, true) => "",
    };
    let mode = if chat.option("mode").is_some() { " · shift-tab mode" } else { "" };
    if chat.is_over() {
        return "enter starts the agent and sends this · alt-enter new line".to_owned();
    }
    let sends = match (&chat.editing, chat.state.phase) {
        (Some(_), _) => "enter changes the message",
        (None, Phase::Running | Phase::Cancelling) => "enter queues · ctrl-s sends now",
        (None, Phase::Starting | Phase::Idle | Phase::Ended) => "enter sends",
    };
    format!("{sends} · alt-enter new line{tab}{interrupt}{mode}")
}

/// `claude-code · works 12 s · plan · opus`
fn status(chat: &ChatPane, now: Instant) -> String {
    let state = &chat.state;
    let questions = state.questions.len();
    let elapsed = now.saturating_duration_since(chat.since).as_secs();
    let phase = match (chat.is_attached(), state.phase) {
        (false, _) if chat.lost.is_some() => "not connected".to_owned(),
        (false, _) if chat.closed => "ended".to_owned(),
        (false, _) => "starting".to_owned(),
        (true, Phase::Starting) => format!("starting {elapsed} s"),
        (true, Phase::Idle) => "ready".to_owned(),
        (true, Phase::Running | Phase::Cancelling) if questions > 0 => {
            format!("waits for you: {}", format::count(questions, "question"))
        }
        (true, Phase::Running) if elapsed < 60 => format!("works {elapsed} s"),
        (true, Phase::Running) => format!("works {}", format::duration(elapsed * 1000)),
        (true, Phase::Cancelling) => "stopping".to_owned(),
        (true, Phase::Ended) => "ended".to_owned(),
    };
    // An agent without a name in the archive says itself who it is.
    let program = state.program.clone().filter(|_| state.agent.starts_with("acp"));
    let mut facts = vec![program.unwrap_or_else(|| state.agent.clone()), phase];
    for category in ["mode", "model"] {
        let Some(option) = chat.option(category) else { continue };
        let name = option.choices.iter().find(|choice| choice.value == option.value);
        facts.extend(name.map(|choice| choice.name.clone()));
    }
    facts.retain(|fact| !fact.is_empty());
    facts.join(" · ")
}

/// Lines in a rounded border, with a title above and a hint below.
pub fn frame(
    title: &str,
    hint: &str,
    content: Vec<Line>,
    width: usize,
    border: &Style,
) -> Vec<Line> {
    let inner = width.saturating_sub(2);
    let bar = |left: &str, right: &str, text: &str| {
        let text = lines::truncate(text, inner.saturating_sub(4));
        let mut line = Line::of(left, border.clone());
        let mut used = 0;
        if !text.is_empty() {
            line.push("─ ", border.clone());
            line.push(&text, Style::tone(Tone::Muted));
            line.push(" ", border.clone());
            used = lines::width(&text) + 3;
        }
        line.push(&"─".repeat(inner.saturating_sub(used)), border.clone());
        line.push(right, border.clone());
        line
    };
    let mut out = vec![bar("╭", "╮", title)];
    for line in content {
        let line = lines::clip(line, inner.saturating_sub(2));
        let mut row = Line::of("│ ", border.clone());
        let pad = inner.saturating_sub(2).saturating_sub(line.width());
        line.runs.into_iter().for_each(|run| row.push(&run.text, run.style));
        row.push(&" ".repeat(pad), Style::default());
        row.push(" │", border.clone());
        out.push(row);
    }
    out.push(bar("╰", "╯", hint));
    out
}
