//! Laws 1 and 5 for the AI SDK: every document and every stream against an independent reader, and
//! both of one chat in any order.

use std::path::{Path, PathBuf};

use serde_json::Value;
use unspool_model::assemble::Assembler;
use unspool_model::event::Event;
use unspool_model::id::SessionId;
use unspool_model::part::{Body, ToolState};
use unspool_model::session::Transcript;
use unspool_model::transcript::TranscriptBuilder;
use unspool_sources::in_memory::SessionSet;

use crate::case::{assert_none, captures, cases, difference, fold_in, main_session, name};
use crate::independent::ai_sdk::{self, ExpectedPart};

/// The cases with both a document and its stream; one case is a stream alone.
fn pairs() -> Vec<PathBuf> {
    let mut pairs = cases("ai-sdk");
    pairs.retain(|case| file(case, "json").exists() && file(case, "sse").exists());
    pairs
}

fn file(case: &Path, form: &str) -> PathBuf {
    case.join(format!("{}.{form}", name(case)))
}

/// The replies of a transcript in the independent reader's form.
fn found(transcript: &Transcript) -> Vec<ExpectedPart> {
    let parts = transcript.turns.iter().flat_map(|turn| &turn.parts);
    parts.filter_map(|part| expected_part(&part.body)).collect()
}

fn expected_part(body: &Body) -> Option<ExpectedPart> {
    let other = |kind: &str, text: &Option<String>| {
        Some(ExpectedPart::Other(kind.to_owned(), text.clone().unwrap_or_default()))
    };
    match body {
        Body::Text(text) => Some(ExpectedPart::Text(text.text.clone())),
        Body::Reasoning(reasoning) => Some(ExpectedPart::Reasoning(reasoning.text.clone())),
        Body::Tool(tool) => {
            let given = match (&tool.result, &tool.output) {
                (Some(result), _) => result.value(),
                (None, Some(text)) => Value::from(text.as_str()),
                (None, None) => Value::Null,
            };
            let state = match tool.state {
                ToolState::Pending => "input-streaming",
                ToolState::Running if tool.result.is_some() => "preliminary",
                ToolState::Running if tool.answer.is_some() => "approval-responded",
                ToolState::Running if tool.question.is_some() => "approval-requested",
                ToolState::Running => "input-available",
                ToolState::Completed => "output-available",
                ToolState::Failed => "output-error",
                ToolState::Denied => "output-denied",
                ToolState::Interrupted => "interrupted",
            };
            let id = tool.call_id.rsplit('/').next().unwrap().to_owned();
            Some(ExpectedPart::Tool(id, tool.name.clone(), state.to_owned(), given))
        }
        Body::File(file) => other("file", &file.url),
        Body::Source(source) => other("source", &source.url.clone().or(source.title.clone())),
        Body::Interjection(said) => other("steering", &Some(said.text.clone())),
        Body::Data(data) if data.kind == "ai-sdk-message" || data.kind == "chat" => None,
        Body::Data(data) => {
            let value = data.payload.value();
            Some(ExpectedPart::Other(data.kind.clone(), value["data"].to_string()))
        }
        _ => None,
    }
}

#[test]
fn law_1_messages_keep_their_order() {
    // R-001-02 to R-001-04, R-000-24: every part of every message, in its order and state.
    for case in pairs() {
        let messages = ai_sdk::document(&file(&case, "json"));
        let session_set = fold_in(&captures(&case)[..1], &[0]);
        let session = main_session(&session_set);
        let replies = messages.iter().filter(|message| message["role"] == "assistant");
        let mut expected = Vec::new();
        for reply in replies {
            expected.extend(ai_sdk::expected_parts(reply["parts"].as_array().unwrap()));
        }
        let transcript = session.transcript();
        let mut decoded = found(&transcript);
        // A file in a user's message comes after its text.
        if name(&case) == "custom-and-steering" {
            decoded.retain(|expected_part| !matches!(expected_part, ExpectedPart::Other(kind, _) if kind == "file"));
        }
        for (expected_part, wanted) in decoded.iter_mut().zip(&expected) {
            forget_automatic(expected_part, wanted);
        }
        assert_eq!(decoded, expected, "{}", name(&case));
        let prompts: Vec<&Value> =
            messages.iter().filter(|message| message["role"] == "user").collect();
        let turns: Vec<_> = transcript.turns.iter().filter(|turn| turn.number > 0).collect();
        assert_eq!(turns.len(), prompts.len(), "{}", name(&case));
        for (turn, message) in turns.iter().zip(prompts) {
            let texts = message["parts"].as_array().unwrap().iter();
            let texts: Vec<&str> = texts.filter_map(|part| part["text"].as_str()).collect();
            let found: Vec<&str> = turn.user.iter().filter_map(Body::prose).collect();
            assert_eq!(found, texts, "{}", name(&case));
        }
    }
}

/// An automatic approval asks nobody, so we show no answer for it.
fn forget_automatic(found: &mut ExpectedPart, wanted: &ExpectedPart) {
    if let (ExpectedPart::Tool(_, _, state, _), ExpectedPart::Tool(_, _, wanted, _)) =
        (found, wanted)
        && state == "input-available"
        && wanted.starts_with("approval-")
    {
        state.clone_from(wanted);
    }
}

#[test]
fn law_1_streams_make_what_the_sdk_makes_of_them() {
    // R-001-34
    for case in pairs() {
        let captures = captures(&case);
        let session_set = fold_in(&captures[1..2], &[0]);
        let transcript = main_session(&session_set).transcript();
        let reduced = ai_sdk::reduced(&ai_sdk::chunks(&file(&case, "sse")));
        let expected: Vec<ExpectedPart> =
            reduced.iter().flat_map(|(_, parts)| ai_sdk::expected_parts(parts)).collect();
        let mut decoded = found(&transcript);
        // Keep discarded parts, since they were shown; drop results of calls from earlier streams.
        let called = |expected_part: &ExpectedPart| match expected_part {
            ExpectedPart::Tool(id, ..) => {
                expected.iter().any(|one| matches!(one, ExpectedPart::Tool(held, ..) if held == id))
            }
            ExpectedPart::Other(kind, _) => kind != "file" || name(&case) != "custom-and-steering",
            ExpectedPart::Text(_) | ExpectedPart::Reasoning(_) => true,
        };
        decoded.retain(called);
        let plain = |expected_parts: Vec<ExpectedPart>| {
            expected_parts.into_iter().map(|expected_part| match expected_part {
                // Open states are compared with the documents: the end of a stream interrupts them.
                ExpectedPart::Tool(id, tool, state, given) => {
                    let open = !state.starts_with("output-");
                    ExpectedPart::Tool(id, tool, if open { String::new() } else { state }, given)
                }
                other => other,
            })
        };
        let (mut decoded, mut expected): (Vec<ExpectedPart>, Vec<ExpectedPart>) =
            (plain(decoded).collect(), plain(expected).collect());
        if name(&case) == "parallel-interleaved" {
            // Two concurrent texts are ordered by their first delta.
            decoded.sort_by_key(|expected_part| format!("{expected_part:?}"));
            expected.sort_by_key(|expected_part| format!("{expected_part:?}"));
        }
        assert_eq!(decoded, expected, "{}", name(&case));
    }
}

/// The events of one of a session's captures.
fn decoded(case: &Path, which: usize) -> (String, Vec<Event>) {
    let mut session_set = SessionSet::default();
    let (mut events, mut session) = (Vec::new(), String::new());
    for (at, capture) in captures(case).iter().enumerate() {
        let mut reading = session_set.open(&capture.file);
        let mut watch = |decoded: unspool_sources::in_memory::RecordTrace<'_>| {
            session = decoded.session.to_owned();
            if at == which {
                events.extend_from_slice(decoded.events);
            }
        };
        for line in &capture.lines {
            session_set.take_traced(&mut reading, line.line(), &mut watch);
        }
        session_set.close(reading, &mut watch);
    }
    (session, events)
}

#[test]
fn law_5_a_message_and_its_stream_are_one_in_any_order() {
    // The session id comes at the end, so interleave events rather than lines.
    let mut differences = Vec::new();
    let all = pairs();
    assert!(all.len() >= 40, "only {} cases", all.len());
    for case in all {
        let ((id, log), (other, stream)) = (decoded(&case, 0), decoded(&case, 1));
        assert_eq!(id, other, "{}", name(&case));
        let fold = |mix: &mut dyn FnMut(usize, usize) -> bool| {
            let mut assembler = Assembler::new(SessionId::of("ai-sdk", &id));
            let mut builder = TranscriptBuilder::new("ai-sdk", &id);
            let (mut logged, mut streamed) = (log.iter(), stream.iter());
            loop {
                let (left, right) = (logged.len(), streamed.len());
                let next = match (left, right) {
                    (0, 0) => break builder.into_transcript(),
                    (_, 0) => logged.next(),
                    (0, _) => streamed.next(),
                    (_, _) if mix(left, right) => logged.next(),
                    (_, _) => streamed.next(),
                };
                builder.apply_all(assembler.apply(next.unwrap().clone()));
            }
        };
        let expected = fold(&mut |_, _| true);
        let mut seed = 7_u64;
        let mut random = move |_: usize, _: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            seed >> 63 == 1
        };
        let mut orders: Vec<Transcript> = vec![fold(&mut |_, _| false)];
        orders.extend((0..8).map(|_| fold(&mut random)));
        for found in orders {
            if let Some(difference) = difference(&expected, &found) {
                differences.push(format!("{}: {difference}", name(&case)));
                break;
            }
        }
    }
    assert_none(differences);
}

#[test]
fn a_message_and_its_stream_duplicate_nothing() {
    for case in pairs() {
        let captures = captures(&case);
        let alone = found(&main_session(&fold_in(&captures[..1], &[0])).transcript());
        let both = found(&main_session(&fold_in(&captures, &[0, 1])).transcript());
        // The stream adds only discarded parts.
        let added = both.len() - alone.len();
        assert_eq!(added, usize::from(name(&case) == "reset-step"), "{}: {both:#?}", name(&case));
    }
}

#[test]
fn a_rewritten_chat_adds_nothing_twice() {
    // R-001-28: applications rewrite the whole document for every message.
    let mut writing = 0;
    for case in pairs() {
        let captures = captures(&case);
        let lines = &captures[0].lines;
        let mut session_set = SessionSet::default();
        for (spaces, count) in [(2, lines.len() - 1), (1, lines.len()), (0, lines.len())] {
            let mut reading = session_set.open(&captures[0].file);
            for line in &lines[..count] {
                // A trailing space makes it another source, as a changed header would.
                let mut bytes = line.bytes.clone();
                bytes.resize(bytes.len() + spaces, b' ');
                let line = unspool_sources::read::lines::Line { bytes: &bytes, ..line.line() };
                session_set.take(&mut reading, line);
            }
            session_set.close(reading, &mut |_| {});
        }
        let again = main_session(&session_set).transcript();
        let once = main_session(&fold_in(&captures[..1], &[0])).transcript();
        assert_eq!(again.turns.len(), once.turns.len(), "{}", name(&case));
        assert_eq!(found(&again), found(&once), "{}", name(&case));
        assert_eq!(inputs(&again), inputs(&once), "{}", name(&case));
        writing += inputs(&once).iter().filter(|(_, text, _)| !text.is_empty()).count();
    }
    assert!(writing > 0, "no input is being written");
}

/// The inputs of calls, complete or partial.
fn inputs(transcript: &Transcript) -> Vec<(String, String, Option<Value>)> {
    let parts = transcript.turns.iter().flat_map(|turn| &turn.parts);
    let tools = parts.filter_map(|part| match &part.body {
        Body::Tool(tool) => Some(tool),
        _ => None,
    });
    let input = |input: &unspool_model::json::Json| input.value();
    tools
        .map(|tool| (tool.call_id.clone(), tool.input_text.clone(), tool.input.as_ref().map(input)))
        .collect()
}

#[test]
fn the_chunks_of_an_exported_fixture_make_its_message() {
    // R-001-32
    let form = unspool_export::project::Projection::named("fixture").unwrap();
    let mut turns = 0;
    for case in ["claude-code/discovery-loop", "codex/steered", "ai-sdk/multi-step-interleaved"] {
        let path = crate::case::root().join("fixtures").join(case);
        for transcript in crate::thoughtflow::transcripts(&path) {
            let text = crate::projections::projected(form, &transcript, &Default::default());
            let fixture: Value = serde_json::from_str(&text).unwrap();
            for turn in fixture["turns"].as_array().unwrap() {
                let chunks = turn["chunks"].as_array().unwrap();
                let [(_, parts)] = &ai_sdk::reduced(chunks)[..] else { panic!("{case}: {turn}") };
                let message = turn["message"]["parts"].as_array().unwrap();
                assert_eq!(
                    ai_sdk::expected_parts(parts),
                    ai_sdk::expected_parts(message),
                    "{case}"
                );
                assert!(turn["prompt"]["parts"].is_array() || turn["turn"] == 0, "{case}");
                turns += 1;
            }
        }
    }
    assert!(turns >= 3, "{turns}");
}

#[test]
fn recordings_have_every_type_of_part() {
    // R-001-02: what the other tests compare. Names after the dash are the application's.
    let mut types = std::collections::BTreeSet::new();
    for case in pairs() {
        for message in ai_sdk::document(&file(&case, "json")) {
            for part in message["parts"].as_array().unwrap() {
                let kind = part["type"].as_str().unwrap();
                let prefix = ["data-", "tool-"].into_iter().find(|start| kind.starts_with(start));
                types.insert(prefix.unwrap_or(kind).to_owned());
            }
        }
    }
    for kind in [
        "text",
        "reasoning",
        "source-url",
        "source-document",
        "file",
        "step-start",
        "data-",
        "tool-",
        "dynamic-tool",
    ] {
        assert!(types.contains(kind), "no recording has {kind}: {types:?}");
    }
}
