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

#[test]
fn a_digest_can_be_saved_in_mid_stream() {
    use super::Sha256Stream;
    let text = "ab".repeat(500);
    for cut in [0, 1, 63, 64, 65, 999, 1000] {
        let mut stream = Sha256Stream::default();
        stream.update(&text.as_bytes()[..cut]);
        let saved = serde_json::to_string(&stream).unwrap();
        // The state is a block at most, whatever was read.
        assert!(saved.len() < 300, "{}", saved.len());
        let mut stream: Sha256Stream = serde_json::from_str(&saved).unwrap();
        stream.update(&text.as_bytes()[cut..]);
        assert_eq!(stream.hexadecimal(), super::sha256(text.as_bytes()), "{cut}");
    }
    for damaged in ["\"\"", "\"00\"", "\"zz\"", "7"] {
        assert!(serde_json::from_str::<Sha256Stream>(damaged).is_err(), "{damaged}");
    }
}
