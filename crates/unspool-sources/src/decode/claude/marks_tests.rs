use super::*;

#[test]
fn marks_are_distinguished_from_plain_text() {
    let cases: &[(&str, Mark<'_>)] = &[
        ("[Request interrupted by user]", Mark::Interruption),
        ("He wrote [Request interrupted by user]", Mark::None),
        (
            "<command-message>forecast</command-message>\n<command-name>/forecast</command-name>\n<command-args>Zürich</command-args>",
            Mark::Command("/forecast Zürich".into()),
        ),
        (
            "<command-name>/model</command-name>\n   <command-args></command-args>",
            Mark::Command("/model".into()),
        ),
        ("<bash-input>git status</bash-input>", Mark::Shell("git status")),
        (
            "<bash-stdout>a</bash-stdout><bash-stderr>b</bash-stderr>",
            Mark::ShellOutput { stdout: "a", stderr: "b" },
        ),
        ("Stop hook feedback:\nmore", Mark::HookFeedback("more")),
        ("Explain <command-name> to me", Mark::None),
        ("<command-name> is what?", Mark::None),
        ("<command-name>/x</command-name> is what?", Mark::None),
        ("<bash-input>ls</bash-input> is in my log", Mark::None),
        ("<task-notification> is what?", Mark::None),
        ("<user-memory-input>use tabs</user-memory-input>", Mark::Command("# use tabs".into())),
        ("<local-command-stderr>no</local-command-stderr>", Mark::CommandOutput("no")),
    ];
    for (text, expected) in cases {
        assert_eq!(&mark(text), expected, "{text}");
    }
}
