//! Law 1 (order is kept) for OpenCode: every database against an independent reader of its tables.

use unspool_model::id::SessionId;
use unspool_model::part::{Body, ToolState};

use crate::case::{captures, cases, fold_in, name};
use crate::independent::{self, Kind};

/// Cases with removed messages: gone from the tables, kept by us.
const REMOVED: &[&str] = &["message-removed"];

#[test]
fn law_1_order_is_kept_for_opencode() {
    // R-000-01 to R-000-06, R-001-17, R-X-06
    let mut held = 0;
    for case in cases("opencode") {
        let database = case.join("log.db");
        if !database.exists() || REMOVED.contains(&&*name(&case)) {
            continue;
        }
        let logs: Vec<_> =
            captures(&case).into_iter().filter(|capture| capture.file == "log.db").collect();
        let session_set = fold_in(&logs, &(0..logs.len()).collect::<Vec<_>>());
        for raw in independent::opencode(&database) {
            held += 1;
            let mut sessions = session_set.sessions.iter();
            let session = sessions.find(|held| held.agent_session_id == raw.session).unwrap();
            let transcript = session.transcript();
            let at = format!("{} {}", name(&case), raw.session);
            let mut found: Vec<(Kind, String)> = Vec::new();
            let mut prompts: Vec<String> = Vec::new();
            for turn in transcript.turns.iter().filter(|turn| !turn.abandoned) {
                // Skip commands: we show the command, the tables have its expansion.
                let commands = |body: &&Body| body.prose().is_some_and(|text| text != "/review");
                let said = turn.user.iter().filter(commands).filter_map(Body::prose);
                prompts.extend(said.map(str::to_owned));
                for part in &turn.parts {
                    match &part.body {
                        Body::Text(text) => found.push((Kind::Text, text.text.clone())),
                        Body::Reasoning(text) => found.push((Kind::Reasoning, text.text.clone())),
                        Body::Tool(tool) => {
                            found.push((Kind::Tool, tool.call_id.clone()));
                            let (text, wrong) = &raw.results[&tool.call_id];
                            assert_eq!(tool.output.as_ref(), Some(text), "{at} {}", tool.call_id);
                            let state = tool.state != ToolState::Completed;
                            // A command with another exit code than 0 has failed (C-25).
                            let wrong = *wrong || tool.exit_code.is_some_and(|code| code != 0);
                            assert_eq!(state, wrong, "{at} {}", tool.call_id);
                        }
                        _ => {}
                    }
                }
            }
            assert_eq!(found, raw.blocks, "{at}");
            assert_eq!(prompts, raw.prompts, "{at}");
            let parent = raw.parent.map(|parent| SessionId::of("opencode", &parent));
            assert_eq!(
                transcript.session.facts.reported_parent.map(|parent_ref| parent_ref.session),
                parent,
                "{at}"
            );
            let record_counts = &session.record_counts;
            // The session's header, and one record per event.
            assert_eq!(record_counts.read as i64, raw.records + 1, "{at}");
            assert_eq!(record_counts.unreadable, 0, "{at}");
        }
    }
    assert!(held >= 30, "only {held} sessions were held against their tables");
}

#[test]
fn tokens_are_counted_once_for_opencode() {
    // R-001-33
    for case in cases("opencode") {
        let database = case.join("log.db");
        if !database.exists() || REMOVED.contains(&&*name(&case)) {
            continue;
        }
        // With the stream beside the log, nothing counts twice.
        let captures = captures(&case);
        let session_set = fold_in(&captures, &(0..captures.len()).collect::<Vec<_>>());
        for raw in independent::opencode(&database) {
            let mut sessions = session_set.sessions.iter();
            let session = sessions.find(|held| held.agent_session_id == raw.session).unwrap();
            let mut transcript = session.transcript();
            transcript.turns.retain(|turn| !turn.abandoned);
            let usage = transcript.usage();
            let found = (usage.input, usage.output, usage.cache_read, usage.cache_write);
            assert_eq!(found, raw.tokens, "{} {}", name(&case), raw.session);
            let cost = transcript.session.facts.cost_usd.unwrap_or(0.0);
            // A revert lowers OpenCode's cost; we keep what was spent.
            let spent = cost >= raw.cost - 1e-9;
            assert!(spent, "{} {}: {cost} against {}", name(&case), raw.session, raw.cost);
        }
    }
}
