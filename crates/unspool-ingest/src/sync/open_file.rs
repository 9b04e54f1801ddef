//! The file that a worker is reading: the sessions it feeds and the outcome of its records. The
//! decoder calls the sink implementation here; the results go into the worker's batch.

use std::path::PathBuf;

use jiff::Timestamp;
use unspool_model::event::EventKind;
use unspool_sources::decode::{RecordCounts, Warning};
use unspool_sources::file_decoder::{DecodedRecord, RecordSink, SessionHandle, SessionIdent};
use unspool_store::rows::{RowId, SourceRow, WarningRow};
use unspool_store::store::{Store, StoreError};

use crate::recorder::batch::Packer;
use crate::recorder::session_writer::SessionWriter;
use crate::sync::file_state::file_by_row;
use crate::sync::received::ReceivedFile;
use crate::sync::worker::Worker;

/// Where the text of an open file is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    File(PathBuf),
    /// In the archive: another machine sent it.
    Received(ReceivedFile),
    /// Input that is not a file and can be read once.
    Stream,
}

pub(crate) struct OpenFile {
    pub row: RowId,
    pub name: String,
    pub origin: Origin,
    /// The file was replaced since the last read, so it counts as a new source.
    pub replaced: bool,
    /// Indexed by handle; None for a session that the user deleted.
    pub ident: Vec<Option<OpenFeed>>,
    /// Written in the same batch as the sessions they refer to.
    pub warnings: Vec<(Option<SessionHandle>, Warning)>,
}

/// This file's feed of one session: the session's writer and this file's record counts.
pub(crate) struct OpenFeed {
    pub writer: SessionWriter,
    /// Index into `session_writer.sources`.
    source: usize,
    record_counts: RecordCounts,
    /// Records that earlier reads already counted.
    before: u64,
    /// The latest time of the events that this read gave.
    pub latest: Option<Timestamp>,
    /// This read gave the start of a turn.
    pub has_turns: bool,
    pub changed: bool,
}

impl OpenFeed {
    pub fn new(writer: SessionWriter) -> OpenFeed {
        OpenFeed {
            writer,
            source: 0,
            record_counts: RecordCounts::default(),
            before: 0,
            latest: None,
            has_turns: false,
            changed: false,
        }
    }

    /// Resumes the record counts of this file's source. False if the source is not stored.
    pub fn resume_counts(&mut self, file: RowId, number: u16) -> bool {
        let mut sources = self.writer.sources().iter();
        let found = sources.position(|source| source.file == file && source.number == number);
        let Some(at) = found.filter(|_| self.writer.is_stored()) else { return false };
        self.source = at;
        self.record_counts = self.writer.sources()[at].records.clone();
        self.before = self.record_counts.read;
        true
    }

    pub fn records_read(&self) -> u64 {
        self.record_counts.read - self.before
    }

    fn add_to(&mut self, packer: &mut Packer) -> Result<(), StoreError> {
        if self.writer.sources().get(self.source).is_none() {
            return Ok(());
        }
        let counted = self.writer.set_records(self.source, &self.record_counts);
        let dirty = self.writer.is_dirty();
        if dirty || counted || !self.writer.is_stored() {
            packer.add(&mut self.writer)?;
        }
        self.changed |= dirty;
        Ok(())
    }
}

impl OpenFile {
    /// Adds the accumulated changes and warnings to a batch.
    pub fn add_to(&mut self, packer: &mut Packer) -> Result<(), StoreError> {
        for feed in self.ident.iter_mut().flatten() {
            feed.add_to(packer)?;
        }
        for (handle, warning) in self.warnings.drain(..) {
            let feed = handle.and_then(|handle| self.ident.get(handle.0)).and_then(Option::as_ref);
            packer.batch().warnings.push(WarningRow {
                file: self.row,
                session: feed.map(|feed| feed.writer.row),
                line: warning.line,
                what: warning.what,
                bytes: warning.bytes,
            });
        }
        Ok(())
    }
}

impl<S: Store> RecordSink for Worker<'_, S> {
    fn source(&mut self, _: SessionHandle, ident: &SessionIdent<'_>) -> u16 {
        let feed = match self.open(ident) {
            Ok(feed) => feed,
            Err(stop) => {
                self.stop.get_or_insert(stop);
                None
            }
        };
        let Some(mut feed) = feed else {
            self.push_feed(None);
            return 0;
        };
        let number = self.number(&mut feed, ident);
        self.push_feed(Some(feed));
        number
    }

    fn record(&mut self, taken: DecodedRecord<'_>) {
        let DecodedRecord { session, outcome, events, .. } = taken;
        if self.stop.is_some() {
            return;
        }
        let recorder = self.shared.recorder;
        let Some(current) = &mut self.current else { return };
        let Some(Some(feed)) = current.ident.get_mut(session.0) else { return };
        feed.record_counts.add(&outcome);
        for event in events.drain(..) {
            feed.latest = feed.latest.max(event.at);
            feed.has_turns |= matches!(event.kind, EventKind::TurnStarted { .. });
            if let Err(error) = recorder.take(&mut feed.writer, event) {
                self.stop = Some(error.into());
                return;
            }
        }
    }

    fn warn(&mut self, session: Option<SessionHandle>, warning: Warning) {
        self.shared.tally.warn(warning.clone());
        if let Some(current) = &mut self.current {
            current.warnings.push((session, warning));
        }
    }
}

impl<S: Store> Worker<'_, S> {
    /// The source number of this file in a session: its previous number, or that of the log it is a
    /// copy of, or the next free one.
    fn number(&self, feed: &mut OpenFeed, ident: &SessionIdent<'_>) -> u16 {
        let Some(current) = &self.current else { return 0 };
        let sources = feed.writer.sources();
        let mine = sources.iter().rposition(|source| {
            source.file == current.row
                && source.feed == ident.feed
                && !current.replaced
                // Two streams may have one name: compare the first record instead.
                && (current.origin != Origin::Stream || source.first == ident.first)
        });
        if let Some(at) = mine {
            let number = sources[at].number;
            feed.source = at;
            return number;
        }
        let copied = sources.iter().find(|source| {
            source.feed == unspool_model::provenance::Feed::Log
                && ident.feed == source.feed
                && source.first == ident.first
                && source.file != current.row
                // A file read in this sync has no row yet: the first record must suffice.
                && file_by_row(self.shared.stored, source.file)
                    .is_none_or(|file| self.is_copy(&current.origin, file))
        });
        let next = sources.iter().map(|source| source.number + 1).max().unwrap_or(0);
        let number = copied.map_or(next, |source| source.number);
        feed.source = feed.writer.add_source(SourceRow {
            file: current.row,
            number,
            feed: ident.feed,
            first: ident.first,
            sub_agent: ident.sub_agent,
            records: RecordCounts::default(),
        });
        number
    }
}
