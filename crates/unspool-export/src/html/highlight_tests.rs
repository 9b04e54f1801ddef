//! Highlighting never changes the text (R-001-38), and finds the obvious tokens.

use super::*;

fn joined(text: &str, tokens: &[(Token, Range<usize>)]) -> String {
    tokens.iter().map(|(_, range)| &text[range.clone()]).collect()
}

fn of<'a>(language: &str, text: &'a str, token: Token) -> Vec<&'a str> {
    let all = tokens(language, text).unwrap();
    all.into_iter().filter(|(found, _)| *found == token).map(|(_, range)| &text[range]).collect()
}

#[test]
fn no_character_is_lost_or_moved() {
    // R-001-38
    let texts = [
        "fn main() { println!(\"π ≠ \\\"3\\\"\"); } // ü\r\n",
        "{\"a\": [1, -2.5e3, true, null, \"x\\\"y\\\\\"], \"broken",
        "<a href='x'>&amp;</a>\n<!-- -->",
        "",
        "\n\n",
        "\u{0}\u{feff}日本語\n\ttab",
        "def f(x):\n    return f'{x!r}' # no",
    ];
    for text in texts {
        for language in ["rust", "json", "html", "python", "typescript", "toml", "sh", "diff"] {
            let Some(tokens) = tokens(language, text) else { continue };
            assert_eq!(joined(text, &tokens), text, "{language}");
        }
    }
}

#[test]
fn r_001_38_code_is_coloured() {
    // R-001-38
    let rust = "// why\npub fn add(a: u8) -> u8 { a + 40 }";
    assert_eq!(of("rust", rust, Token::Comment), ["// why\n"]);
    assert_eq!(of("rust", rust, Token::Number), ["40"]);
    assert!(of("rust", rust, Token::Keyword).contains(&"pub"));
    assert_eq!(of("rust", rust, Token::Function), ["add"]);
    let typescript = "const x: string = 'y';";
    assert!(of("typescript", typescript, Token::String).contains(&"'y'"));
}

#[test]
fn r_000_22_json_is_coloured() {
    // R-000-22
    let json = r#"{"name": "x", "n": -1.5, "ok": true}"#;
    assert_eq!(of("json", json, Token::Property), [r#""name""#, r#""n""#, r#""ok""#]);
    assert_eq!(of("json", json, Token::String), [r#""x""#]);
    assert_eq!(of("json", json, Token::Number), ["-1.5"]);
    assert_eq!(of("json", json, Token::Literal), ["true"]);
}

#[test]
fn what_is_too_long_stays_as_it_is() {
    assert!(tokens("rust", &"x".repeat(MAX_LINE_BYTES + 1)).is_none());
    assert!(tokens("rust", &"x\n".repeat(MAX_TEXT_BYTES)).is_none());
    assert!(tokens("no such language", "x").is_none());
    let plain = paint(Some("rust"), &"<".repeat(MAX_LINE_BYTES + 1)).into_string();
    assert!(!plain.contains('<'));
}

#[test]
fn the_end_of_long_json_has_no_colours() {
    let list = format!("[1{}]", ",1".repeat(1_000_000));
    let spans = tokens("json", &list).unwrap();
    assert!(spans.len() < 600_000, "{} spans", spans.len());
    assert_eq!(spans.last().unwrap().1.end, list.len());
}
