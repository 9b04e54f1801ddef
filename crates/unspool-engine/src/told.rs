//! The file in hand: the sessions that it tells of, and what became of its records.

use std::path::PathBuf;

use unspool_sources::decode::{Ledger, Warning};
use unspool_sources::reading::{Handle, Sink, Taken, Told};
use unspool_store::batch::Packer;
use unspool_store::contract::{Store, StoreError};
use unspool_store::fold::SessionFold;
use unspool_store::rows::{Records, Row, SourceRow, WarningRow};

use crate::known::{is_copy, path_of};
use crate::take::Taker;

pub(crate) struct Current {
    pub row: Row,
    pub name: String,
    /// None for what is no file.
    pub path: Option<PathBuf>,
    /// It is not the file that we knew under this name: another source tells.
    pub renewed: bool,
    /// By handle; None for a session that the user deleted.
    pub told: Vec<Option<Telling>>,
    /// To be written with the sessions they speak of.
    pub warnings: Vec<(Option<Handle>, Warning)>,
}

/// A session of the file.
pub(crate) struct Telling {
    pub fold: SessionFold,
    /// Its place in `fold.sources`.
    source: usize,
    ledger: Ledger,
    /// Records that an earlier reading counted.
    before: u64,
    pub changed: bool,
}

impl Telling {
    pub fn new(fold: SessionFold) -> Telling {
        Telling { fold, source: 0, ledger: Ledger::default(), before: 0, changed: false }
    }

    /// Goes on counting where this file's source stopped. False if it is not there.
    pub fn go_on(&mut self, file: Row, number: u16) -> bool {
        let mut sources = self.fold.sources.iter();
        let found = sources.position(|source| source.file == file && source.number == number);
        let Some(at) = found.filter(|_| self.fold.is_stored()) else { return false };
        let Records { read, in_parts, metadata, left_out, unreadable } =
            self.fold.sources[at].records.clone();
        self.source = at;
        self.before = read;
        self.ledger = Ledger { read, in_parts, metadata, left_out, unreadable };
        true
    }

    pub fn records_read(&self) -> u64 {
        self.ledger.read - self.before
    }

    fn add_to(&mut self, packer: &mut Packer) -> Result<(), StoreError> {
        let Ledger { read, in_parts, metadata, left_out, unreadable } = self.ledger.clone();
        let records = Records { read, in_parts, metadata, left_out, unreadable };
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
    /// Adds what has come together to a batch.
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

impl<S: Store> Sink for Taker<'_, S> {
    fn source(&mut self, _: Handle, told: &Told<'_>) -> u16 {
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

    fn record(&mut self, taken: Taken<'_>) {
        let Taken { session, fate, events, .. } = taken;
        if self.stop.is_some() {
            return;
        }
        let recorder = self.shared.recorder;
        let Some(current) = &mut self.current else { return };
        let Some(Some(telling)) = current.told.get_mut(session.0) else { return };
        telling.ledger.enter(&fate);
        for event in events.drain(..) {
            if let Err(error) = recorder.take(&mut telling.fold, event) {
                self.stop = Some(error.into());
                return;
            }
        }
    }

    fn warn(&mut self, session: Option<Handle>, warning: Warning) {
        self.shared.tally.warn(warning.clone());
        if let Some(current) = &mut self.current {
            current.warnings.push((session, warning));
        }
    }
}

impl<S: Store> Taker<'_, S> {
    /// The number of the source that this file is for a session: the one it had; that of the file
    /// that it is a copy of; else the next.
    fn number(&self, telling: &mut Telling, told: &Told<'_>) -> u16 {
        let Some(current) = &self.current else { return 0 };
        let sources = &mut telling.fold.sources;
        let mine = sources.iter().rposition(|source| {
            source.file == current.row
                && source.telling == told.telling
                && !current.renewed
                // What is no file has no name of its own: its beginning tells it apart.
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
                // A file that was read just now is known by its first record alone.
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
            records: Records::default(),
        });
        telling.source = sources.len() - 1;
        number
    }
}
