//! Handles responses: each goes to what its pending query was for, and may lead to the next query.

use unspool_model::id::SessionId;
use unspool_query::reader::{Query, Response, SearchHit, SessionRow};
use unspool_query::search::Reading;
use unspool_query::window::Anchor;

use super::{Effect, PendingQuery, Screen, State};
use crate::backend::QueryId;
use crate::replay::{Replay, ReplayRange};
use crate::transcript::TranscriptPane;

impl State {
    pub(super) fn handle_response(&mut self, number: QueryId, response: Response) -> Vec<Effect> {
        // A response to a query from before the connection was lost: it has been sent again.
        let Some(pending_query) = self.pending.remove(&number) else { return Vec::new() };
        if let Response::Failed(what) = response {
            self.handle_failure(&pending_query, &what);
            return Vec::new();
        }
        match (pending_query, response) {
            (PendingQuery::List, Response::List { sessions, more }) => {
                let next = self.list.take(sessions, more);
                self.schedule_live_rows();
                let next = next.map(|query| self.send_query(PendingQuery::List, query));
                self.alerts().into_iter().chain(next).collect()
            }
            (PendingQuery::Newest, Response::List { sessions, .. }) => {
                self.list.take(sessions, true);
                self.schedule_live_rows();
                self.alerts()
            }
            (PendingQuery::Row(id), Response::Session(session_row)) => {
                self.take_row(id, session_row.map(|session_row| *session_row));
                self.alerts()
            }
            (PendingQuery::Preview(id), Response::Window(loaded)) => {
                if let Some(preview) = self.preview.as_mut().filter(|held| held.session == id) {
                    preview.take(crate::transcript::LoadReason::Replace(None), *loaded);
                }
                Vec::new()
            }
            (PendingQuery::Window(session, reason), Response::Window(loaded)) => {
                let next = self.session_mut(session).and_then(|held| held.take(reason, *loaded));
                let next = next.map(|(reason, query)| {
                    self.send_query(PendingQuery::Window(session, reason), query)
                });
                next.into_iter().collect()
            }
            (PendingQuery::Export(session), Response::Markdown(text)) => {
                vec![Effect::Save { name: format!("unspool-{session}.md"), text }]
            }
            (PendingQuery::Copy, Response::Markdown(text)) => {
                self.set_status("copied as Markdown");
                vec![Effect::Copy(text)]
            }
            (PendingQuery::Find(session, query), Response::Hits { hits, reading }) => {
                self.show_find(session, &query, &hits, reading)
            }
            (PendingQuery::Search(query), Response::Hits { hits, reading }) => {
                self.take_hits(&query, hits, reading);
                Vec::new()
            }
            (PendingQuery::Budgets, Response::Budgets(found)) => {
                self.budgets = found;
                Vec::new()
            }
            (PendingQuery::Notes(session, intent), Response::Notes(notes)) => {
                self.take_notes(session, intent, &notes)
            }
            (PendingQuery::Findings(session), Response::Findings(found)) => {
                self.take_findings(session, found);
                Vec::new()
            }
            (PendingQuery::Prompt(session), Response::Prompts(answer)) => {
                self.take_prompt(session, answer);
                Vec::new()
            }
            (PendingQuery::Changes(session), response) => self.take_changed(session, response),
            (PendingQuery::Named { replay }, Response::Session(Some(session_row))) => {
                self.open(*session_row, replay)
            }
            (PendingQuery::Named { .. }, Response::Session(None)) => {
                self.set_status("✕ no session has this id, or several do; use a longer id");
                Vec::new()
            }
            // A response of the wrong kind for its query is ignored.
            (_, _) => Vec::new(),
        }
    }

    /// The changes of a session, and then what git still has of them.
    fn take_changed(&mut self, session: SessionId, response: Response) -> Vec<Effect> {
        if let Response::Changes(changes) = response {
            return self.take_changes(session, *changes);
        }
        if let Response::Standing(standing) = response {
            self.take_standing(session, *standing);
        }
        Vec::new()
    }

    fn take_hits(&mut self, query: &str, hits: Vec<SearchHit>, reading: Reading) {
        if let Some(Screen::Search(search)) = self.screens.last_mut()
            && search.query == query
        {
            (search.hits, search.at, search.top) = (Some(hits), 0, 0);
            search.reading = reading;
        }
    }

    fn handle_failure(&mut self, pending_query: &PendingQuery, what: &str) {
        if let PendingQuery::Window(session, _) = *pending_query {
            self.session_mut(session).map(TranscriptPane::forget_pending);
            // The session of a chat is in the archive when its first line is recorded.
            if self.chat.as_ref().is_some_and(|chat| chat.session == session && !chat.tentative) {
                return;
            }
        }
        if let PendingQuery::Prompt(_) = pending_query {
            self.close_empty_prompt();
        }
        self.set_status(format!("✕ {what}"));
    }

    /// Takes a reloaded row. Without one the session was deleted, here or by another process.
    fn take_row(&mut self, id: SessionId, session_row: Option<SessionRow>) {
        if session_row.is_none() {
            self.screens.retain(|screen| match screen {
                Screen::Session(held) => held.session != id,
                Screen::Changes(held) => held.session != id,
                Screen::Prompt(held) => held.session != id,
                Screen::PromptCalls(held) => held.session != id,
                Screen::Search(_) => true,
            });
        }
        self.list.update(id, session_row);
        self.schedule_live_rows();
    }

    /// Goes to the first hit of a find, or says that there is none.
    fn show_find(
        &mut self,
        session: SessionId,
        query: &str,
        hits: &[SearchHit],
        reading: Reading,
    ) -> Vec<Effect> {
        if hits.is_empty() {
            self.set_status(reading.understood);
        }
        let held = self.session_mut(session);
        let next = held.and_then(|held| held.apply_hits(query, hits, reading.texts));
        let next = next
            .map(|(reason, query)| self.send_query(PendingQuery::Window(session, reason), query));
        next.into_iter().collect()
    }

    pub(super) fn session_mut(&mut self, session: SessionId) -> Option<&mut TranscriptPane> {
        self.screens.iter_mut().rev().find_map(|screen| match screen {
            Screen::Session(held) if held.session == session => Some(&mut **held),
            Screen::Session(_)
            | Screen::Search(_)
            | Screen::Changes(_)
            | Screen::Prompt(_)
            | Screen::PromptCalls(_) => None,
        })
    }

    /// Opens a session at its end, or where its replay begins.
    pub(super) fn open(
        &mut self,
        session_row: SessionRow,
        replay: Option<ReplayRange>,
    ) -> Vec<Effect> {
        let turns = session_row.turns;
        let transcript =
            TranscriptPane::new(session_row.id, Some(session_row), self.view_options.clone());
        self.screens.push(Screen::Session(Box::new(transcript)));
        match replay {
            Some(range) if u64::from(range.first_turn()) <= turns => {
                return self.start_replay(range);
            }
            Some(range) => self.set_status(format!("✕ there is no turn {}", range.first_turn())),
            None => {}
        }
        self.query_from_transcript(|transcript| Some(transcript.request_window(Anchor::End)))
            .into_iter()
            .collect()
    }

    pub(super) fn start_replay(&mut self, range: ReplayRange) -> Vec<Effect> {
        let start = unspool_query::window::Position::start_of(range.first_turn());
        self.replay = Some(Replay::new(range, self.now));
        let effect = self.query_from_transcript(|transcript| {
            transcript.until = Some(start);
            Some(transcript.request_window(Anchor::From(start)))
        });
        effect.into_iter().collect()
    }

    pub(super) fn request_preview(&mut self) -> Option<Effect> {
        let session_row = self.list.chosen()?;
        let id = session_row.id;
        // The same session again: it grew. Until the answer comes, the old one stays.
        let held = self.preview.take().filter(|held| held.session == id);
        let new = || TranscriptPane::preview(session_row, self.view_options.clone());
        let mut preview = held.unwrap_or_else(new);
        preview.session_row = Some(session_row.clone());
        let (_, query) = preview.request_window(Anchor::End);
        self.preview = Some(preview);
        self.resize_screens();
        Some(self.send_query(PendingQuery::Preview(id), query))
    }

    /// Reloads the newest part of the list and the open session: updates may have been lost.
    pub(super) fn refresh_all(&mut self) -> Vec<Effect> {
        let list = Query::List { after: None, limit: 200 };
        let mut effects = vec![self.send_query(PendingQuery::Newest, list)];
        let loaded = self.transcript().is_some_and(TranscriptPane::is_loaded);
        let effect = self.query_from_transcript(|transcript| match loaded {
            true => transcript.request_refresh(),
            false => Some(transcript.request_window(Anchor::End)),
        });
        effects.extend(effect);
        effects.extend(self.request_changes());
        effects
    }
}
