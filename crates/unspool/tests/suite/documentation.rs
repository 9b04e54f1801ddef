//! The pages that a new user reads: their length, their links, the index, and the list of commands.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::case::root;
use crate::harness::Machine;
use crate::tidy::assert_none;

/// What fits into five minutes.
const MAX_README_LINES: usize = 150;

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pages of `docs`.
fn docs() -> Vec<PathBuf> {
    let entries = root().join("docs").read_dir().unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.is_file()).collect();
    files.sort();
    assert!(files.len() > 20, "{files:?}");
    files
}

/// The text of a page without its code: blocks and spans.
fn without_code(text: &str) -> String {
    let mut is_block = false;
    let lines = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        is_block ^= fence;
        !is_block && !fence
    });
    lines.flat_map(|line| line.split('`').step_by(2).chain(["\n"])).collect()
}

/// The targets of Markdown links and of pictures in HTML.
fn links(text: &str) -> Vec<String> {
    let text = without_code(text);
    let markdown = text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    let html = ["src=\"", "srcset=\"", "href=\""];
    let html = html.iter().flat_map(|mark| text.split(mark).skip(1));
    let html = html.filter_map(|rest| Some(rest.split_once('"')?.0));
    markdown
        .chain(html)
        .map(|link| link.split_whitespace().next().unwrap_or_default().to_owned())
        .collect()
}

/// The anchors of a page: its headings, as the hosts of repositories write them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut is_block = false;
    let headings = text.lines().filter(|line| {
        is_block ^= line.starts_with("```");
        !is_block && line.starts_with('#')
    });
    let anchor = |heading: &str| -> String {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

/// What is wrong with the links of a page.
fn broken_links(page: &Path, text: &str) -> Vec<String> {
    let mut broken = Vec::new();
    for link in links(text) {
        if link.starts_with("http://") || link.starts_with("https://") {
            continue;
        }
        let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
        let target = match file {
            "" => page.to_owned(),
            file => page.parent().unwrap().join(file),
        };
        if !target.exists() {
            broken.push(format!("{}: {link} does not exist", page.display()));
        } else if !anchor.is_empty()
            && target.extension().is_some_and(|extension| extension == "md")
            && !anchors(&read(&target)).contains(anchor)
        {
            broken.push(format!("{}: {link} is no heading", page.display()));
        }
    }
    broken
}

#[test]
fn the_readme_is_short() {
    let lines = read(&root().join("README.md")).lines().count();
    assert!(lines <= MAX_README_LINES, "README.md has {lines} lines; the rest belongs into docs");
}

#[test]
fn every_link_leads_somewhere() {
    let mut pages = docs();
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    let others = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"];
    pages.extend(others.map(|name| root().join(name)));
    let (mut broken, mut seen) = (Vec::new(), 0);
    for page in &pages {
        let text = read(page);
        seen += links(&text).len();
        broken.extend(broken_links(page, &text));
    }
    assert!(seen > 150, "{seen} links");
    assert_none(broken);
}

#[test]
fn a_broken_link_is_found() {
    let page = root().join("docs/README.md");
    let text = "[a](nothing.md) [b](web.md#no-such-heading) [c](#none) `[d](code.md)`\n\
                ```\n[e](block.md)\n```\n<img src=\"images/none.png\"> [f](web.md#logins) [g](../README.md)";
    assert_eq!(broken_links(&page, text).len(), 4, "{:?}", broken_links(&page, text));
}

#[test]
fn every_page_is_in_the_index() {
    let index = root().join("docs/README.md");
    let text = read(&index);
    let listed: BTreeSet<String> = links(&text).into_iter().collect();
    let mut wrong = Vec::new();
    for path in docs().iter().filter(|path| **path != index) {
        let name = path.file_name().unwrap().to_str().unwrap();
        if !listed.contains(name) {
            wrong.push(format!("docs/README.md does not list {name}"));
        }
    }
    for line in text.lines().filter(|line| line.starts_with("| [")) {
        let answer = line.split('|').nth(2).unwrap_or_default().trim();
        if answer.is_empty() {
            wrong.push(format!("{line} says nothing"));
        }
    }
    assert_none(wrong);
}

/// The commands of `unspool --help`, with their first line.
fn commands_of_help(machine: &Machine) -> BTreeMap<String, String> {
    let output = machine.run("archive", &["--help"], "");
    let help = String::from_utf8(output.stdout).unwrap();
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let (list, _) = list.split_once("\n\n").unwrap();
    // A line that is indented further goes on with the one above.
    let lines = list.lines().filter(|line| !line.starts_with("   "));
    let entries = lines.filter_map(|line| line.trim().split_once(' '));
    let entries = entries.map(|(name, about)| (name.to_owned(), about.trim().to_owned()));
    entries.filter(|(name, _)| name != "help").collect()
}

#[test]
fn every_command_is_described() {
    let machine = Machine::new();
    let help: BTreeSet<String> = commands_of_help(&machine).into_keys().collect();
    assert!(help.len() > 20, "{help:?}");
    let text = read(&root().join("docs/commands.md"));
    let headings =
        text.lines().filter_map(|line| line.strip_prefix("### `unspool ")?.strip_suffix('`'));
    let described: BTreeSet<String> = headings.map(str::to_owned).collect();
    assert_eq!(described, help, "docs/commands.md and `unspool --help`");
    // Each section has an example of its command; that of the hooks is not typed.
    for section in text.split("\n### `unspool ").skip(1) {
        let (name, body) = section.split_once('`').unwrap();
        let example = body.lines().any(|line| {
            line.starts_with(&format!("unspool {name}"))
                || line.contains(&format!("| unspool {name}"))
        });
        assert!(example || name == "hook", "{name} has no example");
    }
}

/// Every command line of the pages that are read first names commands and options that exist.
#[test]
fn examples_name_options_that_exist() {
    let machine = Machine::new();
    let mut help: BTreeMap<String, String> = BTreeMap::new();
    let (mut unknown, mut seen) = (Vec::new(), 0);
    for page in ["README.md", "docs/commands.md", "docs/install.md", "docs/sources.md"] {
        let mut is_block = false;
        for line in read(&root().join(page)).lines() {
            is_block ^= line.starts_with("```");
            let Some(at) = line.find("unspool ").filter(|_| is_block) else { continue };
            if line.trim_start().starts_with("cargo") {
                continue;
            }
            let words = line[at..].split('#').next().unwrap_or_default().split(" -- ").next();
            let words: Vec<&str> = words.unwrap_or_default().split_whitespace().skip(1).collect();
            let command =
                words.first().filter(|word| !word.starts_with('-')).copied().unwrap_or("");
            let text = help.entry(command.to_owned()).or_insert_with(|| {
                let arguments: &[&str] =
                    if command.is_empty() { &["--help"] } else { &[command, "--help"] };
                let output = machine.run("archive", arguments, "");
                assert!(output.status.success(), "{page}: {line}");
                String::from_utf8(output.stdout).unwrap()
            });
            for option in words.iter().filter(|word| word.starts_with("--")) {
                seen += 1;
                // `hooks install --agent`: options of a subcommand are in its own help.
                let nested =
                    words.get(1).filter(|_| ["adapt", "hooks", "db", "mcp"].contains(&command));
                let nested =
                    nested.map(|sub| machine.run("archive", &[command, sub, "--help"], ""));
                let nested = nested.map(|it| String::from_utf8(it.stdout).unwrap());
                let has = |help: &str| {
                    help.split(|c: char| !c.is_alphanumeric() && c != '-').any(|it| it == *option)
                };
                if !has(text) && !nested.as_deref().is_some_and(has) {
                    unknown.push(format!("{page}: {line}"));
                }
            }
        }
    }
    assert!(seen > 20, "{seen} options");
    assert_none(unknown);
}

/// Sentences that a reader who had only the screen did not understand.
const UNCLEAR: [&str; 9] = [
    "is no time\"",
    "no session is like that",
    "Nothing has that",
    "Nothing is called that",
    "the settings of before",
    "In sum",
    "say more of it to see",
    "Take all filters off",
    "said by {",
];

#[test]
fn unclear_sentences_stay_away() {
    let scripts = root().join("crates/unspool-server/assets").read_dir().unwrap();
    let scripts = scripts.map(|entry| entry.unwrap().path());
    let scripts = scripts.map(|path| (path.display().to_string(), read(&path)));
    let sources = crate::tidy::sources().into_iter().map(|source| (source.path, source.text));
    let mut found = Vec::new();
    for (path, text) in sources.filter(|(path, _)| !path.contains("/tests/")).chain(scripts) {
        let here = UNCLEAR.iter().filter(|sentence| text.contains(**sentence));
        found.extend(here.map(|sentence| format!("{path}: {sentence}")));
    }
    assert_none(found);
}
