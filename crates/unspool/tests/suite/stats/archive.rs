//! An archive in a temporary home directory, and sums over its JSON.

use std::process::{Command, Output};

use jiff::Timestamp;
use serde_json::Value;
use tempfile::TempDir;

use crate::case::root;

const KINDS: [&str; 5] = ["input", "output", "cache_read", "cache_write", "reasoning"];

/// An archive in a temporary folder.
pub struct Archive(pub TempDir);

impl Archive {
    pub fn new() -> Archive {
        Archive(TempDir::new().unwrap())
    }

    pub fn of(cases: &[&str]) -> Archive {
        let archive = Archive::new();
        let paths: Vec<String> =
            cases.iter().map(|case| format!("fixtures/claude-code/{case}")).collect();
        let mut arguments = vec!["import"];
        arguments.extend(paths.iter().map(String::as_str));
        archive.text(&arguments);
        archive
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_unspool"))
            .args(arguments)
            .arg("--data")
            .arg(self.0.path().join("data"))
            .current_dir(root())
            .env("HOME", self.0.path())
            .env("CLAUDE_CONFIG_DIR", self.0.path())
            .env_remove("NO_COLOR")
            .output()
            .unwrap()
    }

    pub fn text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.text(&[arguments, &["--json"]].concat())).unwrap()
    }

    /// Every session as `show --json` prints it.
    pub fn shown(&self) -> Vec<Value> {
        let listed = self.json(&["list"]);
        let ids = list(&listed).iter().map(|session| session["id"].as_str().unwrap());
        ids.map(|id| self.json(&["show", id])).collect()
    }
}

pub fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

pub fn turns(shown: &[Value]) -> impl Iterator<Item = &Value> {
    shown.iter().flat_map(|session| list(&session["turns"]))
}

pub fn parts(shown: &[Value]) -> impl Iterator<Item = &Value> {
    turns(shown).flat_map(|turn| list(&turn["parts"]))
}

/// Tokens by kind, summed over values with a `usage`.
pub fn tokens<'a>(of: impl IntoIterator<Item = &'a Value>) -> [u64; 5] {
    let mut sums = [0; 5];
    for value in of {
        for (sum, kind) in sums.iter_mut().zip(KINDS) {
            *sum += number(&value["usage"][kind]);
        }
    }
    sums
}

pub fn sum<'a>(of: impl IntoIterator<Item = &'a Value>, name: &str) -> u64 {
    of.into_iter().map(|value| number(&value[name])).sum()
}

pub fn milliseconds(time: &Value) -> Option<i64> {
    Some(time.as_str()?.parse::<Timestamp>().unwrap().as_millisecond())
}
