//! Live updates: what the recorder wrote, for every view. A process has one [`Updates`] channel.
//! Its own recorder publishes to it or, through the change socket, the recorder of another process.
//! Views hold a [`Subscription`].

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize, Serializer};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use unspool_model::change::ChangeSet;
use unspool_model::change::Urgency;
use unspool_model::id::SessionId;

/// A subscriber may lag this many updates before it must reload.
const UPDATE_BACKLOG: usize = 4096;

/// A write to the archive, with its changes or, for views that reload, as a [`WriteNotice`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Update<W = Arc<Written>> {
    Written(W),
    /// Updates were dropped, or another process wrote without publishing: reload.
    Lagged,
}

impl From<ChangeSet> for Update {
    fn from(change_set: ChangeSet) -> Update {
        Update::Written(Arc::new(Written::from(change_set)))
    }
}

impl Update {
    /// The update without its changes.
    pub fn notice(&self) -> Update<WriteNotice> {
        match self {
            Update::Written(written) => Update::Written(WriteNotice {
                session: written.session,
                urgency: written.urgency(),
            }),
            Update::Lagged => Update::Lagged,
        }
    }
}

/// A session that was written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WriteNotice {
    pub session: SessionId,
    pub urgency: Urgency,
}

/// A published change set and its changes as JSON, serialised once for all subscribers.
#[derive(Debug, Deserialize)]
#[serde(from = "ChangeSet")]
pub struct Written {
    change_set: ChangeSet,
    changes_json: OnceLock<Option<String>>,
}

impl From<ChangeSet> for Written {
    fn from(change_set: ChangeSet) -> Written {
        Written { change_set, changes_json: OnceLock::new() }
    }
}

impl Serialize for Written {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.change_set.serialize(serializer)
    }
}

impl Written {
    /// The changes as JSON array elements without the brackets, so that batches can be joined.
    pub fn changes_json(&self) -> Option<&str> {
        let write = || {
            let delta = self.change_set.delta.as_ref()?;
            let text = serde_json::to_string(&delta.changes).ok()?;
            text.strip_prefix('[')?.strip_suffix(']').map(str::to_owned)
        };
        self.changes_json.get_or_init(write).as_deref()
    }
}

impl Deref for Written {
    type Target = ChangeSet;

    fn deref(&self) -> &ChangeSet {
        &self.change_set
    }
}

/// The updates of this process, for any number of subscribers.
#[derive(Clone, Debug)]
pub struct Updates(broadcast::Sender<Update>);

impl Default for Updates {
    fn default() -> Updates {
        Updates(broadcast::channel(UPDATE_BACKLOG).0)
    }
}

impl Updates {
    pub fn publish(&self, update: Update) {
        // Fails only when there is no subscriber.
        let _ = self.0.send(update);
    }

    pub fn subscribe(&self) -> Subscription {
        Subscription(self.0.subscribe())
    }
}

/// The updates from the moment of subscription on. To miss nothing, subscribe before loading. A
/// subscriber that is too slow receives [`Update::Lagged`] in place of what it missed.
#[derive(Debug)]
pub struct Subscription<T = Update>(broadcast::Receiver<T>);

impl From<broadcast::Receiver<ChangeSet>> for Subscription<ChangeSet> {
    /// Subscribes to a recorder of this process directly.
    fn from(published: broadcast::Receiver<ChangeSet>) -> Subscription<ChangeSet> {
        Subscription(published)
    }
}

impl<T: Clone + Into<Update>> Subscription<T> {
    /// The next update. None when the publisher has ended.
    pub async fn next(&mut self) -> Option<Update> {
        received(self.0.recv().await)
    }

    /// Like `next`, for threads.
    pub fn next_blocking(&mut self) -> Option<Update> {
        received(self.0.blocking_recv())
    }

    /// The next update if there is one already.
    pub fn try_next(&mut self) -> Option<Update> {
        match self.0.try_recv() {
            Ok(update) => Some(update.into()),
            Err(TryRecvError::Lagged(_)) => Some(Update::Lagged),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }
}

fn received<T: Into<Update>>(result: Result<T, RecvError>) -> Option<Update> {
    match result {
        Ok(update) => Some(update.into()),
        Err(RecvError::Lagged(_)) => Some(Update::Lagged),
        Err(RecvError::Closed) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change_set(seq: u64) -> ChangeSet {
        ChangeSet {
            session: SessionId::of("codex", "a"),
            agent: "codex".to_owned(),
            agent_session_id: "a".to_owned(),
            from_seq: seq - 1,
            seq,
            delta: None,
        }
    }

    #[test]
    fn a_slow_subscriber_learns_that_it_lagged_and_continues() {
        // R-X-14: a slow subscriber costs bounded memory.
        let updates = Updates::default();
        let mut subscription = updates.subscribe();
        let most = UPDATE_BACKLOG as u64;
        (1..=most + 2).for_each(|seq| updates.publish(change_set(seq).into()));
        assert!(matches!(subscription.try_next(), Some(Update::Lagged)));
        for seq in 3..=most + 2 {
            match subscription.next_blocking() {
                Some(Update::Written(written)) => assert_eq!(written.seq, seq),
                other => panic!("{other:?}"),
            }
        }
        assert!(subscription.try_next().is_none());
        drop(updates);
        assert!(subscription.next_blocking().is_none(), "the publisher has ended");
    }

    #[test]
    fn an_update_without_changes_is_shown_at_once() {
        let update = Update::from(change_set(1));
        let session = SessionId::of("codex", "a");
        let notice = Update::Written(WriteNotice { session, urgency: Urgency::State });
        assert_eq!(update.notice(), notice);
        let line = serde_json::to_string(&update).unwrap();
        let back: Update = serde_json::from_str(&line).unwrap();
        assert_eq!(back.notice(), notice);
    }
}
