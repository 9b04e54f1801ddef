//! A file is identified by its content.

use std::fs::File;
use std::io::{Cursor, Write};

use super::*;
use crate::discover::file_stamp;

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 251) as u8).collect()
}

fn fingerprint(bytes: &[u8], offset: usize) -> Fingerprint {
    super::fingerprint(Cursor::new(bytes), offset as u64).unwrap()
}

fn matches(fingerprint: Fingerprint, bytes: &[u8]) -> bool {
    super::matches(fingerprint, Cursor::new(bytes)).unwrap()
}

const LENGTHS: [usize; 9] = [0, 1, 100, 4095, 4096, 4097, 8191, 8193, 100_000];

#[test]
fn what_is_appended_to_is_the_same_file() {
    for length in LENGTHS {
        let mut bytes = content(length);
        let original = fingerprint(&bytes, length);
        assert!(matches(original, &bytes), "{length}");
        bytes.extend_from_slice(b"more");
        assert!(matches(original, &bytes), "{length}");
        assert_eq!(fingerprint(&bytes, length), original);
    }
}

#[test]
fn what_is_cut_is_another_file() {
    for length in LENGTHS.into_iter().filter(|length| *length > 0) {
        let bytes = content(length);
        let original = fingerprint(&bytes, length);
        assert!(!matches(original, &bytes[..length - 1]), "{length}");
        assert!(!matches(original, &[]), "{length}");
        assert!(super::fingerprint(Cursor::new(&bytes), length as u64 + 1).is_err());
    }
}

#[test]
fn what_is_replaced_is_another_file() {
    for length in LENGTHS.into_iter().filter(|length| *length > 0) {
        let original = fingerprint(&content(length), length);
        let other: Vec<u8> = content(length + 50).into_iter().map(|byte| !byte).collect();
        assert!(!matches(original, &other), "{length}");
        // One changed byte at either end is enough.
        for at in [0, length.min(4096) - 1, length - 1, length.saturating_sub(4096)] {
            let mut bytes = content(length);
            bytes[at] ^= 1;
            assert!(!matches(original, &bytes), "{at} of {length}");
        }
    }
}

#[test]
fn nothing_matches_the_start_of_every_file() {
    assert!(matches(fingerprint(b"", 0), b"anything"));
}

/// A byte changed in place, far from both ends, does not change the fingerprint; the stamp does,
/// even if the old mtime was restored.
#[test]
fn what_is_rewritten_in_the_middle_shows_in_the_stamp_only() {
    let path = std::env::temp_dir().join(format!("unspool-rewritten-{}", std::process::id()));
    let bytes = content(20_000);
    std::fs::write(&path, &bytes).unwrap();
    let mut file = File::options().read(true).write(true).open(&path).unwrap();
    let original = super::fingerprint(&file, 20_000).unwrap();
    let before = file_stamp(&file.metadata().unwrap());
    let modified = file.metadata().unwrap().modified().unwrap();
    // The file system's clock may have a resolution of some milliseconds.
    std::thread::sleep(std::time::Duration::from_millis(20));

    file.seek(SeekFrom::Start(10_000)).unwrap();
    file.write_all(&[!bytes[10_000]]).unwrap();
    file.set_modified(modified).unwrap();

    let after = file_stamp(&file.metadata().unwrap());
    assert!(super::matches(original, &file).unwrap());
    assert_eq!((after.size, after.modified), (before.size, before.modified));
    if cfg!(unix) {
        assert_ne!(after.changed, before.changed);
    }
    std::fs::remove_file(&path).unwrap();
}
