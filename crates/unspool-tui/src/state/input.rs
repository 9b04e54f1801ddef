//! Handles keys, the mouse and the input line.

// Each screen handles some of the keys and actions and ignores the rest.
#![allow(clippy::wildcard_enum_match_arm)]

use std::time::Instant;

use crossterm::event::{
    KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use unspool_query::reader::Query;
use unspool_query::request::Request;
use unspool_query::search::Reading;

use super::{Effect, Input, InputPurpose, Overlay, PendingQuery, Screen, Search, State};
use crate::keys::Action;
use crate::text_field::TextField;

/// Lines per wheel step.
const WHEEL_LINES: isize = 3;
/// The limit of a search.
const MAX_HITS: usize = 200;
/// A search while typing begins with this many letters.
const MIN_TYPED_CHARS: usize = 2;

impl State {
    pub(super) fn press(&mut self, key: KeyEvent, read: Instant) -> Vec<Effect> {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        match self.overlay.take() {
            Some(Overlay::Input(input)) => self.edit_input(input, key),
            Some(Overlay::Delete(id, title)) => match key.code {
                KeyCode::Char('y') => self.change(id, Request::Delete { session: id }),
                // Any other key means no.
                _ => {
                    self.set_status(format!("{title} was not deleted"));
                    Vec::new()
                }
            },
            Some(Overlay::Agents { of, at }) => self.choose_agent(of, at, key),
            Some(Overlay::Findings { of, found, at }) => self.choose_finding(of, found, at, key),
            Some(Overlay::Option { option, at }) => self.press_in_option(option, at, key),
            Some(Overlay::Help { top }) => {
                let top = match self.keys.action(key) {
                    Some(Action::Down | Action::LineDown) => Some(top + 1),
                    Some(Action::Up | Action::LineUp) => Some(top.saturating_sub(1)),
                    Some(Action::PageDown | Action::HalfDown) => Some(top + 10),
                    Some(Action::PageUp | Action::HalfUp) => Some(top.saturating_sub(10)),
                    _ => None,
                };
                self.overlay = top.map(|top| Overlay::Help { top });
                Vec::new()
            }
            None => {
                if self.replay.is_some()
                    && let Some(effects) = self.press_in_replay(key)
                {
                    return effects;
                }
                if let Some(effects) = self.press_in_chat(key, read) {
                    return effects;
                }
                match self.keys.action(key) {
                    Some(action) => self.act(action),
                    None => Vec::new(),
                }
            }
        }
    }

    fn choose_agent(
        &mut self,
        of: Vec<(String, unspool_model::id::SessionId)>,
        at: usize,
        key: KeyEvent,
    ) -> Vec<Effect> {
        let last = of.len().saturating_sub(1);
        let at = match self.keys.action(key) {
            Some(Action::Down) => (at + 1).min(last),
            Some(Action::Up) => at.saturating_sub(1),
            Some(Action::Open | Action::Agent) => {
                return of.get(at).map(|(_, id)| self.open_by_id(*id)).unwrap_or_default();
            }
            _ => return Vec::new(),
        };
        self.overlay = Some(Overlay::Agents { of, at });
        Vec::new()
    }

    pub(super) fn begin_input(&mut self, what: InputPurpose, text: &str) {
        let input = Input { what, field: TextField::new(text) };
        self.overlay = Some(Overlay::Input(input));
    }

    fn edit_input(&mut self, mut input: Input, key: KeyEvent) -> Vec<Effect> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return self.cancel_input(&input),
            KeyCode::Char('c') if control => return self.cancel_input(&input),
            KeyCode::Enter => return self.submit_input(input),
            KeyCode::Down | KeyCode::Up if input.what == InputPurpose::Filter => {
                self.list.move_by(if key.code == KeyCode::Down { 1 } else { -1 });
            }
            // One line.
            KeyCode::Char('j') if control => {}
            _ => {
                input.field.press(key);
            }
        }
        if input.what == InputPurpose::Filter && input.field.text() != self.list.filter {
            self.list.set_filter(input.field.text());
        }
        let effects = self.search_while_typing(&input);
        self.overlay = Some(Overlay::Input(input));
        effects
    }

    /// Shows the hits of what is typed so far.
    fn search_while_typing(&mut self, input: &Input) -> Vec<Effect> {
        let text = input.field.text().trim();
        if input.what != InputPurpose::Search || text.chars().count() < MIN_TYPED_CHARS {
            return Vec::new();
        }
        let shown = match self.screens.last() {
            Some(Screen::Search(search)) => search.query == text,
            Some(
                Screen::Session(_)
                | Screen::Changes(_)
                | Screen::Prompt(_)
                | Screen::PromptCalls(_),
            )
            | None => {
                self.typed_search = true;
                false
            }
        };
        if shown { Vec::new() } else { self.search_for(text.to_owned()) }
    }

    fn search_for(&mut self, text: String) -> Vec<Effect> {
        if matches!(self.screens.last(), Some(Screen::Search(_))) {
            self.screens.pop();
        }
        let search =
            Search { query: text.clone(), hits: None, reading: Reading::default(), at: 0, top: 0 };
        self.screens.push(Screen::Search(search));
        let query = Query::Search { query: text.clone(), session: None, limit: MAX_HITS };
        vec![self.send_query(PendingQuery::Search(text), query)]
    }

    pub(super) fn paste(&mut self, text: &str) -> Vec<Effect> {
        let Some(Overlay::Input(input)) = &mut self.overlay else {
            return self.paste_in_chat(text).unwrap_or_default();
        };
        let line: String = text.chars().filter(|c| !c.is_control()).collect();
        input.field.insert(&line);
        if input.what == InputPurpose::Filter {
            let filter = input.field.text().to_owned();
            self.list.set_filter(&filter);
        }
        Vec::new()
    }

    fn cancel_input(&mut self, input: &Input) -> Vec<Effect> {
        match input.what {
            InputPurpose::Filter => self.list.set_filter(""),
            InputPurpose::Find => {
                if let Some(transcript) = self.transcript_mut() {
                    transcript.find = None;
                }
            }
            InputPurpose::Search => {
                if std::mem::take(&mut self.typed_search) {
                    self.screens.pop();
                }
            }
            InputPurpose::PromptFind
            | InputPurpose::Tag(_)
            | InputPurpose::Rename(_)
            | InputPurpose::Note(..) => {}
        }
        Vec::new()
    }

    fn submit_input(&mut self, input: Input) -> Vec<Effect> {
        let text = input.field.text().trim().to_owned();
        match input.what {
            InputPurpose::Filter => Vec::new(),
            InputPurpose::PromptFind => self.find_in_prompts(text),
            InputPurpose::Find => {
                let Some(transcript) = self.transcript_mut() else { return Vec::new() };
                let session = transcript.session;
                let query = transcript.find(&text);
                query
                    .map(|query| self.send_query(PendingQuery::Find(session, text), query))
                    .into_iter()
                    .collect()
            }
            InputPurpose::Search => {
                self.typed_search = false;
                let shown = matches!(
                    self.screens.last(), Some(Screen::Search(search)) if search.query == text
                );
                if text.is_empty() || shown { Vec::new() } else { self.search_for(text) }
            }
            InputPurpose::Tag(session) => {
                // `-word` removes a tag.
                let words = || text.split([' ', ',']).filter(|word| !word.is_empty());
                let remove: Vec<String> =
                    words().filter_map(|word| word.strip_prefix('-')).map(str::to_owned).collect();
                let add: Vec<String> = words()
                    .filter(|word| !word.starts_with('-'))
                    .map(|word| word.trim_start_matches('+').to_owned())
                    .collect();
                if add.is_empty() && remove.is_empty() {
                    return Vec::new();
                }
                self.change(session, Request::Tag { session, add, remove })
            }
            InputPurpose::Rename(session) => {
                let name = (!text.is_empty()).then_some(text);
                self.change(session, Request::Rename { session, name })
            }
            InputPurpose::Note(session, target) => self.submit_note(session, target, text),
        }
    }

    pub(super) fn handle_mouse(&mut self, mouse: MouseEvent) -> Vec<Effect> {
        let move_by = match mouse.kind {
            MouseEventKind::ScrollDown => WHEEL_LINES,
            MouseEventKind::ScrollUp => -WHEEL_LINES,
            MouseEventKind::Down(MouseButton::Left) => return self.click(mouse.column, mouse.row),
            _ => return Vec::new(),
        };
        if let Some(Overlay::Help { top }) = &mut self.overlay {
            *top = top.saturating_add_signed(move_by);
            return Vec::new();
        }
        match self.screens.last_mut() {
            Some(Screen::Session(transcript)) => transcript.move_by(move_by),
            Some(Screen::Changes(pane)) => pane.scroll_by(move_by),
            Some(Screen::Prompt(pane)) => pane.move_by(move_by),
            Some(Screen::PromptCalls(pane)) => pane.move_by(move_by.signum()),
            Some(Screen::Search(search)) => search.move_by(move_by.signum()),
            None => self.list.move_by(move_by.signum()),
        }
        Vec::new()
    }

    fn click(&mut self, column: u16, row: u16) -> Vec<Effect> {
        let screen_layout = crate::view::screen_layout(self);
        let Some(line) = usize::from(row).checked_sub(screen_layout.top) else { return Vec::new() };
        if self.replay.is_some() && self.overlay.is_none() && line == screen_layout.body {
            return self.jump_in_replay(u64::from(column), u64::from(self.size.0.max(1)));
        }
        if self.overlay.is_some() || line >= screen_layout.body {
            return Vec::new();
        }
        if usize::from(column) < screen_layout.side {
            let by = (self.list.top + line) as isize - self.list.at as isize;
            return if by == 0 { Vec::new() } else { self.step_session(by) };
        }
        match self.screens.last_mut() {
            Some(Screen::Session(transcript)) => {
                let position = crate::scroll::forward(&**transcript, transcript.scroll.top, line);
                if self.click_in_chat(position.entry, position.line) {
                    return Vec::new();
                }
                let Some(transcript) = self.transcript_mut() else { return Vec::new() };
                let was = transcript.chosen();
                transcript.cursor = transcript.entries.get(position.entry).map(|entry| entry.key);
                // A click on the selected entry opens it.
                if was == Some(position.entry)
                    || transcript
                        .entries
                        .get(position.entry)
                        .is_some_and(|entry| entry.kind().is_some())
                {
                    return self
                        .query_from_transcript(|held| held.toggle(position.entry))
                        .into_iter()
                        .collect();
                }
                Vec::new()
            }
            Some(Screen::Changes(_)) => Vec::new(),
            Some(Screen::Prompt(pane)) => {
                let was = pane.at;
                pane.choose_line(line);
                if pane.at == was { self.act(Action::Open) } else { Vec::new() }
            }
            Some(Screen::PromptCalls(pane)) => {
                let Some(line) = line.checked_sub(crate::view::CALLS_HEAD_LINES) else {
                    return Vec::new();
                };
                pane.at = pane.top + line;
                pane.move_by(0);
                self.act(Action::Open)
            }
            Some(Screen::Search(search)) => {
                let Some(line) = line.checked_sub(crate::view::SEARCH_HEAD_LINES) else {
                    return Vec::new();
                };
                search.at = search.top + line / 2;
                search.move_by(0);
                self.act(Action::Open)
            }
            None => {
                if screen_layout
                    .preview
                    .is_some_and(|preview| usize::from(column) + preview > usize::from(self.size.0))
                {
                    return self.act(Action::Open);
                }
                let at = self.list.top + line;
                if at == self.list.at {
                    return self.act(Action::Open);
                }
                self.list.at = at.min(self.list.rows.len().saturating_sub(1));
                self.list.move_by(0);
                Vec::new()
            }
        }
    }
}
