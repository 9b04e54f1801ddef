//! Bounds the memory of large responses. A turn may have any size and a client may stop reading, so
//! few large responses exist at once, and a client that reads too slowly is disconnected.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// So many responses with parts are built at once, and so many large ones wait for their clients.
const MAX_RESPONSES: usize = 4;
/// A smaller response waits for its client without holding up others.
const SMALL_BYTES: usize = 1024 * 1024;
/// A client must take this much per second, after a delay for which it may pause.
const MIN_BYTES_PER_SECOND: usize = 64 * 1024;
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The responses that may exist at once.
#[derive(Clone)]
pub struct LargeResponses(Arc<Semaphore>);

/// The right to build one response and to keep it until it is sent.
pub struct ResponsePermit(#[expect(dead_code, reason = "held")] Option<OwnedSemaphorePermit>);

impl Default for LargeResponses {
    fn default() -> LargeResponses {
        LargeResponses(Arc::new(Semaphore::new(MAX_RESPONSES)))
    }
}

impl LargeResponses {
    /// Waits until another response may be built.
    pub async fn acquire(&self) -> ResponsePermit {
        // Fails only if the semaphore was closed, which nobody does.
        ResponsePermit(self.0.clone().acquire_owned().await.ok())
    }
}

impl ResponsePermit {
    /// The permit, if a response of this size needs it while it is sent.
    pub fn for_sending(self, bytes: usize) -> Option<ResponsePermit> {
        (bytes > SMALL_BYTES).then_some(self)
    }
}

/// How long a client may take for so many bytes.
pub fn send_limit(bytes: usize) -> Duration {
    MAX_PAUSE + Duration::from_secs((bytes / MIN_BYTES_PER_SECOND) as u64)
}
