//! Runs actions on the visible screen: in the list and in the search. Those in an open session are
//! in `session_actions`.

// Each screen handles some of the keys and actions and ignores the rest.
#![allow(clippy::wildcard_enum_match_arm)]

use unspool_query::window::{Anchor, Position};

use super::{Effect, InputPurpose, Overlay, PendingQuery, Screen, State};
use crate::keys::Action;
use crate::replay::ReplayRange;
use crate::transcript::TranscriptPane;

/// The status after the mouse was turned on, and off.
const MOUSE_STATUS: [&str; 2] =
    ["mouse on: it scrolls and opens parts", "mouse off: the terminal selects text"];

impl State {
    pub(super) fn act(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Quit => return self.quit(),
            Action::Close if self.screens.is_empty() => return self.quit(),
            Action::Close => return self.act(Action::Back),
            Action::Suspend => return vec![Effect::Suspend],
            Action::Redraw => return vec![Effect::Redraw],
            Action::Help => self.overlay = Some(Overlay::Help { top: 0 }),
            Action::Mouse => {
                self.mouse = !self.mouse;
                let [on, off] = MOUSE_STATUS;
                self.set_status(if self.mouse { on } else { off });
                return vec![Effect::Mouse(self.mouse)];
            }
            Action::Search => {
                let query = self.search_text();
                self.begin_input(InputPurpose::Search, &query);
            }
            Action::Tag
            | Action::Rename
            | Action::Delete
            | Action::CopyResume
            | Action::Export
            | Action::Chat
            | Action::Changes
            | Action::Findings
            | Action::Prompt => {
                return self.act_on_session(action);
            }
            Action::Bookmark | Action::Note | Action::NextNote | Action::PreviousNote => {
                return self.act_on_notes(action);
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
            | Action::ReplayTurn
            | Action::Editor
            | Action::OnlyNew
            | Action::WhichCalls
            | Action::NextSession
            | Action::PreviousSession
            | Action::Everything => {
                return match self.screens.last() {
                    Some(Screen::Session(_)) => self.act_in_session(action),
                    Some(Screen::Search(_)) => self.act_in_search(action),
                    Some(Screen::Changes(_)) => self.act_in_changes(action),
                    Some(Screen::Prompt(_)) => self.act_in_prompt(action),
                    Some(Screen::PromptCalls(_)) => self.act_in_prompt_calls(action),
                    None => self.act_in_list(action),
                };
            }
        }
        Vec::new()
    }

    /// The text of the search that is open.
    fn search_text(&self) -> String {
        match self.screens.last() {
            Some(Screen::Search(search)) => search.query.clone(),
            Some(
                Screen::Session(_)
                | Screen::Changes(_)
                | Screen::Prompt(_)
                | Screen::PromptCalls(_),
            )
            | None => String::new(),
        }
    }

    /// True if the list offers the demo.
    pub fn offers_demo(&self) -> bool {
        let is_empty = self.list.all.is_empty() && self.list.complete && !self.reading;
        self.can_open_demo && is_empty && self.list.filter.is_empty()
    }

    fn act_in_list(&mut self, action: Action) -> Vec<Effect> {
        let page = crate::view::screen_layout(self).body.max(2) as isize;
        if let Some(rows) = rows(action, page) {
            self.list.move_by(rows);
            return Vec::new();
        }
        match action {
            Action::Open if self.offers_demo() => return vec![Effect::Demo],
            Action::Open | Action::Agent | Action::Replay => {
                let Some(session_row) = self.list.chosen().cloned() else { return Vec::new() };
                let replay = (action == Action::Replay).then_some(ReplayRange::Session);
                return self.open(session_row, replay);
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
        let page = crate::view::hits_per_page(crate::view::screen_layout(self).body);
        let page = page.max(2) as isize;
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
                let mut transcript =
                    TranscriptPane::new(hit.session, None, self.view_options.clone());
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

    /// Runs an action on the open session, or on the one selected in the list.
    fn act_on_session(&mut self, action: Action) -> Vec<Effect> {
        match self.screens.last() {
            Some(Screen::Prompt(pane)) if action == Action::Prompt => {
                let session = pane.session;
                return self.push_calls(session, None);
            }
            Some(Screen::Changes(_) | Screen::Prompt(_) | Screen::PromptCalls(_)) => {
                return Vec::new();
            }
            Some(Screen::Session(_) | Screen::Search(_)) | None => {}
        }
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
            Action::Changes => return self.open_changes(session_row.id),
            Action::Findings => return self.ask_for_findings(session_row.id),
            Action::Prompt => return self.open_prompt(session_row.id),
            Action::Chat => {
                let id = session_row.id;
                let mut effects = match self.transcript() {
                    Some(_) => Vec::new(),
                    None => self.open(session_row, None),
                };
                effects.extend(self.chat_with(id));
                return effects;
            }
            _ => {}
        }
        Vec::new()
    }
}

/// How far an action moves in a list.
pub(super) fn rows(action: Action, page: isize) -> Option<isize> {
    match action {
        Action::Up | Action::LineUp | Action::PreviousSession => Some(-1),
        Action::Down | Action::LineDown | Action::NextSession => Some(1),
        Action::PageUp => Some(-page),
        Action::PageDown => Some(page),
        Action::HalfUp => Some(-page / 2),
        Action::HalfDown => Some(page / 2),
        Action::Start => Some(isize::MIN / 2),
        Action::End => Some(isize::MAX / 2),
        _ => None,
    }
}
