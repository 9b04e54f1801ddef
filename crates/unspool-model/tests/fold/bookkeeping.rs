//! What the assembler keeps about parts, turns and feeds, so that an event costs the same in a long
//! turn as in a short one, equals a count from scratch after every event.

use proptest::prelude::*;
use unspool_model::assemble::{Assembler, prose_content_hash};
use unspool_model::event::{EventKind, ProseKind};
use unspool_model::provenance::{Feed, Name};

use crate::generators::{ALL, Alphabet, in_order};
use crate::laws::{Outcome, hold};
use crate::script::*;

const SENSIBLE: Alphabet = Alphabet { nonsense: false, ..ALL };

/// Lets deltas of hooks be fragments of texts that other feeds complete.
fn with_fragments(mut script: Vec<Line>) -> Vec<Line> {
    for line in &mut script {
        if let EventKind::ProseDelta { prose_kind: ProseKind::Text, block: Some(block), text } =
            &mut line.kind
            && line.feed != Feed::Log
            && let Name::Block(message, index) = block
        {
            let whole = prose_content_hash(ProseKind::Text, if text == "a" { "a" } else { "ab" });
            let nth = u32::from(message.as_ref() == "m2");
            *block = Name::ContentFragment(whole, nth, *index);
        }
    }
    script
}

fn check(assembler: &Assembler) -> Outcome {
    assembler.check_bookkeeping().map_err(TestCaseError::fail)
}

fn check_at_every_moment(script: &[Line]) -> Outcome {
    let mut run = fold([]);
    script.iter().try_for_each(|line| {
        run.apply(line.clone());
        check(&run.assembler)
    })
}

#[test]
fn the_sets_of_a_turn_equal_a_count_of_its_parts() {
    hold(300, ALL.script_with_repeats(40), check_at_every_moment);
    hold(300, SENSIBLE.script_with_repeats(60).prop_map(in_order), check_at_every_moment);
}

#[test]
fn fragments_follow_the_whole_text() {
    hold(300, ALL.script_with_repeats(40).prop_map(with_fragments), check_at_every_moment);
    hold(300, SENSIBLE.script_with_repeats(60).prop_map(with_fragments), check_at_every_moment);
}

#[test]
fn the_sets_of_a_turn_are_rebuilt_when_it_is_loaded() {
    hold(200, ALL.script_with_repeats(40).prop_map(with_fragments), |script| {
        let (stored, rest) = script.split_at(script.len() / 2);
        let mut run = fold(stored.to_vec()).restarted();
        check(&run.assembler)?;
        rest.iter().try_for_each(|line| {
            run.apply(line.clone());
            for turn in run.builder.turns() {
                if run.assembler.release(turn.id) {
                    run.assembler.restore(turn);
                }
            }
            check(&run.assembler)
        })
    });
}
