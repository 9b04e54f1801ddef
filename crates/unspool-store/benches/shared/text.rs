//! Generates the text of the index benchmarks: this repository's own source with identifiers varied
//! by a fixed rule, so that it has as many different words as the logs of many projects. In a
//! folder of its own, because Cargo takes every file next to the benchmarks for one.

use std::path::Path;
use std::sync::LazyLock;

/// One in this many identifiers is made unique.
const VARIED: u64 = 12;

/// The words of this repository's source, each with the separators after it.
pub static SOURCE: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let mut files = Vec::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut files);
    files.sort();
    let mut pairs = Vec::new();
    for text in files {
        for line in text.split_inclusive(|it: char| !it.is_alphanumeric()) {
            let word = line.trim_end_matches(|it: char| !it.is_alphanumeric());
            pairs.push((word.to_owned(), line[word.len()..].to_owned()));
        }
    }
    pairs
});

fn read(folder: &Path, files: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            read(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.extend(std::fs::read_to_string(path));
        }
    }
}

/// Generates endless text that does not repeat exactly.
pub struct Variation {
    seed: u64,
    place: usize,
}

impl Variation {
    pub fn new(seed: u64) -> Self {
        Variation { seed: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), place: 0 }
    }

    pub fn random(&mut self) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed
    }

    pub fn document(&mut self, length: usize) -> String {
        let mut text = String::with_capacity(length + 64);
        self.place = self.random() as usize % SOURCE.len();
        while text.len() < length {
            let (word, behind) = &SOURCE[self.place % SOURCE.len()];
            self.place += 1;
            text.push_str(word);
            if word.len() > 3 && self.random().is_multiple_of(VARIED) {
                let number = self.random() >> (36 + self.random() % 24);
                text.push_str(&format!("{number:x}x"));
            }
            text.push_str(behind);
        }
        text
    }
}
