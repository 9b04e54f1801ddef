use super::*;

// R-002-13
#[test]
fn frames_are_found_wherever_they_stand() {
    let text = "before <unspool-adaptations version=\"7\" sha256=\"ab12\">\nBe brief.\n\
        </unspool-adaptations> between <unspool-adaptations ids=\"a.b, c\">x</unspool-adaptations>";
    let frames = adaptation_frames(text);
    let [first, second] = frames.as_slice() else { panic!("{frames:?}") };
    assert_eq!((first.content, first.version, &first.ids), ("Be brief.", Some("7"), &None));
    assert!(text[first.start..first.end].starts_with(START));
    assert!(text[first.start..first.end].ends_with(END));
    assert_eq!((second.content, second.version), ("x", None));
    assert_eq!(second.ids.as_deref(), Some(&["a.b", "c"][..]));
}

#[test]
fn what_only_looks_like_a_frame_is_none() {
    for text in [
        "<unspool-adaptations",
        "<unspool-adaptations version=\"1\"",
        "<unspool-adaptations>no end",
        "<unspool-adaptationsx>a</unspool-adaptations>",
        "<unspool-adaptations <b>a</unspool-adaptations>",
        "</unspool-adaptations>",
    ] {
        assert_eq!(adaptation_frames(text), [], "{text}");
    }
    // Many beginnings cost no more than their length.
    let many = START.repeat(200_000);
    assert_eq!(adaptation_frames(&many), []);
}
