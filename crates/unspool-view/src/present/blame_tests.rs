//! Tests of finding the edit that wrote a line.

use serde_json::{Value, json};
use unspool_model::id::{Id, PartId};
use unspool_model::json::Json;
use unspool_model::part::{Body, Part, Patch, Place, Tool, ToolState};
use unspool_model::provenance::Origin;

use super::*;

const SECOND: i64 = 1000;

fn part(body: Body) -> Part {
    Part {
        id: PartId(Id::derive([b"part".as_slice()])),
        place: Place(1),
        step: None,
        started: None,
        ended: None,
        evidence: Vec::new(),
        origin: Origin::default(),
        body,
    }
}

fn call(name: &str, state: ToolState, input: Value, result: Value) -> Part {
    part(Body::Tool(Box::new(Tool {
        name: name.to_owned(),
        state,
        input: Some(Json::from(input)),
        result: Some(Json::from(result)),
        ..Tool::default()
    })))
}

/// An edit of Codex, by the lines of its diff.
fn patch(lines: &str) -> Part {
    let old = lines.lines().filter(|line| !line.starts_with('+')).count();
    let new = lines.lines().filter(|line| !line.starts_with('-')).count();
    let diff = format!("@@ -5,{old} +5,{new} @@\n{lines}");
    let changes = json!({ "/w/a.py": { "type": "update", "unified_diff": diff } });
    let input = json!({ "cmd": "apply_patch <<'E'\n*** Begin Patch\n*** End Patch\nE\n" });
    let result = json!({ "type": "FileChange", "status": "completed", "changes": changes });
    call("exec_command", ToolState::Completed, input, result)
}

fn edits(parts: &[(i64, Part)]) -> Vec<TimedEdit> {
    let one = |(at, part): &(i64, Part)| {
        let found = writes(part).into_iter();
        let at = Some(*at);
        found
            .map(move |it| TimedEdit {
                at,
                place: EditPlace::Here,
                written: it.written,
                step: it.step,
            })
            .collect::<Vec<_>>()
    };
    parts.iter().flat_map(one).collect()
}

/// A commit by the lines of its diff after it: added ones with a `+`.
fn commit(time: i64, lines: &str) -> CommitLines {
    let mut found = vec![CommitLine::hunk_break()];
    found.extend((1..).zip(lines.lines()).map(|(number, line)| {
        CommitLine::new(line[1..].to_owned(), number, line.starts_with('+'))
    }));
    CommitLines { author_time: time, committer_time: time, lines: found }
}

/// The claimed lines of a commit and how sure they are.
fn claimed(commit: &CommitLines) -> Vec<(&str, usize, &'static str)> {
    let claim =
        |line: &'_ CommitLine| line.claim.map(|claim| (claim.edit, claim.confidence.name()));
    let lines = commit.lines.iter();
    lines.filter_map(|line| claim(line).map(|(edit, sure)| (&*line.text, edit, sure))).collect()
}

fn claims(parts: &[(i64, Part)], commits: &[(i64, &str)]) -> Vec<CommitLines> {
    let mut commits: Vec<_> = commits.iter().map(|(time, lines)| commit(*time, lines)).collect();
    claim_lines(edits(parts), &mut commits);
    commits
}

const HUNK: &str = " before_it = 1\n+load_order(invoice, 12)\n+return None\n after_it = 2\n";

#[test]
fn a_patch_that_codex_ran_as_a_command_wrote_its_lines() {
    let found = claims(&[(SECOND, patch(HUNK))], &[(2, HUNK)]);
    let expected = [("load_order(invoice, 12)", 0, "exact"), ("return None", 0, "exact")];
    assert_eq!(claimed(&found[0]), expected);
}

#[test]
fn a_patch_that_failed_wrote_nothing() {
    let changes = json!({ "/w/a.py": { "type": "add", "content": "load_order(invoice, 12)\n" } });
    let input = json!({ "cmd": "apply_patch <<'E'\nE\n" });
    let run = |state, status: &str, success| {
        let result = json!({ "status": status, "success": success, "changes": changes });
        writes(&call("exec_command", state, input.clone(), result)).len()
    };
    assert_eq!(run(ToolState::Completed, "completed", true), 1);
    assert_eq!(run(ToolState::Completed, "failed", false), 0);
    assert_eq!(run(ToolState::Failed, "completed", true), 0);
    let old = json!({ "success": false, "changes": changes });
    assert!(writes(&call("shell", ToolState::Completed, input.clone(), old)).is_empty());
    let other = json!({ "status": "completed", "changes": { "load_order": "renamed" } });
    assert!(writes(&call("shell", ToolState::Completed, input, other)).is_empty());
}

#[test]
fn a_report_that_a_file_changed_gives_no_line_to_an_agent() {
    let report = Patch { path: Some("/w/a.py".to_owned()), ..Patch::default() };
    assert!(writes(&part(Body::Patch(report))).is_empty());
}

#[test]
fn the_end_of_a_block_that_may_be_the_line_before_it_is_nobodys() {
    let hunk = " }\n+\n+fn load_order() {\n+  total\n+}\n after_it = 2\n";
    let found = claims(&[(SECOND, patch(hunk))], &[(2, hunk)]);
    let lines: Vec<&str> = claimed(&found[0]).into_iter().map(|(line, ..)| line).collect();
    assert_eq!(lines, ["", "fn load_order() {", "  total"]);
}

#[test]
fn the_beginning_of_a_block_that_may_be_the_line_after_it_is_nobodys() {
    let hunk = " before_it = 1\n+\n+fn load_order() {\n+}\n \n after_it = 2\n";
    let found = claims(&[(SECOND, patch(hunk))], &[(2, hunk)]);
    let lines: Vec<&str> = claimed(&found[0]).into_iter().map(|(line, ..)| line).collect();
    assert_eq!(lines, ["fn load_order() {", "}"]);
}

#[test]
fn text_alone_is_not_looked_for_in_a_commit_of_the_same_second() {
    let edit = (SECOND + 900, patch(" one_line = 1\n+load_order(invoice, 12)\n two_line = 2\n"));
    let older = " other = 1\n+load_order(invoice, 12)\n other = 2\n";
    let newer = " typed_later = 1\n+load_order(invoice, 12)\n typed_later = 2\n";
    let found = claims(&[edit], &[(1, older), (2, newer)]);
    assert_eq!(claimed(&found[0]), []);
    assert_eq!(claimed(&found[1]), [("load_order(invoice, 12)", 0, "moved")]);
}

#[test]
fn a_later_commit_gives_the_rest_of_an_edit_only_its_distinctive_lines() {
    let edit = " load_page(widget)\n+return None\n check_page(widget)\n save_page(widget)\n\
                +count_orders(invoice)\n";
    let first = " save_page(widget)\n+count_orders(invoice)\n";
    let later = " load_page(widget)\n+return None\n check_page(widget)\n";
    let found = claims(&[(SECOND, patch(edit))], &[(2, first), (3, later)]);
    assert_eq!(claimed(&found[0]), [("count_orders(invoice)", 0, "exact")]);
    assert_eq!(claimed(&found[1]), []);
}
