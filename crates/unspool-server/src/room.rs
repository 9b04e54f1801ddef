//! Rooms: everybody who looks at one session, and the one who paints it for them. What changed is
//! painted once, as the pieces that differ, and sent to all; text at most every 100 ms with the
//! last word always sent, states at once (R-003-23, C-20).
//!
//! A room holds no part. Of the turns in which something happens it knows the outline, and it
//! reads from the archive what has to be painted: so it takes as little memory for a session of
//! a hundred thousand parts as for a small one (R-X-14).

mod known;
mod state;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use axum::extract::ws::Utf8Bytes;
use jiff::Timestamp;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use tokio::sync::broadcast;
use unspool_core::id::{PartId, SessionId, TurnId, digest};
use unspool_core::part::Place;
use unspool_core::present::tools::Tasks;
use unspool_core::present::{self, TurnView};
use unspool_core::session::Turn;
use unspool_core::skeleton::Skeleton;
use unspool_engine::family::family;
use unspool_engine::window::fill;
use unspool_render::page;
use unspool_render::turn::turn;
use unspool_store::blocking::wait;
use unspool_store::contract::{Relative, Store, StoreError, StoredSession};

use crate::{App, News};
use known::Known;
use state::{Pending, State, Urgency};

/// How often text is painted.
const PACE: Duration = Duration::from_millis(100);
/// So many messages may somebody who is slow be behind.
const BACKLOG: usize = 256;
/// So many turns are known at a time: the one that goes on, and those that something late is said of.
const KNOWN: usize = 8;
/// Who wants to know the turns of more parts than this looks at everything anew.
const LOOKED_UP: usize = 4;
/// Says of turns without an end whether they go on.
pub fn settle(turns: &mut [Turn], last: Option<Timestamp>) {
    unspool_core::live::settle(turns, last, Timestamp::now());
}

/// What a page does with its elements, one after the other.
#[derive(Serialize)]
#[serde(tag = "act", rename_all = "kebab-case")]
enum Act {
    Head {
        html: String,
    },
    /// A turn that was not there.
    Turn {
        html: String,
        after: Option<String>,
    },
    Piece {
        turn: String,
        html: String,
        after: Option<String>,
    },
    /// A reasoning block; what stands in it stays.
    Shell {
        turn: String,
        html: String,
        after: Option<String>,
    },
    /// A part in a reasoning block.
    Inner {
        within: String,
        html: String,
        after: Option<String>,
    },
    Drop {
        id: String,
    },
    Outline {
        html: String,
    },
    /// What is to be done now.
    Tasks {
        html: String,
    },
    /// Too much happened to be told: load what is looked at.
    Load,
}

#[derive(Serialize)]
struct Message<'a> {
    r#type: &'static str,
    session: SessionId,
    seq: u64,
    acts: &'a [Act],
}

/// One session that somebody looks at.
struct Room<S: Store> {
    app: Arc<App<S>>,
    id: SessionId,
    state: Mutex<State>,
    out: broadcast::Sender<Utf8Bytes>,
}

/// The rooms that are open, by session. Type-erased, so that the app need not name itself.
#[derive(Default)]
pub struct Rooms(Mutex<FxHashMap<SessionId, Arc<dyn AnyRoom>>>);

trait AnyRoom: Send + Sync {
    fn join(&self) -> Joined;
}

/// What somebody who came in is told from now on, and as of when.
pub struct Joined {
    pub seq: u64,
    pub then: broadcast::Receiver<Utf8Bytes>,
}

/// Comes into the room of a session; opens it if nobody is there. None if there is no such
/// session. Who has come in loads what it looks at: nothing falls between. Blocks.
pub fn join<S: Store>(app: &Arc<App<S>>, id: SessionId) -> Result<Option<Joined>, StoreError> {
    let mut rooms = app.rooms.0.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(room) = rooms.get(&id) {
        return Ok(Some(room.join()));
    }
    // Listened to before it is loaded: nothing falls between.
    let news = app.news.subscribe();
    let out = broadcast::channel(BACKLOG).0;
    let room = Arc::new(Room { app: app.clone(), id, state: Mutex::default(), out });
    if !room.look(&mut room.state())? {
        return Ok(None);
    }
    let joined = room.join();
    rooms.insert(id, room.clone());
    drop(rooms);
    let keeper = thread::Builder::new().name("room".to_owned());
    if keeper.spawn(move || room.keep(news)).is_err() {
        // Nobody will paint: whoever comes next tries again.
        app.rooms.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
    Ok(Some(joined))
}

impl<S: Store> AnyRoom for Room<S> {
    fn join(&self) -> Joined {
        let state = self.state();
        Joined { seq: state.seq, then: self.out.subscribe() }
    }
}

impl<S: Store> Room<S> {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stored(&self) -> Result<Option<StoredSession>, StoreError> {
        Ok(wait(self.app.store.find(self.id.to_string()))?.pop())
    }

    /// Begins anew with what is stored: the turn that may go on, and the sub-agents.
    fn look(&self, state: &mut State) -> Result<bool, StoreError> {
        let Some(stored) = self.stored()? else { return Ok(false) };
        *state = State { seq: stored.seq, ..State::default() };
        let last = wait(self.app.store.sizes(stored.row))?.pop();
        if let Some(last) = last
            && let Some(skeleton) = wait(self.app.store.skeleton(stored.row, last.number))?
        {
            state.known.push(Known::new(skeleton));
        }
        self.look_for_relatives(state, &stored)?;
        Ok(true)
    }

    fn look_for_relatives(
        &self,
        state: &mut State,
        stored: &StoredSession,
    ) -> Result<(), StoreError> {
        let found = wait(self.app.store.relatives(stored.row))?;
        state.relatives = found.into_iter().map(|found| (found.session, found)).collect();
        Ok(())
    }

    /// Paints as long as somebody is there.
    fn keep(&self, mut news: broadcast::Receiver<News>) {
        // When text, and when anything else, is painted next at the earliest.
        let (mut text_due, mut due) = (Instant::now(), Instant::now());
        while let Some(mut urgency) = self.take_next(&mut news) {
            loop {
                urgency = urgency.max(self.take_waiting(&mut news));
                let now = Instant::now();
                let due = if urgency == Urgency::Text { text_due } else { due };
                if now >= due {
                    break;
                }
                // The last word comes at the end of the pause, together with what came in it.
                thread::sleep((due - now).min(Duration::from_millis(10)));
            }
            if self.is_empty() {
                break;
            }
            if urgency != Urgency::None {
                let began = Instant::now();
                // An archive that cannot be read now may be readable with the next news.
                if self.paint(&mut self.state()).is_err() {
                    self.state().pending.all = true;
                }
                // What takes long to paint is painted less often.
                let pause = began.elapsed() * 3;
                text_due = began + PACE.max(pause);
                due = if pause > PACE { began + pause } else { began };
            }
        }
    }

    /// Whether everybody is gone; then the room is closed.
    fn is_empty(&self) -> bool {
        let mut rooms = self.app.rooms.0.lock().unwrap_or_else(PoisonError::into_inner);
        let empty = self.out.receiver_count() == 0;
        if empty {
            rooms.remove(&self.id);
        }
        empty
    }

    fn take_next(&self, news: &mut broadcast::Receiver<News>) -> Option<Urgency> {
        use broadcast::error::RecvError;
        match news.blocking_recv() {
            Ok(told) => Some(self.take(&told)),
            Err(RecvError::Lagged(_)) => Some(self.take(&News::Missed)),
            Err(RecvError::Closed) => None,
        }
    }

    fn take_waiting(&self, news: &mut broadcast::Receiver<News>) -> Urgency {
        use broadcast::error::TryRecvError;
        let mut urgency = Urgency::None;
        loop {
            match news.try_recv() {
                Ok(told) => urgency = urgency.max(self.take(&told)),
                Err(TryRecvError::Lagged(_)) => urgency = urgency.max(self.take(&News::Missed)),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return urgency,
            }
        }
    }

    fn take(&self, told: &News) -> Urgency {
        let mut state = self.state();
        match told {
            News::Missed => {
                state.pending.all = true;
                Urgency::State
            }
            News::Written(published) => state.take(self.id, published),
        }
    }

    /// Sends what differs from what was painted last.
    fn paint(&self, state: &mut State) -> Result<(), StoreError> {
        let pending = std::mem::take(&mut state.pending);
        let mut acts = Vec::new();
        if pending.all {
            self.look(state)?;
            acts.push(Act::Load);
        }
        let Some(stored) = self.stored()? else { return Ok(()) };
        let head = page::session_head(&stored.summary, &self.app.prices).into_string();
        let told = digest(head.as_bytes());
        if std::mem::replace(&mut state.head, told) != told {
            acts.push(Act::Head { html: head });
        }
        if !pending.all {
            self.paint_turns(state, &stored, pending, &mut acts)?;
        }
        if !acts.is_empty() {
            let message = Message { r#type: "html", session: self.id, seq: state.seq, acts: &acts };
            let message = serde_json::to_string(&message).unwrap_or_default();
            // Nobody is there: no matter.
            let _ = self.out.send(message.into());
        }
        Ok(())
    }

    fn paint_turns(
        &self,
        state: &mut State,
        stored: &StoredSession,
        pending: Pending,
        acts: &mut Vec<Act>,
    ) -> Result<(), StoreError> {
        let Pending { opened, turns, heads, mut parts, born, removed, agents, .. } = pending;
        acts.extend(removed.into_iter().map(|part| Act::Drop { id: format!("p-{part}") }));
        if !agents.is_empty() {
            self.look_for_relatives(state, stored)?;
            let shown = agents.iter().filter_map(|agent| state.relatives.get(agent));
            for relative in shown.copied().collect::<Vec<Relative>>() {
                let known = self.know(state, stored, relative.turn)?;
                parts.extend(known.and_then(|known| known.part_at(relative.place)));
            }
        }
        // Parts of turns that nothing was said of before.
        let is_strange = |part: &&PartId| !born.contains(*part) && state.turn_of(**part).is_none();
        let strange: Vec<PartId> = parts.iter().filter(is_strange).copied().collect();
        if strange.len() > LOOKED_UP {
            return self.load(state, acts);
        }
        for part in strange {
            if let Some((number, _)) = wait(self.app.store.locate(stored.row, None, part))? {
                self.know(state, stored, number)?;
            }
        }
        let fresh = self.refresh(state, stored, opened, turns, heads)?;
        if state.known.iter().any(|known| known.plans(&parts)) {
            let tasks: Tasks = wait(self.app.store.plans(stored.row))?.iter().collect();
            acts.push(Act::Tasks { html: page::tasks(&tasks).into_string() });
        }
        for Fresh { number, after } in fresh {
            let Some(known) = state.known.iter_mut().find(|known| known.number() == number) else {
                continue;
            };
            let Some(places) = known.all_places() else { return self.load(state, acts) };
            let (skeleton, id) = (known.skeleton.clone(), self.id.to_string());
            let view = self.view(stored, skeleton, &places)?;
            acts.push(Act::Turn { html: turn(&id, &view).into_string(), after });
            known.paint(&view, &mut Vec::new());
            acts.push(Act::Outline { html: page::outline_entry(&view).into_string() });
        }
        for at in 0..state.known.len() {
            let Some(known) = state.known.get_mut(at) else { continue };
            if !known.stale && !parts.iter().any(|part| known.position(*part).is_some()) {
                continue;
            }
            let Some(due) = known.due(&parts) else { return self.load(state, acts) };
            let view = self.view(stored, known.skeleton.clone(), &due.places)?;
            acts.extend(due.gone.into_iter().map(|id| Act::Drop { id }));
            known.paint(&view, acts);
        }
        Ok(())
    }

    /// Too much to be told piece by piece.
    fn load(&self, state: &mut State, acts: &mut Vec<Act>) -> Result<(), StoreError> {
        acts.clear();
        acts.push(Act::Load);
        self.look(state)?;
        Ok(())
    }

    /// The turn of this number, read if it is not known.
    fn know<'s>(
        &self,
        state: &'s mut State,
        stored: &StoredSession,
        number: u32,
    ) -> Result<Option<&'s mut Known>, StoreError> {
        match state.known.iter().position(|known| known.number() == number) {
            Some(at) => {
                let known = state.known.remove(at);
                state.known.push(known);
            }
            None => {
                let Some(skeleton) = wait(self.app.store.skeleton(stored.row, number))? else {
                    return Ok(None);
                };
                state.known.push(Known::new(skeleton));
                if state.known.len() > KNOWN {
                    state.known.remove(0);
                }
            }
        }
        Ok(state.known.last_mut())
    }

    /// Reads again what changed of turns beside their parts. Says which turns were not there.
    fn refresh(
        &self,
        state: &mut State,
        stored: &StoredSession,
        opened: FxHashSet<TurnId>,
        turns: FxHashSet<TurnId>,
        heads: FxHashSet<TurnId>,
    ) -> Result<Vec<Fresh>, StoreError> {
        let store = &self.app.store;
        let mut unknown: FxHashSet<TurnId> = opened.clone();
        for id in turns.iter().chain(&heads) {
            let Some(known) = state.known.iter_mut().find(|known| known.id() == *id) else {
                unknown.insert(*id);
                continue;
            };
            let number = known.number();
            if turns.contains(id) {
                if let Some(skeleton) = wait(store.skeleton(stored.row, number))? {
                    known.replace(skeleton);
                }
            } else if let Some(turn) = wait(store.head(stored.row, number))? {
                known.skeleton.turn = turn;
                known.stale = true;
            }
        }
        let mut fresh = Vec::new();
        let sizes = if unknown.is_empty() { Vec::new() } else { wait(store.sizes(stored.row))? };
        for (at, size) in sizes.iter().enumerate().filter(|(_, size)| unknown.contains(&size.id)) {
            if let Some(known) = self.know(state, stored, size.number)? {
                known.stale = true;
            }
            if opened.contains(&size.id) {
                let before = at.checked_sub(1).and_then(|at| sizes.get(at));
                let after = before.map(|size| format!("t-{}", size.id));
                fresh.push(Fresh { number: size.number, after });
            }
        }
        Ok(fresh)
    }

    /// A turn with these parts in it, as it is shown.
    fn view(
        &self,
        stored: &StoredSession,
        mut skeleton: Skeleton,
        places: &[Place],
    ) -> Result<TurnView, StoreError> {
        let store = &self.app.store;
        wait(fill(store, stored, &mut skeleton, places))?;
        settle(std::slice::from_mut(&mut skeleton.turn), stored.summary.ended);
        let session = &stored.summary.session;
        let turns = std::slice::from_ref(&skeleton.turn);
        // What cannot be read now is joined with the next news.
        let family = wait(family(store, &session.agent, turns)).unwrap_or_default();
        let options = present::Options { family, ..present::Options::of(session) };
        Ok(present::partial(&skeleton.turn, &skeleton.parts, &options))
    }
}

/// A turn that was not there.
struct Fresh {
    number: u32,
    /// The element of the turn before it.
    after: Option<String>,
}
