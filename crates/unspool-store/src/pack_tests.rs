use proptest::prelude::*;

use super::{escape_line_ends, unescape_line_ends};

#[test]
fn line_ends_are_written_out_and_come_back() {
    let raw = r#"{"stdout":"one\ntwo\tthree \\n \"x\" \u000a","empty":""}"#;
    let plain = unescape_line_ends(raw).unwrap();
    assert_eq!(plain, "{\"stdout\":\"one\ntwo\tthree \\\\n \\\"x\\\" \\u000a\",\"empty\":\"\"}");
    assert_eq!(escape_line_ends(&plain), raw);
    // Not reversible, so unchanged.
    assert_eq!(unescape_line_ends("{\"a\":\n\"b\\n\"}"), None);
    assert_eq!(unescape_line_ends("{\"a\":1}"), None);
}

proptest! {
    #[test]
    fn any_json_comes_back(text in any::<String>()) {
        let raw = serde_json::to_string(&[&text]).unwrap();
        if let Some(plain) = unescape_line_ends(&raw) {
            prop_assert_eq!(escape_line_ends(&plain), raw);
        }
    }
}
