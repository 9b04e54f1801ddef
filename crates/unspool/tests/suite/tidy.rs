//! House rules that no compiler checks: sizes of files and functions, module style, module cycles,
//! names, and citations that resolve.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use unspool_sources::agents::AGENTS;

use crate::case::root;

/// A file that a person can hold in the head.
const MAX_FILE_LINES: usize = 400;
const MAX_FUNCTION_LINES: usize = 80;

/// Words that say nothing about what they name. `unknown` is plain English.
const BANNED: &[&str] = &["told", "asked", "known", "telling", "wish", "deed", "desk", "door"];

/// Crates whose modules must not depend on each other in a circle.
const ACYCLIC: &[&str] = &["unspool-server", "unspool-ingest", "unspool-query"];

pub struct Source {
    /// Relative to the repository.
    pub path: String,
    pub text: String,
}

impl Source {
    fn is_test(&self) -> bool {
        ["/tests/", "/benches/", "/examples/"].iter().any(|folder| self.path.contains(folder))
            || self.path.ends_with("_tests.rs")
            || self.path.ends_with("/test_harness.rs")
    }
}

pub fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && name != "node_modules" {
                files_below(&path, found);
            }
        } else {
            found.push(path);
        }
    }
}

/// The Rust files of the workspace, in a fixed order.
pub fn sources() -> Vec<Source> {
    let (root, mut found) = (root(), Vec::new());
    for folder in ["crates", "fuzz"] {
        files_below(&root.join(folder), &mut found);
    }
    found.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    found.sort();
    assert!(found.len() > 400, "{} files", found.len());
    let read = |path: PathBuf| Source {
        path: path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned(),
        text: fs::read_to_string(&path).unwrap(),
    };
    found.into_iter().map(read).collect()
}

pub fn assert_none(found: Vec<String>) {
    assert!(found.is_empty(), "{}:\n{}", found.len(), found.join("\n"));
}

/// The files of the program: all but tests.
fn program_sources() -> impl Iterator<Item = Source> {
    sources().into_iter().filter(|source| !source.is_test())
}

#[test]
fn files_are_short() {
    let long = program_sources().filter_map(|source| {
        let lines = source.text.lines().count();
        (lines > MAX_FILE_LINES).then(|| format!("{} has {lines} lines", source.path))
    });
    assert_none(long.collect());
}

/// What finds and reads logs asks the table of agents: a further agent is a folder and a line in the
/// table. Named are the formats that several agents share, by the agent that they come from.
#[test]
fn what_finds_and_reads_logs_names_no_agent() {
    let folder = "crates/unspool-sources/src/";
    let is_asked = |path: &str| {
        let path = path.strip_prefix(folder).unwrap_or_default();
        ["read", "discover", "file_decoder", "survey", "in_memory", "library", "fingerprint"]
            .iter()
            .any(|seam| path.starts_with(seam))
    };
    let names = |line: &str| {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_');
        let shared = ["claude-code", "codex", "opencode", "rows", "acp"];
        let agents = || AGENTS.iter().map(|agent| agent.name).filter(|name| !shared.contains(name));
        let modules = ["continue_dev", "mini_swe_agent"];
        words.any(|word| {
            // `continue` is a word of the language.
            let is_name = !word.eq_ignore_ascii_case("continue")
                && agents().any(|name| word.eq_ignore_ascii_case(name));
            is_name || modules.contains(&word)
        })
    };
    let mut asked = 0;
    let mut found = Vec::new();
    for source in program_sources().filter(|source| is_asked(&source.path)) {
        asked += 1;
        let lines = source.text.lines().enumerate().filter(|(_, line)| names(line));
        found.extend(lines.map(|(at, line)| format!("{}:{}: {line}", source.path, at + 1)));
    }
    assert!(asked > 25, "{asked} files");
    assert_none(found);
}

/// The functions of a file by name, with their lengths. rustfmt puts the closing brace of a
/// function at the indentation of its first line.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indent = &line[..line.len() - code.len()];
        let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
        if code.starts_with("//") || !words.any(|word| word == "fn") {
            continue;
        }
        let Some(name) = words.next().filter(|name| !name.is_empty()) else { continue };
        let end = format!("{indent}}}");
        let length = lines[at..].iter().position(|line| **line == end);
        let one_line = code.ends_with('}') || code.ends_with(';');
        if let (false, Some(length)) = (one_line, length) {
            found.push((name.to_owned(), length + 1));
        }
    }
    found
}

#[test]
fn functions_are_measured() {
    let text = "fn one() {}\n\nimpl It {\n    pub fn two(\n    ) {\n        a();\n    }\n}\n";
    assert_eq!(functions(text), [("two".to_owned(), 4)]);
}

#[test]
fn functions_are_short() {
    let (mut long, mut seen) = (Vec::new(), 0);
    for source in program_sources() {
        for (name, lines) in functions(&source.text) {
            seen += 1;
            if lines > MAX_FUNCTION_LINES {
                long.push(format!("{}: {name} has {lines} lines", source.path));
            }
        }
    }
    assert!(seen > 2000, "{seen} functions");
    assert_none(long);
}

#[test]
fn modules_have_one_style() {
    let odd = sources().into_iter().filter_map(|source| {
        let name = source.path.rsplit('/').next()?;
        let odd = source.path.contains("/src/") && (name == "mod.rs" || name == "tests.rs");
        odd.then(|| format!("{}: modules are `name.rs`, tests `name_tests.rs`", source.path))
    });
    assert_none(odd.collect());
}

/// The modules that stand after `crate::`: one, or several in braces.
fn used_modules(rest: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let Some(list) = rest.strip_prefix('{') else { return vec![name(rest)] };
    let (mut depth, mut start, mut names) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.push(name(&list[start..at]));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names
}

#[test]
fn modules_in_braces_count_as_used() {
    assert_eq!(used_modules("live::Update;"), ["live"]);
    assert_eq!(used_modules("{App, api::{find, get}, list_hub};"), ["App", "api", "list_hub"]);
}

/// The top-level modules of a crate and those that each of them uses.
fn module_graph(krate: &str, sources: &[Source]) -> BTreeMap<String, BTreeSet<String>> {
    let folder = format!("crates/{krate}/src/");
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        let Some(path) = source.path.strip_prefix(&folder) else { continue };
        let module = path.split('/').next().unwrap().trim_end_matches(".rs").to_owned();
        if module == "lib" || module == "main" {
            continue;
        }
        let used = source.text.split("crate::").skip(1).flat_map(used_modules);
        let used = used.filter(|used| *used != module);
        graph.entry(module.clone()).or_default().extend(used);
    }
    assert!(graph.len() > 2, "{krate} has {} modules", graph.len());
    graph
}

#[test]
fn modules_depend_in_one_direction() {
    let sources = sources();
    for krate in ACYCLIC {
        let mut graph = module_graph(krate, &sources);
        // Takes away what uses nothing that is left; a circle stays.
        loop {
            let names: BTreeSet<String> = graph.keys().cloned().collect();
            let before = graph.len();
            graph.retain(|_, used| used.iter().any(|used| names.contains(used)));
            if graph.len() == before {
                break;
            }
        }
        assert!(graph.is_empty(), "{krate}: modules in or above a circle: {graph:#?}");
    }
}

#[test]
fn definitions_have_searchable_names() {
    let kinds = ["fn ", "struct ", "enum ", "trait ", "mod ", "type ", "const ", "static "];
    let mut found = Vec::new();
    for source in sources() {
        if source.path.ends_with("suite/tidy.rs") {
            continue;
        }
        for (at, line) in source.text.lines().enumerate() {
            let code = line.trim_start();
            if code.starts_with("//") {
                continue;
            }
            for kind in kinds {
                let Some((_, rest)) = code.split_once(kind) else { continue };
                let name: String =
                    rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let lower = name.to_lowercase().replace("unknown", "");
                if BANNED.iter().any(|word| lower.contains(word)) {
                    found.push(format!("{}:{}: {kind}{name}", source.path, at + 1));
                }
            }
        }
    }
    assert_none(found);
}

/// Requirement and decision ids in a text.
fn citations(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let is_id = |word: &&str| match word.split('-').collect::<Vec<_>>()[..] {
        ["R", document, number] => {
            (document == "X" || document.len() == 3 && is_number(document)) && is_number(number)
        }
        ["C", number] => number.len() == 2 && is_number(number),
        _ => false,
    };
    words.filter(is_id).map(str::to_owned).collect()
}

#[test]
fn every_cited_requirement_is_listed() {
    let listed = fs::read_to_string(root().join("docs/requirements.md")).unwrap();
    let ids: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.strip_prefix("- **")?.split_once("**").map(|(id, _)| id))
        .collect();
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "an id is listed twice");
    assert!(ids.iter().filter(|id| id.starts_with('R')).count() == 206);
    let missing = sources().into_iter().flat_map(|source| {
        let cited = citations(&source.text).into_iter();
        let missing = cited.filter(|id| !unique.contains(id.as_str())).collect::<Vec<_>>();
        missing.into_iter().map(move |id| format!("{}: {id}", source.path))
    });
    assert_none(missing.collect());
}

/// `content` is written for others, and no presenter, painter or search reads it: `Turn::content`
/// is called by the JSON document alone. The other `content` is that of a JSON token.
#[test]
fn content_is_never_shown() {
    // R-000-17
    let uses = program_sources().filter(|source| source.text.contains(".content()"));
    let files: Vec<String> = uses.map(|source| source.path).collect();
    let expected = ["crates/unspool-model/src/document.rs", "crates/unspool-redact/src/json.rs"];
    assert_eq!(files, expected);
}
