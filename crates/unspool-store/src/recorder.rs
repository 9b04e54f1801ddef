//! The recorder: the only writer. It takes events, folds them, writes what they led to together
//! with how far each source was taken, and then tells subscribers. One process records at a time
//! (the engine's lock sees to that); everyone else reads the archive and follows.

use std::sync::Arc;

use tokio::sync::broadcast;
use unspool_core::change::Change;
use unspool_core::event::Event;
use unspool_core::id::SessionId;

use crate::batch::{Pace, Packer};
use crate::blocking::wait;
use crate::contract::{Store, StoreError};
use crate::fold::{Missing, Numbers, SessionFold};

/// What was written of one session, for whoever follows it. The seqs say how many events the
/// session had before and has now: who holds the session as of `from_seq` applies the changes and
/// holds it as of `seq`.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Published {
    pub session: SessionId,
    pub agent: String,
    pub agent_session_id: String,
    pub from_seq: u64,
    pub seq: u64,
    /// None when nobody was listening as they came: load the session anew.
    pub changes: Option<Arc<Vec<Change>>>,
}

/// How many publications a slow subscriber may be behind before it must load the session anew.
const BACKLOG: usize = 1024;

/// Records sessions into a store.
pub struct Recorder<S: Store> {
    store: S,
    numbers: Arc<Numbers>,
    published: broadcast::Sender<Published>,
    deleted: Deleted,
}

/// What to do with sessions that the user deleted.
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
    /// Begins to record. The caller holds the recorder lock.
    pub fn new(store: S) -> Result<Recorder<S>, StoreError> {
        let numbers = Arc::new(Numbers::new(wait(store.next_rows())?));
        let published = broadcast::channel(BACKLOG).0;
        Ok(Recorder { store, numbers, published, deleted: Deleted::StayAway })
    }

    /// The same recorder, with another mind about sessions that were deleted.
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

    /// Follows all that is written from now on. To see a session without a gap: subscribe, load
    /// the session, and pass over what its seq covers.
    pub fn subscribe(&self) -> broadcast::Receiver<Published> {
        self.published.subscribe()
    }

    /// Begins a session that is not stored.
    pub fn begin(&self, agent: &str, agent_session_id: &str) -> SessionFold {
        SessionFold::new(agent, agent_session_id, &self.numbers)
    }

    /// Takes up a session, stored or new. None if the user deleted it.
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

    /// Whether a session may be recorded: the user did not delete it, or wants it back.
    pub fn may_record(&self, id: SessionId) -> Result<bool, StoreError> {
        match self.deleted {
            Deleted::StayAway => Ok(!wait(self.store.is_deleted(id))?),
            Deleted::ComeBack => wait(self.store.undelete(id)).map(|_| true),
        }
    }

    /// Takes one event into a session.
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

    /// Writes what a packer gathered, and tells subscribers.
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

    /// Tells subscribers what was written of a session.
    pub fn publish(&self, fold: &mut SessionFold) {
        // What is not written is not told: neither events that changed nothing, for who took their
        // seq would be ahead of the archive, nor those of a session that is not in this batch.
        if fold.written < fold.seq {
            return;
        }
        let changes = std::mem::take(&mut fold.changes);
        let from_seq = std::mem::replace(&mut fold.published, fold.seq);
        let listened = self.published.receiver_count() > 0;
        let kept = std::mem::replace(&mut fold.listened, listened);
        if listened && from_seq < fold.seq {
            let session = fold.mirror.session();
            // Nobody listens any more: nothing is lost, it is written.
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
