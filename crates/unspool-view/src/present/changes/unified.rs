//! A net change as text that `git apply` reads.

use std::fmt::Write;

use super::{FileChange, FileStatus};
use crate::block::{Diff, DiffKind, Hunk};

/// The change of one file; empty if it cannot be in a patch or if nothing changed.
pub fn file(change: &FileChange) -> String {
    if change.left_out_of_patch().is_some() || change.status == FileStatus::Unchanged {
        return String::new();
    }
    let no_lines = change.diff.hunks.is_empty();
    let is_rename = change.status == FileStatus::Moved;
    let new = change.name.as_str();
    let old = change.moved_from.as_deref().filter(|_| is_rename).unwrap_or(new);
    let mut text = format!("diff --git {} {}\n", quoted("a/", old), quoted("b/", new));
    match change.status {
        FileStatus::New => text.push_str("new file mode 100644\n"),
        FileStatus::Deleted => text.push_str("deleted file mode 100644\n"),
        FileStatus::Moved => {
            let _ =
                writeln!(text, "rename from {}\nrename to {}", quoted("", old), quoted("", new));
        }
        FileStatus::Modified | FileStatus::Unchanged => {}
    }
    if no_lines {
        return text;
    }
    let or_null = |absent: FileStatus, name: String| {
        if change.status == absent { "/dev/null".to_owned() } else { name }
    };
    let _ = writeln!(text, "--- {}", or_null(FileStatus::New, quoted("a/", old)));
    let _ = writeln!(text, "+++ {}", or_null(FileStatus::Deleted, quoted("b/", new)));
    text + &hunks(&change.diff)
}

/// The hunks of a diff. Those without line numbers begin at line 1.
pub fn hunks(diff: &Diff) -> String {
    let mut text = String::new();
    for hunk in &diff.hunks {
        write_hunk(&mut text, hunk);
    }
    text
}

fn write_hunk(text: &mut String, hunk: &Hunk) {
    let count = |kind| hunk.lines.iter().filter(|line| line.kind != kind).count() as u64;
    let (old, new) = (count(DiffKind::Added), count(DiffKind::Removed));
    let first = |number: Option<u64>, other: Option<u64>, lines: u64| match lines {
        // A side without lines is named by the line before it.
        0 => other.unwrap_or(1).saturating_sub(1),
        _ => number.unwrap_or(1),
    };
    let old_first = hunk.lines.iter().find_map(|line| line.old);
    let new_first = hunk.lines.iter().find_map(|line| line.new);
    let (old_at, new_at) = (first(old_first, new_first, old), first(new_first, old_first, new));
    let _ = writeln!(text, "@@ -{old_at},{old} +{new_at},{new} @@");
    for line in &hunk.lines {
        text.push(match line.kind {
            DiffKind::Context => ' ',
            DiffKind::Added => '+',
            DiffKind::Removed => '-',
        });
        text.push_str(&line.text());
        text.push('\n');
        if line.no_newline {
            text.push_str("\\ No newline at end of file\n");
        }
    }
}

/// A name as git writes it: quoted if it has characters that end or escape a name.
fn quoted(prefix: &str, name: &str) -> String {
    if !name.contains(|c: char| c.is_control() || c == '"' || c == '\\') {
        return format!("{prefix}{name}");
    }
    let mut text = format!("\"{prefix}");
    for c in name.chars() {
        match c {
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(text, "\\{:03o}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text.push('"');
    text
}
