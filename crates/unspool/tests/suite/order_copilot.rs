//! Law 1 (order is kept) for Copilot CLI: every recording against the independent reader.

use unspool_model::part::{Body, ToolState};
use unspool_model::session::{Transcript, Turn};

use crate::case::{captures, cases, fold_in, name};
use crate::independent::{Kind, copilot};

fn blocks(transcript: &Transcript) -> Vec<(Kind, String)> {
    let parts = transcript.turns.iter().flat_map(|turn| &turn.parts);
    parts
        .filter_map(|part| match &part.body {
            Body::Text(text) => Some((Kind::Text, text.text.clone())),
            Body::Reasoning(reasoning) => Some((Kind::Reasoning, reasoning.text.clone())),
            Body::Tool(tool) => Some((Kind::Tool, tool.call_id.clone())),
            Body::Error(failure) => Some((Kind::Error, failure.text.clone())),
            _ => None,
        })
        .collect()
}

#[test]
fn law_1_order_is_kept_by_copilot() {
    // R-000-01 to R-000-06, R-001-17, R-001-21, R-X-06
    let mut agents = 0;
    for case in cases("copilot") {
        let raw = copilot::sessions(&std::fs::read(case.join("log.jsonl")).unwrap());
        let captures = captures(&case);
        let session_set = fold_in(&captures[..1], &[0]);
        assert_eq!(session_set.sessions.len(), raw.len(), "{}", name(&case));
        for session in &session_set.sessions {
            let (id, case) = (&session.agent_session_id, name(&case));
            let (raw_session, transcript) = (&raw[id], session.transcript());
            agents += usize::from(session.is_sub_agent());
            assert_eq!(blocks(&transcript), raw_session.blocks, "{case} {id}");
            let said = |turn: &Turn| turn.user.iter().find_map(Body::prose).map(str::to_owned);
            let prompts = transcript.turns.iter().filter_map(said);
            assert_eq!(prompts.collect::<Vec<_>>(), raw_session.prompts, "{case} {id}");
            let (usage, tokens) = (transcript.usage(), raw_session.tokens);
            let found = (usage.input, usage.output, usage.cache_read, usage.cache_write);
            let expected = (tokens.input, tokens.output, tokens.cache_read, tokens.cache_creation);
            assert_eq!(found, expected, "{case} {id}");
            assert_eq!(session.record_counts.unreadable, 0, "{case} {id}");
            results(&transcript, raw_session, &case);
        }
    }
    assert!(agents >= 5, "only {agents} sub-agents");
}

fn results(transcript: &Transcript, raw_session: &copilot::RawSession, case: &str) {
    for part in transcript.turns.iter().flat_map(|turn| &turn.parts) {
        let Body::Tool(tool) = &part.body else { continue };
        match raw_session.results.get(&tool.call_id) {
            Some((text, failed, exit)) => {
                assert_eq!(tool.output.as_deref(), Some(&**text), "{case} {}", tool.call_id);
                // A command with another exit code than 0 has failed (C-25).
                let failed = *failed || exit.is_some_and(|exit| exit != 0);
                assert_eq!(tool.state != ToolState::Completed, failed, "{case} {}", tool.call_id);
                assert_eq!(tool.exit_code, *exit, "{case} {}", tool.call_id);
            }
            // Without a result, the end of its turn ends the call.
            None => assert_eq!(tool.state, ToolState::Interrupted, "{case} {}", tool.call_id),
        }
    }
}

#[test]
fn live_events_of_copilot_add_to_the_log_and_double_nothing() {
    // R-X-03: the log's order is kept; the stream adds only interrupted parts.
    let mut cut = 0;
    for case in cases("copilot") {
        let captures = captures(&case);
        // `order_acp` compares captures of ACP.
        if captures.len() < 2 || name(&case).starts_with("acp-") {
            continue;
        }
        let raw = copilot::sessions(&std::fs::read(case.join("log.jsonl")).unwrap());
        let order: Vec<usize> = (0..captures.len()).collect();
        let session_set = fold_in(&captures, &order);
        assert_eq!(session_set.sessions.len(), raw.len(), "{}", name(&case));
        for session in &session_set.sessions {
            let mut found = blocks(&session.transcript());
            let expected = &raw[&session.agent_session_id].blocks;
            if found != *expected {
                cut += 1;
                assert_eq!(name(&case), "interrupted-mid-tool-and-mid-text");
                found.retain(|block| expected.contains(block));
            }
            assert_eq!(found, *expected, "{}", name(&case));
        }
    }
    assert_eq!(cut, 1);
}
