use unspool_model::part::Tool;

use super::super::super::test_sessions::{bash, edit, failed, found, part_id, parts, titles};
use super::*;

fn edit_says(output: &str) -> Tool {
    failed(Tool { output: Some(output.to_owned()), ..edit("/w/a.rs", "x", "y") })
}

#[test]
fn an_edit_of_text_that_is_not_there_is_a_finding() {
    let missed = || {
        edit_says(
            "<tool_use_error>String to replace not found in file.\nString: x</tool_use_error>",
        )
    };
    let findings = found(find, vec![missed(), edit("/w/a.rs", "a", "b"), missed()]);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].title, "An edit of /w/a.rs missed twice");
    assert_eq!((findings[0].count, findings[0].opportunities), (2, 3));
    assert_eq!(parts(&findings[0]), [part_id(1, 0), part_id(1, 2)]);
}

/// As the agents of the recordings say it.
#[test]
fn all_agents_are_understood() {
    for words in [
        "oldString not found in content",
        "Failed to edit, could not find the string to replace.",
        "Could not find an exact match for 'old_string' in '/w/a.rs'. If previous edits modified",
        "Failed to find expected lines in /w/a.rs:\nfn main() {",
        "No match found",
        "Could not find the exact text in a.rs.",
    ] {
        assert_eq!(
            titles(find, vec![edit_says(words)]),
            ["An edit of /w/a.rs missed once"],
            "{words}"
        );
    }
}

#[test]
fn other_failures_of_edits_are_none() {
    for words in [
        "<tool_use_error>File has not been read yet. Read it first.</tool_use_error>",
        "Found 2 matches of the string to replace, but replace_all is false.",
        "EACCES: permission denied",
    ] {
        assert!(titles(find, vec![edit_says(words)]).is_empty(), "{words}");
    }
}

#[test]
fn the_words_count_in_a_failed_edit_only() {
    let words = "String to replace not found in file.";
    assert!(titles(find, vec![failed(bash("grep x", words))]).is_empty());
    let completed = Tool { output: Some(words.to_owned()), ..edit("/w/a.rs", "x", "y") };
    assert!(titles(find, vec![completed]).is_empty());
}

#[test]
fn codex_patches_with_a_command() {
    let patch = "apply_patch <<'END'\n*** Begin Patch\n*** Update File: a.rs\n@@\n-x\n+y\n*** End Patch\nEND";
    let says = "apply_patch verification failed: Failed to find expected lines in /w/a.rs:\nx";
    assert_eq!(titles(find, vec![failed(bash(patch, says))]), ["An edit of a.rs missed once"]);
}
