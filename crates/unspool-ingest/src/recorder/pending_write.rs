//! A write that is under way. The recorder reads on while the writer thread writes a batch of a long
//! file; whoever reads from the archive what the batch may hold waits for it first.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use unspool_model::change::ChangeSet;
use unspool_store::blocking::block_on;
use unspool_store::store::StoreError;

type Writing = Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>;

/// A handle. The sessions of the batch share it with the worker that began the write.
#[derive(Clone)]
pub(crate) struct PendingWrite(Arc<Mutex<State>>);

enum State {
    Running(Writing),
    /// None after the result was taken.
    Done(Option<Result<(), StoreError>>),
}

impl PendingWrite {
    /// Begins a write.
    pub fn begin(write: impl Future<Output = Result<(), StoreError>> + Send + 'static) -> Self {
        let mut write: Writing = Box::pin(write);
        // The first poll sends the batch to the writer thread.
        let state = match write.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => State::Running(write),
            Poll::Ready(result) => State::Done(Some(result)),
        };
        PendingWrite(Arc::new(Mutex::new(state)))
    }

    /// Waits until it is written, or has failed.
    pub fn wait(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Running(write) = &mut *state {
            *state = State::Done(Some(block_on(write)));
        }
    }

    /// Waits for it. A failure is returned once.
    fn result(&self) -> Result<(), StoreError> {
        self.wait();
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Done(result) => result.take().unwrap_or(Ok(())),
            State::Running(_) => Ok(()),
        }
    }
}

/// A batch that is being written, and what to publish once it is.
pub(crate) struct PendingCommit {
    pub write: PendingWrite,
    pub changes: Vec<ChangeSet>,
}

impl PendingCommit {
    /// Waits for the write and returns what to publish.
    pub fn finish(self) -> Result<Vec<ChangeSet>, StoreError> {
        self.write.result().map(|()| self.changes)
    }
}
