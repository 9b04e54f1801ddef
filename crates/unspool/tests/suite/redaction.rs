//! Redaction on every recording: hardly any false alarms, and nothing but secrets is changed.

use unspool_redact::{Redactor, Rules};

use crate::case::{all_cases, assert_none, captures, difference, fold_in, name};

/// The false alarms that all recordings together may raise.
const MAX_FALSE_ALARMS: usize = 3;

#[test]
fn ordinary_sessions_raise_hardly_an_alarm() {
    let rules = Rules::standard();
    let mut alarms = Vec::new();
    let mut sessions = 0;
    for case in all_cases() {
        let captures = captures(&case);
        let order: Vec<usize> = (0..captures.len()).collect();
        for session in &fold_in(&captures, &order).sessions {
            sessions += 1;
            let before = session.transcript();
            let mut after = before.clone();
            let mut redactor = Redactor::new(&rules);
            redactor.transcript(&mut after);
            if redactor.report().is_empty() {
                assert_eq!(before, after, "{}", name(&case));
                continue;
            }
            for secret in &redactor.report().secrets {
                let places: Vec<String> = secret
                    .places
                    .iter()
                    .map(|spot| format!("{:?} {:?} {}", spot.turn, spot.owner, spot.field))
                    .collect();
                let places = places.join(", ");
                let change = difference(&before, &after).unwrap_or_default();
                alarms.push(format!("{}: {secret:?}\n{places}\n{change}", name(&case)));
            }
        }
    }
    assert!(sessions > 100, "only {sessions} sessions were looked at");
    if alarms.len() > MAX_FALSE_ALARMS {
        assert_none(alarms);
    }
}
