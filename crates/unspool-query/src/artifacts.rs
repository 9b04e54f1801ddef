//! Writes the ThoughtFlow and D2 files of a session once it becomes idle, beside the archive. Every
//! process that records or shows sessions live does that; the files are the same and are replaced
//! atomically, so several processes do not disturb each other. Only sessions with recent activity
//! are written; the server makes the files of any other session on request.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use rustc_hash::FxHashMap;
use unspool_export::export;
use unspool_export::project::{Options, Projection};
use unspool_model::id::SessionId;
use unspool_model::price::Prices;
use unspool_redact::Rules;
use unspool_store::blocking::block_on;
use unspool_store::private_file;
use unspool_store::replace_file::FileReplacement;
use unspool_store::store::{SessionFilter, StoredSession, View};

use crate::live::{Subscription, Update};

/// A session without updates for this long is idle, unless a turn is running.
const QUIET_PERIOD: Duration = Duration::from_millis(700);
/// Sessions that ended longer ago were imported, not observed live: no artifacts.
const MAX_AGE: SignedDuration = SignedDuration::from_mins(2);
/// Projection names and file extensions.
const FORMS: [(&str, &str); 2] = [("thoughtflow", "json"), ("d2", "d2")];

/// What happened to the artifacts of a session.
#[derive(Debug)]
pub enum ArtifactEvent {
    /// They are written, and differ from those that were reported before.
    Written(SessionId),
    Failed(SessionId, io::Error),
}

/// Writes artifacts into a folder, redacted.
pub struct ArtifactWriter<V> {
    pub view: V,
    pub prices: Prices,
    pub rules: Rules,
    pub folder: PathBuf,
}

impl<V: View> ArtifactWriter<V> {
    /// Runs on a thread of its own until the publisher of the updates ends. `notify` is called from
    /// that thread.
    pub fn spawn<T: Clone + Into<Update> + Send + 'static>(
        self,
        updates: Subscription<T>,
        notify: impl Fn(ArtifactEvent) + Send + 'static,
    ) {
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            // Without a timer there are no artifacts; everything else works.
            if let Ok(runtime) = runtime {
                runtime.block_on(self.run(updates, notify));
            }
        });
    }

    async fn run<T: Clone + Into<Update>>(
        self,
        mut updates: Subscription<T>,
        notify: impl Fn(ArtifactEvent),
    ) {
        let mut waiting = QuietSessions::default();
        let mut reported: FxHashMap<SessionId, u64> = FxHashMap::default();
        // Sessions may have come to rest before the subscription: while a first sync ran.
        for session in self.heard_lately().await {
            waiting.note(session, Instant::now());
        }
        loop {
            let message = match waiting.next_due() {
                None => Some(updates.next().await),
                Some(due) => tokio::time::timeout_at(due.into(), updates.next()).await.ok(),
            };
            match message {
                Some(Some(Update::Written(written))) => {
                    waiting.note(written.session, Instant::now());
                }
                Some(Some(Update::Lagged)) => {}
                Some(None) => return,
                None => {}
            }
            // Also after an update: beside a busy session there may always be another one.
            for session in waiting.take_due(Instant::now()) {
                match self.write(session) {
                    Ok(Some(digest)) if reported.insert(session, digest) != Some(digest) => {
                        notify(ArtifactEvent::Written(session));
                    }
                    Ok(_) => {}
                    Err(error) => notify(ArtifactEvent::Failed(session, error)),
                }
            }
        }
    }

    async fn heard_lately(&self) -> Vec<SessionId> {
        let since = (Timestamp::now() - MAX_AGE).as_millisecond();
        let recent = SessionFilter { since: Some(since), ..SessionFilter::default() };
        let found = self.view.sessions(recent).await.unwrap_or_default();
        found.into_iter().map(|stored| stored.summary.session.id).collect()
    }

    /// Writes the artifacts of an idle session and returns a digest of them. None if it is not idle,
    /// or not live. Idempotent (R-002-28).
    fn write(&self, session: SessionId) -> io::Result<Option<u64>> {
        let found = block_on(self.view.session(session)).map_err(io::Error::other)?;
        let Some(stored) = found else { return Ok(None) };
        let lately = |last: Timestamp| Timestamp::now().duration_since(last) < MAX_AGE;
        if stored.summary.is_running() || !stored.summary.last_heard().is_some_and(lately) {
            return Ok(None);
        }
        private_file::folders().recursive(true).create(&self.folder)?;
        let mut digest = DefaultHasher::new();
        for (form, extension) in FORMS {
            let path = self.folder.join(format!("{session}.{extension}"));
            self.write_form(&stored, form, &path, &mut digest)?;
        }
        Ok(Some(digest.finish()))
    }

    /// Writes one projection atomically, unless the file has the same content.
    fn write_form(
        &self,
        stored: &StoredSession,
        form: &str,
        path: &Path,
        digest: &mut DefaultHasher,
    ) -> io::Result<()> {
        let Some(projection) = Projection::named(form) else { return Ok(()) };
        let options = Options { prices: self.prices.clone(), ..Options::default() };
        let mut out = DigestWriter { file: FileReplacement::begin(path)?, digest };
        export::write(&self.view, stored, projection, &options, Some(&self.rules), &mut out)
            .map_err(io::Error::other)?;
        let mut file = out.file;
        if file.changes_nothing()? { Ok(()) } else { file.commit() }
    }
}

/// Computes a digest of what is written.
struct DigestWriter<'d> {
    file: FileReplacement,
    digest: &'d mut DefaultHasher,
}

impl Write for DigestWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.file.write(bytes)?;
        self.digest.write(bytes.get(..length).unwrap_or_default());
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Sessions with recent updates. Each has its own quiet period: a busy session must not delay the
/// artifacts of another.
#[derive(Default)]
struct QuietSessions {
    due: FxHashMap<SessionId, Instant>,
    queue: BTreeSet<(Instant, SessionId)>,
}

impl QuietSessions {
    /// Begins the quiet period of a session anew.
    fn note(&mut self, session: SessionId, now: Instant) {
        let due = now + QUIET_PERIOD;
        if let Some(before) = self.due.insert(session, due) {
            self.queue.remove(&(before, session));
        }
        self.queue.insert((due, session));
    }

    fn next_due(&self) -> Option<Instant> {
        self.queue.first().map(|(due, _)| *due)
    }

    /// Removes the sessions whose quiet period is over.
    fn take_due(&mut self, now: Instant) -> Vec<SessionId> {
        let mut quiet = Vec::new();
        while self.next_due().is_some_and(|due| due <= now) {
            let Some((_, session)) = self.queue.pop_first() else { break };
            self.due.remove(&session);
            quiet.push(session);
        }
        quiet
    }
}

#[cfg(test)]
#[path = "artifacts_tests.rs"]
mod tests;
