use super::write::{D2Keys, comment_text, quoted, tooltip_string};

#[test]
fn a_string_stays_what_it_is() {
    // R-002-26
    assert_eq!(quoted("a\"b\\c$d\ne\tf|g"), r#""a\"b\\c\$d\ne\tf|g""#);
    assert_eq!(quoted("\u{0}\u{1b}\r\n\u{202e}"), "\"␀␛\\n‹U+202E›\"");
    assert_eq!(quoted("\u{ffff}\u{fffe}"), "\"\u{fffd}\u{fffd}\"");
    assert_eq!(comment_text("a\nb\u{7}"), "a b␇");
}

#[test]
fn a_tooltip_has_no_tags() {
    assert_eq!(tooltip_string("&#xFFFF; &amp;"), "\"&\u{200b}#xFFFF; &amp;\"");
    assert_eq!(tooltip_string("a < b <c> </d> <"), "\"a < b <\u{200b}c> <\u{200b}/d> <\"");
}

#[test]
fn keys_are_their_own_whatever_their_case() {
    let mut keys = D2Keys::default();
    let all = ["a", "A", "_", "", "a (2)"].map(|id| keys.key(id));
    assert_eq!(all, ["\"a\"", "\"A (2)\"", "\"step\"", "\"step (2)\"", "\"a (2) (2)\""]);
    assert!(keys.key(&"k".repeat(5000)).len() < 300);
}
