//! Ingests what other machines send. A unit is appended to the text of its file in the archive and
//! decoded like a file that has grown: its text, the position of the sender, the state of the
//! decoder and the rows of its sessions commit in one transaction. So a unit whose answer was lost
//! is refused when it comes again, and the sender learns how far the server has the file. A large
//! unit commits rows before; their text and the position come with the last ones.

use std::io::{self, BufRead};
use std::sync::{Arc, Mutex};

use rustc_hash::FxHashSet;
use unspool_model::id::SessionId;
use unspool_model::source::FileStamp;
use unspool_query::request::Sender;
use unspool_query::ship::{Receipt, Receipts, SentTo, Unit};
use unspool_sources::file_decoder::SessionIdent;
use unspool_sources::read::source::Source;
use unspool_store::blocking::block_on;
use unspool_store::received_text::ReceivedText;
use unspool_store::rows::{FileRow, Received, ReceivedWrite, RowId, received_from, received_name};
use unspool_store::store::{Store, StoreError, View, Viewer};

use crate::recorder::Recorder;
use crate::recorder::batch::IngestMode;
use crate::recorder::session_writer::SessionWriter;
use crate::report::{Progress, SyncReport, Tally};
use crate::sync::claim::Claims;
use crate::sync::live_files::FilesInUse;
use crate::sync::open_file::Origin;
use crate::sync::worker::{Stop, SyncContext, Worker};
use crate::sync::{FileStates, LIVE_MAX_BYTES, SyncError, finish, warning};

/// A received file and the text that is new of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ReceivedFile {
    pub row: RowId,
    /// The text takes the place of all that was received before.
    replaces: bool,
    new: Arc<[u8]>,
    stamp: FileStamp,
    /// By the clock of the machine that sends it.
    pub is_idle: bool,
}

/// Takes units in the order in which they come. What was taken is committed when this returns.
pub fn receive<S: Store>(
    recorder: &Recorder<S>,
    FileStates(stored): &mut FileStates,
    sender: &Sender,
    units: &mut impl BufRead,
    size: u64,
) -> Result<(Receipts, SyncReport), ReceiveError> {
    let (tally, claims, in_use) = (Tally::default(), Claims::default(), FilesInUse::default());
    let (written, progress) = (Mutex::default(), Progress::default());
    let shared = SyncContext {
        recorder,
        claims: &claims,
        stored: &*stored,
        written: &written,
        in_use: &in_use,
        live: None,
        tally: &tally,
        progress: &progress,
        mode: if size < LIVE_MAX_BYTES { IngestMode::Live } else { IngestMode::Bulk },
        named: false,
    };
    let mut worker = Worker::new(&shared).map_err(SyncError::from)?;
    let mut receipts = Receipts::default();
    let mut uncommitted: FxHashSet<String> = FxHashSet::default();
    while let Some(unit) = Unit::read(units)? {
        let name = received_name(&sender.member, &sender.machine, &unit.head.file);
        // What is known of a file is read from the archive.
        if !uncommitted.insert(name.clone()) {
            finish(&mut worker)?;
            uncommitted.clear();
            uncommitted.insert(name.clone());
        }
        receipts.receipts.push(worker.take_unit(name, unit)?);
    }
    finish(&mut worker)?;
    drop(worker);
    let written = written.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    stored.extend(written);
    let report = tally.into_report();
    report.log();
    Ok((receipts, report))
}

/// Why units could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    #[error(transparent)]
    Sync(#[from] SyncError),
    #[error("the units cannot be read: {0}")]
    Units(#[from] io::Error),
}

impl<S: Store> Worker<'_, S> {
    fn take_unit(&mut self, name: String, unit: Unit) -> Result<Receipt, SyncError> {
        let view = self.shared.recorder.store().view(Viewer::Sole);
        let known = block_on(view.received(vec![name.clone()]))?.pop().flatten();
        let Unit { head, text } = unit;
        let at = known.map(|known| SentTo::new(known.generation, known.print, known.idle));
        let is_next = match at {
            Some(at) => head.to.generation == at.generation && head.from == at.offset,
            None => head.from == 0,
        };
        let is_replacement =
            at.is_some_and(|at| head.to.generation > at.generation) && head.from == 0;
        if !is_next && !is_replacement {
            return Ok(Receipt { file: head.file, taken: at, refused: None });
        }
        let row = self.shared.file(&name).map(|stored| stored.row);
        let known_row = row.or(known.map(|known| known.file));
        let row = known_row.unwrap_or_else(|| self.shared.recorder.row_ids().file());
        let file = ReceivedFile {
            row,
            replaces: is_replacement,
            new: text.into(),
            stamp: FileStamp { modified: head.modified, ..FileStamp::default() },
            is_idle: head.to.idle,
        };
        if known_row.is_none() {
            self.batch().files.push(FileRow { row, path: name.clone(), ..FileRow::default() });
        }
        let pieces = block_on(view.received_pieces(row))?;
        // The user deleted its sessions: what follows is not kept either.
        let is_erased = pieces.is_empty() && at.is_some_and(|at| at.offset > 0);
        // A file that replaces another one is compared with it as a whole.
        let waits = head.to.generation > 0 && head.more;
        let others = match is_replacement && head.withdraws {
            true => {
                finish(self)?;
                block_on(self.shared.recorder.store().withdraw(row))?
            }
            false => Vec::new(),
        };
        if !is_erased && !waits {
            self.decode_received(name, file.clone())?;
        }
        for other in others {
            self.decode_again(other)?;
        }
        // Behind the decoding, which may commit: rows without their text are read again when the unit
        // comes again, but a text without its rows would never be read.
        let refused = self.refused.take();
        let is_kept = !is_erased && refused.is_none();
        let state = Received {
            file: row,
            generation: head.to.generation,
            print: head.to.print(),
            idle: head.to.idle,
        };
        let stored = pieces.last().map_or(0, |last| last.start + last.length);
        let start = if is_replacement { 0 } else { stored };
        let text = if is_kept { file.new.to_vec() } else { Vec::new() };
        self.batch().received.push(ReceivedWrite { state, start, text });
        Ok(Receipt { file: head.file, taken: Some(head.to), refused })
    }

    /// Decodes another file of sessions that were withdrawn.
    fn decode_again(&mut self, name: String) -> Result<(), SyncError> {
        let Some(stored) = self.shared.file(&name).filter(|_| received_from(&name).is_some())
        else {
            return Ok(());
        };
        let (stamp, new) = (stored.stamp, Arc::default());
        let file = ReceivedFile { row: stored.row, replaces: false, new, stamp, is_idle: true };
        self.decode_received(name, file)
    }

    fn decode_received(&mut self, name: String, file: ReceivedFile) -> Result<(), SyncError> {
        let source = match self.open_received(&file) {
            Ok(source) => source,
            Err(error) => {
                let what = format!("cannot be read: {error}");
                self.shared.tally.warn(warning(name.as_ref(), what));
                return Ok(());
            }
        };
        match self.decode_source(name, Origin::Received(file), source) {
            // Nobody else holds claims, and a worker waits for its own.
            Ok(()) | Err(Stop::Claimed) => Ok(()),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    fn received_text(&self, file: &ReceivedFile) -> Result<ReceivedText<S::View>, StoreError> {
        let view = self.shared.recorder.store().view(Viewer::Sole);
        match file.replaces {
            true => Ok(ReceivedText::replaced(view, file.row, file.new.clone())),
            false => ReceivedText::stored(view, file.row, file.new.clone()),
        }
    }

    pub(crate) fn open_received(&self, file: &ReceivedFile) -> io::Result<Source> {
        let text = self.received_text(file).map_err(io::Error::other)?;
        let length = text.length();
        let stamp = FileStamp { size: length, ..file.stamp };
        Ok(Source::new(stamp, Some(length), text))
    }

    /// Opens a session for the current file. None if the user deleted it, or if another member sent
    /// it first: a session has one owner, whoever sends records with its id.
    pub(super) fn open_allowed(
        &mut self,
        ident: &SessionIdent<'_>,
    ) -> Result<Option<SessionWriter>, StoreError> {
        let Some(writer) = self.recorder().open(ident.agent, ident.session)? else {
            return Ok(None);
        };
        let name = self.current.as_ref().map(|current| current.name.as_str()).unwrap_or_default();
        let Some(sender) = received_from(name) else { return Ok(Some(writer)) };
        let view = self.shared.recorder.store().view(Viewer::Sole);
        let parent = ident.parent.map(|parent| SessionId::of(ident.agent, parent));
        let parent = parent.map(|parent| block_on(view.session(parent))).transpose()?.flatten();
        let stored = writer.is_stored().then_some(writer.row);
        let mut is_own = true;
        for session in stored.into_iter().chain(parent.map(|parent| parent.row)) {
            let files = block_on(view.source_files(session))?;
            is_own &= files.iter().all(|file| received_from(&file.path) == Some(sender));
        }
        if is_own {
            return Ok(Some(writer));
        }
        self.refused = Some(format!(
            "session {} of {} is another member's: it was sent, or read on the server, before",
            ident.session, ident.agent
        ));
        Ok(None)
    }
}
