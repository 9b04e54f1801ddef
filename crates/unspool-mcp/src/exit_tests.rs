//! What leaves has no secrets and nothing that a person does not see.

use super::*;

#[test]
fn lines_and_tabs_stay_and_what_is_not_seen_goes() {
    let mut exit = Exit::new(None);
    assert_eq!(exit.text("a\n\tb é 漢 👩‍👩‍👧"), "a\n\tb é 漢 👩‍👩‍👧");
    assert_eq!(exit.text("\u{1b}[31mred\u{1b}[0m\u{7}"), "red");
    assert_eq!(exit.text("x\u{202e}y\u{200b}z\u{e0041}\u{2066}"), "xyz");
}

#[test]
fn a_secret_that_hidden_letters_split_is_still_one() {
    let rules = Rules::standard();
    let key = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
    let split = format!("the token {}\u{e0041}{} works", &key[..12], &key[12..]);
    let told = Exit::new(Some(&rules)).text(&split);
    assert_eq!(told, "the token [redacted:github-token:1] works");
}
