//! What an agent puts into messages of the user is not the user's: no word, no title. And it is not
//! lost (law 4). The reader here knows only the raw forms, and shares no code with the table of the
//! product.

use std::path::Path;

use unspool_model::part::Body;
use unspool_model::session::Transcript;

use crate::by_source::{assert_seen, by_source};
use crate::case::{captures, cases, fold_in, main_session, name, root};
use crate::harness::Machine;

/// Tags that agents write around text of their own, or around the user's.
const TAGS: [&str; 30] = [
    "answer",
    "background-task-input",
    "bash-input",
    "bash-stdout",
    "command-message",
    "command-name",
    "current_datetime",
    "environment_context",
    "environment_details",
    "feedback",
    "file_content",
    "hook_context",
    "ide_opened_file",
    "ide_selection",
    "local-command-caveat",
    "local-command-stdout",
    "mode_notice",
    "qwen:user-prompt-submit-context",
    "session_context",
    "skill",
    "subagent_notification",
    "system-notification",
    "system-reminder",
    "system_notification",
    "task",
    "task-notification",
    "turn_aborted",
    "user-memory-input",
    "user_input",
    "user_instructions",
];

/// Lines that begin or end what agents add.
const LINES: [&str; 5] = [
    "--- Content from referenced files ---",
    "--- End of content ---",
    "# Context from my IDE setup:",
    "## My request for Codex:",
    "# AGENTS.md instructions",
];

/// Says what an agent wrote in a text that is shown as the user's.
fn injected(text: &str) -> Option<&'static str> {
    let line = LINES.into_iter().find(|mark| text.lines().any(|line| line.starts_with(mark)));
    let of_tag = |tag: &&str| {
        let (plain, with, end) = (format!("<{tag}>"), format!("<{tag} "), format!("</{tag}>"));
        let opens = |line: &str| line.starts_with(&plain) || line.starts_with(&with);
        let at_start = opens(text.trim_start()) && text.contains(&end);
        let at_end = text.trim_end().ends_with(&end) && text.lines().any(opens);
        at_start || at_end
    };
    line.or_else(|| TAGS.into_iter().find(of_tag))
}

fn check(transcript: &Transcript, of: &str) -> usize {
    let mut texts = 0;
    if let Some(title) = transcript.title() {
        let begins = |tag: &&str| title.starts_with(&format!("<{tag}"));
        assert!(!TAGS.iter().any(begins), "{of}: the title is {title}");
    }
    for turn in &transcript.turns {
        let interjections = turn.parts.iter().filter_map(|part| match &part.body {
            Body::Interjection(interjection) => Some(interjection.text.as_str()),
            _ => None,
        });
        for text in turn.user.iter().filter_map(Body::prose).chain(interjections) {
            texts += 1;
            assert_eq!(injected(text), None, "{of}: shown as the user's:\n{text}");
        }
    }
    texts
}

fn no_word_of_the_user_is_an_agents(source: &str) {
    let mut seen = 0;
    for case in cases(source) {
        let captures = captures(&case);
        // Each feed alone, since another one may hide what it says, and all of them.
        let mut orders: Vec<Vec<usize>> = (0..captures.len()).map(|feed| vec![feed]).collect();
        orders.push((0..captures.len()).collect());
        for order in orders {
            let chosen: Vec<_> = order.iter().map(|at| &captures[*at]).collect();
            let files: Vec<&str> = chosen.iter().map(|capture| &*capture.file).collect();
            let session_set = fold_in(&captures, &order);
            for session in &session_set.sessions {
                seen +=
                    check(&session.transcript(), &format!("{source}/{} {files:?}", name(&case)));
            }
        }
    }
    assert_seen(source, seen, [1; 17]);
}
by_source!(no_word_of_the_user_is_an_agents);

/// The context and the words of a prompt, in order.
fn user(transcript: &Transcript, turn: usize) -> Vec<(String, String)> {
    let turns: Vec<_> = transcript.turns.iter().filter(|turn| turn.number > 0).collect();
    let shown = |body: &Body| match body {
        Body::Text(text) => ("words".to_owned(), text.text.clone()),
        Body::ContextInfo(context) => (context.title.clone(), context.text.clone()),
        Body::File(file) => (file.name.clone().unwrap(), file.text.clone().unwrap()),
        other => panic!("{other:?}"),
    };
    turns[turn].user.iter().map(shown).collect()
}

const SESSION_HOOK: &str =
    "<hook_context>The team prefers metric units; &lt;b&gt; is escaped.</hook_context>";
const PROMPT_HOOK: &str = "<hook_context>The branch is frozen until Friday.</hook_context>";
const WORDS: &str = "Why is @src/forecast.py wrong? Is <hook_context>x</hook_context> a tag?";

#[test]
fn what_hooks_of_gemini_add_is_context_in_its_place() {
    // Recorded with hooks at SessionStart, BeforeAgent and AfterTool. The user typed the tag too.
    let case = root().join("fixtures/gemini/hooks-add-context");
    let captures = captures(&case);
    let all: Vec<usize> = (0..captures.len()).collect();
    let pair = |title: &str, text: &str| (title.to_owned(), text.to_owned());
    let expected = [
        pair("Hook context", SESSION_HOOK),
        pair("words", WORDS),
        pair("@src/forecast.py", "OFFSET = 30"),
        pair("Hook context", PROMPT_HOOK),
    ];
    for order in [vec![0], all.clone(), all.into_iter().rev().collect()] {
        let session_set = fold_in(&captures, &order);
        let transcript = main_session(&session_set).transcript();
        assert_eq!(transcript.title().as_deref(), Some(WORDS), "{order:?}");
        let shown = user(&transcript, 0);
        let ((title, context), rest) = shown.split_first().unwrap();
        assert_eq!(title, "Session context", "{order:?}");
        assert!(context.starts_with("<session_context>"), "{context}");
        assert_eq!(rest, expected, "{order:?}");
        let second = user(&transcript, 1);
        assert_eq!(second[1], pair("words", "Thank you."), "{order:?}");
        assert_eq!(transcript.turns.iter().filter(|turn| turn.number > 0).count(), 2, "{order:?}");
    }
}

#[test]
fn injected_text_is_found_and_exported() {
    let machine = Machine::new();
    let case = root().join("fixtures/gemini/hooks-add-context");
    machine.ok("d", &["import", case.to_str().unwrap()]);
    let sessions = machine.json("d", &["list"]);
    let id = sessions[0]["id"].as_str().unwrap();
    assert_eq!(sessions[0]["title"], WORDS);
    let found = machine.ok("d", &["search", "metric units"]);
    assert!(found.contains("metric"), "{found}");
    let shown = machine.ok("d", &["show", id, "--plain"]);
    // The title has the words too.
    let words = shown.rfind("Why is @src").unwrap();
    let hook = shown.find("Hook context").unwrap();
    assert!(hook < words, "the hook's text came first: {shown}");
    // The archive's own format has every byte of it.
    let lines = machine.ok("d", &["export", id, "--to", "jsonl"]);
    let json = serde_json::to_string(SESSION_HOOK).unwrap();
    assert!(lines.contains(json.trim_matches('"')), "{lines}");
}

#[test]
fn the_reader_knows_the_raw_forms() {
    for text in [
        "<hook_context>a</hook_context>\n\nb",
        "a\n<system-reminder>\nb\n</system-reminder>",
        "<file_content path=\"a\">b</file_content>",
        "a\n--- Content from referenced files ---\nb",
    ] {
        assert!(injected(text).is_some(), "{text}");
    }
    for text in [WORDS, "what is <task>?", "a <system-reminder>b</system-reminder>"] {
        assert_eq!(injected(text), None, "{text}");
    }
    assert!(Path::new(&root()).join("fixtures").is_dir());
}
