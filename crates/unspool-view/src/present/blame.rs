//! Which edit wrote a line. `written` says which lines a call wrote, as far as its log says it;
//! `claims` finds these lines in the commits of the file. Git and the archive are read elsewhere
//! (`unspool-query`).

mod alignment;
mod claims;
mod kept;
mod line_index;
mod reflow;
mod steps;
mod timeline;
mod written;

use std::hash::Hasher;

use rustc_hash::FxHasher;

pub use claims::{Claim, CommitLine, CommitLines, Confidence, EditPlace, TimedEdit, claim_lines};
pub use kept::kept_lines;
pub use reflow::source_lines;
pub use steps::{Step, StepLine, VersionLine};
pub use timeline::{Base, Content, Reflow, Version, VersionEdit, Writer, writers};
pub use written::{FileWrite, Written, WrittenLines, writes};

/// What two lines are compared by: a digest of the text without white space, so that a formatter
/// does not hide who wrote a line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LineKey(u64);

impl LineKey {
    /// Between two hunks.
    const BREAK: LineKey = LineKey(0);

    pub fn of(text: &str) -> LineKey {
        let mut digest = FxHasher::default();
        let mut buffer = [0; 4];
        for c in text.chars().filter(|c| !c.is_whitespace()) {
            digest.write(c.encode_utf8(&mut buffer).as_bytes());
        }
        LineKey(digest.finish() | 1)
    }
}

/// Fewer letters and digits do not say who wrote a line.
const MIN_LETTERS: usize = 8;
/// A returned value is repeated more often than other lines.
const MIN_RETURNED_LETTERS: usize = 18;

/// False for a line that many people write: brackets, blank lines, `return None`, imports. Such a
/// line is attributed only together with the lines around it.
pub fn is_distinctive(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphanumeric()).count();
    let first: String = text
        .trim_start()
        .trim_start_matches('#')
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect();
    match first.as_str() {
        "import" | "from" | "use" | "using" | "include" | "require" | "package" => false,
        "return" => letters >= MIN_RETURNED_LETTERS,
        _ => letters >= MIN_LETTERS,
    }
}

/// Whether two texts are the same line. Claude Code's patches have two spaces for each tab, and
/// agents record CRLF as LF.
pub fn same_line(one: &str, other: &str) -> bool {
    let (one, other) = (one.trim_end_matches('\r'), other.trim_end_matches('\r'));
    let spaced = |text: &str| text.replace('\t', "  ");
    one == other || (one.contains('\t') != other.contains('\t') && spaced(one) == spaced(other))
}

#[cfg(test)]
#[path = "blame_tests.rs"]
mod tests;
