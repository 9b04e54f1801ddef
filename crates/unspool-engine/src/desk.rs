//! The queue of write requests. The watch loop takes a request between two scans, so no worker is
//! writing a session while the request is carried out.

use std::sync::mpsc::Sender;

use crate::request::{Done, Request, RequestError};

/// A request and the channel for its result.
pub struct Asked {
    pub request: Request,
    pub answer: Sender<Result<Done, RequestError>>,
}

/// Wakes the watch loop.
pub(crate) enum Call {
    Told(notify::Result<notify::Event>),
    Asked(Asked),
}

/// The sending end of the queue.
#[derive(Clone)]
pub struct Desk(pub(crate) Sender<Call>);

impl Desk {
    pub fn hand_in(&self, asked: Asked) {
        // If the watch loop has ended, the reply channel closes, and the caller sees that.
        let _ = self.0.send(Call::Asked(asked));
    }
}
