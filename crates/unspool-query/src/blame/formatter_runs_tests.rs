//! Tests of following lines through formatter runs, with git.

use std::path::Path;
use std::process::Command;

use crate::blame::BlameRequest;
use crate::blame::file_history::{FileHistory, read};

fn git(folder: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
    let output = Command::new("git").args(identity).args(arguments).current_dir(folder).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The history of a file with these versions, each a commit.
fn history(versions: &[&str]) -> FileHistory {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), &["init", "-q"]);
    for (at, version) in versions.iter().enumerate() {
        std::fs::write(folder.path().join("a.py"), version).unwrap();
        git(folder.path(), &["add", "-A"]);
        git(folder.path(), &["commit", "-q", "-m", &format!("change {at}")]);
    }
    let file = folder.path().join("a.py");
    read(&BlameRequest { file, revision: Some("HEAD".to_owned()), lines: None }).unwrap()
}

/// For each line the commits and lines that it comes from.
fn origins(history: &FileHistory) -> Vec<Vec<(usize, u32)>> {
    let one = |line: &crate::blame::file_history::FileLine| {
        line.origins.iter().filter_map(|it| Some((it.commit?, it.number))).collect()
    };
    history.lines.iter().map(one).collect()
}

#[test]
fn lines_keep_their_commits_through_formatter_runs() {
    let found = history(&[
        "def a():\n  x = 1\n  return x\n",
        "def a():\n  x = 1\n  y = 2\n  return x\n",
        "def a():\n    x = 1\n    y = 2\n    return x\n",
        "def a():\n\tx = 1\n\ty = 2\n\treturn x\n",
    ]);
    assert_eq!(origins(&found), [vec![(0, 1)], vec![(0, 2)], vec![(1, 3)], vec![(0, 3)]]);
    let reflowed: Vec<bool> = found.lines.iter().map(|line| line.is_reflowed).collect();
    assert_eq!(reflowed, [false, true, true, true]);
    assert!(found.lines.iter().all(|line| line.earlier.is_none()), "git finds no other place");
}

#[test]
fn a_line_that_was_joined_comes_from_all_its_parts() {
    let found = history(&["x = [\n  1,\n]\n", "x = [\n  1,\n  2,\n]\n", "x = [1, 2]\n"]);
    assert_eq!(origins(&found), [[(0, 1), (0, 2), (1, 3), (0, 3)]]);
}

#[test]
fn a_changed_line_comes_from_its_own_commit() {
    let found = history(&["a = 1\nb = 2\n", "  a = 1\n  b = 3\n"]);
    assert_eq!(origins(&found), [[(1, 1)], [(1, 2)]]);
}
