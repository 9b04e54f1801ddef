//! The model history (`export --to history`) of every fixture.

use serde_json::Value;
use unspool_export::project::{Options, Projection};
use unspool_model::part::Body;
use unspool_model::session::Transcript;

use crate::case::{all_cases, name};
use crate::projections::projected;
use crate::projections_trace::lookup::CaseLookup;

fn history(transcript: &Transcript) -> Vec<Value> {
    let projection = Projection::named("history").unwrap();
    serde_json::from_str(&projected(projection, transcript, &Options::default())).unwrap()
}

fn ids<'a>(message: &'a Value, kind: &str) -> Vec<&'a str> {
    let content = message["content"].as_array().unwrap().iter();
    let of_kind = content.filter(|one| one["type"] == kind);
    of_kind.map(|one| one["toolCallId"].as_str().unwrap()).collect()
}

// R-000-20: each call is directly followed by its result, and each result follows its call.
#[test]
fn calls_and_results_are_coupled_in_the_model_history() {
    let mut coupled = 0;
    for case in all_cases() {
        for transcript in &CaseLookup::of_case(&case).0 {
            let history = history(transcript);
            for (nth, message) in history.iter().enumerate() {
                let role = message["role"].as_str().unwrap();
                assert!(!message["content"].as_array().unwrap().is_empty(), "{}", name(&case));
                let (calls, results) = (ids(message, "tool-call"), ids(message, "tool-result"));
                assert!(calls.is_empty() || role == "assistant", "{}", name(&case));
                assert!(results.is_empty() == (role != "tool"), "{}", name(&case));
                if !calls.is_empty() {
                    assert_eq!(ids(&history[nth + 1], "tool-result"), calls, "{}", name(&case));
                    coupled += calls.len();
                }
                if !results.is_empty() {
                    assert_eq!(ids(&history[nth - 1], "tool-call"), results, "{}", name(&case));
                }
            }
        }
    }
    assert!(coupled > 500, "{coupled}");
}

// R-003-47: a compaction with a summary replaces everything before it; a rewound turn is not in the history.
#[test]
fn the_model_history_starts_at_the_last_compaction() {
    let (mut compacted, mut rewound) = (0, 0);
    for case in all_cases() {
        for transcript in &CaseLookup::of_case(&case).0 {
            let turns = || transcript.turns.iter().filter(|turn| !turn.abandoned);
            let bodies = turns()
                .flat_map(|turn| turn.user.iter().chain(turn.parts.iter().map(|part| &part.body)));
            let summaries = bodies.filter_map(|body| {
                if let Body::Compaction(compaction) = body {
                    Some(&compaction.summary)
                } else {
                    None
                }
            });
            let history = history(transcript);
            if let Some(summary) = summaries.rev().find(|summary| !summary.is_empty()) {
                let first = history[0]["content"][0]["text"].as_str().unwrap();
                assert_eq!(first, summary, "{}", name(&case));
                compacted += 1;
            }
            let written = serde_json::to_string(&history).unwrap();
            for turn in transcript.turns.iter().filter(|turn| turn.abandoned) {
                for part in &turn.parts {
                    if let Body::Tool(tool) = &part.body
                        && !tool.call_id.is_empty()
                    {
                        let agent = &transcript.session.agent;
                        let id = unspool_model::agent::own_call_id(agent, &tool.call_id);
                        assert!(!written.contains(id), "{}", name(&case));
                        rewound += 1;
                    }
                }
            }
        }
    }
    assert!(compacted > 3, "{compacted}");
    assert!(rewound > 0, "{rewound}");
}
