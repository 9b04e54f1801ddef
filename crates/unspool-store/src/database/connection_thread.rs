//! A thread that owns a connection and runs closures on it, in the order sent.

use std::sync::{Arc, mpsc};
use std::thread;

use tokio::sync::oneshot;

use crate::sql::Connection;
use crate::store::{StoreError, StoreErrorKind};

type Work = Box<dyn FnOnce(&mut Connection) + Send>;

/// A handle. The thread ends after its last handle is dropped and all work is done.
#[derive(Clone)]
pub(super) struct ConnectionThread {
    // Field order matters: dropping the sender first lets the thread end, then `_thread` joins it.
    work: mpsc::Sender<Work>,
    _thread: Arc<JoinOnDrop>,
}

struct JoinOnDrop(Option<thread::JoinHandle<()>>);

impl ConnectionThread {
    pub fn start(mut connection: Connection) -> Result<ConnectionThread, StoreError> {
        let (work, receiver) = mpsc::channel::<Work>();
        let thread = thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || {
                while let Ok(work) = receiver.recv() {
                    work(&mut connection);
                }
                // Closing the last connection checkpoints the WAL. With mmap, SQLite extends the
                // file before it writes the pages; on a full disk that leaves holes in it.
                if let Some(connection) = connection.as_sqlite() {
                    let _ = connection.pragma_update(None, "mmap_size", 0);
                }
            })
            .map_err(|_| StoreError::new(StoreErrorKind::Closed))?;
        Ok(ConnectionThread { work, _thread: Arc::new(JoinOnDrop(Some(thread))) })
    }

    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, response) = oneshot::channel();
        let work = Box::new(move |connection: &mut Connection| {
            if let Connection::Postgres(connection) = connection {
                // If it fails, so does the work, which says why.
                let _ = connection.reopen_if_closed();
            }
            // The caller may have dropped its future; the work is done anyway.
            let _ = reply.send(work(connection));
        });
        self.work.send(work).map_err(|_| StoreError::new(StoreErrorKind::Closed))?;
        response.await.map_err(|_| StoreError::new(StoreErrorKind::Closed))
    }
}

impl Drop for JoinOnDrop {
    /// Waits until all sent work is written, so the process cannot end before.
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}
