//! Tests of what git writes.

use super::blame_output;
use super::log::{CommitFile, parse};
use super::unquote;

const COMMIT: &str =
    "\u{1}0123456789012345678901234567890123456789\u{1}100\u{1}200\u{1}Ada\u{1}Change a\u{1}b\n\n";

/// The one file of a diff.
fn changed(diff: &str) -> CommitFile {
    let diff = format!("{COMMIT}diff --git a/x b/x\n--- a/x\n+++ b/x\n{diff}");
    parse(diff.as_bytes()).pop().unwrap().files.pop().unwrap()
}

fn added(file: &CommitFile) -> Vec<(u32, &str)> {
    let added = file.lines.lines.iter().filter(|line| line.is_added);
    added.map(|line| (line.number, line.text.as_str())).collect()
}

/// For each of these lines those before of which it consists.
fn before(file: &CommitFile, lines: std::ops::RangeInclusive<u32>) -> Vec<(u32, u32)> {
    let run = file.run.as_ref().unwrap();
    let one = |line| run.before(line).map_or((0, 0), |it| (it.first, it.last));
    lines.map(one).collect()
}

#[test]
fn a_commit_has_its_times_and_a_subject_with_any_characters() {
    let commits = parse(COMMIT.as_bytes());
    let [commit] = commits.as_slice() else { panic!("one commit") };
    assert_eq!((commit.author_time, commit.committer_time), (100, 200));
    assert_eq!((commit.author.as_str(), commit.subject.as_str()), ("Ada", "Change a\u{1}b"));
}

#[test]
fn lines_that_were_only_indented_are_not_added() {
    // The diff takes `return` of another depth for the same line.
    let diff = "@@ -4,4 +4,4 @@\n def f():\n-  if a:\n+    if a:\n+        return\n     return\n-  return\n";
    let file = changed(diff);
    assert_eq!(added(&file), []);
    assert_eq!((file.added, file.added_keys().len()), (2, 0), "git shows two added lines");
    let lines = [(3, 3), (4, 4), (5, 5), (6, 6), (7, 7), (8, 8)];
    assert_eq!(before(&file, 3..=8), lines);
}

#[test]
fn a_line_that_was_joined_consists_of_several() {
    let file =
        changed("@@ -2,4 +2,2 @@\n-f(\n-  1,\n-)\n+f(1)\n end\n@@ -9 +7,2 @@\n-g(1)\n+g(\n+  1)\n");
    let lines = [(1, 1), (2, 4), (5, 5), (6, 6)];
    assert_eq!(before(&file, 1..=4), lines);
    assert_eq!(before(&file, 7..=9), [(9, 9), (9, 9), (10, 10)]);
}

#[test]
fn a_commit_that_also_changes_a_line_is_no_formatter_run() {
    let hunk = "@@ -1 +1 @@\n-  a = 1\n+    a = 1\n";
    assert!(changed(hunk).run.is_some());
    for other in ["@@ -9 +9 @@\n-b = 1\n+b = 2\n", "@@ -9,0 +10 @@\n+}\n", "@@ -9 +8,0 @@\n-}\n"] {
        let file = changed(&format!("{hunk}{other}"));
        assert!(file.run.is_none(), "{other}");
        assert!(added(&file).contains(&(1, "    a = 1")));
        assert!(changed(&format!("{other}{hunk}")).run.is_none(), "{other}");
    }
}

#[test]
fn blame_has_both_numbers_of_a_line() {
    let id = "0123456789012345678901234567890123456789";
    let lines = blame_output::parse(format!("{id} 3 7 1\nauthor Ada\n\tx = 1\n").as_bytes());
    let [line] = lines.as_slice() else { panic!("one line") };
    assert_eq!((line.origin.number, line.number, line.text.as_str()), (3, 7, "x = 1"));
}

#[test]
fn quoted_names_are_read() {
    assert_eq!(unquote(b"plain name"), "plain name");
    assert_eq!(unquote(br#""a\tb\303\244\"c""#), "a\tb\u{e4}\"c");
}
