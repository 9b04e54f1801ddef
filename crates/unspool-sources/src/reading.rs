//! Reading: the lines of one file or stream go in; what format it is and whose session it tells is
//! recognised, its decoders run, and a `Sink` learns what came of every record. `gather` is a sink
//! that folds in memory; whoever keeps sessions is another.
//!
//! A reading can be saved behind any line and taken up by another process (`saved.rs`).

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

/// How much is kept of a file that does not say what it is. Beyond this we know nothing of it.
const EARLY_LIMIT: usize = 64 * 1024 * 1024;

/// How many records of a file are said to be wrong one by one.
const WRONG_LIMIT: u32 = 20;

/// A session that a file tells of: its place in the reading's list of them. It is the same after
/// the reading was saved and resumed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Handle(pub usize);

/// Who a file speaks of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Told<'a> {
    pub agent: &'static str,
    /// What the agent calls the session.
    pub session: &'a str,
    pub telling: Telling,
    /// A digest of the file's first record. A log and its copy have it in common.
    pub first: u64,
    /// Whether the session is a sub-agent's.
    pub sub_agent: bool,
    /// The session that a sub-agent works for, where the file says so.
    pub parent: Option<&'a str>,
}

/// What one record led to.
pub struct Taken<'a> {
    pub session: Handle,
    pub line: Line<'a>,
    pub fate: Fate,
    /// A sink takes out what it wants; the rest is dropped.
    pub events: &'a mut Vec<Event>,
}

/// Where a reading puts what it found.
pub trait Sink {
    /// The file begins to tell of a session: the number under which its evidence goes
    /// (`Evidence::source`). Asked once for each session of a file, before its first record, in
    /// the order of handles; a resumed reading does not ask again.
    fn source(&mut self, session: Handle, told: &Told<'_>) -> u16;

    /// What one record led to. A line that could not be read is a record too, without events;
    /// its warning follows.
    fn record(&mut self, taken: Taken<'_>);

    /// Something that a person should know, of a session or of a file that told none.
    fn warn(&mut self, session: Option<Handle>, warning: Warning);
}

/// What a file turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It tells of a session.
    Known,
    /// It holds no record at all.
    Empty,
    /// It is Claude Code's list of typed prompts.
    PromptHistory,
    /// It is nothing that we know.
    Unknown,
}

/// How far the reading of one file has come.
pub struct Reading {
    name: String,
    /// A digest of its first record.
    first: Option<u64>,
    whole: Whole,
    format: Option<&'static Format>,
    /// The format that it has if no later record says otherwise.
    perhaps: Option<&'static Format>,
    sessions: Vec<Session>,
    /// The session that a record belongs to when it does not say.
    current: Option<Handle>,
    /// No record said its session, so a name had to do; or none its format.
    named_by_file: bool,
    /// What a record calls its session that cannot know it.
    called: Option<String>,
    /// How much was found wrong with records that were read all the same.
    wrong: u32,
    early: Early,
    prompts: bool,
    /// The events of one record and its outline, kept for their memory.
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

/// What came before the first record that says its session.
#[derive(Default)]
struct Early {
    records: Vec<(u64, u64, Vec<u8>)>,
    /// Lines that could not be read, and where they stand.
    unread: Vec<(u64, Warning)>,
    size: usize,
    /// There was too much of it.
    given_up: bool,
}

impl Reading {
    /// Begins a file or a stream, under the name that warnings shall use.
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

    /// The sessions that were told so far and the number of each one's source, by their handles.
    pub fn sessions(&self) -> impl Iterator<Item = (Handle, Told<'_>, u16)> {
        let told = |session| Some(told(self.format?, self.first?, session));
        let held = self.sessions.iter().enumerate();
        held.filter_map(move |(at, held)| Some((Handle(at), told(held)?, held.source)))
    }

    /// The turn at which a session is, where its source says.
    pub fn turn(&self, session: Handle) -> Option<Name> {
        self.sessions.get(session.0)?.decoder.turn()
    }

    /// Takes one line.
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
        // Checking is three times as fast as looking for what to replace.
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

    /// Somebody who writes records in a wrong form writes all of them so: the first few are told.
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
                format!("{what}; what more is wrong in this file is not told")
            }
            _ => return,
        };
        let warning = Warning { bytes: Vec::new(), ..self.warning(line, what) };
        sink.warn(Some(session), warning);
    }

    fn warning(&self, line: Line<'_>, what: String) -> Warning {
        Warning { file: self.name.clone(), line: line.number, what, bytes: line.bytes.to_vec() }
    }

    // ── Whose record it is ──────────────────────────────────────────────────────────────────

    /// The session of a record; nothing while the file has not said it. What came before is
    /// taken as soon as it has.
    fn place(&mut self, fields: &Fields<'_>, sink: &mut (impl Sink + ?Sized)) -> Option<Handle> {
        let session = self.place_by_name(fields, sink)?;
        Some(self.side_chain(session, fields, sink).unwrap_or(session))
    }

    /// The sub-agent whose record it is, where a session's log holds those of its sub-agents.
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
        // What does not say whose it is belongs to the log's own session.
        self.current = Some(session);
        Some(entered)
    }

    fn place_by_name(
        &mut self,
        fields: &Fields<'_>,
        sink: &mut (impl Sink + ?Sized),
    ) -> Option<Handle> {
        let recognised = match (self.format, self.current) {
            // A log or a stream is one session, and stays it when the program drops the id that
            // it began with. Hooks of several sessions may come in one file.
            (Some(format), Some(current)) if format.tells == Tells::One => {
                return Some(current);
            }
            // A file keeps its format, and a record that we do not know goes to its decoder.
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
            // Nobody knows it before it is told.
            Recognised::Own => {
                let own = self.own()?;
                self.current = Some(own);
                self.current
            }
            Recognised::Session(id) | Recognised::Perhaps(id) => self.enter(&id, None, false, sink),
            Recognised::SubAgent { id, parent } => self.enter(&id, parent.as_deref(), true, sink),
        }
    }

    /// The format is known: so is whose the records are that left it open.
    fn decide(&mut self, format: &'static Format, sink: &mut (impl Sink + ?Sized)) {
        self.format = Some(format);
        if self.perhaps.take().is_some() {
            for (number, offset, bytes) in std::mem::take(&mut self.early.records) {
                self.take_record(Line { number, offset, bytes: &bytes }, sink);
            }
        }
    }

    /// The session that the file itself is about: its sub-agents may be told of before it is.
    fn own(&self) -> Option<Handle> {
        self.sessions.iter().position(|session| !session.sub_agent).map(Handle)
    }

    /// The handle of a session, which may be the first one that the file names.
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
            // What was early may belong to other sessions.
            self.current = Some(session);
        }
        Some(session)
    }

    // ── What comes before the file says its session ─────────────────────────────────────────

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

    /// Memory is bounded: of a large file that does not say what it is, we know what we know.
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

    /// Where no record said its session, the head of the document has to do, or what a record calls
    /// it, or the file's name.
    fn settle(&mut self, sink: &mut (impl Sink + ?Sized)) {
        if let Some(format) = self.perhaps {
            // Another record may still say otherwise.
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

    /// The id that stands around the records of a document: on the line before them, or behind.
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

    /// Whether its records wait for one that says whose they are.
    pub fn is_undecided(&self) -> bool {
        let known = self.format.or(self.perhaps).is_some();
        known && (self.current.is_none() || !self.early.records.is_empty())
    }

    /// Ends the reading, for now at least: what waits for a session is given to the one that the
    /// file is named after. Says what the file is.
    ///
    /// A file that grows may be finished after each look at it. Such a name may turn out to be
    /// wrong when the file grows, and so it is not saved: then all of it is read again.
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
