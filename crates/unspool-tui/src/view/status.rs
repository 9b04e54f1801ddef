//! Draws the header and the footer: breadcrumbs, the agent's activity, time, tokens, model,
//! connection and the replay's timeline.

use jiff::Timestamp;
use ratatui::layout::Rect;
use unspool_model::session::SessionState;
use unspool_query::reader::SessionRow;
use unspool_view::block::Tone;
use unspool_view::lines::{self, Line, Style};
use unspool_view::present::context::{compactions_text, context_text};
use unspool_view::present::format;

use super::{Canvas, nth};
use crate::chat::{ChatPane, Focus};
use crate::list::Grouping;
use crate::prompt::PromptPane;
use crate::replay::Replay;
use crate::scroll::EntryHeights;
use crate::state::{Screen, State};
use crate::transcript::TranscriptPane;

pub fn head(state: &State, area: Rect, canvas: &mut Canvas<'_>) {
    canvas.fill(area, canvas.theme.status());
    let mut line = Line::of(" ◐ ", Style::tone(Tone::Accent));
    let strong = Style { strong: true, ..Style::default() };
    let muted = Style::tone(Tone::Muted);
    if state.screens.is_empty() {
        line.push("Unspool", strong.clone());
        let list = &state.list;
        let live = list.all.iter().filter(|row| row.is_live()).count();
        let more = if list.complete { "" } else { " and more" };
        let count_of_list = list.all.len();
        let count = format::count(count_of_list, "session");
        line.push(&format!("  {count}{more}"), muted.clone());
        if state.reading && count_of_list > 0 {
            line.push(" · reading more …", muted.clone());
        }
        if live > 0 {
            line.push(&format!(" · {live} live"), Style::tone(Tone::Running));
        }
        match list.grouping {
            Grouping::None => {}
            Grouping::Project => line.push(" · by project", muted.clone()),
            Grouping::Day => line.push(" · by day", muted.clone()),
        }
        for budget in &state.budgets {
            line.push(&format!(" · {}", budget.sentence()), Style::tone(budget.tone()));
        }
        if !list.filter.is_empty() {
            line.push(&format!(" · /{}", list.filter), Style::tone(Tone::Accent));
        }
    }
    // Breadcrumbs from the list to the visible screen.
    for (at, screen) in state.screens.iter().enumerate() {
        if at > 0 {
            line.push(" › ", Style::gutter());
        }
        let last = at + 1 == state.screens.len();
        let style = if last { strong.clone() } else { muted.clone() };
        match screen {
            Screen::Session(transcript) => {
                let is_it = |chat: &ChatPane| chat.session == transcript.session && !chat.tentative;
                let is_chat = state.chat.as_ref().is_some_and(is_it);
                let unnamed = if is_chat { "New chat" } else { "…" };
                let row = transcript.session_row.as_ref();
                let title = row.map_or(unnamed, |session_row| &session_row.title);
                let max_chars = if last { 200 } else { 18 };
                line.push(&format::first_line(title, max_chars), style);
            }
            Screen::Changes(_) => line.push("changed files", style),
            Screen::Prompt(pane) => {
                let place = pane.prompt.as_ref().map_or("…", |prompt| prompt.place.as_str());
                line.push(&format!("prompt {place}"), style);
            }
            Screen::PromptCalls(_) => line.push("prompts", style),
            Screen::Search(search) => line.push(&format!("search: {}", search.query), style),
        }
    }
    let line = lines::clip(line, usize::from(area.width));
    canvas.line(&line, area);
}

pub fn foot(state: &State, area: Rect, canvas: &mut Canvas<'_>) {
    let mut at = 0;
    if let (Some(replay), Some(transcript)) = (&state.replay, state.transcript()) {
        timeline(state, replay, transcript, nth(area, 0), canvas);
        at = 1;
    }
    let row = nth(area, at);
    canvas.fill(row, canvas.theme.status());
    let (left, right) = match (&state.status_text, &state.lost) {
        (Some((status_text, _)), _) => {
            (Line::of(&format!(" {status_text}"), tone_of(status_text)), Line::default())
        }
        (None, Some(reason)) => (
            Line::of(&format!(" not connected: {reason}"), Style::tone(Tone::Failed)),
            Line::default(),
        ),
        (None, None) => facts(state),
    };
    let room = usize::from(row.width).saturating_sub(right.width() + 1);
    canvas.line(&lines::clip(left, room), row);
    let width = right.width().min(usize::from(row.width)) as u16;
    canvas.line(&right, Rect { x: row.right().saturating_sub(width), width, ..row });
}

fn tone_of(status_text: &str) -> Style {
    Style::tone(if status_text.starts_with('✕') { Tone::Failed } else { Tone::Accent })
}

fn facts(state: &State) -> (Line, Line) {
    let muted = Style::tone(Tone::Muted);
    let mut left = Line::of(" ", Style::default());
    let mut keys = Line::default();
    let name = state.name.as_deref().map(|name| format!("{name} · ")).unwrap_or_default();
    match state.screens.last() {
        Some(Screen::Session(transcript)) => {
            let mut hint = "enter open  [ ] prompts  / find  ? help";
            if let Some(find) = &transcript.find {
                let count = find.hits.as_ref().map(Vec::len);
                let at = find.at + 1;
                let text = match count {
                    None => format!("/{} …", find.query),
                    Some(0) => format!("/{} no match", find.query),
                    Some(count) => format!("/{} {at} of {count}", find.query),
                };
                left.push(&text, Style::tone(Tone::Accent));
                hint = "n N next and previous  esc done";
            }
            if !transcript.is_loaded() {
                hint = "loading …";
            }
            if let Some(chat) = state.visible_chat() {
                hint = match chat.focus {
                    Focus::Transcript if chat.state.answers_only => {
                        "tab questions  enter open  [ ] prompts  / find  ? help"
                    }
                    Focus::Question(_) if chat.state.answers_only => "esc transcript",
                    Focus::Transcript => "i write  tab questions  enter open  / find  ? help",
                    Focus::Composer => "esc transcript",
                    Focus::Question(_) | Focus::Queue(_) => "esc composer",
                };
            }
            if state.replay.is_some() {
                hint = "space pause  , . step  + - speed  0-9 jump  esc end";
            }
            if let Some(session_row) = &transcript.session_row {
                session_facts(&mut left, session_row);
            }
            keys.push(&format!("{name}{hint} "), muted);
        }
        Some(Screen::Changes(pane)) => {
            let count = pane.changes.as_ref().map_or(0, |changes| changes.files.len());
            if count > 0 {
                left.push(&format!("file {} of {count}", pane.at + 1), muted.clone());
            }
            let hint = "n N next/previous file  enter transcript  i editor  esc back";
            keys.push(&format!("{name}{hint} "), muted);
        }
        Some(Screen::Prompt(pane)) => {
            prompt_facts(&mut left, pane);
            let hint = match &pane.find {
                Some(_) => "n N next and previous  esc done",
                None => "[ ] calls  = only new  W which calls  / find  r all calls  esc back",
            };
            keys.push(&format!("{name}{hint} "), muted);
        }
        Some(Screen::PromptCalls(pane)) => {
            left.push(&format::count(pane.rows().len(), "call"), muted.clone());
            keys.push(&format!("{name}enter open  / which calls had a text  esc back "), muted);
        }
        Some(Screen::Search(search)) => {
            let count = search.hits.as_ref().map_or(0, Vec::len);
            left.push(&format::count(count, "hit"), muted.clone());
            keys.push(&format!("{name}enter open  / new search  esc back "), muted);
        }
        None => {
            if let Some(session_row) = state.list.chosen() {
                session_facts(&mut left, session_row);
            }
            keys.push(&format!("{name}enter open  / filter  s search  ? help "), muted);
        }
    }
    (left, keys)
}

fn prompt_facts(line: &mut Line, pane: &PromptPane) {
    let Some(prompt) = &pane.prompt else { return };
    if let Some(find) = &pane.find {
        let text = match pane.hits() {
            (_, 0) => format!("/{find} no match"),
            (Some(at), count) => format!("/{find} {at} of {count}"),
            (None, count) => format!("/{find} {}", format::count(count, "piece")),
        };
        line.push(&text, Style::tone(Tone::Accent));
        return;
    }
    let text = format!("call {} of {}", prompt.number, prompt.calls);
    line.push(&text, Style::tone(Tone::Muted));
}

fn session_facts(line: &mut Line, session_row: &SessionRow) {
    let muted = Style::tone(Tone::Muted);
    let fact = |line: &mut Line, text: &str, style: Style| {
        if line.width() > 1 {
            line.push(" · ", Style::gutter());
        }
        line.push(text, style);
    };
    match &session_row.activity {
        Some(activity) => {
            let text = format!("{} {}", activity.glyph(0), activity.sentence(Timestamp::now()));
            fact(line, &text, Style::tone(activity.tone()));
        }
        None => fact(line, session_row.state.name(), muted.clone()),
    }
    if let Some(used) = &session_row.context {
        let texts = [context_text(used), compactions_text(used)];
        texts.into_iter().flatten().for_each(|text| fact(line, &text, muted.clone()));
    }
    // Behind the context, which matters more where there is little room. The word tells it from the
    // duration of what the agent does now.
    let (label, end) = match session_row.state {
        SessionState::Live => ("open for", Some(Timestamp::now())),
        SessionState::Idle | SessionState::Ended => ("lasted", session_row.ended),
    };
    let elapsed =
        session_row.started.zip(end).map(|(from, to)| to.duration_since(from).as_millis());
    if let Some(elapsed) = elapsed.and_then(|elapsed| u64::try_from(elapsed).ok()) {
        fact(line, &format!("{label} {}", format::duration(elapsed)), muted.clone());
    }
    if let Some(rate) = &session_row.burn_rate {
        fact(line, &rate.text(), muted.clone());
    }
    if session_row.tokens > 0 {
        let tokens = format::token_phrase(session_row.fresh_tokens(), session_row.cached_tokens);
        fact(line, &tokens, muted.clone());
    }
    if !session_row.cost.is_empty() {
        fact(line, &session_row.cost, muted.clone());
    }
    if let Some(model) = session_row.models.last() {
        fact(line, model, muted);
    }
}

/// `▶ 4×  2026-05-31 12:01:44  ━━━━━━●──────  turn 3 of 12`
fn timeline(
    state: &State,
    replay: &Replay,
    transcript: &TranscriptPane,
    area: Rect,
    canvas: &mut Canvas<'_>,
) {
    canvas.fill(area, canvas.theme.status());
    let turns = transcript.session_row.as_ref().map_or(0, |session_row| session_row.turns).max(1);
    let last = transcript.entries.get(transcript.count().saturating_sub(1));
    let turn = u64::from(last.map_or(0, |entry| entry.position.turn));
    let mut line = Line::of(if replay.playing { " ▶ " } else { " ‖ " }, Style::tone(Tone::Accent));
    line.push(&format!("{}×  ", replay.speed), Style::default());
    let time = replay.time(state.now).map(|time| time.strftime("%Y-%m-%d %H:%M:%S").to_string());
    line.push(&time.unwrap_or_else(|| "…".to_owned()), Style::default());
    let turn_text = format!("  turn {turn} of {turns} ");
    let room = usize::from(area.width).saturating_sub(line.width() + lines::width(&turn_text) + 3);
    if room >= 8 {
        let done = (replay.progress(transcript, state.now) * room as f64) as usize;
        let done = done.min(room - 1);
        line.push(&format!("  {}●", "━".repeat(done)), Style::tone(Tone::Accent));
        line.push(&"─".repeat(room - 1 - done), Style::gutter());
    }
    line.push(&turn_text, Style::tone(Tone::Muted));
    canvas.line(&lines::clip(line, usize::from(area.width)), area);
}
