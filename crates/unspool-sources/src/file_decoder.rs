//! Decodes one file or stream. Lines come in from `input.rs`. `FileDecoder` detects the format and
//! the session of each record, runs one decoder per session, and passes the result of every record
//! to a `RecordSink`. `in_memory` is a sink that folds in memory; the engine's worker is another.
//!
//! The state can be saved after any line and resumed by another process (`checkpoint.rs`).

mod checkpoint;
mod file_digest;
mod input;

use std::borrow::Cow;
use std::path::Path;

use unspool_core::event::Event;
use unspool_core::id::digest;
use unspool_core::provenance::{Feed, Name};

use crate::agents::Agent;
use crate::decode::{
    Decoder, Fields, Format, JsonOutline, Record, RecordOutcome, RecordOwner, SessionsPerFile,
    Warning, recognise,
};
use crate::read::lines::Line;

pub use checkpoint::Checkpoint;
pub use file_digest::FileDigest;
pub use input::{LastLine, ReadOutcome, UNFINISHED_LINE_WARNING, decode_from};

/// How many bytes of a file are held until a record identifies its session. Beyond this limit the
/// file counts as unrecognised.
const MAX_PENDING_BYTES: usize = 64 * 1024 * 1024;

/// How many invalid records of a file get a warning each.
const MAX_INVALID_WARNINGS: u32 = 20;

/// A session of the file: its index in the decoder's list of sessions. It survives saving and
/// resuming.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SessionHandle(pub usize);

/// Identifies a session of a file, and the feed that the file is for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionIdent<'a> {
    pub agent: &'static str,
    /// The agent's own id of the session.
    pub session: &'a str,
    pub feed: Feed,
    /// A digest of the file's first record. A log and its copy share it.
    pub first: u64,
    /// True for the session of a sub-agent.
    pub sub_agent: bool,
    /// The session that started a sub-agent, if the file names it.
    pub parent: Option<&'a str>,
}

/// The result of decoding one record.
pub struct DecodedRecord<'a> {
    pub session: SessionHandle,
    pub line: Line<'a>,
    pub outcome: RecordOutcome,
    /// The sink drains the events that it wants; the rest are dropped.
    pub events: &'a mut Vec<Event>,
}

/// Receives the sessions, records and warnings of a file.
pub trait RecordSink {
    /// A new session of the file. Returns the source number for its evidence
    /// (`Evidence::source`). Called once per session, before its first record, in the order of
    /// handles; not called again after a resume.
    fn source(&mut self, session: SessionHandle, file_session: &SessionIdent<'_>) -> u16;

    /// One decoded record. An unreadable line counts as a record without events; its warning
    /// follows.
    fn record(&mut self, taken: DecodedRecord<'_>);

    /// A warning about a session, or about a file without a session.
    fn warn(&mut self, session: Option<SessionHandle>, warning: Warning);
}

/// The result of reading a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It holds at least one session.
    HasSessions,
    /// It holds no records.
    Empty,
    /// It is this agent's list of typed prompts.
    PromptHistory { agent: &'static str },
    /// No format matched.
    Unknown,
}

/// The decoding state of one file.
pub struct FileDecoder {
    name: String,
    /// A digest of the file's first record.
    first: Option<u64>,
    file_digest: FileDigest,
    format: Option<&'static Format>,
    /// The format unless a later record decides otherwise.
    tentative_format: Option<&'static Format>,
    sessions: Vec<Session>,
    /// The session of records that name none.
    current: Option<SessionHandle>,
    /// The session id (or the format) is a guess, because no record named it.
    named_by_file: bool,
    /// The session id to use if no record names one for certain.
    fallback_id: Option<String>,
    /// How many records failed the decoder's check and were decoded anyway.
    invalid_records: u32,
    pending: PendingRecords,
    /// The agent whose list of typed prompts the file seems to be.
    prompt_history: Option<&'static Agent>,
    /// The events and the outline of one record; reused to save allocations.
    events: Vec<Event>,
    outline: JsonOutline,
}

/// One session of a file.
struct Session {
    id: String,
    sub_agent: bool,
    parent: Option<String>,
    source: u16,
    decoder: Box<dyn Decoder>,
}

/// Lines before the first record that names its session.
#[derive(Default)]
struct PendingRecords {
    records: Vec<(u64, u64, Vec<u8>)>,
    /// Lines that could not be read, with their offsets.
    unreadable_lines: Vec<(u64, Warning)>,
    size: usize,
    /// The limit was exceeded and the lines were dropped.
    given_up: bool,
}

impl FileDecoder {
    /// Begins a file or a stream. Warnings use `name`.
    pub fn new(name: &str) -> FileDecoder {
        FileDecoder {
            name: name.to_owned(),
            first: None,
            file_digest: FileDigest::default(),
            format: None,
            tentative_format: None,
            sessions: Vec::new(),
            current: None,
            named_by_file: false,
            fallback_id: None,
            invalid_records: 0,
            pending: PendingRecords::default(),
            prompt_history: None,
            events: Vec::new(),
            outline: JsonOutline::default(),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The session of the latest record.
    pub fn current(&self) -> Option<SessionHandle> {
        self.current
    }

    /// The sessions found so far, with the source number of each, in the order of handles.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionHandle, SessionIdent<'_>, u16)> {
        let file_session = |session| Some(file_session(self.format?, self.first?, session));
        let held = self.sessions.iter().enumerate();
        held.filter_map(move |(at, held)| {
            Some((SessionHandle(at), file_session(held)?, held.source))
        })
    }

    /// The current turn of a session, if its format names turns.
    pub fn turn(&self, session: SessionHandle) -> Option<Name> {
        self.sessions.get(session.0)?.decoder.turn()
    }

    /// Decodes one line.
    pub fn take(&mut self, line: Line<'_>, sink: &mut (impl RecordSink + ?Sized)) {
        let of_line = digest(line.bytes);
        self.first.get_or_insert(of_line);
        self.file_digest.add(line.offset, of_line);
        if !self.pending.given_up {
            self.decode_record(line, sink);
        }
    }

    fn decode_record(&mut self, line: Line<'_>, sink: &mut (impl RecordSink + ?Sized)) {
        let mut outline = std::mem::take(&mut self.outline);
        // Validating is three times as fast as a lossy conversion.
        let text = match std::str::from_utf8(line.bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(line.bytes),
        };
        match outline.read(&text) {
            Ok(fields) => {
                let replaced = matches!(text, Cow::Owned(_));
                self.decode_fields(line, &text, replaced, &fields, sink);
            }
            Err(error) => {
                let warning = self.warning(line, format!("not a JSON object: {error}"));
                match self.current {
                    Some(session) => self.unreadable(session, line.offset, warning, sink),
                    None => self.hold_unreadable(line.offset, warning, sink),
                }
            }
        }
        self.outline = outline;
    }

    fn decode_fields(
        &mut self,
        line: Line<'_>,
        text: &str,
        replaced: bool,
        fields: &Fields<'_>,
        sink: &mut (impl RecordSink + ?Sized),
    ) {
        let Some(session) = self.session_of(fields, sink) else {
            self.prompt_history = self.prompt_history.or_else(|| Agent::of_prompt_history(fields));
            return self.hold_record(line, sink);
        };
        if replaced {
            let warning = self.warning(line, "invalid UTF-8 was replaced".to_owned());
            sink.warn(Some(session), warning);
        }
        if let Err(what) = self.sessions[session.0].decoder.check(fields) {
            self.warn_invalid(session, line, what, sink);
        }
        let file_session = &mut self.sessions[session.0];
        let source = file_session.source;
        let record = Record { source, line: line.number, offset: line.offset, text };
        let outcome = file_session.decoder.decode(&record, fields, &mut self.events);
        sink.record(DecodedRecord { session, line, outcome, events: &mut self.events });
        self.events.clear();
    }

    /// A program that writes invalid records usually writes many: only the first few are reported.
    fn warn_invalid(
        &mut self,
        session: SessionHandle,
        line: Line<'_>,
        what: String,
        sink: &mut (impl RecordSink + ?Sized),
    ) {
        self.invalid_records = self.invalid_records.saturating_add(1);
        let what = match self.invalid_records {
            ..=MAX_INVALID_WARNINGS => what,
            number if number == MAX_INVALID_WARNINGS + 1 => {
                format!("{what}; further problems in this file are not reported")
            }
            _ => return,
        };
        let warning = Warning { bytes: Vec::new(), ..self.warning(line, what) };
        sink.warn(Some(session), warning);
    }

    fn warning(&self, line: Line<'_>, what: String) -> Warning {
        Warning { file: self.name.clone(), line: line.number, what, bytes: line.bytes.to_vec() }
    }

    // ── The session of a record ─────────────────────────────────────────────────────────────

    /// The session of a record; `None` until a record of the file names one. Then the lines that
    /// were held are decoded first.
    fn session_of(
        &mut self,
        fields: &Fields<'_>,
        sink: &mut (impl RecordSink + ?Sized),
    ) -> Option<SessionHandle> {
        let session = self.session_by_id(fields, sink)?;
        Some(self.side_chain(session, fields, sink).unwrap_or(session))
    }

    /// The sub-agent of a record, for logs that also hold the records of sub-agents.
    fn side_chain(
        &mut self,
        session: SessionHandle,
        fields: &Fields<'_>,
        sink: &mut (impl RecordSink + ?Sized),
    ) -> Option<SessionHandle> {
        let file_session = self.sessions.get_mut(session.0)?;
        let chain = file_session.decoder.side_chain(&file_session.id, fields);
        let ended = file_session.decoder.ended_chains();
        for over in self.sessions.iter_mut().filter(|held| ended.iter().any(|id| **id == *held.id))
        {
            over.decoder = (self.format?.decoder)();
        }
        let chain = chain?;
        let existing = self.sessions.len();
        let opened = self.open_session(&chain.id, Some(&chain.parent), true, sink)?;
        if opened.0 == existing {
            self.sessions[opened.0].decoder.begin_side_chain(&chain);
        }
        // Records that name no session belong to the log's main session.
        self.current = Some(session);
        Some(opened)
    }

    fn session_by_id(
        &mut self,
        fields: &Fields<'_>,
        sink: &mut (impl RecordSink + ?Sized),
    ) -> Option<SessionHandle> {
        let recognised = match (self.format, self.current) {
            // A log or a stream is one session, even if the program later drops the id that it
            // began with. One file of hooks may hold several sessions.
            (Some(format), Some(current)) if format.sessions_per_file == SessionsPerFile::One => {
                return Some(current);
            }
            // A file keeps its format; its decoder also gets records of unknown kinds.
            (Some(format), _) => (format.recognise)(fields).unwrap_or(RecordOwner::Format),
            (None, _) => {
                let (format, recognised) = recognise(fields)?;
                if matches!(recognised, RecordOwner::Ambiguous(_)) {
                    self.tentative_format = self.tentative_format.or(Some(format));
                    return None;
                }
                self.set_format(format, sink);
                recognised
            }
        };
        match recognised {
            RecordOwner::Format => self.current,
            RecordOwner::FallbackId(name) => {
                self.fallback_id.get_or_insert_with(|| name.into_owned());
                self.current
            }
            // `None` until the main session was named.
            RecordOwner::MainSession => {
                let own = self.own()?;
                self.current = Some(own);
                self.current
            }
            RecordOwner::Session(id) | RecordOwner::Ambiguous(id) => {
                self.open_session(&id, None, false, sink)
            }
            RecordOwner::SubAgent { id, parent } => {
                self.open_session(&id, parent.as_deref(), true, sink)
            }
        }
    }

    /// Sets the format, and decodes the records that were held while it was ambiguous.
    fn set_format(&mut self, format: &'static Format, sink: &mut (impl RecordSink + ?Sized)) {
        self.format = Some(format);
        if self.tentative_format.take().is_some() {
            for (number, offset, bytes) in std::mem::take(&mut self.pending.records) {
                self.decode_record(Line { number, offset, bytes: &bytes }, sink);
            }
        }
    }

    /// The main session of the file. Its sub-agents may appear before it does.
    fn own(&self) -> Option<SessionHandle> {
        self.sessions.iter().position(|session| !session.sub_agent).map(SessionHandle)
    }

    /// The handle of the session with this id. Opens it if it is new.
    fn open_session(
        &mut self,
        id: &str,
        parent: Option<&str>,
        sub_agent: bool,
        sink: &mut (impl RecordSink + ?Sized),
    ) -> Option<SessionHandle> {
        let format = self.format?;
        let is = |handle: &SessionHandle| self.sessions[handle.0].id == id;
        let existing = self.current.filter(is);
        let existing = existing.or_else(|| (0..self.sessions.len()).map(SessionHandle).find(is));
        let session = existing.unwrap_or_else(|| {
            let handle = SessionHandle(self.sessions.len());
            let (id, parent) = (id.to_owned(), parent.map(str::to_owned));
            let mut decoder = (format.decoder)();
            let own = self.own().filter(|_| sub_agent).and_then(|own| self.sessions.get(own.0));
            if let Some(session_context) = own.and_then(|own| own.decoder.session_context()) {
                decoder.inherit_context(session_context);
            }
            let mut session = Session { id, sub_agent, parent, source: 0, decoder };
            let first = self.first.unwrap_or_default();
            session.source = sink.source(handle, &file_session(format, first, &session));
            self.sessions.push(session);
            handle
        });
        let first = self.current.replace(session).is_none();
        if first || (existing.is_none() && !sub_agent) {
            self.decode_pending(session, sink);
            // Held lines may belong to other sessions.
            self.current = Some(session);
        }
        Some(session)
    }

    // ── Lines before the first session ──────────────────────────────────────────────────────

    fn hold_record(&mut self, line: Line<'_>, sink: &mut (impl RecordSink + ?Sized)) {
        self.pending.size += line.bytes.len();
        self.pending.records.push((line.number, line.offset, line.bytes.to_vec()));
        self.limit_pending(sink);
    }

    fn hold_unreadable(
        &mut self,
        offset: u64,
        warning: Warning,
        sink: &mut (impl RecordSink + ?Sized),
    ) {
        self.pending.size += warning.bytes.len();
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

    fn decode_pending(&mut self, session: SessionHandle, sink: &mut (impl RecordSink + ?Sized)) {
        let pending = std::mem::take(&mut self.pending);
        for (offset, warning) in pending.unreadable_lines {
            self.unreadable(session, offset, warning, sink);
        }
        for (number, offset, bytes) in pending.records {
            self.decode_record(Line { number, offset, bytes: &bytes }, sink);
        }
    }

    fn unreadable(
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
    fn settle(&mut self, sink: &mut (impl RecordSink + ?Sized)) {
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

    /// Ends the file as far as it is written. Held records go to a session named after the file.
    ///
    /// A growing file may be finished after every read. The guessed name can turn out wrong when
    /// the file grows, so such a state is not saved: the file is read again from its start.
    pub fn finish(&mut self, sink: &mut (impl RecordSink + ?Sized)) -> Verdict {
        self.settle(sink);
        for (_, warning) in std::mem::take(&mut self.pending.unreadable_lines) {
            sink.warn(None, warning);
        }
        match (self.current, self.first, self.prompt_history) {
            (Some(_), _, _) => Verdict::HasSessions,
            (None, None, _) => Verdict::Empty,
            (None, Some(_), Some(agent)) => Verdict::PromptHistory { agent: agent.name },
            (None, Some(_), None) => Verdict::Unknown,
        }
    }
}

fn file_session<'a>(format: &'static Format, first: u64, session: &'a Session) -> SessionIdent<'a> {
    SessionIdent {
        agent: format.agent,
        session: &session.id,
        feed: format.feed,
        first,
        sub_agent: session.sub_agent,
        parent: session.parent.as_deref(),
    }
}

#[cfg(test)]
#[path = "file_decoder_tests.rs"]
mod tests;
