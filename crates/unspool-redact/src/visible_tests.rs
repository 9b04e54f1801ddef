//! Keys that escapes, invisible characters and continued lines split.

use super::VisibleText;
use crate::tests::{Planted, planted};
use crate::{Redactor, Rules};

/// What programs and people put into a key.
const HIDDEN: &[&str] = &[
    "\u{1b}[01;31m\u{1b}[K",
    "\u{1b}[0m",
    "\u{1b}[38;2;1;2;3m",
    "\u{1b}(B\u{1b}[m",
    "\u{1b}]8;;https://example.org/a\u{1b}\\",
    "\u{1b}]8;;\u{7}",
    "\u{9b}1m",
    "\u{200b}",
    "\u{200d}",
    "\u{2060}",
    "\u{feff}",
    "\u{ad}",
    "\\\n",
    "\\\r\n",
    "\\u001b[31m",
    "\\x1b[0m",
    "^[[1;32m",
];

/// A text with something hidden after each of the given offsets.
fn hide(text: &str, hidden: &str, places: &[usize]) -> String {
    let mut out = String::new();
    let mut copied = 0;
    for place in places {
        let place = text.floor_char_boundary(*place);
        out.push_str(&text[copied..place]);
        out.push_str(hidden);
        copied = place;
    }
    out + &text[copied..]
}

/// A hidden piece between a backslash and its letter would change what the text says.
fn is_plain(case: &Planted) -> bool {
    !case.text.contains(['\\', '\u{1b}'])
}

#[test]
fn a_split_secret_is_found_whole() {
    let rules = Rules::standard();
    let mut wrong = Vec::new();
    // Where a key id is cut, the name `Credential` alone decides, and more is replaced.
    let is_whole = |case: &&Planted| is_plain(case) && !case.text.contains("Credential=");
    for case in planted().iter().filter(is_whole) {
        let (before, after) = case.text.split_once(&case.secret).unwrap();
        for hidden in HIDDEN {
            let length = case.secret.len();
            let secret = hide(&case.secret, hidden, &[2, length / 2, length - 1]);
            let found =
                Redactor::new(&rules).text(&format!("{before}{secret}{after}")).into_owned();
            if found != case.redacted {
                wrong.push(format!("{hidden:?} in {}: {}\n  → {found:?}", case.kind, case.text));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_split_name_marks_its_value() {
    let rules = Rules::standard();
    let mut wrong = Vec::new();
    for case in planted().iter().filter(|case| is_plain(case)) {
        let (before, after) = case.text.split_once(&case.secret).unwrap();
        for hidden in HIDDEN {
            let before = hide(before, hidden, &[before.len() / 2]);
            let text = format!("{before}{}{after}", case.secret);
            let found = Redactor::new(&rules).text(&text).into_owned();
            let expected = format!("{before}[redacted:{}:1]{after}", case.kind);
            if found != expected {
                wrong.push(format!("{hidden:?} before {}: {text:?}\n  → {found:?}", case.kind));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn output_of_grep_and_jq() {
    let rules = Rules::standard();
    let redacted = |text: &str| Redactor::new(&rules).text(text).into_owned();
    assert_eq!(
        redacted("\u{1b}[35m.env\u{1b}[m:\u{1b}[1;31mDB_PASS\u{1b}[mWORD=correct7horse"),
        "\u{1b}[35m.env\u{1b}[m:\u{1b}[1;31mDB_PASS\u{1b}[mWORD=[redacted:password:1]"
    );
    assert_eq!(
        redacted(
            "\u{1b}[34;1m\"password\"\u{1b}[0m\u{1b}[1;39m:\u{1b}[0m \u{1b}[0;32m\"correct7horse\"\u{1b}[0m"
        ),
        "\u{1b}[34;1m\"password\"\u{1b}[0m\u{1b}[1;39m:\u{1b}[0m \u{1b}[0;32m\"[redacted:password:1]\"\u{1b}[0m"
    );
}

#[test]
fn a_coloured_secret_has_the_number_of_the_plain_one() {
    let rules = Rules::standard();
    let mut redactor = Redactor::new(&rules);
    redactor.text("password: correct7horse");
    assert_eq!(
        redactor.text("a \u{1b}[31mcorrect\u{1b}[m7horse b"),
        "a \u{1b}[31m[redacted:password:1] b"
    );
    // The address of a link is hidden, but it is part of the text.
    assert_eq!(
        redactor.text("\u{1b}]8;;https://h/?token=aB3dE5gH7jK9mN1p\u{1b}\\docs\u{1b}]8;;\u{1b}\\"),
        "\u{1b}]8;;https://h/?token=[redacted:token:1]\u{1b}\\docs\u{1b}]8;;\u{1b}\\"
    );
}

#[test]
fn offsets_map_back() {
    assert!(VisibleText::of("nothing is hidden: é → \\d ^[a-z]").is_none());
    let text = "\u{1b}[1ma\u{200b}b\u{1b}[mc";
    let visible = VisibleText::of(text).unwrap();
    assert_eq!(visible.text, "abc");
    let piece = |start, end| {
        let (start, end) = visible.original(start, end);
        &text[start..end]
    };
    assert_eq!(piece(0, 1), "a");
    assert_eq!(piece(0, 2), "a\u{200b}b");
    assert_eq!(piece(2, 3), "c");
}

#[test]
fn a_coloured_part_of_a_mark_is_not_searched_for_in_marks() {
    let rules = Rules::standard();
    let text = "curl -u a:\u{1b}[32m[redacted::";
    let once = Redactor::new(&rules).text(text).into_owned();
    assert_eq!(Redactor::new(&rules).text(&once), once);
}
