//! Golden texts of every projection of every fixture. They are for review, so they are split into
//! lines; machine formats are written as outlines in which long texts are cut and represented by
//! their digest. `scripts/bless` writes them, `scripts/bless --show CASE FORM` prints what changed
//! in one of them.

use std::path::Path;

use serde_json::Value;
use similar::TextDiff;
use unspool_export::project::{ALL, Projection, WriteMethod};

use crate::by_source::{assert_seen, by_source};
use crate::case::{all_cases, assert_none, cases, name, root};
use crate::packed_goldens::{self as stored, Texts};
use crate::projections_trace::lookup::{CaseLookup, project};
use crate::projections_trace::{atif, otel};

/// The cases whose projections are plain files in `projected/`, where a diff shows them, and why
/// each is here. Those of all other cases are compared as strictly, from a compressed file.
const PLAIN_CASES: [(&str, &str); 26] = [
    ("ai-sdk/files", "files of the user, of the reply and in reasoning"),
    ("ai-sdk/multi-step-interleaved", "steps of the SDK with reasoning, texts and calls"),
    ("ai-sdk/output-denied", "permissions in the SDK's own states"),
    ("claude-code/compaction-and-resume", "a compaction, and a session of several processes"),
    ("claude-code/discovery-loop", "one long turn: parallel and failing tools, tasks, three feeds"),
    ("claude-code/error-disconnect-mid-stream", "an error, and text that only the stream has"),
    ("claude-code/forked-session", "a fork with copied records"),
    ("claude-code/images-in-prompt", "an image and a document in a prompt"),
    ("claude-code/interrupted-mid-tool", "an interrupt while two tools run"),
    ("claude-code/mcp-tools", "structured content, an image and an error as results"),
    ("claude-code/question-answered", "questions with options, answered"),
    ("claude-code/subagents-nested", "a sub-agent of a sub-agent, each with its session"),
    ("codex/aborted-and-late-item", "interrupts, and an item after its turn"),
    ("codex/agents-v1", "sub-agents that are messaged and closed"),
    ("codex/approvals-of-two-kinds", "commands and patches, allowed and denied"),
    ("codex/compaction-automatic", "a compaction in the middle of a turn"),
    ("codex/error-retried", "retries, and an error"),
    ("codex/forked", "a fork whose history is in another file"),
    ("copilot/interrupted-mid-tool-and-mid-text", "two interrupts, one seen by the stream only"),
    ("copilot/subagent-asks-permission", "a permission request from inside a sub-agent"),
    ("gemini/error-stream-cut", "an error whose text only the stream has"),
    ("gemini/subagents", "two sub-agents at once"),
    ("opencode/context-overflow-compacted", "an error that leads to a compaction"),
    ("opencode/question-answered-and-dismissed", "a question answered, and one dismissed"),
    ("rows/conversation-with-tools", "flat history without a log's structure"),
    ("thoughtflow/written-by-others", "a document of another program"),
];

/// A projection in the form of its golden file.
fn readable(form: &str, text: String) -> String {
    let read = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    match form {
        "atif" => atif::readable(&read(&text)),
        "otel" => otel::readable(&read(&text)),
        // Drop the styles and the script: they are the same on every page.
        "html" => {
            let (_, body) = text.split_once("</style>").unwrap();
            let (body, _) = body.rsplit_once("<script>").unwrap();
            body.replace("><", ">\n<")
        }
        "json" | "uimessage" | "fixture" => text.replace("},{", "},\n{"),
        _ => text,
    }
}

/// The name of a golden text: `FORM.EXTENSION`, with a number for further sessions of the case.
fn file_name(form: &str, nth: usize) -> String {
    // The extension must not look like a recording.
    let extension = if form == "markdown" { "md" } else { "txt" };
    let session = if nth == 0 { String::new() } else { format!("{nth}.") };
    format!("{session}{form}.{extension}")
}

/// Every projection of every session of a case, by `CASE/FILE`.
fn current(case: &Path) -> Texts {
    let lookup = CaseLookup::of_case(case);
    let mut texts = Texts::new();
    for (nth, transcript) in lookup.0.iter().enumerate() {
        // `history.rs` checks the model history by its rules.
        let is_golden = |form: &&Projection| {
            matches!(form.method, WriteMethod::Projected(_)) && form.name != "history"
        };
        for form in ALL.iter().filter(is_golden) {
            let text = readable(form.name, project(form.name, &lookup, transcript));
            texts.insert(format!("{}/{}", name(case), file_name(form.name, nth)), text);
        }
    }
    texts
}

fn is_plain(source: &str, case: &Path) -> bool {
    let case = format!("{source}/{}", name(case));
    PLAIN_CASES.iter().any(|(plain, _)| *plain == case)
}

fn first_line_that_differs(expected: &str, found: &str) -> String {
    let lines = expected.lines().zip(found.lines()).enumerate();
    let unlike = lines.into_iter().find(|(_, (expected, found))| expected != found);
    let cut = |line: &str| line.chars().take(200).collect::<String>();
    match unlike {
        Some((at, (expected, found))) => {
            format!("line {}\n  - {}\n  + {}", at + 1, cut(expected), cut(found))
        }
        None => "one has more lines than the other".to_owned(),
    }
}

/// Where two sets of golden texts differ.
fn differences(stored: &Texts, current: &Texts) -> Vec<String> {
    let gone = stored.keys().filter(|key| !current.contains_key(*key));
    let gone = gone.map(|key| format!("{key}: stored, but no such projection exists"));
    let changed = current.iter().filter_map(|(key, found)| match stored.get(key) {
        Some(expected) if expected == found => None,
        Some(expected) => Some(format!("{key}: {}", first_line_that_differs(expected, found))),
        None => Some(format!("{key}: not stored")),
    });
    gone.chain(changed).collect()
}

by_source!(projections_match_their_goldens);

fn projections_match_their_goldens(source: &str) {
    let (mut plain, mut packed) = (Texts::new(), Texts::new());
    for case in cases(source) {
        let texts = if is_plain(source, &case) { &mut plain } else { &mut packed };
        texts.append(&mut current(&case));
    }
    assert_seen(
        source,
        plain.len() + packed.len(),
        [520, 70, 28, 1000, 84, 460, 56, 230, 84, 160, 70, 56, 380, 133, 105, 70, 20],
    );
    if std::env::var_os("UNSPOOL_BLESS").is_some() {
        // `git diff` does not show what changed in the compressed file.
        for difference in differences(&stored::packed(source), &packed) {
            println!("{source}/{difference}");
        }
        stored::store_plain(source, &plain);
        stored::store_packed(source, &packed);
    }
    let mut wrong = differences(&stored::plain(source), &plain);
    wrong.extend(differences(&stored::packed(source), &packed));
    assert_none(wrong.into_iter().map(|one| format!("{source}/{one}")).collect());
}

#[test]
fn plain_cases_exist() {
    let all = all_cases();
    for (case, _) in PLAIN_CASES {
        assert!(all.contains(&root().join("fixtures").join(case)), "no case {case}");
    }
}

/// Writes the difference between a stored golden text and the current one to `UNSPOOL_SHOW_TO`, for
/// `scripts/bless --show`. `UNSPOOL_SHOW` is `SOURCE/CASE/FORM`.
#[test]
#[ignore = "scripts/bless --show runs it"]
fn show_one_golden() {
    let variable = |name: &str| std::env::var(name).ok();
    let Some((wanted, to)) = variable("UNSPOOL_SHOW").zip(variable("UNSPOOL_SHOW_TO")) else {
        return;
    };
    let (case, form) = wanted.rsplit_once('/').unwrap();
    let path = root().join("fixtures").join(case);
    assert!(all_cases().contains(&path), "no case {case}: name it as SOURCE/CASE");
    let (source, case) = case.split_once('/').unwrap();
    let stored =
        if is_plain(source, &path) { stored::plain(source) } else { stored::packed(source) };
    let current = current(&path);
    let keys = ["txt", "md"].map(|extension| format!("{case}/{form}.{extension}"));
    let texts = |all: &Texts| keys.iter().find_map(|key| all.get(key)).cloned();
    let (stored, current) = (texts(&stored), texts(&current));
    assert!(stored.is_some() || current.is_some(), "{wanted}: the case has no such form");
    let (stored, current) = (stored.unwrap_or_default(), current.unwrap_or_default());
    let diff = TextDiff::from_lines(&stored, &current);
    let diff = diff.unified_diff().header("stored", "current").to_string();
    std::fs::write(to, diff).unwrap();
}
