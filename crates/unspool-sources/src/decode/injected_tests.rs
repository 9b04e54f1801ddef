use super::*;

/// What a message becomes: `user: …` for words, `title: …` for context.
fn pieces(agent: &str, text: &str) -> Vec<String> {
    let shown = |piece| match piece {
        Piece::Words(words) => format!("user: {words}"),
        Piece::Injected(title, text) => format!("{title}: {text}"),
    };
    split(agent, text).into_iter().map(shown).collect()
}

#[test]
fn what_a_hook_adds_is_not_the_users() {
    let hook = "<hook_context>Use metric units &lt;b&gt;</hook_context>";
    let context = format!("Hook context: {hook}");
    let text = format!("{hook}\n\nFix the forecast.");
    assert_eq!(pieces("gemini", &text), [context.as_str(), "user: Fix the forecast."]);
    assert_eq!(pieces("gemini", hook), [context.as_str()]);
    let text = format!("Fix the forecast.\n{hook}");
    assert_eq!(pieces("gemini", &text), ["user: Fix the forecast.", context.as_str()]);
    // Another agent does not write this tag.
    assert_eq!(pieces("codex", &text), [format!("user: {text}")]);
}

#[test]
fn several_wrappers_keep_their_order() {
    let text = "<system-reminder>\none\n</system-reminder>\n<ide_selection>two</ide_selection>\n\
        words\nmore\n<system-reminder>three</system-reminder>\n\n<system-reminder>four\
        </system-reminder>\n";
    assert_eq!(
        pieces("claude-code", text),
        [
            "Reminder: <system-reminder>\none\n</system-reminder>",
            "Editor context: <ide_selection>two</ide_selection>",
            "user: words\nmore",
            "Reminder: <system-reminder>three</system-reminder>",
            "Reminder: <system-reminder>four</system-reminder>",
        ]
    );
}

#[test]
fn a_user_may_type_the_tags_of_an_agent() {
    for text in [
        "what does <system-reminder>x</system-reminder> mean?",
        "<system-reminder>x</system-reminder> is in my log, why?",
        "why is this in my log: <system-reminder>x</system-reminder>",
        "<system-reminder> has no end",
        "no start </system-reminder>",
        "</system-reminder>\n<system-reminder>",
        "<system-reminder><system-reminder>x</system-reminder>\nnot balanced",
        "  indented words\n",
        "",
    ] {
        assert_eq!(pieces("claude-code", text), [format!("user: {text}")], "{text}");
    }
}

#[test]
fn tags_in_tags_end_where_the_first_one_is_closed() {
    let inner = "<system-reminder>a <system-reminder>b</system-reminder> c</system-reminder>";
    let text = format!("{inner}\nwords");
    assert_eq!(pieces("droid", &text), [format!("Reminder: {inner}"), "user: words".to_owned()]);
    let text = format!("words\n{inner}");
    assert_eq!(pieces("droid", &text), ["user: words".to_owned(), format!("Reminder: {inner}")]);
}

#[test]
fn words_in_a_wrapper_of_cline_are_the_users() {
    let text = "<task>\nFix it.\n</task>\n\n<environment_details>\n# Time\n</environment_details>";
    assert_eq!(
        pieces("cline", text),
        ["user: Fix it.", "Environment: <environment_details>\n# Time\n</environment_details>"]
    );
    // The user's own tag, inside a sentence.
    assert_eq!(pieces("cline", "<task> is a tag"), ["user: <task> is a tag"]);
}

#[test]
fn an_editors_context_ends_at_the_request_for_codex() {
    let context =
        "# Context from my IDE setup:\n\n## Active file: src/a.rs\n\n## My request for Codex:";
    let text = format!("{context}\nFix it.\n");
    assert_eq!(
        pieces("codex", &text),
        [format!("Editor context: {context}"), "user: Fix it.".to_owned()]
    );
}

#[test]
fn a_split_reads_a_text_once() {
    // Ten thousand reminders, and as many openings without an end: both take linear time.
    let many = "<system-reminder>x</system-reminder>\n".repeat(10_000);
    assert_eq!(split("claude-code", &many).len(), 10_000);
    let open = "<system-reminder>\n".repeat(100_000);
    assert_eq!(split("claude-code", &open), [Piece::Words(&open)]);
}

#[test]
fn nothing_is_lost() {
    for (agent, text) in [
        (
            "gemini",
            "<hook_context>a</hook_context>\n\nb\n--- Content from referenced files ---\nc\n--- End of content ---",
        ),
        ("qwen", "words\n<system-reminder>x</system-reminder>"),
        ("cline", "words"),
    ] {
        let kept: String = split(agent, text)
            .into_iter()
            .map(|piece| match piece {
                Piece::Words(text) | Piece::Injected(_, text) => text,
            })
            .collect();
        let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        assert_eq!(letters(&kept), letters(text));
    }
}
