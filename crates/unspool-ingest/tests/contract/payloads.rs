//! Packing and unpacking a part returns it unchanged, byte for byte.

use proptest::prelude::*;
use proptest::test_runner::{TestError, TestRunner};
use unspool_ingest::recorder::batch::IngestMode;
use unspool_model::event::EndReason::Completed;
use unspool_model::event::{EventKind, ToolEnd, ToolOutcome};
use unspool_model::json::Json;
use unspool_model::part::{Body, Part, Tool};
use unspool_store::blocking::block_on;
use unspool_store::pack::Extent::Whole;
use unspool_store::pack::{Compressor, PartKey, decompress, left_out, pack, unpack};
use unspool_store::store::{TurnWindow, View};

use crate::bodies;
use crate::fixtures::fixtures;
use crate::harness::{AGENT, Harness, ask};
use crate::recorder::cases;
use crate::script::*;
use crate::test_archive::TestArchive;

/// Packs and unpacks a part.
fn there_and_back(part: &Part) -> Part {
    let packed = pack(part.clone()).unwrap();
    let mut compressor = Compressor::new().unwrap();
    let rest = decompress(&compressor.compress(&packed.rest).unwrap()).unwrap();
    let large = packed.large.map(|large| {
        // Both storage forms: shared chunk and chunk of its own.
        let mut chunk = b"before".to_vec();
        large.append_to(&mut chunk);
        let alone = decompress(&large.compress().unwrap()).unwrap();
        assert_eq!(chunk[6..], alone);
        assert_eq!(alone.len(), large.size());
        alone
    });
    if let (Some(large), Body::Tool(tool)) = (&large, &part.body)
        && let Some(result) = left_out(large)
    {
        assert_eq!(Some(result.as_ref()), tool.result.as_ref().map(Json::text));
    }
    let columns = PartKey { id: part.id, place: part.place, step: part.step };
    unpack(columns, &rest, packed.text, large.as_deref(), Whole).unwrap()
}

fn check_property(law: impl Fn(Part) -> Result<(), TestCaseError>) {
    let config = ProptestConfig {
        cases: cases(48) * 10,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    match TestRunner::new(config).run(&bodies::part(), law) {
        Ok(()) => {}
        Err(TestError::Fail(why, part)) => {
            let shown: String = format!("{part:?}").chars().take(2000).collect();
            panic!("{why}\n{shown}");
        }
        Err(TestError::Abort(why)) => panic!("{why}"),
    }
}

#[test]
fn any_part_comes_back_as_it_was() {
    // R-000-24 R-003-48, law 4
    check_property(|part| {
        let back = there_and_back(&part);
        prop_assert!(back == part, "it came back as {:?}", back.body);
        Ok(())
    });
}

#[test]
fn the_same_large_content_has_the_same_digest_and_no_other_has_it() {
    check_property(|part| {
        let digest = |part: &Part| pack(part.clone()).unwrap().large.map(|large| large.digest);
        let first = digest(&part);
        prop_assert_eq!(first, digest(&part));
        let mut other = part.clone();
        if let Body::Tool(tool) = &mut other.body {
            // The same bytes, split differently between the pieces.
            let (output, result) = (tool.output.clone(), tool.result.clone());
            if let (Some(output), Some(result)) = (output, result) {
                tool.output = Some(format!("{output}{}", result.text()));
                tool.result = None;
                prop_assert!(first.is_none() || digest(&other) != first);
            }
        }
        Ok(())
    });
}

fn tool_part(tool: Tool) -> Part {
    Part {
        id: unspool_model::id::PartId(unspool_model::id::SessionId::of("a", "b").0),
        place: unspool_model::part::Place(1),
        step: None,
        started: None,
        ended: None,
        evidence: Vec::new(),
        origin: Default::default(),
        body: Body::Tool(Box::new(tool)),
    }
}

#[test]
fn sizes_around_the_thresholds_come_back() {
    for size in (0..8).chain(505..520).chain(16_380..16_390).chain([131_071, 131_072, 131_073]) {
        for filling in ["x", "ä", "\n", "\\", "\"", "\0"] {
            let text = filling.repeat(size / filling.len());
            let json = Json::string(&text);
            let output = Tool { output: Some(text.clone()), ..Tool::default() };
            let result = Tool { result: Some(json.clone()), ..Tool::default() };
            let both = Tool { output: Some(text), result: Some(json.clone()), ..Tool::default() };
            let input = Tool { input: Some(json), ..both.clone() };
            for tool in [output, result, both, input] {
                let part = tool_part(tool);
                assert!(there_and_back(&part) == part, "{size} of {filling:?}");
            }
        }
    }
}

#[test]
fn raw_json_comes_back_byte_for_byte() {
    // R-000-24
    let padding = "p".repeat(600);
    for raw in [
        "{ \"a\" : [ 1 , 2 ] }".to_owned(),
        format!("{{\"stdout\":\"one\\ntwo\\ttab \\\\n \\u000a {padding}\"}}"),
        format!("{{\n\t\"pretty\": \"line\\nend {padding}\"\n}}"),
        format!("{{\"half\":\"\\ud83d\",\"other\":\"\\ude00 {padding}\"}}"),
        format!("[\"\\/\", 1.0, 1e5, -0, 12345678901234567890123, \"{padding}\"]"),
        format!("{{\"a\":1,\"a\":2,\"\":\"{padding}\"}}"),
        format!("\"{padding}\\\\\""),
        "[".repeat(5000) + &"]".repeat(5000),
    ] {
        let json = Json::parse(&raw).unwrap();
        assert_eq!(json.text(), raw);
        let tool = Tool {
            input: Some(json.clone()),
            result: Some(json),
            output: Some(raw.clone()),
            ..Tool::default()
        };
        let part = tool_part(tool);
        assert!(there_and_back(&part) == part, "{raw:.60}");
    }
}

#[test]
fn every_part_of_every_fixture_comes_back() {
    // Law 4
    let mut parts = 0;
    for (name, script) in fixtures() {
        for turn in fold(script).builder.rows().turns {
            for part in turn.parts {
                assert!(there_and_back(&part) == part, "{name}: {}", part.id);
                parts += 1;
            }
        }
    }
    assert!(parts > 500, "{parts}");
}

#[test]
fn what_was_damaged_is_an_error_and_no_panic() {
    // Law 3
    check_property(|part| {
        let packed = pack(part.clone()).unwrap();
        let columns = || PartKey { id: part.id, place: part.place, step: part.step };
        let mut whole = Vec::new();
        if let Some(large) = &packed.large {
            large.append_to(&mut whole);
        }
        for cut in [0, 1, 2, whole.len() / 2, whole.len().saturating_sub(1)] {
            let torn = whole.get(..cut).unwrap_or_default();
            let _ = unpack(columns(), &packed.rest, packed.text.clone(), Some(torn), Whole);
            let _ = left_out(torn);
            let rest = packed.rest.get(..cut).unwrap_or_default();
            prop_assert!(unpack(columns(), rest, None, None, Whole).is_err());
        }
        let odd: [&[u8]; 5] =
            [b"9 9 9 1\nx", b"-", b"1 - - 0\n", b"18446744073709551615 - - 0\n", b"\xff\n"];
        for odd in odd {
            let _ = unpack(columns(), &packed.rest, packed.text.clone(), Some(odd), Whole);
            let _ = left_out(odd);
        }
        Ok(())
    });
    assert!(decompress(b"").is_err() || decompress(b"").unwrap().is_empty());
    assert!(decompress(b"no frame").is_err());
}

pub fn very_large_payloads_are_kept<H: TestArchive>() {
    // R-X-14
    let harness = Harness::<H>::new();
    let output = "5 MB of output\n".repeat(5 * 1024 * 1024 / 15);
    let result = Json::string(&output);
    let outcome = ToolOutcome {
        output: Some(output.clone()),
        result: Some(result.clone()),
        ..ToolOutcome::default()
    };
    for mode in [IngestMode::Bulk, IngestMode::Live] {
        let name = format!("{mode:?}");
        let ended = EventKind::ToolEnded {
            call: call_id("t"),
            end: ToolEnd::Completed,
            outcome: outcome.clone(),
        };
        let stored = harness.record_as(
            AGENT,
            &name,
            mode,
            [ask("p", "go"), called("t", "Bash"), ended.into(), over(Completed)],
        );
        let turns = block_on(harness.view().whole_turns(stored.row, TurnWindow::All)).unwrap();
        let Body::Tool(tool) = &turns[0].parts[0].body else { panic!() };
        assert!(tool.output.as_ref() == Some(&output));
        assert!(tool.result.as_ref() == Some(&result));
    }
    assert_eq!(harness.found("\"MB of output\"").len(), 2);
    assert_eq!(harness.archive.leftovers(), Vec::<String>::new());
    harness.is_clean();
}
