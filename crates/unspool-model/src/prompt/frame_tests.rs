use super::*;

// R-002-13
#[test]
fn frames_are_found_wherever_they_stand() {
    let text = "before <unspool-adaptations version=\"7\" sha256=\"ab12\">\nBe brief.\n\
        </unspool-adaptations> between <unspool-adaptations ids=\"a.b, c\">x</unspool-adaptations>";
    let frames = adaptation_frames(text);
    let [first, second] = frames.as_slice() else { panic!("{frames:?}") };
    assert_eq!((&*first.content, first.version, &first.ids), ("Be brief.", Some("7"), &None));
    assert!(text[first.start..first.end].starts_with(PLAIN.start));
    assert!(text[first.start..first.end].ends_with(PLAIN.end));
    assert_eq!((&*second.content, second.version), ("x", None));
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
        "&lt;unspool-adaptations",
        "&lt;unspool-adaptations&gt;no end",
        "&lt;unspool-adaptations>a</unspool-adaptations>",
        "&lt;unspool-adaptations&gt;a</unspool-adaptations>",
        "<unspool-adaptations&gt;a&lt;/unspool-adaptations&gt;",
        "unspool-adaptations>a</unspool-adaptations>",
    ] {
        assert_eq!(adaptation_frames(text), [], "{text}");
    }
    // Many beginnings cost no more than their length.
    for beginning in
        [PLAIN.start, ESCAPED.start, "<unspool-adaptations>", "&lt;unspool-adaptations&gt;"]
    {
        assert_eq!(adaptation_frames(&beginning.repeat(200_000)), []);
    }
}

/// The text of a frame as Gemini sends and records it.
fn escaped(text: &str) -> String {
    text.replace('<', "&lt;").replace('>', "&gt;")
}

// R-002-13
#[test]
fn a_frame_whose_brackets_an_agent_escaped_has_its_text() {
    let written = |content: &str| {
        let digest = &sha256(content.as_bytes())[..16];
        format!(
            "<unspool-adaptations version=\"7\" ids=\"a.b c\" sha256=\"{digest}\">\n{content}\n\
             </unspool-adaptations>"
        )
    };
    for content in ["Be brief.", "Use Vec<T> & say a -> b.", "\n<br>\n", "Write &lt; in HTML."] {
        let text = format!("<hook_context>{}</hook_context>", escaped(&written(content)));
        let [frame] = adaptation_frames(&text).try_into().unwrap();
        assert_eq!((&*frame.content, frame.version), (content, Some("7")));
        assert_eq!(frame.ids.as_deref(), Some(&["a.b", "c"][..]));
        assert_eq!(&text[frame.start..frame.end], escaped(&written(content)));
        assert!(!frame.is_altered(), "{content}");
        let altered = text.replacen("sha256=\"", "sha256=\"0", 1);
        assert!(adaptation_frames(&altered)[0].is_altered());
    }
    // Both forms in one text, in their order.
    let both = format!("{} and {}", escaped(&written("one")), written("two"));
    let contents: Vec<_> = adaptation_frames(&both).into_iter().map(|it| it.content).collect();
    assert_eq!(contents, ["one", "two"]);
}
