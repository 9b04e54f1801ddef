use proptest::prelude::*;
use unspool_model::json::Json;
use unspool_model::part::{Body, Data, Notice, Tool, ToolState};

use super::*;
use crate::block::{Block, Code, Diff, Field, Span, is_deceptive};
use crate::plain::paint;
use crate::present::{ansi, body, markdown};

fn text(text: &str) -> Block {
    Block::Paragraph { spans: vec![Span::plain(text)] }
}

fn painted(blocks: &[Block], width: usize) -> String {
    paint(&layout(blocks, width, &LineOptions::default()))
}

#[test]
fn wraps_by_what_characters_take() {
    // Ideographs and emoji take two columns; a family emoji is one grapheme.
    assert_eq!(painted(&[text("東京の天気予報は晴れ")], 12), "東京の天気予\n報は晴れ\n");
    assert_eq!(painted(&[text("abc 👨‍👩‍👧👨‍👩‍👧👨‍👩‍👧 def ghi")], 12), "abc 👨‍👩‍👧👨‍👩‍👧👨‍👩‍👧\ndef ghi\n");
    assert_eq!(painted(&[text("  indented words here")], 14), "  indented\nwords here\n");
    assert_eq!(painted(&[text("averyveryverylongword x")], 12), "averyveryver\nylongword x\n");
    assert_eq!(painted(&[text("a\tb\n\tc")], 20), "a   b\n    c\n");
}

#[test]
fn lists_hang() {
    let blocks = markdown::blocks("10. one two three four\n11. five\n    > quoted words are here");
    assert_eq!(
        painted(&blocks, 18),
        "10. one two three\n    four\n11. five\n\n    ▎ quoted words\n    ▎ are here\n"
    );
}

#[test]
fn long_output_is_cut() {
    let card = |state, output: &str| {
        let tool = Tool {
            name: "Bash".into(),
            input: Json::parse(r#"{"command":"seq"}"#),
            state,
            output: Some(output.into()),
            exit_code: Some(if state == ToolState::Failed { 1 } else { 0 }),
            ..Tool::default()
        };
        body(&Body::Tool(Box::new(tool)))
    };
    let output: Vec<String> = (1..=126).map(|n| n.to_string()).collect();
    let output = output.join("\n");
    let options = LineOptions { output_lines: Some(3), ..LineOptions::default() };
    let head = "● Bash  seq                         [OK]\n";
    let cut = paint(&layout(&card(ToolState::Completed, &output), 40, &options));
    assert_eq!(cut, format!("{head}  │ 1\n  │ 2\n  │ 3\n  │ … +123 lines\n"));
    // A failed command shows the end of its output.
    let cut = paint(&layout(&card(ToolState::Failed, &output), 40, &options));
    assert!(
        cut.ends_with("  │ … +123 lines\n  │ 124\n  │ 125\n  │ 126\n  │ exit code 1\n"),
        "{cut}"
    );
    let all = layout(&card(ToolState::Completed, &output), 40, &LineOptions::everything());
    assert_eq!(all.len(), 127);
}

#[test]
fn a_table_fits_or_becomes_records() {
    let blocks =
        markdown::blocks("| name | what it does |\n|--|--|\n| alpha | one two three four five |");
    assert_eq!(
        painted(&blocks, 24),
        "name  │ what it does\n──────┼─────────────────\nalpha │ one two three\n      │ four five\n"
    );
    assert_eq!(painted(&blocks, 12), "name\nalpha\nwhat it does\none two\nthree four\nfive\n");
}

#[test]
fn changed_words_have_a_style_of_their_own() {
    let diff = crate::present::diff::between(Some("a"), "let a = 1;", "let a = 2;", Some(1));
    let lines = layout(&[Block::Diff(diff)], 40, &LineOptions::default());
    let roles: Vec<(&str, TextRole)> =
        lines[2].runs.iter().map(|run| (run.text.as_str(), run.style.role)).collect();
    assert_eq!(
        roles,
        [
            ("1 ", TextRole::Gutter),
            ("+ let a = ", TextRole::Added),
            ("2", TextRole::AddedWord),
            (";", TextRole::Added)
        ]
    );
}

#[test]
fn a_path_gives_way_at_its_start() {
    let tool = Tool {
        name: "Read".into(),
        input: Json::parse(r#"{"file_path":"/home/dev/weather-app/src/cache.ts"}"#),
        ..Tool::default()
    };
    let line = painted(&body(&Body::Tool(Box::new(tool))), 40);
    assert_eq!(line, "○ Read  …her-app/src/cache.ts  [RUNNING]\n");
}

#[test]
fn marks_of_direction_and_controls_are_shown_not_obeyed() {
    let hostile = "a\x1b[31m\u{202e}b\u{2066}c\u{9b}d\re\u{7f}\u{0}";
    assert_eq!(make_visible(hostile), "a␛[31m‹U+202E›b‹U+2066›c�d␍e␡␀");
    assert_eq!(make_visible("a\u{e0068}\u{fff9}b"), "a‹U+E0068›‹U+FFF9›b");
}

/// All blocks that can hold agent text.
fn blocks_of(text: &str) -> Vec<Block> {
    let mut blocks = markdown::blocks(text);
    blocks.push(Block::Terminal(ansi::terminal(text)));
    blocks.push(Block::Code(Code { language: None, text: text.into(), first_line: Some(1) }));
    let diff = crate::present::diff::between(Some(text), "old", text, Some(1));
    blocks.push(Block::Diff(Diff { language: None, ..diff }));
    blocks.push(Block::Fields { fields: vec![Field::new(text, vec![Span::plain(text)])] });
    blocks.extend(body(&Body::Notice(Notice { code: text.into(), text: text.into() })));
    blocks.extend(body(&Body::Data(Data { kind: text.into(), payload: Json::string(text) })));
    for (name, state) in [
        ("Bash", ToolState::Completed),
        (text, ToolState::Failed),
        ("Edit", ToolState::Denied),
        ("Agent", ToolState::Completed),
    ] {
        let input = serde_json::json!({"command": text, "prompt": text, "file_path": text, "new_string": text, text: text});
        let tool = Tool {
            name: name.into(),
            input: Some(Json::from(input)),
            state,
            output: Some(text.into()),
            title: Some(text.into()),
            ..Tool::default()
        };
        blocks.extend(body(&Body::Tool(Box::new(tool))));
    }
    blocks
}

fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<String>(),
        any::<char>().prop_map(String::from),
        prop::sample::select(vec![
            "\x1b[31m",
            "\x1b]0;t\x07",
            "\r",
            "\n",
            "\t",
            "\x08",
            "\u{202e}",
            "\u{2066}",
            "\u{85}",
            "\u{9b}2J",
            "- ",
            "> ",
            "| a |\n|--|\n",
            "```\n",
            "[x](y)",
            "👨‍👩‍👧",
            "東",
            "\u{300}",
            "\u{feff}",
            "<b>",
            "\u{2028}",
        ])
        .prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    // Law 8: no agent text can send commands to the terminal, and no line is too wide.
    #[test]
    fn no_line_holds_a_control_character(text in hostile(), width in 12usize..90) {
        for options in [LineOptions::default(), LineOptions::everything()] {
            let lines = layout(&blocks_of(&text), width, &options);
            for line in &lines {
                for run in &line.runs {
                    prop_assert!(!run.text.chars().any(|c| c.is_control() || is_deceptive(c)), "{:?}", run.text);
                    let link = run.style.link.as_deref().unwrap_or_default();
                    prop_assert!(!link.chars().any(|c| c.is_control() || is_deceptive(c)));
                }
                prop_assert!(line.width() <= width, "{} > {width}: {:?}", line.width(), line.text());
            }
            prop_assert!(paint(&lines).lines().all(|line| !line.ends_with(' ')));
        }
    }
}

/// Tokens with arbitrary byte boundaries.
#[derive(Debug)]
struct Anywhere(Vec<usize>);

impl Highlighter for Anywhere {
    fn of(&self, _language: &str, text: &str) -> Option<std::sync::Arc<TokenSpans>> {
        let mut ends: Vec<usize> = self.0.iter().map(|at| at % (text.len() + 1)).collect();
        ends.sort_unstable();
        let mut stretches = Vec::new();
        for (at, pair) in ends.windows(2).enumerate() {
            let token = [Token::Keyword, Token::Plain, Token::String][at % 3];
            stretches.push((token, pair[0]..pair[1]));
        }
        Some(std::sync::Arc::new(stretches))
    }
}

#[test]
fn r_001_38_code_has_the_highlighted_colours() {
    // R-001-38
    let code =
        Code { language: Some("rust".into()), text: "fn a\n\tfn b".into(), first_line: None };
    let colours = Anywhere(vec![0, 2, 5, 9]);
    let options = LineOptions { colours: Some(&colours), ..LineOptions::default() };
    let lines = layout(&[Block::Code(code.clone())], 40, &options);
    let runs = |line: &Line| -> Vec<(String, TextRole)> {
        line.runs.iter().map(|run| (run.text.clone(), run.style.role)).collect()
    };
    let keyword = |text: &str| (text.to_owned(), TextRole::Token(Token::Keyword));
    let string = |text: &str| (text.to_owned(), TextRole::Token(Token::String));
    let plain = |text: &str| (text.to_owned(), TextRole::Plain);
    assert_eq!(runs(&lines[0]), [plain("  "), keyword("fn"), plain(" a")]);
    assert_eq!(runs(&lines[1]), [plain("  "), string("    fn "), plain("b")]);
    // A code block without a language is not highlighted.
    let silent = Code { language: None, ..code };
    let lines = layout(&[Block::Code(silent)], 40, &options);
    assert!(lines.iter().all(|line| line.runs.iter().all(|run| run.style.role == TextRole::Plain)));
}

proptest! {
    #[test]
    fn r_001_38_colours_change_no_character(
        pieces in prop::collection::vec(
            prop::sample::select(&[
                "a", "fn ", "\t", "  ", "\n", "\r\n", "東", "e\u{301}", "\u{301}", "👩\u{200d}", "💻",
                "🇩", "\u{1b}", "\u{202e}", "ل", "ا", "\u{200b}", "ｶ", "\u{ff9e}", "word-word",
            ][..]), 0..60),
        ends in prop::collection::vec(0_usize..400, 0..30),
        width in 12_usize..50,
        output_lines in prop::option::of(1_usize..6),
    ) {
        // R-001-38
        let code = Block::Code(Code {
            language: Some("x".into()),
            text: pieces.concat(),
            first_line: Some(7),
        });
        let colours = Anywhere(ends);
        let plain = LineOptions { output_lines, ..LineOptions::default() };
        let coloured = LineOptions { colours: Some(&colours), ..plain };
        let blocks = [Block::Quote { blocks: vec![code] }];
        prop_assert_eq!(
            paint(&layout(&blocks, width, &plain)),
            paint(&layout(&blocks, width, &coloured))
        );
    }
}
