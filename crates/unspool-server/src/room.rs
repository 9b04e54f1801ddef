//! Rooms: everybody who looks at one session, and the one who paints it for them. What changed is
//! painted once, as the pieces that differ, and sent to all; text at most every 100 ms with the
//! last word always sent, states at once (R-003-23, C-20).

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use axum::extract::ws::Utf8Bytes;
use jiff::Timestamp;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use tokio::sync::broadcast;
use unspool_core::change::Change;
use unspool_core::id::{SessionId, digest};
use unspool_core::present::outline::Outline;
use unspool_core::present::{self, TurnView};
use unspool_core::session::{Turn, TurnState};
use unspool_engine::family::family;
use unspool_engine::follow::{Followed, News as Taken};
use unspool_render::page;
use unspool_render::turn::{Piece, pieces, turn, turn_id};
use unspool_store::blocking::wait;
use unspool_store::contract::{Store, StoreError};

use crate::{App, News};

/// How often text is painted.
const PACE: Duration = Duration::from_millis(100);
/// So many messages may somebody who is slow be behind.
const BACKLOG: usize = 256;
/// A turn without an end in a session that has been silent for so long is not going on.
const SILENCE: Duration = Duration::from_secs(30 * 60);

/// Says of turns without an end whether they go on.
pub fn settle(turns: &mut [Turn], last: Option<Timestamp>) {
    let silent = last.is_none_or(|last| {
        let elapsed = Timestamp::now().duration_since(last);
        elapsed > jiff::SignedDuration::try_from(SILENCE).unwrap_or_default()
    });
    for turn in turns.iter_mut().filter(|turn| turn.state == TurnState::Running) {
        if turn.number == 0 {
            turn.state = TurnState::Completed;
        } else if silent {
            turn.state = TurnState::Unknown;
        }
    }
}

/// What a page does with its elements, one after the other.
#[derive(Serialize)]
#[serde(tag = "act", rename_all = "kebab-case")]
enum Act {
    Head { html: String },
    Turn { html: String, after: Option<String> },
    Piece { turn: String, html: String, after: Option<String> },
    Drop { id: String },
    Outline { html: String, after: Option<String> },
}

#[derive(Serialize)]
struct Message<'a> {
    r#type: &'static str,
    session: SessionId,
    seq: u64,
    acts: &'a [Act],
}

/// A turn as it was last painted.
struct Painted {
    id: String,
    outline: u64,
    pieces: Vec<(String, u64)>,
}

/// One session that somebody looks at.
struct Room<S: Store> {
    app: Arc<App<S>>,
    id: SessionId,
    state: Mutex<State<S>>,
    out: broadcast::Sender<Utf8Bytes>,
}

struct State<S: Store> {
    followed: Followed<S>,
    /// The sessions of its sub-agents: what they do is shown here too.
    agents: FxHashSet<SessionId>,
    head: String,
    turns: Vec<Painted>,
}

/// The rooms that are open, by session. Type-erased, so that the app need not name itself.
#[derive(Default)]
pub struct Rooms(Mutex<FxHashMap<SessionId, Arc<dyn AnyRoom>>>);

trait AnyRoom: Send + Sync {
    fn join(&self, since: u64, first: Option<&str>) -> Joined;
}

/// What somebody who came in is told at once, and then.
pub struct Joined {
    pub now: Utf8Bytes,
    pub then: broadcast::Receiver<Utf8Bytes>,
}

/// Comes into the room of a session; opens it if nobody is there. `since` is what the page has,
/// `first` the first turn in it. None if there is no such session. Blocks.
pub fn join<S: Store>(
    app: &Arc<App<S>>,
    id: SessionId,
    since: u64,
    first: Option<&str>,
) -> Result<Option<Joined>, StoreError> {
    let mut rooms = app.rooms.0.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(room) = rooms.get(&id) {
        return Ok(Some(room.join(since, first)));
    }
    // Listened to before it is loaded: nothing falls between.
    let news = app.news.subscribe();
    let Some(followed) = Followed::load(app.store.clone(), id)? else { return Ok(None) };
    let state = Mutex::new(State {
        followed,
        agents: FxHashSet::default(),
        head: String::new(),
        turns: Vec::new(),
    });
    let out = broadcast::channel(BACKLOG).0;
    let room = Arc::new(Room { app: app.clone(), id, state, out });
    room.paint(&mut room.state())?;
    let joined = room.join(since, first);
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
    fn join(&self, since: u64, first: Option<&str>) -> Joined {
        let mut state = self.state();
        let then = self.out.subscribe();
        // A page that has something older, or newer than what was painted last, is told all that it
        // has anew. Any other is told what the seq of the session says nothing of: its head, which
        // may have been read later than the seq, and what its sub-agents do.
        let is_current = state.followed.seq() == since;
        let views = self.views(&mut state);
        let from = views.iter().position(|view| Some(turn_id(view).as_str()) == first);
        let mut acts = vec![Act::Head { html: state.head.clone() }];
        let mut before = None;
        for view in views.iter().skip(from.unwrap_or(0)) {
            let (after, id) = (before.clone(), turn_id(view));
            if is_current && Outline::of(view).agents == 0 {
                before = Some(id);
                continue;
            }
            acts.push(Act::Turn { html: turn(view).into_string(), after: after.clone() });
            acts.push(Act::Outline { html: page::outline_entry(view).into_string(), after });
            before = Some(id);
        }
        Joined { now: self.message(state.followed.seq(), &acts), then }
    }
}

impl<S: Store> Room<S> {
    fn state(&self) -> std::sync::MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn message(&self, seq: u64, acts: &[Act]) -> Utf8Bytes {
        let message = Message { r#type: "html", session: self.id, seq, acts };
        serde_json::to_string(&message).unwrap_or_default().into()
    }

    fn views(&self, state: &mut State<S>) -> Vec<TurnView> {
        let mut transcript = state.followed.transcript();
        let last = transcript.ended();
        settle(&mut transcript.turns, last);
        // What cannot be read now is joined with the next news.
        let agent = &transcript.session.agent;
        let family = wait(family(&self.app.store, agent, &transcript.turns)).unwrap_or_default();
        let named = transcript.agent_ids().chain(family.ids());
        state.agents = named.map(|id| SessionId::of(agent, id)).collect();
        let options = present::Options { family, ..present::Options::of(&transcript.session) };
        transcript.turns.iter().map(|turn| present::turn(turn, &options)).collect()
    }

    /// Paints as long as somebody is there.
    fn keep(&self, mut news: broadcast::Receiver<News>) {
        let mut painted = Instant::now();
        while let Some(mut urgency) = self.take_next(&mut news) {
            loop {
                urgency = urgency.max(self.take_waiting(&mut news));
                let due = painted + PACE;
                let now = Instant::now();
                if urgency != Urgency::Text || now >= due {
                    break;
                }
                // The last word comes at the end of the pause, together with what came in it.
                thread::sleep((due - now).min(Duration::from_millis(10)));
            }
            if self.is_empty() {
                break;
            }
            if urgency != Urgency::None {
                // An archive that cannot be read now may be readable with the next news.
                let _ = self.paint(&mut self.state());
                painted = Instant::now();
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
            News::Missed => match state.followed.reload() {
                Ok(_) => Urgency::State,
                Err(_) => Urgency::None,
            },
            News::Written(published) if state.agents.contains(&published.session) => Urgency::Text,
            News::Written(published) => match state.followed.take(published) {
                Ok(Taken::None) | Err(_) => Urgency::None,
                Ok(Taken::Loaded) => Urgency::State,
                Ok(Taken::Changed) => {
                    let changes = published.changes.as_deref().map(Vec::as_slice);
                    let grew = |change: &Change| matches!(change, Change::PartGrew { .. });
                    let text = changes.unwrap_or_default().iter().all(grew);
                    if text { Urgency::Text } else { Urgency::State }
                }
            },
        }
    }

    /// Sends what differs from what was painted last.
    fn paint(&self, state: &mut State<S>) -> Result<(), StoreError> {
        let views = self.views(state);
        let mut acts = Vec::new();
        if let Some(stored) = wait(self.app.store.find(self.id.to_string()))?.pop() {
            let head = page::session_head(&stored.summary, &self.app.prices).into_string();
            if state.head != head {
                state.head.clone_from(&head);
                acts.push(Act::Head { html: head });
            }
        }
        let mut before: Vec<Painted> = std::mem::take(&mut state.turns);
        let mut last: Option<String> = None;
        for view in &views {
            let id = turn_id(view);
            let old = before.iter().position(|painted| painted.id == id);
            let old = old.map(|at| before.remove(at));
            let new = pieces(view);
            let outline = page::outline_entry(view).into_string();
            let told = digest(outline.as_bytes());
            match &old {
                None => {
                    let html = turn(view).into_string();
                    acts.push(Act::Turn { html, after: last.clone() });
                }
                Some(old) => differences(&id, &old.pieces, &new, &mut acts),
            }
            if old.as_ref().is_none_or(|old| old.outline != told) {
                acts.push(Act::Outline { html: outline, after: last.clone() });
            }
            let pieces =
                new.into_iter().map(|piece| (piece.id, digest(piece.html.as_bytes()))).collect();
            state.turns.push(Painted { id: id.clone(), outline: told, pieces });
            last = Some(id);
        }
        acts.extend(before.into_iter().map(|gone| Act::Drop { id: gone.id }));
        if !acts.is_empty() {
            // Nobody is there: no matter.
            let _ = self.out.send(self.message(state.followed.seq(), &acts));
        }
        Ok(())
    }
}

/// How soon something must be painted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    None,
    Text,
    State,
}

fn differences(turn: &str, old: &[(String, u64)], new: &[Piece], acts: &mut Vec<Act>) {
    let gone = old.iter().filter(|(id, _)| new.iter().all(|piece| piece.id != *id));
    acts.extend(gone.map(|(id, _)| Act::Drop { id: id.clone() }));
    let kept: Vec<&(String, u64)> =
        old.iter().filter(|(id, _)| new.iter().any(|piece| piece.id == *id)).collect();
    let mut at = 0;
    let mut after: Option<String> = None;
    for piece in new {
        let same = kept
            .get(at)
            .is_some_and(|(id, told)| *id == piece.id && *told == digest(piece.html.as_bytes()));
        if kept.get(at).is_some_and(|(id, _)| *id == piece.id) {
            at += 1;
        }
        if !same {
            acts.push(Act::Piece {
                turn: turn.to_owned(),
                html: piece.html.clone(),
                after: after.clone(),
            });
        }
        after = Some(piece.id.clone());
    }
}
