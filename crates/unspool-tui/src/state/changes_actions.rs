//! Actions on the screen of what a session changed.

// The screen handles some of the actions and ignores the rest.
#![allow(clippy::wildcard_enum_match_arm)]

use unspool_model::id::SessionId;
use unspool_query::window::{Anchor, Position};
use unspool_view::present::changes::{Changes, Standing};

use super::actions::rows;
use super::{Effect, PendingQuery, Screen, State};
use crate::changes::ChangesPane;
use crate::keys::Action;
use crate::transcript::TranscriptPane;

impl State {
    pub(super) fn open_changes(&mut self, session: SessionId) -> Vec<Effect> {
        self.screens.push(Screen::Changes(Box::new(ChangesPane::new(session))));
        self.request_changes().into_iter().collect()
    }

    /// Git is asked after the changes are shown: it takes longer.
    pub(super) fn take_changes(&mut self, session: SessionId, changes: Changes) -> Vec<Effect> {
        let Some(Screen::Changes(pane)) = self.screens.last_mut() else { return Vec::new() };
        if pane.session != session {
            return Vec::new();
        }
        pane.take(changes);
        let query = pane.ask_git();
        query
            .map(|query| self.send_query(PendingQuery::Changes(session), query))
            .into_iter()
            .collect()
    }

    pub(super) fn take_standing(&mut self, session: SessionId, standing: Standing) {
        if let Some(Screen::Changes(pane)) = self.screens.last_mut()
            && pane.session == session
        {
            pane.take_standing(standing);
        }
    }

    pub(super) fn act_in_changes(&mut self, action: Action) -> Vec<Effect> {
        let page = crate::view::screen_layout(self).body.max(2) as isize;
        let is_local = self.name.is_none();
        let Some(Screen::Changes(pane)) = self.screens.last_mut() else { return Vec::new() };
        if let Some(lines) = rows(action, page) {
            pane.scroll_by(lines);
            return Vec::new();
        }
        match action {
            Action::NextHit | Action::NextEdit | Action::NextPrompt => self.step_file(1),
            Action::PreviousHit | Action::PreviousEdit | Action::PreviousPrompt => {
                self.step_file(-1);
            }
            Action::Open | Action::Agent => return self.open_last_edit(),
            Action::Editor => match pane.editor_target() {
                Some((path, line)) if is_local => return vec![Effect::Edit { path, line }],
                Some(_) => self.set_status("✕ the file is on another machine"),
                None => self.set_status("no file changed"),
            },
            Action::Back => {
                self.screens.pop();
            }
            _ => {}
        }
        Vec::new()
    }

    fn step_file(&mut self, by: isize) {
        let Some(Screen::Changes(pane)) = self.screens.last_mut() else { return };
        if !pane.step(by) {
            let edge = if by > 0 { "last" } else { "first" };
            self.set_status(format!("this is the {edge} file"));
        }
    }

    /// Opens the transcript at the last edit of the selected file.
    fn open_last_edit(&mut self) -> Vec<Effect> {
        let Some(Screen::Changes(pane)) = self.screens.last() else { return Vec::new() };
        let Some(edit) = pane.last_edit() else { return Vec::new() };
        let mut transcript = TranscriptPane::new(edit.session, None, self.view_options.clone());
        let query = transcript
            .request_window(Anchor::Around(Position { turn: edit.turn, place: edit.place }));
        self.screens.push(Screen::Session(Box::new(transcript)));
        self.query_from_transcript(|_| Some(query)).into_iter().collect()
    }
}
