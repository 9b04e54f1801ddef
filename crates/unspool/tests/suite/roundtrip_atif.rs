//! A session that is exported as an ATIF trajectory and read again has the same turns: what the user
//! said, every text, call, input and result, and the tokens, in the same order. The format has no
//! place for some of it, which is then in `extra.unspool`.

use std::collections::HashSet;

use serde_json::Value;
use unspool_export::project::{Options, Projection};
use unspool_model::agent::own_call_id;
use unspool_model::json::{Json, replace_lone_surrogates};
use unspool_model::part::{Agent, Body, Part, Tool};
use unspool_model::session::{Transcript, Turn, Usage};

use crate::by_source::{assert_seen, by_source};
use crate::case::{assert_none, cases, name};
use crate::projections::projected;
use crate::roundtrip::returned;
use crate::thoughtflow::transcripts;

by_source!(trajectories_round_trip);

fn trajectories_round_trip(source: &str) {
    let form = Projection::named("atif").unwrap();
    let mut wrong = Vec::new();
    let mut seen = 0;
    for case in cases(source) {
        for transcript in transcripts(&case) {
            let back = returned(&projected(form, &transcript, &Options::default()), "run.json");
            // A trajectory has an id for each call: a call without one gets the id of its part.
            let made_up: HashSet<String> =
                parts(&transcript).map(|part| part.id.to_string()).collect();
            let (expected, found) = (lines(&transcript, &made_up), lines(&back, &made_up));
            seen += expected.len();
            if expected != found {
                let unlike = expected.iter().zip(&found).position(|(one, other)| one != other);
                let at = unlike.unwrap_or(expected.len().min(found.len()));
                let what = format!("{:?} → {:?}", expected.get(at), found.get(at));
                wrong.push(format!("{} line {at}: {what}", name(&case)));
            }
        }
    }
    assert_seen(
        source,
        seen,
        [200, 15, 20, 500, 15, 250, 10, 100, 15, 60, 15, 10, 200, 20, 15, 20, 8],
    );
    assert_none(wrong);
}

/// The content of a session, one line for each turn and each part.
fn lines(transcript: &Transcript, made_up: &HashSet<String>) -> Vec<String> {
    // An export of a session without content is a session without turns.
    let turns = transcript.turns.iter().filter(|turn| has_content(turn));
    let lines = turns.flat_map(|turn| {
        let usage = Usage { cache_write_1h: 0, ..turn.usage() };
        let head = format!("{:?} {:?} {usage:?}", turn.trigger, turn.state);
        let user = turn.user.iter().map(|body| format!("user {}", line(transcript, body, made_up)));
        let parts = turn.parts.iter().map(|part| line(transcript, &part.body, made_up));
        std::iter::once(head).chain(user).chain(parts).collect::<Vec<_>>()
    });
    lines.collect()
}

fn parts(transcript: &Transcript) -> impl Iterator<Item = &Part> {
    transcript.turns.iter().flat_map(|turn| &turn.parts)
}

fn has_content(turn: &Turn) -> bool {
    !turn.user.is_empty() || !turn.parts.is_empty() || turn.usage() != Usage::default()
}

fn line(transcript: &Transcript, body: &Body, made_up: &HashSet<String>) -> String {
    let kind = body.kind().name();
    let content = match body {
        Body::Text(text) => text.text.clone(),
        Body::Reasoning(reasoning) => {
            format!("{:?} {} {}", reasoning.signature, reasoning.redacted, reasoning.text)
        }
        Body::Tool(tool) => call(transcript, tool, made_up),
        Body::Agent(agents) => {
            let one = |agent: &Agent| format!("{} {} {:?}", agent.name, agent.task, agent.state);
            agents.agents.iter().map(one).collect::<Vec<_>>().join(", ")
        }
        Body::Interjection(said) => said.text.clone(),
        Body::SkillLoad(skill) => format!("{} {}", skill.name, skill.text),
        Body::Patch(patch) => format!("{:?} {}", patch.path, patch.diff),
        Body::Data(data) => format!("{} {}", data.kind, data.payload.value()),
        Body::TaskList(_)
        | Body::McpSnapshot(_)
        | Body::ContextInfo(_)
        | Body::Compaction(_)
        | Body::File(_)
        | Body::Source(_)
        | Body::Notice(_)
        | Body::Error(_) => format!("{body:?}"),
    };
    format!("{kind} {content}")
}

fn call(transcript: &Transcript, tool: &Tool, made_up: &HashSet<String>) -> String {
    let id = own_call_id(&transcript.session.agent, &tool.call_id);
    let id = Some(id).filter(|id| !made_up.contains(*id)).unwrap_or_default();
    let input = match &tool.input {
        Some(input) => Some(input.value()),
        None if tool.input_text.is_empty() => None,
        None => Some(Value::String(tool.input_text.clone())),
    };
    let (state, exit_code) = (tool.state, tool.exit_code);
    let output = output(transcript, tool);
    format!("{} {id:?} {state:?} {exit_code:?} {input:?} → {output}", tool.name)
}

/// What the model read of a result. A completed call without an output has an empty one in a
/// trajectory.
fn output(transcript: &Transcript, tool: &Tool) -> String {
    let reads_result = transcript.session.agent == "ai-sdk";
    let result = tool.result.as_ref().filter(|_| reads_result || tool.output.is_none());
    let text = |result: &Json| match result.value() {
        Value::String(text) => text,
        _ => replace_lone_surrogates(result.text()).into_owned(),
    };
    result.map(text).or_else(|| tool.output.clone()).unwrap_or_default()
}
