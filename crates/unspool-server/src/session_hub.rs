//! Session hubs: one `SessionHub` per viewed session paints its changes once and broadcasts them to
//! all open pages as `DomOp`s. Text is repainted at most every 100 ms, and the last delta is always
//! sent; state changes are sent at once (R-003-23, C-20).
//!
//! A hub holds no parts. It keeps the skeletons of the turns that change and reads from the archive
//! what must be painted, so its memory does not grow with the session (R-X-14).

mod painted_turn;
mod state;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use axum::extract::ws::Utf8Bytes;
use jiff::Timestamp;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use tokio::sync::broadcast;
use unspool_core::change::Urgency;
use unspool_core::id::{PartId, SessionId, TurnId, digest};
use unspool_core::part::Place;
use unspool_core::present::tools::Tasks;
use unspool_core::present::{self, TurnView};
use unspool_core::skeleton::Skeleton;
use unspool_engine::live::{Subscription, Update};
use unspool_engine::query::subagents::subagents;
use unspool_engine::query::window::fill;
use unspool_render::turn::turn;
use unspool_render::{dom, page};
use unspool_store::blocking::block_on;
use unspool_store::store::{Store, StoreError, StoredSession, SubagentRef, View};

use crate::App;
use painted_turn::PaintedTurn;
use state::{Pending, State};

/// Text is repainted at most this often.
const TEXT_REPAINT_INTERVAL: Duration = Duration::from_millis(100);
/// A page may lag this many messages before it must reload.
const MESSAGE_BACKLOG: usize = 256;
/// Skeletons kept: the running turn and turns with late changes.
const MAX_PAINTED_TURNS: usize = 8;
/// If more changed parts than this are in unloaded turns, pages reload instead.
const MAX_PART_LOOKUPS: usize = 4;

/// A DOM operation that `view.js` applies, in order.
#[derive(Serialize)]
#[serde(tag = "act", rename_all = "kebab-case")]
enum DomOp {
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
    ops: &'a [DomOp],
}

/// A session with at least one viewer.
struct SessionHub<S: Store> {
    app: Arc<App<S>>,
    id: SessionId,
    state: Mutex<State>,
    out: broadcast::Sender<Utf8Bytes>,
}

/// The open hubs by session. Type-erased: `App<S>` could not name `SessionHub<S>` of itself.
#[derive(Default)]
pub struct Hubs(Mutex<FxHashMap<SessionId, Arc<dyn AnyHub>>>);

trait AnyHub: Send + Sync {
    fn join(&self) -> HubSubscription;
}

/// The messages from `seq` on.
pub struct HubSubscription {
    pub seq: u64,
    pub messages: broadcast::Receiver<Utf8Bytes>,
}

/// Subscribes to the hub of a session and starts it if needed. None if there is no such session.
/// The client loads its window after subscribing, so there is no gap. Blocks.
pub fn join<S: Store>(
    app: &Arc<App<S>>,
    id: SessionId,
) -> Result<Option<HubSubscription>, StoreError> {
    let mut hubs = app.hubs.0.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(hub) = hubs.get(&id) {
        return Ok(Some(hub.join()));
    }
    // Subscribe before loading, so that no update is lost in between.
    let updates = app.updates.subscribe();
    let out = broadcast::channel(MESSAGE_BACKLOG).0;
    let hub = Arc::new(SessionHub { app: app.clone(), id, state: Mutex::default(), out });
    if !hub.reset(&mut hub.state())? {
        return Ok(None);
    }
    let joined = hub.join();
    hubs.insert(id, hub.clone());
    drop(hubs);
    let builder = thread::Builder::new().name("session-hub".to_owned());
    if builder.spawn(move || hub.run(updates)).is_err() {
        // No thread, no painter: the next subscriber tries again.
        app.hubs.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
    Ok(Some(joined))
}

impl<S: Store> AnyHub for SessionHub<S> {
    fn join(&self) -> HubSubscription {
        let state = self.state();
        HubSubscription { seq: state.seq, messages: self.out.subscribe() }
    }
}

impl<S: Store> SessionHub<S> {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stored(&self) -> Result<Option<StoredSession>, StoreError> {
        block_on(self.app.view().session(self.id))
    }

    /// Resets the state from the archive: the last turn and the sub-agents.
    fn reset(&self, state: &mut State) -> Result<bool, StoreError> {
        let Some(stored) = self.stored()? else { return Ok(false) };
        *state = State { seq: stored.seq, ..State::default() };
        let last = block_on(self.app.view().sizes(stored.row))?.pop();
        if let Some(last) = last
            && let Some(skeleton) = block_on(self.app.view().skeleton(stored.row, last.number))?
        {
            state.painted.push(PaintedTurn::new(skeleton));
        }
        self.load_subagents(state, &stored)?;
        Ok(true)
    }

    fn load_subagents(&self, state: &mut State, stored: &StoredSession) -> Result<(), StoreError> {
        let found = block_on(self.app.view().subagents(stored.row))?;
        state.subagents = found.into_iter().map(|found| (found.session, found)).collect();
        Ok(())
    }

    /// Paints until the last subscriber leaves.
    fn run(&self, mut updates: Subscription) {
        // The earliest next repaint of text, and of anything else.
        let (mut text_due, mut due) = (Instant::now(), Instant::now());
        while let Some(latest) = updates.next_blocking() {
            let mut urgency = self.take(&latest);
            loop {
                urgency = urgency.max(self.recv_waiting(&mut updates));
                let now = Instant::now();
                let due = if urgency == Some(Urgency::Text) { text_due } else { due };
                if now >= due {
                    break;
                }
                // Updates that arrive during the pause are painted together at its end.
                thread::sleep((due - now).min(Duration::from_millis(10)));
            }
            if self.is_empty() {
                break;
            }
            if urgency.is_some() {
                let began = Instant::now();
                // If the archive cannot be read now, retry with the next update.
                if self.paint(&mut self.state()).is_err() {
                    self.state().pending.all = true;
                }
                // Slow repaints happen less often.
                let pause = began.elapsed() * 3;
                text_due = began + TEXT_REPAINT_INTERVAL.max(pause);
                due = if pause > TEXT_REPAINT_INTERVAL { began + pause } else { began };
            }
        }
    }

    /// True if there is no subscriber left; then the hub is removed.
    fn is_empty(&self) -> bool {
        let mut hubs = self.app.hubs.0.lock().unwrap_or_else(PoisonError::into_inner);
        let empty = self.out.receiver_count() == 0;
        if empty {
            hubs.remove(&self.id);
        }
        empty
    }

    fn recv_waiting(&self, updates: &mut Subscription) -> Option<Urgency> {
        let mut urgency = None;
        while let Some(latest) = updates.try_next() {
            urgency = urgency.max(self.take(&latest));
        }
        urgency
    }

    fn take(&self, latest: &Update) -> Option<Urgency> {
        let mut state = self.state();
        match latest {
            Update::Lagged => {
                state.pending.all = true;
                Some(Urgency::State)
            }
            Update::Written(published) => state.take(self.id, published),
        }
    }

    /// Sends the differences since the last paint.
    fn paint(&self, state: &mut State) -> Result<(), StoreError> {
        let pending = std::mem::take(&mut state.pending);
        let mut ops = Vec::new();
        if pending.all {
            self.reset(state)?;
            ops.push(DomOp::Load);
        }
        let Some(stored) = self.stored()? else { return Ok(()) };
        let head = page::session_head(&stored.summary, &self.app.prices).into_string();
        let latest = digest(head.as_bytes());
        if std::mem::replace(&mut state.head, latest) != latest {
            ops.push(DomOp::Head { html: head });
        }
        if !pending.all {
            self.paint_turns(state, &stored, pending, &mut ops)?;
        }
        if !ops.is_empty() {
            let message = Message { r#type: "html", session: self.id, seq: state.seq, ops: &ops };
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
        ops: &mut Vec<DomOp>,
    ) -> Result<(), StoreError> {
        let Pending { opened, turns, heads, mut parts, new_parts, removed, agents, .. } = pending;
        ops.extend(removed.into_iter().map(|part| DomOp::Drop { id: dom::part(part) }));
        if !agents.is_empty() {
            self.load_subagents(state, stored)?;
            let shown = agents.iter().filter_map(|agent| state.subagents.get(agent));
            for relative in shown.copied().collect::<Vec<SubagentRef>>() {
                let painted = self.load_turn(state, stored, relative.turn)?;
                parts.extend(painted.and_then(|painted| painted.part_at(relative.place)));
            }
        }
        // Changed parts in turns that are not loaded.
        let is_unlocated =
            |part: &&PartId| !new_parts.contains(*part) && state.turn_of(**part).is_none();
        let unlocated: Vec<PartId> = parts.iter().filter(is_unlocated).copied().collect();
        if unlocated.len() > MAX_PART_LOOKUPS {
            return self.reset_clients(state, ops);
        }
        for part in unlocated {
            if let Some((number, _)) = block_on(self.app.view().locate(stored.row, None, part))? {
                self.load_turn(state, stored, number)?;
            }
        }
        let new_turns = self.refresh(state, stored, opened, turns, heads)?;
        if state.painted.iter().any(|painted| painted.plans(&parts)) {
            let tasks: Tasks = block_on(self.app.view().plans(stored.row))?.iter().collect();
            ops.push(DomOp::Tasks { html: page::tasks(&tasks).into_string() });
        }
        for NewTurn { number, after } in new_turns {
            let Some(painted) = state.painted.iter_mut().find(|painted| painted.number() == number)
            else {
                continue;
            };
            let Some(places) = painted.all_places() else { return self.reset_clients(state, ops) };
            let (skeleton, id) = (painted.skeleton.clone(), self.id.to_string());
            let view = self.view(stored, skeleton, &places)?;
            ops.push(DomOp::Turn { html: turn(&id, &view).into_string(), after });
            painted.paint(&view, &mut Vec::new());
            ops.push(DomOp::Outline { html: page::outline_entry(&view).into_string() });
        }
        for at in 0..state.painted.len() {
            let Some(painted) = state.painted.get_mut(at) else { continue };
            if !painted.stale && !parts.iter().any(|part| painted.position(*part).is_some()) {
                continue;
            }
            let Some(due) = painted.due(&parts) else { return self.reset_clients(state, ops) };
            let view = self.view(stored, painted.skeleton.clone(), &due.places)?;
            ops.extend(due.gone.into_iter().map(|id| DomOp::Drop { id }));
            painted.paint(&view, ops);
        }
        Ok(())
    }

    /// Discards the operations and makes all pages reload.
    fn reset_clients(&self, state: &mut State, ops: &mut Vec<DomOp>) -> Result<(), StoreError> {
        ops.clear();
        ops.push(DomOp::Load);
        self.reset(state)?;
        Ok(())
    }

    /// The turn with this number, loaded if needed. Evicts the least recently used turn.
    fn load_turn<'s>(
        &self,
        state: &'s mut State,
        stored: &StoredSession,
        number: u32,
    ) -> Result<Option<&'s mut PaintedTurn>, StoreError> {
        match state.painted.iter().position(|painted| painted.number() == number) {
            Some(at) => {
                let painted = state.painted.remove(at);
                state.painted.push(painted);
            }
            None => {
                let Some(skeleton) = block_on(self.app.view().skeleton(stored.row, number))? else {
                    return Ok(None);
                };
                state.painted.push(PaintedTurn::new(skeleton));
                if state.painted.len() > MAX_PAINTED_TURNS {
                    state.painted.remove(0);
                }
            }
        }
        Ok(state.painted.last_mut())
    }

    /// Reloads the skeletons and heads of changed turns. Returns the turns that are new.
    fn refresh(
        &self,
        state: &mut State,
        stored: &StoredSession,
        opened: FxHashSet<TurnId>,
        turns: FxHashSet<TurnId>,
        heads: FxHashSet<TurnId>,
    ) -> Result<Vec<NewTurn>, StoreError> {
        let archive = &self.app.view();
        let mut unknown: FxHashSet<TurnId> = opened.clone();
        for id in turns.iter().chain(&heads) {
            let Some(painted) = state.painted.iter_mut().find(|painted| painted.id() == *id) else {
                unknown.insert(*id);
                continue;
            };
            let number = painted.number();
            if turns.contains(id) {
                if let Some(skeleton) = block_on(archive.skeleton(stored.row, number))? {
                    painted.replace(skeleton);
                }
            } else if let Some(turn) = block_on(archive.head(stored.row, number))? {
                painted.skeleton.turn = turn;
                painted.stale = true;
            }
        }
        let mut new_turns = Vec::new();
        let sizes =
            if unknown.is_empty() { Vec::new() } else { block_on(archive.sizes(stored.row))? };
        for (at, size) in sizes.iter().enumerate().filter(|(_, size)| unknown.contains(&size.id)) {
            if let Some(painted) = self.load_turn(state, stored, size.number)? {
                painted.stale = true;
            }
            if opened.contains(&size.id) {
                let before = at.checked_sub(1).and_then(|at| sizes.get(at));
                let after = before.map(|size| dom::turn(size.id));
                new_turns.push(NewTurn { number: size.number, after });
            }
        }
        Ok(new_turns)
    }

    /// Presents a turn with only these parts filled in.
    fn view(
        &self,
        stored: &StoredSession,
        mut skeleton: Skeleton,
        places: &[Place],
    ) -> Result<TurnView, StoreError> {
        let archive = &self.app.view();
        block_on(fill(archive, stored, &mut skeleton, places))?;
        stored.summary.settle(std::slice::from_mut(&mut skeleton.turn), Timestamp::now());
        let session = &stored.summary.session;
        let turns = std::slice::from_ref(&skeleton.turn);
        // Sub-agents that cannot be read now are joined with the next update.
        let subagents = block_on(subagents(archive, &session.agent, turns)).unwrap_or_default();
        let options = present::PresentOptions { subagents, ..present::PresentOptions::of(session) };
        Ok(present::partial_turn(&skeleton.turn, &skeleton.parts, &options))
    }
}

/// A turn that pages do not have yet.
struct NewTurn {
    number: u32,
    /// The DOM id of the preceding turn.
    after: Option<String>,
}
