//! One table goes in and out; all other lines stay.

use super::*;

const LINES: &str = "command = \"x\"\n";

#[test]
fn a_table_between_others_goes_with_what_is_below_it() {
    let text = "a = 1\n\n[s.ours]\ncommand = \"y\"\n[s.ours.env]\nK = \"v\"\n\n[s.other]\nb = 2\n";
    let without = without_table(text, "s", "ours").unwrap();
    assert_eq!(without, "a = 1\n\n[s.other]\nb = 2\n");
    let with = with_table(Some(text), "s", "ours", LINES).unwrap();
    assert_eq!(with, format!("{without}\n[s.ours]\n{LINES}"));
    assert_eq!(with_table(Some(&with), "s", "ours", LINES).unwrap(), with);
}

#[test]
fn a_header_in_a_text_is_no_header() {
    let text = "t = \"\"\"\n[s.ours]\nx\n\"\"\"\n[s.ours]\ncommand = \"x\"\n";
    assert!(without_table(text, "s", "ours").is_err());
    let text = "t = \"\"\"\n[s.ours]\n\"\"\"\n";
    assert_eq!(without_table(text, "s", "ours").unwrap(), text);
}
