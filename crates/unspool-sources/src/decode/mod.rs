//! Decoders: named pieces of input in, events out. A decoder knows its vendor's format and
//! nothing else: it does no I/O and assembles no turns. What it needs to remember of earlier
//! records it keeps itself, so that any record gives the same events however it arrives.

pub mod claude;
mod emit;
mod fields;
mod ledger;

pub use emit::{Emit, Record};
pub use fields::Fields;
pub use ledger::{Fate, Ledger, Warning};

use unspool_core::event::Event;
use unspool_core::telling::Telling;

/// Turns the records of one telling of one session into events.
pub trait Decoder: Send {
    /// Decodes one record. Says what became of it.
    fn decode(&mut self, record: &Record<'_>, fields: &Fields<'_>, out: &mut Vec<Event>) -> Fate;
}

/// A format that we read: one line in the registry makes it known to every command.
pub struct Format {
    /// The agent's name on the command line: `claude-code`.
    pub agent: &'static str,
    pub telling: Telling,
    /// What a person would call it.
    pub name: &'static str,
    /// The session that a record of this format belongs to, or `None` if it is no such record.
    pub recognise: fn(&Fields<'_>) -> Option<Recognised>,
    pub decoder: fn() -> Box<dyn Decoder>,
}

/// What a record says of where it belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recognised {
    /// To the session with this id.
    Session(String),
    /// To this format; the session is not said here.
    Format,
}

/// Every format that we read.
pub static FORMATS: &[Format] = &[claude::LOG, claude::STREAM, claude::HOOKS];

/// The format of a record.
pub fn recognise(fields: &Fields<'_>) -> Option<(&'static Format, Recognised)> {
    FORMATS.iter().find_map(|format| Some((format, (format.recognise)(fields)?)))
}
