//! `git blame --porcelain`: the commit and the line in it from which each line of a file comes.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// Where a line comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LineOrigin {
    pub commit: Arc<str>,
    /// Its number in the file of that commit, from 1.
    pub number: u32,
}

/// A line of a file.
pub struct BlamedLine {
    /// Its number in the file that was asked about, from 1.
    pub number: u32,
    pub origin: LineOrigin,
    pub text: String,
}

/// The lines in order. Lines of the output that are no lines of a file are skipped.
pub fn parse(output: &[u8]) -> Vec<BlamedLine> {
    let mut commits: FxHashMap<Vec<u8>, Arc<str>> = FxHashMap::default();
    let mut lines = Vec::new();
    let mut head: Option<(LineOrigin, u32)> = None;
    for line in output.split(|byte| *byte == b'\n') {
        if let Some(text) = line.strip_prefix(b"\t") {
            if let Some((origin, number)) = head.take() {
                let text = String::from_utf8_lossy(text).into_owned();
                lines.push(BlamedLine { number, origin, text });
            }
        } else if head.is_none()
            && let Some((commit, numbers)) = commit_and_lines(line)
        {
            let known = commits
                .entry(commit.to_vec())
                .or_insert_with(|| Arc::from(String::from_utf8_lossy(commit).as_ref()));
            let origin = LineOrigin { commit: known.clone(), number: numbers.0 };
            head = Some((origin, numbers.1));
        }
    }
    lines
}

/// `<commit> <line in the commit> <line> [<count>]`
fn commit_and_lines(line: &[u8]) -> Option<(&[u8], (u32, u32))> {
    let mut words = line.split(|byte| *byte == b' ');
    let commit = words.next().filter(|word| word.len() >= 40)?;
    let mut number = || std::str::from_utf8(words.next()?).ok()?.parse().ok();
    Some((commit, (number()?, number()?)))
}
