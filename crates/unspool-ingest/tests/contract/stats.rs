//! Statistics over an archive match its transcripts.

use std::collections::{BTreeMap, BTreeSet};

use unspool_ingest::recorder::batch::IngestMode;
use unspool_model::event::EndReason::Completed;
use unspool_model::event::ProseKind::Reasoning;
use unspool_model::event::{EventKind, ToolEnd};
use unspool_model::id::SessionId;
use unspool_model::part::{Body, Kind, ToolState};
use unspool_model::session::{Transcript, Usage};
use unspool_store::blocking::block_on;
use unspool_store::stats::{Stats, StatsRequest};
use unspool_store::store::{Store, View, Viewer};

use crate::harness::{AGENT, Harness, ask, in_project};
use crate::model::{Outcome, same};
use crate::script::*;
use crate::test_archive::TestArchive;

/// Counts computed from transcripts alone.
#[derive(PartialEq, Eq, Debug, Default)]
struct Counted {
    sessions: u64,
    turns: u64,
    steps: u64,
    parts: u64,
    tool_calls: u64,
    errors: u64,
    reasoning: u64,
    with_cost: u64,
    tokens: Usage,
    /// By tool: calls, then calls by final state, running ones last.
    tools: BTreeMap<String, [u64; 6]>,
    /// By model: sessions, turns, steps and tokens.
    models: BTreeMap<Option<String>, (u64, u64, u64, Usage)>,
}

fn counted(transcripts: &[Transcript]) -> Counted {
    let mut counted = Counted { sessions: transcripts.len() as u64, ..Counted::default() };
    let mut seen: BTreeSet<(Option<String>, SessionId, Option<u32>)> = BTreeSet::new();
    for transcript in transcripts {
        counted.with_cost += u64::from(transcript.session.facts.cost_usd.is_some());
        for turn in &transcript.turns {
            let is_shown = !turn.is_blank();
            counted.turns += u64::from(is_shown);
            counted.parts += turn.parts.len() as u64;
            for step in &turn.steps {
                let model = step.model.as_deref().map(str::to_owned);
                let of = counted.models.entry(model.clone()).or_default();
                let session = transcript.session.id;
                of.0 += u64::from(seen.insert((model.clone(), session, None)));
                let is_new = is_shown && seen.insert((model, session, Some(turn.number)));
                of.1 += u64::from(is_new);
                of.2 += 1;
                of.3.add(step.usage);
                counted.steps += 1;
                counted.tokens.add(step.usage);
            }
            for part in &turn.parts {
                let kind = part.body.kind();
                counted.reasoning += u64::from(kind == Kind::Reasoning);
                counted.errors += u64::from(kind == Kind::Error);
                let Body::Tool(tool) = &part.body else { continue };
                counted.tool_calls += 1;
                counted.errors += u64::from(tool.state == ToolState::Failed);
                let of = counted.tools.entry(tool.name.clone()).or_default();
                of[0] += 1;
                of[match tool.state {
                    ToolState::Completed => 1,
                    ToolState::Failed => 2,
                    ToolState::Denied => 3,
                    ToolState::Interrupted => 4,
                    ToolState::Pending | ToolState::Running => 5,
                }] += 1;
            }
        }
    }
    counted
}

fn said(stats: &Stats) -> Counted {
    let totals = &stats.totals;
    let tools = stats.tools.iter().map(|tool| {
        let ends = [tool.completed, tool.failed, tool.denied, tool.interrupted, tool.running];
        (tool.name.clone(), [tool.calls, ends[0], ends[1], ends[2], ends[3], ends[4]])
    });
    let models = stats.by_model.iter().map(|model| {
        let figures = (model.sessions, model.turns, model.steps, model.usage.tokens);
        (model.name.clone(), figures)
    });
    Counted {
        sessions: totals.sessions,
        turns: totals.turns,
        steps: totals.steps,
        parts: totals.parts,
        tool_calls: totals.tool_calls,
        errors: totals.errors,
        reasoning: totals.reasoning_parts,
        with_cost: totals.sessions_with_cost,
        tokens: totals.usage.tokens,
        tools: tools.collect(),
        models: models.collect(),
    }
}

/// Compares the statistics of the whole archive with its transcripts.
pub fn compare_figures<S: Store>(store: &S, transcripts: &[Transcript]) -> Outcome {
    let stats = block_on(store.view(Viewer::Sole).stats(StatsRequest::default())).unwrap();
    same("figures", &said(&stats), &counted(transcripts))?;
    // The sum over each grouping is the total.
    for groups in [&stats.by_day, &stats.by_agent, &stats.by_project] {
        let mut tokens = Usage::default();
        groups.iter().for_each(|group| tokens.add(group.usage.tokens));
        same("tokens of groups", &tokens, &stats.totals.usage.tokens)?;
        let turns: u64 = groups.iter().map(|group| group.turns).sum();
        same("turns of groups", &turns, &stats.totals.turns)?;
    }
    Ok(())
}

pub fn figures_can_be_narrowed<H: TestArchive>() {
    // R-001-33
    let harness = Harness::<H>::new();
    assert_eq!(block_on(harness.view().stats(StatsRequest::default())).unwrap(), Stats::default());
    let used = |step: &str, input: u64| -> Line {
        let usage = Usage { input, ..Usage::default() };
        EventKind::UsageUpdated { step: message(step), usage }.into()
    };
    let script = |project: &str, at: i64| {
        vec![
            in_project(project).at(at),
            ask("p1", "one").at(at),
            step("m1"),
            used("m1", 10),
            said_in(Reasoning, block("m1", 0), "hm").at(at),
            called("t1", "Bash").at(at),
            ended("t1", ToolEnd::Failed, "no").at(at + 2),
            over(Completed).at(at + 3),
            ask("p2", "two").at(at + 100),
            step("m2"),
            used("m2", 5),
            called("t2", "Read").at(at + 100),
            over(Completed).at(at + 101),
        ]
    };
    harness.record_as(AGENT, "a", IngestMode::Bulk, script("/home/a", 1000));
    harness.record_as("codex", "b", IngestMode::Live, script("/home/b%", 5000));
    let of = |change: fn(&mut StatsRequest)| {
        let mut request = StatsRequest::default();
        change(&mut request);
        let totals = block_on(harness.view().stats(request)).unwrap().totals;
        (totals.sessions, totals.turns, totals.tool_calls, totals.usage.tokens.input)
    };
    assert_eq!(of(|_| {}), (2, 4, 4, 30));
    assert_eq!(of(|it| it.agent = Some("codex".to_owned())), (1, 2, 2, 15));
    assert_eq!(of(|it| it.agent = Some("Codex".to_owned())), (0, 0, 0, 0));
    assert_eq!(of(|it| it.project = Some("b%".to_owned())), (1, 2, 2, 15));
    assert_eq!(of(|it| it.project = Some("_".to_owned())), (0, 0, 0, 0));
    assert_eq!(of(|it| it.since = Some(1_100_000)), (2, 3, 3, 20));
    assert_eq!(of(|it| it.until = Some(1_100_000)), (1, 1, 1, 10));
    assert_eq!(of(|it| it.since = Some(i64::MAX)), (0, 0, 0, 0));
    let narrow = |it: &mut StatsRequest| {
        (it.since, it.until) = (Some(5_000_000), Some(5_000_001));
    };
    assert_eq!(of(narrow), (1, 1, 1, 10));
    let all = block_on(harness.view().stats(StatsRequest::default())).unwrap();
    let bash = all.tools.iter().find(|tool| tool.name == "Bash").unwrap();
    assert_eq!((bash.failed, bash.error_rate), (2, Some(1.0)));
    assert_eq!((bash.duration.measured, bash.duration.median_ms), (2, Some(2000)));
}

pub fn what_fails_again_and_again_and_what_takes_long_is_named<H: TestArchive>() {
    // R-001-33 R-002-42
    let harness = Harness::<H>::new();
    let fails = |nth: i64, error: &str, took: i64| {
        let (call, at) = (format!("c{nth}"), 1000 * nth);
        vec![
            ask(&format!("p{nth}"), "go").at(at),
            called_with(&call, "Bash", r#"{"command":"make"}"#).at(at),
            ended(&call, ToolEnd::Failed, error).at(at + took),
            over(Completed).at(at + took),
        ]
    };
    harness.record("one", fails(1, "Exit code 2\nmake: no rule\nmore", 5));
    harness.record(
        "two",
        [fails(2, "Exit code 2\n\nmake: no rule\nother", 9), fails(3, "once", 1)].concat(),
    );
    let before = block_on(harness.view().stats(StatsRequest::default())).unwrap();
    assert!(before.failures.is_empty(), "twice is not often");
    harness.record("three", fails(4, "Exit code 2\nmake: no rule", 7));
    let stats = block_on(harness.view().stats(StatsRequest::default())).unwrap();
    let [often] = stats.failures.as_slice() else { panic!("{:?}", stats.failures) };
    assert_eq!((often.tool.as_str(), often.error.as_str()), ("Bash", "Exit code 2: make: no rule"));
    assert_eq!((often.count, often.sessions), (3, 3));
    assert_eq!(often.last.session, SessionId::of(AGENT, "three").to_string(), "the newest");
    let slow: Vec<u64> = stats.slowest.iter().map(|call| call.duration_ms).collect();
    assert_eq!(slow, [9000, 7000, 5000, 1000]);
    assert_eq!(stats.slowest[0].what, "make");
    let late = StatsRequest { since: Some(3_500_000), ..StatsRequest::default() };
    let late = block_on(harness.view().stats(late)).unwrap();
    assert_eq!((late.slowest.len(), late.failures.len()), (1, 0));
}

pub fn calls_that_lead_to_failures_are_named<H: TestArchive>() {
    // R-002-42: error paths.
    let harness = Harness::<H>::new();
    let call = |nth: i64, id: &str, tool: &str, end: ToolEnd| {
        let (call, at) = (format!("c{nth}{id}"), 1000 * nth);
        [called(&call, tool).at(at), ended(&call, end, "done").at(at + 1)]
    };
    let turn = |nth: i64| {
        let calls = [
            call(nth, "a", "Read", ToolEnd::Completed),
            call(nth, "b", "Edit", ToolEnd::Failed),
            call(nth, "c", "Bash", ToolEnd::Failed),
        ];
        let mut events = vec![ask(&format!("p{nth}"), "go").at(1000 * nth)];
        events.extend(calls.concat());
        events.push(over(Completed).at(1000 * nth + 2));
        events
    };
    harness.record("one", [turn(1), turn(2)].concat());
    let before = block_on(harness.view().stats(StatsRequest::default())).unwrap();
    assert!(before.error_paths.is_empty(), "twice is not often");
    harness.record("two", turn(3));
    let stats = block_on(harness.view().stats(StatsRequest::default())).unwrap();
    let paths: Vec<(String, u64, u64)> = stats
        .error_paths
        .iter()
        .map(|path| {
            let calls = path.calls.iter().map(|call| match call.failed {
                true => format!("{}!", call.tool),
                false => call.tool.clone(),
            });
            (calls.collect::<Vec<_>>().join(" "), path.count, path.sessions)
        })
        .collect();
    // A call of an earlier turn leads to nothing here.
    assert_eq!(paths, [("Read Edit!".to_owned(), 3, 2), ("Read Edit! Bash!".to_owned(), 3, 2)]);
    assert_eq!(stats.error_paths[0].last.session, SessionId::of(AGENT, "two").to_string());
    let late = StatsRequest { since: Some(2_500_000), ..StatsRequest::default() };
    assert!(block_on(harness.view().stats(late)).unwrap().error_paths.is_empty());
}
