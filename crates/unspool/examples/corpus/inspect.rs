//! Counts what a corpus contains, to check its claims: how much of it is text, how much of the text
//! is distinct, how many words there are.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::check::logs;
use crate::random::digest;

#[derive(Default)]
struct Count {
    bytes: u64,
    longest: usize,
    kinds: BTreeMap<String, u64>,
    /// The conversation's text: prompts, reasoning, replies, inputs and results of calls.
    text: u64,
    values: Distinct,
    lines: Distinct,
    words: Distinct,
}

#[derive(Default)]
struct Distinct {
    seen: HashSet<u64>,
    bytes: u64,
}

impl Distinct {
    fn add(&mut self, text: &str) {
        if self.seen.insert(digest(text.as_bytes())) {
            self.bytes += text.len() as u64;
        }
    }
}

pub fn inspect(folder: &Path) -> Result<()> {
    let mut count = Count::default();
    let mut sizes = Vec::new();
    for log in logs(folder)? {
        let before = count.bytes;
        count.file(&log)?;
        sizes.push(count.bytes - before);
        let agents = log.with_extension("").join("subagents");
        let mut agents: Vec<_> = std::fs::read_dir(agents)
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
            .collect();
        agents.sort();
        for agent in agents {
            count.file(&agent)?;
        }
    }
    sizes.sort_unstable();
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let share = |bytes: u64| 100.0 * bytes as f64 / count.bytes as f64;
    println!(
        "bytes          {:9.1} MB, longest line {} bytes",
        megabytes(count.bytes),
        count.longest
    );
    println!(
        "sessions       {:9} of {:.3} to {:.1} MB, half are under {:.3} MB",
        sizes.len(),
        megabytes(sizes.first().copied().unwrap_or_default()),
        megabytes(sizes.last().copied().unwrap_or_default()),
        megabytes(sizes.get(sizes.len() / 2).copied().unwrap_or_default())
    );
    println!("text           {:9.1} MB ({:.0} %)", megabytes(count.text), share(count.text));
    for (name, distinct) in [("values", &count.values), ("lines", &count.lines)] {
        println!(
            "distinct {name:6}{:9.1} MB ({:.0} %), {} of them",
            megabytes(distinct.bytes),
            share(distinct.bytes),
            distinct.seen.len()
        );
    }
    println!("distinct words {:9}", count.words.seen.len());
    println!("records        {:9}", count.kinds.values().sum::<u64>());
    for (kind, number) in &count.kinds {
        println!("  {number:7} {kind}");
    }
    Ok(())
}

impl Count {
    fn file(&mut self, path: &Path) -> Result<()> {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut reader = BufReader::with_capacity(1 << 20, file);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            self.bytes += line.len() as u64;
            self.longest = self.longest.max(line.len());
            let record: Value = serde_json::from_slice(&line)
                .with_context(|| format!("{} has a line that is no JSON", path.display()))?;
            self.record(&record);
            line.clear();
        }
        Ok(())
    }

    fn record(&mut self, record: &Value) {
        let mut kind = record["type"].as_str().unwrap_or("?").to_owned();
        let content = &record["message"]["content"];
        for detail in [&record["subtype"], &record["attachment"]["type"], &content[0]["type"]] {
            if let Some(detail) = detail.as_str() {
                kind.push('/');
                kind.push_str(detail);
            }
        }
        *self.kinds.entry(kind).or_default() += 1;
        self.text(content);
    }

    /// Skips signatures and images, which are not text.
    fn text(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                self.text += text.len() as u64;
                self.values.add(text);
                for line in text.lines() {
                    // Strip the line number that the Read tool adds.
                    let numbered = line.split_once('\t');
                    let plain = match numbered {
                        Some((number, rest)) if number.bytes().all(|b| b.is_ascii_digit()) => rest,
                        Some(_) | None => line,
                    };
                    self.lines.add(plain);
                }
                for word in text.split(|letter: char| !letter.is_alphanumeric() && letter != '_') {
                    self.words.add(word);
                }
            }
            Value::Array(values) => values.iter().for_each(|value| self.text(value)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    let is_text = !matches!(
                        name.as_str(),
                        "signature" | "data" | "id" | "tool_use_id" | "type" | "media_type"
                    );
                    if is_text {
                        self.text(value);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
