//! Gathering: the records of any number of files, sorted by session and telling, decoded and
//! folded. Several captures of one session become one session.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use thiserror::Error;
use unspool_core::assemble::Assembler;
use unspool_core::change::Oddity;
use unspool_core::event::Event;
use unspool_core::id::{SessionId, digest};
use unspool_core::session::Transcript;
use unspool_core::telling::Telling;
use unspool_core::transcript::Mirror;

use crate::decode::{
    Decoder, Fate, Fields, Format, Ledger, Recognised, Record, Warning, recognise,
};
use crate::read::lines::{self, Line};

/// Why a file gave nothing.
#[derive(Debug, Error)]
pub enum GatherError {
    #[error("cannot read {path}")]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error(
        "{path} is Claude Code's list of typed prompts, not a session; sessions lie under ~/.claude/projects"
    )]
    PromptHistory { path: PathBuf },
    #[error(
        "{path} is nothing that Unspool knows; it reads Claude Code's session logs, its stream-json and its hook payloads"
    )]
    Unknown { path: PathBuf },
    #[error("{path} is empty")]
    Empty { path: PathBuf },
}

/// One session with everything that told of it.
pub struct Gathered {
    pub agent: &'static str,
    pub agent_session_id: String,
    pub ledger: Ledger,
    pub warnings: Vec<Warning>,
    /// The strongest telling that spoke: without a log or a stream there are only hooks.
    pub spine: Option<Telling>,
    sub_agent: bool,
    assembler: Assembler,
    mirror: Mirror,
    decoders: FxHashMap<u16, Box<dyn Decoder>>,
}

impl Gathered {
    fn new(format: &Format, session: &str) -> Gathered {
        Gathered {
            agent: format.agent,
            agent_session_id: session.to_owned(),
            ledger: Ledger::default(),
            warnings: Vec::new(),
            spine: None,
            sub_agent: false,
            assembler: Assembler::new(SessionId::of(format.agent, session)),
            mirror: Mirror::new(format.agent, session),
            decoders: FxHashMap::default(),
        }
    }

    fn apply(&mut self, events: Vec<Event>) {
        for event in events {
            self.spine = self.spine.max(Some(event.telling));
            self.mirror.apply_all(self.assembler.apply(event));
        }
    }

    pub fn transcript(&self) -> Transcript {
        self.mirror.transcript()
    }

    /// Whether anybody said anything in it.
    pub fn has_turns(&self) -> bool {
        self.mirror.turn_ids().next().is_some()
    }

    /// Whether this is a sub-agent's own log.
    pub fn is_sub_agent(&self) -> bool {
        self.sub_agent
    }

    /// Events that were counted and not applied.
    pub fn oddities(&self) -> Vec<(Oddity, u64)> {
        let mut odd: Vec<_> = self.mirror.oddities().collect();
        odd.sort_unstable();
        odd
    }
}

/// What a record led to, for those who want to watch.
pub struct Decoded<'a> {
    pub session: &'a str,
    pub line: u64,
    pub fate: &'a Fate,
    pub events: &'a [Event],
}

/// Gathers the sessions of any number of files.
#[derive(Default)]
pub struct Gathering {
    pub sessions: Vec<Gathered>,
    by_id: FxHashMap<(&'static str, String), usize>,
    /// Of files in which no session was recognised.
    pub warnings: Vec<Warning>,
    sources: u16,
    /// The source that each log is, by its session and its first record: a copy is the same one.
    logs: FxHashMap<(usize, u64), u16>,
}

/// How far the reading of one file has come.
pub struct Reading {
    name: String,
    /// Which reading this is: each has a decoder of its own.
    id: u16,
    /// Which source it is, for evidence.
    source: u16,
    /// A digest of its first record.
    first: Option<u64>,
    format: Option<&'static Format>,
    /// The session that a record belongs to when it does not say.
    session: Option<usize>,
    /// Records that came before the first one that says its session.
    early: Vec<(u64, u64, Vec<u8>)>,
    /// Lines that could not be read before then.
    unread: Vec<Warning>,
    records: u64,
    prompts: bool,
}

impl Gathering {
    /// Begins a file or a stream, under the name that warnings shall use.
    pub fn open(&mut self, name: &str) -> Reading {
        let source = self.sources;
        self.sources = self.sources.saturating_add(1);
        Reading {
            name: name.to_owned(),
            id: source,
            source,
            first: None,
            format: None,
            session: None,
            early: Vec::new(),
            unread: Vec::new(),
            records: 0,
            prompts: false,
        }
    }

    pub fn take(&mut self, reading: &mut Reading, line: Line<'_>) {
        self.take_watched(reading, line, &mut |_| {});
    }

    /// Takes one record and shows what came of it.
    pub fn take_watched(
        &mut self,
        reading: &mut Reading,
        line: Line<'_>,
        watch: &mut dyn FnMut(Decoded<'_>),
    ) {
        reading.records += 1;
        reading.first.get_or_insert_with(|| digest(line.bytes));
        let text = String::from_utf8_lossy(line.bytes);
        let name = reading.name.clone();
        let warning = |what: String| Warning {
            file: name.clone(),
            line: line.number,
            what,
            bytes: line.bytes.to_vec(),
        };
        let fields = match Fields::parse(&text) {
            Ok(fields) => fields,
            Err(error) => {
                let warning = warning(format!("not a JSON object: {error}"));
                match reading.session {
                    Some(session) => self.unreadable(session, warning),
                    None => reading.unread.push(warning),
                }
                return;
            }
        };
        reading.prompts |= fields.has("display") && fields.has("pastedContents");
        let Some((format, session)) = self.place(reading, &fields) else {
            return reading.early.push((line.number, line.offset, line.bytes.to_vec()));
        };
        if !reading.early.is_empty() {
            for (number, offset, bytes) in std::mem::take(&mut reading.early) {
                reading.records -= 1;
                self.take_watched(reading, Line { number, offset, bytes: &bytes }, watch);
            }
        }
        let gathered = &mut self.sessions[session];
        gathered.sub_agent |= ["agentId", "agent_id"]
            .into_iter()
            .any(|name| fields.text(name).is_some_and(|id| *id == gathered.agent_session_id));
        if matches!(text, std::borrow::Cow::Owned(_)) {
            gathered.warnings.push(warning("invalid UTF-8 was replaced".to_owned()));
        }
        let record =
            Record { source: reading.source, line: line.number, offset: line.offset, text: &text };
        let decoder = gathered.decoders.entry(reading.id).or_insert_with(|| (format.decoder)());
        let mut events = Vec::new();
        let fate = decoder.decode(&record, &fields, &mut events);
        watch(Decoded {
            session: &gathered.agent_session_id,
            line: line.number,
            fate: &fate,
            events: &events,
        });
        gathered.ledger.enter(&fate);
        gathered.apply(events);
    }

    fn unreadable(&mut self, session: usize, warning: Warning) {
        let gathered = &mut self.sessions[session];
        gathered.ledger.enter(&Fate::Unreadable(warning.what.clone()));
        gathered.warnings.push(warning);
    }

    /// The format and the session of a record; nothing while the file has not said them.
    fn place(
        &mut self,
        reading: &mut Reading,
        fields: &Fields<'_>,
    ) -> Option<(&'static Format, usize)> {
        let (format, recognised) = match reading.format {
            // A file keeps its format, and a record that we do not know goes to its decoder.
            Some(format) => (format, (format.recognise)(fields).unwrap_or(Recognised::Format)),
            None => recognise(fields)?,
        };
        reading.format = Some(format);
        let id = match recognised {
            Recognised::Session(id) => id,
            Recognised::Format => return Some((format, reading.session?)),
        };
        // Hooks of several sessions may come in one file. A log or a stream is one session,
        // and stays it when the program drops the id that it began with.
        if let Some(session) = reading.session.filter(|_| format.telling != Telling::Hooks) {
            return Some((format, session));
        }
        let session = self.session(format, id);
        reading.session = Some(session);
        if let Some(first) = reading.first.filter(|_| format.telling == Telling::Log) {
            reading.source = *self.logs.entry((session, first)).or_insert(reading.source);
        }
        for warning in std::mem::take(&mut reading.unread) {
            self.unreadable(session, warning);
        }
        Some((format, session))
    }

    fn session(&mut self, format: &'static Format, id: String) -> usize {
        *self.by_id.entry((format.agent, id)).or_insert_with_key(|(_, id)| {
            self.sessions.push(Gathered::new(format, id));
            self.sessions.len() - 1
        })
    }

    /// Ends a file. Says whether it was anything we know.
    pub fn close(&mut self, mut reading: Reading, watch: &mut dyn FnMut(Decoded<'_>)) -> bool {
        if let (None, Some(format)) = (reading.session, reading.format) {
            // No record said its session: the file's own name has to do.
            let name = Path::new(&reading.name);
            let stem = name.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            let session = self.session(format, stem.unwrap_or_default());
            reading.session = Some(session);
            for warning in std::mem::take(&mut reading.unread) {
                self.unreadable(session, warning);
            }
            for (number, offset, bytes) in std::mem::take(&mut reading.early) {
                self.take_watched(&mut reading, Line { number, offset, bytes: &bytes }, watch);
            }
        }
        self.warnings.append(&mut reading.unread);
        reading.session.is_some()
    }

    /// Reads a whole file.
    pub fn read_file(
        &mut self,
        path: &Path,
        watch: &mut dyn FnMut(Decoded<'_>),
    ) -> Result<(), GatherError> {
        let file = std::fs::File::open(path)
            .map_err(|source| GatherError::Unreadable { path: path.to_owned(), source })?;
        self.read(path, file, watch)
    }

    /// Reads a stream to its end, under a name.
    pub fn read(
        &mut self,
        path: &Path,
        from: impl std::io::Read,
        watch: &mut dyn FnMut(Decoded<'_>),
    ) -> Result<(), GatherError> {
        let mut reading = self.open(&path.to_string_lossy());
        let mut take = |line: Line<'_>| self.take_watched(&mut reading, line, watch);
        let end = lines::read(from, &mut take)
            .map_err(|source| GatherError::Unreadable { path: path.to_owned(), source })?;
        // A last line without its end may still be being written; whole, it counts.
        // Cut, it is no record yet, and is said to be there.
        if let Some(unfinished) = end.unfinished {
            if serde_json::from_slice::<serde::de::IgnoredAny>(&unfinished.bytes).is_ok() {
                self.take_watched(&mut reading, unfinished.as_line(), watch);
            } else {
                let warning = Warning {
                    file: reading.name.clone(),
                    line: unfinished.number,
                    what: "the last line is not finished, and was not read".to_owned(),
                    bytes: unfinished.bytes,
                };
                match reading.session {
                    Some(session) => self.sessions[session].warnings.push(warning),
                    None => self.warnings.push(warning),
                }
            }
        }
        let (records, prompts) = (reading.records, reading.prompts);
        if self.close(reading, watch) {
            return Ok(());
        }
        let path = path.to_owned();
        Err(match (records, prompts) {
            (0, _) => GatherError::Empty { path },
            (_, true) => GatherError::PromptHistory { path },
            (_, false) => GatherError::Unknown { path },
        })
    }
}
