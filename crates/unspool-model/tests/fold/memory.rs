//! Memory: closed content leaves the assembler as changes and is not kept.

use unspool_model::assemble::{Assembler, TurnStub};
use unspool_model::change::Change;
use unspool_model::event::EndReason::Completed;
use unspool_model::event::ProseKind::Text;
use unspool_model::event::{AgentEnd, ToolEnd};
use unspool_model::provenance::Name;
use unspool_model::session::Turn;

use crate::script::*;

/// How often a word occurs in the assembler's state.
fn held(run: &Run, what: &str) -> usize {
    format!("{:?}", run.assembler).matches(what).count()
}

const PAYLOAD: &str = "payload payload payload payload payload payload";

#[test]
fn law_9_a_session_of_100k_events_keeps_no_closed_part() {
    // R-X-14
    let mut run = fold([]);
    let (turns, calls) = (500, 66);
    let mut last = None;
    for turn in 0..turns {
        let opened = run.apply(prompt(&format!("p{turn}")));
        let id = opened
            .iter()
            .find_map(
                |change| {
                    if let Change::TurnOpened { turn } = change { Some(*turn) } else { None }
                },
            )
            .unwrap();
        for call in 0..calls {
            let id = format!("t{turn}-{call}");
            run.apply_all([
                grew(Text, PAYLOAD),
                called_with(&id, "Bash", &format!("[{PAYLOAD:?}]")),
                ended(&id, ToolEnd::Completed, PAYLOAD),
            ]);
        }
        run.apply(over(Completed));
        // As the recorder does: release every settled turn that has been saved.
        if let Some(before) = last.replace(id) {
            assert!(run.assembler.release(before));
        }
    }
    assert!(turns * (calls * 3 + 2) >= 100_000);
    assert_eq!(held(&run, "PartFold {"), calls * 2, "those of the current turn only");
    assert_eq!(held(&run, "payload"), 0);
    assert_eq!(held(&run, "TurnFold {"), turns, "heads stay");
}

#[test]
fn law_9_what_a_long_turn_said_is_not_held() {
    // R-X-14: also before the turn is released.
    let mut run = reply([]);
    for nth in 0..1000 {
        let id = format!("t{nth}");
        run.apply_all([
            grew(Text, PAYLOAD),
            called_with(&id, "Bash", &format!("[{PAYLOAD:?}]")),
            output_grew(&id, PAYLOAD),
            ended(&id, ToolEnd::Completed, PAYLOAD),
            notice(None, PAYLOAD),
        ]);
    }
    assert_eq!(held(&run, "payload"), 0);
    run.apply(grew(Text, "payload"));
    assert_eq!(held(&run, "payload"), 1, "only what still grows");
}

#[test]
fn law_9_an_ended_call_does_not_hold_its_deltas() {
    // R-X-14: the keys of a hundred thousand pieces of output are not needed after the end.
    let mut run = reply([called("t1", "Bash")]);
    run.apply_all((0..1000).map(|_| output_grew("t1", "x")));
    run.apply(ended("t1", ToolEnd::Completed, "all"));
    assert_eq!(held(&run, "Key {"), 0);
}

#[test]
fn law_9_ends_of_agents_that_nobody_knows_do_not_pile_up() {
    // R-X-04: kept until a feed has their start, up to a limit.
    let orphan_agent_ends =
        (0..5000).map(|nth| agent_ended("", &format!("stranger{nth}"), AgentEnd::Completed));
    let mut run = reply(orphan_agent_ends);
    run.apply_all([over(Completed), prompt("p2")]);
    assert!(run.transcript().session.facts.orphan_agent_ends.len() <= 1024);
}

#[test]
fn law_9_deltas_are_never_coalesced_away() {
    // R-X-14
    let mut run = reply([]);
    let mut changes = Vec::new();
    for nth in 0..1000 {
        changes.extend(run.apply(grew(Text, &format!("{nth},"))));
    }
    let merged = unspool_model::change::merged(changes);
    let last = format!("{:?}", merged.last().unwrap());
    assert!(last.contains("998,999,") && last.contains("1,2,3,"));
    assert!(merged.len() < 10, "one growth is one change");
}

#[test]
fn law_9_only_what_is_over_can_be_let_go() {
    // Law 9 R-003-34
    let mut run = reply([called("t1", "Task"), background_started("t1", "a")]);
    let first = run.turn().id;
    assert!(!run.assembler.release(first), "it runs");
    run.apply(over(Completed));
    assert!(!run.assembler.release(first), "it is current");
    run.apply(prompt("p2"));
    assert!(!run.assembler.release(first), "its agent runs in the background");
    run.apply(agent_ended("t1", "a", AgentEnd::Completed));
    assert!(run.assembler.release(first));
}

#[test]
fn law_9_a_late_event_finds_a_turn_that_was_let_go() {
    // Law 9 R-000-06
    let mut run = reply([called("t1", "Bash"), over(Completed), prompt("p2")]);
    let first = run.transcript().turns[0].clone();
    assert!(run.assembler.release(first.id));
    let late = ended("t1", ToolEnd::Completed, "late");
    assert_eq!(run.assembler.needs(&late.clone().event(99)), [first.id]);
    run.assembler.restore(&first);
    run.apply(late);
    assert_eq!(run.tool("t1").output.as_deref(), Some("late"));
}

#[test]
fn law_9_the_digests_of_the_first_archives_lead_to_their_turns() {
    // Law 9: digests of short names were made in another way. Archives still have them.
    let run = reply([called("t1", "Bash"), over(Completed), prompt("p2")]);
    let transcript = run.transcript();
    let stubs = transcript.turns.iter().map(|turn| TurnStub {
        turn: Turn { parts: Vec::new(), steps: Vec::new(), ..turn.clone() },
        names: turn
            .parts
            .iter()
            .flat_map(|part| &part.origin.names)
            .filter(|name| !name.is_local())
            .map(Name::shared_digest)
            .collect(),
    });
    let assembler = Assembler::resume_from_stubs(&transcript.session, stubs);
    let late = ended("t1", ToolEnd::Completed, "late").event(99);
    assert_ne!(Name::Call("t1".into()).shared_digest(), Name::Call("t1".into()).digest());
    assert!(assembler.needs(&late).contains(&transcript.turns[0].id));
}

#[test]
fn law_9_the_end_of_an_agent_is_found_by_its_own_id_alone() {
    // Law 9 R-003-34: the turn is over, the agent's end was only inferred, then it is reported.
    let script = [
        called("t1", "Task"),
        agent_started("t1", "a"),
        ended("t1", ToolEnd::Completed, ""),
        over(Completed),
        prompt("p2"),
    ];
    let late = agent_ended("", "a", AgentEnd::Failed);
    let mut whole = reply(script.clone());
    whole.apply(late.clone());

    let mut run = reply(script);
    let first = run.transcript().turns[0].clone();
    assert!(run.assembler.release(first.id));
    for turn in run.assembler.needs(&late.clone().event(99)) {
        run.assembler.restore(&run.builder.find_turn(turn).unwrap().clone());
    }
    run.apply(late);
    assert_eq!(run.turns(), whole.turns());
}

#[test]
fn law_9_a_second_feed_finds_the_preamble() {
    // Law 9 C-02: the preamble was released before the first hook event.
    let mut run = fold([notice(Some("n1"), "one"), prompt("p1"), said(Text, "a")]);
    let preamble = run.transcript().turns[0].clone();
    assert!(run.assembler.release(preamble.id));
    let late = notice(Some("n2"), "two").hook();
    for turn in run.assembler.needs(&late.clone().event(99)) {
        run.assembler.restore(&run.builder.find_turn(turn).unwrap().clone());
    }
    run.apply(late);
    let places: Vec<_> = run.transcript().turns[0].parts.iter().map(|part| part.place).collect();
    assert_eq!(places.len(), 2);
    assert_ne!(places[0], places[1]);
}

#[test]
fn law_9_a_finished_block_of_a_turn_that_was_let_go_is_not_touched() {
    // Law 3 and law 9: no panic, whatever the stream still thinks is open.
    let mut run = fold([
        prompt("p1").stream(),
        grew_in(Text, block("m", 0), "a").stream(),
        said_in(Text, block("m", 0), "a").stream(),
        prompt("p1"),
        over(Completed),
        prompt("p2"),
        notice(Some("n"), "retry").stream().in_turn("p2"),
    ]);
    let first = run.transcript().turns[0].id;
    assert!(run.assembler.release(first));
    run.apply(step("m2").stream().in_turn("p2"));
    assert_eq!(run.turns()[0], [r#"text:"a""#]);
}
