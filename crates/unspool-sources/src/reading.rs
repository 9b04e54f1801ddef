//! Decodes one file or stream. Lines come in from `input.rs`. `FileDecoder` detects the format and
//! the session of each record, runs one decoder per session, and passes the result of every record
//! to a `RecordSink`. `in_memory` is a sink that folds in memory; the engine's worker is another.
//!
//! The state can be saved after any line and resumed by another process (`checkpoint.rs`).

mod on;
mod saved;
mod whole;

use std::borrow::Cow;
use std::path::Path;

use unspool_core::event::Event;
use unspool_core::id::digest;
use unspool_core::telling::{Name, Telling};

use crate::decode::{
    Decoder, Fate, Fields, Format, Outline, Recognised, Record, Tells, Warning, recognise,
};
use crate::read::lines::Line;

pub use on::{LastLine, Reached, UNFINISHED, read_on};
pub use saved::Saved;
pub use whole::Whole;

/// How many bytes of a file are held until a record identifies its session. Beyond this limit the
/// file counts as unrecognised.
const EARLY_LIMIT: usize = 64 * 1024 * 1024;

/// How many invalid records of a file get a warning each.
const WRONG_LIMIT: u32 = 20;

/// A session of the file: its index in the decoder's list of sessions. It survives saving and
/// resuming.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Handle(pub usize);

/// Identifies a session of a file, and the feed that the file is for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Told<'a> {
    pub agent: &'static str,
    /// The agent's own id of the session.
    pub session: &'a str,
    pub telling: Telling,
    /// A digest of the file's first record. A log and its copy share it.
    pub first: u64,
    /// True for the session of a sub-agent.
    pub sub_agent: bool,
    /// The session that started a sub-agent, if the file names it.
    pub parent: Option<&'a str>,
}

/// The result of decoding one record.
pub struct Taken<'a> {
    pub session: Handle,
    pub line: Line<'a>,
    pub fate: Fate,
    /// The sink drains the events that it wants; the rest are dropped.
    pub events: &'a mut Vec<Event>,
}

/// Receives the sessions, records and warnings of a file.
pub trait Sink {
    /// A new session of the file. Returns the source number for its evidence
    /// (`Evidence::source`). Called once per session, before its first record, in the order of
    /// handles; not called again after a resume.
    fn source(&mut self, session: Handle, told: &Told<'_>) -> u16;

    /// One decoded record. An unreadable line counts as a record without events; its warning
    /// follows.
    fn record(&mut self, taken: Taken<'_>);

    /// A warning about a session, or about a file without a session.
    fn warn(&mut self, session: Option<Handle>, warning: Warning);
}

/// The result of reading a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It holds at least one session.
    Known,
    /// It holds no records.
    Empty,
    /// It is Claude Code's `history.jsonl`, a list of typed prompts.
    PromptHistory,
    /// No format matched.
    Unknown,
}

/// The decoding state of one file.
pub struct Reading {
    name: String,
    /// A digest of the file's first record.
    first: Option<u64>,
    whole: Whole,
    format: Option<&'static Format>,
    /// The format unless a later record decides otherwise.
    perhaps: Option<&'static Format>,
    sessions: Vec<Session>,
    /// The session of records that name none.
    current: Option<Handle>,
    /// The session id (or the format) is a guess, because no record named it.
    named_by_file: bool,
    /// The session id to use if no record names one for certain.
    called: Option<String>,
    /// How many records failed the decoder's check and were decoded anyway.
    wrong: u32,
    early: Early,
    prompts: bool,
    /// The events and the outline of one record; reused to save allocations.
    events: Vec<Event>,
    outline: Outline,
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
struct Early {
    records: Vec<(u64, u64, Vec<u8>)>,
    /// Lines that could not be read, with their offsets.
    unread: Vec<(u64, Warning)>,
    size: usize,
    /// The limit was exceeded and the lines were dropped.
    given_up: bool,
}

impl Reading {
    /// Begins a file or a stream. Warnings use `name`.
    pub fn new(name: &str) -> Reading {
        Reading {
            name: name.to_owned(),
            first: None,
            whole: Whole::default(),
            format: None,
            perhaps: None,
            sessions: Vec::new(),
            current: None,
            named_by_file: false,
            called: None,
            wrong: 0,
            early: Early::default(),
            prompts: false,
            events: Vec::new(),
            outline: Outline::default(),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The session of the latest record.
    pub fn current(&self) -> Option<Handle> {
        self.current
    }

    /// The sessions found so far, with the source number of each, in the order of handles.
    pub fn sessions(&self) -> impl Iterator<Item = (Handle, Told<'_>, u16)> {
        let told = |session| Some(told(self.format?, self.first?, session));
        let held = self.sessions.iter().enumerate();
        held.filter_map(move |(at, held)| Some((Handle(at), told(held)?, held.source)))
    }

    /// The current turn of a session, if its format names turns.
    pub fn turn(&self, session: Handle) -> Option<Name> {
        self.sessions.get(session.0)?.decoder.turn()
    }

    /// Decodes one line.
    pub fn take(&mut self, line: Line<'_>, sink: &mut (impl Sink + ?Sized)) {
        let of_line = digest(line.bytes);
        self.first.get_or_insert(of_line);
        self.whole.add(line.offset, of_line);
        if !self.early.given_up {
            self.take_record(line, sink);
        }
    }

    fn take_record(&mut self, line: Line<'_>, sink: &mut (impl Sink + ?Sized)) {
        let mut outline = std::mem::take(&mut self.outline);
        // Validating is three times as fast as a lossy conversion.
        let text = match std::str::from_utf8(line.bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(line.bytes),
        };
        match outline.read(&text) {
            Ok(fields) => {
                let replaced = matches!(text, Cow::Owned(_));
                self.take_fields(line, &text, replaced, &fields, sink);
            }
            Err(error) => {
                let warning = self.warning(line, format!("not a JSON object: {error}"));
                match self.current {
                    Some(session) => self.unreadable(session, line.offset, warning, sink),
                    None => self.keep_unread(line.offset, warning, sink),
                }
            }
        }
        self.outline = outline;
    }

    fn take_fields(
        &mut self,
        line: Line<'_>,
        text: &str,
        replaced: bool,
        fields: &Fields<'_>,
        sink: &mut (impl Sink + ?Sized),
    ) {
        let Some(session) = self.place(fields, sink) else {
            self.prompts |= fields.has("display") && fields.has("pastedContents");
            return self.keep_early(line, sink);
        };
        if replaced {
            let warning = self.warning(line, "invalid UTF-8 was replaced".to_owned());
            sink.warn(Some(session), warning);
        }
        if let Err(what) = self.sessions[session.0].decoder.check(fields) {
            self.tell_wrong(session, line, what, sink);
        }
        let told = &mut self.sessions[session.0];
        let source = told.source;
        let record = Record { source, line: line.number, offset: line.offset, text };
        let fate = told.decoder.decode(&record, fields, &mut self.events);
        sink.record(Taken { session, line, fate, events: &mut self.events });
        self.events.clear();
    }

    /// A program that writes invalid records usually writes many: only the first few are reported.
    fn tell_wrong(
        &mut self,
        session: Handle,
        line: Line<'_>,
        what: String,
        sink: &mut (impl Sink + ?Sized),
    ) {
        self.wrong = self.wrong.saturating_add(1);
        let what = match self.wrong {
            ..=WRONG_LIMIT => what,
            number if number == WRONG_LIMIT + 1 => {
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
    fn place(&mut self, fields: &Fields<'_>, sink: &mut (impl Sink + ?Sized)) -> Option<Handle> {
        let session = self.place_by_name(fields, sink)?;
        Some(self.side_chain(session, fields, sink).unwrap_or(session))
    }

    /// The sub-agent of a record, for logs that also hold the records of sub-agents.
    fn side_chain(
        &mut self,
        session: Handle,
        fields: &Fields<'_>,
        sink: &mut (impl Sink + ?Sized),
    ) -> Option<Handle> {
        let told = self.sessions.get_mut(session.0)?;
        let chain = told.decoder.side_chain(&told.id, fields);
        let ended = told.decoder.ended_chains();
        for over in self.sessions.iter_mut().filter(|held| ended.iter().any(|id| **id == *held.id))
        {
            over.decoder = (self.format?.decoder)();
        }
        let chain = chain?;
        let known = self.sessions.len();
        let entered = self.enter(&chain.id, Some(&chain.parent), true, sink)?;
        if entered.0 == known {
            self.sessions[entered.0].decoder.follow(&chain);
        }
        // Records that name no session belong to the log's main session.
        self.current = Some(session);
        Some(entered)
    }

    fn place_by_name(
        &mut self,
        fields: &Fields<'_>,
        sink: &mut (impl Sink + ?Sized),
    ) -> Option<Handle> {
        let recognised = match (self.format, self.current) {
            // A log or a stream is one session, even if the program later drops the id that it
            // began with. One file of hooks may hold several sessions.
            (Some(format), Some(current)) if format.tells == Tells::One => {
                return Some(current);
            }
            // A file keeps its format; its decoder also gets records of unknown kinds.
            (Some(format), _) => (format.recognise)(fields).unwrap_or(Recognised::Format),
            (None, _) => {
                let (format, recognised) = recognise(fields)?;
                if matches!(recognised, Recognised::Perhaps(_)) {
                    self.perhaps = self.perhaps.or(Some(format));
                    return None;
                }
                self.decide(format, sink);
                recognised
            }
        };
        match recognised {
            Recognised::Format => self.current,
            Recognised::Named(name) => {
                self.called.get_or_insert_with(|| name.into_owned());
                self.current
            }
            // `None` until the main session was named.
            Recognised::Own => {
                let own = self.own()?;
                self.current = Some(own);
                self.current
            }
            Recognised::Session(id) | Recognised::Perhaps(id) => self.enter(&id, None, false, sink),
            Recognised::SubAgent { id, parent } => self.enter(&id, parent.as_deref(), true, sink),
        }
    }

    /// Sets the format, and decodes the records that were held while it was ambiguous.
    fn decide(&mut self, format: &'static Format, sink: &mut (impl Sink + ?Sized)) {
        self.format = Some(format);
        if self.perhaps.take().is_some() {
            for (number, offset, bytes) in std::mem::take(&mut self.early.records) {
                self.take_record(Line { number, offset, bytes: &bytes }, sink);
            }
        }
    }

    /// The main session of the file. Its sub-agents may appear before it does.
    fn own(&self) -> Option<Handle> {
        self.sessions.iter().position(|session| !session.sub_agent).map(Handle)
    }

    /// The handle of the session with this id. Opens it if it is new.
    fn enter(
        &mut self,
        id: &str,
        parent: Option<&str>,
        sub_agent: bool,
        sink: &mut (impl Sink + ?Sized),
    ) -> Option<Handle> {
        let format = self.format?;
        let is = |handle: &Handle| self.sessions[handle.0].id == id;
        let known = self.current.filter(is);
        let known = known.or_else(|| (0..self.sessions.len()).map(Handle).find(is));
        let session = known.unwrap_or_else(|| {
            let handle = Handle(self.sessions.len());
            let (id, parent) = (id.to_owned(), parent.map(str::to_owned));
            let mut decoder = (format.decoder)();
            let own = self.own().filter(|_| sub_agent).and_then(|own| self.sessions.get(own.0));
            if let Some(surroundings) = own.and_then(|own| own.decoder.surroundings()) {
                decoder.begin_in(surroundings);
            }
            let mut session = Session { id, sub_agent, parent, source: 0, decoder };
            let first = self.first.unwrap_or_default();
            session.source = sink.source(handle, &told(format, first, &session));
            self.sessions.push(session);
            handle
        });
        let first = self.current.replace(session).is_none();
        if first || (known.is_none() && !sub_agent) {
            self.take_early(session, sink);
            // Held lines may belong to other sessions.
            self.current = Some(session);
        }
        Some(session)
    }

    // ── Lines before the first session ──────────────────────────────────────────────────────

    fn keep_early(&mut self, line: Line<'_>, sink: &mut (impl Sink + ?Sized)) {
        self.early.size += line.bytes.len();
        self.early.records.push((line.number, line.offset, line.bytes.to_vec()));
        self.limit_early(sink);
    }

    fn keep_unread(&mut self, offset: u64, warning: Warning, sink: &mut (impl Sink + ?Sized)) {
        self.early.size += warning.bytes.len();
        self.early.unread.push((offset, warning));
        self.limit_early(sink);
    }

    /// Bounds memory: at the limit, decides with what is known so far.
    fn limit_early(&mut self, sink: &mut (impl Sink + ?Sized)) {
        if self.early.size > EARLY_LIMIT {
            self.settle(sink);
            self.early = Early { given_up: self.current.is_none(), ..Early::default() };
        }
    }

    fn take_early(&mut self, session: Handle, sink: &mut (impl Sink + ?Sized)) {
        let early = std::mem::take(&mut self.early);
        for (offset, warning) in early.unread {
            self.unreadable(session, offset, warning, sink);
        }
        for (number, offset, bytes) in early.records {
            self.take_record(Line { number, offset, bytes: &bytes }, sink);
        }
    }

    fn unreadable(
        &mut self,
        session: Handle,
        offset: u64,
        warning: Warning,
        sink: &mut (impl Sink + ?Sized),
    ) {
        let line = Line { number: warning.line, offset, bytes: &warning.bytes };
        let fate = Fate::Unreadable(warning.what.clone());
        sink.record(Taken { session, line, fate, events: &mut self.events });
        sink.warn(Some(session), warning);
    }

    /// If no record named a session, takes the id from the head of the document, else from the
    /// fallback id, else from the file name.
    fn settle(&mut self, sink: &mut (impl Sink + ?Sized)) {
        if let Some(format) = self.perhaps {
            // A later record may still decide otherwise.
            self.named_by_file = true;
            self.decide(format, sink);
        }
        if let Some(format) = self.format.filter(|_| self.is_undecided()) {
            let id = self.head(format).or_else(|| self.called.clone()).unwrap_or_else(|| {
                let stem = Path::new(&self.name).file_stem().unwrap_or_default();
                stem.to_string_lossy().into_owned()
            });
            self.named_by_file = true;
            self.enter(&id, None, false, sink);
        }
    }

    /// The id of a document: on the line before its records or on the line after them.
    fn head(&self, format: &Format) -> Option<String> {
        let records = &self.early.records;
        let around = records.first().into_iter().chain(records.last());
        around.into_iter().find_map(|(_, _, bytes)| {
            let text = String::from_utf8_lossy(bytes);
            let mut outline = Outline::default();
            let fields = outline.read(&text).ok()?;
            let own = (format.recognise)(&fields).is_none();
            let named = |name: &str| fields.string(name).filter(|id| own && !id.is_empty());
            named("id").or_else(|| named("session_id"))
        })
    }

    /// True while records are held until one names their session.
    pub fn is_undecided(&self) -> bool {
        let known = self.format.or(self.perhaps).is_some();
        known && (self.current.is_none() || !self.early.records.is_empty())
    }

    /// Ends the file as far as it is written. Held records go to a session named after the file.
    ///
    /// A growing file may be finished after every read. The guessed name can turn out wrong when
    /// the file grows, so such a state is not saved: the file is read again from its start.
    pub fn finish(&mut self, sink: &mut (impl Sink + ?Sized)) -> Verdict {
        self.settle(sink);
        for (_, warning) in std::mem::take(&mut self.early.unread) {
            sink.warn(None, warning);
        }
        match (self.current, self.first) {
            (Some(_), _) => Verdict::Known,
            (None, None) => Verdict::Empty,
            (None, Some(_)) if self.prompts => Verdict::PromptHistory,
            (None, Some(_)) => Verdict::Unknown,
        }
    }
}

fn told<'a>(format: &'static Format, first: u64, session: &'a Session) -> Told<'a> {
    Told {
        agent: format.agent,
        session: &session.id,
        telling: format.telling,
        first,
        sub_agent: session.sub_agent,
        parent: session.parent.as_deref(),
    }
}

#[cfg(test)]
#[path = "reading_tests.rs"]
mod tests;
