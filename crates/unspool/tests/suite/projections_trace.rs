//! ATIF trajectories and OpenTelemetry traces of every recording: valid for a strict reader, and
//! with all parts in order. Harbor and the protocol's definitions validate them too
//! (`scripts/judge-atif`, `scripts/judge-otel`); these tests need no external tools.

pub mod atif;
mod hostile;
pub mod lookup;
pub mod otel;

use std::fmt::Write;

use lookup::{CaseLookup, project};
use serde_json::Value;
use unspool_model::id::digest;
use unspool_model::part::{Body, Tool};
use unspool_model::session::{Session, Transcript};

use crate::by_source::{assert_seen, by_source};
use crate::case::{assert_none, cases, name, root};

/// One part as a format must write it: its kind and its text.
type Item = (String, String);

/// The items of a transcript, in order.
fn expected(transcript: &Transcript) -> Vec<Item> {
    let session = &transcript.session;
    let turns = transcript.turns.iter();
    turns
        .flat_map(|turn| {
            let user = turn.user.iter().map(|body| (format!("user {}", kind(body)), prose(body)));
            let parts = turn.parts.iter().map(|part| match &part.body {
                Body::Tool(tool) => {
                    let own =
                        unspool_model::agent::own_call_id(&session.agent, &tool.call_id).to_owned();
                    let own = Some(own).filter(|id| !id.is_empty());
                    let id = own.unwrap_or_else(|| part.id.to_string());
                    (format!("tool {id}"), output(session, tool).unwrap_or_default())
                }
                body => (kind(body), prose(body)),
            });
            user.chain(parts).collect::<Vec<Item>>()
        })
        .collect()
}

fn kind(body: &Body) -> String {
    body.kind().name().to_owned()
}

/// The text of a part that is written as text.
fn prose(body: &Body) -> String {
    match body {
        Body::Text(part) => part.text.clone(),
        Body::Reasoning(part) => part.text.clone(),
        Body::Interjection(part) => part.text.clone(),
        Body::Compaction(part) => part.summary.clone(),
        Body::ContextInfo(part) => part.text.clone(),
        Body::SkillLoad(part) => part.text.clone(),
        Body::Notice(part) => part.text.clone(),
        Body::Error(part) => part.text.clone(),
        _ => String::new(),
    }
}

/// The output of a tool as the model got it.
fn output(session: &Session, tool: &Tool) -> Option<String> {
    let result = tool.result.as_ref();
    match (result, &tool.output) {
        (Some(result), output) if session.agent == "ai-sdk" || output.is_none() => {
            let text = result.value().as_str().map(str::to_owned);
            Some(text.unwrap_or_else(|| result.text().to_owned()))
        }
        (_, output) => output.clone(),
    }
}

/// Sorts the keys of a result that is a JSON object.
fn sorted((kind, text): Item) -> Item {
    let value = serde_json::from_str(&text).ok().filter(Value::is_object);
    (kind, value.map_or(text, |value: Value| value.to_string()))
}

/// The first difference.
fn difference(expected: &[Item], found: &[Item]) -> Option<String> {
    let at = expected.iter().zip(found).position(|(one, other)| one != other);
    let at = at.or((expected.len() != found.len()).then(|| expected.len().min(found.len())))?;
    Some(format!("part {at}: {:?} became {:?}", expected.get(at), found.get(at)))
}

/// Runs a check over every session of every case of a source.
fn every_session(source: &str, check: impl Fn(&CaseLookup, &Transcript) -> Vec<String>) {
    let (mut wrong, mut sessions, mut parts) = (Vec::new(), 0, 0);
    for case in cases(source) {
        let lookup = CaseLookup::of_case(&case);
        for transcript in &lookup.0 {
            let found = check(&lookup, transcript);
            let id = &transcript.session.agent_session_id;
            wrong.extend(
                found.into_iter().take(3).map(|one| format!("{} {id}: {one}", name(&case))),
            );
            sessions += 1;
            parts += transcript.turns.iter().map(|turn| turn.parts.len()).sum::<usize>();
        }
    }
    assert_seen(source, sessions, [50, 8, 4, 95, 9, 45, 6, 22, 9, 15, 8, 6, 36, 15, 12, 7, 2]);
    assert_seen(
        source,
        parts,
        [220, 20, 20, 620, 24, 340, 16, 130, 24, 80, 20, 16, 290, 38, 30, 30, 25],
    );
    assert_none(wrong);
}

// Law 1
by_source!(trajectories_are_well_formed_and_have_every_part_in_order);

fn trajectories_are_well_formed_and_have_every_part_in_order(source: &str) {
    every_session(source, |lookup, transcript| {
        let text = project("atif", lookup, transcript);
        let value: Value = serde_json::from_str(&text).unwrap();
        let mut wrong = atif::problems(&value);
        wrong.extend(difference(&expected(transcript), &atif::items(&value)));
        wrong.extend(atif::sums(transcript, &value));
        wrong
    });
}

// Law 1
by_source!(traces_are_well_formed_and_have_every_part_in_order);

fn traces_are_well_formed_and_have_every_part_in_order(source: &str) {
    every_session(source, |lookup, transcript| {
        let text = project("otel", lookup, transcript);
        let value: Value = serde_json::from_str(&text).unwrap();
        let mut wrong = otel::problems(&value);
        // OTLP values are structured: the order of keys is lost.
        let expected: Vec<Item> = expected(transcript).into_iter().map(sorted).collect();
        let found: Vec<Item> = otel::items(transcript, &value).into_iter().map(sorted).collect();
        wrong.extend(difference(&expected, &found));
        wrong.extend(otel::sums(transcript, &value));
        wrong
    });
}

// R-X-04: a sub-agent's work is nested below the call that started it, and nowhere else.
#[test]
fn sub_agents_stand_below_their_calls() {
    let lookup = CaseLookup::of_case(&root().join("fixtures/claude-code/subagents-nested"));
    let main = lookup.main();
    let trajectory: Value = serde_json::from_str(&project("atif", &lookup, main)).unwrap();
    let inside = &trajectory["subagent_trajectories"][0];
    let deeper = &inside["subagent_trajectories"][0];
    assert!(inside["trajectory_id"].is_string() && deeper["trajectory_id"].is_string());
    assert!(deeper["subagent_trajectories"].is_null());

    let trace: Value = serde_json::from_str(&project("otel", &lookup, main)).unwrap();
    let spans = otel::spans(&trace);
    let deepest = spans.iter().map(|span| otel::path(&spans, span)).max_by_key(Vec::len).unwrap();
    let operations: Vec<&str> =
        deepest.iter().map(|name| name.split(' ').next().unwrap()).collect();
    let turn_and_tool = ["invoke_agent", "execute_tool"];
    assert_eq!(operations[..4], [turn_and_tool, turn_and_tool].concat());
    assert_eq!(operations[4], "invoke_agent");
}

/// Readable JSON: one line per field, long texts cut, with a digest of the whole.
fn lines(out: &mut String, indent: usize, key: &str, value: &Value) {
    let pad = "  ".repeat(indent);
    let written = value.to_string();
    match value {
        Value::Object(fields) if written.len() > 100 => {
            writeln!(out, "{pad}{key}").unwrap();
            fields.iter().for_each(|(key, value)| lines(out, indent + 1, key, value));
        }
        Value::Array(values) if written.len() > 100 => {
            writeln!(out, "{pad}{key}").unwrap();
            values.iter().for_each(|value| lines(out, indent + 1, "-", value));
        }
        _ if written.chars().count() > 220 => {
            let start: String = written.chars().take(220).collect();
            let all = digest(written.as_bytes());
            writeln!(out, "{pad}{key} {start}… {} bytes {all:016x}", written.len()).unwrap();
        }
        _ => writeln!(out, "{pad}{key} {written}").unwrap(),
    }
}
