//! Several feeds of one session: their order of arrival does not change the result, and nothing
//! that only one of them has is lost.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::Value;

use unspool_sources::in_memory::SessionSet;

use crate::by_source::{assert_seen, by_source};
use crate::case::{
    Capture, all_cases, assert_none, captures, cases, difference, fold, fold_in,
    is_named_by_session, main_session, name, root,
};

fn ids(session_set: &SessionSet) -> BTreeSet<(&'static str, String)> {
    session_set.sessions.iter().map(|one| (one.agent, one.agent_session_id.clone())).collect()
}

/// The first difference between two ways to read a case, including sessions that only one of them
/// has.
fn any_difference(expected: &SessionSet, found: &SessionSet) -> Option<String> {
    if ids(expected) != ids(found) {
        return Some(format!("sessions {:?} and {:?}", ids(expected), ids(found)));
    }
    expected.sessions.iter().find_map(|one| {
        let id = &one.agent_session_id;
        let other = found.sessions.iter().find(|other| other.agent_session_id == *id)?;
        let differs = difference(&one.transcript(), &other.transcript())?;
        Some(format!("{id}: {differs}"))
    })
}

by_source!(feeds_of_a_case_share_one_session);

fn feeds_of_a_case_share_one_session(source: &str) {
    // Otherwise nothing would be compared: a file without a session id names its own session.
    let mut apart = Vec::new();
    for case in cases(source) {
        let captures = captures(&case);
        // A database is several logs, each of another session.
        let is_log = |file: &str| file == "log.db" || is_named_by_session(file);
        let logs = captures.iter().filter(|capture| is_log(&capture.file)).count();
        if captures.len() < 2 || logs > 1 {
            continue;
        }
        let found = (0..captures.len()).map(|at| ids(&fold_in(&captures, &[at])));
        let common = found.reduce(|one, other| one.intersection(&other).cloned().collect());
        if common.is_none_or(|common| common.is_empty()) {
            apart.push(name(&case));
        }
    }
    // A log with only a summary has no session id.
    let expected: &[&str] = if source == "claude-code" { &["v1-0-100-summary-only"] } else { &[] };
    assert_eq!(apart, expected, "their feeds are of several sessions");
}

fn orders(count: usize) -> Vec<Vec<usize>> {
    match count {
        1 => vec![vec![0]],
        2 => vec![vec![0, 1], vec![1, 0]],
        _ => vec![
            vec![0, 1, 2],
            vec![0, 2, 1],
            vec![1, 0, 2],
            vec![1, 2, 0],
            vec![2, 0, 1],
            vec![2, 1, 0],
        ],
    }
}

by_source!(feeds_in_any_order_give_the_same_parts);

fn feeds_in_any_order_give_the_same_parts(source: &str) {
    // Law 5; R-X-03.
    let mut three = 0;
    let mut differences = Vec::new();
    for case in cases(source) {
        let captures = captures(&case);
        three += usize::from(captures.len() == 3);
        // A database is several logs, each of another session.
        if captures.len() > 3 {
            continue;
        }
        let orders = orders(captures.len());
        let first = fold_in(&captures, &orders[0]);
        for order in &orders[1..] {
            let other = fold_in(&captures, order);
            if let Some(difference) = any_difference(&first, &other) {
                differences.push(format!("{} in order {order:?}: {difference}", name(&case)));
                break;
            }
        }
    }
    assert_none(differences);
    assert_seen(source, three, [0, 0, 0, 55, 0, 2, 0, 6, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
}

by_source!(feeds_interleaved_as_they_arrived_give_the_same_parts);

fn feeds_interleaved_as_they_arrived_give_the_same_parts(source: &str) {
    let mut differences = Vec::new();
    for case in cases(source) {
        let captures = captures(&case);
        if captures.len() < 2 {
            continue;
        }
        let expected = fold_in(&captures, &(0..captures.len()).collect::<Vec<_>>());
        let interleaved = fold(&captures, arrival(&case, &captures));
        if let Some(difference) = any_difference(&expected, &interleaved) {
            differences.push(format!("{}: {difference}", name(&case)));
        }
    }
    assert_none(differences);
}

/// The first difference if one of two captures comes whole at some line of the other one. At most
/// `MAX_CUTS` lines of each are tried.
fn difference_at_any_cut(captures: &[Capture]) -> Option<String> {
    const MAX_CUTS: usize = 24;
    let expected = fold_in(captures, &[0, 1]);
    for (whole, cut) in [(0, 1), (1, 0)] {
        let lines = captures[cut].lines.len();
        for at in (0..=lines).step_by(lines.div_ceil(MAX_CUTS).max(1)) {
            let between = vec![whole; captures[whole].lines.len()];
            let order = [vec![cut; at], between, vec![cut; lines - at]].concat();
            if let Some(difference) = any_difference(&expected, &fold(captures, order)) {
                let file = &captures[cut].file;
                return Some(format!("after {at} lines of {file}: {difference}"));
            }
        }
    }
    None
}

#[test]
fn chat_law_1_a_capture_and_a_log_may_interrupt_each_other_anywhere() {
    // Law 5: every recorded pair of an ACP capture and the agent's own log.
    let mut differences = Vec::new();
    for case in all_cases().into_iter().filter(|case| name(case).starts_with("acp-")) {
        let captures = captures(&case);
        if captures.len() == 2 {
            let difference = difference_at_any_cut(&captures);
            differences.extend(difference.map(|found| format!("{}: {found}", case.display())));
        }
    }
    assert_none(differences);
}

#[test]
fn a_prompt_of_a_capture_may_be_several_turns_of_the_log() {
    // Law 5. Without the records that say who began a turn, all output belongs to the one prompt.
    let case = root().join("fixtures/claude-code/acp-subagents");
    let mut captures = captures(&case);
    let lines = captures[1].lines.len();
    let says_who = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("_claude/origin");
    captures[1].lines.retain(|line| !says_who(&line.bytes));
    assert_eq!(captures[1].lines.len(), lines - 2);
    assert_eq!(difference_at_any_cut(&captures), None);
    let both = fold_in(&captures, &[1, 0]);
    let turns = main_session(&both).transcript().turns;
    let steps: Vec<usize> = turns.iter().map(|turn| turn.steps.len()).collect();
    assert_eq!(steps, [2, 1, 1]);
}

#[test]
fn a_reply_that_was_cut_stands_before_the_one_that_followed_it() {
    // Laws 1 and 5: Qwen Code's log has the second attempt alone. A model does not repeat itself.
    let mut captures = captures(&root().join("fixtures/qwen/reply-cut-and-retried"));
    let attempts = captures[1].lines.iter_mut();
    for line in attempts.take_while(|line| !line.bytes.windows(7).any(|word| word == b"\"retry\""))
    {
        let text = String::from_utf8_lossy(&line.bytes);
        line.bytes = text.replace("First I look", "At first I look").into_bytes();
    }
    assert_eq!(difference_at_any_cut(&captures), None);
    for order in [[0, 1], [1, 0]] {
        let transcript = main_session(&fold_in(&captures, &order)).transcript();
        let parts = transcript.turns.iter().flat_map(|turn| &turn.parts);
        let found: Vec<&str> = parts.map(|part| part.body.kind().name()).collect();
        let expected = ["reasoning", "notice", "reasoning", "text", "tool", "text"];
        assert_eq!((transcript.turns.len(), &*found), (1, &expected[..]), "{order:?}");
    }
}

#[test]
fn hooks_that_were_installed_in_the_middle_of_a_turn_may_come_first() {
    // Law 5, R-003-11: without prompts, hooks know no turn.
    let mut differences = Vec::new();
    let mut compared = 0;
    for case in cases("claude-code") {
        let mut captures = captures(&case);
        captures.retain(|capture| capture.file != "stream.jsonl");
        if captures.len() != 2 {
            continue;
        }
        for line in &mut captures[1].lines {
            let mut record: Value = serde_json::from_slice(&line.bytes).unwrap_or_default();
            if record["hook_event_name"] == "UserPromptSubmit" {
                record = serde_json::json!({ "hook_event_name": "none" });
            }
            if let Some(fields) = record.as_object_mut() {
                fields.remove("prompt_id");
            }
            line.bytes = serde_json::to_vec(&record).unwrap();
        }
        compared += 1;
        let log_first = fold_in(&captures, &[0, 1]);
        let difference = any_difference(&log_first, &fold_in(&captures, &[1, 0]));
        differences.extend(difference.map(|found| format!("{}: {found}", name(&case))));
    }
    assert!(compared > 40, "{compared} cases");
    assert_none(differences);
}

/// The captures' lines in order of arrival. Hooks have recorded arrival times, log records have
/// timestamps, and a stream frame has the time of the log record of its message.
fn arrival(case: &std::path::Path, captures: &[Capture]) -> Vec<usize> {
    let received: Vec<f64> = std::fs::read_to_string(case.join("hooks.arrival"))
        .unwrap_or_default()
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok()?["recv_ms"].as_f64())
        .collect();
    let mut messages: HashMap<String, f64> = HashMap::new();
    let mut times: Vec<(f64, usize)> = Vec::new();
    for (at, capture) in captures.iter().enumerate() {
        let mut last = 0.0;
        for (nth, line) in capture.lines.iter().enumerate() {
            let record: Value = serde_json::from_slice(&line.bytes).unwrap_or_default();
            let message = record["message"]["id"]
                .as_str()
                .or(record["api_message_id"].as_str())
                .or(record["event"]["message"]["id"].as_str())
                .unwrap_or_default()
                .to_owned();
            let found = record["timestamp"].as_str().and_then(|text| {
                text.parse::<jiff::Timestamp>().ok().map(|at| at.as_millisecond() as f64)
            });
            let time = match capture.file.as_str() {
                "hooks.jsonl" => received.get(nth).copied(),
                "stream.jsonl" => messages.get(&message).copied().or(found),
                _ => found,
            };
            // Within one capture the line order wins.
            last = time.unwrap_or(last).max(last);
            if capture.file == "log.jsonl" && !message.is_empty() {
                messages.entry(message).or_insert(last);
            }
            times.push((last, at));
        }
    }
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    times.into_iter().map(|(_, at)| at).collect()
}

static CASES_WITH_THREE_FEEDS: LazyLock<Vec<(PathBuf, Vec<Capture>)>> = LazyLock::new(|| {
    let all = all_cases().into_iter().map(|case| {
        let captures = captures(&case);
        (case, captures)
    });
    all.filter(|(_, captures)| captures.len() == 3).collect()
});

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_of_feeds_gives_the_same_parts(
        pick in 0usize..1000,
        seed in any::<u64>(),
    ) {
        // R-X-03
        let (case, captures) = &CASES_WITH_THREE_FEEDS[pick % CASES_WITH_THREE_FEEDS.len()];
        let expected = fold_in(captures, &[0, 1, 2]);
        let mixed = fold(captures, shuffled(captures, seed));
        let difference = any_difference(&expected, &mixed);
        prop_assert!(difference.is_none(), "{} {}", name(case), difference.unwrap_or_default());
    }
}

/// A random interleaving of the captures' lines.
fn shuffled(captures: &[Capture], mut seed: u64) -> Vec<usize> {
    let mut turns: Vec<usize> = captures
        .iter()
        .enumerate()
        .flat_map(|(at, capture)| capture.lines.iter().map(move |_| at))
        .collect();
    for at in (1..turns.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        turns.swap(at, (seed >> 33) as usize % (at + 1));
    }
    turns
}
