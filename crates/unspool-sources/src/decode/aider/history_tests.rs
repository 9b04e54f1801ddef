#![allow(clippy::unwrap_used)]

use serde_json::Value;

use super::*;
use crate::in_memory::{LoadError, SessionSet};

fn records(text: &str) -> Vec<(String, String)> {
    let mut lines = String::new();
    HistoryLines::new(Path::new("log.md"), text.as_bytes()).read_to_string(&mut lines).unwrap();
    let record = |line: &str| {
        let record: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
        (text("aider"), text("text"))
    };
    lines.lines().map(record).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(kind, text)| ((*kind).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn only_lines_that_end_with_two_spaces_are_aiders_own() {
    let text = "\n# aider chat started at 2026-11-16 07:12:21\n\n> Aider v0.86.2  \n\n\
                #### One  \n####   \n#### > two  \n\n\
                # Plan\n\n> quoted\n\n#### Steps\n1. Look.\n\n```\n# aider chat started at x\n```\n\n\
                > Tokens: 1 sent, 2 received.  \n";
    let reply = "# Plan\n\n> quoted\n\n#### Steps\n1. Look.\n\n```\n# aider chat started at x\n```";
    assert_eq!(
        records(text),
        pairs(&[
            ("start", ""),
            ("line", "Aider v0.86.2"),
            ("prompt", "One\n\n> two"),
            ("reply", reply),
            ("line", "Tokens: 1 sent, 2 received."),
        ])
    );
}

#[test]
fn a_message_of_several_lines_is_one_record() {
    let text = "\n# aider chat started at 2026-11-16 07:12:21\n\n#### Go  \n\nReply.\n\n\
                > Did not work.  \n> # 1 block failed!\n\n<<<<<<< SEARCH\nx\n\nThe end  \n\nAgain.\n\n";
    let message = "# 1 block failed!\n\n<<<<<<< SEARCH\nx\n\nThe end";
    assert_eq!(
        records(text)[2..],
        pairs(&[
            ("reply", "Reply."),
            ("line", "Did not work."),
            ("line", message),
            ("reply", "Again."),
        ])
    );
}

/// A reply at the end of the file may still grow: its line is not complete.
#[test]
fn the_lines_of_a_growing_file_begin_with_the_lines_before() {
    let text = "\n# aider chat started at 2026-11-16 07:12:21\n\n> A  \n\n#### Go  \n\nOne.\n\nTwo.\n\n\
                > Tokens: 1 sent.  \n\n# aider chat started at 2026-11-16 07:12:21\n\n#### Again  \n";
    let read = |text: &str| {
        let mut lines = String::new();
        HistoryLines::new(Path::new("log.md"), text.as_bytes()).read_to_string(&mut lines).unwrap();
        lines
    };
    let whole = read(text);
    for (end, _) in text.match_indices('\n') {
        let lines = read(&text[..=end]);
        let complete = lines.rfind('\n').map_or(0, |at| at + 1);
        assert!(whole.starts_with(&lines[..complete]), "{lines}");
    }
    assert!(whole.contains("2026-11-16T07:12:21.2"), "{whole}");
    assert_eq!(records(text).iter().filter(|(kind, _)| kind == "reply").count(), 1);
}

/// What aider writes beside a history: its times are read, the rest is named.
#[test]
fn files_beside_a_history_are_read_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let history = "\n# aider chat started at 2026-11-16 07:08:33\n\n#### One  \n\nReply.\n\n\
                   > Tokens: 1 sent, 2 received.  \n\n#### /ask Why?  \n\n#### Why?  \n\nSo.\n\n";
    let typed = "\n# 2026-11-16 07:08:35.5\n+One\n\n# 2026-11-16 07:08:49\n+/ask Why?\n";
    let counts = r#"{"event":"launched","properties":{},"user_id":"u","time":1794812913}"#;
    let files = [
        (FILE_NAME, history),
        (".aider.input.history", typed),
        (".aider.llm.history", "TO LLM 2026-11-16T07:08:41\n-------\nSYSTEM Act.\n"),
        (".aider.analytics.jsonl", counts),
    ];
    for (name, text) in files {
        std::fs::write(path(name), text).unwrap();
    }
    let mut session_set = SessionSet::default();
    session_set.read_file(&path(FILE_NAME), &mut |_| {}).unwrap();
    let transcript = session_set.sessions[0].transcript();
    let started: Vec<_> = transcript.turns.iter().map(|turn| turn.started).collect();
    let local = |time: &str| {
        let time = time.parse::<DateTime>().unwrap();
        Some(TimeZone::system().to_timestamp(time).unwrap())
    };
    assert_eq!(started, [local("2026-11-16T07:08:35.5"), local("2026-11-16T07:08:49")]);
    let mut refused = |name: &str| session_set.read_file(&path(name), &mut |_| {}).unwrap_err();
    assert!(matches!(refused(".aider.input.history"), LoadError::PromptHistory { .. }));
    for (name, what) in [
        (".aider.llm.history", "aider's history of requests"),
        (".aider.analytics.jsonl", "aider's analytics log"),
    ] {
        let error = refused(name).to_string();
        assert!(error.contains(&format!("is {what}, which unspool does not read yet")), "{error}");
    }
}
