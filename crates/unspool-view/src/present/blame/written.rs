//! The lines that a call wrote: those that its edit added, not those that it repeated as context.

use rustc_hash::FxHashMap;
use unspool_model::part::Part;

use super::steps::Step;
use super::{LineKey, is_distinctive};
use crate::block::{Diff, DiffKind, Hunk};
use crate::present::tools::edits::{FileAction, FileEdit};
use crate::present::tools::edits_of;

/// What a call did to one file.
pub struct FileWrite {
    /// As the log has it.
    pub path: String,
    /// The file has this name afterwards.
    pub moved_to: Option<String>,
    pub written: Written,
    pub step: Step,
}

pub enum Written {
    Lines(WrittenLines),
    Deleted,
}

/// The lines of an edit after it: those that it wrote between those that stood there before.
#[derive(Default)]
pub struct WrittenLines {
    pub(super) lines: Vec<WrittenLine>,
    /// Distinctive lines that it removed.
    pub(super) removed: Vec<LineKey>,
    /// It wrote the whole file, and the log does not have the text before.
    pub(super) is_whole_file: bool,
}

pub(super) struct WrittenLine {
    pub key: LineKey,
    pub text: Box<str>,
    pub is_distinctive: bool,
    /// The edit added it.
    pub is_written: bool,
}

impl WrittenLine {
    pub fn new(text: &str, is_written: bool) -> WrittenLine {
        WrittenLine {
            key: LineKey::of(text),
            text: text.into(),
            is_distinctive: is_distinctive(text),
            is_written,
        }
    }

    fn hunk_break() -> WrittenLine {
        WrittenLine {
            key: LineKey::BREAK,
            text: "".into(),
            is_distinctive: false,
            is_written: false,
        }
    }
}

/// What a part wrote into files. A patch part only says that a file changed during a step: a person
/// may have changed it.
pub fn writes(part: &Part) -> Vec<FileWrite> {
    edits_of(&part.body).into_iter().filter_map(file_write).collect()
}

fn file_write(edit: FileEdit) -> Option<FileWrite> {
    let written = match &edit.action {
        FileAction::Delete(_) => Written::Deleted,
        FileAction::Write(text) => Written::Lines(whole_file(text)),
        FileAction::Create(text) => {
            Written::Lines(WrittenLines { is_whole_file: false, ..whole_file(text) })
        }
        FileAction::Rewrite { .. }
        | FileAction::Patch(_)
        | FileAction::LoosePatch(_)
        | FileAction::Replace(_) => Written::Lines(of_diff(&edit)),
    };
    let step = Step::of(&edit);
    Some(FileWrite { path: edit.path?, moved_to: edit.moved_to, written, step })
}

fn whole_file(text: &str) -> WrittenLines {
    let lines = text.lines().map(|line| WrittenLine::new(line, true)).collect();
    WrittenLines { lines, removed: Vec::new(), is_whole_file: true }
}

fn of_diff(edit: &FileEdit) -> WrittenLines {
    let Diff { hunks, .. } = edit.diff().unwrap_or_default();
    let mut found = WrittenLines::default();
    for hunk in &hunks {
        add_hunk(&mut found, hunk);
    }
    // A recorded diff may lack the indentation; the input has it.
    if let FileAction::Replace(replacements) = &edit.action {
        let lines = replacements.iter().flat_map(|it| it.new.lines());
        let texts: FxHashMap<LineKey, &str> = lines.map(|line| (LineKey::of(line), line)).collect();
        for line in found.lines.iter_mut().filter(|line| line.is_written) {
            if let Some(text) = texts.get(&line.key) {
                line.text = (*text).into();
            }
        }
    }
    found
}

fn add_hunk(found: &mut WrittenLines, hunk: &Hunk) {
    // A line that is removed and added again was moved or indented, not written.
    let mut removed: FxHashMap<LineKey, usize> = FxHashMap::default();
    for line in hunk.lines.iter().filter(|line| line.kind == DiffKind::Removed) {
        let text = line.text();
        if is_distinctive(&text) {
            *removed.entry(LineKey::of(&text)).or_default() += 1;
        }
    }
    found.lines.push(WrittenLine::hunk_break());
    for line in hunk.lines.iter().filter(|line| line.kind != DiffKind::Removed) {
        let mut line = WrittenLine::new(&line.text(), line.kind == DiffKind::Added);
        if line.is_written
            && let Some(count) = removed.get_mut(&line.key).filter(|count| **count > 0)
        {
            *count -= 1;
            line.is_written = false;
        }
        found.lines.push(line);
    }
    found.lines.push(WrittenLine::hunk_break());
    let gone = removed.into_iter().flat_map(|(key, count)| std::iter::repeat_n(key, count));
    found.removed.extend(gone);
}
