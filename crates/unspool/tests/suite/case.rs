//! Folder cases: `fixtures/<source>/<case>/` with one file per feed of a recording.

use std::path::{Path, PathBuf};

use unspool_model::provenance::Feed;
use unspool_model::session::Transcript;
use unspool_sources::in_memory::{DecodedSession, OpenInput, SessionSet};
use unspool_sources::read::lines::Line;

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

pub fn cases(source: &str) -> Vec<PathBuf> {
    let folder = root().join("fixtures").join(source);
    let mut cases: Vec<PathBuf> =
        folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|path| path.is_dir());
    cases.sort();
    assert!(!cases.is_empty(), "no cases in {}", folder.display());
    cases
}

/// The cases of all sources.
pub fn all_cases() -> Vec<PathBuf> {
    let folder = root().join("fixtures");
    let mut sources: Vec<PathBuf> =
        folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    sources.retain(|path| path.is_dir());
    sources.sort();
    sources.iter().flat_map(|source| cases(&name(source))).collect()
}

pub fn name(case: &Path) -> String {
    case.file_name().unwrap().to_string_lossy().into_owned()
}

/// One capture, split into lines.
pub struct Capture {
    pub file: String,
    pub lines: Vec<OwnedLine>,
}

pub struct OwnedLine {
    pub number: u64,
    pub offset: u64,
    pub bytes: Vec<u8>,
}

impl OwnedLine {
    pub fn line(&self) -> Line<'_> {
        Line { number: self.number, offset: self.offset, bytes: &self.bytes }
    }
}

/// The captures of a case that exist, strongest feed first: log, stream, hooks, in any file format.
/// Files without a session id are named after the case, which then names the session: a document
/// and its stream.
pub fn captures(case: &Path) -> Vec<Capture> {
    let own = name(case);
    let files = ["log", "stream", "hooks", &own].into_iter().flat_map(|feed| {
        let forms = ["jsonl", "jsonl.zst", "json", "sse", "md"];
        forms.map(|form| format!("{feed}.{form}"))
    });
    let mut captures: Vec<Capture> = files
        .filter(|file| case.join(file).exists())
        .map(|file| capture(&case.join(&file), file))
        .collect();
    // A sub-agent's log and its metadata are named after the agent.
    if !case.join("log.jsonl").exists() {
        let entries = case.read_dir().unwrap().map(|entry| name(&entry.unwrap().path()));
        let mut of_agents: Vec<String> = entries
            .filter(|file| file.starts_with("agent-"))
            .filter(|file| file.ends_with(".jsonl") || file.ends_with(".meta.json"))
            .collect();
        of_agents.sort();
        captures.extend(of_agents.into_iter().map(|file| capture(&case.join(&file), file)));
    }
    // A case with several sessions has their files under their own names.
    for file in files_of(case, is_named_by_session) {
        captures.push(capture(&case.join(&file), file));
    }
    // The settings beside a session file are named after the session.
    let entries = case.read_dir().unwrap().map(|entry| name(&entry.unwrap().path()));
    let mut settings: Vec<String> =
        entries.filter(|file| file.ends_with(".settings.json")).collect();
    settings.sort();
    captures.extend(settings.into_iter().map(|file| capture(&case.join(&file), file)));
    // A database is one log per session.
    let database = case.join("log.db");
    if database.exists() {
        let sessions = unspool_sources::read::rows::sessions(&database).unwrap();
        let logs = sessions.into_iter().map(|(path, _)| capture(&path, "log.db".to_owned()));
        captures.splice(0..0, logs.collect::<Vec<_>>());
    }
    captures
}

/// The captures of a case, and the files of its sub-agents, which are other sessions. Those of Claude
/// Code have cases of their own.
pub fn family(case: &Path) -> Vec<Capture> {
    let mut captures = captures(case);
    if case.parent().map(name).as_deref() == Some("claude-code") {
        return captures;
    }
    let folder = case.join("subagents");
    for file in files_of(&folder, |file| file.starts_with("agent-")) {
        captures.push(capture(&folder.join(&file), file));
    }
    captures
}

/// True for `<session>.jsonl`, where the session is a UUID.
pub fn is_named_by_session(file: &str) -> bool {
    file.len() == "01234567-0123-0123-0123-0123456789ab.jsonl".len() && file.ends_with(".jsonl")
}

fn files_of(folder: &Path, is_its: fn(&str) -> bool) -> Vec<String> {
    let entries = folder.read_dir().into_iter().flatten();
    let files = entries.map(|entry| name(&entry.unwrap().path()));
    let mut files: Vec<String> = files.filter(|file| is_its(file)).collect();
    files.sort();
    files
}

fn capture(path: &Path, file: String) -> Capture {
    let mut lines = Vec::new();
    let mut keep = |line: Line<'_>| {
        let Line { number, offset, bytes } = line;
        lines.push(OwnedLine { number, offset, bytes: bytes.to_vec() });
    };
    let mut source = unspool_sources::read::source::open(path).unwrap();
    let end = unspool_sources::read::lines::read(source.text(), &mut keep).unwrap();
    if let Some(rest) = end.unfinished {
        keep(rest.as_line());
    }
    Capture { file, lines }
}

/// Folds captures line by line; `turns` says which capture is next.
pub fn fold(captures: &[Capture], turns: impl IntoIterator<Item = usize>) -> SessionSet {
    let mut session_set = SessionSet::default();
    let mut readings: Vec<OpenInput> =
        captures.iter().map(|capture| session_set.open(&capture.file)).collect();
    let mut next = vec![0; captures.len()];
    for capture in turns {
        if let Some(line) = captures[capture].lines.get(next[capture]) {
            next[capture] += 1;
            session_set.take(&mut readings[capture], line.line());
        }
    }
    for reading in readings {
        session_set.close(reading, &mut |_| {});
    }
    session_set
}

/// Folds whole captures, one after the other.
pub fn fold_in(captures: &[Capture], order: &[usize]) -> SessionSet {
    let turns = order.iter().flat_map(|at| captures[*at].lines.iter().map(move |_| *at));
    fold(captures, turns.collect::<Vec<_>>())
}

/// The main session of the strongest feed. Hooks may mention others, and it may have sub-agents.
pub fn main_session(session_set: &SessionSet) -> &DecodedSession {
    let strongest = session_set.sessions.iter().filter_map(|session| session.spine).max();
    let candidates = || session_set.sessions.iter().filter(|session| session.spine == strongest);
    candidates().find(|session| !session.is_sub_agent()).or_else(|| candidates().next()).unwrap()
}

/// The sessions that a case is about. Claude Code's hooks may mention others, which have no log in
/// the case.
pub fn case_sessions(session_set: &SessionSet) -> impl Iterator<Item = &DecodedSession> {
    let main = main_session(session_set);
    session_set.sessions.iter().filter(move |session| {
        let logged = session.is_sub_agent() && session.spine == Some(Feed::Log);
        session.agent != "claude-code" || std::ptr::eq(*session, main) || logged
    })
}

/// A transcript as text, part by part, to locate a difference.
pub fn written(transcript: &Transcript) -> String {
    let mut text = format!("{:#?}\n", transcript.session);
    for turn in &transcript.turns {
        let mut head = turn.clone();
        head.parts.clear();
        text += &format!("── {head:#?}\n");
        for part in &turn.parts {
            text += &format!("{part:#?}\n");
        }
    }
    text
}

/// The first lines that differ, if any do.
pub fn difference(expected: &Transcript, found: &Transcript) -> Option<String> {
    if expected == found {
        return None;
    }
    let (expected, found) = (written(expected), written(found));
    let (mut left, mut right) = (expected.lines(), found.lines());
    let mut before: Vec<&str> = Vec::new();
    loop {
        match (left.next(), right.next()) {
            (Some(a), Some(b)) if a == b => before.push(a),
            (a, b) => {
                let context = before[before.len().saturating_sub(14)..].join("\n");
                let rest = |first: Option<&str>, more: std::str::Lines<'_>| {
                    let more: Vec<&str> = more.take(8).collect();
                    format!("{}\n{}", first.unwrap_or("(nothing)"), more.join("\n"))
                };
                let (left, right) = (rest(a, left), rest(b, right));
                return Some(format!("{context}\n── expected\n{left}\n── found\n{right}"));
            }
        }
    }
}

/// Fails with all differences.
pub fn assert_none(differences: Vec<String>) {
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n\n"));
}
