//! The cases of R-004-09 in the requirement's own notation, with `No` (a notice) for transparent
//! kinds, and the laws as properties.

use proptest::prelude::*;
use unspool_model::id::{Id, PartId};
use unspool_model::part::{Body, Notice, Place, Reasoning, Text};
use unspool_model::provenance::Origin;

use super::*;

fn part(word: &str, at: usize) -> Part {
    let body = match word {
        "Th" => Body::Reasoning(Reasoning::default()),
        "Tx" => Body::Text(Text::default()),
        "To" => Body::Tool(Box::default()),
        "No" => Body::Notice(Notice::default()),
        other => panic!("no such part: {other}"),
    };
    Part {
        id: PartId(Id::derive([at.to_le_bytes().as_slice()])),
        place: Place(at as i64 * 2),
        step: None,
        started: None,
        ended: None,
        evidence: Vec::new(),
        origin: Origin::default(),
        body,
    }
}

/// Reads `Th,To,Tx`.
fn parts(words: &str) -> Vec<Part> {
    let words = words.split(',').map(str::trim).filter(|word| !word.is_empty());
    words.enumerate().map(|(at, word)| part(word, at)).collect()
}

fn word(part: &Part) -> &'static str {
    match role(part.body.kind()) {
        TextRole::Reasoning => "Th",
        TextRole::Text => "Tx",
        TextRole::Tool => "To",
        TextRole::Transparent => "No",
    }
}

/// Writes `{Th,To}|To,Tx`: bars around blocks, commas between single parts.
fn written(pieces: &[TurnSegment]) -> String {
    let mut out = String::new();
    let mut bar = false;
    for piece in pieces {
        let words = piece.parts().map(word).collect::<Vec<_>>().join(",");
        let (text, block) = match piece {
            TurnSegment::Block(_) => (format!("{{{words}}}"), true),
            TurnSegment::Part(_) => (words, false),
        };
        if !out.is_empty() {
            out.push(if bar || block { '|' } else { ',' });
        }
        out.push_str(&text);
        bar = block;
    }
    out
}

fn check(cases: &[(&str, &str)], rule: SegmentRule) {
    for (input, expected) in cases {
        assert_eq!(written(&segment(&parts(input), true, rule)), *expected, "[{input}]");
    }
}

#[test]
fn the_cases_of_the_default_rule() {
    // R-004-09 R-004-10
    check(
        &[
            ("Th,To,Th,Tx", "{Th,To,Th}|Tx"),
            ("Th,To,To,Tx", "{Th,To}|To,Tx"),
            ("Tx,To", "Tx,To"),
            ("Th", "{Th}"),
            ("To,Th,Tx", "To|{Th}|Tx"),
            ("Th,To,Th,To,Tx,Th,To", "{Th,To,Th,To}|Tx|{Th,To}"),
            ("Th,Tx,Th,To,Tx", "{Th}|Tx|{Th,To}|Tx"),
            ("", ""),
            // R-004-08, and a block that directly follows a closed one (R-004-05).
            ("Th,Th,Th", "{Th,Th,Th}"),
            ("Th,To,To,Th,Tx", "{Th,To}|To|{Th}|Tx"),
        ],
        SegmentRule::Default,
    );
}

#[test]
fn until_text_keeps_tools_in_the_block() {
    // C-08
    check(
        &[
            ("Th,To,To,Tx", "{Th,To,To}|Tx"),
            ("Th,To,To", "{Th,To,To}"),
            ("Th,To,To,Th,To,Tx,To,To", "{Th,To,To,Th,To}|Tx,To,To"),
            ("To,To,Th,To,To,Tx,Th", "To,To|{Th,To,To}|Tx|{Th}"),
            ("Tx,To", "Tx,To"),
            ("Th,To,No,To,No,Tx", "{Th,To,No,To}|No,Tx"),
        ],
        SegmentRule::UntilText,
    );
}

#[test]
fn other_kinds_are_transparent_and_stay_where_they_stand() {
    check(
        &[
            ("No", "No"),
            ("No,Th,No", "No|{Th}|No"),
            ("Th,No,Th,Tx", "{Th,No,Th}|Tx"),
            ("Th,No,To,No,Th,No,Tx", "{Th,No,To,No,Th}|No,Tx"),
            ("Th,To,No,To,Tx", "{Th,To}|No,To,Tx"),
            ("Th,To,No", "{Th,To}|No"),
        ],
        SegmentRule::Default,
    );
}

#[test]
fn without_thinking_mode_there_are_no_blocks() {
    // R-004-11, C-10: reasoning is kept, as an ordinary part.
    let parts = parts("Th,To,Th,Tx");
    for rule in [SegmentRule::Default, SegmentRule::UntilText] {
        assert_eq!(written(&segment(&parts, false, rule)), "Th,To,Th,Tx");
    }
}

#[test]
fn a_block_counts_its_own_tools() {
    // R-004-13
    let parts = parts("Th,To,No,Th,To,To,Tx");
    let pieces = segment(&parts, true, SegmentRule::Default);
    let counts: Vec<usize> = pieces.iter().map(TurnSegment::tool_count).collect();
    assert_eq!(counts, [2, 1, 0]);
}

fn any_parts() -> impl Strategy<Value = Vec<Part>> {
    proptest::collection::vec(prop::sample::select(vec!["Th", "To", "Tx", "No"]), 0..40)
        .prop_map(|words| words.iter().enumerate().map(|(at, word)| part(word, at)).collect())
}

fn any_rule() -> impl Strategy<Value = SegmentRule> {
    prop::sample::select(vec![SegmentRule::Default, SegmentRule::UntilText])
}

proptest! {
    #[test]
    fn concatenation_gives_the_input(
        parts in any_parts(), thinking in any::<bool>(), rule in any_rule(),
    ) {
        // R-004-12: the very same parts, not only equal ones.
        let pieces = segment(&parts, thinking, rule);
        let joined: Vec<*const Part> =
            pieces.iter().flat_map(TurnSegment::parts).map(std::ptr::from_ref).collect();
        let input: Vec<*const Part> = parts.iter().map(std::ptr::from_ref).collect();
        prop_assert_eq!(joined, input);
    }

    #[test]
    fn a_block_begins_with_reasoning_and_holds_no_text(parts in any_parts(), rule in any_rule()) {
        // R-004-05 R-004-06
        for piece in segment(&parts, true, rule) {
            match &piece {
                TurnSegment::Block(block) => {
                    prop_assert!(block.first().is_some_and(|part| role(part.body.kind()) == TextRole::Reasoning));
                    prop_assert!(block.last().is_some_and(|part| role(part.body.kind()) != TextRole::Transparent));
                    prop_assert!(block.iter().all(|part| role(part.body.kind()) != TextRole::Text));
                }
                // All reasoning is in blocks.
                TurnSegment::Part(part) => prop_assert!(role(part.body.kind()) != TextRole::Reasoning),
            }
        }
    }

    #[test]
    fn default_blocks_follow_the_requirement_literally(parts in any_parts()) {
        // A second reading of R-004-05 to R-004-08, step by step over the parts that decide.
        let words: Vec<&str> = parts.iter().map(word).filter(|word| *word != "No").collect();
        let mut inside = Vec::new();
        let mut open = false;
        for (at, word) in words.iter().enumerate() {
            match *word {
                "Th" => { open = true; inside.push(true); }
                "Tx" => { open = false; inside.push(false); }
                _ => { inside.push(open); open = open && words.get(at + 1) == Some(&"Th"); }
            }
        }
        let mut found = Vec::new();
        for piece in segment(&parts, true, SegmentRule::Default) {
            let block = matches!(piece, TurnSegment::Block(_));
            found.extend(piece.parts().filter(|part| word(part) != "No").map(|_| block));
        }
        prop_assert_eq!(found, inside);
    }
}
