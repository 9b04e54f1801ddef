//! Text that leaves in pieces: a secret is replaced by the same mark whenever it leaves.

use std::sync::Arc;

use super::tests::planted;
use super::*;

fn key(name: &str) -> Arc<str> {
    name.repeat(32).into()
}

/// A line of a log with a text in it, as an agent writes it.
fn line(text: &str) -> String {
    format!("{}\n", serde_json::json!({"type": "user", "message": {"content": text}}))
}

/// The tags of the marks in a text.
fn tags(text: &str) -> Vec<&str> {
    let marks = text.split("[redacted:").skip(1);
    marks.filter_map(|rest| rest.split(']').next()?.rsplit(':').next()).collect()
}

#[test]
fn a_secret_has_the_same_tag_in_every_order_and_only_with_the_same_key() {
    let rules = Rules::standard();
    let planted = planted();
    assert!(planted.len() > 100, "{}", planted.len());
    let mut all = Redactor::tagging(&rules, key("a"));
    let mut left = Vec::new();
    for case in &planted {
        let text = line(&case.text);
        let alone = Redactor::tagging(&rules, key("a")).line(&text).into_owned();
        let together = all.line(&text).into_owned();
        let other = Redactor::tagging(&rules, key("b")).line(&text).into_owned();
        if alone.contains(&escaped(&case.secret)) {
            left.push(&case.text);
            continue;
        }
        assert!(!tags(&alone).is_empty() && tags(&alone).iter().all(|tag| tag.len() == 6));
        assert_eq!(tags(&alone), tags(&together), "{}", case.text);
        assert_ne!(tags(&alone), tags(&other), "{}", case.text);
        // What was redacted stays as it is, here and by the numbers of an export.
        assert_eq!(Redactor::tagging(&rules, key("c")).line(&alone), alone);
        assert_eq!(Redactor::with(Some(&rules)).line(&alone), alone);
        assert!(serde_json::from_str::<serde_json::Value>(&alone).is_ok());
    }
    assert!(left.is_empty(), "{}: {left:#?}", left.len());
}

/// A text as it stands in JSON.
fn escaped(text: &str) -> String {
    let text = serde_json::to_string(text).unwrap();
    text.trim_matches('"').to_owned()
}

#[test]
fn a_secret_in_a_line_of_an_indented_document_is_found() {
    let rules = Rules::standard();
    let mut left = Vec::new();
    for case in planted() {
        let document =
            serde_json::json!({"messages": [{"content": case.text, "parts": [case.text]}]});
        let document = serde_json::to_string_pretty(&document).unwrap();
        let mut redactor = Redactor::tagging(&rules, key("a"));
        let redacted: Vec<String> =
            document.split_inclusive('\n').map(|line| redactor.line(line).into_owned()).collect();
        let redacted = redacted.concat();
        if redacted.contains(&escaped(&case.secret)) {
            left.push(redacted.clone());
        }
        assert!(serde_json::from_str::<serde_json::Value>(&redacted).is_ok(), "{redacted}");
    }
    assert!(left.is_empty(), "{}: {}", left.len(), left.concat());
}

#[test]
fn a_text_that_left_before_its_secret_was_found_is_outdated() {
    let rules = Rules::standard();
    let mut redactor = Redactor::tagging(&rules, key("a"));
    let early = line("use Zx9kQ2mN8vB4wP7t please");
    assert_eq!(redactor.line(&early), early, "nothing says that it is a secret");
    let count = redactor.secrets();
    assert!(!redactor.is_outdated(&early, count));
    redactor.line(&line("export DB_PASSWORD=Zx9kQ2mN8vB4wP7t"));
    assert!(redactor.secrets() > count && redactor.is_outdated(&early, count));
    let count_then = redactor.secrets();
    assert!(!redactor.is_outdated(&early, count_then), "that is known by then");
    // Behind an escape, where the text has a letter.
    assert!(redactor.is_outdated(&line("use\nZx9kQ2mN8vB4wP7t"), count));
    assert!(!redactor.is_outdated(&line("use something else"), count));
}

#[test]
fn what_is_collected_first_redacts_from_the_first_line_on() {
    let rules = Rules::standard();
    let lines = [line("use Zx9kQ2mN8vB4wP7t please"), line("DB_PASSWORD=Zx9kQ2mN8vB4wP7t")];
    let mut redactor = Redactor::tagging(&rules, key("a"));
    redactor.collect(true);
    lines.iter().for_each(|line| drop(redactor.line(line)));
    redactor.collect(false);
    assert_eq!(redactor.report().secrets.iter().map(|secret| secret.count).sum::<u64>(), 0);
    let redacted: Vec<String> = lines.iter().map(|line| redactor.line(line).into_owned()).collect();
    let mark = redacted[1].split_once("PASSWORD=").unwrap().1.split('"').next().unwrap();
    assert!(mark.starts_with("[redacted:password:"), "{mark}");
    assert_eq!(redacted[0], line(&format!("use {mark} please")));
}
