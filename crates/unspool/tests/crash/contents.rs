//! The contents of an archive as its commands print them, and the difference between two archives.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::sandbox::Unspool;

/// Words found in many sessions, in one, in tool outputs, in prompts, and in none.
const SEARCH_TERMS: [&str; 6] =
    ["weather", "celsius", "permission", "build*", "\"src/main.rs\"", "qwxyz"];

#[derive(PartialEq)]
pub struct Contents {
    outputs: BTreeMap<String, String>,
}

impl Contents {
    /// Reads everything, and runs a check, which must find nothing.
    pub fn of(unspool: &Unspool) -> Contents {
        let mut outputs = BTreeMap::new();
        let list = unspool.print(&["list", "--json"]);
        let sessions: Vec<Value> = serde_json::from_str(&list).unwrap();
        for session in &sessions {
            let id = session["id"].as_str().unwrap();
            outputs.insert(format!("show {id}"), unspool.print(&["show", id, "--json"]));
        }
        outputs.insert("list".to_owned(), list);
        for word in SEARCH_TERMS {
            outputs.insert(format!("search {word}"), search(unspool, word));
        }
        outputs.insert("stats".to_owned(), stats(unspool));
        outputs.insert("check".to_owned(), unspool.print(&["db", "check"]));
        Contents { outputs }
    }

    pub fn sessions(&self) -> usize {
        self.outputs.keys().filter(|key| key.starts_with("show ")).count()
    }

    /// Fails with the first lines that differ.
    pub fn assert_same_as(&self, expected: &Contents, when: &str) {
        for key in expected.outputs.keys().chain(self.outputs.keys()) {
            let (expected, found) = (expected.outputs.get(key), self.outputs.get(key));
            if expected != found {
                let text = |outputs: Option<&String>| outputs.cloned().unwrap_or_default();
                panic!("{when}: {key}: {}", difference(&text(expected), &text(found)));
            }
        }
    }
}

/// All hits, sorted. Their order and their snippets depend on the order in which files were read.
fn search(unspool: &Unspool, word: &str) -> String {
    let hits = unspool.json(&["search", word, "--json", "--limit", "100000"]);
    let mut hits: Vec<String> = hits.as_array().unwrap().iter().map(Value::to_string).collect();
    hits.sort();
    hits.join("\n")
}

/// Rounds costs: they are summed in storage order, so the last digit may differ.
fn stats(unspool: &Unspool) -> String {
    let mut stats = unspool.json(&["stats", "--json"]);
    round(&mut stats);
    serde_json::to_string_pretty(&stats).unwrap()
}

fn round(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            // Prices per token are multiples of half of the last digit: a sum may lie on a tie.
            *value = format!("{:.6}", number.as_f64().unwrap() + 1e-9).into();
        }
        Value::Array(values) => values.iter_mut().for_each(round),
        Value::Object(values) => values.values_mut().for_each(round),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

pub fn difference(expected: &str, found: &str) -> String {
    let (left, right): (Vec<&str>, Vec<&str>) =
        (expected.lines().collect(), found.lines().collect());
    let same = left.iter().zip(&right).take_while(|(left, right)| left == right).count();
    let piece = |lines: &[&str]| {
        let from = same.saturating_sub(6).min(lines.len());
        lines[from..(same + 6).min(lines.len())].join("\n")
    };
    format!("line {same}\n── expected\n{}\n── found\n{}", piece(&left), piece(&right))
}
