//! What a session changed, compared with git: real agents edited a project, and the patch that
//! Unspool makes from their logs alone must turn the project before into the project after.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::case::root;
use crate::harness::Machine;

/// An archive with one of the recorded sessions.
fn machine(case: &str) -> Machine {
    let machine = Machine::new();
    let path = match case.split('-').next() {
        Some("opencode") => "log.db",
        Some("gemini") => "tmp/weather/chats/session-1.jsonl",
        _ => "log.jsonl",
    };
    let name = if path.ends_with(".db") { "log.db" } else { "log.jsonl" };
    machine.write(path, &fs::read(recordings().join(case).join(name)).unwrap());
    // Gemini CLI names the project in a file beside its chats.
    machine.write("tmp/weather/.project_root", b"/home/dev/weather");
    let log = machine.home().join(path);
    machine.ok("data", &["import", log.to_str().unwrap()]);
    machine
}

fn recordings() -> PathBuf {
    root().join("crates/unspool/tests/changes")
}

fn id(machine: &Machine) -> String {
    machine.json("data", &["list"])[0]["id"].as_str().unwrap().to_owned()
}

/// The files below a folder with their bytes.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(current) = folders.pop() {
        for entry in fs::read_dir(current).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Runs `git apply` in a folder that is no repository.
fn apply(folder: &Path, patch: &[u8], arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.arg("apply").args(arguments).arg("-").current_dir(folder);
    git.env("GIT_CEILING_DIRECTORIES", folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut git = git.spawn().unwrap();
    std::io::Write::write_all(&mut git.stdin.take().unwrap(), patch).unwrap();
    let output = git.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(patch));
    String::from_utf8(output.stdout).unwrap()
}

/// The project after a patch.
fn patched(before: &str, patch: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let folder = TempDir::new().unwrap();
    for (name, bytes) in files(&recordings().join(before)) {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    apply(folder.path(), patch, &[]);
    files(folder.path())
}

fn true_patch(case: &str) -> Vec<u8> {
    fs::read(recordings().join(case).join("diff.patch")).unwrap()
}

#[test]
fn changes_equal_git_diff_of_the_project() {
    let cases = [
        "claude-code-edits",
        "codex-edits",
        "codex-codemode",
        "opencode-edits",
        "opencode-patch",
        "gemini-edits",
        "copilot-edits",
        "copilot-patch",
        // The log of Claude Code has the changes of a command.
        "claude-code-shell",
    ];
    for case in cases {
        let machine = machine(case);
        let patch = machine.ok("data", &["changes", &id(&machine), "--patch"]);
        let (ours, git) =
            (patched("before", patch.as_bytes()), patched("before", &true_patch(case)));
        let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&ours), names(&git), "{case}");
        for (name, text) in &git {
            assert_eq!(
                String::from_utf8_lossy(&ours[name]),
                String::from_utf8_lossy(text),
                "{case}: {name}"
            );
        }
    }
}

/// Tabs, CRLF, other scripts, empty files: as many lines as git counts. Agents record CRLF as LF, so
/// such a patch may not apply.
#[test]
fn changes_of_odd_files_have_gits_numbers() {
    for case in ["claude-code-odd", "codex-odd", "copilot-odd"] {
        let machine = machine(case);
        let patch = machine.ok("data", &["changes", &id(&machine), "--patch"]);
        let folder = TempDir::new().unwrap();
        let numbers = |patch: &[u8]| {
            let text = apply(folder.path(), patch, &["--numstat"]);
            let mut lines: Vec<String> = text.lines().map(ToOwned::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(numbers(patch.as_bytes()), numbers(&true_patch(case)), "{case}");
    }
}

/// A command changed a file, and the log does not say how: the reader is told.
#[test]
fn changes_outside_of_the_log_are_said_to_be_unknown() {
    let unknown = "1 shell command ran. The log does not say which files they changed.";
    for case in ["codex-shell", "gemini-shell", "opencode-shell"] {
        let machine = machine(case);
        let shown = machine.ok("data", &["changes", &id(&machine), "--plain"]);
        assert!(shown.contains(unknown), "{case}: {shown}");
    }
    // OpenCode reports which files changed.
    let machine = machine("opencode-shell");
    let changes: Value = machine.json("data", &["changes", &id(&machine)]);
    let bases: Vec<(&str, &str)> = changes["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| (file["name"].as_str().unwrap(), file["basis"].as_str().unwrap()))
        .collect();
    assert_eq!(bases, [("src/app.ts", "net"), ("src/cache.ts", "changed-outside")]);
    let output = machine.run("data", &["changes", &id(&machine), "--patch"], "");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("src/cache.ts is not in the patch."), "{said}");
}

/// The text for people: files with their numbers, what is left out, and the diff.
#[test]
fn changes_are_shown_file_by_file() {
    let machine = machine("codex-edits");
    let shown = machine.ok("data", &["changes", &id(&machine), "--stat", "--plain"]);
    assert_eq!(
        shown.lines().filter(|line| !line.is_empty()).collect::<Vec<_>>(),
        [
            "6 files changed  +28  −11",
            "1 edit failed and is not included.",
            "src/app.ts  +13  −2",
            "src/cache.ts  unchanged after 2 edits",
            "src/new.ts  new  +9",
            "README.md  +4  −3",
            "notes.txt  +1  −1",
            "src/old.ts  deleted  −4",
            "src/convert.ts  moved from src/units.ts  +1  −1",
        ]
    );
    let output = machine.run("data", &["changes", &id(&machine), "--turn", "9"], "");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "unspool: this session has no turn 9; `unspool show` lists its turns\n");
}

/// What a sub-agent of a sub-agent writes belongs to the session, once, and to its turn.
#[test]
fn edits_of_nested_subagents_are_changes_of_the_session() {
    let machine = Machine::new();
    let case = root().join("fixtures/claude-code/subagents-nested");
    let folder = "p/603a0aef-2810-4302-a068-e41cfe255095";
    machine.write(&format!("{folder}.jsonl"), &fs::read(case.join("log.jsonl")).unwrap());
    for entry in fs::read_dir(case.join("subagents")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let mut text = fs::read_to_string(&path).unwrap();
        // The inner agent writes a file instead of running a command.
        if name.contains("a2cc977304564cbdb") && name.ends_with(".jsonl") {
            let written = text.replace(r#""name":"Bash""#, r#""name":"Write""#).replace(
                r#"{"command":"python3 -c 'print(6*7)'","description":"Compute"}"#,
                r#"{"file_path":"/home/dev/weather-app/src/inner.ts","content":"six\nseven\n"}"#,
            );
            assert_ne!(written, text);
            text = written;
        }
        machine.write(&format!("{folder}/subagents/{name}"), text.as_bytes());
    }
    machine.ok("data", &["import", machine.home().join("p").to_str().unwrap()]);
    let id = "603a0aef-2810-4302-a068-e41cfe255095";
    for arguments in [&["changes", id][..], &["changes", id, "--turn", "1"]] {
        let changes = machine.json("data", arguments);
        let files = changes["files"].as_array().unwrap();
        assert_eq!(files.len(), 1, "{changes}");
        let path = files[0]["path"].as_str().unwrap();
        assert!(path.ends_with("src/inner.ts"), "{changes}");
        assert_eq!(files[0]["added"], 2, "{changes}");
        assert_eq!(files[0]["edits"].as_array().unwrap().len(), 1, "once: {changes}");
    }
}
