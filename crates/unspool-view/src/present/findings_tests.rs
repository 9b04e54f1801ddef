use super::*;
use crate::lines::{LineOptions, layout};
use crate::plain;
use unspool_model::id::{Id, PartId};

fn finding(rule: Rule, title: &str) -> Finding {
    let part = Some(PartId(Id::derive([b"part".as_slice()])));
    Finding {
        rule,
        signature: String::new(),
        title: title.to_owned(),
        count: 3,
        opportunities: 1200,
        cost: Cost { calls: Some(3), duration_ms: Some(63_000), ..Cost::default() },
        evidence: vec![Evidence { turn: 2, step: None, part, what: "/w/a.rs".into() }],
    }
}

fn placed<'a>(finding: &'a Finding, title: Option<&'a str>) -> PlacedFinding<'a> {
    let session = SessionId(Id::derive([b"session".as_slice()]));
    let place = finding.evidence.first().map(|evidence| (session, title, evidence));
    PlacedFinding { finding, sessions: 1, place }
}

#[test]
fn findings_are_grouped_by_rule_with_their_next_step() {
    let (fails, slow) = (
        finding(Rule::FailsAgain, "Read failed 3 times"),
        finding(Rule::SlowStep, "Bash took 63 s"),
    );
    let blocks = blocks(&[placed(&slow, None), placed(&fails, Some("Fix the build"))], false);
    let text = plain::paint(&layout(&blocks, 100, &LineOptions::default()));
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let session = SessionId(Id::derive([b"session".as_slice()])).to_string();
    let show = format!("unspool show {} --part {}", &session[..8], fails.evidence[0].part.unwrap());
    assert_eq!(lines[0], "### The same failure again  1");
    assert_eq!(lines[1], "● Read failed 3 times");
    assert_eq!(lines[2], "3 of 1,200 calls · 3 calls, 1 m 3 s");
    assert_eq!(lines[3], "Fix the build, turn 2: /w/a.rs");
    assert_eq!(lines[4], show);
    assert!(lines[5].starts_with("What may help: "));
    assert_eq!(lines[6], "### Slow steps and waiting  1");
}

#[test]
fn a_long_list_says_how_to_see_the_rest() {
    let fails = finding(Rule::FailsAgain, "again");
    let many: Vec<PlacedFinding<'_>> = (0..8).map(|_| placed(&fails, None)).collect();
    let text = |all| plain::paint(&layout(&blocks(&many, all), 100, &LineOptions::default()));
    assert!(text(false).contains("and 3 more: add `--rule fails-again`"));
    assert_eq!((text(false).matches('●').count(), text(true).matches('●').count()), (5, 8));
}

#[test]
fn a_cost_says_what_was_measured() {
    let words = |it: Cost| cost(&it);
    assert_eq!(words(Cost::default()), "");
    let estimated = Cost {
        tokens: Some(2300),
        tokens_are_estimated: true,
        chars: Some(9200),
        ..Cost::default()
    };
    assert_eq!(words(estimated), "about 2,300 tokens");
    assert_eq!(words(Cost { chars: Some(9200), ..Cost::default() }), "9,200 characters");
}
