//! Law 1 (order is kept) for the agents with one log format each: every recording against an
//! independent reader of its raw file. Results, states and tokens are compared as well.

use std::path::Path;

use unspool_model::part::{Body, Tool, ToolState};
use unspool_model::session::{Transcript, Usage};
use unspool_sources::in_memory::SessionSet;

use crate::case::{Capture, captures, cases, fold_in, main_session, name};
use crate::independent::raw_session::RawSession;
use crate::independent::{
    Kind, Tokens, aider, cline, continue_dev, droid, kilo, mini_swe_agent, pi, qwen,
};

fn blocks(transcript: &Transcript) -> Vec<(Kind, String)> {
    let parts = transcript.turns.iter().flat_map(|turn| &turn.parts);
    parts
        .filter_map(|part| match &part.body {
            Body::Text(text) => Some((Kind::Text, text.text.clone())),
            Body::Reasoning(reasoning) => Some((Kind::Reasoning, reasoning.text.clone())),
            Body::Tool(tool) => Some((Kind::Tool, tool.call_id.clone())),
            _ => None,
        })
        .collect()
}

fn tokens(usage: Usage) -> Tokens {
    let Usage { input, output, cache_read, cache_write, .. } = usage;
    Tokens { input, output, cache_read, cache_creation: cache_write }
}

/// Compares a session with its raw file. Returns how many calls it compared.
fn compare(case: &str, transcript: &Transcript, raw: &RawSession) -> usize {
    let found = blocks(transcript);
    let trimmed = |blocks: &[(Kind, String)]| -> Vec<(Kind, String)> {
        blocks.iter().map(|(kind, text)| (*kind, text.trim().to_owned())).collect()
    };
    assert_eq!(trimmed(&found), trimmed(&raw.blocks), "{case}");
    assert_eq!(tokens(transcript.usage()), raw.tokens, "{case}");
    let mut compared = 0;
    for part in transcript.turns.iter().flat_map(|turn| &turn.parts) {
        let Body::Tool(tool) = &part.body else { continue };
        let at = format!("{case} {}", tool.call_id);
        let Some(result) = raw.results.get(&tool.call_id) else {
            assert_ne!(tool.state, ToolState::Completed, "{at}");
            continue;
        };
        compared += 1;
        let output = tool.output.as_deref().unwrap_or_default();
        assert!(output.contains(result.output.trim()), "{at}: {output:?} {:?}", result.output);
        assert_eq!(tool.state, result.state, "{at}");
    }
    compared
}

/// The session of the first capture alone, which is the log.
fn alone(captures: &[Capture]) -> SessionSet {
    fold_in(&captures[..1], &[0])
}

/// Compares the logs of a source. Fails if fewer calls were compared.
fn compare_logs(source: &str, file: &str, least: usize, read: fn(&[u8]) -> Option<RawSession>) {
    let mut compared = 0;
    for case in cases(source) {
        let Ok(bytes) = std::fs::read(case.join(file)) else { continue };
        let Some(raw) = read(&bytes) else { continue };
        let session_set = alone(&captures(&case));
        let session = main_session(&session_set);
        assert_eq!(session.record_counts.unreadable, 0, "{}", name(&case));
        compared += compare(&format!("{source}/{}", name(&case)), &session.transcript(), &raw);
    }
    assert!(compared >= least, "{source}: {compared}");
}

// R-000-01 to R-000-06, R-001-17, R-001-21
#[test]
fn law_1_order_is_kept_by_qwen_code() {
    compare_logs("qwen", "log.jsonl", 40, |bytes| Some(qwen::session(bytes)));
}

// R-000-01 to R-000-06, R-001-17, R-001-21
#[test]
fn law_1_order_is_kept_by_pi() {
    compare_logs("pi", "log.jsonl", 40, |bytes| Some(pi::session(bytes)));
}

// R-000-01 to R-000-06, R-001-17, R-001-21
#[test]
fn law_1_order_is_kept_by_cline() {
    compare_logs("cline", "log.json", 40, |bytes| Some(cline::session(bytes)));
}

// R-000-01 to R-000-06, R-001-17, R-001-21
#[test]
fn law_1_order_is_kept_by_continue() {
    compare_logs("continue", "log.json", 30, |bytes| Some(continue_dev::session(bytes)));
}

// R-000-01 to R-000-06, R-001-17, R-001-21
#[test]
fn law_1_order_is_kept_by_mini_swe_agent() {
    compare_logs("mini-swe-agent", "log.json", 15, mini_swe_agent::session);
}

// R-000-01 to R-000-06, R-001-17, R-001-21: tokens are in the settings beside the file.
#[test]
fn law_1_order_is_kept_by_droid() {
    let mut compared = 0;
    for case in cases("droid") {
        let Ok(bytes) = std::fs::read(case.join("log.jsonl")) else { continue };
        let captures = captures(&case);
        let settings = captures.iter().position(|file| file.file.ends_with(".settings.json"));
        let order: Vec<usize> = [Some(0), settings].into_iter().flatten().collect();
        let session_set = fold_in(&captures, &order);
        let session = main_session(&session_set);
        let path = settings.map(|at| case.join(&captures[at].file));
        let settings = path.map(|path| std::fs::read(path).unwrap());
        let raw = droid::session(&bytes, settings.as_deref());
        compared += compare(&format!("droid/{}", name(&case)), &session.transcript(), &raw);
    }
    assert!(compared >= 20, "{compared}");
}

// R-000-01 to R-000-06, R-001-17, R-001-21
#[test]
fn law_1_order_is_kept_by_kilo() {
    let mut compared = 0;
    for case in cases("kilo") {
        let database = case.join("log.db");
        if !database.exists() {
            continue;
        }
        let captures = captures(&case);
        let of_database: Vec<usize> =
            (0..captures.len()).filter(|at| captures[*at].file == "log.db").collect();
        let session_set = fold_in(&captures, &of_database);
        for (id, raw) in kilo::sessions(&database) {
            let found = session_set.sessions.iter().find(|found| found.agent_session_id == id);
            let Some(found) = found else { panic!("{} {id} is missing", name(&case)) };
            compared += compare(&format!("kilo/{} {id}", name(&case)), &found.transcript(), &raw);
        }
    }
    assert!(compared >= 20, "{compared}");
}

/// The blocks of a chat of aider. Its history has no ids: a call is its tool and what it is about.
fn chat_blocks(transcript: &Transcript) -> Vec<(Kind, String, Option<&Tool>)> {
    let parts = transcript.turns.iter().flat_map(|turn| &turn.parts);
    parts
        .filter_map(|part| match &part.body {
            Body::Text(text) => Some((Kind::Text, text.text.trim().to_owned(), None)),
            Body::Reasoning(reasoning) => {
                Some((Kind::Reasoning, reasoning.text.trim().to_owned(), None))
            }
            Body::Tool(tool) => {
                let input = tool.input.as_ref().unwrap().value();
                let about = ["file_path", "command"].iter().find_map(|name| input[*name].as_str());
                Some((Kind::Tool, format!("{} {}", tool.name, about.unwrap()), Some(&**tool)))
            }
            _ => None,
        })
        .collect()
}

// R-000-01 to R-000-06, R-001-17, R-001-21
#[test]
fn law_1_order_is_kept_by_aider() {
    let (mut calls, mut ended) = (0, 0);
    for case in cases("aider") {
        let raw = aider::history(&read(&case.join("log.md")));
        let session_set = alone(&captures(&case));
        assert_eq!(session_set.sessions.len(), raw.len(), "{}", name(&case));
        for (nth, (session, raw)) in session_set.sessions.iter().zip(&raw).enumerate() {
            let transcript = session.transcript();
            let user = transcript.turns.iter().flat_map(|turn| &turn.user);
            let lines: Vec<&str> = user.filter_map(Body::prose).flat_map(str::lines).collect();
            let at = format!("{} {nth}", name(&case));
            assert_eq!(lines, raw.prompts, "{at}");
            let usage = transcript.usage();
            let found = (usage.input + usage.cache_read + usage.cache_write, usage.output);
            assert_eq!(found, (raw.tokens.input, raw.tokens.output), "{at}");
            let found = chat_blocks(&transcript);
            let order: Vec<_> = found.iter().map(|(kind, text, _)| (*kind, &**text)).collect();
            let expected: Vec<_> = raw.blocks.iter().map(|raw| (raw.kind, &*raw.text)).collect();
            assert_eq!(order, expected, "{at}");
            for ((_, about, tool), raw) in found.iter().zip(&raw.blocks) {
                let Some(tool) = tool else { continue };
                calls += 1;
                let Some(state) = raw.state else {
                    assert_ne!(tool.state, ToolState::Completed, "{at} {about}");
                    continue;
                };
                ended += 1;
                assert_eq!(tool.state, state, "{at} {about}");
                let output = tool.output.as_deref().unwrap_or_default();
                assert_eq!(output.trim(), raw.output.trim(), "{at} {about}");
            }
        }
    }
    assert!(calls >= 13 && ended >= 12, "{calls} {ended}");
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}
