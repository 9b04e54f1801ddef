//! Law 1 (order is kept) for Claude Code: every recording against the independent reader.

use std::path::{Path, PathBuf};

use unspool_model::part::{Body, ToolState};
use unspool_model::price::Prices;
use unspool_model::session::Transcript;
use unspool_sources::in_memory::{DecodedSession, SessionSet};

use crate::case::{captures, cases, fold_in, main_session, name};
use crate::independent::{self, Kind};

/// All logs of all cases: the main ones and those of sub-agents.
fn logs() -> Vec<(String, PathBuf)> {
    let mut logs = Vec::new();
    for case in cases("claude-code") {
        let files = case.read_dir().unwrap().map(|entry| entry.unwrap().path());
        let is_main = |path: &PathBuf| name(path) == "log.jsonl";
        let is_agents = |path: &PathBuf| name(path).starts_with("agent-");
        let agents = case.join("subagents").read_dir().into_iter().flatten();
        let agents = agents.map(|entry| entry.unwrap().path()).filter(is_agents);
        let files = files.filter(|path| is_main(path) || is_agents(path)).chain(agents);
        let is_log = |path: &PathBuf| path.extension().is_some_and(|form| form == "jsonl");
        logs.extend(files.filter(is_log).map(|path| (format!("{path:?}"), path)));
    }
    logs.sort();
    logs
}

fn read_sessions(path: &Path) -> SessionSet {
    let mut session_set = SessionSet::default();
    session_set.read_file(path, &mut |_| {}).unwrap();
    session_set
}

#[test]
fn law_1_order_is_kept() {
    // R-000-01 to R-000-06, R-001-17, R-001-21, R-001-22, R-001-24, R-X-06
    let (mut agents, mut chains) = (0, 0);
    for (what, path) in logs() {
        let raw = independent::log(&path);
        let session_set = read_sessions(&path);
        let session = main_session(&session_set);
        if raw.warm_up {
            assert!(!session.has_turns(), "{what}");
            assert_eq!(session.record_counts.left_out["warm-up"] as usize, raw.records, "{what}");
            continue;
        }
        check_session(&what, session, &raw);
        agents += usize::from(session.is_sub_agent());
        for chain in independent::chains(&path) {
            chains += 1;
            let id = format!("{}:{}", session.agent_session_id, chain.root);
            let found = session_set.sessions.iter().find(|held| held.agent_session_id == id);
            let child = found.unwrap_or_else(|| panic!("{what}: no session {id}"));
            check_session(&id, child, &chain.log);
            // Parent and child are linked by the call whose prompt it got.
            let parent = child.transcript().session.parent.unwrap();
            assert_eq!(parent.session, session.transcript().session.id, "{id}");
            assert_eq!(parent.call_id, chain.call, "{id}");
            let reported = agent_ids(&session.transcript());
            assert!(
                reported.contains(&(chain.call.clone().unwrap(), id.clone())),
                "{reported:?} {id}"
            );
        }
        assert_eq!(session_set.sessions.len(), 1 + independent::chains(&path).len(), "{what}");
    }
    assert!(agents >= 28 && chains >= 3, "{agents} {chains}");
}

/// The calls that started agents, with the agents' ids.
fn agent_ids(transcript: &Transcript) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for part in transcript.turns.iter().flat_map(|turn| &turn.parts) {
        let Body::Agent(reported) = &part.body else { continue };
        let ids =
            reported.agents.iter().map(|agent| (reported.call_id.clone(), agent.id.to_string()));
        found.extend(ids);
    }
    found
}

/// Order, results and tokens of a session, against the independent reader.
fn check_session(what: &str, session: &DecodedSession, raw: &independent::Log) {
    let transcript = session.transcript();
    let mut found: Vec<(Kind, String)> = Vec::new();
    for part in transcript.turns.iter().flat_map(|turn| &turn.parts) {
        if let Some(written) = block_of(&part.body) {
            found.push(written);
        }
        let Body::Tool(tool) = &part.body else { continue };
        let Some(result) = raw.results.get(&tool.call_id) else { continue };
        assert_eq!(tool.output.as_deref(), Some(&*result.text), "{what} {}", tool.call_id);
        assert_eq!(tool.state != ToolState::Completed, result.is_error, "{}", tool.call_id);
    }
    let expected: Vec<(Kind, String)> = raw
        .blocks
        .iter()
        .map(|block| {
            let text = block.call.as_ref().map_or(&block.text, |call| &call.id);
            (block.kind, text.clone())
        })
        .collect();
    assert_eq!(found, expected, "{what}");
    let usage = transcript.usage();
    let found = (usage.input, usage.output, usage.cache_read, usage.cache_write);
    let tokens = raw.tokens;
    let expected = (tokens.input, tokens.output, tokens.cache_read, tokens.cache_creation);
    assert_eq!(found, expected, "{what}");
    let record_counts = &session.record_counts;
    let left_out = record_counts.left_out.values().sum::<u64>();
    let sum = record_counts.in_parts + record_counts.metadata + left_out + record_counts.unreadable;
    assert_eq!(record_counts.read, sum, "{what}");
    assert_eq!(record_counts.read as usize, raw.records - raw.side_records, "{what}");
}

fn block_of(body: &Body) -> Option<(Kind, String)> {
    match body {
        Body::Text(text) => Some((Kind::Text, text.text.clone())),
        Body::Reasoning(reasoning) => Some((Kind::Reasoning, reasoning.text.clone())),
        Body::Tool(tool) => Some((Kind::Tool, tool.call_id.clone())),
        Body::Error(failure) => Some((Kind::Error, failure.text.clone())),
        _ => None,
    }
}

/// Sessions whose own cost-state includes requests that are in no transcript: compactions, inner
/// requests of web search, aborted streams. A fork's includes its parent's total.
const UNACCOUNTED: &[&str] = &[
    "compaction-and-resume",
    "compaction-automatic-mid-turn",
    "forked-session",
    "interrupted-mid-text",
    "terminal-interrupts-and-queued-prompts",
    "web-search",
];

#[test]
fn tokens_are_counted_once_per_message() {
    let mut checked = 0;
    for case in cases("claude-code") {
        let path = case.join("log.jsonl");
        if !path.exists() {
            continue;
        }
        let raw = independent::log(&path);
        let session_set = fold_in(&captures(&case)[..1], &[0]);
        let transcript = main_session(&session_set).transcript();
        let usage = transcript.usage();
        let found = (usage.input, usage.output, usage.cache_read, usage.cache_write);
        let tokens = raw.tokens;
        let expected = (tokens.input, tokens.output, tokens.cache_read, tokens.cache_creation);
        assert_eq!(found, expected, "{}", name(&case));
        let agents = case.join("subagents").exists();
        if let Some(cost) = raw.cost_state
            && !agents
            && !UNACCOUNTED.contains(&&*name(&case))
            // The cost has the tokens of other sessions that the adapter ran in the same process.
            && !name(&case).starts_with("acp-")
        {
            let reported = (
                cost.tokens.input,
                cost.tokens.output,
                cost.tokens.cache_read,
                cost.tokens.cache_creation,
            );
            assert_eq!(found, reported, "{} against its own cost-state", name(&case));
            // Our price list gives the cost that Claude Code computed.
            let spending = transcript.spending();
            let estimated = spending.estimated_usd(&Prices::listed()).unwrap_or_default();
            let reported = spending.reported_usd().unwrap();
            let difference = (estimated - reported).abs();
            assert!(difference < 1e-9, "{}: {estimated} for {reported}", name(&case));
            checked += 1;
        }
    }
    assert!(checked >= 30, "only {checked} sessions were held against their cost-state");
}
