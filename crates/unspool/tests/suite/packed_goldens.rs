//! Stored golden texts of projections: plain files for the cases that people read, and one
//! compressed file per source, `fixtures/<source>/projected.txt.zst`, for all others.
//!
//! The compressed file is a text: a line `══ golden CASE/FILE` before each golden text. It is not
//! named `.jsonl.zst`, which an import of the folder would take for a recording.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::case::{cases, name, root};

/// Golden texts by `CASE/FILE`.
pub type Texts = BTreeMap<String, String>;

const HEAD: &str = "══ golden ";
const LEVEL: i32 = 19;

fn packed_path(source: &str) -> PathBuf {
    root().join("fixtures").join(source).join("projected.txt.zst")
}

/// The folder of a case's plain golden files.
fn folder(case: &Path) -> PathBuf {
    case.join("projected")
}

/// All plain golden files of a source.
pub fn plain(source: &str) -> Texts {
    let mut texts = Texts::new();
    for case in cases(source) {
        for file in folder(&case).read_dir().into_iter().flatten() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            texts.insert(format!("{}/{}", name(&case), name(&path)), text);
        }
    }
    texts
}

/// All golden texts in the compressed file of a source.
pub fn packed(source: &str) -> Texts {
    match std::fs::read(packed_path(source)) {
        Ok(bytes) => read_packed(&bytes),
        Err(_) => Texts::new(),
    }
}

fn read_packed(bytes: &[u8]) -> Texts {
    let whole = String::from_utf8(zstd::decode_all(bytes).unwrap()).unwrap();
    let whole = format!("\n{}", whole.strip_suffix('\n').unwrap());
    let head = format!("\n{HEAD}");
    let entries = whole.split(head.as_str()).skip(1);
    let texts = entries.map(|entry| {
        let (key, text) = entry.split_once('\n').unwrap();
        (key.to_owned(), text.to_owned())
    });
    texts.collect()
}

fn write_packed(texts: &Texts) -> Vec<u8> {
    let mut whole = String::new();
    for (key, text) in texts {
        assert!(
            !format!("\n{text}").contains(&format!("\n{HEAD}")),
            "{key} has a line like a head"
        );
        whole.push_str(&format!("{HEAD}{key}\n{text}\n"));
    }
    zstd::encode_all(whole.as_bytes(), LEVEL).unwrap()
}

/// Replaces the plain golden files of a source.
pub fn store_plain(source: &str, texts: &Texts) {
    for case in cases(source) {
        let _ = std::fs::remove_dir_all(folder(&case));
    }
    for (key, text) in texts {
        let (case, file) = key.split_once('/').unwrap();
        let folder = folder(&root().join("fixtures").join(source).join(case));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(file), text).unwrap();
    }
}

/// Replaces the compressed file of a source if a text changed: another version of the compressor
/// may write other bytes for the same texts.
pub fn store_packed(source: &str, texts: &Texts) {
    let path = packed_path(source);
    if texts.is_empty() {
        let _ = std::fs::remove_file(path);
    } else if packed(source) != *texts {
        std::fs::write(path, write_packed(texts)).unwrap();
    }
}

#[test]
fn packed_goldens_keep_every_byte() {
    let texts: Texts = [
        ("a/html.txt", "one\ntwo"),
        ("a/json.txt", ""),
        ("b/html.txt", "\n\nends with lines\n\n"),
        ("b/1.html.txt", "carriage\r\nreturn\r ══ golden inside"),
    ]
    .map(|(key, text)| (key.to_owned(), text.to_owned()))
    .into();
    assert_eq!(read_packed(&write_packed(&texts)), texts);
    assert_eq!(write_packed(&texts), write_packed(&texts));
}
