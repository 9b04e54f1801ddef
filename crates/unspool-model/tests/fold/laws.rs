//! The laws as properties of random scripts.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use unspool_model::assemble::{Assembler, TurnStub};
use unspool_model::change::{Change, merged};
use unspool_model::event::EventKind;
use unspool_model::id::{PartId, TurnId};
use unspool_model::part::{AgentState, Body, ToolState};
use unspool_model::provenance::Feed;
use unspool_model::rank::PartField;
use unspool_model::session::{Transcript, Turn, TurnState};

use crate::generators::{ALL, Alphabet, ONE_SOURCE, deltas_once, in_order};
use crate::json_client::{JsonClient, comparable};
use crate::script::*;

pub type Outcome = Result<(), TestCaseError>;

/// Checks a law on random scripts. A failing script is minimised by omitting lines and printed as
/// a table.
pub fn hold(cases: u32, scripts: impl Strategy<Value = Vec<Line>>, law: fn(&[Line]) -> Outcome) {
    let cases = std::env::var("FOLD_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(cases);
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        max_shrink_iters: 0,
        ..ProptestConfig::default()
    };
    let broken = |script: &[Line]| {
        catch_unwind(AssertUnwindSafe(|| law(script))).map_or(Some("panic".to_owned()), |outcome| {
            outcome.err().map(|error| error.to_string())
        })
    };
    let outcome = TestRunner::new(config).run(&scripts, |mut script| {
        let Some(mut why) = broken(&script) else { return Ok(()) };
        let mut at = 0;
        while at < script.len() {
            let mut less = script.clone();
            less.remove(at);
            match broken(&less) {
                Some(still) => (script, why, at) = (less, still, 0),
                None => at += 1,
            }
        }
        Err(TestCaseError::fail(format!("{why}\n{script:#?}")))
    });
    if let Err(proptest::test_runner::TestError::Fail(why, _)) = outcome {
        panic!("{why}");
    }
}

/// Describes only the differences of two transcripts.
pub fn same(left: &Transcript, right: &Transcript) -> Outcome {
    if left == right {
        return Ok(());
    }
    let (left, right) = (format!("{left:#?}"), format!("{right:#?}"));
    let lines = left.lines().zip(right.lines());
    let differ: Vec<_> = lines
        .filter(|(a, b)| a != b)
        .take(6)
        .map(|(a, b)| format!("{} ≠ {}", a.trim(), b.trim()))
        .collect();
    Err(TestCaseError::fail(differ.join("\n")))
}

/// The rows of a script folded event by event, including hidden parts.
fn folded(script: &[Line]) -> Transcript {
    fold(script.to_vec()).builder.rows()
}

/// Invariants of every transcript after every event.
fn check_shape(transcript: &Transcript) -> Outcome {
    let mut parts: HashSet<PartId> = HashSet::new();
    let mut turns = HashSet::new();
    for turn in &transcript.turns {
        prop_assert!(turns.insert(turn.id), "two turns {}", turn.id);
        let places: Vec<_> = turn.parts.iter().map(|part| part.place).collect();
        let ordered = places.windows(2).all(|pair| pair[0] < pair[1]);
        prop_assert!(ordered, "places {places:?}");
        for part in &turn.parts {
            prop_assert!(parts.insert(part.id), "two parts {}: {}", part.id, show(part));
        }
    }
    Ok(())
}

/// A turn that is over has no running part (R-X-02) and no open question (R-X-11).
fn check_ended(transcript: &Transcript) -> Outcome {
    for turn in transcript.turns.iter().filter(|turn| turn.state != TurnState::Running) {
        for part in &turn.parts {
            let shown = show(part);
            prop_assert!(
                !shown.starts_with("text…") && !shown.starts_with("reasoning…"),
                "{shown}"
            );
            if let Some(tool) = as_tool(part) {
                prop_assert!(tool.state.is_terminal(), "{shown}");
                prop_assert!(tool.question.is_none() || tool.answer.is_some(), "{shown}");
            }
            if let Body::Agent(agents) = &part.body {
                let idle =
                    |state: AgentState| state.is_terminal() || state == AgentState::Background;
                prop_assert!(agents.agents.iter().all(|agent| idle(agent.state)), "{shown}");
            }
        }
    }
    Ok(())
}

type StoredRows = (ToolState, Option<Feed>, TurnId);

/// The state of every call, with the feed that set it, and the turn of the call.
fn tool_states(transcript: &Transcript) -> HashMap<String, StoredRows> {
    let parts = transcript.turns.iter().flat_map(|turn| {
        let id = turn.id;
        turn.parts.iter().map(move |part| (id, part))
    });
    parts
        .filter_map(|(turn, part)| {
            let tool = as_tool(part).filter(|tool| !tool.call_id.is_empty())?;
            // What feeds report; the exit code of a command may say otherwise (C-25).
            let state = tool.reported_state.unwrap_or(tool.state);
            Some((tool.call_id, (state, part.origin.ranks.holder(PartField::State), turn)))
        })
        .collect()
}

/// True if a call may change from one state to the other. An inferred state has no holder and
/// yields to any reported one; a reported state yields only to a stronger feed. A call that only
/// the end of its turn interrupted may run in another turn, if a stronger feed has it there.
fn may_follow((from, holder, turn): StoredRows, (to, next, next_turn): StoredRows) -> bool {
    match (from.is_terminal(), to.is_terminal()) {
        _ if from == to => true,
        (false, false) => from < to,
        (false, true) => true,
        (true, false) => holder.is_none() && turn != next_turn,
        (true, true) => {
            holder.is_none()
                || next > holder
                || (from == ToolState::Interrupted && to == ToolState::Denied)
        }
    }
}

const SENSIBLE: Alphabet = Alphabet { nonsense: false, ..ALL };

#[test]
fn law_3_the_assembler_is_pure_and_total() {
    // R-X-03: no panic, and a deterministic result.
    hold(300, ALL.script_with_repeats(40), |script| same(&folded(script), &folded(script)));
}

/// Checks the invariants after every event of a script.
fn at_every_moment(script: &[Line], check: fn(&Transcript) -> Outcome) -> Outcome {
    let mut run = fold([]);
    script.iter().try_for_each(|line| {
        run.apply(line.clone());
        check(&run.builder.rows())
    })
}

#[test]
fn law_3_ids_and_places_are_unique_for_any_events() {
    // R-003-01 R-003-03 C-02
    hold(200, ALL.script_with_repeats(30), |script| at_every_moment(script, check_shape));
}

#[test]
fn law_1_order_is_kept() {
    // R-000-01 R-003-01 R-003-03 C-02
    hold(300, SENSIBLE.script_with_repeats(30), |script| at_every_moment(script, check_shape));
}

#[test]
fn nothing_runs_in_a_turn_that_is_over() {
    // R-X-02 R-X-11 R-000-08
    hold(200, SENSIBLE.script_with_repeats(30), |script| at_every_moment(script, check_ended));
}

#[test]
fn no_state_of_a_call_moves_backward() {
    // R-003-06 R-003-07
    hold(200, SENSIBLE.script_with_repeats(30), |script| {
        let mut run = fold([]);
        let mut before: HashMap<String, StoredRows> = HashMap::new();
        for line in script {
            run.apply(line.clone());
            let states = tool_states(&run.builder.rows());
            for (call, from) in before {
                let to = states.get(&call);
                let good = to.is_some_and(|to| may_follow(from, *to));
                prop_assert!(good, "{call}: {from:?} → {to:?}");
            }
            before = states;
        }
        Ok(())
    });
}

#[test]
fn a_command_has_failed_if_and_only_if_its_exit_code_says_so() {
    // C-25: in whatever order ends and exit codes arrive.
    hold(200, SENSIBLE.script_with_repeats(30), |script| {
        at_every_moment(script, |transcript| {
            let parts = transcript.turns.iter().flat_map(|turn| &turn.parts);
            for tool in parts.filter_map(as_tool) {
                let reported = tool.reported_state.unwrap_or(tool.state);
                let nonzero = tool.exit_code.is_some_and(|code| code != 0);
                let failed = nonzero && reported == ToolState::Completed;
                let state = if failed { ToolState::Failed } else { reported };
                prop_assert_eq!(tool.state, state, "{:?}", tool);
            }
            Ok(())
        })
    });
}

#[test]
fn no_reported_end_of_an_agent_is_taken_back() {
    // R-003-07 R-003-29 R-003-34: within one feed.
    hold(200, ONE_SOURCE.script_with_repeats(30), |script| {
        let mut run = fold([]);
        let mut ended: HashMap<String, AgentState> = HashMap::new();
        for line in script {
            run.apply(line.clone());
            let ended_agent = if let EventKind::AgentEnded { agent, .. } = &line.kind {
                agent.id.as_deref().unwrap_or_default()
            } else {
                ""
            };
            for part in run.builder.rows().turns.iter().flat_map(|turn| &turn.parts) {
                let Body::Agent(agents) = &part.body else { continue };
                for agent in &agents.agents {
                    if agent.id == ended_agent {
                        ended.entry(agent.id.clone()).or_insert(agent.state);
                    }
                    let end = ended.get(&agent.id);
                    let kept = end.is_none_or(|end| end.is_terminal() && *end == agent.state);
                    prop_assert!(kept, "{}, which had ended {end:?}", show(part));
                }
            }
        }
        Ok(())
    });
}

#[test]
fn law_2_a_batch_is_the_same_as_one_by_one() {
    // R-X-03 R-000-14
    hold(200, ALL.script_with_repeats(40), |script| {
        let mut assembler = Assembler::new(session());
        let events = events(script.to_vec());
        let changes: Vec<Change> =
            events.into_iter().flat_map(|event| assembler.apply(event)).collect();
        let mut builder = new_builder();
        builder.apply_all(merged(changes));
        same(&builder.rows(), &folded(script))
    });
}

#[test]
fn law_2_changes_alone_rebuild_the_session() {
    // R-000-14 R-003-48: also after serialisation.
    hold(200, ALL.script_with_repeats(40), |script| {
        let mut assembler = Assembler::new(session());
        let mut builder = new_builder();
        for event in events(script.to_vec()) {
            for change in assembler.apply(event) {
                let json = serde_json::to_string(&change).unwrap();
                builder.apply(serde_json::from_str(&json).unwrap());
            }
        }
        let rows = builder.rows();
        same(&rows, &folded(script))?;
        let json = serde_json::to_string(&rows).unwrap();
        same(&serde_json::from_str(&json).unwrap(), &rows)
    });
}

#[test]
fn law_2_changes_alone_rebuild_the_session_without_the_assembler() {
    // R-X-14 R-003-48: a client needs no ranks, only what the changes say.
    hold(200, ALL.script_with_repeats(40), |script| {
        let mut assembler = Assembler::new(session());
        let mut client =
            JsonClient::new(&serde_json::to_value(new_builder().transcript()).unwrap());
        for event in events(script.to_vec()) {
            for change in assembler.apply(event) {
                client.apply(&serde_json::to_value(&change).unwrap());
            }
        }
        let expected = fold(script.to_vec()).transcript();
        let expected = comparable(serde_json::to_value(&expected).unwrap());
        prop_assert_eq!(client.transcript(), expected);
        Ok(())
    });
}

/// A new process at every cut. No delta is repeated across the cut: the rows do not record which
/// deltas an open text contains, and the recorder's keys prevent such repeats.
pub fn live_is_stored(script: &[Line]) -> Outcome {
    let whole = folded(script);
    for cut in 0..script.len() {
        let mut run = fold(script[..cut].to_vec()).restarted();
        run.apply_all(script[cut..].to_vec());
        if let Err(why) = same(&run.builder.rows(), &whole) {
            return Err(TestCaseError::fail(format!("cut before line {cut}: {why}")));
        }
        let outlined = from_outline(fold(script[..cut].to_vec()), &script[cut..]);
        if let Err(why) = same(&outlined, &whole) {
            return Err(TestCaseError::fail(format!("in outline before line {cut}: {why}")));
        }
    }
    Ok(())
}

/// A new process that restores a turn from its rows only when an event needs it.
fn from_outline(stored: Run, rest: &[Line]) -> Transcript {
    let rows = stored.builder.rows();
    let outlines = rows.turns.iter().map(|turn| TurnStub {
        turn: Turn { parts: Vec::new(), steps: Vec::new(), ..turn.clone() },
        names: turn.name_digests(0),
    });
    let mut assembler = Assembler::resume_from_stubs(&rows.session, outlines);
    for turn in rows.turns.iter().filter(|turn| !stored.assembler.is_settled(turn.id)) {
        assembler.restore(turn);
    }
    let mut builder = stored.builder.clone();
    for (line, nth) in rest.iter().zip(stored.next..) {
        let event = line.clone().event(nth);
        for turn in assembler.needs(&event) {
            assembler.restore(builder.find_turn(turn).unwrap());
        }
        builder.apply_all(assembler.apply(event));
    }
    builder.rows()
}

#[test]
fn law_2_live_is_stored() {
    // R-000-14 R-X-03 C-21. State that the rows do not contain is lost at the cut: the
    // generation of a stream, white space before the first word, an agent without a start, and
    // which of two turns or steps was started again last.
    let alphabet = Alphabet { generations: false, blanks: false, ..SENSIBLE };
    hold(100, alphabet.script(25).prop_map(in_order), live_is_stored);
}

#[test]
fn law_2_live_is_stored_for_one_source() {
    // R-000-14 R-X-03 C-21: the usual case by itself.
    hold(100, ONE_SOURCE.script(25).prop_map(in_order), live_is_stored);
}

#[test]
fn law_9_memory_is_bounded() {
    // R-X-14: releasing every settled turn after every event changes nothing. A released text
    // forgets which deltas it contains, so no delta is repeated here.
    let scripts = SENSIBLE.script_with_repeats(40).prop_map(deltas_once);
    hold(200, scripts, |script| same(&released(script), &folded(script)));
}

#[test]
fn law_5_twice_is_once() {
    // R-001-28. An event of an agent before its start has more effect when it is repeated.
    let alphabet = Alphabet { nameless: false, blanks: true, ..ONE_SOURCE };
    hold(200, alphabet.script(30).prop_map(in_order), |script| {
        same(&folded(&[script, script].concat()), &folded(script))
    });
}

/// Folds a script as the recorder does: settled turns are released and restored on demand.
fn released(script: &[Line]) -> Transcript {
    let mut assembler = Assembler::new(session());
    let mut builder = new_builder();
    for event in events(script.to_vec()) {
        for turn in assembler.needs(&event) {
            let stored = builder.find_turn(turn).unwrap().clone();
            assembler.restore(&stored);
        }
        builder.apply_all(assembler.apply(event));
        for turn in builder.turn_ids() {
            assembler.release(turn);
        }
    }
    builder.rows()
}
