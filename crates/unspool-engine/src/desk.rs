//! The desk: where whoever watches takes requests between two looks at the files, so that nobody
//! else folds a session while one is being written.

use std::sync::mpsc::Sender;

use crate::request::{Done, Request, RequestError};

/// A request, and where its answer goes.
pub struct Asked {
    pub request: Request,
    pub answer: Sender<Result<Done, RequestError>>,
}

/// What wakes the one who watches.
pub(crate) enum Call {
    Told(notify::Result<notify::Event>),
    Asked(Asked),
}

/// Where requests are handed in.
#[derive(Clone)]
pub struct Desk(pub(crate) Sender<Call>);

impl Desk {
    pub fn hand_in(&self, asked: Asked) {
        // If nobody is there any more, the answer's channel closes, and that is the answer.
        let _ = self.0.send(Call::Asked(asked));
    }
}
