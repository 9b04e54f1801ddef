//! `sync --watch` while files grow, are truncated, replaced, renamed, compressed, rewritten and
//! deleted. In the end the archive holds what a fresh import of the files gives, plus what was
//! removed from them, and nothing twice.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::process::Command;

use serde_json::Value;

use crate::home::{Machine, Watching, copy, lines, recorded, until};

const PROJECT: &str = ".claude/projects/-home-dev-weather-app";
const LOG: &str = ".claude/projects/-home-dev-weather-app/log.jsonl";
const LOOP: &str = "claude-code/discovery-loop/log.jsonl";
const OTHER: &str = "claude-code/question-answered/log.jsonl";
const MARKER: &str = "claude-code/web-search/log.jsonl";
const ROLLOUT: &str = "codex/exec-discovery-with-hooks/log.jsonl";

/// How the program notices changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum By {
    FileSystem,
    Polling,
}

/// A watched archive.
struct Scene {
    machine: Machine,
    watching: Watching,
    fresh: u32,
}

impl Scene {
    fn new(by: By) -> Scene {
        let machine = Machine::new();
        fs::create_dir_all(machine.home().join(PROJECT)).unwrap();
        let mut command = machine.command("watched", &["sync", "--watch", "--json"]);
        if by == By::Polling {
            command.env("UNSPOOL_POLL", "1");
        }
        Scene { watching: Watching::begin(command), machine, fresh: 0 }
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
    fn comes_to(&mut self, what: &str, mut expected: Vec<Value>) {
        by_id(&mut expected);
        until(what, || match self.machine.sessions("watched") {
            Some(held) if held == expected => Ok(()),
            held => Err(held.map(|held| difference(&held, &expected))),
        });
        assert!(self.watching.is_running(), "{what}");
        self.machine.ok("watched", &["db", "check"]);
    }

    #[track_caller]
    fn comes_to_files(&mut self, what: &str) {
        let expected = self.fresh();
        self.comes_to(what, expected);
    }

    /// Adds a marker session and waits for it: earlier changes have been processed by then.
    #[track_caller]
    fn passes(&mut self, what: &str, mut expected: Vec<Value>) {
        let marker = format!(".claude/projects/-elsewhere-{}/log.jsonl", self.fresh);
        let id = format!("00000000-0000-4000-8000-{:012}", self.fresh);
        let own = session_id(MARKER);
        let text = String::from_utf8(recorded(MARKER)).unwrap().replace(&own, &id);
        self.machine.write(&marker, text.as_bytes());
        let of_marker = self.fresh().into_iter().filter(|it| agent_id(it) == id);
        expected.extend(of_marker);
        self.comes_to(what, expected);
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
fn a_log_that_grows_is_taken_as_it_grows() {
    // R-X-01: also when a line arrives in two writes.
    for by in [By::FileSystem, By::Polling] {
        let mut scene = Scene::new(by);
        let text = recorded(LOOP);
        let lines = lines(&text);
        for (number, line) in lines.iter().enumerate() {
            let (half, rest) = line.split_at(line.len() / 2);
            scene.machine.append(LOG, half);
            if number == lines.len() / 2 {
                let archive = scene.machine.json("watched", &["doctor"]);
                assert_eq!(archive["archive"]["recording"], true);
            }
            scene.machine.append(LOG, rest);
            if number == lines.len() / 3 {
                scene.comes_to_files("a third of the log");
            }
        }
        scene.comes_to_files("the whole log");
    }
}

#[test]
fn a_log_that_was_cut_keeps_what_was_taken() {
    let mut scene = Scene::new(By::FileSystem);
    scene.machine.put(LOOP, LOG);
    let whole = scene.fresh();
    scene.comes_to("the log", whole.clone());
    let path = scene.machine.home().join(LOG);
    let text = recorded(LOOP);
    let lines = lines(&text);
    let half: usize = lines[..lines.len() / 2].iter().map(|line| line.len()).sum();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(half as u64).unwrap();
    drop(file);
    scene.passes("a log that was cut", whole.clone());
    // It grows back to what it was.
    scene.machine.append(LOG, &text[half..]);
    scene.comes_to_files("the log as it was");
    // It is overwritten with another session.
    fs::write(&path, recorded(OTHER)).unwrap();
    let mut both = scene.fresh();
    both.extend(whole);
    scene.comes_to("both sessions", both);
}

#[test]
fn a_log_that_another_file_took_the_place_of() {
    let mut scene = Scene::new(By::FileSystem);
    let text = recorded(LOOP);
    let lines = lines(&text);
    let third: usize = lines[..lines.len() / 3].iter().map(|line| line.len()).sum();
    let replace = |scene: &Scene, bytes: &[u8]| {
        let beside = scene.machine.home().join(PROJECT).join("log.jsonl.tmp");
        fs::write(&beside, bytes).unwrap();
        fs::rename(&beside, scene.machine.home().join(LOG)).unwrap();
    };
    scene.machine.write(LOG, &text[..third]);
    scene.comes_to_files("a third of the log");
    // A longer version of the same log.
    replace(&scene, &text);
    scene.comes_to_files("the whole log");
    let whole = scene.fresh();
    // Another session.
    replace(&scene, &recorded(OTHER));
    let mut both = scene.fresh();
    both.extend(whole);
    scene.comes_to("both sessions", both.clone());
    // And the first one again.
    replace(&scene, &text);
    scene.passes("both sessions again", both);
}

#[test]
fn a_log_that_is_renamed_is_the_same_log() {
    let mut scene = Scene::new(By::FileSystem);
    let text = recorded(LOOP);
    let lines = lines(&text);
    let third: usize = lines[..lines.len() / 3].iter().map(|line| line.len()).sum();
    scene.machine.write(LOG, &text[..third]);
    scene.comes_to_files("a third of the log");
    let renamed = format!("{PROJECT}/renamed.jsonl");
    fs::rename(scene.machine.home().join(LOG), scene.machine.home().join(&renamed)).unwrap();
    let third_held = scene.fresh();
    scene.passes("a log with another name", third_held);
    scene.machine.append(&renamed, &text[third..]);
    scene.comes_to_files("the log under another name");
    // With its folder.
    let [from, to] =
        [PROJECT, ".claude/projects/-home-dev-moved"].map(|it| scene.machine.home().join(it));
    fs::rename(from, to).unwrap();
    scene.comes_to_files("the log in another folder");
    scene.machine.append(".claude/projects/-home-dev-moved/other.jsonl", &recorded(OTHER));
    scene.comes_to_files("a session beside it");
    // Records are counted once per session, wherever the file was.
    let records = scene.machine.json("watched", &["show", &session_id(LOOP)])["records"].clone();
    let fresh = format!("fresh-{}", scene.fresh);
    assert_eq!(records, scene.machine.json(&fresh, &["show", &session_id(LOOP)])["records"]);
}

#[test]
fn a_rollout_that_is_packed_is_the_same_rollout() {
    for by in [By::FileSystem, By::Polling] {
        let mut scene = Scene::new(by);
        let path = ".codex/sessions/2026/11/15/rollout-2026-11-15T00-42-09-01a1dca7-8783-7e12-90f3-d84e885d08f9.jsonl";
        scene.machine.put(ROLLOUT, path);
        scene.comes_to_files("the rollout");
        let plain = scene.fresh();
        let packed = zstd::encode_all(&*recorded(ROLLOUT), 3).unwrap();
        scene.machine.write(&format!("{path}.zst"), &packed);
        fs::remove_file(scene.machine.home().join(path)).unwrap();
        scene.passes("the packed rollout", plain.clone());
        assert_eq!(scene.fresh().iter().filter(|it| it["session"]["agent"] == "codex").count(), 1);
        // Archived by its user.
        let archived = path.replace("sessions/2026/11/15", "archived_sessions") + ".zst";
        let archived = scene.machine.home().join(archived);
        fs::create_dir_all(archived.parent().unwrap()).unwrap();
        fs::rename(scene.machine.home().join(format!("{path}.zst")), archived).unwrap();
        scene.comes_to_files("the packed rollout in another folder");
    }
}

#[test]
fn a_log_that_is_rewritten_in_place_with_its_old_time_is_read_again() {
    // At the end, and in the middle, which the fingerprint of both ends does not cover.
    for word in ["forecast", "mapping the project"] {
        let mut scene = Scene::new(By::FileSystem);
        scene.machine.put(LOOP, LOG);
        scene.comes_to_files("the log");
        let path = scene.machine.home().join(LOG);
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
        scene.comes_to_files("the log with other words");
    }
}

#[test]
fn what_is_deleted_stays_in_the_archive() {
    let mut scene = Scene::new(By::FileSystem);
    scene.machine.put(LOOP, LOG);
    scene.comes_to_files("the log");
    let held = scene.fresh();
    fs::remove_file(scene.machine.home().join(LOG)).unwrap();
    scene.passes("a log that was deleted", held);
    let held = scene.machine.sessions("watched").unwrap();
    // The watched folder itself.
    fs::remove_dir_all(scene.machine.home().join(".claude")).unwrap();
    scene.machine.put(OTHER, LOG);
    let mut all = scene.fresh();
    all.extend(held.clone());
    scene.comes_to("what was deleted, and what came in its place", all.clone());
    // A log that comes back is not imported twice.
    scene.machine.put(LOOP, &format!("{PROJECT}/back.jsonl"));
    scene.passes("a log that came back", all);
}

#[test]
fn sub_agents_and_folders_may_come_later() {
    let mut scene = Scene::new(By::FileSystem);
    let case = "claude-code/subagents-parallel-and-background";
    let log = recorded(&format!("{case}/log.jsonl"));
    let lines = lines(&log);
    let id = session_id(&format!("{case}/log.jsonl"));
    let project = format!("{PROJECT}/of/a/folder/that/comes/later");
    let path = format!("{project}/{id}.jsonl");
    let (first, rest) = lines.split_at(lines.len() / 2);
    scene.machine.append(&path, &first.concat());
    scene.comes_to_files("half a session");
    let agents = crate::case::root().join("fixtures").join(case).join("subagents");
    copy(&agents, &scene.machine.home().join(format!("{project}/{id}/subagents")));
    scene.comes_to_files("its sub-agents");
    scene.machine.append(&path, &rest.concat());
    scene.comes_to_files("the whole session");
    assert_eq!(scene.machine.sessions("watched").unwrap().len(), 4);
    // An agent without files so far.
    scene.machine.put("gemini/discovery-loop/log.jsonl", ".gemini/tmp/abc/chats/session-1.jsonl");
    scene.comes_to_files("a session of another agent");
    assert_eq!(scene.machine.sessions("watched").unwrap().len(), 5);
}

#[test]
fn a_thousand_sessions_grow_at_once_with_few_descriptors() {
    // R-X-01, law 9: no descriptor is held for an idle file.
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
    machine.settle(&mut command);
    let mut watching = Watching::begin(command);
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
    assert!(watching.is_running());
    let open = fs::read_dir(format!("/proc/{}/fd", watching.id()));
    assert!(open.is_err() || open.unwrap().count() < 40);
    machine.ok("watched", &["db", "check"]);
    let stats = |data: &str| machine.json(data, &["stats"]);
    assert_eq!(stats("watched"), stats("fresh"));
}
