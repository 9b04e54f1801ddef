//! Lines before the first record that names its session. They are held, up to a limit, and decoded
//! once a session is found. If the file ends before that, its document head, a fallback id or the
//! file name gives the id.

use std::path::Path;

use super::{DecodedRecord, FileDecoder, PendingRecords, RecordSink, SessionHandle};
use crate::decode::{Format, JsonOutline, RecordOutcome, Warning};
use crate::read::lines::Line;

/// How many bytes of a file are held until a record identifies its session. Beyond this limit the
/// file counts as unrecognised.
const MAX_PENDING_BYTES: usize = 64 * 1024 * 1024;

/// What a line costs beside its bytes.
const LINE_OVERHEAD: usize = 128;

impl FileDecoder {
    pub(super) fn hold_record(&mut self, line: Line<'_>, sink: &mut (impl RecordSink + ?Sized)) {
        self.pending.size += line.bytes.len() + LINE_OVERHEAD;
        self.pending.records.push((line.number, line.offset, line.bytes.to_vec()));
        self.limit_pending(sink);
    }

    pub(super) fn hold_unreadable(
        &mut self,
        offset: u64,
        warning: Warning,
        sink: &mut (impl RecordSink + ?Sized),
    ) {
        let text = warning.file.len() + warning.what.len();
        self.pending.size += warning.bytes.len() + text + LINE_OVERHEAD;
        self.pending.unreadable_lines.push((offset, warning));
        self.limit_pending(sink);
    }

    /// Bounds memory: at the limit, decides with what is known so far.
    fn limit_pending(&mut self, sink: &mut (impl RecordSink + ?Sized)) {
        if self.pending.size > MAX_PENDING_BYTES {
            self.settle(sink);
            self.pending =
                PendingRecords { given_up: self.current.is_none(), ..PendingRecords::default() };
        }
    }

    pub(super) fn decode_pending(
        &mut self,
        session: SessionHandle,
        sink: &mut (impl RecordSink + ?Sized),
    ) {
        let pending = std::mem::take(&mut self.pending);
        for (offset, warning) in pending.unreadable_lines {
            self.unreadable(session, offset, warning, sink);
        }
        for (number, offset, bytes) in pending.records {
            self.decode_record(Line { number, offset, bytes: &bytes }, sink);
        }
    }

    pub(super) fn unreadable(
        &mut self,
        session: SessionHandle,
        offset: u64,
        warning: Warning,
        sink: &mut (impl RecordSink + ?Sized),
    ) {
        let line = Line { number: warning.line, offset, bytes: &warning.bytes };
        let outcome = RecordOutcome::Unreadable(warning.what.clone());
        sink.record(DecodedRecord { session, line, outcome, events: &mut self.events });
        sink.warn(Some(session), warning);
    }

    /// If no record named a session, takes the id from the head of the document, else from the
    /// fallback id, else from the file name.
    pub(super) fn settle(&mut self, sink: &mut (impl RecordSink + ?Sized)) {
        if let Some(format) = self.tentative_format {
            // A later record may still decide otherwise.
            self.named_by_file = true;
            self.set_format(format, sink);
        }
        if let Some(format) = self.format.filter(|_| self.is_undecided()) {
            let id = self.head(format).or_else(|| self.fallback_id.clone()).unwrap_or_else(|| {
                let stem = Path::new(&self.name).file_stem().unwrap_or_default();
                stem.to_string_lossy().into_owned()
            });
            self.named_by_file = true;
            self.open_session(&id, None, false, sink);
        }
    }

    /// The id of a document: on the line before its records or on the line after them.
    fn head(&self, format: &Format) -> Option<String> {
        let records = &self.pending.records;
        let around = records.first().into_iter().chain(records.last());
        around.into_iter().find_map(|(_, _, bytes)| {
            let text = String::from_utf8_lossy(bytes);
            let mut outline = JsonOutline::default();
            let fields = outline.read(&text).ok()?;
            let own = (format.recognise)(&fields).is_none();
            let named = |name: &str| fields.string(name).filter(|id| own && !id.is_empty());
            named("id").or_else(|| named("session_id"))
        })
    }

    /// True while records are held until one names their session.
    pub fn is_undecided(&self) -> bool {
        let existing = self.format.or(self.tentative_format).is_some();
        existing && (self.current.is_none() || !self.pending.records.is_empty())
    }
}
