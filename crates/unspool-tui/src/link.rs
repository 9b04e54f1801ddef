//! The source of the application's sessions: the archive of this machine or a remote server. Both
//! take queries, respond asynchronously, and send an event for every write to the archive.

mod local;
mod remote;

use std::sync::mpsc::Sender;

use unspool_core::id::SessionId;
use unspool_engine::reader::{Query, Response};
use unspool_engine::request::Request;

pub use local::{Changer, Local};
pub use remote::{Remote, RemoteError, Secrets};
pub use unspool_engine::reader::Urgency;

/// The id of a query, repeated in its response.
pub type Number = u64;

/// An event from the backend.
#[derive(Debug)]
pub enum Told {
    Answered(Number, Response),
    /// Something was written into this session.
    Written {
        session: SessionId,
        urgency: Urgency,
    },
    /// Updates were lost, or another process wrote without publishing: reload.
    Lagged,
    /// The connection is established, possibly again.
    Connected,
    /// The connection failed for this reason. The backend is reconnecting.
    Lost(String),
    /// The outcome of a change: a message for the status line, or an error.
    Done(Result<String, String>),
}

/// Access to sessions, local or remote.
pub trait Link: Send {
    /// Sends a query. The response arrives as [`Told::Answered`]. If the connection is lost it
    /// never arrives; after [`Told::Connected`] the query can be sent again.
    fn ask(&self, number: Number, wish: Query);

    /// Requests a change. Its outcome arrives as [`Told::Done`].
    fn change(&self, request: Request);

    /// The name in the status line. `None` for this machine's own archive.
    fn name(&self) -> Option<&str>;
}

/// Where a backend sends its events. A closed channel means that the application is ending.
pub type Ear = Sender<crate::event::Event>;
