//! Law 1 (order is kept) for Codex: every rollout against the independent reader.

use unspool_model::part::Body;

use crate::case::{captures, cases, fold_in, main_session, name};
use crate::independent::{Kind, codex};

#[test]
fn law_1_order_is_kept_in_rollouts() {
    // R-000-01 to R-000-06, R-001-17, R-X-06
    let mut checked = 0;
    for case in cases("codex") {
        let Some(raw) = codex::rollout_of(&case) else { continue };
        let session_set = fold_in(&captures(&case)[..1], &[0]);
        let session = main_session(&session_set);
        let transcript = session.transcript();
        let mut found: Vec<(Kind, String)> = Vec::new();
        for part in transcript.turns.iter().flat_map(|turn| &turn.parts) {
            match &part.body {
                Body::Text(text) => found.push((Kind::Text, text.text.clone())),
                Body::Reasoning(reasoning) => {
                    found.push((Kind::Reasoning, reasoning.text.clone()));
                }
                Body::Tool(tool) => found.push((Kind::Tool, tool.call_id.clone())),
                _ => {}
            }
            let Body::Tool(tool) = &part.body else { continue };
            if let Some(output) = raw.outputs.get(&tool.call_id) {
                assert_eq!(tool.output.as_ref(), Some(output), "{} {}", name(&case), tool.call_id);
            }
        }
        if raw.goes_on {
            assert!(found.ends_with(&raw.blocks), "{}", name(&case));
        } else {
            assert_eq!(found, raw.blocks, "{}", name(&case));
        }
        let record_counts = &session.record_counts;
        let left: u64 = record_counts.left_out.values().sum();
        assert_eq!(
            record_counts.read,
            record_counts.in_parts + record_counts.metadata + left,
            "{}",
            name(&case)
        );
        assert_eq!(record_counts.unreadable, 0, "{}", name(&case));
        checked += 1;
    }
    assert!(checked >= 25, "only {checked} rollouts");
}

#[test]
fn tokens_of_rollouts_are_counted_once_per_response() {
    for case in cases("codex") {
        let Some(raw) = codex::rollout_of(&case) else { continue };
        let captures = captures(&case);
        // A stream beside the rollout adds nothing.
        for order in [vec![0], (0..captures.len()).collect()] {
            let session_set = fold_in(&captures, &order);
            let transcript = main_session(&session_set).transcript();
            let own = transcript
                .turns
                .iter()
                .filter(|turn| !raw.goes_on || turn.origin.at.0[2].is_some());
            let mut usage = unspool_model::session::Usage::default();
            own.for_each(|turn| usage.add(turn.usage()));
            let input = usage.input + usage.cache_read + usage.cache_write;
            let found = (input, usage.output);
            assert_eq!(found, (raw.input_tokens, raw.output_tokens), "{} {order:?}", name(&case));
        }
    }
}
