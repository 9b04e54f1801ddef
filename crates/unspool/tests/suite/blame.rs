//! Which session wrote each line: stories of a file in a real repository, told in
//! `tests/blame/*.txt`. A person and agents write, git commits; the last step says who wrote what.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::case::root;
use crate::harness::Machine;

/// The repository of a story, and the edits of its agents.
struct Story {
    machine: Machine,
    project: PathBuf,
    file: String,
    /// Seconds since 1970. Every step takes some.
    time: i64,
    /// Rows of a history, as an application writes them.
    rows: Vec<String>,
}

impl Story {
    fn new() -> Story {
        let machine = Machine::new();
        let project = machine.home().join("project");
        fs::create_dir_all(&project).unwrap();
        let project = project.canonicalize().unwrap();
        let file = "a.py".to_owned();
        let story = Story { machine, project, file, time: 1_790_000_000, rows: Vec::new() };
        story.git(&["init", "-q", "-b", "main"]);
        story
    }

    fn git(&self, arguments: &[&str]) {
        let mut git = Command::new("git");
        let date = format!("{} +0000", self.time);
        git.current_dir(&self.project).args(["-c", "user.name=Ada", "-c", "user.email=a@b.c"]);
        git.env("GIT_AUTHOR_DATE", &date).env("GIT_COMMITTER_DATE", &date);
        let output = git.args(arguments).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {error}");
    }

    fn edit(&mut self, agent: &str, text: &str, is_write: bool) {
        let path = self.project.join(&self.file);
        let old = fs::read_to_string(&path).ok().filter(|_| !is_write);
        let (name, input) = match old {
            Some(old) => {
                ("Edit", json!({ "file_path": path, "old_string": old, "new_string": text }))
            }
            None => ("Write", json!({ "file_path": path, "content": text })),
        };
        let at = self.time * 1000;
        self.rows.push(
            json!({ "session": agent, "role": "user", "text": "Go on.", "at": at - 500 })
                .to_string(),
        );
        self.rows.push(
            json!({ "session": agent, "type": "tool", "name": name, "input": input, "output": "done",
                    "at": at })
            .to_string(),
        );
        fs::write(path, text).unwrap();
    }

    fn step(&mut self, words: &[&str], text: &str) {
        self.time += 5;
        match words {
            ["hand"] => fs::write(self.project.join(&self.file), text).unwrap(),
            ["agent", name] => self.edit(name, text, false),
            ["agent", name, "write"] => self.edit(name, text, true),
            ["commit"] => {
                self.git(&["add", "-A"]);
                self.git(&["commit", "-q", "-m", "change"]);
            }
            ["amend"] => {
                self.git(&["add", "-A"]);
                self.git(&["commit", "-q", "--amend", "--no-edit"]);
            }
            ["rename", name] => {
                self.git(&["mv", &self.file, name]);
                self.file = (*name).to_owned();
            }
            ["branch", name] => self.git(&["checkout", "-q", "-b", name]),
            ["switch", name] => self.git(&["checkout", "-q", name]),
            ["merge", name] => self.git(&["merge", "-q", "--no-edit", name]),
            _ => panic!("there is no step {words:?}"),
        }
    }

    /// Imports what the agents did.
    fn import(&self) {
        let log = self.machine.home().join("history.jsonl");
        fs::write(&log, self.rows.join("\n") + "\n").unwrap();
        self.machine.ok("data", &["import", log.to_str().unwrap()]);
    }

    /// `NAME =|text` for each line.
    fn lines(&self) -> Vec<String> {
        let names = self.machine.json("data", &["list"]);
        let path = self.project.join(&self.file);
        let blame = self.machine.json("data", &["blame", path.to_str().unwrap()]);
        let name = |id: &Value| {
            let sessions = names.as_array().unwrap();
            let session = sessions.iter().find(|session| session["id"] == *id).unwrap();
            session["agent_session_id"].as_str().unwrap().to_owned()
        };
        let text = fs::read_to_string(&path).unwrap();
        let one = |(line, text): (&Value, &str)| {
            let who = match line["confidence"].as_str() {
                Some("exact") => name(&line["session"]) + " =",
                Some("moved") => name(&line["session"]) + " ~",
                _ => "-".to_owned(),
            };
            format!("{who}|{text}")
        };
        blame["lines"].as_array().unwrap().iter().zip(text.lines()).map(one).collect()
    }
}

/// Plays a story. Its expected lines.
fn play(text: &str) -> (Story, Vec<String>) {
    let mut story = Story::new();
    let mut steps: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        if let Some(step) = line.strip_prefix("> ") {
            steps.push((step.split(' ').collect(), Vec::new()));
        } else if let (Some(line), Some((_, lines))) = (line.strip_prefix('|'), steps.last_mut()) {
            lines.push(line);
        }
    }
    let (last, expected) = steps.pop().unwrap();
    assert_eq!(last, ["lines"]);
    for (words, lines) in steps {
        story.step(&words, &(lines.join("\n") + "\n"));
    }
    story.import();
    let expected = expected.into_iter().map(|line| {
        let (who, text) = line.split_once('|').unwrap();
        format!("{}|{text}", who.trim())
    });
    (story, expected.collect())
}

#[test]
fn each_line_is_given_to_the_session_that_wrote_it_or_to_nobody() {
    let folder = root().join("crates/unspool/tests/blame");
    let mut stories: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    stories.retain(|path| path.extension().is_some_and(|it| it == "txt"));
    stories.sort();
    assert!(stories.len() >= 13);
    let mut failed = Vec::new();
    for path in stories {
        let (story, expected) = play(&fs::read_to_string(&path).unwrap());
        let found = story.lines();
        if found != expected {
            failed.push(format!("{}:\n{}", path.display(), found.join("\n")));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[test]
fn commits_name_their_sessions_and_sessions_their_commits() {
    let text = fs::read_to_string(root().join("crates/unspool/tests/blame/amended.txt")).unwrap();
    let (story, _) = play(&text);
    let list = story.machine.json("data", &["list"]);
    assert_eq!(list.as_array().unwrap().len(), 2);
    for session in list.as_array().unwrap() {
        let id = session["id"].as_str().unwrap();
        let commits = story.machine.json("data", &["commits", id]);
        let commits = commits["commits"].as_array().unwrap();
        assert_eq!(commits.len(), 1, "{commits:?}");
        assert_eq!((&commits[0]["lines"], &commits[0]["exact"]), (&json!(1), &json!(1)));
    }
    let project = story.project.to_str().unwrap();
    let mut command = story.machine.command("data", &["log", "--git", "HEAD", "--json"]);
    let output = command.current_dir(project).output().unwrap();
    let log: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(log["commits"][0]["sessions"].as_array().unwrap().len(), 2, "{log}");
}
