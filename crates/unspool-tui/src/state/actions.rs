//! Runs actions on the visible screen: the list, the search or a session; and the replay.

// Each screen handles some of the keys and actions and ignores the rest.
#![allow(clippy::wildcard_enum_match_arm)]

use crossterm::event::{KeyCode, KeyEvent};
use unspool_core::id::SessionId;
use unspool_core::present::Item;
use unspool_engine::window::{Anchor, Position};
use unspool_render::markdown;

use super::{Effect, InputPurpose, Overlay, PendingQuery, Screen, State};
use crate::entry::{EntryContent, FoldState};
use crate::keys::Action;
use crate::transcript::Transcript;
use crate::transcript::navigation::{Direction, Landmark};

impl State {
    pub(super) fn act(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Quit => return vec![Effect::Quit],
            Action::Suspend => return vec![Effect::Suspend],
            Action::Redraw => return vec![Effect::Redraw],
            Action::Help => self.overlay = Some(Overlay::Help { top: 0 }),
            Action::Mouse => {
                self.mouse = !self.mouse;
                self.set_status(if self.mouse {
                    "the mouse scrolls"
                } else {
                    "the mouse selects text"
                });
                return vec![Effect::Mouse(self.mouse)];
            }
            Action::Search => {
                let query = match self.screens.last() {
                    Some(Screen::Search(search)) => search.query.clone(),
                    Some(Screen::Session(_)) | None => String::new(),
                };
                self.begin_input(InputPurpose::Search, &query);
            }
            Action::Tag | Action::Rename | Action::Delete | Action::CopyResume | Action::Export => {
                return self.act_on_session(action);
            }
            Action::Up
            | Action::Down
            | Action::LineUp
            | Action::LineDown
            | Action::PageUp
            | Action::PageDown
            | Action::HalfUp
            | Action::HalfDown
            | Action::Start
            | Action::End
            | Action::Open
            | Action::Back
            | Action::Filter
            | Action::NextHit
            | Action::PreviousHit
            | Action::NextPrompt
            | Action::PreviousPrompt
            | Action::NextError
            | Action::PreviousError
            | Action::NextEdit
            | Action::PreviousEdit
            | Action::FoldKind
            | Action::ExpandAll
            | Action::CollapseAll
            | Action::Agent
            | Action::Group
            | Action::Preview
            | Action::CopyPart
            | Action::Replay
            | Action::Everything => {
                return match self.screens.last() {
                    Some(Screen::Session(_)) => self.act_in_session(action),
                    Some(Screen::Search(_)) => self.act_in_search(action),
                    None => self.act_in_list(action),
                };
            }
        }
        Vec::new()
    }

    fn act_in_list(&mut self, action: Action) -> Vec<Effect> {
        let page = crate::view::screen_layout(self).body.max(2) as isize;
        if let Some(rows) = rows(action, page) {
            self.list.move_by(rows);
            return Vec::new();
        }
        match action {
            Action::Open | Action::Agent | Action::Replay => {
                let Some(session_row) = self.list.chosen().cloned() else { return Vec::new() };
                return self.open(session_row, action == Action::Replay);
            }
            Action::Filter => {
                let filter = self.list.filter.clone();
                self.begin_input(InputPurpose::Filter, &filter);
            }
            Action::Back => self.list.set_filter(""),
            Action::Group => self.list.group(),
            Action::Preview => self.with_preview = !self.with_preview,
            // The others need an open session.
            _ => {}
        }
        Vec::new()
    }

    fn act_in_search(&mut self, action: Action) -> Vec<Effect> {
        let page = (crate::view::screen_layout(self).body / 2).max(2) as isize;
        let Some(Screen::Search(search)) = self.screens.last_mut() else { return Vec::new() };
        if let Some(rows) = rows(action, page) {
            search.move_by(rows);
            return Vec::new();
        }
        match action {
            Action::Open | Action::Agent => {
                let hit = search.hits.as_ref().and_then(|hits| hits.get(search.at)).cloned();
                let query = search.query.clone();
                let Some(hit) = hit else { return Vec::new() };
                let mut transcript = Transcript::new(hit.session, None, self.view_options.clone());
                // Repeat the search within the session.
                let find = transcript.find(&query);
                let anchor = match (hit.turn, hit.place) {
                    (Some(turn), Some(place)) => Anchor::Around(Position { turn, place }),
                    (Some(turn), None) => Anchor::From(Position::start_of(turn)),
                    (None, _) => Anchor::End,
                };
                self.screens.push(Screen::Session(Box::new(transcript)));
                let mut effects = Vec::new();
                effects
                    .extend(self.query_from_transcript(|held| Some(held.request_window(anchor))));
                effects.extend(find.map(|reader_query| {
                    self.send_query(PendingQuery::Find(hit.session, query), reader_query)
                }));
                return effects;
            }
            Action::Back => {
                self.screens.pop();
            }
            Action::Filter => {
                let query = search.query.clone();
                self.begin_input(InputPurpose::Search, &query);
            }
            _ => {}
        }
        Vec::new()
    }

    fn act_in_session(&mut self, action: Action) -> Vec<Effect> {
        let Some(transcript) = self.transcript_mut() else { return Vec::new() };
        let page = (transcript.view.max(2) - 1) as isize;
        let seek = |what, direction| move |held: &mut Transcript| held.seek(what, direction);
        let hit = |direction| move |held: &mut Transcript| held.next_hit(direction);
        let effect = match action {
            Action::Up => {
                transcript.step(Direction::Backward);
                None
            }
            Action::Down => {
                transcript.step(Direction::Forward);
                None
            }
            Action::LineUp => {
                transcript.move_by(-1);
                None
            }
            Action::LineDown => {
                transcript.move_by(1);
                None
            }
            Action::PageUp => {
                transcript.move_by(-page);
                None
            }
            Action::PageDown => {
                transcript.move_by(page);
                None
            }
            Action::HalfUp => {
                transcript.move_by(-(page / 2).max(1));
                None
            }
            Action::HalfDown => {
                transcript.move_by((page / 2).max(1));
                None
            }
            Action::Start => self.query_from_transcript(Transcript::go_to_start),
            Action::End => self.query_from_transcript(Transcript::go_to_end),
            Action::Open => match transcript.chosen() {
                Some(at) => return self.toggle(at),
                None => None,
            },
            Action::Back => {
                self.go_back();
                None
            }
            Action::Filter => {
                let query = transcript.find.as_ref().map(|find| find.query.clone());
                self.begin_input(InputPurpose::Find, &query.unwrap_or_default());
                None
            }
            Action::NextHit => self.query_from_transcript(hit(Direction::Forward)),
            Action::PreviousHit => self.query_from_transcript(hit(Direction::Backward)),
            Action::NextPrompt => {
                self.query_from_transcript(seek(Landmark::Prompt, Direction::Forward))
            }
            Action::PreviousPrompt => {
                self.query_from_transcript(seek(Landmark::Prompt, Direction::Backward))
            }
            Action::NextError => {
                self.query_from_transcript(seek(Landmark::Error, Direction::Forward))
            }
            Action::PreviousError => {
                self.query_from_transcript(seek(Landmark::Error, Direction::Backward))
            }
            Action::NextEdit => {
                self.query_from_transcript(seek(Landmark::Edit, Direction::Forward))
            }
            Action::PreviousEdit => {
                self.query_from_transcript(seek(Landmark::Edit, Direction::Backward))
            }
            Action::FoldKind => {
                if let Some(at) = transcript.chosen() {
                    transcript.fold_kind(at);
                }
                None
            }
            Action::ExpandAll => {
                transcript.fold_all(FoldState::Open);
                None
            }
            Action::CollapseAll => {
                transcript.fold_all(FoldState::Closed);
                None
            }
            Action::Everything => {
                transcript.fold_all(FoldState::Open);
                self.query_from_transcript(Transcript::go_to_start)
            }
            Action::Agent => return self.open_agent(),
            Action::Replay => return self.toggle_replay(),
            Action::CopyPart => return self.copy_part(),
            _ => None,
        };
        effect.into_iter().collect()
    }

    /// Opens or closes an entry. Opening one also loads its sub-agents inline.
    pub(super) fn toggle(&mut self, at: usize) -> Vec<Effect> {
        let mut effects: Vec<Effect> =
            self.query_from_transcript(|held| held.toggle(at)).into_iter().collect();
        let Some(transcript) = self.transcript() else { return effects };
        let (session, inlines) = (transcript.session, transcript.request_inlines(at));
        for (reason, reader_query) in inlines {
            effects.push(self.send_query(PendingQuery::Window(session, reason), reader_query));
        }
        effects
    }

    /// Goes back one level: ends the find, then the replay, then closes the session.
    fn go_back(&mut self) {
        let Some(transcript) = self.transcript_mut() else { return };
        if transcript.find.take().is_some() {
            return;
        }
        if self.replay.take().is_some() {
            if let Some(transcript) = self.transcript_mut() {
                transcript.until = None;
                transcript.settle();
            }
            return;
        }
        self.screens.pop();
    }

    fn open_agent(&mut self) -> Vec<Effect> {
        let Some(transcript) = self.transcript() else { return Vec::new() };
        let chosen = transcript.chosen().and_then(|at| transcript.entries.get(at));
        let mut agents = chosen.map(crate::entry::Entry::agents).unwrap_or_default();
        match agents.len() {
            0 => {
                self.set_status("this part has no sub-agent session");
                Vec::new()
            }
            1 => agents.pop().map(|(_, id)| self.open_by_id(id)).unwrap_or_default(),
            _ => {
                self.overlay = Some(Overlay::Agents { of: agents, at: 0 });
                Vec::new()
            }
        }
    }

    /// Opens a session by its id, at its start: the task that its parent gave it.
    pub(super) fn open_by_id(&mut self, id: SessionId) -> Vec<Effect> {
        let transcript = Transcript::new(id, None, self.view_options.clone());
        self.screens.push(Screen::Session(Box::new(transcript)));
        let start = Position::start_of(0);
        let effect =
            self.query_from_transcript(|held| Some(held.request_window(Anchor::From(start))));
        effect.into_iter().collect()
    }

    fn copy_part(&mut self) -> Vec<Effect> {
        let Some(transcript) = self.transcript() else { return Vec::new() };
        let entry = transcript.chosen().and_then(|at| transcript.entries.get(at));
        let text = match entry.map(|entry| &entry.content) {
            Some(EntryContent::Item(Item::Part(part))) => markdown::part(part),
            Some(EntryContent::Item(Item::Reasoning(block))) => {
                let parts: Vec<String> = block.parts.iter().map(markdown::part).collect();
                parts.join("\n\n")
            }
            Some(EntryContent::User(blocks)) => markdown::blocks(blocks),
            Some(EntryContent::Head(blocks)) => markdown::session(blocks),
            Some(EntryContent::Turn(_) | EntryContent::Foot(_)) | None => return Vec::new(),
        };
        self.set_status("copied as Markdown");
        vec![Effect::Copy(text)]
    }

    /// Runs an action on the open session, or on the one selected in the list.
    fn act_on_session(&mut self, action: Action) -> Vec<Effect> {
        let open = self.transcript().and_then(|transcript| transcript.session_row.as_ref());
        let Some(session_row) = open.or_else(|| self.list.chosen()).cloned() else {
            return Vec::new();
        };
        match action {
            Action::Tag => self.begin_input(InputPurpose::Tag(session_row.id), ""),
            Action::Rename => {
                self.begin_input(InputPurpose::Rename(session_row.id), &session_row.title)
            }
            Action::Delete => {
                self.overlay = Some(Overlay::Delete(session_row.id, session_row.title))
            }
            Action::CopyResume => match session_row.resume {
                Some(command) => {
                    self.set_status(format!("copied: {command}"));
                    return vec![Effect::Copy(command)];
                }
                None => self.set_status("this agent has no command that resumes a session"),
            },
            Action::Export => return self.export(session_row.id),
            _ => {}
        }
        Vec::new()
    }

    // ---- replay ----

    fn toggle_replay(&mut self) -> Vec<Effect> {
        match &mut self.replay {
            Some(replay) => {
                replay.pause_or_play(self.now);
                Vec::new()
            }
            None => self.start_replay(),
        }
    }

    pub(super) fn play(&mut self) {
        let now = self.now;
        let Some(mut replay) = self.replay.take() else { return };
        match self.transcript_mut().filter(|held| held.until.is_some()) {
            Some(transcript) if transcript.is_loaded() => replay.play(transcript, now),
            Some(_) | None => {}
        }
        self.replay = Some(replay);
    }

    /// Handles the keys that have another meaning during a replay. `None` for all others.
    pub(super) fn press_in_replay(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        let now = self.now;
        let mut replay = self.replay.take()?;
        let transcript = self.transcript_mut().filter(|held| held.until.is_some());
        let Some(transcript) = transcript else {
            self.replay = Some(replay);
            return None;
        };
        let mut handled = true;
        let mut tenth = None;
        match key.code {
            KeyCode::Char(' ' | 'p') => replay.pause_or_play(now),
            KeyCode::Char('.' | 'l') | KeyCode::Right => replay.step(transcript, now),
            KeyCode::Char(',' | 'h') | KeyCode::Left => replay.step_back(transcript, now),
            KeyCode::Char('+' | '>') => replay.faster(now),
            KeyCode::Char('-' | '<') => replay.slower(now),
            KeyCode::Char(digit @ '0'..='9') => tenth = digit.to_digit(10),
            _ => handled = false,
        }
        self.replay = Some(replay);
        match tenth {
            Some(tenth) => Some(self.jump_in_replay(u64::from(tenth), 10)),
            None => handled.then(Vec::new),
        }
    }

    /// Jumps to a point of the timeline: by time if that point is loaded, otherwise by turn number.
    pub(super) fn jump_in_replay(&mut self, part: u64, whole: u64) -> Vec<Effect> {
        let now = self.now;
        let Some(mut replay) = self.replay.take() else { return Vec::new() };
        let share = part as f64 / whole.max(1) as f64;
        let held = self.transcript_mut().is_some_and(|held| replay.jump(held, share, now));
        self.replay = Some(replay);
        if held {
            return Vec::new();
        }
        let Some(transcript) = self.transcript_mut() else { return Vec::new() };
        let turns = transcript.session_row.as_ref().map_or(0, |session_row| session_row.turns);
        let turn = u32::try_from(turns.saturating_mul(part) / whole.max(1)).unwrap_or(0);
        let place = Position::start_of(turn);
        transcript.until = Some(place);
        if let Some(replay) = &mut self.replay {
            replay.reset_clock(now);
        }
        let effect =
            self.query_from_transcript(|held| Some(held.request_window(Anchor::From(place))));
        effect.into_iter().collect()
    }
}

/// How far an action moves in a list.
fn rows(action: Action, page: isize) -> Option<isize> {
    match action {
        Action::Up | Action::LineUp => Some(-1),
        Action::Down | Action::LineDown => Some(1),
        Action::PageUp => Some(-page),
        Action::PageDown => Some(page),
        Action::HalfUp => Some(-page / 2),
        Action::HalfDown => Some(page / 2),
        Action::Start => Some(isize::MIN / 2),
        Action::End => Some(isize::MAX / 2),
        _ => None,
    }
}
