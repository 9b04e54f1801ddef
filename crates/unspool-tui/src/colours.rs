//! Syntax highlighting on a thread of its own, since loading a grammar can take a tenth of a
//! second. The layout gets what is cached, queues what is not, and `Event::Highlighted` announces
//! results.

use std::collections::VecDeque;
use std::mem::size_of;
use std::ops::Range;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_core::id::digest;
use unspool_core::lines::{self, Token, TokenSpans};
use unspool_render::highlight;

use crate::event::Event;

/// The size of the cache in bytes. Evicts the least recently used.
const KEPT: usize = 4 * 1024 * 1024;
/// The longest queue. The oldest texts are dropped: fast scrolling has left them behind.
const WAITING: usize = 64;
/// The shortest time between two notifications.
const PAUSE: Duration = Duration::from_millis(50);
/// Longer texts are not highlighted: their digest would be computed with every frame.
const LONGEST: usize = 256 * 1024;

/// JSON up to this length is highlighted synchronously.
const QUICK: usize = 16 * 1024;

/// The digests of language and text.
type Key = (u64, u64);

/// The cache, shared between clones.
#[derive(Clone)]
pub struct Colours {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    known: FxHashMap<Key, Known>,
    bytes: usize,
    /// Counts lookups, for the least recently used order.
    clock: u64,
    wanted: VecDeque<Wanted>,
    waiting: FxHashSet<Key>,
    /// The latest highlighted version of each text that may be growing: its length and its key.
    families: FxHashMap<Key, (usize, Key)>,
    over: bool,
}

struct Wanted {
    key: Key,
    language: String,
    text: String,
}

struct Known {
    /// `None` for a language without a grammar, so that it is not tried again.
    stretches: Option<Arc<TokenSpans>>,
    bytes: usize,
    asked: u64,
}

impl std::fmt::Debug for Colours {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Colours").field("bytes", &self.shared.state().bytes).finish()
    }
}

impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The highlighting thread. It ends when this is dropped.
#[derive(Debug)]
pub struct Painter {
    colours: Colours,
}

impl Painter {
    /// Starts the thread. It announces results with [`Event::Coloured`].
    pub fn start(events: Sender<Event>) -> Painter {
        let shared = Arc::new(Shared { state: Mutex::default(), work: Condvar::new() });
        let worker = shared.clone();
        // Without the thread code is shown without colours.
        let _ = thread::Builder::new().name("colours".into()).spawn(move || work(&worker, events));
        Painter { colours: Colours { shared } }
    }

    /// The cache, to be passed to [`lines::LineOptions`].
    pub fn colours(&self) -> &Colours {
        &self.colours
    }
}

impl Drop for Painter {
    fn drop(&mut self) {
        self.colours.shared.state().over = true;
        self.colours.shared.work.notify_all();
    }
}

impl lines::Highlighter for Colours {
    fn of(&self, language: &str, text: &str) -> Option<Arc<TokenSpans>> {
        if text.len() > LONGEST {
            return None;
        }
        let key = (digest(language.as_bytes()), digest(text.as_bytes()));
        let mut state = self.shared.state();
        state.clock += 1;
        let now = state.clock;
        if let Some(known) = state.known.get_mut(&key) {
            known.asked = now;
            return known.stretches.clone();
        }
        let language = language.to_ascii_lowercase();
        if is_quick(&language, text) {
            let found = highlight::tokens(&language, text).map(Arc::new);
            state.keep(key, found.clone());
            return found;
        }
        if state.waiting.insert(key) {
            state.wanted.push_back(Wanted { key, language, text: text.to_owned() });
            if state.wanted.len() > WAITING
                && let Some(left) = state.wanted.pop_front()
            {
                state.waiting.remove(&left.key);
            }
            self.shared.work.notify_one();
        }
        state.of_start(key.0, text)
    }
}

/// JSON needs no grammar, so it is fast enough for the drawing thread.
fn is_quick(language: &str, text: &str) -> bool {
    text.len() <= QUICK && matches!(language, "json" | "jsonc" | "jsonl")
}

impl State {
    fn keep(&mut self, key: Key, stretches: Option<Arc<TokenSpans>>) {
        self.waiting.remove(&key);
        let found = stretches.as_ref().map_or(0, |found| found.len());
        let bytes = found * size_of::<(Token, Range<usize>)>() + size_of::<(Key, Known)>();
        self.clock += 1;
        let known = Known { stretches, bytes, asked: self.clock };
        self.bytes += bytes;
        if let Some(before) = self.known.insert(key, known) {
            self.bytes -= before.bytes;
        }
        if self.bytes > KEPT {
            self.let_go();
        }
    }

    /// Evicts half of the cache at once, so that this is rare.
    fn let_go(&mut self) {
        let mut asked: Vec<(u64, Key)> =
            self.known.iter().map(|(key, known)| (known.asked, *key)).collect();
        asked.sort_unstable();
        for (_, key) in asked {
            if self.bytes <= KEPT / 2 {
                break;
            }
            self.bytes -= self.known.remove(&key).map_or(0, |known| known.bytes);
        }
        let known = &self.known;
        self.families.retain(|_, (_, key)| known.contains_key(key));
    }

    /// The highlights of an earlier version of a growing text; without them it would flicker.
    fn of_start(&self, language: u64, text: &str) -> Option<Arc<TokenSpans>> {
        let (length, key) = self.families.get(&family(language, text))?;
        let start = text.as_bytes().get(..*length)?;
        let is_start = (language, digest(start)) == *key;
        self.known.get(key).filter(|_| is_start)?.stretches.clone()
    }
}

/// Texts with the same first 16 bytes may be versions of one that grows.
fn family(language: u64, text: &str) -> Key {
    (language, digest(text.as_bytes().get(..16).unwrap_or(text.as_bytes())))
}

fn work(shared: &Shared, events: Sender<Event>) {
    let mut news = News { events, last: None, is_any: false };
    while let Some(Wanted { key, language, text }) = next(shared, &mut news) {
        let found = highlight::tokens(&language, &text).map(Arc::new);
        let is_new =
            |found: &Arc<TokenSpans>| found.iter().any(|(token, _)| *token != Token::Plain);
        news.is_any |= found.as_ref().is_some_and(is_new);
        let mut state = shared.state();
        state.families.insert(family(key.0, &text), (text.len(), key));
        state.keep(key, found);
    }
}

/// Waits for a job, and announces finished ones meanwhile. `None` when the thread should end.
fn next(shared: &Shared, news: &mut News) -> Option<Wanted> {
    let mut state = shared.state();
    loop {
        if state.over {
            return None;
        }
        let pause = news.tell()?;
        // Newest first: that text is on the screen.
        if let Some(wanted) = state.wanted.pop_back() {
            return Some(wanted);
        }
        state = match pause {
            Some(pause) => {
                let waited = shared.work.wait_timeout(state, pause);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => shared.work.wait(state).unwrap_or_else(PoisonError::into_inner),
        };
    }
}

struct News {
    events: Sender<Event>,
    last: Option<Instant>,
    is_any: bool,
}

impl News {
    /// Announces finished highlights if there are any and the interval has passed; otherwise
    /// returns how long to wait. `None` if the application is ending.
    fn tell(&mut self) -> Option<Option<Duration>> {
        if !self.is_any {
            return Some(None);
        }
        let pause = self.last.map_or(Duration::ZERO, |last| PAUSE.saturating_sub(last.elapsed()));
        if !pause.is_zero() {
            return Some(Some(pause));
        }
        self.events.send(Event::Coloured).ok()?;
        self.is_any = false;
        self.last = Some(Instant::now());
        Some(None)
    }
}

#[cfg(test)]
#[path = "colours_tests.rs"]
mod tests;
