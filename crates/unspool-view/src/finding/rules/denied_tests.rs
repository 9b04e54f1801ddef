use unspool_model::part::{Answer, Decision, Tool};

use super::super::super::test_sessions::{
    bash, call, denied, failed, found, part_id, parts, titles,
};
use super::*;

#[test]
fn denied_calls_are_a_finding_by_their_program() {
    let no = |command: &str| denied(bash(command, "The user doesn't want to proceed."));
    let findings =
        found(find, vec![no("rm -rf a"), bash("rm b", ""), no("rm c"), no("git push origin")]);
    let titles: Vec<&str> = findings.iter().map(|finding| finding.title.as_str()).collect();
    assert_eq!(titles, ["Bash git push was denied once", "Bash rm was denied twice"]);
    assert_eq!((findings[1].count, findings[1].opportunities), (2, 3));
    assert_eq!(parts(&findings[1]), [part_id(1, 0), part_id(1, 2)]);
    assert_eq!(findings[1].evidence[0].what, "rm -rf a: The user doesn't want to proceed.");
}

#[test]
fn the_words_of_the_person_are_named() {
    let answer = Answer {
        decision: Decision::Denied,
        text: "use trash instead".into(),
        choices: Vec::new(),
        observed: true,
        by: None,
    };
    let call = Tool { answer: Some(answer), ..denied(bash("rm a", "rejected")) };
    assert_eq!(found(find, vec![call])[0].evidence[0].what, "rm a: use trash instead");
}

#[test]
fn a_question_that_is_not_answered_is_none() {
    let ask = || denied(call("AskUserQuestion", serde_json::json!({}), "declined"));
    let plan = || denied(call("ExitPlanMode", serde_json::json!({}), "declined"));
    assert!(titles(find, vec![ask(), plan()]).is_empty());
}

#[test]
fn calls_that_ran_or_failed_are_none() {
    assert!(
        titles(find, vec![bash("rm a", ""), failed(bash("rm b", "permission denied"))]).is_empty()
    );
    let allowed = call("Write", serde_json::json!({ "file_path": "/w/a" }), "done");
    assert!(titles(find, vec![allowed]).is_empty());
}
