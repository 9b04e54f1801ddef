//! How a worker reads one input: from where the last read of a file stopped, or a stream from its
//! start. Decoded events go to the sessions of the worker's current file.

use std::io::{self, Cursor, Read};
use std::ops::ControlFlow;
use std::path::Path;

use unspool_sources::file_decoder::{
    Checkpoint, FileDecoder, FileDigest, LastLine, Verdict, decode_from,
};
use unspool_sources::fingerprint::{self, fingerprint};
use unspool_sources::read::lines::ReadPosition;
use unspool_sources::read::source::{self, Source};
use unspool_store::blocking::block_on;
use unspool_store::rows::FileRow;
use unspool_store::store::Store;

use crate::report::Tally;
use crate::stdin_capture::display_name;
use crate::sync::file_state::{file_row, is_idle, warning};
use crate::sync::open_file::{OpenFile, Origin};
use crate::sync::worker::{Stop, Worker};

/// How much of a file that has grown is read before the check that it still begins as it did.
const NEXT_BYTES: u64 = 64 * 1024;

/// The bytes behind an offset, as far as they are there.
fn next_bytes(source: &mut Source, offset: u64) -> io::Result<Vec<u8>> {
    let mut next = Vec::new();
    let text = source.from(ReadPosition { offset, ..ReadPosition::default() })?;
    text.take(NEXT_BYTES).read_to_end(&mut next)?;
    Ok(next)
}

impl<S: Store> Worker<'_, S> {
    pub(super) fn decode_file(&mut self, path: &Path) -> Result<(), Stop> {
        let name = path.to_string_lossy().into_owned();
        match source::open(path) {
            Ok(source) => self.decode_source(name, Origin::File(path.to_owned()), source),
            Err(error) => {
                self.shared.tally.warn(warning(&name, format!("cannot be read: {error}")));
                Ok(())
            }
        }
    }

    /// Reads a text that is kept, from where the last read stopped.
    pub(crate) fn decode_source(
        &mut self,
        name: String,
        origin: Origin,
        mut source: Source,
    ) -> Result<(), Stop> {
        let stored = self.shared.file(&name);
        let stored = stored.as_ref();
        // Before the check: an agent may rewrite its log at this moment (Droid does, for the title).
        // What is behind the offset would then begin in the middle of a line.
        let offset = stored.map(|stored| stored.print.offset).filter(|offset| *offset > 0);
        let next = offset.map(|offset| next_bytes(&mut source, offset).unwrap_or_default());
        let mut same = stored.is_some_and(|stored| {
            fingerprint::matches(stored.print, source.text()).unwrap_or(false)
        });
        // What was received is appended to, or replaced as a whole.
        let may_be_rewritten = !matches!(origin, Origin::Received(_));
        if let Some(stored) = stored.filter(|_| same && may_be_rewritten) {
            same = !self.is_rewritten(stored, &mut source)?;
        }
        let row = match (stored, &origin) {
            (Some(stored), _) => stored.row,
            (None, Origin::Received(file)) => file.row,
            (None, Origin::File(_) | Origin::Stream) => self.shared.recorder.row_ids().file(),
        };
        self.current = Some(OpenFile {
            row,
            name: name.clone(),
            origin,
            // A file that was empty last time starts a new source.
            replaced: stored.is_some_and(|stored| !same || stored.print.offset == 0),
            ident: Vec::new(),
            warnings: Vec::new(),
        });
        // A file that was found empty keeps what it had before.
        let was_empty = stored.is_some_and(|stored| stored.print.offset == 0);
        let former = match stored.filter(|_| !same || was_empty) {
            Some(stored) => self.saved(stored)?,
            None => None,
        };
        let stored = stored.filter(|_| same);
        let outcome = self.read_file(&name, &mut source, stored, next, former);
        self.drop_current();
        outcome
    }

    /// True if a completely read file of unchanged size has different content. Called when its
    /// mtime or ctime changed; per-line digests tell an in-place rewrite from a touch.
    fn is_rewritten(&self, stored: &FileRow, source: &mut Source) -> Result<bool, Stop> {
        let size = source.stamp.size;
        if (stored.stamp.size, stored.print.offset, source.length) != (size, size, Some(size)) {
            return Ok(false);
        }
        let Some(saved) = self.saved(stored)? else { return Ok(false) };
        let found =
            source.from(ReadPosition::default()).and_then(|text| FileDigest::of(text, size));
        // A read error is reported by the read that follows.
        Ok(found.is_ok_and(|found| found != saved.file_digest()))
    }

    fn saved(&self, stored: &FileRow) -> Result<Option<Checkpoint>, Stop> {
        let saved = block_on(self.shared.recorder.store().saved(stored.row))?;
        Ok(saved.and_then(|saved| serde_json::from_str(&saved).ok()))
    }

    fn read_file(
        &mut self,
        name: &str,
        source: &mut Source,
        stored: Option<&FileRow>,
        next: Option<Vec<u8>>,
        former: Option<Checkpoint>,
    ) -> Result<(), Stop> {
        let replaced = self.current.as_ref().is_some_and(|current| current.replaced);
        let mut file_decoder =
            FileDecoder::new(display_name(name)).replacing(former).rewritten(replaced);
        let mut position = ReadPosition::default();
        if let Some(stored) = stored.filter(|stored| stored.print.offset > 0)
            && let Some(resumed) = self.resume(stored)?
        {
            file_decoder = resumed;
            position = ReadPosition { number: stored.line, offset: stored.print.offset };
        }
        let Source { mut stamp, length, .. } = *source;
        let idle = match self.current.as_ref().map(|current| &current.origin) {
            Some(Origin::Received(file)) => file.is_idle,
            Some(Origin::File(_) | Origin::Stream) | None => is_idle(stamp),
        };
        let last = match (idle, self.shared.named) {
            (true, _) => LastLine::TakeWhole,
            (false, true) => LastLine::TakeComplete,
            (false, false) => LastLine::Leave,
        };
        // Fewer bytes than asked for end the file; the next scan reads what came since.
        let next = next.filter(|_| position.offset > 0);
        let rest = match &next {
            Some(next) if (next.len() as u64) < NEXT_BYTES => 0,
            Some(_) | None => u64::MAX,
        };
        let next = next.unwrap_or_default();
        let from = ReadPosition { offset: position.offset + next.len() as u64, ..position };
        let text = source.from(from).map(|text| Cursor::new(next).chain(text.take(rest)));
        let Some(verdict) = self.read(text, &mut file_decoder, &mut position, last)? else {
            return Ok(());
        };
        self.end_withdrawn(&file_decoder)?;
        let unfinished = length.is_some_and(|length| position.offset < length);
        if !idle && (unfinished || file_decoder.is_undecided()) {
            // A zero mtime never matches, so the next scan reads this file again.
            stamp.modified = 0;
        }
        let print = fingerprint(source.text(), position.offset).ok();
        let saved = file_decoder.save().and_then(|saved| serde_json::to_string(&saved).ok());
        self.close(FileRow { stamp, saved, ..file_row(position, print, verdict) })
    }

    /// Ends running turns that a rewritten log no longer has. Copilot takes a prompt out that the
    /// user cancels before the first word, and says nothing else about it. The log is known to go on
    /// without the prompt once it has a later record, which a later read may bring.
    fn end_withdrawn(&mut self, decoder: &FileDecoder) -> Result<(), Stop> {
        let recorder = self.shared.recorder;
        let Some(current) = self.current.as_mut().filter(|_| decoder.is_rewritten()) else {
            return Ok(());
        };
        for (handle, ident, _) in decoder.sessions() {
            let last = decoder.turn(handle);
            let Some(Some(feed)) = current.ident.get_mut(handle.0) else { continue };
            let Some(latest) = feed.latest else { continue };
            // Not every format names turns.
            if last.is_none() && feed.has_turns {
                continue;
            }
            if let Some(event) = feed.writer.withdrawal(ident.feed, last.as_ref(), latest) {
                recorder.take(&mut feed.writer, event)?;
            }
        }
        Ok(())
    }

    /// Reads input that is not a file, under a given name.
    pub fn ingest_stream(&mut self, name: &str, source: impl Read) -> Result<(), Stop> {
        let stored = self.shared.file(name);
        let row = stored.map_or_else(|| self.shared.recorder.row_ids().file(), |stored| stored.row);
        self.current = Some(OpenFile {
            row,
            name: name.to_owned(),
            origin: Origin::Stream,
            replaced: false,
            ident: Vec::new(),
            warnings: Vec::new(),
        });
        let mut file_decoder = FileDecoder::new(name);
        let mut position = ReadPosition::default();
        let outcome = self
            .read(Ok(source), &mut file_decoder, &mut position, LastLine::TakeWhole)
            .and_then(|verdict| match verdict {
                Some(verdict) => self.close(file_row(ReadPosition::default(), None, verdict)),
                None => Ok(()),
            });
        self.drop_current();
        outcome
    }

    /// Reads to the end. None after a read error, which becomes a warning.
    fn read(
        &mut self,
        source: std::io::Result<impl Read>,
        file_decoder: &mut FileDecoder,
        position: &mut ReadPosition,
        last: LastLine,
    ) -> Result<Option<Verdict>, Stop> {
        let begun = position.offset;
        let mut seen = *position;
        let reached = source.and_then(|source| {
            decode_from(source, position, last, file_decoder, self, |_, worker, position| {
                let bytes = position.offset.saturating_sub(seen.offset);
                worker.advance(bytes, position.number.saturating_sub(seen.number));
                seen = position;
                if worker.stop.is_none() && worker.is_full() {
                    worker.stop = worker.write_so_far(position).err();
                }
                if worker.stop.is_none() {
                    worker.stop = worker.ingest_live().err();
                }
                match worker.stop {
                    Some(_) => ControlFlow::Break(()),
                    None => ControlFlow::Continue(()),
                }
            })
        });
        if let Some(stop) = self.stop.take() {
            return Err(stop);
        }
        if let Err(error) = reached {
            let name = file_decoder.name().to_owned();
            self.shared.tally.warn(warning(&name, format!("cannot be read: {error}")));
            return Ok(None);
        }
        // A growing file may still state its session id. The file name is only a guess, and parts
        // stored under a wrong session would stay there.
        let waits = last == LastLine::Leave && !self.shared.named;
        let undecided = waits && file_decoder.is_undecided();
        let verdict = if undecided { Verdict::HasSessions } else { file_decoder.finish(self) };
        if let Some(stop) = self.stop.take() {
            return Err(stop);
        }
        Tally::add(&self.shared.tally.bytes, position.offset.saturating_sub(begun));
        Ok(Some(verdict))
    }

    /// Resumes a decoder and opens its sessions. None means to read from the start, which is
    /// harmless because cursors skip what is stored.
    fn resume(&mut self, stored: &FileRow) -> Result<Option<FileDecoder>, Stop> {
        let Some(file_decoder) = self
            .saved(stored)?
            .and_then(|saved| FileDecoder::resume(display_name(&stored.path), &saved))
        else {
            return Ok(None);
        };
        for (handle, ident, number) in file_decoder.sessions() {
            let mut feed = self.open(&ident)?;
            let goes_on = feed.as_mut().is_none_or(|feed| feed.resume_counts(stored.row, number));
            if let (Some(feed), Some(turn)) = (&mut feed, file_decoder.turn(handle)) {
                feed.writer.resume_at(ident.feed, number, &turn);
            }
            self.push_feed(feed);
            if !goes_on {
                // The session was deleted in the meantime.
                self.free_current();
                return Ok(None);
            }
        }
        Ok(Some(file_decoder))
    }
}
