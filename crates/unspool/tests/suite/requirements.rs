//! Every line of `docs/requirements.md` says what shows it: tests that cite its id, a capability
//! that is still to come, or what is missing.

use std::collections::BTreeSet;
use std::fs;

use crate::case::root;
use crate::tidy::{Source, assert_none, files_below, sources};

/// Capabilities that are still to come, and bring the tests of their requirements.
const CAPABILITIES: &[&str] = &["prompts", "teams"];

/// What shows a requirement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Proof {
    Tests,
    Capability,
    Missing,
}

/// A requirement and the line below it.
struct Requirement<'a> {
    id: &'a str,
    line: Option<&'a str>,
}

fn requirements(listed: &str) -> Vec<Requirement<'_>> {
    let mut found = Vec::new();
    let mut lines = listed.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(id) = listed_id(line) else { continue };
        let line = lines.peek().and_then(|line| line.strip_prefix("  "));
        found.push(Requirement { id, line });
    }
    found
}

fn listed_id(line: &str) -> Option<&str> {
    let (id, _) = line.strip_prefix("- **")?.split_once("** ")?;
    id.starts_with("R-").then_some(id)
}

/// The names of tests in a line: what stands between backticks.
fn references(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Requirement ids in a text, with those between the two of `R-000-01 to R-000-06`.
fn citations(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut before: Option<(&str, u32, usize)> = None;
    for (at, _) in text.match_indices("R-") {
        let word: &str = &text[at..];
        let end = word.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let word = &word[..end.unwrap_or(word.len())];
        let Some((document, number)) = word.rsplit_once('-') else { continue };
        if !document.contains('-') {
            continue;
        }
        let Ok(number) = number.parse::<u32>() else { continue };
        let first = match before {
            Some((of, first, end)) if of == document && &text[end..at] == " to " => first,
            _ => number,
        };
        found.extend((first..=number).map(|number| format!("{document}-{number:02}")));
        before = Some((document, number, at + word.len()));
    }
    found
}

/// The text of a Rust test: the comments and attributes above it, and its body. None if the file
/// has no such test.
fn rust_test<'a>(source: &'a Source, name: &str, contract: &str) -> Option<Vec<&'a str>> {
    let lines: Vec<&str> = source.text.lines().collect();
    let begins = |line: &&str| {
        let code = line.trim_start();
        let code = code.strip_prefix("pub ").unwrap_or(code).strip_prefix("fn ");
        let rest = code.and_then(|code| code.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with(['(', '<']))
    };
    let at = lines.iter().position(begins)?;
    let above = lines[..at].iter().rev().take_while(|line| {
        let line = line.trim_start();
        line.starts_with("//") || line.starts_with("#[")
    });
    let start = at - above.count();
    let indent = lines[at].len() - lines[at].trim_start().len();
    let end = format!("{}}}", " ".repeat(indent));
    let length = lines[at..].iter().position(|line| *line == end)?;
    let is_attribute = lines[start..at].iter().any(|line| line.trim_start() == "#[test]");
    // A check over all recordings, and a law of every store, become tests by a macro.
    let by_source = source.text.contains(&format!("by_source!({name});"));
    let by_contract = source.path.contains("/tests/contract/")
        && contract.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
    (is_attribute || by_source || by_contract).then(|| lines[start..=at + length].to_vec())
}

/// The text of a browser test: the comments above it, and its body.
fn browser_test<'a>(source: &'a Source, title: &str) -> Option<Vec<&'a str>> {
    let lines: Vec<&str> = source.text.lines().collect();
    let begins = |line: &&str| {
        let code = line.trim_start();
        ['"', '`'].iter().any(|q| code.starts_with(&format!("test({q}{title}{q}")))
    };
    let at = lines.iter().position(begins)?;
    let above = lines[..at].iter().rev().take_while(|line| line.trim_start().starts_with("//"));
    let start = at - above.count();
    let indent = lines[at].len() - lines[at].trim_start().len();
    let end = format!("{}}});", " ".repeat(indent));
    let length = lines[at..].iter().position(|line| *line == end)?;
    Some(lines[start..=at + length].to_vec())
}

/// Rust files and browser tests.
fn test_sources() -> Vec<Source> {
    let (root, mut found) = (root(), Vec::new());
    files_below(&root.join("e2e"), &mut found);
    found.retain(|path| path.to_string_lossy().ends_with(".test.mjs"));
    let read = |path: std::path::PathBuf| Source {
        path: path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned(),
        text: fs::read_to_string(&path).unwrap(),
    };
    sources().into_iter().chain(found.into_iter().map(read)).collect()
}

/// What is wrong with a reference of a requirement.
fn check_reference(id: &str, reference: &str, sources: &[Source]) -> Result<(), String> {
    let (file, name, is_browser) = match reference.split_once("::") {
        Some((file, name)) if file.ends_with(".rs") => (file, name, false),
        _ => {
            let parsed = reference.split_once(": \"");
            let parsed = parsed.and_then(|(file, title)| Some((file, title.strip_suffix('"')?)));
            let (file, title) = parsed.ok_or(format!("{reference:?} names no test"))?;
            (file, title, true)
        }
    };
    let suffix = format!("/{file}");
    let named: Vec<&Source> = sources
        .iter()
        .filter(|source| source.path == file || source.path.ends_with(&suffix))
        .collect();
    let [source] = named.as_slice() else {
        return Err(format!("{} files end in {file:?}", named.len()));
    };
    let contract = sources.iter().find(|it| it.path.ends_with("tests/contract/main.rs")).unwrap();
    let (_, contract) = contract.text.split_once("\nmacro_rules! contract {").unwrap();
    let text = match is_browser {
        true => browser_test(source, name),
        false => rust_test(source, name, contract),
    };
    let Some(text) = text else { return Err(format!("{} has no test {name:?}", source.path)) };
    match citations(&text.join("\n")).contains(id) {
        true => Ok(()),
        false => Err(format!("{}: {name:?} does not cite it", source.path)),
    }
}

/// Checks all requirements. Returns what shows each of them, and all that is wrong.
fn check(listed: &str, sources: &[Source]) -> (Vec<Proof>, Vec<String>) {
    let (mut proofs, mut wrong) = (Vec::new(), Vec::new());
    for Requirement { id, line } in requirements(listed) {
        let mut fail = |what: String| wrong.push(format!("{id}: {what}"));
        let Some(line) = line else {
            fail("no line says what shows it".to_owned());
            continue;
        };
        if line.starts_with("Shown by `") {
            proofs.push(Proof::Tests);
        } else if let Some(rest) = line.strip_prefix("Comes with ") {
            proofs.push(Proof::Capability);
            let word: String = rest.chars().take_while(char::is_ascii_alphabetic).collect();
            if !CAPABILITIES.contains(&word.as_str()) {
                fail(format!("{word:?} is no capability"));
            }
        } else if line.starts_with("Not shown: ") {
            proofs.push(Proof::Missing);
        } else {
            fail(format!("{line:?} is neither `Shown by`, `Comes with` nor `Not shown:`"));
        }
        if !line.ends_with('.') || line.matches('`').count() % 2 == 1 {
            fail("the line ends in the middle".to_owned());
        }
        references(line)
            .filter_map(|reference| check_reference(id, reference, sources).err())
            .for_each(fail);
    }
    (proofs, wrong)
}

fn listed() -> String {
    fs::read_to_string(root().join("docs/requirements.md")).unwrap()
}

#[test]
fn every_requirement_says_what_shows_it() {
    let (proofs, wrong) = check(&listed(), &test_sources());
    let count = |proof: Proof| proofs.iter().filter(|it| **it == proof).count();
    println!(
        "{} requirements are shown by tests, {} come with a capability, {} are not shown",
        count(Proof::Tests),
        count(Proof::Capability),
        count(Proof::Missing)
    );
    assert_none(wrong);
    assert_eq!(proofs.len(), 206);
}

#[test]
fn a_renamed_test_or_a_lost_citation_is_reported() {
    let listed = listed();
    let reference = |id: &str| {
        let all = requirements(&listed);
        let line = all.iter().find(|it| it.id == id).unwrap().line.unwrap();
        references(line).next().unwrap().to_owned()
    };
    // One test of each kind: a function, a check by source, a law of every store, a browser test.
    for id in ["R-000-11", "R-001-28", "R-004-20", "R-002-30"] {
        let named = reference(id);
        let (file, name) = match named.split_once("::") {
            Some((file, name)) => (file, name.to_owned()),
            None => {
                let (file, title) = named.split_once(": ").unwrap();
                (file, title.trim_matches('"').to_owned())
            }
        };
        let changed = |from: &str, to: &str| {
            let mut all = test_sources();
            let source = all.iter_mut().find(|source| source.path.ends_with(file)).unwrap();
            source.text = source.text.replace(from, to);
            let (_, wrong) = check(&listed, &all);
            assert!(wrong.iter().any(|what| what.starts_with(id)), "{id}: {wrong:?}");
        };
        changed(&name, "renamed");
        changed(id, "R-9");
    }
}

#[test]
fn a_range_cites_what_is_between() {
    let cited = citations("// R-000-01 to R-000-03, R-X-06; `R-001-02` to R-000-09, R-00");
    let expected = ["R-000-01", "R-000-02", "R-000-03", "R-000-09", "R-001-02", "R-X-06"];
    assert!(cited.iter().eq(expected.iter()), "{cited:?}");
}
