//! One field of an object goes in and out; the rest keeps its bytes.

use super::*;

#[test]
fn a_byte_order_mark_and_empty_files_are_no_obstacle() {
    let text = with_entry(Some("\u{feff}{}"), "servers", "a", "1").unwrap();
    assert_eq!(text, "\u{feff}{\n  \"servers\": {\n    \"a\": 1\n  }\n}\n");
    assert_eq!(
        with_entry(Some(" \n"), "servers", "a", "1").unwrap(),
        text.trim_start_matches('\u{feff}')
    );
    assert_eq!(without_entry(&text, "servers", "a").unwrap(), "\u{feff}{}\n");
}

#[test]
fn what_is_not_there_is_not_removed() {
    for text in ["{ }", "{\"servers\":{\"b\":1}}", "{\"other\":{\"a\":1}}"] {
        assert_eq!(without_entry(text, "servers", "a").unwrap(), text);
    }
}
