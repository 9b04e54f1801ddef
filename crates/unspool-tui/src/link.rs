//! Where the application's sessions come from: an archive on this machine, or a server elsewhere.
//! Either is asked with wishes and answers in its own time; what is written meanwhile is told too.

mod local;
mod remote;

use std::sync::mpsc::Sender;

use unspool_core::id::SessionId;
use unspool_engine::reader::{Answer, Wish};
use unspool_engine::request::Request;

pub use local::{Changer, Local};
pub use remote::{Remote, RemoteError, Secrets};
pub use unspool_engine::reader::Growth;

/// A wish by its number, so that an answer finds who asked.
pub type Number = u64;

/// What comes from the other side.
#[derive(Debug)]
pub enum Told {
    Answered(Number, Answer),
    /// Something was written into this session.
    Written {
        session: SessionId,
        growth: Growth,
    },
    /// Something was left out, or written by somebody who does not tell: look again.
    Missed,
    /// The connection stands (again).
    Connected,
    /// It is gone, and is being tried again; this is why.
    Lost(String),
    /// Something that was to be changed is, or is not.
    Done(Result<String, String>),
}

/// The other side.
pub trait Link: Send {
    /// Asks for something. The answer comes with [`Told::Answered`], or never, where the
    /// connection is lost: then [`Told::Connected`] says that it can be asked again.
    fn ask(&self, number: Number, wish: Wish);

    /// Wants something changed. [`Told::Done`] says how it went.
    fn change(&self, request: Request);

    /// What it is called in the status line; nothing for this machine's own archive.
    fn name(&self) -> Option<&str>;
}

/// Where a link tells. It may be closed: then the application is ending.
pub type Ear = Sender<crate::event::Event>;
