//! What the fixtures of `atif` do not show: documents that grow, several of them in one file, fields
//! in another order, and texts that someone changed in one of our exports.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use unspool_model::document::settle_as_file;
use unspool_model::part::{Body, ToolState};
use unspool_model::session::{Transcript, TurnState, Usage};

use crate::in_memory::SessionSet;
use crate::read::document::DocumentLines;

const HEAD: &str = r#""schema_version":"ATIF-v1.8","session_id":"s-1","agent":{"name":"a","version":"1","model_name":"m"}"#;
const PROMPT: &str = r#"{"step_id":1,"source":"user","message":"Do it"}"#;
const CALL: &str = r#"{"step_id":2,"source":"agent","message":"Yes","tool_calls":[{"tool_call_id":"c","function_name":"run","arguments":{"n":1}}],"observation":{"results":[{"source_call_id":"c","content":"ok"}]},"metrics":{"prompt_tokens":10,"completion_tokens":2,"cached_tokens":4}}"#;
const SECOND_CALL: &str = r#"{"step_id":3,"source":"agent","message":"","tool_calls":[{"tool_call_id":"c","function_name":"run","arguments":{"n":2}}],"observation":{"results":[{"source_call_id":"c","content":"two"}]}}"#;
const TOTALS: &str = r#""final_metrics":{"total_prompt_tokens":100,"total_completion_tokens":20,"total_cached_tokens":40,"total_cost_usd":0.5}"#;

fn document(steps: &[&str], rest: &str) -> String {
    format!(r#"{{{HEAD},"steps":[{}],{rest}}}"#, steps.join(","))
}

fn read_into(session_set: &mut SessionSet, text: &str) {
    session_set
        .read(Path::new("t.json"), DocumentLines::new(text.as_bytes()), &mut |_| {})
        .unwrap();
}

fn read(text: &str) -> SessionSet {
    let mut session_set = SessionSet::default();
    read_into(&mut session_set, text);
    session_set
}

fn only(session_set: &SessionSet) -> Transcript {
    let [session] = &session_set.sessions[..] else { panic!("{}", session_set.sessions.len()) };
    assert_eq!(session.record_counts.unreadable, 0);
    let mut transcript = session.transcript();
    settle_as_file(&mut transcript);
    transcript
}

fn warnings(session_set: &SessionSet) -> String {
    let all = session_set.sessions.iter().flat_map(|session| &session.warnings);
    all.map(|warning| format!("{}: {}\n", warning.line, warning.what)).collect()
}

/// The parts of all turns, in short.
fn parts(transcript: &Transcript) -> Vec<String> {
    let parts = transcript.turns.iter().flat_map(|turn| &turn.parts);
    let short = |body: &Body| match body {
        Body::Text(text) => text.text.clone(),
        Body::Reasoning(reasoning) => format!("({})", reasoning.text),
        Body::Tool(tool) => format!("{}={}", tool.name, tool.output.as_deref().unwrap_or("-")),
        Body::ContextInfo(info) => format!("{}: {}", info.title, info.text),
        Body::Data(data) => format!("[{}]", data.kind),
        Body::Agent(_)
        | Body::Interjection(_)
        | Body::TaskList(_)
        | Body::SkillLoad(_)
        | Body::McpSnapshot(_)
        | Body::Compaction(_)
        | Body::File(_)
        | Body::Source(_)
        | Body::Patch(_)
        | Body::Notice(_)
        | Body::Error(_) => body.kind().name().to_owned(),
    };
    parts.map(|part| short(&part.body)).collect()
}

fn usage(transcript: &Transcript) -> Usage {
    let mut usage = Usage::default();
    transcript.turns.iter().for_each(|turn| usage.add(turn.usage()));
    usage
}

#[test]
fn call_ids_that_repeat_are_of_different_calls() {
    let session_set = read(&document(&[PROMPT, CALL, SECOND_CALL], r#""notes":null"#));
    let transcript = only(&session_set);
    assert_eq!(parts(&transcript), ["Yes", "run=ok", "run=two"]);
    assert_eq!(warnings(&session_set), "");
    let tools: Vec<_> = transcript.turns[0].parts.iter().filter_map(|p| p.body.tool()).collect();
    assert!(tools.iter().all(|tool| tool.state == ToolState::Completed));
    assert!(tools.iter().all(|tool| tool.call_id.ends_with("/c")));
}

#[test]
fn totals_count_only_if_no_step_has_tokens() {
    let with_steps = only(&read(&document(&[PROMPT, CALL, SECOND_CALL], TOTALS)));
    let of_step = Usage { input: 6, output: 2, cache_read: 4, ..Usage::default() };
    assert_eq!(usage(&with_steps), of_step);
    let without = only(&read(&document(&[PROMPT, SECOND_CALL], TOTALS)));
    let total = Usage { input: 60, output: 20, cache_read: 40, ..Usage::default() };
    assert_eq!(usage(&without), total);
    assert_eq!(without.spending().reported_usd(), Some(0.5));
    // The totals may stand before the steps, and the version after them.
    let other_order = format!(r#"{{{TOTALS},"steps":[{PROMPT},{SECOND_CALL}],{HEAD}}}"#);
    assert_eq!(usage(&only(&read(&other_order))), total);
}

#[test]
fn a_document_that_grows_is_one_session() {
    let mut session_set = SessionSet::default();
    let small = r#""final_metrics":{"total_prompt_tokens":50,"total_completion_tokens":5}"#;
    read_into(&mut session_set, &document(&[PROMPT], r#""notes":null"#));
    read_into(&mut session_set, &document(&[PROMPT, SECOND_CALL], small));
    read_into(&mut session_set, &document(&[PROMPT, SECOND_CALL, SECOND_CALL], TOTALS));
    let grown = only(&session_set);
    let whole = only(&read(&document(&[PROMPT, SECOND_CALL, SECOND_CALL], TOTALS)));
    assert_eq!(parts(&grown), parts(&whole));
    assert_eq!(parts(&grown), ["run=two", "run=two"]);
    assert_eq!(usage(&grown).output, 20);
}

#[test]
fn a_file_of_lines_has_a_session_on_each() {
    let first = document(&[PROMPT, CALL], r#""notes":null"#);
    let second = first.replace("s-1", "s-2");
    let nameless = first.replace(r#""session_id":"s-1","#, "");
    let lines = format!("{first}\n{second}\n{nameless}\n");
    let mut session_set = SessionSet::default();
    session_set.read(Path::new("t.jsonl"), lines.as_bytes(), &mut |_| {}).unwrap();
    assert_eq!(session_set.sessions.len(), 3);
    for session in &session_set.sessions {
        assert_eq!(parts(&session.transcript()), ["Yes", "run=ok"]);
    }
}

#[test]
fn a_document_without_an_id_is_named_by_its_first_step() {
    let id = |text: &str| read(text).sessions[0].agent_session_id.clone();
    let nameless = |prompt: &str| {
        let steps = document(&[prompt, CALL], r#""notes":null"#);
        steps.replace(r#""session_id":"s-1","#, "")
    };
    let other = PROMPT.replace("Do it", "Do that");
    assert!(id(&nameless(PROMPT)).starts_with("run-"));
    assert_ne!(id(&nameless(PROMPT)), id(&nameless(&other)));
    let placeholder = document(&[PROMPT, CALL], r#""notes":null"#).replace("s-1", "unknown");
    assert_eq!(id(&placeholder), id(&nameless(PROMPT)));
    assert_eq!(id(&document(&[PROMPT], r#""notes":null"#)), "s-1");
}

#[test]
fn what_the_schema_does_not_allow_is_kept_and_reported() {
    let odd = [
        r#"{"source":"robot","message":"Who?"}"#,
        r#"{"step_id":3,"source":"agent","message":"Hm","mood":1,"observation":{"results":[{"source_call_id":"x","content":"of nobody"},{"content":"seen"}]}}"#,
    ];
    let session_set = read(&document(&[PROMPT, odd[0], odd[1]], r#""notes":null"#));
    let parts = parts(&only(&session_set));
    assert_eq!(parts[..2], ["[robot]", "Hm"]);
    assert!(parts.contains(&"Observation: seen".to_owned()), "{parts:?}");
    assert!(parts.iter().any(|part| part.ends_with("=of nobody")), "{parts:?}");
    let told = warnings(&session_set);
    for place in [
        "steps[1].step_id: missing",
        "steps[1].source: neither",
        "steps[2].mood: not a field",
        "steps[2].observation.results[0].source_call_id: matches no tool call",
    ] {
        assert!(told.contains(place), "{place} in {told}");
    }
}

#[test]
fn a_result_of_several_calls_ends_them_and_a_missing_one_interrupts_nothing() {
    let calls = r#""tool_calls":[{"tool_call_id":"a","function_name":"run","arguments":{}},{"tool_call_id":"b","function_name":"run","arguments":{}}]"#;
    let shared = format!(
        r#"{{"step_id":2,"source":"agent","message":{{"odd":1}},{calls},"observation":{{"results":[{{"content":"both"}}]}}}}"#
    );
    let missing = format!(r#"{{"step_id":4,"source":"agent","message":"Go",{calls}}}"#);
    let steps = [PROMPT, &shared, PROMPT, &missing, PROMPT];
    let transcript = only(&read(&document(&steps, r#""notes":null"#)));
    let states: Vec<TurnState> = transcript.turns.iter().map(|turn| turn.state).collect();
    assert_eq!(states, [TurnState::Completed, TurnState::Unknown, TurnState::Unknown]);
    let parts = parts(&transcript);
    assert_eq!(parts[..4], [r#"{"odd":1}"#, "run=-", "run=-", "Observation: both"]);
    assert_eq!(parts.len(), 7, "{parts:?}");
}

/// A step of our own export: text, call, reasoning, text.
const OWN_STEP: &str = r#"{"step_id":2,"source":"agent","message":"Öne\n\ntwo","reasoning_content":"hm","tool_calls":[{"tool_call_id":"c","function_name":"run","arguments":{"input":7},"extra":{"unspool":{"state":"failed","input":"wrapped","exit_code":1}}}],"observation":{"results":[{"source_call_id":"c","content":"bad"}]},"llm_call_count":1,"extra":{"unspool":{"turn":1,"parts":[{"kind":"text","chars":3},{"kind":"tool","call_id":"c"},{"kind":"reasoning","chars":2,"signature":"s"},{"kind":"text","chars":3}]}}}"#;
const OWN_PROMPT: &str = r#"{"step_id":1,"source":"user","message":"Do it","extra":{"unspool":{"turn":1,"trigger":"user","turn_state":"completed","prompt":true,"parts":[{"kind":"text","chars":5}]}}}"#;

#[test]
fn our_own_exports_keep_the_order_within_a_step() {
    let transcript = only(&read(&document(&[OWN_PROMPT, OWN_STEP], r#""notes":null"#)));
    assert_eq!(parts(&transcript), ["Öne", "run=bad", "(hm)", "two"]);
    let tool = transcript.turns[0].parts[1].body.tool().unwrap();
    let input = tool.input.as_ref().map(|input| input.text().to_owned());
    assert_eq!(
        (tool.state, tool.exit_code, input.as_deref()),
        (ToolState::Failed, Some(1), Some("7"))
    );
    // Somebody changed the text: its lengths say nothing.
    let changed = OWN_STEP.replace("two\"", "two, really\"");
    let transcript = only(&read(&document(&[OWN_PROMPT, &changed], r#""notes":null"#)));
    assert_eq!(parts(&transcript), ["(hm)", "Öne\n\ntwo, really", "run=bad"]);
}

#[test]
fn trajectories_inside_a_document_are_sessions_of_sub_agents() {
    let inner = r#"{"schema_version":"ATIF-v1.8","trajectory_id":"b","agent":{"name":"inner","version":"1"},"steps":[{"step_id":1,"source":"user","message":"Deep"}]}"#;
    let outer = format!(
        r#"{{"schema_version":"ATIF-v1.8","session_id":"s-1","trajectory_id":"a","agent":{{"name":"outer","version":"1"}},"steps":[{{"step_id":1,"source":"user","message":"Task"}},{CALL}],"subagent_trajectories":[{inner},{inner}]}}"#
    );
    let reference =
        CALL.replace(r#""content":"ok""#, r#""subagent_trajectory_ref":[{"trajectory_id":"a"}]"#);
    let rest = format!(r#""subagent_trajectories":[{outer}]"#);
    let session_set = read(&document(&[PROMPT, &reference], &rest));
    let ids: Vec<&str> =
        session_set.sessions.iter().map(|session| &*session.agent_session_id).collect();
    assert_eq!(ids, ["s-1", "s-1/a", "s-1/a/b", "s-1/a/#1"]);
    let transcripts: Vec<Transcript> =
        session_set.sessions.iter().map(|session| session.transcript()).collect();
    assert_eq!(transcripts[0].agent_ids().collect::<Vec<_>>(), ["s-1/a"]);
    let parent = transcripts[1].session.parent.clone().unwrap();
    assert_eq!(parent.session, transcripts[0].session.id);
    assert_eq!(parent.call_id.as_deref(), Some("2.0/c"));
    assert_eq!(parts(&transcripts[1]), ["Yes", "run=ok"]);
}
