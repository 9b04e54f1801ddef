//! Archives that are damaged, of another program, or of a newer version: each is refused with a
//! one-line error and left unchanged, byte for byte.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Output;
use std::thread;
use std::time::Instant;

use crate::contents::Contents;
use crate::corpus;
use crate::random::Random;
use crate::sandbox::{Sandbox, Unspool};
use crate::small_disk::assert_refused;

const READ_COMMANDS: [&[&str]; 7] = [
    &["list"],
    &["list", "--json"],
    &["show", "112b2623-935f-4249-9e9a-c45c61ba0d98"],
    &["search", "weather", "--json"],
    &["stats"],
    &["db", "check"],
    &["export", "--all", "--to", "jsonl"],
];

const WRITE_COMMANDS: [&[&str]; 6] = [
    &["sync"],
    &["tag", "112b2623", "x"],
    &["rename", "112b2623", "x"],
    &["delete", "112b2623", "--yes"],
    &["db", "vacuum"],
    &["db", "rebuild"],
];

type ArchiveState = (Vec<u8>, BTreeSet<OsString>);

/// The bytes of the database, and the names of the files beside it. Ignores the lock, and an empty
/// write-ahead log with its index: SQLite leaves them if it cannot close a database cleanly.
fn state(unspool: &Unspool) -> ArchiveState {
    let entries = unspool.folder().path().read_dir().unwrap();
    let mut names: BTreeSet<OsString> = entries.map(|entry| entry.unwrap().file_name()).collect();
    for name in ["recorder.lock", "unspool.db-wal", "unspool.db-shm"] {
        names.remove(&OsString::from(name));
    }
    let log = unspool.folder().path().join("unspool.db-wal");
    assert!(log.metadata().map_or(0, |log| log.len()) == 0, "something was written");
    (fs::read(unspool.database()).unwrap(), names)
}

fn assert_same(after: &ArchiveState, before: &ArchiveState, when: &str) {
    assert_eq!(after.1, before.1, "{when}: something lies beside the file");
    let changed = after.0.iter().zip(&before.0).position(|(after, before)| after != before);
    assert_eq!(changed, None, "{when}: bytes of the file changed");
    assert_eq!(after.0.len(), before.0.len(), "{when}: the file has another size");
}

/// An archive whose database file has these bytes.
fn archive(sandbox: &Sandbox, name: &str, bytes: &[u8]) -> Unspool {
    let unspool = sandbox.unspool(name);
    fs::create_dir(unspool.folder().path()).unwrap();
    fs::write(unspool.database(), bytes).unwrap();
    unspool
}

fn whole(sandbox: &Sandbox) -> Vec<u8> {
    let unspool = sandbox.unspool("whole");
    unspool.sync();
    fs::read(unspool.database()).unwrap()
}

#[test]
fn a_file_that_is_no_archive_is_refused_and_left_untouched() {
    // R-001-37 for the newer one.
    let sandbox = Sandbox::filled();
    let whole = whole(&sandbox);
    let patched = |at: usize, value: u32| {
        let mut bytes = whole.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
        bytes
    };
    let away = "move it away";
    // A SQLite header has the user version at offset 60 and the application id at 68.
    let cases: [(&str, Vec<u8>, &str); 8] = [
        ("half", whole[..whole.len() / 2].to_vec(), away),
        ("a-hundred-bytes", whole[..100].to_vec(), away),
        ("all-but-the-last-page", whole[..whole.len() - 8192].to_vec(), away),
        ("no-head", [&[0; 100], &whole[100..]].concat(), away),
        ("a-text", b"This is no database.\n".repeat(1000), away),
        ("another-program", patched(68, 0x1234_5678), "choose another folder with --data"),
        ("nobody-knows", patched(68, 0), "choose another folder with --data"),
        ("newer", patched(60, 999), "install the newer one"),
    ];
    for (name, bytes, next) in cases {
        let unspool = archive(&sandbox, name, &bytes);
        let before = state(&unspool);
        for command in READ_COMMANDS.iter().chain(&WRITE_COMMANDS) {
            assert_refused(&unspool.run(command), &unspool.database(), next);
            assert_same(&state(&unspool), &before, &format!("{name}: {command:?}"));
        }
    }
}

#[test]
fn a_file_with_nothing_in_it_is_no_archive_yet() {
    // The process that was creating it was killed. It is created now.
    let sandbox = Sandbox::filled();
    let unspool = archive(&sandbox, "empty", b"");
    for command in READ_COMMANDS {
        assert_refused(&unspool.run(command), &unspool.database(), "`unspool sync` creates it");
        assert!(state(&unspool).0.is_empty(), "{command:?}");
    }
    unspool.sync();
    let undisturbed = sandbox.unspool("undisturbed");
    undisturbed.sync();
    Contents::of(&unspool).assert_same_as(&Contents::of(&undisturbed), "made from an empty file");
}

/// Asserts success or a one-line error; `db check` may print more.
fn assert_ok_or_one_line_error(output: &Output, database: &Path, command: &[&str]) {
    if output.status.success() {
        return;
    }
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{command:?}: {said}");
    assert!(!said.contains("panicked"), "{command:?}: {said}");
    let last = said.lines().last().unwrap();
    if command != ["db", "check"] {
        assert_eq!(said.lines().count(), 1, "{command:?}: {said}");
        let named = last.contains(database.to_str().unwrap()) || last.contains("no session");
        assert!(named, "{command:?}: {said}");
    }
    assert!(last.contains("unspool"), "{command:?}: {said}");
}

#[test]
fn damage_in_the_middle_is_found_and_never_made_worse() {
    // No panic, no crash; reading changes nothing; and a check finds the damage.
    let sandbox = Sandbox::filled();
    let whole = whole(&sandbox);
    let mut random = Random::new("damage");
    let mut found = 0;
    for round in 0..16 {
        let mut bytes = whole.clone();
        let what = if round % 2 == 0 {
            // Garbage, several pages long.
            let at = 8192 + random.below(bytes.len() - 80_000);
            let length = 1 + random.below(60_000);
            bytes[at..at + length].fill_with(|| random.next() as u8);
            format!("{length} bytes at {at}")
        } else {
            // Flipped bits anywhere, the header included.
            let places: Vec<usize> = (0..40).map(|_| random.below(bytes.len())).collect();
            places.iter().for_each(|at| bytes[*at] ^= 1 << random.below(8));
            format!("bits at {places:?}")
        };
        let unspool = archive(&sandbox, &format!("round-{round}"), &bytes);
        let before = state(&unspool);
        println!("round {round}: {what}");
        for command in READ_COMMANDS {
            let output = unspool.run(command);
            assert_ok_or_one_line_error(&output, &unspool.database(), command);
            assert_same(&state(&unspool), &before, &format!("{command:?}"));
            found += usize::from(command == ["db", "check"] && !output.status.success());
        }
        for command in [&["sync"][..], &["db", "rebuild"], &["db", "vacuum"]] {
            assert_ok_or_one_line_error(&unspool.run(command), &unspool.database(), command);
        }
    }
    assert!(found >= 12, "a check found only {found} of 16");
}

#[test]
fn a_truncated_wal_loses_only_its_own_content() {
    // After a power failure the end of the write-ahead log is missing. The next sync reads the lost
    // records again.
    let sandbox = Sandbox::new();
    let cases = corpus::cases();
    let some: Vec<&str> = cases.iter().map(String::as_str).take(24).collect();
    corpus::fill_with(&sandbox.projects(), &some);
    let undisturbed = sandbox.unspool("undisturbed");
    let begun = Instant::now();
    undisturbed.sync();
    let took = begun.elapsed();
    let expected = Contents::of(&undisturbed);
    let mut random = Random::new("power");
    for round in 0..9 {
        let unspool = sandbox.unspool(&format!("round-{round}"));
        let mut child = unspool.begin(&["sync"]);
        thread::sleep(took / 2 + random.delay(took / 2));
        child.kill().unwrap();
        child.wait().unwrap();
        let log = unspool.folder().path().join("unspool.db-wal");
        if let Ok(mut bytes) = fs::read(&log)
            && !bytes.is_empty()
        {
            let at = random.below(bytes.len());
            match round % 3 {
                0 => bytes.truncate(at),
                1 => bytes[at..].fill(0),
                _ => bytes[at] ^= 0x55,
            }
            fs::write(&log, bytes).unwrap();
        }
        unspool.sync();
        Contents::of(&unspool).assert_same_as(&expected, &format!("round {round}"));
    }
}
