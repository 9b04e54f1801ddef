//! The queue of write requests. The watch loop takes a request between two scans, so no worker is
//! writing a session while the request is carried out.

use std::sync::mpsc::Sender;

use unspool_query::request::Request;

use crate::service::request::{RequestError, RequestOutcome};

/// A request and the channel for its result.
pub struct QueuedRequest {
    pub request: Request,
    pub reply: Sender<Result<RequestOutcome, RequestError>>,
}

/// Wakes the watch loop.
pub(crate) enum Wakeup {
    FileEvent(notify::Result<notify::Event>),
    QueuedRequest(QueuedRequest),
}

/// The sending end of the queue.
#[derive(Clone)]
pub struct RequestQueue(pub(crate) Sender<Wakeup>);

impl RequestQueue {
    pub fn submit(&self, queued: QueuedRequest) {
        // If the watch loop has ended, the reply channel closes, and the caller sees that.
        let _ = self.0.send(Wakeup::QueuedRequest(queued));
    }
}
