//! The laws as properties of random scripts.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use unspool_core::assemble::Assembler;
use unspool_core::change::{Change, merged};
use unspool_core::event::Event;
use unspool_core::id::PartId;
use unspool_core::part::{AgentState, Body, ToolState};
use unspool_core::session::{Transcript, TurnState};
use unspool_core::telling::{Field, Telling};
use unspool_core::transcript::Mirror;

use crate::alphabet::{ALL, Alphabet, ONE_SOURCE};
use crate::script::*;

fn config(cases: u32) -> ProptestConfig {
    let cases = std::env::var("FOLD_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(cases);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// The transcript of events, folded one by one.
fn folded(events: &[Event]) -> Transcript {
    let mut assembler = Assembler::new(session());
    let mut mirror = new_mirror();
    for event in events {
        mirror.apply_all(assembler.apply(event.clone()));
    }
    mirror.into_transcript()
}

/// What must hold of every transcript at every moment.
fn check_shape(transcript: &Transcript) -> Result<(), TestCaseError> {
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

/// Nothing runs in a turn that is over (R-X-02), and no question is open in it (R-X-11).
fn check_ended(transcript: &Transcript) -> Result<(), TestCaseError> {
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

type Held = (ToolState, Option<Telling>);

/// The state of every call, with who told its end.
fn tool_states(transcript: &Transcript) -> HashMap<String, Held> {
    let parts = transcript.turns.iter().flat_map(|turn| &turn.parts);
    parts
        .filter_map(|part| Some((as_tool(part)?, part.origin.ranks.holder(Field::State))))
        .filter(|(tool, _)| !tool.call_id.is_empty())
        .map(|(tool, holder)| (tool.call_id, (tool.state, holder)))
        .collect()
}

/// Whether a call may go from one state to the other. What the end rule inferred has no holder
/// and yields to what is told; what is told yields to a stronger telling only.
fn may_follow((from, holder): Held, (to, next): Held) -> bool {
    match (from.is_terminal(), to.is_terminal()) {
        _ if from == to => true,
        (false, false) => from < to,
        (false, true) => true,
        (true, false) => false,
        (true, true) => {
            holder.is_none()
                || next > holder
                || (from == ToolState::Interrupted && to == ToolState::Denied)
        }
    }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn law_3_the_assembler_is_pure_and_total(script in ALL.script_with_repeats(40)) {
        // R-X-03
        let events = events(script);
        prop_assert_eq!(folded(&events), folded(&events));
    }

    #[test]
    fn law_3_ids_and_places_are_unique_whatever_is_told(script in ALL.script_with_repeats(30)) {
        // R-003-01 R-003-03 C-02
        let mut run = fold([]);
        for line in script {
            run.tell(line);
            check_shape(&run.transcript())?;
        }
    }

    #[test]
    fn law_1_order_is_kept_by_sensible_sources(
        script in Alphabet { nonsense: false, ..ALL }.script_with_repeats(30),
    ) {
        // R-000-01 R-003-01 R-003-03 C-02
        let mut run = fold([]);
        for line in script {
            run.tell(line);
            check_shape(&run.transcript())?;
        }
    }

    #[test]
    fn nothing_runs_in_a_turn_that_is_over(
        script in Alphabet { nonsense: false, ..ALL }.script_with_repeats(30),
    ) {
        // R-X-02 R-X-11 R-000-08
        let mut run = fold([]);
        for line in script {
            run.tell(line);
            check_ended(&run.transcript())?;
        }
    }

    #[test]
    fn no_state_of_a_call_moves_backward(
        script in Alphabet { nonsense: false, ..ALL }.script_with_repeats(30),
    ) {
        // R-003-06 R-003-07
        let mut run = fold([]);
        let mut before = HashMap::new();
        for line in script {
            run.tell(line);
            let states = tool_states(&run.transcript());
            for (call, from) in before {
                let to = states.get(&call);
                prop_assert!(to.is_some_and(|to| may_follow(from, *to)), "{call}: {from:?} → {to:?}");
            }
            before = states;
        }
    }

    #[test]
    fn no_told_end_of_an_agent_is_taken_back(script in ONE_SOURCE.script_with_repeats(30)) {
        // R-003-07 R-003-29 R-003-34: within one telling.
        use unspool_core::event::{AgentEnd, What};
        let mut run = fold([]);
        let mut told: HashMap<String, AgentEnd> = HashMap::new();
        for line in script {
            let what = line.what.clone();
            run.tell(line);
            if let What::AgentEnded { agent, end } = what && let Some(id) = agent.id {
                told.entry(id.to_string()).or_insert(end);
            }
            let turns = run.transcript().turns;
            for part in turns.iter().flat_map(|turn| &turn.parts) {
                if let Body::Agent(agents) = &part.body {
                    for agent in &agents.agents {
                        let expected = told.get(&agent.id).map(|end| match end {
                            AgentEnd::Completed => AgentState::Completed,
                            AgentEnd::Failed => AgentState::Failed,
                            AgentEnd::Interrupted => AgentState::Interrupted,
                        });
                        prop_assert!(
                            expected.is_none_or(|expected| expected == agent.state),
                            "{}", show(part)
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn law_2_a_batch_is_the_same_as_one_by_one(script in ALL.script_with_repeats(40)) {
        // R-X-03 R-000-14
        let events = events(script);
        let mut assembler = Assembler::new(session());
        let changes: Vec<Change> =
            events.iter().flat_map(|event| assembler.apply(event.clone())).collect();
        let mut mirror = new_mirror();
        mirror.apply_all(merged(changes));
        prop_assert_eq!(mirror.into_transcript(), folded(&events));
    }

    #[test]
    fn law_2_changes_alone_rebuild_the_session(script in ALL.script_with_repeats(40)) {
        // R-000-14 R-003-48: also after they went over a wire.
        let events = events(script);
        let mut assembler = Assembler::new(session());
        let mut mirror = new_mirror();
        for event in &events {
            for change in assembler.apply(event.clone()) {
                let json = serde_json::to_string(&change).unwrap();
                mirror.apply(serde_json::from_str(&json).unwrap());
            }
        }
        let transcript = mirror.into_transcript();
        prop_assert_eq!(&transcript, &folded(&events));
        let json = serde_json::to_string(&transcript).unwrap();
        prop_assert_eq!(serde_json::from_str::<Transcript>(&json).unwrap(), transcript);
    }

    #[test]
    fn law_2_live_is_stored(
        script in Alphabet { generations: false, nonsense: false, ..ALL }.script(30),
        cut in any::<prop::sample::Index>(),
    ) {
        // R-000-14 R-X-03 C-21. No delta is told on both sides of the cut: which deltas a growing
        // text has is not in the transcript, and the recorder's keys keep them apart. A new
        // process begins its streams anew, so generations do not reach over the cut either.
        let events = events(script);
        let (before, after) = events.split_at(cut.index(events.len()));
        let mut mirror = new_mirror();
        let mut assembler = Assembler::new(session());
        before.iter().for_each(|event| mirror.apply_all(assembler.apply(event.clone())));
        let mut assembler = Assembler::resume(&mirror.rows());
        after.iter().for_each(|event| mirror.apply_all(assembler.apply(event.clone())));
        prop_assert_eq!(mirror.into_transcript(), folded(&events));
    }

    #[test]
    fn law_2_live_is_stored_for_one_source(
        script in ONE_SOURCE.script(30),
        cut in any::<prop::sample::Index>(),
    ) {
        // R-000-14 R-X-03 C-21: the usual case by itself.
        let events = events(script);
        let (before, after) = events.split_at(cut.index(events.len()));
        let mut mirror = new_mirror();
        let mut assembler = Assembler::new(session());
        before.iter().for_each(|event| mirror.apply_all(assembler.apply(event.clone())));
        let mut assembler = Assembler::resume(&mirror.rows());
        after.iter().for_each(|event| mirror.apply_all(assembler.apply(event.clone())));
        prop_assert_eq!(mirror.into_transcript(), folded(&events));
    }

    #[test]
    fn law_9_memory_is_bounded(
        script in Alphabet { nonsense: false, ..ALL }.script_with_repeats(40),
    ) {
        // R-X-14: letting go of all that is over, after every event, changes nothing.
        let events = events(script);
        prop_assert_eq!(released(&events), folded(&events));
    }

    #[test]
    fn law_5_twice_is_once(
        script in Alphabet { nameless: false, ..ONE_SOURCE }.script(30),
    ) {
        // R-001-28
        let events = events(script);
        let once = folded(&events);
        let twice = folded(&[events.clone(), events].concat());
        prop_assert_eq!(twice, once);
    }
}

/// Folds events as the recorder does: what is over leaves memory, and comes back when needed.
fn released(events: &[Event]) -> Transcript {
    let mut assembler = Assembler::new(session());
    let mut mirror: Mirror = new_mirror();
    for event in events {
        for turn in assembler.needs(event) {
            let stored = mirror.find_turn(turn).unwrap().clone();
            assembler.restore(&stored);
        }
        mirror.apply_all(assembler.apply(event.clone()));
        for turn in mirror.turn_ids() {
            assembler.release(turn);
        }
    }
    mirror.into_transcript()
}
