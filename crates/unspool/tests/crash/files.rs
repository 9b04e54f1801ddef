//! Changes of the agents' files: logs grow, are truncated, replaced, moved and deleted, and some
//! files are not logs. The archive imports new records, keeps what it has, and never touches the
//! files.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::contents::{Contents, difference};
use crate::corpus::{self, recording};
use crate::sandbox::{Sandbox, Unspool};

const CASE: &str = "discovery-loop";
const OTHER_CASE: &str = "odd-output";

fn put(sandbox: &Sandbox, name: &str, bytes: &[u8]) -> PathBuf {
    let path = sandbox.projects().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    path
}

/// Sets the modification time one hour back.
fn backdate(path: &Path) {
    let file = File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
}

/// The first `count` lines.
fn lines(log: &[u8], count: usize) -> &[u8] {
    let end = log.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(count - 1);
    &log[..=end.unwrap().0]
}

fn count(log: &[u8]) -> u64 {
    log.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// The contents of a fresh archive of the current files.
fn fresh(sandbox: &Sandbox) -> Contents {
    let fresh = (0..).map(|at| sandbox.unspool(&format!("fresh-{at}")));
    let fresh = fresh.into_iter().find(|fresh| !fresh.database().exists()).unwrap();
    fresh.sync();
    Contents::of(&fresh)
}

/// A session as the archive shows it, without the counts and warnings of its sources.
fn session_json(unspool: &Unspool, case: &str) -> String {
    let log = String::from_utf8(recording(case, "log")).unwrap();
    let mut shown = unspool.shown(corpus::field(&log, "sessionId").unwrap());
    let object = shown.as_object_mut().unwrap();
    object.remove("records");
    object.remove("warnings");
    serde_json::to_string_pretty(&shown).unwrap()
}

fn assert_session(unspool: &Unspool, case: &str, expected: &str, when: &str) {
    let found = session_json(unspool, case);
    assert!(found == expected, "{when}: {}", difference(expected, &found));
}

/// True if a case has a log with a session id, as a finished one does.
fn names_its_session(case: &str) -> bool {
    let log = fs::read_to_string(corpus::fixtures().join(case).join("log.jsonl"));
    log.is_ok_and(|log| corpus::field(&log, "sessionId").is_some())
}

fn sessions(unspool: &Unspool) -> usize {
    unspool.json(&["list", "--json"]).as_array().unwrap().len()
}

fn warnings(report: &Value) -> Vec<String> {
    let session_json = report["warnings"].as_array().unwrap().iter();
    session_json.map(|warning| format!("{}: {}", warning["file"], warning["what"])).collect()
}

#[test]
fn a_grown_log_adds_what_is_new() {
    // R-001-28, law 5: only the new records are read.
    let sandbox = Sandbox::new();
    let unspool = sandbox.unspool("archive");
    let log = recording(CASE, "log");
    for end in [20, 21, 60, 88] {
        let grown = lines(&log, end);
        put(&sandbox, "a/log.jsonl", grown);
        let before = if end == 20 { 0 } else { unspool.shown_records() };
        let report = unspool.sync();
        assert_eq!(report["records"], count(grown) - before, "at line {end}");
        Contents::of(&unspool).assert_same_as(&fresh(&sandbox), &format!("at line {end}"));
    }
}

#[test]
fn half_a_line_waits_for_its_end() {
    // R-001-15: it is no error, and nothing of it remains once it is finished. The same for a file
    // that is being written and for one untouched for long.
    for at_rest in [false, true] {
        let sandbox = Sandbox::new();
        let unspool = sandbox.unspool("archive");
        let log = recording(OTHER_CASE, "log");
        let whole = lines(&log, 40).len();
        let next = lines(&log, 41).len();
        // In the middle of the line, before its last byte, and after it without the line end.
        for cut in [whole + 1, (whole + next) / 2, next - 2, next - 1] {
            let path = put(&sandbox, "a/log.jsonl", &log[..cut]);
            if at_rest {
                backdate(&path);
            }
            unspool.sync();
            unspool.print(&["db", "check"]);
            assert_writes_nothing(&unspool, "half a line");
        }
        put(&sandbox, "a/log.jsonl", &log);
        unspool.sync();
        Contents::of(&unspool).assert_same_as(&fresh(&sandbox), &format!("at rest: {at_rest}"));
    }
}

#[test]
fn a_log_that_was_cut_or_deleted_stays_in_the_archive() {
    // Law 4: imported records are kept, whatever happens to the file.
    let sandbox = Sandbox::new();
    let unspool = sandbox.unspool("archive");
    let cases: Vec<String> =
        corpus::cases().into_iter().filter(|case| names_its_session(case)).collect();
    let write = |share: usize| {
        for case in &cases {
            let log = recording(case, "log");
            let length = log.len() * share / 100;
            let path = put(&sandbox, &format!("{case}.jsonl"), b"");
            fs::write(path, &log[..length]).unwrap();
        }
        unspool.sync();
    };
    write(100);
    let expected: Vec<String> = cases.iter().map(|case| session_json(&unspool, case)).collect();
    // Truncated anywhere, emptied, and restored in steps.
    for share in [80, 47, 1, 0, 60, 100] {
        write(share);
        unspool.print(&["db", "check"]);
        for (case, expected) in cases.iter().zip(&expected) {
            assert_session(&unspool, case, expected, &format!("{case} cut to {share} %"));
        }
    }
    fs::remove_dir_all(sandbox.path("agent")).unwrap();
    unspool.sync();
    for (case, expected) in cases.iter().zip(&expected) {
        assert_session(&unspool, case, expected, &format!("{case} deleted"));
    }
}

#[test]
fn another_log_under_the_same_name_is_another_session() {
    let sandbox = Sandbox::new();
    let unspool = sandbox.unspool("archive");
    let path = put(&sandbox, "a/log.jsonl", &recording(CASE, "log"));
    unspool.sync();
    let (first, modified) =
        (session_json(&unspool, CASE), path.metadata().unwrap().modified().unwrap());
    // Another file replaces it.
    let beside = put(&sandbox, "a/log.new", &recording(OTHER_CASE, "log"));
    fs::rename(&beside, &path).unwrap();
    unspool.sync();
    assert_session(&unspool, CASE, &first, "replaced");
    let second = session_json(&unspool, OTHER_CASE);
    assert_eq!(sessions(&unspool), 2);
    // The same file is rewritten in place with the same size and modification time.
    let third = String::from_utf8(recording(OTHER_CASE, "log")).unwrap();
    let id = corpus::field(&third, "sessionId").unwrap();
    let third = third.replace(id, "00000000-1111-2222-3333-444444444444");
    fs::write(&path, third).unwrap();
    File::options().append(true).open(&path).unwrap().set_modified(modified).unwrap();
    unspool.sync();
    assert_eq!(sessions(&unspool), 3);
    assert_session(&unspool, CASE, &first, "rewritten");
    assert_session(&unspool, OTHER_CASE, &second, "rewritten");
    assert_eq!(
        unspool.shown("00000000-1111-2222-3333-444444444444")["turns"].as_array().unwrap().len(),
        unspool.shown(id)["turns"].as_array().unwrap().len(),
    );
}

#[test]
fn a_change_in_the_middle_of_a_log_is_imported() {
    // With the same size and modification time. Earlier parts stay, and the new record is there
    // once.
    let sandbox = Sandbox::new();
    let unspool = sandbox.unspool("archive");
    let log = String::from_utf8(recording(CASE, "log")).unwrap();
    let at = log.match_indices("\"type\":\"tools-used\"").nth(2).unwrap().0;
    assert!(at > 8192 && log.len() - at > 8192);
    let path = put(&sandbox, "a/log.jsonl", log.as_bytes());
    let id = corpus::field(&log, "sessionId").unwrap().to_owned();
    let modified = path.metadata().unwrap().modified().unwrap();
    unspool.sync();
    let parts = |unspool: &Unspool| -> Vec<String> {
        let shown = unspool.shown(&id);
        let parts =
            shown["turns"].as_array().unwrap().iter().flat_map(|turn| {
                turn["parts"].as_array().unwrap().iter().map(|part| part.to_string())
            });
        parts.collect()
    };
    let before = parts(&unspool);
    let mut changed = log.clone();
    changed.replace_range(at..at + 19, "\"type\":\"new-record\"");
    fs::write(&path, &changed).unwrap();
    File::options().append(true).open(&path).unwrap().set_modified(modified).unwrap();
    unspool.sync();
    let mut after = parts(&unspool);
    let new = after.iter().position(|part| part.contains("new-record")).unwrap();
    after.remove(new);
    assert_eq!(after, before);
    let checked = unspool.print(&["db", "check"]);
    assert!(checked.contains("no problems found"), "{checked}");
    assert_writes_nothing(&unspool, "changed in the middle");
}

#[test]
fn a_log_whose_last_lines_were_truncated_continues() {
    // Claude Code removes the records of a failed request: it truncates its log and continues. The
    // removed records stay in the archive; what follows is there once.
    let sandbox = Sandbox::new();
    let unspool = sandbox.unspool("archive");
    let log = corpus::repeated(CASE, 3);
    let path = put(&sandbox, "long.jsonl", &log);
    let id = corpus::field(std::str::from_utf8(&log).unwrap(), "sessionId").unwrap().to_owned();
    unspool.sync();
    let turns = |unspool: &Unspool| unspool.shown(&id)["turns"].clone();
    let before = turns(&unspool);
    // Complete, truncated, and with three more turns after the cut.
    fs::write(&path, lines(&log, 250)).unwrap();
    unspool.sync();
    assert_eq!(turns(&unspool), before, "cut");
    let more = corpus::repeated(CASE, 6);
    assert!(more.starts_with(&log));
    let behind = &more[log.len()..];
    fs::write(&path, [lines(&log, 250), behind].concat()).unwrap();
    unspool.sync();
    let whole = sandbox.unspool("whole");
    fs::write(&path, &more).unwrap();
    whole.sync();
    assert_eq!(turns(&unspool), turns(&whole), "gone on");
    unspool.print(&["db", "check"]);
}

#[test]
fn a_moved_or_copied_log_is_imported_once() {
    // Law 5.
    let sandbox = Sandbox::new();
    let unspool = sandbox.unspool("archive");
    let log = recording(CASE, "log");
    let first = put(&sandbox, "a/log.jsonl", lines(&log, 60));
    unspool.sync();
    let expected = session_json(&unspool, CASE);
    let second = sandbox.projects().join("a/moved.jsonl");
    fs::rename(&first, &second).unwrap();
    unspool.sync();
    assert_session(&unspool, CASE, &expected, "moved");
    let third = sandbox.projects().join("copied.jsonl");
    fs::copy(&second, &third).unwrap();
    fs::hard_link(&second, sandbox.projects().join("linked.jsonl")).unwrap();
    symlink(&second, sandbox.projects().join("pointed.jsonl")).unwrap();
    unspool.sync();
    assert_session(&unspool, CASE, &expected, "copied");
    // The copy grows first, then the original.
    let undisturbed = sandbox.unspool("undisturbed");
    fs::write(&third, &log).unwrap();
    undisturbed.print(&["import", third.to_str().unwrap()]);
    let whole = session_json(&undisturbed, CASE);
    unspool.sync();
    assert_session(&unspool, CASE, &whole, "the copy went on");
    fs::write(&second, &log).unwrap();
    unspool.sync();
    assert_session(&unspool, CASE, &whole, "both went on");
    assert_eq!(sessions(&unspool), 1);
}

#[test]
fn files_that_are_not_logs_are_skipped() {
    // R-001-15 R-001-16 R-001-25: loops, pipes, folders, empty files and files of other kinds.
    let sandbox = Sandbox::new();
    let unspool = sandbox.unspool("archive");
    put(&sandbox, "a/log.jsonl", &recording(CASE, "log"));
    unspool.sync();
    let expected = session_json(&unspool, CASE);
    put(&sandbox, "a/empty.jsonl", b"");
    put(&sandbox, "a/blank.jsonl", b"\n\n  \n");
    put(&sandbox, "a/image.jsonl", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff\xfe\xfd");
    put(&sandbox, "a/zeros.jsonl", &[0; 10_000]);
    put(&sandbox, "a/table.jsonl", b"a,b,c\n1,2,3\n");
    put(&sandbox, "a/json.jsonl", b"{\"hello\":1}\n[1,2]\nnull\n");
    put(
        &sandbox,
        "a/history.jsonl",
        b"{\"display\":\"hello\",\"pastedContents\":{},\"timestamp\":1}\n",
    );
    put(&sandbox, "a/deep.jsonl", "[".repeat(200_000).as_bytes());
    put(&sandbox, "a/notes.txt", b"not looked at\n");
    fs::create_dir(sandbox.projects().join("folder.jsonl")).unwrap();
    let path = |name: &str| sandbox.projects().join(name);
    symlink(sandbox.projects(), path("a/loop")).unwrap();
    symlink(path("a"), path("a/self")).unwrap();
    symlink(path("a/round.jsonl"), path("a/round.jsonl")).unwrap();
    symlink(path("nowhere"), path("a/nowhere.jsonl")).unwrap();
    symlink("/dev/zero", path("a/endless.jsonl")).unwrap();
    let pipe = Command::new("mkfifo").arg(path("a/pipe.jsonl")).status();
    println!("a pipe: {pipe:?}");
    let report = unspool.sync();
    let said = warnings(&report);
    let names =
        ["image", "zeros", "table", "json", "history", "deep", "round", "nowhere", "endless"];
    for name in names {
        assert!(
            said.iter().any(|said| said.contains(&format!("{name}.jsonl"))),
            "{name}: {said:#?}"
        );
    }
    assert!(said.iter().any(|said| said.contains("prompts")), "{said:#?}");
    assert_session(&unspool, CASE, &expected, "beside what is no log");
    assert_eq!(sessions(&unspool), 1);
    assert_writes_nothing(&unspool, "beside what is no log");
}

#[test]
fn an_unreadable_file_is_reported_and_skipped() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    let sandbox = Sandbox::new();
    let secret = put(&sandbox, "secret.jsonl", &recording(OTHER_CASE, "log"));
    put(&sandbox, "log.jsonl", &recording(CASE, "log"));
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    let unspool = sandbox.unspool("archive");
    let mut command = unspool.command(&["sync", "--json"]);
    if secret.metadata().unwrap().uid() == 0 {
        // Root can read everything: run as another user.
        let nobody = 65534;
        fs::create_dir(unspool.folder().path()).unwrap();
        chown(unspool.folder().path(), Some(nobody), Some(nobody)).unwrap();
        fs::set_permissions(sandbox.path(""), fs::Permissions::from_mode(0o755)).unwrap();
        command.uid(nobody).gid(nobody);
    }
    let Ok(output) = command.output() else {
        println!("skipped: the program cannot be run by somebody else here");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = warnings(&serde_json::from_slice(&output.stdout).unwrap());
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("secret.jsonl") && said[0].contains("cannot be read"), "{said:?}");
    assert_eq!(sessions(&unspool), 1);
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    unspool.sync();
    assert_eq!(sessions(&unspool), 2, "as soon as it may be read");
}

#[test]
fn lines_that_cannot_be_read_are_kept_and_counted_once() {
    // R-001-15, law 4.
    let sandbox = Sandbox::new();
    let unspool = sandbox.unspool("archive");
    let log = recording(CASE, "log");
    let (start, rest) = log.split_at(lines(&log, 30).len());
    let text = String::from_utf8(rest.to_vec()).unwrap();
    let spoilt =
        text.replacen("\"role\":\"assistant\"", "\"role\":\"assistant\",\"x\":\"\u{1}\"", 1);
    let mut bytes = start.to_vec();
    bytes.extend_from_slice(b"{\"type\":\"user\",\"mess\n\0\0\0\0\nnot JSON at all\n");
    let bad = spoilt.find('\u{1}').unwrap();
    bytes.extend_from_slice(&spoilt.as_bytes()[..bad]);
    // Half a UTF-8 character, and an invalid byte.
    bytes.extend_from_slice(b"\xc3 \xff");
    bytes.extend_from_slice(&spoilt.as_bytes()[bad + 1..]);
    let path = put(&sandbox, "a/log.jsonl", &bytes);
    unspool.sync();
    let expected = Contents::of(&unspool);
    let shown = unspool.shown("112b2623-935f-4249-9e9a-c45c61ba0d98");
    assert_eq!(shown["records"]["unreadable"], 3);
    assert_eq!(shown["session"]["completeness"], "partial");
    let said = warnings(&shown);
    assert_eq!(said.len(), 4, "{said:#?}");
    assert!(said[3].contains("invalid UTF-8 was replaced"), "{said:#?}");
    // Read again from the start, in this archive and in a fresh one.
    backdate(&path);
    unspool.sync();
    Contents::of(&unspool).assert_same_as(&expected, "again");
    Contents::of(&unspool).assert_same_as(&fresh(&sandbox), "anew");
}

#[test]
fn a_line_of_five_megabytes_is_a_line() {
    // R-X-14
    let sandbox = Sandbox::new();
    let unspool = sandbox.unspool("archive");
    let log = String::from_utf8(recording(CASE, "log")).unwrap();
    let long = "ä€😀 words ".repeat(400_000);
    let at = log.find("\"tool_result\",\"content\":\"").unwrap()
        + "\"tool_result\",\"content\":\"".len();
    let (before, after) = log.split_at(at);
    let path = put(&sandbox, "a/log.jsonl", format!("{before}{}", &long[..3_000_000]).as_bytes());
    unspool.sync();
    assert_writes_nothing(&unspool, "in the middle of it");
    fs::write(&path, format!("{before}{long}{after}")).unwrap();
    unspool.sync();
    Contents::of(&unspool).assert_same_as(&fresh(&sandbox), "finished");
    let shown = unspool.print(&["show", "112b2623-935f-4249-9e9a-c45c61ba0d98", "--json"]);
    assert!(shown.contains(&long));
}

/// Syncs again and asserts that no byte of the archive changes.
fn assert_writes_nothing(unspool: &Unspool, when: &str) {
    let state = || {
        let path = unspool.database();
        let files = unspool.folder().path().read_dir().unwrap();
        let names: std::collections::BTreeSet<_> =
            files.map(|file| file.unwrap().file_name()).collect();
        (names, path.metadata().unwrap().modified().unwrap(), fs::read(path).unwrap())
    };
    let before = state();
    let report = unspool.sync();
    assert_eq!(report["records"], 0, "{when}");
    assert!(before == state(), "{when}: something was written");
}

#[test]
fn a_sync_of_unchanged_files_writes_nothing() {
    // R-001-28, laws 5 and 7.
    let sandbox = Sandbox::filled();
    let before = sandbox.listing();
    let unspool = sandbox.unspool("archive");
    unspool.sync();
    assert_writes_nothing(&unspool, "once more");
    Contents::of(&unspool);
    assert_writes_nothing(&unspool, "after all was looked at");
    unspool.print(&["db", "rebuild"]);
    unspool.print(&["db", "vacuum"]);
    unspool.print(&["export", "--all", "--to", "jsonl"]);
    assert_eq!(sandbox.listing(), before, "law 7");
}

impl Unspool {
    /// How many records of the session were read.
    fn shown_records(&self) -> u64 {
        self.shown("112b2623-935f-4249-9e9a-c45c61ba0d98")["records"]["read"].as_u64().unwrap()
    }
}
