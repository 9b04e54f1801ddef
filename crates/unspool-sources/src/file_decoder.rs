//! Decodes one file or stream. Lines come in from `input.rs`. `FileDecoder` detects the format and
//! the session of each record, runs one decoder per session, and passes the result of every record
//! to a `RecordSink`. `in_memory` is a sink that folds in memory; a sync worker is another.
//!
//! `session.rs` finds the session of a record. `pending.rs` holds the lines before the first record
//! that names one. The state can be saved after any line and resumed by another process
//! (`checkpoint.rs`).

mod checkpoint;
mod file_digest;
mod input;
mod pending;
mod session;
mod sessions;

use std::borrow::Cow;

use unspool_model::event::Event;
use unspool_model::id::digest;
use unspool_model::provenance::{Feed, Name};

use crate::agents::Agent;
use crate::decode::{Decoder, Fields, Format, JsonOutline, Record, RecordOutcome, Warning};
use crate::read::lines::Line;
use crate::unsupported;

pub use checkpoint::Checkpoint;
pub use file_digest::FileDigest;
pub use input::{LastLine, ReadOutcome, UNFINISHED_LINE_WARNING, decode_from};
use session::file_session;
use sessions::Sessions;

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
    /// It is of an agent that is known and not read.
    Unsupported { what: &'static str },
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
    /// The agent, if it is not that of the format.
    agent: Option<&'static str>,
    /// The format unless a later record decides otherwise.
    tentative_format: Option<&'static Format>,
    sessions: Sessions,
    /// The session of records that name none.
    current: Option<SessionHandle>,
    /// The session id (or the format) is a guess, because no record named it.
    named_by_file: bool,
    /// The session id to use if no record names one for certain.
    fallback_id: Option<String>,
    /// What was read at the same path before: the session of records that name none.
    former: Option<Checkpoint>,
    /// The file was read before with other content.
    is_rewritten: bool,
    /// How many records failed the decoder's check and were decoded anyway.
    invalid_records: u32,
    pending: PendingRecords,
    /// The agent whose list of typed prompts the file seems to be.
    prompt_history: Option<&'static Agent>,
    /// What the file is, if it is of an agent that is not read.
    unsupported: Option<&'static str>,
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
            agent: None,
            tentative_format: None,
            sessions: Sessions::default(),
            current: None,
            named_by_file: false,
            fallback_id: None,
            former: None,
            is_rewritten: false,
            invalid_records: 0,
            pending: PendingRecords::default(),
            prompt_history: None,
            unsupported: None,
            events: Vec::new(),
            outline: JsonOutline::default(),
        }
    }

    /// Begins a file that replaces another one. If it is of the same format and names no session, it
    /// continues the session of the former.
    pub fn replacing(self, former: Option<Checkpoint>) -> FileDecoder {
        FileDecoder { former, ..self }
    }

    /// Begins a file that was read before with other content, for whatever comes later in it, too.
    pub fn rewritten(self, is_rewritten: bool) -> FileDecoder {
        FileDecoder { is_rewritten, ..self }
    }

    pub fn is_rewritten(&self) -> bool {
        self.is_rewritten
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
        let file_session =
            |session| Some(file_session(self.format?, self.agent, self.first?, session));
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
            Err(error) => self.refuse(line, format!("not a JSON object: {error}"), sink),
        }
        self.outline = outline;
    }

    /// Counts a line that cannot be read, and reports why.
    fn refuse(&mut self, line: Line<'_>, what: String, sink: &mut (impl RecordSink + ?Sized)) {
        let warning = self.warning(line, what);
        match self.current {
            Some(session) => self.unreadable(session, line.offset, warning, sink),
            None => self.hold_unreadable(line.offset, warning, sink),
        }
    }

    fn decode_fields(
        &mut self,
        line: Line<'_>,
        text: &str,
        replaced: bool,
        fields: &Fields<'_>,
        sink: &mut (impl RecordSink + ?Sized),
    ) {
        if self.format.is_none()
            && let Some(what) = unsupported::of_record(fields)
        {
            self.unsupported = Some(what);
            self.pending = PendingRecords { given_up: true, ..PendingRecords::default() };
            return;
        }
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
        self.decode_nested(session, line, text, fields, sink);
    }

    /// Decodes the conversations of sub-agents that are inside a record. Each is whole, so its
    /// decoder keeps no state after the record: a checkpoint stays small.
    fn decode_nested(
        &mut self,
        parent: SessionHandle,
        line: Line<'_>,
        text: &str,
        fields: &Fields<'_>,
        sink: &mut (impl RecordSink + ?Sized),
    ) {
        let Some(format) = self.format else { return };
        let held = &self.sessions[parent.0];
        for (chain, inner) in held.decoder.nested(&held.id, fields) {
            let Some(session) = self.open_chain(parent, &chain, sink) else { continue };
            let file_session = &mut self.sessions[session.0];
            file_session.decoder.begin_side_chain(&chain);
            let source = file_session.source;
            let record = Record { source, line: line.number, offset: line.offset, text };
            let outcome = file_session.decoder.decode(&record, &inner, &mut self.events);
            file_session.decoder = (format.decoder)();
            sink.record(DecodedRecord { session, line, outcome, events: &mut self.events });
            self.events.clear();
        }
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

    /// Ends the file as far as it is written. Held records go to a session named after the file.
    ///
    /// A growing file may be finished after every read. The guessed name can turn out wrong when
    /// the file grows, so such a state is not saved: the file is read again from its start.
    pub fn finish(&mut self, sink: &mut (impl RecordSink + ?Sized)) -> Verdict {
        self.settle(sink);
        for (_, warning) in std::mem::take(&mut self.pending.unreadable_lines) {
            sink.warn(None, warning);
        }
        if let Some(what) = self.unsupported {
            return Verdict::Unsupported { what };
        }
        match (self.current, self.first, self.prompt_history) {
            (Some(_), _, _) => Verdict::HasSessions,
            (None, None, _) => Verdict::Empty,
            (None, Some(_), Some(agent)) => Verdict::PromptHistory { agent: agent.name },
            (None, Some(_), None) => Verdict::Unknown,
        }
    }
}

#[cfg(test)]
#[path = "file_decoder_tests.rs"]
mod tests;
