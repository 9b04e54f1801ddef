//! The net change of files, computed from edits alone.

use proptest::prelude::*;
use serde_json::{Value, json};
use unspool_model::id::{Id, PartId, SessionId};
use unspool_model::json::Json;

use super::*;
use crate::block::{DiffKind, Hunk};
use crate::present::diff;

const FILE: &str = "/w/a.txt";

fn add(builder: &mut ChangesBuilder, name: &str, state: ToolState, input: Value, result: Value) {
    let tool = Tool {
        name: name.to_owned(),
        state,
        input: Some(Json::from(input)),
        result: Some(Json::from(result)),
        ..Tool::default()
    };
    let part = PartId(Id::derive([builder.first_seen.to_string().as_bytes()]));
    builder.add_call(
        &tool,
        EditRef { session: SessionId::of("test", "s"), turn: 1, place: Place(1), part },
    );
}

/// An edit that Claude Code recorded without the text before.
fn add_patch(builder: &mut ChangesBuilder, before: &str, after: &str) {
    let patch = diff::between(None, before, after, Some(1));
    let mark = |kind| match kind {
        DiffKind::Context => ' ',
        DiffKind::Added => '+',
        DiffKind::Removed => '-',
    };
    let hunk = |hunk: &Hunk| {
        let lines: Vec<String> =
            hunk.lines.iter().map(|line| format!("{}{}", mark(line.kind), line.text())).collect();
        let first = |number: Option<u64>| number.unwrap_or(1);
        json!({
            "oldStart": first(hunk.lines.iter().find_map(|line| line.old)),
            "newStart": first(hunk.lines.iter().find_map(|line| line.new)),
            "lines": lines,
        })
    };
    let hunks: Vec<Value> = patch.hunks.iter().map(hunk).collect();
    let result = json!({ "structuredPatch": hunks });
    add(builder, "Edit", ToolState::Completed, json!({ "file_path": FILE }), result);
}

/// Applies a diff to the text that it was made for.
fn patched(text: &str, diff: &Diff) -> String {
    let old: Vec<&str> = text.lines().collect();
    let mut new: Vec<String> = Vec::new();
    let mut at = 0;
    for hunk in &diff.hunks {
        let first = hunk.lines.iter().find_map(|line| line.old);
        // A hunk that only adds has no old number: its new number counts the lines before it.
        let start = first.map_or_else(
            || {
                let before = hunk.lines[0].new.unwrap() as usize - 1;
                at + before - new.len()
            },
            |first| first as usize - 1,
        );
        new.extend(old[at..start].iter().map(|&line| line.to_owned()));
        at = start;
        for line in &hunk.lines {
            if line.kind != DiffKind::Added {
                assert_eq!(old[at], line.text(), "the diff does not fit the original");
                at += 1;
            }
            if line.kind != DiffKind::Removed {
                new.push(line.text());
                assert_eq!(line.new, Some(new.len() as u64), "wrong new line number");
            }
        }
    }
    new.extend(old[at..].iter().map(|&line| line.to_owned()));
    new.iter().map(|line| format!("{line}\n")).collect()
}

/// A text of a few different lines, so that edits meet equal ones.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0_u8..6, 0..40)
}

fn written(lines: &[u8]) -> String {
    lines.iter().map(|line| format!("line {line}\n")).collect()
}

proptest! {
    /// Whatever the edits are, their net diff leads from the first text to the last.
    #[test]
    fn net_diff_leads_from_first_text_to_last(
        first in text(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..6, prop::collection::vec(0_u8..6, 0..5)), 1..8),
    ) {
        let mut builder = ChangesBuilder::new(Some("/w"));
        let original = written(&first);
        let mut now = first;
        for (index, count, new) in edits {
            let at = index.index(now.len() + 1);
            let end = (at + count).min(now.len());
            let before = written(&now);
            now.splice(at..end, new);
            if before != written(&now) {
                add_patch(&mut builder, &before, &written(&now));
            }
        }
        let changes = builder.finish();
        let last = written(&now);
        match changes.files.first() {
            None => prop_assert_eq!(original, last),
            Some(file) => {
                prop_assert_eq!(file.basis, Basis::Net);
                prop_assert_eq!(patched(&original, &file.diff), last.clone());
                prop_assert_eq!(file.status == FileStatus::Unchanged, original == last);
            }
        }
    }
}

/// Edits that undo each other leave no change, and the file says so.
#[test]
fn reverted_edit_leaves_no_change() {
    let mut builder = ChangesBuilder::new(Some("/w"));
    let (one, other) = ("a\nb\nc\n", "a\nX\nY\nc\n");
    add_patch(&mut builder, one, other);
    add_patch(&mut builder, other, one);
    let changes = builder.finish();
    assert_eq!(changes.files[0].status, FileStatus::Unchanged);
    assert_eq!((changes.files[0].added, changes.files[0].edits.len()), (0, 2));
    assert_eq!(changes.patch(), "");
}

/// A failed edit changed nothing. A command may have changed anything.
#[test]
fn failed_edits_are_left_out_and_commands_are_named() {
    let mut builder = ChangesBuilder::new(Some("/w"));
    let edit = json!({ "file_path": FILE, "old_string": "a", "new_string": "b" });
    add(&mut builder, "Edit", ToolState::Failed, edit, Value::Null);
    add(
        &mut builder,
        "Bash",
        ToolState::Completed,
        json!({ "command": "sed -i s/a/b/ x" }),
        Value::Null,
    );
    add(&mut builder, "Bash", ToolState::Denied, json!({ "command": "rm x" }), Value::Null);
    let changes = builder.finish();
    assert!(changes.files.is_empty());
    assert_eq!(
        changes.notes(),
        [
            "1 edit failed and is not included.",
            "1 shell command ran. The log does not say which files they changed."
        ]
    );
}

/// If a file is not as the last edit left it, the edits are shown as they are, with the reason.
#[test]
fn change_from_outside_is_noticed() {
    let mut builder = ChangesBuilder::new(Some("/w"));
    add_patch(&mut builder, "a\nb\nc\n", "a\nB\nc\n");
    add_patch(&mut builder, "a\nOTHER\nc\n", "a\nd\nc\n");
    let changes = builder.finish();
    assert_eq!(changes.files[0].basis, Basis::ChangedOutside);
    assert_eq!(changes.files[0].diff.hunks.len(), 2);
    assert!(changes.patch().is_empty(), "no patch that would not apply");
}

/// A file that was written over: the text before is known from a read, or it is said to be unknown.
#[test]
fn overwritten_file_needs_the_text_before() {
    let write = json!({ "filePath": FILE, "content": "a\nB\nc\n" });
    let exists = json!({ "exists": true });
    let mut unread = ChangesBuilder::new(None);
    add(&mut unread, "write", ToolState::Completed, write.clone(), exists.clone());
    let file = &unread.finish().files[0];
    assert_eq!((file.basis, file.added, file.removed), (Basis::BeforeUnknown, 3, 0));

    let mut builder = ChangesBuilder::new(None);
    let display = json!({ "display": { "type": "file", "text": "a\nb\nc", "lineStart": 1 } });
    add(&mut builder, "read", ToolState::Completed, json!({ "filePath": FILE }), display);
    add(&mut builder, "write", ToolState::Completed, write, exists);
    let file = &builder.finish().files[0];
    assert_eq!((file.basis, file.added, file.removed), (Basis::Net, 1, 1));
}

/// `git apply` refuses a patch as a whole if one of its files is outside of the project.
#[test]
fn file_outside_of_the_project_is_not_in_the_patch() {
    let mut builder = ChangesBuilder::new(Some("/w"));
    let input = json!({ "file_path": "/home/me/plan.md", "content": "x\n" });
    let result = json!({ "type": "create", "content": "x\n", "structuredPatch": [] });
    add(&mut builder, "Write", ToolState::Completed, input, result);
    let changes = builder.finish();
    assert_eq!(changes.files[0].left_out_of_patch(), Some("It is outside of the project."));
    assert_eq!((changes.patch(), changes.files[0].added), (String::new(), 1));
}

/// A new file with a later edit is one new file; a name with hostile characters is quoted.
#[test]
fn new_file_has_a_patch_that_git_reads() {
    let mut builder = ChangesBuilder::new(Some("/w"));
    let path = "/w/b \"c\"\n+++ d";
    let input = json!({ "file_path": path, "content": "x\ny" });
    let result = json!({ "type": "create", "content": "x\ny", "structuredPatch": [] });
    add(&mut builder, "Write", ToolState::Completed, input, result);
    let patch = builder.finish().patch();
    assert_eq!(
        patch,
        "diff --git \"a/b \\\"c\\\"\\n+++ d\" \"b/b \\\"c\\\"\\n+++ d\"\nnew file mode 100644\n--- /dev/null\n\
         +++ \"b/b \\\"c\\\"\\n+++ d\"\n@@ -0,0 +1,2 @@\n+x\n+y\n\\ No newline at end of file\n"
    );
}
