//! Actions on the screens of what model calls were sent: one prompt, and the list of all calls.

// The screens handle some of the actions and ignore the rest.
#![allow(clippy::wildcard_enum_match_arm)]

use unspool_model::id::SessionId;
use unspool_query::prompts::{CallTarget, PromptAnswer};

use super::actions::rows;
use super::{Effect, InputPurpose, PendingQuery, Screen, State};
use crate::entry::FoldState;
use crate::keys::Action;
use crate::prompt::PromptPane;
use crate::prompt_calls::PromptCallsPane;

impl State {
    /// Shows what the model call of the selected part was sent; in the list, all calls.
    pub(super) fn open_prompt(&mut self, session: SessionId) -> Vec<Effect> {
        let chosen = self.transcript().and_then(|transcript| {
            transcript.entries.get(transcript.chosen()?).map(|entry| entry.position)
        });
        match chosen {
            Some(position) => {
                self.push_prompt(PromptPane::new(session, CallTarget::At(position), None))
            }
            None => self.push_calls(session, None),
        }
    }

    fn push_prompt(&mut self, pane: PromptPane) -> Vec<Effect> {
        let effect = self.send_query(PendingQuery::Prompt(pane.session), pane.query());
        self.screens.push(Screen::Prompt(Box::new(pane)));
        vec![effect]
    }

    pub(super) fn push_calls(&mut self, session: SessionId, find: Option<String>) -> Vec<Effect> {
        let pane = PromptCallsPane::new(session, find);
        let effect = self.send_query(PendingQuery::Prompt(session), pane.query());
        self.screens.push(Screen::PromptCalls(pane));
        vec![effect]
    }

    pub(super) fn take_prompt(&mut self, session: SessionId, answer: PromptAnswer) {
        match (self.screens.last_mut(), answer) {
            (Some(Screen::Prompt(pane)), PromptAnswer::Call(prompt)) if pane.session == session => {
                pane.take(*prompt);
                if pane.find.is_some() && pane.hits().1 == 0 {
                    self.set_status("no piece of this prompt has that text");
                }
            }
            (Some(Screen::Prompt(pane)), PromptAnswer::Piece(piece)) if pane.session == session => {
                pane.take_piece(*piece);
            }
            (Some(Screen::PromptCalls(pane)), PromptAnswer::Calls(calls))
                if pane.session == session =>
            {
                pane.take(*calls);
            }
            // The screen was left before the answer came.
            (_, _) => {}
        }
    }

    /// Leaves a screen that has nothing to show.
    pub(super) fn close_empty_prompt(&mut self) {
        let is_empty = match self.screens.last() {
            Some(Screen::Prompt(pane)) => pane.prompt.is_none(),
            Some(Screen::PromptCalls(pane)) => pane.calls.is_none(),
            Some(Screen::Session(_) | Screen::Search(_) | Screen::Changes(_)) | None => false,
        };
        if is_empty {
            self.screens.pop();
        }
    }

    pub(super) fn act_in_prompt(&mut self, action: Action) -> Vec<Effect> {
        let page = crate::view::screen_layout(self).body.max(2) as isize - 1;
        let Some(Screen::Prompt(pane)) = self.screens.last_mut() else { return Vec::new() };
        let mut query = None;
        match action {
            Action::Up => pane.step(-1),
            Action::Down => pane.step(1),
            Action::Start => pane.go_to_start(),
            Action::End => pane.go_to_end(),
            Action::Open => query = pane.toggle(),
            Action::ExpandAll => pane.expand(FoldState::Open),
            Action::CollapseAll => pane.expand(FoldState::Closed),
            Action::OnlyNew => pane.toggle_new(),
            Action::NextHit => pane.next_hit(1),
            Action::PreviousHit => pane.next_hit(-1),
            Action::NextPrompt => return self.step_call(1),
            Action::PreviousPrompt => return self.step_call(-1),
            Action::WhichCalls => return self.which_calls(),
            Action::Filter => {
                let find = pane.find.clone().unwrap_or_default();
                self.begin_input(InputPurpose::PromptFind, &find);
            }
            Action::Back => {
                if pane.find.take().is_none() {
                    self.screens.pop();
                }
            }
            _ => rows(action, page).into_iter().for_each(|lines| pane.move_by(lines)),
        }
        self.query_prompt(query)
    }

    fn query_prompt(&mut self, query: Option<unspool_query::reader::Query>) -> Vec<Effect> {
        let session = match self.screens.last() {
            Some(Screen::Prompt(pane)) => pane.session,
            Some(Screen::PromptCalls(pane)) => pane.session,
            Some(Screen::Session(_) | Screen::Search(_) | Screen::Changes(_)) | None => {
                return Vec::new();
            }
        };
        query
            .map(|query| self.send_query(PendingQuery::Prompt(session), query))
            .into_iter()
            .collect()
    }

    fn step_call(&mut self, by: isize) -> Vec<Effect> {
        let Some(Screen::Prompt(pane)) = self.screens.last_mut() else { return Vec::new() };
        if !pane.step_call(by) {
            let edge = if by > 0 { "last" } else { "first" };
            self.set_status(format!("this is the {edge} model call of the session"));
            return Vec::new();
        }
        let query = pane.query();
        self.query_prompt(Some(query))
    }

    /// Lists the calls that had the text of the selected piece.
    fn which_calls(&mut self) -> Vec<Effect> {
        let Some(Screen::Prompt(pane)) = self.screens.last() else { return Vec::new() };
        let (session, text) = (pane.session, pane.chosen().and_then(|piece| piece.find.clone()));
        match text {
            Some(text) => self.push_calls(session, Some(text)),
            None => {
                self.set_status("select a piece that has a text: j and k move between them");
                Vec::new()
            }
        }
    }

    pub(super) fn act_in_prompt_calls(&mut self, action: Action) -> Vec<Effect> {
        let page = crate::view::call_rows(crate::view::screen_layout(self).body).max(2) as isize;
        let Some(Screen::PromptCalls(pane)) = self.screens.last_mut() else { return Vec::new() };
        if let Some(rows) = rows(action, page) {
            pane.move_by(rows);
            return Vec::new();
        }
        match action {
            Action::Open | Action::Agent => {
                let Some(request) = pane.chosen().map(|call| call.request.clone()) else {
                    return Vec::new();
                };
                let target = CallTarget::Request(request);
                let pane = PromptPane::new(pane.session, target, pane.find.clone());
                return self.push_prompt(pane);
            }
            Action::Filter => {
                let find = pane.find.clone().unwrap_or_default();
                self.begin_input(InputPurpose::PromptFind, &find);
            }
            Action::Back => {
                self.screens.pop();
            }
            _ => {}
        }
        Vec::new()
    }

    /// Looks for a text: in the pieces of the prompt, or for the calls that had it.
    pub(super) fn find_in_prompts(&mut self, text: String) -> Vec<Effect> {
        let find = Some(text).filter(|text| !text.is_empty());
        let query = match self.screens.last_mut() {
            Some(Screen::Prompt(pane)) => {
                pane.find = find;
                pane.query()
            }
            Some(Screen::PromptCalls(pane)) => {
                pane.find = find;
                pane.query()
            }
            Some(Screen::Session(_) | Screen::Search(_) | Screen::Changes(_)) | None => {
                return Vec::new();
            }
        };
        self.query_prompt(Some(query))
    }
}
