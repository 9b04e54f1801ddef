//! The source of the application's sessions: the archive of this machine or a remote server. Both
//! take queries, respond asynchronously, and send an event for every write to the archive.

mod local;
mod remote;

use std::sync::mpsc::Sender;

use unspool_query::live::{Update, WriteNotice};
use unspool_query::reader::{Query, Response};
use unspool_query::request::Request;

pub use local::LocalBackend;
pub use remote::{Credentials, RemoteBackend, RemoteError};

/// The id of a query, repeated in its response.
pub type QueryId = u64;

/// An event from the backend.
#[derive(Debug)]
pub enum BackendEvent {
    Response(QueryId, Response),
    /// The archive was written to.
    Update(Update<WriteNotice>),
    /// The connection is established, possibly again.
    Connected,
    /// The connection failed for this reason. The backend is reconnecting.
    Lost(String),
    /// The outcome of a change: a message for the status line, or an error.
    ChangeDone(Result<String, String>),
    /// What was on this machine when the application began is read.
    Synced,
}

/// Access to sessions, local or remote.
pub trait Backend: Send {
    /// Sends a query. The response arrives as [`BackendEvent::Response`]. If the connection is lost
    /// it never arrives; after [`BackendEvent::Connected`] the query can be sent again.
    fn send_query(&self, number: QueryId, query: Query);

    /// Requests a change. Its outcome arrives as [`BackendEvent::ChangeDone`].
    fn change(&self, request: Request);

    /// The name in the status line. `None` for this machine's own archive.
    fn name(&self) -> Option<&str>;
}

/// Where a backend sends its events. A closed channel means that the application is ending.
pub type EventSender = Sender<crate::event::AppEvent>;
