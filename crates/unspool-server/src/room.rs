//! Session hubs: one `SessionHub` per viewed session paints its changes once and broadcasts them to
//! all open pages as `DomOp`s. Text is repainted at most every 100 ms, and the last delta is always
//! sent; state changes are sent at once (R-003-23, C-20).
//!
//! A hub holds no parts. It keeps the skeletons of the turns that change and reads from the archive
//! what must be painted, so its memory does not grow with the session (R-X-14).

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
use unspool_engine::subagents::subagents;
use unspool_engine::window::fill;
use unspool_render::page;
use unspool_render::turn::turn;
use unspool_store::blocking::block_on;
use unspool_store::store::{Store, StoreError, StoredSession, SubagentRef};

use crate::{App, News};
use known::Known;
use state::{Pending, State, Urgency};

/// Text is repainted at most this often.
const PACE: Duration = Duration::from_millis(100);
/// A page may lag this many messages before it must reload.
const BACKLOG: usize = 256;
/// Skeletons kept: the running turn and turns with late changes.
const KNOWN: usize = 8;
/// If more changed parts than this are in unloaded turns, pages reload instead.
const LOOKED_UP: usize = 4;
/// Sets the state of turns without an end: running or unknown.
pub fn settle(turns: &mut [Turn], last: Option<Timestamp>) {
    unspool_core::live::settle(turns, last, Timestamp::now());
}

/// A DOM operation that `view.js` applies, in order.
#[derive(Serialize)]
#[serde(tag = "act", rename_all = "kebab-case")]
enum Act {
    Head {
        html: String,
    },
    /// A new turn.
    Turn {
        html: String,
        after: Option<String>,
    },
    Piece {
        turn: String,
        html: String,
        after: Option<String>,
    },
    /// The frame of a reasoning block; the page keeps its children.
    Shell {
        turn: String,
        html: String,
        after: Option<String>,
    },
    /// A part inside a reasoning block.
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
    /// The task list.
    Tasks {
        html: String,
    },
    /// Too many changes: the page reloads its window.
    Load,
}

#[derive(Serialize)]
struct Message<'a> {
    r#type: &'static str,
    session: SessionId,
    seq: u64,
    #[serde(rename = "acts")]
    acts: &'a [Act],
}

/// A session with at least one viewer.
struct Room<S: Store> {
    app: Arc<App<S>>,
    id: SessionId,
    state: Mutex<State>,
    out: broadcast::Sender<Utf8Bytes>,
}

/// The open hubs by session. Type-erased: `App<S>` could not name `SessionHub<S>` of itself.
#[derive(Default)]
pub struct Rooms(Mutex<FxHashMap<SessionId, Arc<dyn AnyRoom>>>);

trait AnyRoom: Send + Sync {
    fn join(&self) -> Joined;
}

/// The messages from `seq` on.
pub struct Joined {
    pub seq: u64,
    pub then: broadcast::Receiver<Utf8Bytes>,
}

/// Subscribes to the hub of a session and starts it if needed. None if there is no such session.
/// The client loads its window after subscribing, so there is no gap. Blocks.
pub fn join<S: Store>(app: &Arc<App<S>>, id: SessionId) -> Result<Option<Joined>, StoreError> {
    let mut rooms = app.rooms.0.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(room) = rooms.get(&id) {
        return Ok(Some(room.join()));
    }
    // Subscribe before loading, so that no update is lost in between.
    let news = app.news.subscribe();
    let out = broadcast::channel(BACKLOG).0;
    let room = Arc::new(Room { app: app.clone(), id, state: Mutex::default(), out });
    if !room.look(&mut room.state())? {
        return Ok(None);
    }
    let joined = room.join();
    rooms.insert(id, room.clone());
    drop(rooms);
    let keeper = thread::Builder::new().name("session-hub".to_owned());
    if keeper.spawn(move || room.keep(news)).is_err() {
        // No thread, no painter: the next subscriber tries again.
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
        Ok(block_on(self.app.store.find(self.id.to_string()))?.pop())
    }

    /// Resets the state from the archive: the last turn and the sub-agents.
    fn look(&self, state: &mut State) -> Result<bool, StoreError> {
        let Some(stored) = self.stored()? else { return Ok(false) };
        *state = State { seq: stored.seq, ..State::default() };
        let last = block_on(self.app.store.sizes(stored.row))?.pop();
        if let Some(last) = last
            && let Some(skeleton) = block_on(self.app.store.skeleton(stored.row, last.number))?
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
        let found = block_on(self.app.store.subagents(stored.row))?;
        state.subagents = found.into_iter().map(|found| (found.session, found)).collect();
        Ok(())
    }

    /// Paints until the last subscriber leaves.
    fn keep(&self, mut news: broadcast::Receiver<News>) {
        // The earliest next repaint of text, and of anything else.
        let (mut text_due, mut due) = (Instant::now(), Instant::now());
        while let Some(mut urgency) = self.take_next(&mut news) {
            loop {
                urgency = urgency.max(self.take_waiting(&mut news));
                let now = Instant::now();
                let due = if urgency == Urgency::Text { text_due } else { due };
                if now >= due {
                    break;
                }
                // Updates that arrive during the pause are painted together at its end.
                thread::sleep((due - now).min(Duration::from_millis(10)));
            }
            if self.is_empty() {
                break;
            }
            if urgency != Urgency::None {
                let began = Instant::now();
                // If the archive cannot be read now, retry with the next update.
                if self.paint(&mut self.state()).is_err() {
                    self.state().pending.all = true;
                }
                // Slow repaints happen less often.
                let pause = began.elapsed() * 3;
                text_due = began + PACE.max(pause);
                due = if pause > PACE { began + pause } else { began };
            }
        }
    }

    /// True if there is no subscriber left; then the hub is removed.
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

    /// Sends the differences since the last paint.
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
            // Fails only when there is no subscriber.
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
            let shown = agents.iter().filter_map(|agent| state.subagents.get(agent));
            for relative in shown.copied().collect::<Vec<SubagentRef>>() {
                let known = self.know(state, stored, relative.turn)?;
                parts.extend(known.and_then(|known| known.part_at(relative.place)));
            }
        }
        // Changed parts in turns that are not loaded.
        let is_strange = |part: &&PartId| !born.contains(*part) && state.turn_of(**part).is_none();
        let strange: Vec<PartId> = parts.iter().filter(is_strange).copied().collect();
        if strange.len() > LOOKED_UP {
            return self.load(state, acts);
        }
        for part in strange {
            if let Some((number, _)) = block_on(self.app.store.locate(stored.row, None, part))? {
                self.know(state, stored, number)?;
            }
        }
        let fresh = self.refresh(state, stored, opened, turns, heads)?;
        if state.known.iter().any(|known| known.plans(&parts)) {
            let tasks: Tasks = block_on(self.app.store.plans(stored.row))?.iter().collect();
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

    /// Discards the operations and makes all pages reload.
    fn load(&self, state: &mut State, acts: &mut Vec<Act>) -> Result<(), StoreError> {
        acts.clear();
        acts.push(Act::Load);
        self.look(state)?;
        Ok(())
    }

    /// The turn with this number, loaded if needed. Evicts the least recently used turn.
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
                let Some(skeleton) = block_on(self.app.store.skeleton(stored.row, number))? else {
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

    /// Reloads the skeletons and heads of changed turns. Returns the turns that are new.
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
                if let Some(skeleton) = block_on(store.skeleton(stored.row, number))? {
                    known.replace(skeleton);
                }
            } else if let Some(turn) = block_on(store.head(stored.row, number))? {
                known.skeleton.turn = turn;
                known.stale = true;
            }
        }
        let mut fresh = Vec::new();
        let sizes =
            if unknown.is_empty() { Vec::new() } else { block_on(store.sizes(stored.row))? };
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

    /// Presents a turn with only these parts filled in.
    fn view(
        &self,
        stored: &StoredSession,
        mut skeleton: Skeleton,
        places: &[Place],
    ) -> Result<TurnView, StoreError> {
        let store = &self.app.store;
        block_on(fill(store, stored, &mut skeleton, places))?;
        settle(std::slice::from_mut(&mut skeleton.turn), stored.summary.ended);
        let session = &stored.summary.session;
        let turns = std::slice::from_ref(&skeleton.turn);
        // Sub-agents that cannot be read now are joined with the next update.
        let subagents = block_on(subagents(store, &session.agent, turns)).unwrap_or_default();
        let options = present::PresentOptions { subagents, ..present::PresentOptions::of(session) };
        Ok(present::partial_turn(&skeleton.turn, &skeleton.parts, &options))
    }
}

/// A turn that pages do not have yet.
struct Fresh {
    number: u32,
    /// The DOM id of the preceding turn.
    after: Option<String>,
}
