use super::*;

fn text(input: &str) -> String {
    plain_text(input)
}

#[test]
fn colours_become_data() {
    let terminal =
        terminal("\x1b[1;31mred\x1b[0m \x1b[38;5;208mx\x1b[48;2;1;2;3my\x1b[m\x1b[94mz\nnext");
    let style = |foreground, background, bold| AnsiStyle {
        foreground,
        background,
        bold,
        ..AnsiStyle::default()
    };
    let runs: Vec<(&str, AnsiStyle)> =
        terminal.lines[0].iter().map(|run| (run.text.as_str(), run.style)).collect();
    assert_eq!(
        runs,
        [
            ("red", style(Some(Color::Indexed(1)), None, true)),
            (" ", AnsiStyle::default()),
            ("x", style(Some(Color::Indexed(208)), None, false)),
            ("y", style(Some(Color::Indexed(208)), Some(Color::Rgb(1, 2, 3)), false)),
            ("z", style(Some(Color::Indexed(12)), None, false)),
        ]
    );
    // A colour carries over to the next line.
    assert_eq!(terminal.lines[1][0].style.foreground, Some(Color::Indexed(12)));
}

#[test]
fn carriage_returns_and_backspaces_overwrite() {
    assert_eq!(text("10%\r50%\r100%\r\ndone"), "100%\ndone");
    assert_eq!(text("abc\x08\x08X"), "aXc");
    assert_eq!(text("Downloading\r\x1b[Kok"), "ok");
    assert_eq!(text("Downloading\x1b[2K\x1b[1Gok"), "ok");
}

// Law 8: every escape but colours is dropped, and none hides the text after it.
#[test]
fn hostile_escapes_are_dropped() {
    let cases = [
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;cm0gLXJmIC8=\x07clip", "clip"),
        ("\x1b[2J\x1b[H\x1b[1Ascreen", "screen"),
        ("\x1b[?1049h\x1b[?25lalt", "alt"),
        ("\x1bP1$r0m\x1b\\dcs", "dcs"),
        ("shown\x1b[2K still", "shown still"),
        ("\x1b[8mconcealed", "concealed"),
        ("unclosed \x1b]0;x\nstill here", "unclosed \nstill here"),
        ("nul\x00 del\x7f esc\x1b", "nul␀ del␡ esc"),
        ("c1 \u{9b}31m \u{85}", "c1 �31m �"),
    ];
    for (input, expected) in cases {
        assert_eq!(text(input), expected, "{input:?}");
    }
}

#[test]
fn long_output_is_bounded() {
    let many = terminal(&"x\n".repeat(MAX_LINES + 7));
    assert_eq!((many.lines.len(), many.omitted), (MAX_LINES, 7));
    let wide = terminal(&"y".repeat(MAX_CELLS + 1));
    assert_eq!(wide.lines.len(), 2);
    assert!(terminal("").lines.is_empty());
}
