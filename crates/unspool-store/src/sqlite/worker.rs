//! A thread that owns a connection. Work is done in the order in which it was sent.

use std::sync::{Arc, mpsc};
use std::thread;

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::contract::StoreError;

type Work = Box<dyn FnOnce(&mut Connection) + Send>;

/// Ends when the last handle to it is gone and all its work is done.
#[derive(Clone)]
pub(super) struct Worker {
    // Dropped before `thread`, which waits until no work can come any more.
    work: mpsc::Sender<Work>,
    _thread: Arc<Joined>,
}

struct Joined(Option<thread::JoinHandle<()>>);

impl Worker {
    pub fn start(mut connection: Connection) -> Result<Worker, StoreError> {
        let (work, todo) = mpsc::channel::<Work>();
        let thread = thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || {
                while let Ok(work) = todo.recv() {
                    work(&mut connection);
                }
                // The last to close brings the write-ahead log home. Where the file is mapped, it
                // is made longer first and filled then; on a full disk that leaves holes in it.
                let _ = connection.pragma_update(None, "mmap_size", 0);
            })
            .map_err(|_| StoreError::Gone)?;
        Ok(Worker { work, _thread: Arc::new(Joined(Some(thread))) })
    }

    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let work = Box::new(move |connection: &mut Connection| {
            // Whoever asked may be gone; the work is done all the same.
            let _ = answer.send(work(connection));
        });
        self.work.send(work).map_err(|_| StoreError::Gone)?;
        answered.await.map_err(|_| StoreError::Gone)
    }
}

impl Drop for Joined {
    /// The process must not end before what was sent is written.
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}
