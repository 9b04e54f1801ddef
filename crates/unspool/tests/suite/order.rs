//! Law 1, order is kept: every recording against the independent reader of its raw JSON.

use unspool_core::part::{Body, ToolState};
use unspool_core::price::Prices;

use crate::case::{captures, cases, fold_in, main_session, name};
use crate::independent::{self, Kind};

#[test]
fn law_1_order_is_kept() {
    // R-000-01 to R-000-06, R-001-17, R-001-21, R-001-22, R-X-06
    for case in cases("claude-code") {
        let path = case.join("log.jsonl");
        if !path.exists() {
            continue;
        }
        let raw = independent::log(&path);
        let gathering = fold_in(&captures(&case)[..1], &[0]);
        let session = main_session(&gathering);
        let transcript = session.transcript();
        let mut found: Vec<(Kind, String)> = Vec::new();
        for part in transcript.turns.iter().flat_map(|turn| &turn.parts) {
            if let Some(written) = block_of(&part.body) {
                found.push(written);
            }
            let Body::Tool(tool) = &part.body else { continue };
            let Some(result) = raw.results.get(&tool.call_id) else { continue };
            assert_eq!(
                tool.output.as_deref(),
                Some(&*result.text),
                "{} {}",
                name(&case),
                tool.call_id
            );
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
        assert_eq!(found, expected, "{}", name(&case));
        let ledger = &session.ledger;
        let sum = ledger.in_parts
            + ledger.metadata
            + ledger.left_out.values().sum::<u64>()
            + ledger.unreadable;
        assert_eq!(ledger.read, sum, "{}", name(&case));
        assert_eq!(ledger.read as usize, raw.records, "{}", name(&case));
    }
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

/// Sessions whose own cost-state counts requests that no transcript has: compactions, inner
/// requests of web search, aborted streams. A fork's carries its parent's total.
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
        let gathering = fold_in(&captures(&case)[..1], &[0]);
        let transcript = main_session(&gathering).transcript();
        let usage = transcript.usage();
        let found = (usage.input, usage.output, usage.cache_read, usage.cache_write);
        let tokens = raw.tokens;
        let expected = (tokens.input, tokens.output, tokens.cache_read, tokens.cache_creation);
        assert_eq!(found, expected, "{}", name(&case));
        let agents = case.join("subagents").exists();
        if let Some(cost) = raw.cost_state
            && !agents
            && !UNACCOUNTED.contains(&&*name(&case))
        {
            let told = (
                cost.tokens.input,
                cost.tokens.output,
                cost.tokens.cache_read,
                cost.tokens.cache_creation,
            );
            assert_eq!(found, told, "{} against its own cost-state", name(&case));
            // What the list of prices makes of the tokens is what Claude Code made of them.
            let spending = transcript.spending();
            let estimated = spending.estimated_usd(&Prices::listed()).unwrap_or_default();
            let reported = spending.reported_usd.unwrap();
            let difference = (estimated - reported).abs();
            assert!(difference < 1e-9, "{}: {estimated} for {reported}", name(&case));
            checked += 1;
        }
    }
    assert!(checked >= 30, "only {checked} sessions were held against their cost-state");
}
