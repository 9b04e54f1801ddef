//! Law 12: what leaves for others goes through one redacting exit. Secrets of several kinds are
//! planted in titles, prompts, texts, reasoning, inputs, outputs, questions, answers and
//! sub-agents. None of them leaves by an export, a copy or a stream; the owner's own views have all
//! of them.

use std::path::Path;

use unspool_export::project::uimessage::reply;
use unspool_export::project::uimessage::stream::{ChunkEncoder, MessageChunk};
use unspool_export::project::{NAMES, Sdk};
use unspool_model::session::{Turn, TurnState};
use unspool_redact::{Redactor, Rules};
use unspool_store::database::Database;
use unspool_tui::test_harness::TestHarness;
use unspool_tui::theme::Theme;

use crate::case::{captures, fold, main_session, root};
use crate::harness::Machine;
use crate::test_server::Server;

/// Random characters, so that no complete secret is in this file.
const RANDOM: &str = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
/// Recognised as a secret in one place only, and also planted elsewhere.
const PASSWORD: &str = "correct7horse8";

/// What is planted: a text of the recording, and the secret that is added to it.
fn planted() -> Vec<(&'static str, String)> {
    vec![
        // The prompt, hence the title.
        ("Help me choose the default unit", format!("ghp_{RANDOM}")),
        ("I need the user's preference", format!("sk_live_{}", &RANDOM[..24])),
        ("Two quick questions", format!("xoxb-123456789012-1234567890123-{}", &RANDOM[..24])),
        // The input, the question, its answer and the result.
        ("Celsius", PASSWORD.to_owned()),
        ("Metric default", format!("DB_PASSWORD={PASSWORD}")),
        ("Machine readable", format!("glpat-{}", &RANDOM[..20])),
        ("Please spawn a nested chain", format!("hf_{}", &RANDOM[..34])),
        ("Outer layer: delegate", format!("npm_{RANDOM}")),
        ("Inner said 42", format!("gsk_{RANDOM}{}", &RANDOM[..16])),
        ("Inner layer: compute", format!("gho_{RANDOM}")),
    ]
}

/// The secrets themselves, without the names that they are assigned to.
fn secrets() -> Vec<String> {
    let bare = |text: String| text.strip_prefix("DB_PASSWORD=").map_or(text.clone(), str::to_owned);
    planted().into_iter().map(|(_, secret)| bare(secret)).collect()
}

fn plant(machine: &Machine, from: &Path, to: &str) {
    for entry in from.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name == "subagents" {
            plant(machine, &path, &format!("{to}/{name}"));
        } else if name == "log.jsonl" || name.starts_with("agent-") {
            let mut text = std::fs::read_to_string(&path).unwrap();
            for (place, secret) in planted() {
                text = text.replace(place, &format!("{place} {secret} "));
            }
            machine.write(&format!("{to}/{name}"), text.as_bytes());
        }
    }
}

/// An archive of recordings with secrets, and the ids of its sessions.
fn machine() -> (Machine, Vec<String>) {
    let machine = Machine::new();
    for case in ["question-answered", "subagents-nested"] {
        plant(&machine, &root().join("fixtures/claude-code").join(case), &format!("logs/{case}"));
    }
    machine.ok("archive", &["import", machine.home().join("logs").to_str().unwrap()]);
    let listed = machine.json("archive", &["list"]);
    let sessions = listed.as_array().unwrap().iter();
    let ids: Vec<String> = sessions.map(|it| it["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), 4, "two sessions and two sub-agents");
    (machine, ids)
}

fn found_in(text: &str) -> Vec<String> {
    secrets().into_iter().filter(|secret| text.contains(secret.as_str())).collect()
}

#[track_caller]
fn assert_redacted(exit: &str, text: &str) {
    assert!(!text.trim().is_empty(), "{exit} has nothing");
    assert_eq!(found_in(text), Vec::<String>::new(), "{exit}: {text}");
}

#[track_caller]
fn assert_raw(view: &str, text: &str) {
    let missing: Vec<String> =
        secrets().into_iter().filter(|secret| !text.contains(secret.as_str())).collect();
    assert_eq!(missing, Vec::<String>::new(), "{view} lacks them");
}

#[test]
fn law_12_exports_and_copies_are_redacted_and_views_are_raw() {
    let (machine, ids) = machine();
    let server = Server::begin(&machine, "archive", &[]);
    let body = |path: &str| {
        let response = server.get(path);
        assert_eq!(response.status, 200, "{path}");
        String::from_utf8(response.body).unwrap()
    };
    let (mut shown, mut pages, mut rest, mut kept, mut archive) =
        (String::new(), String::new(), String::new(), String::new(), String::new());
    for id in &ids {
        for form in NAMES.iter().filter(|form| **form != "jsonl") {
            assert_redacted(form, &machine.ok("archive", &["export", id, "--to", form]));
            let path = format!("/api/sessions/{id}/export?to={form}");
            assert_redacted(&path, &body(&path));
        }
        let turns = server.json(&format!("/api/sessions/{id}/turns"));
        for turn in turns.as_array().unwrap() {
            let number = &turn["number"];
            let mut paths = vec![
                format!("/api/chat/{id}/stream?turn={number}"),
                format!("/s/{id}/markdown?turn={number}"),
            ];
            for part in turn["parts"].as_array().unwrap() {
                let part = part["id"].as_str().unwrap();
                paths.push(format!("/s/{id}/markdown?turn={number}&part={part}"));
            }
            for path in paths {
                assert_eq!(found_in(&body(&path)), Vec::<String>::new(), "{path}");
            }
            kept.push_str(&body(&format!("/api/chat/{id}/stream?turn={number}&redact=0")));
        }
        assert_redacted("/markdown", &body(&format!("/s/{id}/markdown")));
        for form in ["json", "d2"] {
            let path = format!("/thoughtflow/{id}.{form}");
            assert_redacted(&path, &body(&path));
        }
        shown.push_str(&machine.ok("archive", &["show", id, "--json"]));
        pages.push_str(&body(&format!("/s/{id}")));
        rest.push_str(&body(&format!("/api/sessions/{id}")));
        kept.push_str(&body(&format!("/api/sessions/{id}/export?to=text&redact=0")));
        archive.push_str(&machine.ok("archive", &["export", id, "--to", "jsonl"]));
    }
    for (view, text) in
        [("show", &shown), ("REST", &rest), ("redact=0", &kept), ("jsonl", &archive)]
    {
        assert_raw(view, text);
    }
    // The page leaves out the descriptions of options.
    assert!(found_in(&pages).len() >= 6, "{:?}", found_in(&pages));
}

#[test]
fn law_12_the_terminal_saves_and_copies_redacted_text() {
    let (machine, _) = machine();
    let store = Database::open_to_read(&machine.data("archive").join("unspool.db")).unwrap();
    let theme = Theme::named("mocha").unwrap();
    let mut terminal = TestHarness::new(store, (140, 400), theme).unwrap();
    let mut shown = terminal.text();
    let mut copies = 0;
    // Sub-agents are not in the list: `a` opens them from their call.
    for way in ["\n", "j\n", "\na", "j\na", "\naa", "j\naa"] {
        terminal.press(&format!("\x1b\x1b\x1b\x1b\x1bg{way}g+"));
        shown.push_str(&terminal.text());
        terminal.press("x");
        for saved in terminal.take_outputs() {
            assert_redacted("x", &saved);
            assert!(saved.starts_with("# "), "{saved}");
        }
        for _ in 0..40 {
            terminal.press("yj");
        }
        for copied in terminal.take_outputs() {
            copies += 1;
            assert_eq!(found_in(&copied), Vec::<String>::new(), "y: {copied}");
        }
    }
    assert!(copies >= 20, "{copies}");
    let seen = found_in(&shown);
    assert!(seen.len() >= 5, "the screen is raw: {seen:?}\n{shown}");
}

/// The titles of a copy, a file and an export are escaped in the same way.
#[test]
fn law_12_one_head_for_all_markdown() {
    let machine = Machine::new();
    let log =
        String::from_utf8(crate::harness::recorded("claude-code/question-answered/log.jsonl"));
    let hostile = log.unwrap().replace("Help me choose", "# <b>Help</b> [me](x) *choose*");
    machine.write("logs/hostile.jsonl", hostile.as_bytes());
    machine.ok("archive", &["import", machine.home().join("logs").to_str().unwrap()]);
    let id = machine.json("archive", &["list"])[0]["id"].as_str().unwrap().to_owned();
    let file = machine.ok("archive", &["export", &id, "--to", "markdown"]);
    let title = file.lines().next().unwrap();
    assert!(!title.contains("<b>") && !title.contains("[me](x)"), "{title}");
    let store = Database::open_to_read(&machine.data("archive").join("unspool.db")).unwrap();
    let mut terminal = TestHarness::new(store, (80, 24), Theme::named("mocha").unwrap()).unwrap();
    terminal.press("\nx");
    let saved = terminal.take_outputs().concat();
    assert_eq!(saved.lines().next(), Some(title));
    let server = Server::begin(&machine, "archive", &[]);
    assert_eq!(server.get(&format!("/s/{id}/markdown")).body, file.into_bytes());
}

/// The text of all chunks that a client of a running turn gets, at every cut of its stream.
fn streamed(lines: &[(&str, String)], redactor: &mut Redactor<'_>) -> String {
    let mut captures = captures(&root().join("fixtures/claude-code/question-answered"));
    captures.retain(|capture| capture.file == "stream.jsonl");
    for line in &mut captures[0].lines {
        let mut text = String::from_utf8(line.bytes.clone()).unwrap();
        for (from, to) in lines {
            text = text.replace(from, to);
        }
        line.bytes = text.into_bytes();
    }
    let mut encoder = ChunkEncoder::new(Sdk::Seven);
    let mut sent = String::new();
    for cut in 1..=captures[0].lines.len() {
        let session_set = fold(&captures, std::iter::repeat_n(0, cut));
        if session_set.sessions.is_empty() {
            continue;
        }
        let transcript = main_session(&session_set).transcript();
        let running = |turn: &&Turn| turn.number > 0 && turn.state == TurnState::Running;
        let Some(turn) = transcript.turns.last().filter(running) else { continue };
        let session = redactor.release_session(transcript.session.clone());
        let message = reply(&session, &redactor.release_live_turn(turn.clone()), Sdk::Seven);
        let chunks = encoder.emit(message.clone()).unwrap_or_else(|_| {
            // What was sent has changed: the client starts over.
            encoder = ChunkEncoder::new(Sdk::Seven);
            encoder.emit(message).unwrap()
        });
        sent.extend(chunks.iter().map(MessageChunk::event));
    }
    sent
}

/// Secrets that are split over two deltas of text, reasoning and a call's input.
#[test]
fn law_12_a_redacted_stream_sends_whole_closed_parts() {
    let rules = Rules::standard();
    let (head, tail) = RANDOM.split_at(18);
    let (text, thought, label) =
        (format!("Two ghp_{head}"), format!("I need gho_{head}"), format!("ghu_{head}"));
    let lines = [
        ("Two quick question\"", format!("{text}\"")),
        ("\"s before I change ", format!("\"{tail} ")),
        ("I need the user's prefer\"", format!("{thought}\"")),
        ("\"ence.\"", format!("\"{tail}.\"")),
        ("Celsius (R\"", format!("{label}\"")),
        ("\"ecommended)", format!("\"{tail}")),
        // The same, whole, after their deltas.
        ("Two quick questions before I change ", format!("{text}{tail} ")),
        ("I need the user's preference.", format!("{thought}{tail}.")),
        ("Celsius (Recommended)", format!("{label}{tail}")),
    ];
    let sent = streamed(&lines, &mut Redactor::new(&rules));
    assert!(sent.contains("text-delta") && sent.contains("tool-input-available"), "{sent}");
    assert!(!sent.contains(head) && !sent.contains(tail), "{sent}");
    assert!(sent.contains("[redacted:github-token:"), "{sent}");
    let raw = streamed(&lines, &mut Redactor::off());
    assert!(raw.contains(head) && raw.contains(tail), "{raw}");
}
