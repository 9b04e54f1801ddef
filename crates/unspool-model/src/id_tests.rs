use super::*;
use crate::provenance::{Feed, Name};

#[test]
fn the_same_source_gives_the_same_id() {
    // R-003-01
    let id = SessionId::of("claude-code", "112b2623");
    assert_eq!(id, SessionId::of("claude-code", "112b2623"));
    assert_ne!(id, SessionId::of("codex", "112b2623"));
    assert_eq!(id.to_string().parse::<Id>(), Ok(id.0));
}

#[test]
fn fields_do_not_run_into_each_other() {
    assert_ne!(
        Id::derive([b"ab".as_slice(), b"c".as_slice()]),
        Id::derive([b"a".as_slice(), b"bc".as_slice()])
    );
}

#[test]
fn a_string_that_is_no_id_is_refused() {
    for text in ["", "short", "iiiiiiiiiiiiiiiiiiii", "0123456789abcdefghjk0"] {
        assert_eq!(text.parse::<Id>(), Err(NotAnId), "{text}");
    }
}

#[test]
fn names_in_ids_are_spelled_as_they_were_stored() {
    // An archive of an earlier build has parts with these ids.
    let spelled = [
        (Name::ByContent(7, 1), "Alike(7, 1)"),
        (Name::ContentFragment(7, 1, 2), "Piece(7, 1, 2)"),
        (Name::Nth(Feed::Stream, 3), "Nth(Stream, 3)"),
        (Name::Call("c".into()), "Call(\"c\")"),
        (Name::Block("m".into(), 4), "Block(\"m\", 4)"),
        (Name::Ending, "Ending"),
    ];
    for (name, text) in spelled {
        assert_eq!(name.id_text(), text);
    }
}
