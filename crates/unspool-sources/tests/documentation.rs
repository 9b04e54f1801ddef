//! `docs/sources.md` says what the decoders do: every agent, format, version and loss of the tables,
//! every kind of record that the recordings have, and every kind that a decoder matches.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use unspool_model::agent::AgentTraits;
use unspool_sources::agents::AGENTS;
use unspool_sources::decode::RecordOutcome;
use unspool_sources::discover::find_files;
use unspool_sources::in_memory::SessionSet;
use unspool_sources::read::lines::Line;
use unspool_sources::read::{lines, source};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The section of each agent, by its name on the command line: the first word after its title.
fn sections() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(root().join("docs/sources.md")).unwrap();
    let mut found = BTreeMap::new();
    for section in text.split("\n## ").skip(1) {
        let (_, body) = section.split_once('\n').unwrap();
        if let Some((name, _)) =
            body.trim_start().strip_prefix('`').and_then(|it| it.split_once('`'))
        {
            found.insert(name.to_owned(), format!("## {section}\n"));
        }
    }
    found
}

fn assert_none(missing: BTreeSet<String>) {
    let lines: Vec<String> = missing.into_iter().collect();
    assert!(lines.is_empty(), "docs/sources.md, {}:\n{}", lines.len(), lines.join("\n"));
}

/// A version as people write it: `86`, `0.86` and `0.86.2` are in a text that has `0.86.2`.
fn names_version(section: &str, version: &str) -> bool {
    section
        .split(|c: char| !c.is_ascii_digit() && c != '.')
        .any(|word| word.trim_end_matches('.') == version)
}

#[test]
fn every_agent_and_format_has_its_section() {
    let sections = sections();
    let mut missing = BTreeSet::new();
    for agent in AGENTS {
        let Some(section) = sections.get(agent.name) else {
            missing.insert(format!("{}: no section", agent.name));
            continue;
        };
        let mut demand = |is: bool, what: String| {
            if !is {
                missing.insert(format!("{}: {what}", agent.name));
            }
        };
        demand(section.starts_with(&format!("## {}\n", agent.title)), "its title".to_owned());
        if let Some((oldest, newest)) = agent.recorded {
            demand(names_version(section, oldest), format!("version {oldest}"));
            demand(names_version(section, newest), format!("version {newest}"));
        }
        if let Some(logs) = &agent.logs {
            let variables = logs.others.iter().map(|(name, _)| *name).chain([logs.variable]);
            for variable in variables.filter(|name| !name.is_empty()) {
                demand(section.contains(&format!("${variable}")), format!("variable {variable}"));
            }
            for folder in logs.folders.iter().filter(|folder| !folder.is_empty()) {
                demand(section.contains(folder), format!("folder {folder}"));
            }
        }
        // Lines are broken in the text.
        let flat = section.split_whitespace().collect::<Vec<_>>().join(" ");
        demand(flat.contains("Loses: "), "what it loses".to_owned());
        if let Some(loss) = AgentTraits::of(agent.name).log_detail.loss() {
            demand(flat.contains(&format!("Loses: {loss}.")), format!("`Loses: {loss}.`"));
        }
        for format in agent.formats {
            demand(
                section.contains(&format!("\n### {}\n", format.name)),
                format!("format {}", format.name),
            );
        }
    }
    for name in sections.keys() {
        if !AGENTS.iter().any(|agent| agent.name == name) {
            missing.insert(format!("{name}: is not an agent"));
        }
    }
    assert_none(missing);
}

/// The fields that say what kind of record it is, in any format.
const KINDS: &[&str] = &[
    "/type",
    "/subtype",
    "/payload/type",
    "/payload/item/type",
    "/attachment/type",
    "/systemPayload/uiEvent/event.name",
    "/event",
    "/hookName",
    "/hook_event_name",
    "/event/type",
    "/event/content_block/type",
    "/event/delta/type",
    "/item/type",
    "/method",
    "/msg/method",
    "/msg/params/update/sessionUpdate",
    "/dir",
    "/role",
    "/message/role",
    "/part/type",
    "/properties/part/type",
    "/assistantMessageEvent/type",
    "/kind",
    "/channel",
];

/// Values of these fields that are no kinds: an event's own fields of the same name.
const NOT_KINDS: &[&str] = &["model", "junk", "openai.compaction", "verified_answer"];

fn kinds_of(record: &Value) -> Vec<String> {
    let values = KINDS.iter().filter_map(|path| record.pointer(path)?.as_str());
    // Stored events of OpenCode and Kilo end in a version; `session.updated.1`.
    let unversioned = |kind: &str| match kind.rsplit_once('.') {
        Some((name, version)) if version.parse::<u8>().is_ok() => name.to_owned(),
        _ => kind.to_owned(),
    };
    // `data-…` are an application's own.
    let is_kind = |kind: &String| !kind.starts_with("data-") && !NOT_KINDS.contains(&kind.as_str());
    values.map(unversioned).filter(is_kind).collect()
}

/// What became of the records of one kind.
#[derive(Default)]
struct Outcomes {
    left_out: bool,
    kept: bool,
    example: String,
}

/// The kinds of all records of a folder of recordings, by the agent that they were decoded as.
fn recorded_kinds(folder: &Path, found: &mut BTreeMap<(String, String), Outcomes>) {
    let (files, _) = find_files(folder);
    for file in files {
        let mut kinds: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        let mut note = |line: Line<'_>| {
            if let Ok(record) = serde_json::from_slice::<Value>(line.bytes) {
                kinds.insert(line.number, kinds_of(&record));
            }
        };
        let Ok(mut opened) = source::open(&file) else { continue };
        let Ok(end) = lines::read(opened.text(), &mut note) else { continue };
        if let Some(rest) = &end.unfinished {
            note(rest.as_line());
        }
        let mut traced: Vec<(String, u64, bool)> = Vec::new();
        let mut session_set = SessionSet::default();
        let read = session_set.read_file(&file, &mut |record| {
            let left_out = matches!(record.outcome, RecordOutcome::LeftOut(_));
            traced.push((record.session.to_owned(), record.line, left_out));
        });
        if read.is_err() {
            continue;
        }
        for (session, line, left_out) in traced {
            let mut sessions = session_set.sessions.iter();
            let agent = sessions.find(|it| it.agent_session_id == session).unwrap().agent;
            for kind in kinds.get(&line).into_iter().flatten() {
                let outcomes = found.entry((agent.to_owned(), kind.clone())).or_default();
                outcomes.left_out |= left_out;
                outcomes.kept |= !left_out;
                outcomes.example = format!("{}:{line}", file.display());
            }
        }
    }
}

/// The lines that name a kind, in the section of an agent and in those that it refers to: ACP's, of
/// which several agents have captures, and OpenCode's, for Kilo.
fn lines_with<'a>(sections: &'a BTreeMap<String, String>, agent: &str, kind: &str) -> Vec<&'a str> {
    let token = format!("`{kind}`");
    let referred = [Some("acp"), (agent == "kilo").then_some("opencode")];
    let names = [Some(agent), referred[0].filter(|name| *name != agent), referred[1]];
    let lines = names.into_iter().flatten().flat_map(|name| sections[name].lines());
    lines.filter(|line| line.contains(&token)).collect()
}

/// A kind whose records were all left out is said to be; one of which anything was kept is not
/// only in a row that ends in "left out".
#[test]
fn every_recorded_kind_is_described() {
    let (sections, mut found) = (sections(), BTreeMap::new());
    for entry in root().join("fixtures").read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            recorded_kinds(&path, &mut found);
        }
    }
    assert!(found.len() > 400, "{} kinds", found.len());
    let mut wrong = BTreeSet::new();
    for ((agent, kind), outcomes) in &found {
        let lines = lines_with(&sections, agent, kind);
        let example = &outcomes.example;
        if lines.is_empty() {
            wrong.insert(format!("{agent}: `{kind}` is not in its section ({example})"));
            continue;
        }
        let is_only_left_out = |line: &&str| line.trim_end().ends_with("| left out |");
        if !outcomes.kept && !lines.iter().any(|line| line.contains("left out")) {
            wrong.insert(format!("{agent}: `{kind}` is left out ({example})"));
        }
        if outcomes.kept && lines.iter().all(is_only_left_out) {
            wrong.insert(format!("{agent}: `{kind}` is not always left out ({example})"));
        }
    }
    assert_none(wrong);
}

/// The functions that choose by the kind of a record: file, function, agent.
const DISPATCHES: &[(&str, &str, &str)] = &[
    ("claude/log.rs", "decode", "claude-code"),
    ("claude/log/flat.rs", "flat", "claude-code"),
    ("claude/context.rs", "attachment", "claude-code"),
    ("claude/context.rs", "system", "claude-code"),
    ("claude/stream.rs", "decode", "claude-code"),
    ("claude/stream/model.rs", "delta", "claude-code"),
    ("claude/stream/system.rs", "system", "claude-code"),
    ("claude/hooks.rs", "decode", "claude-code"),
    ("codex/log.rs", "decode", "codex"),
    ("codex/event.rs", "event", "codex"),
    ("codex/item.rs", "item", "codex"),
    ("codex/response.rs", "decode_item", "codex"),
    ("codex/exec.rs", "decode", "codex"),
    ("codex/exec.rs", "item", "codex"),
    ("codex/server.rs", "method", "codex"),
    ("codex/server_item.rs", "item", "codex"),
    ("codex/server_item.rs", "call_item", "codex"),
    ("codex/hooks.rs", "decode", "codex"),
    ("opencode/decoder.rs", "event", "kilo"),
    ("opencode/run.rs", "printed", "opencode"),
    ("copilot/events.rs", "event", "copilot"),
    ("copilot/live.rs", "live", "copilot"),
    ("gemini/stream.rs", "decode", "gemini"),
    ("gemini/hooks.rs", "decode", "gemini"),
    ("qwen/log.rs", "decode", "qwen"),
    ("qwen/log/system.rs", "system", "qwen"),
    ("qwen/log/system.rs", "telemetry", "qwen"),
    ("qwen/log/user.rs", "user", "qwen"),
    ("qwen/stream.rs", "decode", "qwen"),
    ("qwen/stream.rs", "stream_event", "qwen"),
    ("pi/log.rs", "entry", "pi"),
    ("pi/conversation.rs", "message", "pi"),
    ("pi/stream.rs", "event", "pi"),
    ("cline/live.rs", "hook", "cline"),
    ("acp/decoder.rs", "message", "acp"),
    ("acp/update.rs", "update", "acp"),
    ("ai_sdk/stream.rs", "chunk", "ai-sdk"),
    ("ai_sdk/stream/tool_calls.rs", "tool", "ai-sdk"),
    ("droid/log.rs", "decode", "droid"),
    ("droid/stream.rs", "decode", "droid"),
    ("mini_swe_agent/trajectory.rs", "message", "mini-swe-agent"),
];

/// Strings that these functions match and that are no kinds of records: values of other fields.
const OTHER_STRINGS: &[&str] = &[
    "Request cancelled.",
    "synthetic",
    "notification_type",
    "ToolPermission",
    "display",
    "replacement",
];

/// The strings of the match arms of a function: what stands in quotes before `=>`.
fn match_arms(path: &Path, function: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let is_begin = |line: &&str| {
        let code = line.trim_start();
        let code = code.strip_prefix("pub(super) ").or(code.strip_prefix("pub ")).unwrap_or(code);
        let rest = code.strip_prefix("fn ").and_then(|code| code.strip_prefix(function));
        rest.is_some_and(|rest| rest.starts_with(['(', '<']))
    };
    let start = lines.iter().position(is_begin);
    let start = start.unwrap_or_else(|| panic!("{} has no fn {function}", path.display()));
    let indent = lines[start].len() - lines[start].trim_start().len();
    let end = format!("{}}}", " ".repeat(indent));
    let body = lines[start..].iter().take_while(|line| **line != end);
    let mut found = BTreeSet::new();
    // The patterns of an arm may be on several lines, of which the last has the arrow.
    let mut pattern = String::new();
    for line in body {
        let code = line.trim();
        let goes_on = code.starts_with('|') || code.starts_with('"') || code.starts_with("Some(");
        if !(goes_on || pattern.ends_with('(') || code.starts_with(')')) {
            pattern.clear();
            if !code.starts_with("Some(") {
                continue;
            }
        }
        // An argument of a call, not a pattern.
        if code.ends_with(',') && !code.contains("=>") {
            pattern.clear();
            continue;
        }
        pattern.push_str(code);
        if let Some((arm, _)) = pattern.clone().split_once("=>") {
            let arm = arm.split(" if ").next().unwrap_or_default();
            found.extend(arm.split('"').skip(1).step_by(2).map(str::to_owned));
            pattern.clear();
        }
    }
    found
}

#[test]
fn every_kind_that_a_decoder_matches_is_described() {
    let (sections, mut missing, mut seen) = (sections(), BTreeSet::new(), 0);
    for (file, function, agent) in DISPATCHES {
        let path = root().join("crates/unspool-sources/src/decode").join(file);
        let kinds = match_arms(&path, function);
        assert!(!kinds.is_empty(), "{file}: fn {function} matches nothing");
        for kind in kinds.iter().filter(|kind| !OTHER_STRINGS.contains(&kind.as_str())) {
            seen += 1;
            if lines_with(&sections, agent, kind).is_empty() {
                missing.insert(format!("{agent}: `{kind}` ({file}, fn {function})"));
            }
        }
    }
    assert!(seen > 300, "{seen} kinds");
    assert_none(missing);
}

#[test]
fn strings_of_match_arms_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.rs");
    let text = "fn f(\n) {\n    match kind {\n        \"a\" | \"b\" => g(\"no\"),\n        \"c\"\n        \
                | \"d\" if x.is(\"no\") => {}\n        Some(\"e\") => {}\n        _ => h(\"no\"),\n    }\n}\n";
    std::fs::write(&path, text).unwrap();
    assert_eq!(match_arms(&path, "f").into_iter().collect::<String>(), "abcde");
}
