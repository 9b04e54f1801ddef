//! Decodes any number of files into sessions held in memory, for `show`, `doctor` and tests.
//! Several feeds of one session (its log, stream and hooks) are folded into one transcript.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use thiserror::Error;
use unspool_core::assemble::Assembler;
use unspool_core::change::Oddity;
use unspool_core::event::Event;
use unspool_core::id::SessionId;
use unspool_core::session::Transcript;
use unspool_core::telling::Telling;
use unspool_core::transcript::Mirror;

use crate::decode::{Fate, Ledger, Warning};
use crate::read::lines::{Line, Position};
use crate::read::source;
use crate::reading::{self, Handle, LastLine, Sink, Taken, Told, Verdict, read_on};

/// Why a file gave no session.
#[derive(Debug, Error)]
pub enum GatherError {
    #[error("cannot read {path}")]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error(
        "{path} is Claude Code's list of typed prompts, not a session; sessions are under ~/.claude/projects"
    )]
    PromptHistory { path: PathBuf },
    #[error("unrecognised file format: {path}; `unspool import --help` lists what Unspool reads")]
    Unknown { path: PathBuf },
    #[error("{path} is empty")]
    Empty { path: PathBuf },
}

/// One session, folded from all of its feeds.
pub struct Gathered {
    pub agent: &'static str,
    pub agent_session_id: String,
    pub ledger: Ledger,
    pub warnings: Vec<Warning>,
    /// The strongest feed that was seen: hooks alone give an incomplete session.
    pub spine: Option<Telling>,
    sub_agent: bool,
    assembler: Assembler,
    mirror: Mirror,
}

impl Gathered {
    fn new(agent: &'static str, session: &str) -> Gathered {
        Gathered {
            agent,
            agent_session_id: session.to_owned(),
            ledger: Ledger::default(),
            warnings: Vec::new(),
            spine: None,
            sub_agent: false,
            assembler: Assembler::new(SessionId::of(agent, session)),
            mirror: Mirror::new(agent, session),
        }
    }

    fn apply(&mut self, events: &mut Vec<Event>) {
        for event in events.drain(..) {
            self.spine = self.spine.max(Some(event.telling));
            self.mirror.apply_all(self.assembler.apply(event));
        }
    }

    pub fn transcript(&self) -> Transcript {
        self.mirror.transcript()
    }

    /// True if the session has at least one turn.
    pub fn has_turns(&self) -> bool {
        self.mirror.turn_ids().next().is_some()
    }

    /// True for the session of a sub-agent.
    pub fn is_sub_agent(&self) -> bool {
        self.sub_agent
    }

    /// Events that were skipped, counted by reason.
    pub fn oddities(&self) -> Vec<(Oddity, u64)> {
        let mut odd: Vec<_> = self.mirror.oddities().collect();
        odd.sort_unstable();
        odd
    }
}

/// The result of one record, for callers that trace decoding.
pub struct Decoded<'a> {
    pub session: &'a str,
    pub line: u64,
    pub fate: &'a Fate,
    pub events: &'a [Event],
}

/// The sessions of any number of files.
#[derive(Default)]
pub struct Gathering {
    pub sessions: Vec<Gathered>,
    by_id: FxHashMap<(&'static str, String), usize>,
    /// Warnings of files without a session.
    pub warnings: Vec<Warning>,
    sources: u16,
    /// The source number of each log, by session and first record: a copy of a log is the same
    /// source.
    logs: FxHashMap<(usize, u64), u16>,
}

/// A file that is being decoded into the set.
pub struct Reading {
    reading: reading::Reading,
    /// The number of this file.
    number: u16,
    /// The index into `SessionSet::sessions` for each handle.
    sessions: Vec<usize>,
}

/// Folds decoded records into the set.
struct Fold<'g, 'w> {
    gathering: &'g mut Gathering,
    number: u16,
    sessions: &'g mut Vec<usize>,
    watch: &'w mut dyn FnMut(Decoded<'_>),
}

impl Sink for Fold<'_, '_> {
    fn source(&mut self, _: Handle, told: &Told<'_>) -> u16 {
        let session = self.gathering.session(told);
        self.sessions.push(session);
        if told.telling != Telling::Log {
            return self.number;
        }
        *self.gathering.logs.entry((session, told.first)).or_insert(self.number)
    }

    fn record(&mut self, taken: Taken<'_>) {
        let gathered = &mut self.gathering.sessions[self.sessions[taken.session.0]];
        if !matches!(taken.fate, Fate::Unreadable(_)) {
            (self.watch)(Decoded {
                session: &gathered.agent_session_id,
                line: taken.line.number,
                fate: &taken.fate,
                events: taken.events,
            });
        }
        gathered.ledger.enter(&taken.fate);
        gathered.apply(taken.events);
    }

    fn warn(&mut self, session: Option<Handle>, warning: Warning) {
        match session {
            Some(handle) => {
                self.gathering.sessions[self.sessions[handle.0]].warnings.push(warning);
            }
            None => self.gathering.warnings.push(warning),
        }
    }
}

impl Gathering {
    /// Begins a file or a stream. Warnings use `name`.
    pub fn open(&mut self, name: &str) -> Reading {
        let number = self.sources;
        self.sources = self.sources.saturating_add(1);
        Reading { reading: reading::Reading::new(name), number, sessions: Vec::new() }
    }

    pub fn take(&mut self, reading: &mut Reading, line: Line<'_>) {
        self.take_watched(reading, line, &mut |_| {});
    }

    /// Decodes one line and passes the result to `watch`.
    pub fn take_watched(
        &mut self,
        reading: &mut Reading,
        line: Line<'_>,
        watch: &mut dyn FnMut(Decoded<'_>),
    ) {
        let Reading { reading, number, sessions } = reading;
        reading.take(line, &mut Fold { gathering: self, number: *number, sessions, watch });
    }

    fn session(&mut self, told: &Told<'_>) -> usize {
        let key = (told.agent, told.session.to_owned());
        let session = *self.by_id.entry(key).or_insert_with_key(|(agent, id)| {
            self.sessions.push(Gathered::new(agent, id));
            self.sessions.len() - 1
        });
        self.sessions[session].sub_agent |= told.sub_agent;
        session
    }

    /// Ends a file. True if it held a session.
    pub fn close(&mut self, reading: Reading, watch: &mut dyn FnMut(Decoded<'_>)) -> bool {
        self.finish(reading, watch) == Verdict::Known
    }

    fn finish(&mut self, reading: Reading, watch: &mut dyn FnMut(Decoded<'_>)) -> Verdict {
        let Reading { mut reading, number, mut sessions } = reading;
        reading.finish(&mut Fold { gathering: self, number, sessions: &mut sessions, watch })
    }

    /// Reads a whole file.
    pub fn read_file(
        &mut self,
        path: &Path,
        watch: &mut dyn FnMut(Decoded<'_>),
    ) -> Result<(), GatherError> {
        let unreadable = |source| GatherError::Unreadable { path: path.to_owned(), source };
        let mut source = source::open(path).map_err(unreadable)?;
        self.read(path, source.text(), watch)
    }

    /// Reads a stream to its end. Warnings use `path`.
    pub fn read(
        &mut self,
        path: &Path,
        from: impl std::io::Read,
        watch: &mut dyn FnMut(Decoded<'_>),
    ) -> Result<(), GatherError> {
        let mut opened = self.open(&path.to_string_lossy());
        let Reading { reading, number, sessions } = &mut opened;
        let mut fold = Fold { gathering: self, number: *number, sessions, watch: &mut *watch };
        let (mut start, last) = (Position::default(), LastLine::TakeWhole);
        let go_on = |_: &_, _: &mut _, _| ControlFlow::Continue(());
        read_on(from, &mut start, last, reading, &mut fold, go_on)
            .map_err(|source| GatherError::Unreadable { path: path.to_owned(), source })?;
        let path = path.to_owned();
        match self.finish(opened, watch) {
            Verdict::Known => Ok(()),
            Verdict::Empty => Err(GatherError::Empty { path }),
            Verdict::PromptHistory => Err(GatherError::PromptHistory { path }),
            Verdict::Unknown => Err(GatherError::Unknown { path }),
        }
    }
}
