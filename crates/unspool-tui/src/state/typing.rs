//! Handles keys, the mouse and the input line.

// Each screen handles some of the keys and actions and ignores the rest.
#![allow(clippy::wildcard_enum_match_arm)]

use crossterm::event::{
    KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use unicode_segmentation::UnicodeSegmentation;
use unspool_engine::request::Request;

use super::{Asker, Deed, Input, Overlay, Purpose, Screen, Search, State};
use crate::keys::Action;
use unspool_engine::reader::Query;

/// Lines per wheel step.
const WHEEL: isize = 3;
/// The limit of a search.
const HITS: usize = 200;

impl State {
    pub(super) fn press(&mut self, key: KeyEvent) -> Vec<Deed> {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        match self.overlay.take() {
            Some(Overlay::Input(input)) => self.type_into(input, key),
            Some(Overlay::Delete(id, title)) => match key.code {
                KeyCode::Char('y') => self.change(id, Request::Delete { session: id }),
                // Any other key means no.
                _ => {
                    self.say(format!("{title} was kept"));
                    Vec::new()
                }
            },
            Some(Overlay::Agents { of, at }) => self.choose_agent(of, at, key),
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
                    && let Some(deeds) = self.press_in_replay(key)
                {
                    return deeds;
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
        of: Vec<(String, unspool_core::id::SessionId)>,
        at: usize,
        key: KeyEvent,
    ) -> Vec<Deed> {
        let last = of.len().saturating_sub(1);
        let at = match self.keys.action(key) {
            Some(Action::Down) => (at + 1).min(last),
            Some(Action::Up) => at.saturating_sub(1),
            Some(Action::Open | Action::Agent) => {
                return of.get(at).map(|(_, id)| self.enter(*id)).unwrap_or_default();
            }
            _ => return Vec::new(),
        };
        self.overlay = Some(Overlay::Agents { of, at });
        Vec::new()
    }

    pub(super) fn begin_input(&mut self, what: Purpose, text: &str) {
        let input = Input { what, text: text.to_owned(), at: text.len() };
        self.overlay = Some(Overlay::Input(input));
    }

    fn type_into(&mut self, mut input: Input, key: KeyEvent) -> Vec<Deed> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return self.leave_input(&input),
            KeyCode::Char('c') if control => return self.leave_input(&input),
            KeyCode::Enter => return self.end_input(input),
            KeyCode::Char('u') if control => {
                input.text.drain(..input.at);
                input.at = 0;
            }
            KeyCode::Char('w') if control => {
                let kept = input.text.get(..input.at).unwrap_or_default().trim_end();
                let kept = kept.rfind(char::is_whitespace).map_or(0, |at| at + 1);
                input.text.drain(kept..input.at);
                input.at = kept;
            }
            KeyCode::Char('a') if control => input.at = 0,
            KeyCode::Char('e') if control => input.at = input.text.len(),
            KeyCode::Home => input.at = 0,
            KeyCode::End => input.at = input.text.len(),
            KeyCode::Left => input.at = input.before(),
            KeyCode::Right => input.at = input.behind(),
            KeyCode::Backspace => {
                let from = input.before();
                input.text.drain(from..input.at);
                input.at = from;
            }
            KeyCode::Delete => {
                let to = input.behind();
                input.text.drain(input.at..to);
            }
            KeyCode::Down | KeyCode::Up if input.what == Purpose::Filter => {
                self.list.by(if key.code == KeyCode::Down { 1 } else { -1 });
            }
            KeyCode::Char(letter) if !control => {
                input.text.insert(input.at, letter);
                input.at += letter.len_utf8();
            }
            _ => {}
        }
        if input.what == Purpose::Filter && input.text != self.list.filter {
            self.list.set_filter(&input.text);
        }
        self.overlay = Some(Overlay::Input(input));
        Vec::new()
    }

    pub(super) fn paste(&mut self, text: &str) -> Vec<Deed> {
        let Some(Overlay::Input(input)) = &mut self.overlay else { return Vec::new() };
        let line: String = text.chars().filter(|c| !c.is_control()).collect();
        input.text.insert_str(input.at, &line);
        input.at += line.len();
        if input.what == Purpose::Filter {
            let filter = input.text.clone();
            self.list.set_filter(&filter);
        }
        Vec::new()
    }

    fn leave_input(&mut self, input: &Input) -> Vec<Deed> {
        match input.what {
            Purpose::Filter => self.list.set_filter(""),
            Purpose::Find => {
                if let Some(transcript) = self.transcript_mut() {
                    transcript.find = None;
                }
            }
            Purpose::Search | Purpose::Tag(_) | Purpose::Rename(_) => {}
        }
        Vec::new()
    }

    fn end_input(&mut self, input: Input) -> Vec<Deed> {
        let text = input.text.trim().to_owned();
        match input.what {
            Purpose::Filter => Vec::new(),
            Purpose::Find => {
                let Some(transcript) = self.transcript_mut() else { return Vec::new() };
                let session = transcript.session;
                let wish = transcript.find(&text);
                wish.map(|wish| self.ask(Asker::Find(session, text), wish)).into_iter().collect()
            }
            Purpose::Search => {
                if text.is_empty() {
                    return Vec::new();
                }
                if matches!(self.screens.last(), Some(Screen::Search(_))) {
                    self.screens.pop();
                }
                let search = Search { query: text.clone(), hits: None, at: 0, top: 0 };
                self.screens.push(Screen::Search(search));
                let wish = Query::Search { query: text.clone(), session: None, limit: HITS };
                vec![self.ask(Asker::Search(text), wish)]
            }
            Purpose::Tag(session) => {
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
            Purpose::Rename(session) => {
                let name = (!text.is_empty()).then_some(text);
                self.change(session, Request::Rename { session, name })
            }
        }
    }

    pub(super) fn point(&mut self, mouse: MouseEvent) -> Vec<Deed> {
        let by = match mouse.kind {
            MouseEventKind::ScrollDown => WHEEL,
            MouseEventKind::ScrollUp => -WHEEL,
            MouseEventKind::Down(MouseButton::Left) => return self.click(mouse.column, mouse.row),
            _ => return Vec::new(),
        };
        if let Some(Overlay::Help { top }) = &mut self.overlay {
            *top = top.saturating_add_signed(by);
            return Vec::new();
        }
        match self.screens.last_mut() {
            Some(Screen::Session(transcript)) => transcript.by(by),
            Some(Screen::Search(search)) => search.by(by.signum()),
            None => self.list.by(by.signum()),
        }
        Vec::new()
    }

    fn click(&mut self, column: u16, row: u16) -> Vec<Deed> {
        let places = crate::view::places(self);
        let Some(line) = usize::from(row).checked_sub(places.top) else { return Vec::new() };
        if self.replay.is_some() && self.overlay.is_none() && line == places.body {
            return self.jump_in_replay(u64::from(column), u64::from(self.size.0.max(1)));
        }
        if self.overlay.is_some() || line >= places.body {
            return Vec::new();
        }
        match self.screens.last_mut() {
            Some(Screen::Session(transcript)) => {
                let spot = crate::scroll::forward(&**transcript, transcript.scroll.top, line);
                let was = transcript.chosen();
                transcript.cursor = transcript.pieces.get(spot.piece).map(|piece| piece.key);
                // A click on the selected entry opens it.
                if was == Some(spot.piece)
                    || transcript.pieces.get(spot.piece).is_some_and(|piece| piece.kind().is_some())
                {
                    return self
                        .of_transcript(|held| held.toggle(spot.piece))
                        .into_iter()
                        .collect();
                }
                Vec::new()
            }
            Some(Screen::Search(search)) => {
                search.at = search.top + line / 2;
                search.by(0);
                self.act(Action::Open)
            }
            None => {
                if places
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
                self.list.by(0);
                Vec::new()
            }
        }
    }
}

impl Input {
    fn before(&self) -> usize {
        let before = self.text.get(..self.at).unwrap_or_default();
        before.grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn behind(&self) -> usize {
        let behind = self.text.get(self.at..).unwrap_or_default();
        let next = behind.graphemes(true).next().map_or(0, str::len);
        self.at + next
    }
}
