//! Runs actions in the open session: scrolling, finding, folding, copying, and opening sub-agents.

// Each screen handles some of the keys and actions and ignores the rest.
#![allow(clippy::wildcard_enum_match_arm)]

use unspool_export::project::Excerpt;
use unspool_model::id::SessionId;
use unspool_model::landmark::Landmark;
use unspool_query::reader::Query;
use unspool_query::window::{Anchor, Position};
use unspool_view::present::Item;

use super::{Effect, InputPurpose, Overlay, PendingQuery, Screen, State};
use crate::entry::{EntryContent, FoldState};
use crate::keys::Action;
use crate::transcript::TranscriptPane;
use crate::transcript::navigation::Direction;
use crate::transcript::seek::SeekTarget;

impl State {
    pub(super) fn act_in_session(&mut self, action: Action) -> Vec<Effect> {
        let Some(transcript) = self.transcript_mut() else { return Vec::new() };
        if scroll(transcript, action).is_some() {
            return Vec::new();
        }
        let seek = |what, direction| move |held: &mut TranscriptPane| held.seek(what, direction);
        let hit = |direction| move |held: &mut TranscriptPane| held.next_hit(direction);
        let effect = match action {
            Action::Start => self.query_from_transcript(TranscriptPane::go_to_start),
            Action::End => self.query_from_transcript(TranscriptPane::go_to_end),
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
                self.query_from_transcript(seek(SeekTarget::Prompt, Direction::Forward))
            }
            Action::PreviousPrompt => {
                self.query_from_transcript(seek(SeekTarget::Prompt, Direction::Backward))
            }
            Action::NextError => self
                .query_from_transcript(seek(SeekTarget::Part(Landmark::Error), Direction::Forward)),
            Action::PreviousError => self.query_from_transcript(seek(
                SeekTarget::Part(Landmark::Error),
                Direction::Backward,
            )),
            Action::NextEdit => self
                .query_from_transcript(seek(SeekTarget::Part(Landmark::Edit), Direction::Forward)),
            Action::PreviousEdit => self
                .query_from_transcript(seek(SeekTarget::Part(Landmark::Edit), Direction::Backward)),
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
                self.query_from_transcript(TranscriptPane::go_to_start)
            }
            Action::Agent => return self.open_agent(),
            Action::Replay => return self.toggle_replay(),
            Action::ReplayTurn => return self.replay_turn(),
            Action::CopyPart => return self.copy_part(),
            Action::NextSession => return self.step_session(1),
            Action::PreviousSession => return self.step_session(-1),
            Action::Preview => {
                self.with_side = !self.with_side;
                None
            }
            _ => None,
        };
        if let Some(text) = self.transcript_mut().and_then(|held| held.seek_end.take()) {
            self.set_status(text);
        }
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

    /// Opens the next or the previous session of the list in place of the open one.
    pub(super) fn step_session(&mut self, by: isize) -> Vec<Effect> {
        let before = self.list.at;
        self.list.move_by(by);
        if self.list.at == before {
            let edge = if by > 0 { "last" } else { "first" };
            self.set_status(format!("this is the {edge} session in the list"));
            return Vec::new();
        }
        let Some(session_row) = self.list.chosen().cloned() else { return Vec::new() };
        self.replay = None;
        self.screens.clear();
        self.open(session_row, None)
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
                self.set_status("this part did not start a sub-agent");
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
        let transcript = TranscriptPane::new(id, None, self.view_options.clone());
        self.screens.push(Screen::Session(Box::new(transcript)));
        let start = Position::start_of(0);
        let effect =
            self.query_from_transcript(|held| Some(held.request_window(Anchor::From(start))));
        effect.into_iter().collect()
    }

    /// Requests the chosen entry as Markdown. What is on the screen is not redacted, so it is never
    /// copied itself (law 12).
    fn copy_part(&mut self) -> Vec<Effect> {
        let Some(transcript) = self.transcript() else { return Vec::new() };
        let Some(entry) = transcript.chosen().and_then(|at| transcript.entries.get(at)) else {
            return Vec::new();
        };
        let turn = entry.position.turn;
        let excerpt = match &entry.content {
            EntryContent::Item(Item::Part(part)) => Excerpt::Parts { turn, parts: vec![part.id] },
            EntryContent::Item(Item::Reasoning(block)) => {
                let parts = block.parts.iter().map(|part| part.id).collect();
                Excerpt::Parts { turn, parts }
            }
            EntryContent::User(_) => Excerpt::Prompt(turn),
            EntryContent::Head(_) => Excerpt::Head,
            EntryContent::Turn(..) | EntryContent::Foot(_) => return Vec::new(),
        };
        let query = Query::Markdown { session: transcript.session, excerpt };
        vec![self.send_query(PendingQuery::Copy, query)]
    }

    pub(super) fn export(&mut self, session: SessionId) -> Vec<Effect> {
        self.set_status("reading the session …");
        let query = Query::Markdown { session, excerpt: Excerpt::Session };
        vec![self.send_query(PendingQuery::Export(session), query)]
    }
}

/// Scrolls by an entry, a line or a page. `None` if the action is none of these.
fn scroll(transcript: &mut TranscriptPane, action: Action) -> Option<()> {
    let page = (transcript.view.max(2) - 1) as isize;
    match action {
        Action::Up => transcript.step(Direction::Backward),
        Action::Down => transcript.step(Direction::Forward),
        Action::LineUp => transcript.move_by(-1),
        Action::LineDown => transcript.move_by(1),
        Action::PageUp => transcript.move_by(-page),
        Action::PageDown => transcript.move_by(page),
        Action::HalfUp => transcript.move_by(-(page / 2).max(1)),
        Action::HalfDown => transcript.move_by((page / 2).max(1)),
        _ => return None,
    }
    Some(())
}
