//! Decodes any number of files into sessions held in memory, for `show`, `doctor` and tests.
//! Several feeds of one session (its log, stream and hooks) are folded into one transcript.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use thiserror::Error;
use unspool_model::assemble::Assembler;
use unspool_model::change::{Change, SkipReason};
use unspool_model::event::Event;
use unspool_model::id::SessionId;
use unspool_model::json::Json;
use unspool_model::prompt::{PieceTexts, PromptRecord, PromptTree, RecordedPrompts};
use unspool_model::provenance::Feed;
use unspool_model::session::Transcript;
use unspool_model::transcript::TranscriptBuilder;

use crate::agents::Agent;
use crate::decode::{RecordCounts, RecordOutcome, Warning};
use crate::file_decoder::{
    self, DecodedRecord, LastLine, RecordSink, SessionHandle, SessionIdent, Verdict, decode_from,
};
use crate::read::lines::{Line, ReadPosition};
use crate::read::source;

/// Why a file gave no session.
#[derive(Debug, Error)]
pub enum LoadError {
    #[error("cannot read {path}")]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error(
        "{path} is {title}'s list of typed prompts, not a session; sessions are under {folder}"
    )]
    PromptHistory { path: PathBuf, title: &'static str, folder: String },
    #[error(
        "unrecognised file format: {path}; `unspool import --help` lists the supported formats"
    )]
    Unknown { path: PathBuf },
    #[error(
        "{path} is {what}, which unspool does not read yet; `unspool import --help` lists the \
         supported formats"
    )]
    Unsupported { path: PathBuf, what: &'static str },
    #[error("{path} is empty")]
    Empty { path: PathBuf },
}

/// One session, folded from all of its feeds.
pub struct DecodedSession {
    pub agent: &'static str,
    pub agent_session_id: String,
    pub record_counts: RecordCounts,
    pub warnings: Vec<Warning>,
    /// The strongest feed that was seen: hooks alone give an incomplete session.
    pub spine: Option<Feed>,
    sub_agent: bool,
    assembler: Assembler,
    builder: TranscriptBuilder,
    prompts: Vec<PromptRecord>,
    /// Contents that are kept once, by their digests.
    snapshots: FxHashMap<String, Json>,
}

impl DecodedSession {
    fn new(agent: &'static str, session: &str) -> DecodedSession {
        DecodedSession {
            agent,
            agent_session_id: session.to_owned(),
            record_counts: RecordCounts::default(),
            warnings: Vec::new(),
            spine: None,
            sub_agent: false,
            assembler: Assembler::new(SessionId::of(agent, session)),
            builder: TranscriptBuilder::new(agent, session),
            prompts: Vec::new(),
            snapshots: FxHashMap::default(),
        }
    }

    fn apply(&mut self, events: &mut Vec<Event>, seen: &mut dyn FnMut(&Change)) {
        for event in events.drain(..) {
            self.spine = self.spine.max(Some(event.feed));
            for change in self.assembler.apply(event) {
                seen(&change);
                if let Change::PromptRecorded(record) = &change {
                    self.prompts.push((**record).clone());
                } else if let Change::SnapshotTaken { sha256, content, .. } = &change {
                    self.snapshots.insert(sha256.clone(), content.clone());
                }
                self.builder.apply(change);
            }
        }
    }

    /// Puts the turns of several files in order, when a file has ended.
    fn order_sources(&mut self, seen: &mut dyn FnMut(&Change)) {
        for change in self.assembler.order_sources() {
            seen(&change);
            self.builder.apply(change);
        }
    }

    /// What the model calls were sent; `None` if the agent does not record it.
    pub fn prompts(&self) -> Option<RecordedPrompts> {
        let tree = PromptTree::new(self.prompts.iter().cloned());
        let transcript = self.transcript();
        let mut texts = PieceTexts::new(transcript.session.id);
        for (sha256, content) in &self.snapshots {
            if let Some(text) = content.read::<String>() {
                texts.add_kept(sha256.clone(), text.into());
            }
        }
        let parts = transcript.turns.into_iter().flat_map(|turn| turn.parts);
        parts.for_each(|part| texts.add_part(part));
        (!tree.is_empty()).then(|| RecordedPrompts::new(tree, &texts))
    }

    pub fn transcript(&self) -> Transcript {
        self.builder.transcript()
    }

    /// True if the session has at least one turn.
    pub fn has_turns(&self) -> bool {
        self.builder.turn_ids().next().is_some()
    }

    /// True for the session of a sub-agent.
    pub fn is_sub_agent(&self) -> bool {
        self.sub_agent
    }

    /// Events that were skipped, counted by reason.
    pub fn skip_counts(&self) -> Vec<(SkipReason, u64)> {
        let mut odd: Vec<_> = self.builder.skip_counts().collect();
        odd.sort_unstable();
        odd
    }
}

/// The result of one record, for callers that trace decoding.
pub struct RecordTrace<'a> {
    pub session: &'a str,
    pub line: u64,
    pub outcome: &'a RecordOutcome,
    pub events: &'a [Event],
}

/// The sessions of any number of files.
#[derive(Default)]
pub struct SessionSet {
    pub sessions: Vec<DecodedSession>,
    by_id: FxHashMap<(&'static str, String), usize>,
    /// Warnings of files without a session.
    pub warnings: Vec<Warning>,
    sources: u16,
    /// The source number of each log, by session and first record: a copy of a log is the same
    /// source.
    logs: FxHashMap<(usize, u64), u16>,
    /// The changes since they were taken last, with the index of their session; `None` if nobody
    /// takes them.
    changes: Option<Vec<(usize, Change)>>,
}

/// A file that is being decoded into the set.
pub struct OpenInput {
    input: file_decoder::FileDecoder,
    /// The number of this file.
    number: u16,
    /// The index into `SessionSet::sessions` for each handle.
    sessions: Vec<usize>,
}

/// Folds decoded records into the set.
struct FoldingSink<'g, 'w> {
    session_set: &'g mut SessionSet,
    number: u16,
    sessions: &'g mut Vec<usize>,
    watch: &'w mut dyn FnMut(RecordTrace<'_>),
}

impl RecordSink for FoldingSink<'_, '_> {
    fn source(&mut self, _: SessionHandle, ident: &SessionIdent<'_>) -> u16 {
        let session = self.session_set.session(ident);
        self.sessions.push(session);
        if ident.feed != Feed::Log {
            return self.number;
        }
        *self.session_set.logs.entry((session, ident.first)).or_insert(self.number)
    }

    fn record(&mut self, record: DecodedRecord<'_>) {
        let index = self.sessions[record.session.0];
        let SessionSet { sessions, changes, .. } = &mut *self.session_set;
        let decoded_session = &mut sessions[index];
        if !matches!(record.outcome, RecordOutcome::Unreadable(_)) {
            (self.watch)(RecordTrace {
                session: &decoded_session.agent_session_id,
                line: record.line.number,
                outcome: &record.outcome,
                events: record.events,
            });
        }
        decoded_session.record_counts.add(&record.outcome);
        decoded_session.apply(record.events, &mut |change| keep(changes, index, change));
    }

    fn warn(&mut self, session: Option<SessionHandle>, warning: Warning) {
        match session {
            Some(handle) => {
                self.session_set.sessions[self.sessions[handle.0]].warnings.push(warning);
            }
            None => self.session_set.warnings.push(warning),
        }
    }
}

/// Keeps a change if somebody takes it.
fn keep(changes: &mut Option<Vec<(usize, Change)>>, session: usize, change: &Change) {
    if let Some(changes) = changes {
        changes.push((session, change.clone()));
    }
}

impl SessionSet {
    /// Keeps the changes of every record for [`SessionSet::take_changes`].
    pub fn keep_changes(&mut self) {
        self.changes.get_or_insert_default();
    }

    /// The changes since the last call, each with the index of its session.
    pub fn take_changes(&mut self) -> Vec<(usize, Change)> {
        self.changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Begins a file or a stream. Warnings use `name`.
    pub fn open(&mut self, name: &str) -> OpenInput {
        let number = self.sources;
        self.sources = self.sources.saturating_add(1);
        OpenInput { input: file_decoder::FileDecoder::new(name), number, sessions: Vec::new() }
    }

    pub fn take(&mut self, input: &mut OpenInput, line: Line<'_>) {
        self.take_traced(input, line, &mut |_| {});
    }

    /// Decodes one line and passes the result to `watch`.
    pub fn take_traced(
        &mut self,
        input: &mut OpenInput,
        line: Line<'_>,
        watch: &mut dyn FnMut(RecordTrace<'_>),
    ) {
        let OpenInput { input, number, sessions } = input;
        input.take(line, &mut FoldingSink { session_set: self, number: *number, sessions, watch });
    }

    fn session(&mut self, ident: &SessionIdent<'_>) -> usize {
        let key = (ident.agent, ident.session.to_owned());
        let session = *self.by_id.entry(key).or_insert_with_key(|(agent, id)| {
            self.sessions.push(DecodedSession::new(agent, id));
            self.sessions.len() - 1
        });
        self.sessions[session].sub_agent |= ident.sub_agent;
        session
    }

    /// Ends a file. True if it held a session.
    pub fn close(&mut self, input: OpenInput, watch: &mut dyn FnMut(RecordTrace<'_>)) -> bool {
        self.finish(input, watch) == Verdict::HasSessions
    }

    fn finish(&mut self, input: OpenInput, watch: &mut dyn FnMut(RecordTrace<'_>)) -> Verdict {
        let OpenInput { mut input, number, mut sessions } = input;
        let mut sink = FoldingSink { session_set: self, number, sessions: &mut sessions, watch };
        let verdict = input.finish(&mut sink);
        for session in sessions {
            let changes = &mut self.changes;
            self.sessions[session].order_sources(&mut |change| keep(changes, session, change));
        }
        verdict
    }

    /// Reads a whole file.
    pub fn read_file(
        &mut self,
        path: &Path,
        watch: &mut dyn FnMut(RecordTrace<'_>),
    ) -> Result<(), LoadError> {
        let unreadable = |source| LoadError::Unreadable { path: path.to_owned(), source };
        let mut source = source::open(path).map_err(unreadable)?;
        self.read(path, source.text(), watch)
    }

    /// Reads a stream to its end. Warnings use `path`.
    pub fn read(
        &mut self,
        path: &Path,
        from: impl std::io::Read,
        watch: &mut dyn FnMut(RecordTrace<'_>),
    ) -> Result<(), LoadError> {
        self.read_by_line(path, from, watch, &mut |_, _| {})
    }

    /// Reads a stream to its end. `after_line` is called after each line, with its number.
    pub fn read_by_line(
        &mut self,
        path: &Path,
        from: impl std::io::Read,
        watch: &mut dyn FnMut(RecordTrace<'_>),
        after_line: &mut dyn FnMut(&mut SessionSet, u64),
    ) -> Result<(), LoadError> {
        let mut opened = self.open(&path.to_string_lossy());
        let OpenInput { input, number, sessions } = &mut opened;
        let mut fold =
            FoldingSink { session_set: self, number: *number, sessions, watch: &mut *watch };
        let (mut start, last) = (ReadPosition::default(), LastLine::TakeWhole);
        let go_on = |_: &_, fold: &mut FoldingSink<'_, '_>, next: ReadPosition| {
            after_line(fold.session_set, next.number.saturating_sub(1));
            ControlFlow::Continue(())
        };
        decode_from(from, &mut start, last, input, &mut fold, go_on)
            .map_err(|source| LoadError::Unreadable { path: path.to_owned(), source })?;
        let path = path.to_owned();
        match self.finish(opened, watch) {
            Verdict::HasSessions => Ok(()),
            Verdict::Empty => Err(LoadError::Empty { path }),
            Verdict::PromptHistory { agent } => Err(prompt_history(path, agent)),
            Verdict::Unsupported { what } => Err(LoadError::Unsupported { path, what }),
            Verdict::Unknown => Err(LoadError::Unknown { path }),
        }
    }
}

fn prompt_history(path: PathBuf, agent: &'static str) -> LoadError {
    let agent = Agent::named(agent);
    let logs = agent.and_then(|agent| agent.logs.as_ref());
    let folder = logs.and_then(|logs| Some(format!("~/{}/{}", logs.home, logs.folders.first()?)));
    let title = agent.map_or("an agent", |agent| agent.title);
    LoadError::PromptHistory { path, title, folder: folder.unwrap_or_else(|| "~".to_owned()) }
}
