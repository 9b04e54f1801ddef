//! `Record`, the input of a decoder, and `Emitter`, which builds its events.

use jiff::Timestamp;
use unspool_model::event::{Event, EventKey, EventKind};
use unspool_model::id::digest;
use unspool_model::provenance::{Evidence, Feed, Name};
use unspool_model::session::TitleOrigin;

use super::injected::begins_injected;

/// One record of a source, with its position.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The number of the source among the session's files and streams.
    pub source: u16,
    pub line: u64,
    pub offset: u64,
    pub text: &'a str,
}

/// Builds the events of one record. Their keys depend on the record alone.
pub struct Emitter<'o> {
    feed: Feed,
    evidence: Evidence,
    record: u64,
    nth: u32,
    /// The time of the event by the source's clock.
    pub at: Option<Timestamp>,
    /// The turn of the event, if the source names it.
    pub turn: Option<Name>,
    /// The generation of the stream, for a source that has several of them (R-003-38).
    pub generation: Option<u32>,
    out: &'o mut Vec<Event>,
}

impl<'o> Emitter<'o> {
    /// `id` is the source's own id of the record, if it has one.
    pub fn new(
        feed: Feed,
        record: &Record<'_>,
        id: Option<&str>,
        out: &'o mut Vec<Event>,
    ) -> Emitter<'o> {
        let content = digest(record.text.as_bytes());
        let key = match id {
            Some(id) => digest(id.as_bytes()),
            None => content ^ record.offset.rotate_left(32),
        };
        let length = u32::try_from(record.text.len()).unwrap_or(u32::MAX);
        let evidence = Evidence {
            feed,
            source: record.source,
            offset: record.offset,
            length,
            digest: content,
        };
        Emitter { feed, evidence, record: key, nth: 0, at: None, turn: None, generation: None, out }
    }

    pub fn push(&mut self, kind: EventKind) {
        // A title that the agent made of what it had put before the first prompt: the prompt itself
        // gives a better one.
        if let EventKind::TitleSet(title) = &kind
            && title.origin != TitleOrigin::Custom
            && begins_injected(&title.text)
        {
            return;
        }
        let event = self.event(kind);
        self.out.push(event);
    }

    /// Builds an event of this record without emitting it, so that it can be emitted later.
    pub fn event(&mut self, kind: EventKind) -> Event {
        let key = EventKey { record: self.record, nth: self.nth };
        self.nth = self.nth.saturating_add(1);
        Event {
            key,
            feed: self.feed,
            at: self.at,
            evidence: self.evidence,
            turn: self.turn.clone(),
            generation: self.generation,
            kind,
        }
    }
}
