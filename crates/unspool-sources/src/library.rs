//! What an application needs to read logs of agents: a file, a stream, the list of tool calls. The
//! functions here join the parts of this crate that the programs of this workspace use one by one
//! (`in_memory`, `read`), and add no rules of their own. `docs/library.md` is their guide.

use std::io::Read;
use std::path::Path;

use unspool_model::change::Change;
use unspool_model::document::settle_as_file;
use unspool_model::history::{MessageGroup, ToolCallEntry, message_groups, tool_calls};
use unspool_model::session::{Transcript, Turn};

use crate::decode::{RecordCounts, Warning};
use crate::discover::find_files;
use crate::in_memory::{DecodedSession, LoadError, SessionSet};
use crate::read::source::lines_of;
use crate::unsupported;

/// The sessions of a log. Most logs hold one; databases and logs with sub-agents hold several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedLog {
    /// In the order in which the log names them.
    pub sessions: Vec<ParsedSession>,
    /// Warnings that belong to no session, such as lines before the first record of one.
    pub warnings: Vec<Warning>,
}

/// One session of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedSession {
    /// The session with its turns, each with its parts in the order in which they happened.
    pub transcript: Transcript,
    /// True for a sub-agent of another session.
    pub is_sub_agent: bool,
    /// What became of each record: in parts, metadata, left out by kind, unreadable.
    pub records: RecordCounts,
    /// What could not be read, with file and line.
    pub warnings: Vec<Warning>,
}

/// What a line of a stream changed.
#[derive(Clone, Debug, PartialEq)]
pub struct LogUpdate<'a> {
    /// The agent and its own id of the session.
    pub agent: &'a str,
    pub session: &'a str,
    /// The line, counted from 1.
    pub line: u64,
    /// In order. A [`TranscriptBuilder`](unspool_model::transcript::TranscriptBuilder) that applies
    /// all changes of a session has its transcript.
    pub changes: &'a [Change],
}

impl ParsedLog {
    /// The first session that is not a sub-agent, or else the first.
    pub fn main_session(&self) -> Option<&ParsedSession> {
        let main = self.sessions.iter().find(|session| !session.is_sub_agent);
        main.or_else(|| self.sessions.first())
    }

    fn of(session_set: SessionSet) -> ParsedLog {
        let SessionSet { sessions, warnings, .. } = session_set;
        ParsedLog { sessions: sessions.iter().map(ParsedSession::of).collect(), warnings }
    }
}

impl ParsedSession {
    fn of(decoded: &DecodedSession) -> ParsedSession {
        let mut transcript = decoded.transcript();
        settle_as_file(&mut transcript);
        ParsedSession {
            transcript,
            is_sub_agent: decoded.is_sub_agent(),
            records: decoded.record_counts.clone(),
            warnings: decoded.warnings.clone(),
        }
    }

    /// The conversation as messages: for each turn that of the user and then that of the agent,
    /// whose items are its parts.
    pub fn messages(&self) -> impl Iterator<Item = MessageGroup<'_>> {
        message_groups(&self.transcript.turns)
    }

    /// [`extract_tool_calls`] of its turns.
    pub fn tool_calls(&self) -> impl Iterator<Item = ToolCallEntry<'_>> {
        extract_tool_calls(&self.transcript.turns)
    }
}

/// Reads a log of any supported agent, with the metadata file beside it if there is one, a database
/// with all its sessions, or a folder of logs.
///
/// The format is recognised by the content. An empty file gives no sessions. A line that cannot be
/// read is skipped, counted in [`ParsedSession::records`] and reported in its warnings; so is a last
/// line that is cut off. A turn whose end is not in the log has the state `Unknown`.
///
/// # Errors
///
/// If the file cannot be opened or read, or is of no supported format. In a folder such a file is a
/// warning.
///
/// # Examples
///
/// ```
/// use unspool_sources::model::part::Body;
/// use unspool_sources::parse_log_file;
///
/// # let path = concat!(
/// #     env!("CARGO_MANIFEST_DIR"),
/// #     "/../../fixtures/claude-code/discovery-loop/log.jsonl"
/// # );
/// let log = parse_log_file(path)?;
/// let session = log.main_session().expect("the log has a session");
/// assert_eq!(session.transcript.session.agent, "claude-code");
/// for turn in &session.transcript.turns {
///     for part in &turn.parts {
///         match &part.body {
///             Body::Reasoning(reasoning) => println!("thinks: {}", reasoning.text),
///             Body::Text(text) => println!("says: {}", text.text),
///             Body::Tool(tool) => println!("calls {}: {}", tool.name, tool.state.name()),
///             other => println!("{}", other.kind().name()),
///         }
///     }
/// }
/// # assert!(session.warnings.is_empty());
/// # Ok::<(), unspool_sources::in_memory::LoadError>(())
/// ```
pub fn parse_log_file(path: impl AsRef<Path>) -> Result<ParsedLog, LoadError> {
    let path = path.as_ref();
    let mut session_set = SessionSet::default();
    if path.is_file() {
        let unreadable = |source| LoadError::Unreadable { path: path.to_owned(), source };
        if let Some(what) = unsupported::of_database(path).map_err(unreadable)? {
            return Err(LoadError::Unsupported { path: path.to_owned(), what });
        }
    }
    let (files, warnings) = find_files(path);
    session_set.warnings.extend(warnings);
    for file in files {
        match session_set.read_file(&file, &mut |_| {}) {
            Ok(()) | Err(LoadError::Empty { .. }) => {}
            Err(error) if path.is_dir() => session_set.warnings.push(Warning {
                file: file.to_string_lossy().into_owned(),
                line: 0,
                what: error.to_string(),
                bytes: Vec::new(),
            }),
            Err(error) => return Err(error),
        }
    }
    Ok(ParsedLog::of(session_set))
}

/// Reads a log while it is written: a pipe, a socket, the output of a running agent. After each line
/// that changed something, `on_update` gets the changes. The result is that of [`parse_log_file`]
/// for the same bytes, however they are split.
///
/// It returns when the reader ends. The reader is read on this thread; what it has is handed on at
/// once, so a reader that blocks delays nothing that came before.
///
/// # Errors
///
/// If reading fails, or if the bytes are of no supported format.
///
/// # Examples
///
/// ```
/// use std::io::Cursor;
///
/// use unspool_sources::model::change::Change;
/// use unspool_sources::parse_log_stream;
///
/// // One JSON object per line, as an application may write its history.
/// let stream = Cursor::new(concat!(
///     r#"{"session":"s1","role":"user","text":"Why does the build fail?"}"#,
///     "\n",
///     r#"{"session":"s1","role":"assistant","text":"A feature is missing."}"#,
///     "\n",
/// ));
/// let mut opened = 0;
/// let log = parse_log_stream(stream, |update| {
///     assert_eq!(update.session, "s1");
///     let new_part = |change: &&Change| matches!(change, Change::PartOpened { .. });
///     opened += update.changes.iter().filter(new_part).count();
/// })?;
/// assert_eq!(opened, 1);
/// assert_eq!(log.sessions[0].transcript.turns.len(), 1);
/// # Ok::<(), unspool_sources::in_memory::LoadError>(())
/// ```
pub fn parse_log_stream(
    reader: impl Read + Send + 'static,
    mut on_update: impl FnMut(LogUpdate<'_>),
) -> Result<ParsedLog, LoadError> {
    let name = Path::new("stream");
    let unreadable = |source| LoadError::Unreadable { path: name.to_owned(), source };
    let lines = lines_of(reader).map_err(unreadable)?;
    let mut session_set = SessionSet::default();
    session_set.keep_changes();
    let mut last_line = 0;
    let mut report = |session_set: &mut SessionSet, line: u64| {
        last_line = line;
        report_changes(session_set, line, &mut on_update);
    };
    match session_set.read_by_line(name, lines, &mut |_| {}, &mut report) {
        Ok(()) | Err(LoadError::Empty { .. }) => {}
        Err(error) => return Err(error),
    }
    // Of a last line without a line end, and of a file whose records name no session.
    report_changes(&mut session_set, last_line, &mut on_update);
    Ok(ParsedLog::of(session_set))
}

fn report_changes(
    session_set: &mut SessionSet,
    line: u64,
    on_update: &mut impl FnMut(LogUpdate<'_>),
) {
    let (sessions, changes): (Vec<usize>, Vec<Change>) =
        session_set.take_changes().into_iter().unzip();
    let mut rest = changes.as_slice();
    for run in sessions.chunk_by(|a, b| a == b) {
        let (changes, later) = rest.split_at(run.len());
        rest = later;
        let session = run.first().and_then(|index| session_set.sessions.get(*index));
        let Some(session) = session else { continue };
        on_update(LogUpdate {
            agent: session.agent,
            session: &session.agent_session_id,
            line,
            changes,
        });
    }
}

/// All tool calls of these turns, in the order in which they were made: id, name, input, output or
/// error, and state.
///
/// # Examples
///
/// ```
/// use unspool_sources::{extract_tool_calls, parse_log_file};
///
/// # let path = concat!(
/// #     env!("CARGO_MANIFEST_DIR"),
/// #     "/../../fixtures/claude-code/discovery-loop/log.jsonl"
/// # );
/// let log = parse_log_file(path)?;
/// let session = log.main_session().expect("the log has a session");
/// let failed: Vec<&str> = extract_tool_calls(&session.transcript.turns)
///     .filter(|call| call.error.is_some())
///     .map(|call| call.name)
///     .collect();
/// assert_eq!(failed, ["Read", "Bash", "Edit"]);
/// # Ok::<(), unspool_sources::in_memory::LoadError>(())
/// ```
pub fn extract_tool_calls(turns: &[Turn]) -> impl Iterator<Item = ToolCallEntry<'_>> {
    tool_calls(turns)
}

#[cfg(test)]
#[path = "library_tests.rs"]
mod tests;
