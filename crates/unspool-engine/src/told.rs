//! The file that a worker is reading: the sessions it feeds and the outcome of its records. The
//! decoder calls the sink implementation here; the results go into the worker's batch.

use std::path::PathBuf;

use unspool_sources::decode::{RecordCounts, Warning};
use unspool_sources::file_decoder::{DecodedRecord, RecordSink, SessionHandle, SessionIdent};
use unspool_store::batch::Packer;
use unspool_store::rows::{RowId, SourceRow, StoredRecordCounts, WarningRow};
use unspool_store::session_writer::SessionWriter;
use unspool_store::store::{Store, StoreError};

use crate::known::{is_copy, path_of};
use crate::take::Taker;

pub(crate) struct Current {
    pub row: RowId,
    pub name: String,
    /// None for input that is not a file.
    pub path: Option<PathBuf>,
    /// The file was replaced since the last read, so it counts as a new source.
    pub renewed: bool,
    /// Indexed by handle; None for a session that the user deleted.
    pub told: Vec<Option<Telling>>,
    /// Written in the same batch as the sessions they refer to.
    pub warnings: Vec<(Option<SessionHandle>, Warning)>,
}

/// This file's feed of one session: the session's writer and this file's record counts.
pub(crate) struct Telling {
    pub fold: SessionWriter,
    /// Index into `session_writer.sources`.
    source: usize,
    record_counts: RecordCounts,
    /// Records that earlier reads already counted.
    before: u64,
    pub changed: bool,
}

impl Telling {
    pub fn new(fold: SessionWriter) -> Telling {
        Telling {
            fold,
            source: 0,
            record_counts: RecordCounts::default(),
            before: 0,
            changed: false,
        }
    }

    /// Resumes the record counts of this file's source. False if the source is not stored.
    pub fn go_on(&mut self, file: RowId, number: u16) -> bool {
        let mut sources = self.fold.sources.iter();
        let found = sources.position(|source| source.file == file && source.number == number);
        let Some(at) = found.filter(|_| self.fold.is_stored()) else { return false };
        let StoredRecordCounts { read, in_parts, metadata, left_out, unreadable } =
            self.fold.sources[at].records.clone();
        self.source = at;
        self.before = read;
        self.record_counts = RecordCounts { read, in_parts, metadata, left_out, unreadable };
        true
    }

    pub fn records_read(&self) -> u64 {
        self.record_counts.read - self.before
    }

    fn add_to(&mut self, packer: &mut Packer) -> Result<(), StoreError> {
        let RecordCounts { read, in_parts, metadata, left_out, unreadable } =
            self.record_counts.clone();
        let records = StoredRecordCounts { read, in_parts, metadata, left_out, unreadable };
        let Some(source) = self.fold.sources.get_mut(self.source) else { return Ok(()) };
        let counted = source.records != records;
        source.records = records;
        let dirty = self.fold.is_dirty();
        if dirty || counted || !self.fold.is_stored() {
            packer.add(&mut self.fold)?;
        }
        self.changed |= dirty;
        Ok(())
    }
}

impl Current {
    /// Adds the accumulated changes and warnings to a batch.
    pub fn add_to(&mut self, packer: &mut Packer) -> Result<(), StoreError> {
        for telling in self.told.iter_mut().flatten() {
            telling.add_to(packer)?;
        }
        for (handle, warning) in self.warnings.drain(..) {
            let telling =
                handle.and_then(|handle| self.told.get(handle.0)).and_then(Option::as_ref);
            packer.batch().warnings.push(WarningRow {
                file: self.row,
                session: telling.map(|telling| telling.fold.row),
                line: warning.line,
                what: warning.what,
                bytes: warning.bytes,
            });
        }
        Ok(())
    }
}

impl<S: Store> RecordSink for Taker<'_, S> {
    fn source(&mut self, _: SessionHandle, told: &SessionIdent<'_>) -> u16 {
        let telling = match self.open(told) {
            Ok(telling) => telling,
            Err(stop) => {
                self.stop.get_or_insert(stop);
                None
            }
        };
        let Some(mut telling) = telling else {
            self.hold(None);
            return 0;
        };
        let number = self.number(&mut telling, told);
        self.hold(Some(telling));
        number
    }

    fn record(&mut self, taken: DecodedRecord<'_>) {
        let DecodedRecord { session, outcome, events, .. } = taken;
        if self.stop.is_some() {
            return;
        }
        let recorder = self.shared.recorder;
        let Some(current) = &mut self.current else { return };
        let Some(Some(telling)) = current.told.get_mut(session.0) else { return };
        telling.record_counts.add(&outcome);
        for event in events.drain(..) {
            if let Err(error) = recorder.take(&mut telling.fold, event) {
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

impl<S: Store> Taker<'_, S> {
    /// The source number of this file in a session: its previous number, or that of the log it is a
    /// copy of, or the next free one.
    fn number(&self, telling: &mut Telling, told: &SessionIdent<'_>) -> u16 {
        let Some(current) = &self.current else { return 0 };
        let sources = &mut telling.fold.sources;
        let mine = sources.iter().rposition(|source| {
            source.file == current.row
                && source.telling == told.telling
                && !current.renewed
                // Input that is not a file has no path: compare its first record instead.
                && (current.path.is_some() || source.first == told.first)
        });
        if let Some(at) = mine {
            telling.source = at;
            return sources[at].number;
        }
        let copied = sources.iter().find(|source| {
            source.telling == unspool_core::telling::Telling::Log
                && told.telling == source.telling
                && source.first == told.first
                && source.file != current.row
                // A file read in this sync has no row yet: the first record must suffice.
                && path_of(self.shared.known, source.file)
                    .is_none_or(|file| is_copy(current.path.as_ref(), file))
        });
        let next = sources.iter().map(|source| source.number + 1).max().unwrap_or(0);
        let number = copied.map_or(next, |source| source.number);
        sources.push(SourceRow {
            file: current.row,
            number,
            telling: told.telling,
            first: told.first,
            sub_agent: told.sub_agent,
            records: StoredRecordCounts::default(),
        });
        telling.source = sources.len() - 1;
        number
    }
}
