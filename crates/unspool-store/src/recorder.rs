//! The recorder: the only writer. It applies events, writes the resulting rows and the source
//! cursors in one transaction, and then publishes the changes to subscribers. One process records
//! at a time (the engine holds a lock); all others read the archive and subscribe.

use std::sync::Arc;

use tokio::sync::broadcast;
use unspool_core::change::Change;
use unspool_core::event::Event;
use unspool_core::id::SessionId;

use crate::batch::{Pace, Packer};
use crate::blocking::wait;
use crate::contract::{Store, StoreError};
use crate::fold::{Missing, Numbers, SessionFold};

/// The committed changes of one session, for subscribers. Seqs count the session's events: applying
/// `changes` to the session as of `from_seq` gives the session as of `seq`.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Published {
    pub session: SessionId,
    pub agent: String,
    pub agent_session_id: String,
    pub from_seq: u64,
    pub seq: u64,
    /// None if there was no subscriber when the events were applied: reload the session.
    pub changes: Option<Arc<Vec<Change>>>,
}

/// How many change sets a slow subscriber may lag before it must reload the session.
const BACKLOG: usize = 1024;

/// Records sessions into a store.
pub struct Recorder<S: Store> {
    store: S,
    numbers: Arc<Numbers>,
    published: broadcast::Sender<Published>,
    deleted: Deleted,
}

/// How to treat sessions that the user deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Deleted {
    #[default]
    StayAway,
    ComeBack,
}

impl<S: Store> Clone for Recorder<S> {
    fn clone(&self) -> Recorder<S> {
        Recorder {
            store: self.store.clone(),
            numbers: self.numbers.clone(),
            published: self.published.clone(),
            deleted: self.deleted,
        }
    }
}

impl<S: Store> Recorder<S> {
    /// Starts recording. The caller must hold the recorder lock.
    pub fn new(store: S) -> Result<Recorder<S>, StoreError> {
        let numbers = Arc::new(Numbers::new(wait(store.next_rows())?));
        let published = broadcast::channel(BACKLOG).0;
        Ok(Recorder { store, numbers, published, deleted: Deleted::StayAway })
    }

    /// The same recorder with another policy for deleted sessions.
    pub fn with_deleted(self, deleted: Deleted) -> Recorder<S> {
        Recorder { deleted, ..self }
    }

    pub fn store(&self) -> &S {
        &self.store
    }

    pub fn numbers(&self) -> &Arc<Numbers> {
        &self.numbers
    }

    pub fn packer(&self, pace: Pace) -> Result<Packer, StoreError> {
        Ok(Packer::new(&self.numbers, pace)?)
    }

    /// Subscribes to all later commits. To follow a session without a gap: subscribe, load the
    /// session, then skip change sets up to its seq.
    pub fn subscribe(&self) -> broadcast::Receiver<Published> {
        self.published.subscribe()
    }

    /// Starts a session that is not stored.
    pub fn begin(&self, agent: &str, agent_session_id: &str) -> SessionFold {
        SessionFold::new(agent, agent_session_id, &self.numbers)
    }

    /// Resumes a stored session or starts a new one. None if the user deleted it.
    pub fn open(
        &self,
        agent: &str,
        agent_session_id: &str,
    ) -> Result<Option<SessionFold>, StoreError> {
        let id = SessionId::of(agent, agent_session_id);
        if !self.may_record(id)? {
            return Ok(None);
        }
        let mut fold = match wait(self.store.outline(id))? {
            None => SessionFold::new(agent, agent_session_id, &self.numbers),
            Some(outline) => {
                let unsettled = outline.unsettled.clone();
                let mut fold = SessionFold::resume(outline, &self.numbers);
                for turn in unsettled {
                    if let Some(stored) = wait(self.store.turn(fold.row, turn))? {
                        fold.take_unsettled(stored);
                    }
                }
                fold
            }
        };
        fold.listened = self.published.receiver_count() > 0;
        fold.published = fold.seq;
        fold.written = fold.seq;
        Ok(Some(fold))
    }

    /// True if a session may be recorded: the user did not delete it, or restores it.
    pub fn may_record(&self, id: SessionId) -> Result<bool, StoreError> {
        match self.deleted {
            Deleted::StayAway => Ok(!wait(self.store.is_deleted(id))?),
            Deleted::ComeBack => wait(self.store.undelete(id)).map(|_| true),
        }
    }

    /// Applies one event to a session, loading turns and parts from the store as needed.
    pub fn take(&self, fold: &mut SessionFold, event: Event) -> Result<(), StoreError> {
        for turn in fold.needs(&event) {
            if let Some(stored) = wait(self.store.turn(fold.row, turn))? {
                fold.take_turn(stored);
            }
        }
        for change in fold.apply(event) {
            for missing in fold.missing(&change) {
                match missing {
                    Missing::Turn(turn) => {
                        if let Some(stored) = wait(self.store.turn(fold.row, turn))? {
                            fold.take_rows(stored);
                        }
                    }
                    Missing::Part { row, .. } => {
                        if let Some(part) = wait(self.store.part(row))? {
                            fold.take_part(part);
                        }
                    }
                }
            }
            fold.take(change);
        }
        Ok(())
    }

    /// Writes the packer's batch, then publishes the changes.
    pub fn commit<'f>(
        &self,
        packer: &mut Packer,
        folds: impl IntoIterator<Item = &'f mut SessionFold>,
    ) -> Result<(), StoreError> {
        let batch = packer.finish()?;
        if batch.is_empty() {
            return Ok(());
        }
        wait(self.store.write(batch)).inspect_err(|_| packer.forget_contents())?;
        for fold in folds {
            self.publish(fold);
        }
        Ok(())
    }

    /// Publishes the written changes of a session.
    pub fn publish(&self, fold: &mut SessionFold) {
        // Publish only what is written. Skip events that changed nothing, whose seq would put
        // subscribers ahead of the archive, and sessions that are not in this batch.
        if fold.written < fold.seq {
            return;
        }
        let changes = std::mem::take(&mut fold.changes);
        let from_seq = std::mem::replace(&mut fold.published, fold.seq);
        let listened = self.published.receiver_count() > 0;
        let kept = std::mem::replace(&mut fold.listened, listened);
        if listened && from_seq < fold.seq {
            let session = fold.mirror.session();
            // An error means that no subscriber is left. Nothing is lost: the batch is written.
            let _ = self.published.send(Published {
                session: fold.id,
                agent: session.agent.clone(),
                agent_session_id: session.agent_session_id.clone(),
                from_seq,
                seq: fold.seq,
                changes: kept.then(|| Arc::new(changes)),
            });
        }
    }
}
