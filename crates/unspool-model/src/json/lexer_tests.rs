#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::{Map, Number, Value};

use super::*;

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| Number::from_f64(number).map_or(Value::Null, Value::from)),
        ".*".prop_map(Value::from),
        "[\\\\\"/\u{1}-\u{1f}a\u{1f600}]*".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((".*", inner), 0..6)
                .prop_map(|fields| Value::from(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn text(of: &str, token: &Token) -> String {
    of[token.range.clone()].to_owned()
}

proptest! {
    /// Law 4: no byte of a text is left out, whatever the text is.
    #[test]
    fn tokens_concatenate_to_the_input(input in "[\\\\\"{}\\[\\],:a-zA-Z0-9 .+\\-\nä\u{1f600}]*") {
        let joined: String = Lexer::new(&input).map(|token| text(&input, &token)).collect();
        prop_assert_eq!(joined, input);
    }

    #[test]
    fn tokens_of_valid_json_are_those_of_the_parser(value in value()) {
        let compact = value.to_string();
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        let mut joined = String::new();
        for token in Lexer::new(&pretty) {
            let found = text(&pretty, &token);
            match token.kind {
                TokenKind::String => {
                    let content = serde_json::from_str::<String>(&found);
                    prop_assert!(content.is_ok(), "{found}");
                    let inner = &pretty[token.content().unwrap()];
                    prop_assert_eq!(format!("\"{inner}\""), &*found);
                }
                TokenKind::Number => prop_assert!(serde_json::from_str::<Number>(&found).is_ok()),
                TokenKind::Word => prop_assert!(["true", "false", "null"].contains(&&*found)),
                TokenKind::Punctuation(byte) => prop_assert_eq!(found.as_bytes(), [byte]),
                TokenKind::Other => {
                    prop_assert!(found.trim().is_empty(), "{found}");
                    continue;
                }
                TokenKind::OpenString => prop_assert!(false, "{found}"),
            }
            joined.push_str(&found);
        }
        prop_assert_eq!(joined, compact);
    }

    /// A reader that gets a text in pieces is inside a string where the lexer is.
    #[test]
    fn the_string_state_agrees_with_the_lexer(input in "[\\\\\"{}:,a1 \nä]*") {
        let mut state = StringState::default();
        for token in Lexer::new(&input) {
            for byte in text(&input, &token).bytes() {
                let before = state.is_inside();
                // Outside of a string a backslash escapes nothing.
                state.take(byte);
                let is_string = matches!(token.kind, TokenKind::String | TokenKind::OpenString);
                prop_assert!(is_string || !before && !state.is_inside());
            }
        }
    }
}

#[test]
fn a_string_that_is_cut_off_goes_to_the_end() {
    for (input, content) in [("\"a", "a"), ("\"a\\", "a\\"), ("\"a\\\"", "a\\\""), ("\"", "")] {
        let tokens: Vec<Token> = Lexer::new(input).collect();
        assert_eq!(tokens.len(), 1, "{input}");
        assert_eq!(tokens[0].kind, TokenKind::OpenString, "{input}");
        assert_eq!(&input[tokens[0].content().unwrap()], content);
    }
}

#[test]
fn a_key_is_a_string_before_a_colon() {
    let mut lexer = Lexer::new("{\"a\" \n: \"b\"}");
    let mut keys = Vec::new();
    while let Some(token) = lexer.next() {
        keys.extend((token.kind == TokenKind::String).then(|| lexer.is_before_colon()));
    }
    assert_eq!(keys, [true, false]);
}
