//! Sessions and their sub-agents: which call of which session started each, in files and in the
//! archive, for any order of files.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;
use unspool_model::part::Body;
use unspool_model::session::Transcript;
use unspool_sources::discover::find_files;
use unspool_sources::in_memory::{DecodedSession, SessionSet};

use crate::case::{cases, name, root};
use crate::stats::archive::{Archive, list};

/// Cases with sub-agents.
fn sub_agent_cases() -> Vec<PathBuf> {
    let has = |case: &Path| !of_folder(case).sessions.iter().all(|one| !one.is_sub_agent());
    cases("claude-code").into_iter().filter(|case| has(case)).collect()
}

fn of_folder(folder: &Path) -> SessionSet {
    let mut session_set = SessionSet::default();
    for file in find_files(folder).0 {
        session_set.read_file(&file, &mut |_| {}).unwrap();
    }
    session_set
}

/// The tree of sessions: each below its parent, with its call and what the parent says about it.
fn tree(session_set: &SessionSet) -> String {
    let all: Vec<(&DecodedSession, Transcript)> =
        session_set.sessions.iter().map(|session| (session, session.transcript())).collect();
    let mut out = String::new();
    let roots = all.iter().filter(|(_, one)| {
        let parent = one.session.parent.as_ref();
        parent.is_none_or(|parent| all.iter().all(|(_, held)| held.session.id != parent.session))
    });
    for root in roots {
        branch(&mut out, &all, root, 0);
    }
    out
}

fn branch(
    out: &mut String,
    all: &[(&DecodedSession, Transcript)],
    (decoded_session, transcript): &(&DecodedSession, Transcript),
    depth: usize,
) {
    let session = &transcript.session;
    let indent = "  ".repeat(depth);
    let title = session.facts.title.as_ref().map_or("", |title| &title.text);
    let usage = transcript.usage();
    writeln!(out, "{indent}{} {title:?}", decoded_session.agent_session_id).unwrap();
    if let Some(parent) = &session.parent {
        let call = parent.call_id.as_deref().unwrap_or("an unknown call");
        let kind = parent.kind.as_deref().unwrap_or("an agent of unknown kind");
        writeln!(out, "{indent}  started by {call} as {kind}").unwrap();
    }
    let (turns, output) = (transcript.turns.len(), usage.output);
    let record_counts = &decoded_session.record_counts;
    writeln!(out, "{indent}  {turns} turns, {output} tokens out, {} records", record_counts.read)
        .unwrap();
    for part in transcript.turns.iter().flat_map(|turn| &turn.parts) {
        let Body::Agent(agent_part) = &part.body else { continue };
        for agent in &agent_part.agents {
            let (call, name, task, state) =
                (&agent_part.call_id, &agent.name, &agent.task, agent.state);
            writeln!(out, "{indent}  {call} started {} as {name}, {task:?}: {state:?}", agent.id)
                .unwrap();
        }
    }
    let mut children: Vec<&(&DecodedSession, Transcript)> = all
        .iter()
        .filter(|(_, one)| one.session.parent.as_ref().is_some_and(|p| p.session == session.id))
        .collect();
    children.sort_by(|(one, _), (other, _)| one.agent_session_id.cmp(&other.agent_session_id));
    for child in children {
        branch(out, all, child, depth + 1);
    }
}

#[test]
fn sub_agent_trees_match_their_goldens() {
    // R-001-24 R-X-04
    let bless = std::env::var_os("UNSPOOL_BLESS").is_some();
    let sub_agent_cases = sub_agent_cases();
    for case in &sub_agent_cases {
        let (path, found) = (case.join("family.txt"), tree(&of_folder(case)));
        if bless {
            std::fs::write(&path, &found).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(found, expected, "{}: run scripts/bless and read it", name(case));
    }
    assert!(sub_agent_cases.len() >= 24, "{}", sub_agent_cases.len());
}

#[test]
fn sub_agent_trees_do_not_depend_on_file_order() {
    for case in sub_agent_cases() {
        let expected = tree(&of_folder(&case));
        let mut backwards = SessionSet::default();
        for file in find_files(&case).0.into_iter().rev() {
            backwards.read_file(&file, &mut |_| {}).unwrap();
        }
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&tree(&backwards)), sorted(&expected), "{}", name(&case));
    }
}

fn by_id<'a>(listed: &'a Value, id: &str) -> &'a Value {
    let found = list(listed).iter().find(|session| session["agent_session_id"] == id);
    found.unwrap_or_else(|| panic!("no {id} in {listed}"))
}

#[test]
fn agent_metadata_is_imported_whenever_it_appears() {
    // R-001-24: before the log, after it, and when it is replaced.
    const OUTER: &str = "agent-a60afb2e91c8878c1";
    const INNER: &str = "agent-a2cc977304564cbdb";
    let from = root().join("fixtures/claude-code/subagents-nested/subagents");
    let archive = Archive::new();
    let folder = archive.0.path().join("projects/p/603a0aef-2810-4302-a068-e41cfe255095/subagents");
    std::fs::create_dir_all(&folder).unwrap();
    let put = |file: &str| {
        std::fs::copy(from.join(file), folder.join(file)).unwrap();
        archive.text(&["sync"]);
        archive.json(&["list"])
    };
    // Metadata of an agent without any message is not listed as a session.
    assert_eq!(put(&format!("{OUTER}.meta.json")), serde_json::json!([]));
    let outer = |listed: &Value| by_id(listed, &OUTER["agent-".len()..])["parent"].clone();
    let listed = put(&format!("{OUTER}.jsonl"));
    let expected = serde_json::json!({
        "session": unspool_model::id::SessionId::of(
            "claude-code",
            "603a0aef-2810-4302-a068-e41cfe255095",
        ).to_string(),
        "call_id": "toolu_013EAnXGaq5kci7uac53YzLp",
        "kind": "general-purpose",
    });
    assert_eq!(outer(&listed), expected);
    put(&format!("{INNER}.jsonl"));
    let listed = put(&format!("{INNER}.meta.json"));
    let inner = by_id(&listed, &INNER["agent-".len()..]);
    assert_eq!(inner["title"], "Inner agent");
    assert_eq!(inner["parent"]["call_id"], "toolu_017dpqasayo45kHnRWRe2dT7");
    assert_eq!(inner["parent"]["session"], by_id(&listed, &OUTER["agent-".len()..])["id"]);
    // Claude Code replaces the file when the agent is done.
    let again = std::fs::read_to_string(from.join(format!("{INNER}.meta.json"))).unwrap();
    let path = folder.join(format!("{INNER}.meta.json"));
    std::fs::write(&path, again.replace("Inner agent", "Innermost agent")).unwrap();
    archive.text(&["sync"]);
    let listed = archive.json(&["list"]);
    assert_eq!(by_id(&listed, &INNER["agent-".len()..])["title"], "Innermost agent");
    assert_eq!(list(&listed).len(), 2);
    archive.text(&["db", "check"]);
}

#[test]
fn agents_that_only_warm_up_are_no_sessions() {
    // R-001-16: two of this case's five agents only warmed up.
    let archive = Archive::of(&["v2-0-30-subagents"]);
    let listed = archive.json(&["list"]);
    assert_eq!(list(&listed).len(), 4);
    assert!(list(&listed).iter().all(|session| session["turns"].as_u64() > Some(0)));
    let stats = archive.json(&["stats"]);
    assert_eq!(
        (&stats["totals"]["sessions"], &stats["totals"]["sub_agents"]),
        (&4.into(), &3.into())
    );
    // Imported by itself it is no error, and its records are counted.
    let alone = Archive::new();
    let path = "fixtures/claude-code/v2-0-30-agent-warms-up/agent-24b8fb3e.jsonl";
    assert_eq!(alone.json(&["import", path])["records"], 2);
    assert_eq!(alone.json(&["list"]), serde_json::json!([]));
}

#[test]
fn agents_in_their_parents_log_are_sessions_once() {
    // R-001-24, R-001-28: imported twice, and counted with their parent once.
    let archive = Archive::of(&["v1-0-100-subagents"]);
    let before = archive.json(&["list"]);
    archive.text(&["import", "fixtures/claude-code/v1-0-100-subagents"]);
    assert_eq!(archive.json(&["list"]), before);
    assert_eq!(list(&before).len(), 4);
    let parent = by_id(&before, "24b96a01-bc9a-406e-ab09-8ce5d6dc56b1");
    let output = |session: &Value, usage: &str| session[usage]["output"].as_u64().unwrap();
    let own = output(parent, "usage");
    let children: u64 = list(&before)
        .iter()
        .filter(|session| session["parent"]["session"] == parent["id"])
        .map(|session| output(session, "usage"))
        .sum();
    assert_eq!(children, 106 + 312 + 137);
    assert_eq!(output(parent, "usage_with_agents"), own + children);
    archive.text(&["db", "check"]);
}

#[test]
fn a_fork_says_where_it_came_from() {
    // Law 4: the copied summary names the log that it summarises.
    let archive = Archive::of(&["compaction-and-resume", "forked-session"]);
    let listed = archive.json(&["list"]);
    let fork = by_id(&listed, "74f840e3-2795-40a3-9376-5392d9c0a00c");
    let base = by_id(&listed, "3e59d647-a96f-4c1e-a50a-ff06100b361a");
    assert_eq!(fork["forked_from"]["session"], base["id"]);
    assert_eq!(base["forked_from"], Value::Null);
}
