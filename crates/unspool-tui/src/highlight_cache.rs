//! Syntax highlighting on a thread of its own, since loading a grammar can take a tenth of a
//! second. The layout gets what is cached, queues what is not, and `AppEvent::Highlighted` announces
//! results.

use std::collections::VecDeque;
use std::mem::size_of;
use std::ops::Range;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};
use unspool_export::html::highlight;
use unspool_model::id::digest;
use unspool_view::lines::{self, Token, TokenSpans};

use crate::event::AppEvent;

/// The size of the cache in bytes. Evicts the least recently used.
const CACHE_BYTES: usize = 4 * 1024 * 1024;
/// The longest queue. The oldest texts are dropped: fast scrolling has left them behind.
const MAX_QUEUED_TEXTS: usize = 64;
/// The shortest time between two notifications.
const NOTIFY_INTERVAL: Duration = Duration::from_millis(50);
/// Longer texts are not highlighted: their digest would be computed with every frame.
const MAX_TEXT_BYTES: usize = 256 * 1024;

/// JSON up to this length is highlighted synchronously.
const MAX_INLINE_JSON_BYTES: usize = 16 * 1024;

/// The digests of language and text.
type CacheKey = (u64, u64);

/// The cache, shared between clones.
#[derive(Clone)]
pub struct HighlightCache {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<SharedState>,
    work: Condvar,
}

#[derive(Default)]
struct SharedState {
    cached: FxHashMap<CacheKey, CacheEntry>,
    bytes: usize,
    /// Counts lookups, for the least recently used order.
    clock: u64,
    jobs: VecDeque<HighlightJob>,
    queued: FxHashSet<CacheKey>,
    /// The latest highlighted version of each text that may be growing: its length and its key.
    growing: FxHashMap<CacheKey, (usize, CacheKey)>,
    stopped: bool,
}

struct HighlightJob {
    key: CacheKey,
    language: String,
    text: String,
}

struct CacheEntry {
    /// `None` for a language without a grammar, so that it is not tried again.
    stretches: Option<Arc<TokenSpans>>,
    bytes: usize,
    last_used: u64,
}

impl std::fmt::Debug for HighlightCache {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Colours").field("bytes", &self.shared.state().bytes).finish()
    }
}

impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, SharedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The highlighting thread. It ends when this is dropped.
#[derive(Debug)]
pub struct HighlightThread {
    colours: HighlightCache,
}

impl HighlightThread {
    /// Starts the thread. It announces results with [`AppEvent::Highlighted`].
    pub fn start(events: Sender<AppEvent>) -> HighlightThread {
        let shared = Arc::new(Shared { state: Mutex::default(), work: Condvar::new() });
        let worker = shared.clone();
        // Without the thread code is shown without colours.
        let _ = thread::Builder::new().name("colours".into()).spawn(move || work(&worker, events));
        HighlightThread { colours: HighlightCache { shared } }
    }

    /// The cache, to be passed to [`lines::LineOptions`].
    pub fn colours(&self) -> &HighlightCache {
        &self.colours
    }
}

impl Drop for HighlightThread {
    fn drop(&mut self) {
        self.colours.shared.state().stopped = true;
        self.colours.shared.work.notify_all();
    }
}

impl lines::Highlighter for HighlightCache {
    fn of(&self, language: &str, text: &str) -> Option<Arc<TokenSpans>> {
        if text.len() > MAX_TEXT_BYTES {
            return None;
        }
        let key = (digest(language.as_bytes()), digest(text.as_bytes()));
        let mut state = self.shared.state();
        state.clock += 1;
        let now = state.clock;
        if let Some(cached) = state.cached.get_mut(&key) {
            cached.last_used = now;
            return cached.stretches.clone();
        }
        let language = language.to_ascii_lowercase();
        if is_quick(&language, text) {
            let found = highlight::tokens(&language, text).map(Arc::new);
            state.insert(key, found.clone());
            return found;
        }
        if state.queued.insert(key) {
            state.jobs.push_back(HighlightJob { key, language, text: text.to_owned() });
            if state.jobs.len() > MAX_QUEUED_TEXTS
                && let Some(left) = state.jobs.pop_front()
            {
                state.queued.remove(&left.key);
            }
            self.shared.work.notify_one();
        }
        state.prefix_highlights(key.0, text)
    }
}

/// JSON needs no grammar, so it is fast enough for the drawing thread.
fn is_quick(language: &str, text: &str) -> bool {
    text.len() <= MAX_INLINE_JSON_BYTES && matches!(language, "json" | "jsonc" | "jsonl")
}

impl SharedState {
    fn insert(&mut self, key: CacheKey, stretches: Option<Arc<TokenSpans>>) {
        self.queued.remove(&key);
        let found = stretches.as_ref().map_or(0, |found| found.len());
        let bytes =
            found * size_of::<(Token, Range<usize>)>() + size_of::<(CacheKey, CacheEntry)>();
        self.clock += 1;
        let cached = CacheEntry { stretches, bytes, last_used: self.clock };
        self.bytes += bytes;
        if let Some(before) = self.cached.insert(key, cached) {
            self.bytes -= before.bytes;
        }
        if self.bytes > CACHE_BYTES {
            self.evict();
        }
    }

    /// Evicts half of the cache at once, so that this is rare.
    fn evict(&mut self) {
        let mut last_used: Vec<(u64, CacheKey)> =
            self.cached.iter().map(|(key, cached)| (cached.last_used, *key)).collect();
        last_used.sort_unstable();
        for (_, key) in last_used {
            if self.bytes <= CACHE_BYTES / 2 {
                break;
            }
            self.bytes -= self.cached.remove(&key).map_or(0, |cached| cached.bytes);
        }
        let cached = &self.cached;
        self.growing.retain(|_, (_, key)| cached.contains_key(key));
    }

    /// The highlights of an earlier version of a growing text; without them it would flicker.
    fn prefix_highlights(&self, language: u64, text: &str) -> Option<Arc<TokenSpans>> {
        let (length, key) = self.growing.get(&growth_key(language, text))?;
        let start = text.as_bytes().get(..*length)?;
        let is_start = (language, digest(start)) == *key;
        self.cached.get(key).filter(|_| is_start)?.stretches.clone()
    }
}

/// Texts with the same first 16 bytes may be versions of one that grows.
fn growth_key(language: u64, text: &str) -> CacheKey {
    (language, digest(text.as_bytes().get(..16).unwrap_or(text.as_bytes())))
}

fn work(shared: &Shared, events: Sender<AppEvent>) {
    let mut notifier = Notifier { events, last: None, pending: false };
    while let Some(HighlightJob { key, language, text }) = next(shared, &mut notifier) {
        let found = highlight::tokens(&language, &text).map(Arc::new);
        let is_new =
            |found: &Arc<TokenSpans>| found.iter().any(|(token, _)| *token != Token::Plain);
        notifier.pending |= found.as_ref().is_some_and(is_new);
        let mut state = shared.state();
        state.growing.insert(growth_key(key.0, &text), (text.len(), key));
        state.insert(key, found);
    }
}

/// Waits for a job, and announces finished ones meanwhile. `None` when the thread should end.
fn next(shared: &Shared, notifier: &mut Notifier) -> Option<HighlightJob> {
    let mut state = shared.state();
    loop {
        if state.stopped {
            return None;
        }
        let pause = notifier.notify()?;
        // Newest first: that text is on the screen.
        if let Some(job) = state.jobs.pop_back() {
            return Some(job);
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

struct Notifier {
    events: Sender<AppEvent>,
    last: Option<Instant>,
    pending: bool,
}

impl Notifier {
    /// Announces finished highlights if there are any and the interval has passed; otherwise
    /// returns how long to wait. `None` if the application is ending.
    fn notify(&mut self) -> Option<Option<Duration>> {
        if !self.pending {
            return Some(None);
        }
        let pause =
            self.last.map_or(Duration::ZERO, |last| NOTIFY_INTERVAL.saturating_sub(last.elapsed()));
        if !pause.is_zero() {
            return Some(Some(pause));
        }
        self.events.send(AppEvent::Highlighted).ok()?;
        self.pending = false;
        self.last = Some(Instant::now());
        Some(None)
    }
}

#[cfg(test)]
#[path = "highlight_cache_tests.rs"]
mod tests;
