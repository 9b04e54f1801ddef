//! ThoughtFlow documents: every part of a recording is in its run exactly once and in order, and
//! the documents keep to their format.

use std::path::Path;

use serde_json::Value;
use unspool_export::project::thoughtflow::{Conversation, Document, FlowStep, Label};
use unspool_export::project::{Options, Projection, SessionStream, WriteMethod};
use unspool_model::document::settle_as_file;
use unspool_model::json::replace_lone_surrogates;
use unspool_model::part::{Body, Tool};
use unspool_model::session::{Transcript, Turn};
use unspool_redact::Redactor;

use crate::case::{all_cases, assert_none, captures, case_sessions, fold_in, root};
use crate::harness::Machine;
use crate::test_server::Server;

pub fn export(name: &str, transcript: &Transcript) -> String {
    let projection = Projection::named(name).unwrap();
    let WriteMethod::Projected(tell) = projection.method else { panic!("{name} is told") };
    let mut out = Vec::new();
    let unchanged = Redactor::off().release_transcript(transcript.clone());
    tell(SessionStream::of(&unchanged), &Options::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The sessions of a case.
pub fn transcripts(case: &Path) -> Vec<Transcript> {
    let captures = captures(case);
    let session_set = fold_in(&captures, &(0..captures.len()).collect::<Vec<_>>());
    let found = case_sessions(&session_set).map(|session| {
        let mut transcript = session.transcript();
        settle_as_file(&mut transcript);
        transcript
    });
    found.collect()
}

/// A text with its kind.
type LabelledText = (&'static str, String);

fn of_tool(agent: &str, tool: &Tool) -> Vec<LabelledText> {
    let raw = |json: &unspool_model::json::Json| replace_lone_surrogates(json.text()).into_owned();
    let mut pieces =
        vec![("call", unspool_model::agent::own_call_id(agent, &tool.call_id).to_owned())];
    pieces.extend(tool.input.as_ref().map(|input| ("input", raw(input))));
    pieces.extend(tool.output.clone().map(|output| ("output", output)));
    let result = tool.result.as_ref().map(raw);
    let repeated = tool.output.as_ref().map(|output| serde_json::to_string(output).unwrap());
    pieces.extend(
        result.filter(|result| Some(result) != repeated.as_ref()).map(|raw| ("result", raw)),
    );
    pieces
}

/// The texts of a turn's parts, in order.
fn in_parts(agent: &str, turn: &Turn) -> Vec<LabelledText> {
    let mut pieces = Vec::new();
    for body in turn.user.iter().chain(turn.parts.iter().map(|part| &part.body)) {
        match body {
            Body::Tool(tool) => pieces.extend(of_tool(agent, tool)),
            Body::Text(text) => pieces.push(("text", text.text.clone())),
            Body::Reasoning(reasoning) => pieces.push(("reasoning", reasoning.text.clone())),
            Body::Interjection(said) => pieces.push(("interjection", said.text.clone())),
            Body::Notice(notice) => pieces.push(("notice", notice.text.clone())),
            Body::Error(failure) => pieces.push(("error", failure.text.clone())),
            Body::Compaction(compaction) => pieces.push(("compaction", compaction.summary.clone())),
            Body::Data(data) => pieces.push(("data", data.kind.clone())),
            other => pieces.push((other.kind().name(), String::new())),
        }
    }
    pieces
}

/// The texts of a run's steps, in order, from the JSON payloads alone.
fn in_steps(run: &Conversation) -> Vec<LabelledText> {
    let mut pieces = Vec::new();
    for step in &run.steps {
        let (started, completed) =
            (fields(step.payload_started.as_ref()), fields(step.payload_completed.as_ref()));
        let text = |fields: &Fields, name: &str| {
            fields
                .get(name)
                .and_then(|raw| serde_json::from_str::<String>(raw).ok())
                .unwrap_or_default()
        };
        match Label::of_name(&step.label) {
            Label::UserMessage => {
                let later = text(&started, "kind") == "interjection";
                let kind = if later { "interjection" } else { "text" };
                pieces.push((kind, text(&started, "text")));
            }
            Label::AssistantMessage => pieces.push(("text", text(&completed, "text"))),
            Label::ToolCall => {
                pieces.push(("call", text(&started, "call_id")));
                pieces.extend(started.get("arguments").map(|raw| ("input", raw.clone())));
            }
            Label::ToolOutput | Label::ToolError => {
                if completed.contains_key("output") {
                    pieces.push(("output", text(&completed, "output")));
                }
                pieces.extend(completed.get("result").map(|raw| ("result", raw.clone())));
            }
            Label::Generic => {
                let payload = if completed.is_empty() { &started } else { &completed };
                let kind = text(payload, "kind");
                if kind == "trigger" {
                    continue;
                }
                let kind = unspool_model::part::Kind::of_name(&kind).unwrap().name();
                let field = match kind {
                    "compaction" => "summary",
                    "data" => "data_kind",
                    "reasoning" | "interjection" | "notice" | "error" => "text",
                    _ => "",
                };
                pieces.push((kind, text(payload, field)));
            }
            Label::AssistantCall
            | Label::PolicySnapshot
            | Label::ToolSchemasSnapshot
            | Label::ContextPreamble
            | Label::ChannelPreamble
            | Label::PromptAdaptations => {}
        }
    }
    pieces
}

type Fields = std::collections::BTreeMap<String, String>;

fn fields(payload: Option<&unspool_model::json::Json>) -> Fields {
    let Some(payload) = payload else { return Fields::new() };
    let raw: std::collections::BTreeMap<String, Box<serde_json::value::RawValue>> =
        serde_json::from_str(payload.text()).unwrap();
    raw.into_iter().map(|(name, value)| (name, value.get().to_owned())).collect()
}

/// Drops the part that holds the owner of an imported document: the export repeats it in the model
/// calls. Keeps it if it has other fields.
pub fn without_kept(transcript: &Transcript) -> Vec<Turn> {
    let mut turns = transcript.turns.clone();
    for turn in &mut turns {
        turn.parts.retain(|part| {
            let Body::Data(data) = &part.body else { return true };
            let fields = data.payload.value().as_object().map_or(0, serde_json::Map::len);
            data.kind != "thoughtflow-session" || fields > 1
        });
    }
    turns.retain(|turn| !turn.is_blank());
    turns
}

// Laws 1 and 4 for this projection. Where the clocks of several feeds disagree, the order
// of parts takes precedence over R-002-08.
#[test]
fn every_part_stands_in_its_run_once_and_in_order() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for case in all_cases() {
        for transcript in transcripts(&case) {
            let read: Document = serde_json::from_str(&export("thoughtflow", &transcript)).unwrap();
            let turns = without_kept(&transcript);
            assert_eq!(read.conversations.len(), turns.len());
            for (turn, run) in turns.iter().zip(&read.conversations) {
                let (expected, found) = (in_parts(&transcript.session.agent, turn), in_steps(run));
                seen += expected.len();
                if expected != found {
                    wrong.push(format!(
                        "{} turn {}:\n  {expected:?}\n  {found:?}",
                        case.display(),
                        turn.number
                    ));
                }
            }
        }
    }
    assert!(seen > 2000, "{seen}");
    assert_none(wrong);
}

/// The rules of every document (R-002-01 to R-002-09). It has no catalog of adaptations (R-002-40);
/// a turn is a run, and an entry of `conversations` (C-14).
#[test]
fn documents_keep_to_their_form() {
    let top = ["conversations", "ended_at", "session_id", "started_at"];
    let run_keys =
        ["channel", "conversation_id", "duration_ms", "ended_at", "started_at", "status", "steps"];
    // R-002-05
    let step_keys = [
        "depends_on",
        "duration_ms",
        "ended_at",
        "label",
        "payload_completed",
        "payload_started",
        "started_at",
        "step_id",
    ];
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    for case in all_cases() {
        for transcript in transcripts(&case) {
            let text = export("thoughtflow", &transcript);
            assert_eq!(text, export("thoughtflow", &transcript), "the same each time");
            let value: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(keys(&value), top);
            for run in value["conversations"].as_array().unwrap() {
                let without: Vec<_> = keys(run);
                let all = run_keys.iter().filter(|key| {
                    **key != "duration_ms"
                        || run["started_at"].is_string() && run["ended_at"].is_string()
                });
                assert!(all.eq(without.iter()), "{without:?}");
                for step in run["steps"].as_array().unwrap() {
                    assert!(keys(step).iter().all(|key| step_keys.contains(&key.as_str())));
                    assert!(step["step_id"].is_string() && step["label"].is_string());
                }
            }
            let read: Document = serde_json::from_str(&text).unwrap();
            for run in &read.conversations {
                check_run(&case, run);
            }
        }
    }
}

fn check_run(case: &Path, run: &Conversation) {
    let case = case.display();
    assert_eq!(run.unknown_steps(), [], "{case}");
    let mut ids: Vec<&str> = run.steps.iter().map(|step| step.step_id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), run.steps.len(), "{case}: ids of steps are their own");
    let label = |id: &str| {
        let found = run.steps.iter().find(|step| step.step_id == id).unwrap();
        Label::of_name(&found.label)
    };
    // R-002-01: the prompt or another trigger comes first. Some recordings lack it.
    let begins = |step: &FlowStep| {
        let payload = step.payload_started.as_ref().map(|payload| payload.value());
        step.step_id.contains("-user-")
            || payload.is_some_and(|payload| payload["kind"] == "trigger")
    };
    let begun = run.steps.iter().any(begins);
    assert!(!begun || begins(&run.steps[0]), "{case}: {:?}", run.steps);
    for (at, step) in run.steps.iter().enumerate() {
        let FlowStep { depends_on, step_id, .. } = step;
        let foreign = Label::of_name(&step.label).name() != step.label;
        assert!(!foreign || case.to_string().contains("/thoughtflow/"), "{case}: {}", step.label);
        for on in &depends_on.0 {
            let there = run.steps.iter().position(|step| step.step_id == *on).unwrap();
            assert!(there < at, "{case}: {step_id} depends on what comes after it");
        }
        let on: Vec<Label> = depends_on.0.iter().map(|id| label(id)).collect();
        match Label::of_name(&step.label) {
            Label::ToolOutput | Label::ToolError => assert_eq!(on, [Label::ToolCall], "{case}"),
            Label::AssistantCall => {
                // R-002-14
                // Interjections precede only the calls after them.
                let prompt_step =
                    run.steps[..at].iter().filter(|step| step.label == "user_message");
                let prompt_step = prompt_step.filter(|step| {
                    !step
                        .payload_started
                        .as_ref()
                        .is_some_and(|found| found.value()["kind"] == "interjection")
                });
                for prompt_step in prompt_step {
                    assert!(depends_on.0.contains(&prompt_step.step_id), "{case}: {step_id}");
                }
            }
            _ => assert!(
                at == 0 || !on.is_empty() || step.payload_started.is_some(),
                "{case}: {step_id}"
            ),
        }
        if let (Some(started), Some(ended)) = (&step.started_at, &step.ended_at) {
            let at = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_millisecond();
            let took = u64::try_from(at(ended) - at(started)).unwrap_or(0);
            assert_eq!(step.duration_ms, Some(took), "{case}: {step_id}");
        }
    }
}

// R-002-29
#[test]
fn the_files_of_a_session_are_served() {
    let machine = Machine::new();
    let case = root().join("fixtures/claude-code/interrupted-mid-tool");
    machine.ok("data", &["import", case.to_str().unwrap()]);
    let server = Server::begin(&machine, "data", &[]);
    let id = machine.json("data", &["list"])[0]["id"].as_str().unwrap().to_owned();
    for (file, form, media_type) in
        [("json", "thoughtflow", "application/json"), ("d2", "d2", "text/plain; charset=utf-8")]
    {
        let answer = server.get(&format!("/thoughtflow/{id}.{file}"));
        assert_eq!(answer.header("content-type"), Some(media_type));
        let exported = machine.ok("data", &["export", &id, "--to", form]);
        assert_eq!(String::from_utf8(answer.body).unwrap(), exported);
    }
    for path in [
        "/thoughtflow/nosuchsession.json",
        &format!("/thoughtflow/{id}.svg"),
        &format!("/thoughtflow/{id}"),
        "/thoughtflow/..%2f..%2fetc%2fpasswd.json",
        &format!("/thoughtflow/..%2f{id}.json"),
        "/thoughtflow/...json",
        "/thoughtflow/../../etc/passwd",
    ] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
    let page = String::from_utf8(server.get(&format!("/s/{id}/thoughtflow")).body).unwrap();
    // Nine steps and four snapshots of what the prompts were made of.
    assert_eq!(page.matches("<a class=\"flow-step").count(), 13);
    assert!(page.contains("Run 1 · aborted"));
    let cut = server.get(&format!("/s/{id}/thoughtflow?turn=1&step=4"));
    let cut = String::from_utf8(cut.body).unwrap();
    assert_eq!(cut.matches("<a class=\"flow-step").count(), 9);
    assert!(cut.contains("continues from step 5") && cut.contains("From the beginning"));
    assert_eq!(server.get("/s/nosuchsession/thoughtflow").status, 404);
}

/// The steps of all runs.
fn all_steps(document: &Value) -> Vec<&Value> {
    let runs = document["conversations"].as_array().unwrap();
    runs.iter().flat_map(|run| run["steps"].as_array().unwrap()).collect()
}

// R-002-42: the document alone shows what was slow, what failed, and what led to it.
#[test]
fn the_document_answers_what_was_slow_and_what_failed() {
    let case = root().join("fixtures/claude-code/discovery-loop");
    let [transcript] = &transcripts(&case)[..] else { panic!("one session") };
    let document: Value = serde_json::from_str(&export("thoughtflow", transcript)).unwrap();
    let steps = all_steps(&document);
    let slowest = steps.iter().max_by_key(|step| step["duration_ms"].as_u64()).unwrap();
    let took = |part: &&unspool_model::part::Part| {
        Some(part.ended?.as_millisecond() - part.started?.as_millisecond())
    };
    let parts: Vec<_> = transcript.turns.iter().flat_map(|turn| &turn.parts).collect();
    let expected = parts.iter().max_by_key(|part| took(part)).unwrap();
    assert_eq!(slowest["step_id"], expected.id.to_string());
    let failed: Vec<&&Value> = steps.iter().filter(|step| step["label"] == "tool_error").collect();
    let expected = parts.iter().filter(|part| {
        matches!(&part.body, Body::Tool(tool) if tool.state == unspool_model::part::ToolState::Failed)
    });
    assert_eq!(failed.len(), expected.count());
    assert!(failed.len() > 1, "the case has tools that fail");
    // From the first failure back to the prompt.
    let mut path = Vec::new();
    let mut waiting = vec![failed[0]["step_id"].as_str().unwrap()];
    while let Some(id) = waiting.pop() {
        let step = steps.iter().find(|step| step["step_id"] == id).unwrap();
        path.push(step["label"].as_str().unwrap());
        let on = &step["depends_on"];
        waiting.extend(on.as_str());
        waiting.extend(on.as_array().into_iter().flatten().filter_map(Value::as_str));
    }
    assert_eq!(path[..3], ["tool_error", "tool_call", "assistant_call"]);
    assert!(path.contains(&"user_message"), "{path:?}");
}

// R-002-31: an agent that was killed, and a log with an invalid line.
#[test]
fn a_session_that_was_cut_off_is_drawn_as_far_as_it_came() {
    let machine = Machine::new();
    let log = std::fs::read_to_string(root().join("fixtures/claude-code/discovery-loop/log.jsonl"));
    let log = log.unwrap();
    let mut lines: Vec<&str> = log.lines().collect();
    lines.truncate(lines.len() / 2);
    lines.insert(lines.len() / 2, "{\"type\":\"assistant\",\"mess");
    let text = format!("{}\n{{\"half", lines.join("\n"));
    machine.write("cut.jsonl", text.as_bytes());
    let file = machine.home().join("cut.jsonl");
    let found = machine.run("data", &["import", file.to_str().unwrap()], "");
    let found = String::from_utf8_lossy(&found.stderr).into_owned();
    let at = format!("cut.jsonl:{}:", lines.len() / 2 + 1);
    assert_eq!(found.matches("cut.jsonl:").count(), 1, "{found}");
    assert!(found.contains(&at) || found.contains("not a JSON object"), "{found}");
    let id = machine.json("data", &["list"])[0]["id"].as_str().unwrap().to_owned();
    let shown = machine.json("data", &["show", &id]);
    assert_eq!(shown["records"]["unreadable"], 1);
    let document: Value =
        serde_json::from_str(&machine.ok("data", &["export", &id, "--to", "thoughtflow"])).unwrap();
    let run = document["conversations"].as_array().unwrap().last().unwrap();
    assert_eq!((&run["status"], &run["ended_at"]), (&"unknown".into(), &Value::Null));
    assert!(all_steps(&document).len() > 5);
    let diagram = machine.ok("data", &["export", &id, "--to", "d2"]);
    assert!(diagram.contains("unknown"), "{diagram}");
}
