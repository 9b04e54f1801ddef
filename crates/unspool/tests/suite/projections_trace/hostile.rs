//! Hostile and malformed sessions: trajectories and traces stay valid.

use jiff::Timestamp;
use serde_json::{Value, json};
use unspool_model::json::Json;
use unspool_model::part::{Body, Part, Tool};
use unspool_model::session::{Transcript, Usage};

use super::lookup::{CaseLookup, project};
use super::{atif, difference, expected, otel};
use crate::case::root;

const TEXTS: &[&str] = &[
    "",
    "\n\n",
    "a\n\nb",
    "</script><script>alert(1)</script>",
    "\u{0}\u{1b}[31m\u{7f}\u{202e}\u{2028}",
    "\"}]},{\"kvlistValue\":[",
    "🦀 é\u{301} \u{fffd}",
];

fn lookup(case: &str) -> CaseLookup {
    CaseLookup::of_case(&root().join("fixtures").join(case))
}

fn bodies(transcript: &mut Transcript) -> impl Iterator<Item = &mut Part> {
    transcript.turns.iter_mut().flat_map(|turn| &mut turn.parts)
}

fn tools(transcript: &mut Transcript) -> impl Iterator<Item = &mut Tool> {
    bodies(transcript).filter_map(|part| match &mut part.body {
        Body::Tool(tool) => Some(&mut **tool),
        _ => None,
    })
}

fn both(lookup: &CaseLookup, transcript: &Transcript) -> (Value, Value) {
    let read = |form| serde_json::from_str(&project(form, lookup, transcript)).unwrap();
    let (trajectory, trace) = (read("atif"), read("otel"));
    assert_eq!(atif::problems(&trajectory), [""; 0]);
    assert_eq!(otel::problems(&trace), [""; 0]);
    (trajectory, trace)
}

// Law 8, R-X-06
#[test]
fn hostile_texts_and_ids_stay_texts_and_ids() {
    for (nth, text) in TEXTS.iter().enumerate() {
        let mut lookup = lookup("claude-code/discovery-loop");
        let transcript = &mut lookup.0[0];
        for (at, part) in bodies(transcript).enumerate() {
            let text = TEXTS[(at + nth) % TEXTS.len()];
            match &mut part.body {
                Body::Text(part) => part.text = text.to_owned(),
                Body::Reasoning(part) => part.text = text.to_owned(),
                Body::Tool(tool) => {
                    tool.output = Some(text.to_owned());
                    tool.name = text.to_owned();
                    tool.call_id = format!("{text}{at}");
                }
                _ => {}
            }
        }
        transcript.turns.iter_mut().for_each(|turn| {
            turn.user.iter_mut().for_each(|body| {
                if let Body::Text(own) = body {
                    own.text = (*text).to_owned();
                }
            })
        });
        let transcript = &lookup.0[0];
        let (trajectory, trace) = both(&lookup, transcript);
        let expected = expected(transcript);
        assert_eq!(difference(&expected, &atif::items(&trajectory)), None);
        assert_eq!(difference(&expected, &otel::items(transcript, &trace)), None);
    }
}

// Law 4: inputs may be any JSON; the format requires an object.
#[test]
fn inputs_and_results_of_any_shape_are_kept() {
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let inputs = [
        "null",
        "[1]",
        "\"text\"",
        "18446744073709551615",
        "1e400",
        "{\"a\":\"\\ud83d\"}",
        &deep,
        "{\"a\":{\"b\":[null,true,1.5,-3]}}",
    ];
    for input in inputs {
        let mut lookup = lookup("claude-code/discovery-loop");
        for tool in tools(&mut lookup.0[0]) {
            tool.input = Some(Json::checked(input));
            (tool.output, tool.result) = (None, Some(Json::checked(input)));
        }
        let (trajectory, trace) = both(&lookup, &lookup.0[0]);
        let call = trajectory["steps"].as_array().unwrap().iter();
        let call = call.map(|step| &step["tool_calls"][0]).find(|call| call.is_object()).unwrap();
        let wrapped = call["extra"]["unspool"]["input"] == "wrapped";
        assert_eq!(wrapped, !input.starts_with('{'), "{input:.40}");
        let calls = otel::spans(&trace).len();
        assert!(calls > 5);
    }
}

// Law 8: agents that start each other or themselves.
#[test]
fn circles_of_sub_agents_come_to_an_end() {
    let mut lookup = lookup("claude-code/subagents-nested");
    let ids: Vec<String> =
        lookup.0.iter().map(|one| one.session.agent_session_id.clone()).collect();
    for transcript in &mut lookup.0 {
        for part in bodies(transcript) {
            if let Body::Agent(agents) = &mut part.body {
                let one = agents.agents[0].clone();
                agents.agents = ids
                    .iter()
                    .map(|id| unspool_model::part::Agent { id: id.clone(), ..one.clone() })
                    .collect();
            }
        }
    }
    let (trajectory, trace) = both(&lookup, lookup.main());
    // All of them, each once.
    let text = trajectory.to_string();
    for id in &ids {
        assert_eq!(
            text.matches(&format!("\"schema_version\":\"ATIF-v1.8\",\"session_id\":{}", json!(id)))
                .count(),
            1
        );
    }
    assert!(otel::spans(&trace).len() > 4);
}

// Law 3: cyclic calls, times that run backwards or are out of range, overflowing counts.
#[test]
fn nonsense_around_the_parts_is_survived() {
    let mut lookup = lookup("claude-code/discovery-loop");
    let ids: Vec<String> = tools(&mut lookup.0[0]).map(|tool| tool.call_id.clone()).collect();
    for (at, tool) in tools(&mut lookup.0[0]).enumerate() {
        tool.parent_call_id = Some(ids[(at + 1) % ids.len()].clone());
        (tool.duration_ms, tool.exit_code) = (Some(u64::MAX), Some(i64::MIN));
    }
    let times = [Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH];
    for (at, part) in bodies(&mut lookup.0[0]).enumerate() {
        part.started = Some(times[at % 3]);
        part.ended = Some(times[(at + 1) % 3]);
    }
    for turn in &mut lookup.0[0].turns {
        (turn.started, turn.ended) = (Some(Timestamp::MAX), Some(Timestamp::MIN));
        for step in &mut turn.steps {
            step.usage = Usage { input: u64::MAX, cache_read: u64::MAX, ..step.usage };
        }
    }
    both(&lookup, &lookup.0[0]);
}

// A session without turns still gives a valid trajectory and trace.
#[test]
fn an_empty_session_says_that_it_is_empty() {
    let mut lookup = lookup("claude-code/discovery-loop");
    lookup.0[0].turns.clear();
    let (trajectory, trace) = both(&lookup, &lookup.0[0]);
    assert_eq!(trajectory["steps"][0]["message"], "Nothing is recorded of this session.");
    assert!(otel::spans(&trace).is_empty());
}

// Estimated times are marked as such (R-X-18).
#[test]
fn estimated_times_are_marked() {
    let mut lookup = lookup("claude-code/discovery-loop");
    for turn in &mut lookup.0[0].turns {
        (turn.started, turn.ended) = (None, None);
        for part in &mut turn.parts {
            (part.started, part.ended) = (None, None);
            if let Body::Tool(tool) = &mut part.body {
                tool.duration_ms = None;
            }
        }
    }
    lookup.0[0].session.facts.started = None;
    let (trajectory, trace) = both(&lookup, &lookup.0[0]);
    for step in trajectory["steps"].as_array().unwrap() {
        assert!(step.get("timestamp").is_none());
    }
    for span in otel::spans(&trace) {
        let marks = span["attributes"].as_array().unwrap().iter();
        assert_eq!(marks.filter(|one| one["key"] == "unspool.time.estimated").count(), 1);
    }
}
