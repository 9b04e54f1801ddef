//! Session hubs: one `SessionHub` per viewed session paints its changes once and broadcasts them to
//! all open pages as `DomOp`s. Text is repainted at most every 100 ms, and the last delta is always
//! sent; state changes are sent at once (R-003-23, C-20).
//!
//! A hub holds no parts. It keeps the skeletons of the turns that change and reads from the archive
//! what must be painted, so its memory does not grow with the session (R-X-14).

mod dom_op;
mod paint;
mod painted_turn;
mod state;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use axum::extract::ws::Utf8Bytes;
use painted_turn::PaintedTurn;
use rustc_hash::FxHashMap;
use state::HubState;
use tokio::sync::broadcast;
use unspool_model::change::Urgency;
use unspool_model::id::SessionId;
use unspool_query::live::{Subscription, Update};
use unspool_store::blocking::block_on;
use unspool_store::store::{Store, StoreError, StoredSession, View};

use crate::App;

/// Text is repainted at most this often.
const TEXT_REPAINT_INTERVAL: Duration = Duration::from_millis(100);
/// A page may lag this many messages before it must reload.
const MESSAGE_BACKLOG: usize = 256;

/// A session with at least one viewer.
struct SessionHub<S: Store> {
    app: Arc<App<S>>,
    id: SessionId,
    state: Mutex<HubState>,
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
    fn state(&self) -> std::sync::MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stored(&self) -> Result<Option<StoredSession>, StoreError> {
        block_on(self.app.view().session(self.id))
    }

    /// Resets the state from the archive: the last turn and the sub-agents.
    fn reset(&self, state: &mut HubState) -> Result<bool, StoreError> {
        let Some(stored) = self.stored()? else { return Ok(false) };
        *state = HubState { seq: stored.seq, ..HubState::default() };
        let last = block_on(self.app.view().sizes(stored.row))?.pop();
        if let Some(last) = last
            && let Some(skeleton) = block_on(self.app.view().skeleton(stored.row, last.number))?
        {
            state.painted.push(PaintedTurn::new(skeleton));
        }
        self.load_subagents(state, &stored)?;
        Ok(true)
    }

    fn load_subagents(
        &self,
        state: &mut HubState,
        stored: &StoredSession,
    ) -> Result<(), StoreError> {
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
}
