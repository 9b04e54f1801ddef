//! Files of every shape, and streams cut at any byte.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use unspool_model::session::TurnState;
use unspool_model::transcript::TranscriptBuilder;

use super::*;

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(path)
}

/// A temporary file with these bytes.
fn written(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

const ROWS: &str = "{\"session\":\"s\",\"role\":\"user\",\"text\":\"Größe?\"}\n\
                    {\"session\":\"s\",\"role\":\"assistant\",\"text\":\"日本 ✓\"}";

/// The texts of the only session.
fn texts(log: &ParsedLog) -> Vec<String> {
    let [session] = log.sessions.as_slice() else { panic!("{log:?}") };
    let bodies = session.messages().flat_map(|message| match message {
        MessageGroup::User { items, .. } => items.iter().collect::<Vec<_>>(),
        MessageGroup::Assistant { items, .. } => items.iter().map(|part| &part.body).collect(),
    });
    bodies.filter_map(|body| body.prose().map(str::to_owned)).collect()
}

/// R-001-13: an empty file, a byte order mark, CRLF, no final line end.
#[test]
fn files_of_every_shape_give_their_messages() {
    let (_folder, path) = written("empty.jsonl", b"");
    assert_eq!(parse_log_file(&path).unwrap(), ParsedLog::default());
    for text in [
        ROWS.to_owned(),
        format!("{ROWS}\n"),
        format!("\u{feff}{ROWS}\n"),
        format!("{}\r\n", ROWS.replace('\n', "\r\n")),
    ] {
        let (_folder, path) = written("rows.jsonl", text.as_bytes());
        assert_eq!(texts(&parse_log_file(&path).unwrap()), ["Größe?", "日本 ✓"], "{text:?}");
    }
}

/// A line that cannot be read is counted and reported; the rest is read.
#[test]
fn a_malformed_line_is_reported_with_its_number() {
    let (_folder, path) = written("rows.jsonl", format!("{{odd\n{ROWS}\n{{\"ro").as_bytes());
    let log = parse_log_file(&path).unwrap();
    assert_eq!(texts(&log), ["Größe?", "日本 ✓"]);
    let warnings = log.sessions.iter().flat_map(|session| &session.warnings);
    let lines: Vec<u64> = warnings.chain(&log.warnings).map(|warning| warning.line).collect();
    assert_eq!(lines, [1, 4]);
    assert_eq!(log.sessions[0].records.unreadable, 1);
}

#[test]
fn what_is_no_log_is_an_error_that_says_so() {
    let (_folder, path) = written("notes.jsonl", b"{\"a\":1}\n");
    assert!(matches!(parse_log_file(&path), Err(LoadError::Unknown { .. })));
    assert!(matches!(parse_log_file("/no/such/log.jsonl"), Err(LoadError::Unreadable { .. })));
    // In a folder it is a warning.
    let folder = path.parent().unwrap();
    std::fs::write(folder.join("rows.jsonl"), ROWS).unwrap();
    let log = parse_log_file(folder).unwrap();
    assert_eq!((log.sessions.len(), log.warnings.len()), (1, 1), "{log:?}");
}

/// A reader that gives this many bytes at a time.
struct Chunks(io::Cursor<Vec<u8>>, usize);

impl Read for Chunks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(self.1);
        self.0.read(&mut buffer[..length])
    }
}

/// R-001-14: the result and the updates of a stream are those of the file, for chunks of any size.
#[test]
fn a_stream_gives_what_the_file_gives() {
    let (_folder, rows) = written("rows.jsonl", ROWS.as_bytes());
    let mut paths = vec![rows];
    for case in [
        "claude-code/discovery-loop/log.jsonl",
        "claude-code/v1-0-100-subagents/log.jsonl",
        "codex/discovery-loop/log.jsonl",
        "gemini/discovery-loop/log.jsonl",
    ] {
        paths.push(fixture(case));
    }
    for path in paths {
        let expected = parse_log_file(&path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for size in [1, 2, 7, 4096, usize::MAX] {
            let mut folded: BTreeMap<String, TranscriptBuilder> = BTreeMap::new();
            let mut lines = Vec::new();
            let reader = Chunks(io::Cursor::new(bytes.clone()), size);
            let log = parse_log_stream(reader, |update| {
                lines.push(update.line);
                let new = || TranscriptBuilder::new(update.agent, update.session);
                let builder = folded.entry(update.session.to_owned()).or_insert_with(new);
                builder.apply_all(update.changes.iter().cloned());
            });
            let mut log = log.unwrap();
            // Warnings name the file, a stream has no name.
            for session in &mut log.sessions {
                session.warnings.iter_mut().for_each(|it| it.file = path.display().to_string());
            }
            assert_eq!(log, expected, "{} in pieces of {size}", path.display());
            assert!(lines.is_sorted() && lines.len() > 1, "{lines:?}");
            assert_eq!(folded.len(), log.sessions.len());
            for session in &log.sessions {
                let id = &session.transcript.session.agent_session_id;
                let mut transcript = folded[id].transcript();
                settle_as_file(&mut transcript);
                assert_eq!(transcript, session.transcript);
            }
        }
    }
}

/// An update comes with its line, before the stream ends.
#[test]
fn updates_do_not_wait_for_the_end() {
    let (end, mut begin) = io::pipe().unwrap();
    let (sender, seen) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        parse_log_stream(end, |update| sender.send(update.line).unwrap()).unwrap()
    });
    let mut lines = ROWS.lines();
    for (number, line) in (1..).zip(&mut lines) {
        io::Write::write_all(&mut begin, format!("{line}\n").as_bytes()).unwrap();
        let line = seen.recv_timeout(std::time::Duration::from_secs(20));
        assert_eq!(line, Ok(number), "while the pipe is open");
    }
    drop(begin);
    assert_eq!(texts(&reader.join().unwrap()), ["Größe?", "日本 ✓"]);
}

/// R-001-26, through the entry for applications; and a turn without an end is not called running.
#[test]
fn tool_calls_of_a_log_are_listed() {
    let log = parse_log_file(fixture("claude-code/discovery-loop/log.jsonl")).unwrap();
    let session = log.main_session().unwrap();
    let calls: Vec<(usize, &str)> =
        session.tool_calls().map(|call| (call.order, call.name)).collect();
    let names = [
        "Glob",
        "Grep",
        "Bash",
        "Read",
        "Read",
        "Read",
        "TaskCreate",
        "TaskCreate",
        "Bash",
        "TaskUpdate",
        "Edit",
        "Write",
        "Edit",
        "Bash",
        "TaskUpdate",
        "TaskUpdate",
        "Bash",
    ];
    assert_eq!(calls, (0..).zip(names).collect::<Vec<_>>());
    let cut = std::fs::read_to_string(fixture("claude-code/discovery-loop/log.jsonl")).unwrap();
    let cut: String = cut.lines().take(10).flat_map(|line| [line, "\n"]).collect();
    let log = parse_log_stream(io::Cursor::new(cut), |_| {}).unwrap();
    let states = log.sessions[0].transcript.turns.iter().map(|turn| turn.state);
    assert!(
        !states.clone().any(|state| state == TurnState::Running),
        "{:?}",
        states.collect::<Vec<_>>()
    );
}
