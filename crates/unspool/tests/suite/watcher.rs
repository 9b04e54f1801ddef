//! `sync --watch` while files grow, are truncated, replaced, renamed, compressed, rewritten and
//! deleted. In the end the archive holds what a fresh import of the files gives, plus what was
//! removed from them, and nothing twice.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::harness::{Machine, WatchProcess, copy, lines, recorded, until};
use crate::test_server::Server;

const PROJECT: &str = ".claude/projects/-home-dev-weather-app";
const LOG: &str = ".claude/projects/-home-dev-weather-app/log.jsonl";
const LOOP: &str = "claude-code/discovery-loop/log.jsonl";
const OTHER: &str = "claude-code/question-answered/log.jsonl";
const MARKER: &str = "claude-code/web-search/log.jsonl";
const ROLLOUT: &str = "codex/exec-discovery-with-hooks/log.jsonl";

/// How the program notices changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WatchMode {
    FileSystem,
    Polling,
}

/// A watched archive.
struct WatchedArchive {
    machine: Machine,
    watcher: WatchProcess,
    fresh: u32,
}

impl WatchedArchive {
    fn new(mode: WatchMode) -> WatchedArchive {
        let machine = Machine::new();
        fs::create_dir_all(machine.home().join(PROJECT)).unwrap();
        let mut command = machine.command("watched", &["sync", "--watch", "--json"]);
        if mode == WatchMode::Polling {
            command.env("UNSPOOL_POLL", "1");
        }
        WatchedArchive { watcher: WatchProcess::begin(command), machine, fresh: 0 }
    }

    /// The sessions of a fresh archive of the current files.
    fn fresh(&mut self) -> Vec<Value> {
        self.fresh += 1;
        let name = format!("fresh-{}", self.fresh);
        self.machine.ok(&name, &["sync"]);
        self.machine.sessions(&name).unwrap()
    }

    /// Waits until the archive holds exactly these sessions, and checks it.
    #[track_caller]
    fn wait_for(&mut self, what: &str, mut expected: Vec<Value>) {
        by_id(&mut expected);
        until(what, || match self.machine.sessions("watched") {
            Some(held) if held == expected => Ok(()),
            held => Err(held.map(|held| difference(&held, &expected))),
        });
        assert!(self.watcher.is_running(), "{what}");
        self.machine.ok("watched", &["db", "check"]);
    }

    #[track_caller]
    fn wait_for_files(&mut self, what: &str) {
        let expected = self.fresh();
        self.wait_for(what, expected);
    }

    /// Adds a marker session and waits for it: earlier changes have been processed by then.
    #[track_caller]
    fn wait_past_marker(&mut self, what: &str, mut expected: Vec<Value>) {
        let marker = format!(".claude/projects/-elsewhere-{}/log.jsonl", self.fresh);
        let id = format!("00000000-0000-4000-8000-{:012}", self.fresh);
        let own = session_id(MARKER);
        let text = String::from_utf8(recorded(MARKER)).unwrap().replace(&own, &id);
        self.machine.write(&marker, text.as_bytes());
        let of_marker = self.fresh().into_iter().filter(|it| agent_id(it) == id);
        expected.extend(of_marker);
        self.wait_for(what, expected);
    }
}

fn agent_id(shown: &Value) -> &str {
    shown["session"]["agent_session_id"].as_str().unwrap()
}

fn by_id(sessions: &mut [Value]) {
    sessions.sort_by_key(|it| it["session"]["id"].as_str().unwrap().to_owned());
}

/// The session id in a Claude Code log.
fn session_id(fixture: &str) -> String {
    let text = recorded(fixture);
    let records = lines(&text).into_iter().filter_map(|it| serde_json::from_slice(it).ok());
    let mut ids = records.filter_map(|it: Value| Some(it["sessionId"].as_str()?.to_owned()));
    ids.next().unwrap()
}

/// The first difference between two archives.
fn difference(held: &[Value], expected: &[Value]) -> String {
    let ids = |of: &[Value]| of.iter().map(|it| agent_id(it).to_owned()).collect::<Vec<_>>();
    if ids(held) != ids(expected) {
        return format!("{:?} instead of {:?}", ids(held), ids(expected));
    }
    let (held, expected) = held.iter().zip(expected).find(|(a, b)| a != b).unwrap();
    let texts = [held, expected].map(|it| serde_json::to_string_pretty(it).unwrap());
    let other = texts[0].lines().zip(texts[1].lines()).enumerate().find(|(_, (a, b))| a != b);
    format!("{}: {other:?}", agent_id(held))
}

#[test]
fn a_growing_log_is_imported_as_it_grows() {
    // R-001-28 R-001-34: also when a line arrives in two writes.
    for mode in [WatchMode::FileSystem, WatchMode::Polling] {
        let mut watched = WatchedArchive::new(mode);
        let text = recorded(LOOP);
        let lines = lines(&text);
        for (number, line) in lines.iter().enumerate() {
            let (half, rest) = line.split_at(line.len() / 2);
            watched.machine.append(LOG, half);
            if number == lines.len() / 2 {
                let archive = watched.machine.json("watched", &["doctor"]);
                assert_eq!(archive["archive"]["recording"], true);
            }
            watched.machine.append(LOG, rest);
            if number == lines.len() / 3 {
                watched.wait_for_files("a third of the log");
            }
        }
        watched.wait_for_files("the whole log");
    }
}

#[test]
fn a_truncated_log_keeps_what_was_imported() {
    let mut watched = WatchedArchive::new(WatchMode::FileSystem);
    watched.machine.put(LOOP, LOG);
    let whole = watched.fresh();
    watched.wait_for("the log", whole.clone());
    let path = watched.machine.home().join(LOG);
    let text = recorded(LOOP);
    let lines = lines(&text);
    let half: usize = lines[..lines.len() / 2].iter().map(|line| line.len()).sum();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(half as u64).unwrap();
    drop(file);
    watched.wait_past_marker("a log that was cut", whole.clone());
    // It grows back to what it was.
    watched.machine.append(LOG, &text[half..]);
    watched.wait_for_files("the log as it was");
    // It is overwritten with another session.
    fs::write(&path, recorded(OTHER)).unwrap();
    let mut both = watched.fresh();
    both.extend(whole);
    watched.wait_for("both sessions", both);
}

#[test]
fn a_log_that_was_replaced_by_another_file() {
    let mut watched = WatchedArchive::new(WatchMode::FileSystem);
    let text = recorded(LOOP);
    let lines = lines(&text);
    let third: usize = lines[..lines.len() / 3].iter().map(|line| line.len()).sum();
    let replace = |watched: &WatchedArchive, bytes: &[u8]| {
        let beside = watched.machine.home().join(PROJECT).join("log.jsonl.tmp");
        fs::write(&beside, bytes).unwrap();
        fs::rename(&beside, watched.machine.home().join(LOG)).unwrap();
    };
    watched.machine.write(LOG, &text[..third]);
    watched.wait_for_files("a third of the log");
    // A longer version of the same log.
    replace(&watched, &text);
    watched.wait_for_files("the whole log");
    let whole = watched.fresh();
    // Another session.
    replace(&watched, &recorded(OTHER));
    let mut both = watched.fresh();
    both.extend(whole);
    watched.wait_for("both sessions", both.clone());
    // And the first one again.
    replace(&watched, &text);
    watched.wait_past_marker("both sessions again", both);
}

#[test]
fn a_log_that_is_renamed_is_the_same_log() {
    let mut watched = WatchedArchive::new(WatchMode::FileSystem);
    let text = recorded(LOOP);
    let lines = lines(&text);
    let third: usize = lines[..lines.len() / 3].iter().map(|line| line.len()).sum();
    watched.machine.write(LOG, &text[..third]);
    watched.wait_for_files("a third of the log");
    let renamed = format!("{PROJECT}/renamed.jsonl");
    fs::rename(watched.machine.home().join(LOG), watched.machine.home().join(&renamed)).unwrap();
    let third_held = watched.fresh();
    watched.wait_past_marker("a log with another name", third_held);
    watched.machine.append(&renamed, &text[third..]);
    watched.wait_for_files("the log under another name");
    // With its folder.
    let [from, to] =
        [PROJECT, ".claude/projects/-home-dev-moved"].map(|it| watched.machine.home().join(it));
    fs::rename(from, to).unwrap();
    watched.wait_for_files("the log in another folder");
    watched.machine.append(".claude/projects/-home-dev-moved/other.jsonl", &recorded(OTHER));
    watched.wait_for_files("a session beside it");
    // Records are counted once per session, wherever the file was.
    let records = watched.machine.json("watched", &["show", &session_id(LOOP)])["records"].clone();
    let fresh = format!("fresh-{}", watched.fresh);
    assert_eq!(records, watched.machine.json(&fresh, &["show", &session_id(LOOP)])["records"]);
}

#[test]
fn a_rollout_that_is_packed_is_the_same_rollout() {
    for mode in [WatchMode::FileSystem, WatchMode::Polling] {
        let mut watched = WatchedArchive::new(mode);
        let path = ".codex/sessions/2026/11/15/rollout-2026-11-15T00-42-09-01a1dca7-8783-7e12-90f3-d84e885d08f9.jsonl";
        watched.machine.put(ROLLOUT, path);
        watched.wait_for_files("the rollout");
        let plain = watched.fresh();
        let packed = zstd::encode_all(&*recorded(ROLLOUT), 3).unwrap();
        watched.machine.write(&format!("{path}.zst"), &packed);
        fs::remove_file(watched.machine.home().join(path)).unwrap();
        watched.wait_past_marker("the packed rollout", plain.clone());
        assert_eq!(
            watched.fresh().iter().filter(|it| it["session"]["agent"] == "codex").count(),
            1
        );
        // Archived by its user.
        let archived = path.replace("sessions/2026/11/15", "archived_sessions") + ".zst";
        let archived = watched.machine.home().join(archived);
        fs::create_dir_all(archived.parent().unwrap()).unwrap();
        fs::rename(watched.machine.home().join(format!("{path}.zst")), archived).unwrap();
        watched.wait_for_files("the packed rollout in another folder");
    }
}

#[test]
fn a_log_that_is_rewritten_in_place_with_its_old_time_is_read_again() {
    // At the end, and in the middle, which the fingerprint of both ends does not cover.
    for word in ["forecast", "mapping the project"] {
        let mut watched = WatchedArchive::new(WatchMode::FileSystem);
        watched.machine.put(LOOP, LOG);
        watched.wait_for_files("the log");
        let path = watched.machine.home().join(LOG);
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        let other: String = word.chars().rev().collect();
        let text = String::from_utf8(recorded(LOOP)).unwrap();
        let rewritten = text.replace(word, &other);
        assert!(rewritten != text && rewritten.len() == text.len(), "{word}");
        let mut file = OpenOptions::new().write(true).open(&path).unwrap();
        std::io::Write::write_all(&mut file, rewritten.as_bytes()).unwrap();
        file.set_times(FileTimes::new().set_modified(modified)).unwrap();
        drop(file);
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), modified);
        watched.wait_for_files("the log with other words");
    }
}

#[test]
fn deleted_logs_stay_in_the_archive() {
    let mut watched = WatchedArchive::new(WatchMode::FileSystem);
    watched.machine.put(LOOP, LOG);
    watched.wait_for_files("the log");
    let held = watched.fresh();
    fs::remove_file(watched.machine.home().join(LOG)).unwrap();
    watched.wait_past_marker("a log that was deleted", held);
    let held = watched.machine.sessions("watched").unwrap();
    // The watched folder itself.
    fs::remove_dir_all(watched.machine.home().join(".claude")).unwrap();
    watched.machine.put(OTHER, LOG);
    let mut all = watched.fresh();
    all.extend(held.clone());
    watched.wait_for("what was deleted, and what came in its place", all.clone());
    // A log that comes back is not imported twice.
    watched.machine.put(LOOP, &format!("{PROJECT}/back.jsonl"));
    watched.wait_past_marker("a log that came back", all);
}

#[test]
fn sub_agents_and_folders_may_come_later() {
    let mut watched = WatchedArchive::new(WatchMode::FileSystem);
    let case = "claude-code/subagents-parallel-and-background";
    let log = recorded(&format!("{case}/log.jsonl"));
    let lines = lines(&log);
    let id = session_id(&format!("{case}/log.jsonl"));
    let project = format!("{PROJECT}/of/a/folder/that/comes/later");
    let path = format!("{project}/{id}.jsonl");
    let (first, rest) = lines.split_at(lines.len() / 2);
    watched.machine.append(&path, &first.concat());
    watched.wait_for_files("half a session");
    let agents = crate::case::root().join("fixtures").join(case).join("subagents");
    copy(&agents, &watched.machine.home().join(format!("{project}/{id}/subagents")));
    watched.wait_for_files("its sub-agents");
    watched.machine.append(&path, &rest.concat());
    watched.wait_for_files("the whole session");
    assert_eq!(watched.machine.sessions("watched").unwrap().len(), 4);
    // An agent without files so far.
    watched.machine.put("gemini/discovery-loop/log.jsonl", ".gemini/tmp/abc/chats/session-1.jsonl");
    watched.wait_for_files("a session of another agent");
    assert_eq!(watched.machine.sessions("watched").unwrap().len(), 5);
}

#[test]
fn a_thousand_sessions_grow_at_once_with_few_descriptors() {
    // Law 9: no descriptor is held for an idle file.
    const SESSIONS: usize = 1000;
    let machine = Machine::new();
    fs::create_dir_all(machine.home().join(PROJECT)).unwrap();
    let fixture = "claude-code/v2-1-20-error-overloaded-retried/log.jsonl";
    let own = session_id(fixture);
    let text = String::from_utf8(recorded(fixture)).unwrap();
    let of = |nth: usize| text.replace(&own, &format!("00000000-0000-4000-8000-{nth:012}"));
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg("ulimit -n 64 && exec \"$0\" --data \"$1\" sync --watch --json");
    command.arg(env!("CARGO_BIN_EXE_unspool")).arg(machine.data("watched"));
    machine.set_environment(&mut command);
    let mut watcher = WatchProcess::begin(command);
    // All files are open at once and written line by line in turn.
    let texts: Vec<String> = (0..SESSIONS).map(of).collect();
    let path = |nth: usize| machine.home().join(PROJECT).join(format!("{nth}.jsonl"));
    let mut files: Vec<File> = (0..SESSIONS).map(|nth| File::create(path(nth)).unwrap()).collect();
    for line in 0..text.lines().count() {
        for (file, text) in files.iter_mut().zip(&texts) {
            let line = text.split_inclusive('\n').nth(line).unwrap();
            std::io::Write::write_all(file, line.as_bytes()).unwrap();
        }
    }
    machine.ok("fresh", &["sync"]);
    let expected = machine.json("fresh", &["list"]);
    assert_eq!(expected.as_array().unwrap().len(), SESSIONS);
    until("a thousand sessions", || {
        let held = machine.json("watched", &["list"]);
        if held == expected { Ok(()) } else { Err(held.as_array().map(Vec::len)) }
    });
    assert!(watcher.is_running());
    let open = fs::read_dir(format!("/proc/{}/fd", watcher.id()));
    assert!(open.is_err() || open.unwrap().count() < 40);
    machine.ok("watched", &["db", "check"]);
    let stats = |data: &str| machine.json(data, &["stats"]);
    assert_eq!(stats("watched"), stats("fresh"));
}

#[cfg(unix)]
#[test]
fn a_server_reports_what_it_cannot_read_as_sync_does() {
    // One start-up sequence: `serve` used to drop the warnings of its first scan.
    let machine = Machine::new();
    let project = machine.home().join(PROJECT);
    fs::create_dir_all(&project).unwrap();
    std::os::unix::fs::symlink("nowhere", project.join("broken.jsonl")).unwrap();
    let synced = machine.command("synced", &["sync"]).output().unwrap();
    let warning = "broken.jsonl: not a file";
    assert!(String::from_utf8_lossy(&synced.stderr).contains(warning), "{synced:?}");
    let mut command = machine.command("served", &["serve", "--port", "0"]);
    command.stderr(Stdio::piped());
    let (_server, errors) = Server::begin_with(command);
    until("the warning", || {
        let errors = errors.lock().unwrap();
        if errors.contains(warning) { Ok(()) } else { Err(errors.clone()) }
    });
}

/// The first session of an agent makes its log folder. It does not wait for the next full scan.
#[test]
fn a_log_folder_that_did_not_exist_is_noticed_at_once() {
    let watched = WatchedArchive::new(WatchMode::FileSystem);
    let machine = &watched.machine;
    // Written while the recorder waits, in a folder that it watches.
    machine.put(LOOP, LOG);
    until("the first log", || match machine.sessions("watched") {
        Some(held) if held.len() == 1 => Ok(()),
        other => Err(other.map(|held| held.len())),
    });
    // Full scans are 5 s apart, so one of two that are 2.5 s apart would wait at least that long.
    for (count, path) in [
        (2, ".codex/sessions/2026/11/15/rollout.jsonl"),
        (3, ".gemini/tmp/w/chats/session-1.jsonl"),
    ] {
        let fixture = if count == 2 { ROLLOUT } else { "gemini/todos/log.jsonl" };
        machine.put(fixture, path);
        let written = std::time::Instant::now();
        until("the log", || match machine.sessions("watched") {
            Some(held) if held.len() >= count => Ok(()),
            other => Err(other.map(|held| held.len())),
        });
        assert!(written.elapsed() < std::time::Duration::from_millis(2400), "{path}");
        std::thread::sleep(
            std::time::Duration::from_millis(2500).saturating_sub(written.elapsed()),
        );
    }
}
