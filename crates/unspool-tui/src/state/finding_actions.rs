//! The findings of a session: a list above the screen. Choosing one opens the session at its part.

// The list handles some of the keys and ignores the rest.
#![allow(clippy::wildcard_enum_match_arm)]

use crossterm::event::KeyEvent;
use unspool_model::id::SessionId;
use unspool_query::findings::FindingEntry;
use unspool_query::reader::Query;
use unspool_query::window::{Anchor, Position};

use super::{Effect, Overlay, PendingQuery, Screen, State};
use crate::keys::Action;
use crate::transcript::TranscriptPane;

impl State {
    pub(super) fn ask_for_findings(&mut self, session: SessionId) -> Vec<Effect> {
        self.set_status("looking for findings …");
        vec![self.send_query(PendingQuery::Findings(session), Query::Findings { session })]
    }

    pub(super) fn take_findings(&mut self, of: SessionId, found: Vec<FindingEntry>) {
        if found.is_empty() {
            self.set_status("nothing found in this session");
            return;
        }
        self.status_text = None;
        // Something else was opened meanwhile.
        if self.overlay.is_none() {
            self.overlay = Some(Overlay::Findings { of, found, at: 0 });
        }
    }

    pub(super) fn choose_finding(
        &mut self,
        of: SessionId,
        found: Vec<FindingEntry>,
        at: usize,
        key: KeyEvent,
    ) -> Vec<Effect> {
        let last = found.len().saturating_sub(1);
        let at = match self.keys.action(key) {
            Some(Action::Down) => (at + 1).min(last),
            Some(Action::Up) => at.saturating_sub(1),
            Some(Action::PageDown | Action::HalfDown) => (at + 10).min(last),
            Some(Action::PageUp | Action::HalfUp) => at.saturating_sub(10),
            Some(Action::Start) => 0,
            Some(Action::End) => last,
            Some(Action::Open | Action::Agent) => {
                return match found.get(at).and_then(|entry| entry.position) {
                    Some(position) => self.open_at(of, position),
                    None => {
                        self.set_status("no part is left that shows it");
                        Vec::new()
                    }
                };
            }
            _ => return Vec::new(),
        };
        self.overlay = Some(Overlay::Findings { of, found, at });
        Vec::new()
    }

    /// Shows a part of a session: in its screen if it is open, else in a new one.
    fn open_at(&mut self, session: SessionId, position: Position) -> Vec<Effect> {
        let open = self.transcript_mut().filter(|transcript| transcript.session == session);
        if let Some(transcript) = open {
            if transcript.covers(position) {
                transcript.go_to(position);
                return Vec::new();
            }
            let query = transcript.request_window(Anchor::Around(position));
            return self.query_from_transcript(|_| Some(query)).into_iter().collect();
        }
        let mut transcript = TranscriptPane::new(session, None, self.view_options.clone());
        let query = transcript.request_window(Anchor::Around(position));
        self.screens.push(Screen::Session(Box::new(transcript)));
        self.query_from_transcript(|_| Some(query)).into_iter().collect()
    }
}
