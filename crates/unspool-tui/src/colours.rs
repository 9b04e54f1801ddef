//! Colours of code. Reading a grammar can take a tenth of a second, so a thread does it: whoever
//! draws asks, gets what is known, and is told when there is more.

use std::collections::VecDeque;
use std::mem::size_of;
use std::ops::Range;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_core::id::digest;
use unspool_core::lines::{self, Stretches, Token};
use unspool_render::highlight;

use crate::event::Event;

/// What is kept, in bytes. What was asked for longest ago goes first.
const KEPT: usize = 4 * 1024 * 1024;
/// How many texts wait at most. Who scrolls fast has left the oldest behind.
const WAITING: usize = 64;
/// New colours are told this often at most.
const PAUSE: Duration = Duration::from_millis(50);
/// Longer texts are not even asked for: a digest of them is taken with every frame.
const LONGEST: usize = 256 * 1024;

/// JSON of this length is read at once.
const QUICK: usize = 16 * 1024;

/// Digests of a language and of a text.
type Key = (u64, u64);

/// The colours that are known. A clone is the same.
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
    /// Counts questions, so that what was asked for last is kept.
    clock: u64,
    wanted: VecDeque<Wanted>,
    waiting: FxHashSet<Key>,
    /// The last that is known of each text that may be growing: its length and its key.
    families: FxHashMap<Key, (usize, Key)>,
    over: bool,
}

struct Wanted {
    key: Key,
    language: String,
    text: String,
}

struct Known {
    /// Nothing, where a language has no grammar: that is not asked again.
    stretches: Option<Arc<Stretches>>,
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

/// Ends the thread that finds colours, when it is dropped.
#[derive(Debug)]
pub struct Painter {
    colours: Colours,
}

impl Painter {
    /// Starts the thread. It tells of new colours with [`Event::Coloured`].
    pub fn start(events: Sender<Event>) -> Painter {
        let shared = Arc::new(Shared { state: Mutex::default(), work: Condvar::new() });
        let worker = shared.clone();
        // Without the thread everything is there but for its colours.
        let _ = thread::Builder::new().name("colours".into()).spawn(move || work(&worker, events));
        Painter { colours: Colours { shared } }
    }

    /// What is given to [`lines::LineOptions`].
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

impl lines::Colours for Colours {
    fn of(&self, language: &str, text: &str) -> Option<Arc<Stretches>> {
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

/// JSON needs no grammar.
fn is_quick(language: &str, text: &str) -> bool {
    text.len() <= QUICK && matches!(language, "json" | "jsonc" | "jsonl")
}

impl State {
    fn keep(&mut self, key: Key, stretches: Option<Arc<Stretches>>) {
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

    /// Half of it goes at once, so that this is seldom.
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

    /// What is known of the start of a text that has grown since: it would blink otherwise.
    fn of_start(&self, language: u64, text: &str) -> Option<Arc<Stretches>> {
        let (length, key) = self.families.get(&family(language, text))?;
        let start = text.as_bytes().get(..*length)?;
        let is_start = (language, digest(start)) == *key;
        self.known.get(key).filter(|_| is_start)?.stretches.clone()
    }
}

/// Texts that start alike may be one that grows.
fn family(language: u64, text: &str) -> Key {
    (language, digest(text.as_bytes().get(..16).unwrap_or(text.as_bytes())))
}

fn work(shared: &Shared, events: Sender<Event>) {
    let mut news = News { events, last: None, is_any: false };
    while let Some(Wanted { key, language, text }) = next(shared, &mut news) {
        let found = highlight::tokens(&language, &text).map(Arc::new);
        let is_new = |found: &Arc<Stretches>| found.iter().any(|(token, _)| *token != Token::Plain);
        news.is_any |= found.as_ref().is_some_and(is_new);
        let mut state = shared.state();
        state.families.insert(family(key.0, &text), (text.len(), key));
        state.keep(key, found);
    }
}

/// Waits for something to do, and tells what was done. Nothing when all is over.
fn next(shared: &Shared, news: &mut News) -> Option<Wanted> {
    let mut state = shared.state();
    loop {
        if state.over {
            return None;
        }
        let pause = news.tell()?;
        // What was asked for last is what is looked at.
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
    /// Tells, if there is something to tell and it is time; otherwise says how long to wait.
    /// Nothing when nobody listens any more.
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
