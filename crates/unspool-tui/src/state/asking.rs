//! Handles responses: each goes to what its pending query was for, and may lead to the next query.

use unspool_engine::reader::{Query, Response, SessionRow};
use unspool_engine::window::Anchor;

use super::{Asker, Deed, Screen, State};
use crate::link::Number;
use crate::replay::Replay;
use crate::transcript::Transcript;

impl State {
    pub(super) fn answered(&mut self, number: Number, answer: Response) -> Vec<Deed> {
        // A response to a query from before the connection was lost: it has been sent again.
        let Some(asker) = self.asked.remove(&number) else { return Vec::new() };
        if let Response::Failed(what) = answer {
            if let Asker::Window(session, _) = asker {
                self.session_mut(session).map(Transcript::forget_asked);
            }
            self.say(format!("✕ {what}"));
            return Vec::new();
        }
        match (asker, answer) {
            (Asker::List, Response::List { sessions, more }) => {
                let next = self.list.take(sessions, more);
                next.map(|wish| self.ask(Asker::List, wish)).into_iter().collect()
            }
            (Asker::Newest, Response::List { sessions, .. }) => {
                self.list.take(sessions, true);
                Vec::new()
            }
            (Asker::Row(id), Response::Session(session_row)) => {
                if session_row.is_none() {
                    // It was deleted, here or by another process.
                    self.screens.retain(|screen| match screen {
                        Screen::Session(held) => held.session != id,
                        Screen::Search(_) => true,
                    });
                }
                self.list.put(id, session_row.map(|session_row| *session_row));
                Vec::new()
            }
            (Asker::Preview(id), Response::Window(loaded)) => {
                if let Some(preview) = self.preview.as_mut().filter(|held| held.session == id) {
                    preview.take(crate::transcript::Why::Anew(None), *loaded);
                }
                Vec::new()
            }
            (Asker::Window(session, why), Response::Window(loaded)) => {
                let next = self.session_mut(session).and_then(|held| held.take(why, *loaded));
                let next = next.map(|(why, wish)| self.ask(Asker::Window(session, why), wish));
                next.into_iter().collect()
            }
            (Asker::Export(session), Response::Window(loaded)) => {
                self.take_stretch(session, *loaded)
            }
            (Asker::Find(session, query), Response::Hits(found)) => {
                let taken = self.session_mut(session).map(|held| held.take_hits(&query, &found));
                if found.is_empty() {
                    self.say(format!("no match for {query} in this session"));
                }
                let next = taken.flatten();
                let next = next.map(|(why, wish)| self.ask(Asker::Window(session, why), wish));
                next.into_iter().collect()
            }
            (Asker::Search(query), Response::Hits(found)) => {
                if let Some(Screen::Search(search)) = self.screens.last_mut()
                    && search.query == query
                {
                    (search.hits, search.at, search.top) = (Some(found), 0, 0);
                }
                Vec::new()
            }
            (Asker::Named { replay }, Response::Session(session_row)) => match session_row {
                Some(session_row) => self.open(*session_row, replay),
                None => {
                    self.say("✕ no such session, or the id is ambiguous");
                    Vec::new()
                }
            },
            // A response of the wrong kind for its query is ignored.
            (_, _) => Vec::new(),
        }
    }

    pub(super) fn session_mut(
        &mut self,
        session: unspool_core::id::SessionId,
    ) -> Option<&mut Transcript> {
        self.screens.iter_mut().rev().find_map(|screen| match screen {
            Screen::Session(held) if held.session == session => Some(&mut **held),
            Screen::Session(_) | Screen::Search(_) => None,
        })
    }

    /// Opens a session at its end, or at its start for a replay.
    pub(super) fn open(&mut self, session_row: SessionRow, replay: bool) -> Vec<Deed> {
        let transcript = Transcript::new(session_row.id, Some(session_row), self.manner.clone());
        self.screens.push(Screen::Session(Box::new(transcript)));
        if replay {
            return self.start_replay();
        }
        self.of_transcript(|transcript| Some(transcript.ask_anew(Anchor::End)))
            .into_iter()
            .collect()
    }

    pub(super) fn start_replay(&mut self) -> Vec<Deed> {
        let start = unspool_engine::window::Position::start_of(0);
        self.replay = Some(Replay::new(self.now));
        let asked = self.of_transcript(|transcript| {
            transcript.until = Some(start);
            Some(transcript.ask_anew(Anchor::From(start)))
        });
        asked.into_iter().collect()
    }

    pub(super) fn ask_preview(&mut self) -> Option<Deed> {
        let session_row = self.list.chosen()?;
        let mut preview = Transcript::preview(session_row, self.manner.clone());
        let id = session_row.id;
        let (_, wish) = preview.ask_anew(Anchor::End);
        self.preview = Some(preview);
        self.fit();
        Some(self.ask(Asker::Preview(id), wish))
    }

    /// Reloads the newest part of the list and the open session: updates may have been lost.
    pub(super) fn look_again(&mut self) -> Vec<Deed> {
        let list = Query::List { after: None, limit: 200 };
        let mut deeds = vec![self.ask(Asker::Newest, list)];
        let loaded = self.transcript().is_some_and(Transcript::is_loaded);
        let asked = self.of_transcript(|transcript| match loaded {
            true => transcript.ask_refresh(),
            false => Some(transcript.ask_anew(Anchor::End)),
        });
        deeds.extend(asked);
        deeds
    }
}
