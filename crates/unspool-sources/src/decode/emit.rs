//! The record that a decoder reads, and the events that come out of it.

use jiff::Timestamp;
use unspool_core::event::{Event, Key, What};
use unspool_core::id::digest;
use unspool_core::telling::{Evidence, Name, Telling};

/// One record of a source, with where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Which of the session's files or streams.
    pub source: u16,
    pub line: u64,
    pub offset: u64,
    pub text: &'a str,
}

/// Makes the events of one record. Their keys come from the record alone.
pub struct Emit<'o> {
    telling: Telling,
    evidence: Evidence,
    record: u64,
    nth: u32,
    /// When it happened, by the source's clock.
    pub at: Option<Timestamp>,
    /// The turn that it belongs to, where the source says.
    pub turn: Option<Name>,
    out: &'o mut Vec<Event>,
}

impl<'o> Emit<'o> {
    /// `id` is what the source itself calls the record, if it names its records.
    pub fn new(
        telling: Telling,
        record: &Record<'_>,
        id: Option<&str>,
        out: &'o mut Vec<Event>,
    ) -> Emit<'o> {
        let content = digest(record.text.as_bytes());
        let key = match id {
            Some(id) => digest(id.as_bytes()),
            None => content ^ record.offset.rotate_left(32),
        };
        let length = u32::try_from(record.text.len()).unwrap_or(u32::MAX);
        let evidence = Evidence {
            telling,
            source: record.source,
            offset: record.offset,
            length,
            digest: content,
        };
        Emit { telling, evidence, record: key, nth: 0, at: None, turn: None, out }
    }

    pub fn push(&mut self, what: What) {
        let event = self.event(what);
        self.out.push(event);
    }

    /// An event of this record that is to be kept for later.
    pub fn event(&mut self, what: What) -> Event {
        let key = Key { record: self.record, nth: self.nth };
        self.nth = self.nth.saturating_add(1);
        Event {
            key,
            telling: self.telling,
            at: self.at,
            evidence: self.evidence,
            turn: self.turn.clone(),
            generation: None,
            what,
        }
    }
}
