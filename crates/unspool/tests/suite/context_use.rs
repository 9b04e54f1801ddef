//! How full the model's context is: what agents report, and nothing that they do not.

use unspool_model::context::ContextUse;
use unspool_query::context::context;
use unspool_store::blocking::block_on;
use unspool_store::store::{SessionFilter, Store, View, Viewer};

use crate::case::root;
use crate::harness::{Machine, archive_of};

/// The use of the context of the first session of a case.
fn used(case: &str) -> ContextUse {
    let (store, _folder) = archive_of(&[root().join("fixtures").join(case)]);
    let view = store.view(Viewer::Sole);
    let filter = SessionFilter { without_agents: true, ..SessionFilter::default() };
    let sessions = block_on(view.sessions(filter)).unwrap();
    block_on(context(&view, &sessions[0])).unwrap().unwrap()
}

#[test]
fn the_last_prompt_is_compared_with_the_window_that_the_agent_reports() {
    // Figures of the recording's last `token_usage_record` and `token_count`.
    let codex = used("codex/discovery-loop");
    let expected =
        ContextUse { tokens: Some(7_615), window: Some(258_400), ..ContextUse::default() };
    assert_eq!((codex, codex.percent()), (expected, Some(2)));
    // Only the stream of Claude Code reports the window, with its result.
    assert_eq!(used("claude-code/discovery-loop").window, Some(1_000_000));
}

#[test]
fn a_window_of_unknown_size_has_no_share() {
    for case in ["opencode/discovery-loop", "gemini/discovery-loop", "copilot/discovery-loop"] {
        let used = used(case);
        assert!(used.tokens.is_some_and(|tokens| tokens > 1_000), "{case}: {used:?}");
        assert_eq!((used.window, used.percent()), (None, None), "{case}");
    }
}

/// The next compaction is expected where the agent made the last one; one by hand says nothing.
#[test]
fn the_next_compaction_is_expected_where_the_last_one_was() {
    let automatic = used("claude-code/compaction-automatic-mid-turn");
    assert_eq!((automatic.compactions, automatic.compacts_at), (1, Some(989_079)));
    assert_eq!(used("claude-code/compaction-and-resume").compacts_at, None);
    let machine = Machine::new();
    let log = ".claude/projects/-p/log.jsonl";
    machine.put("claude-code/compaction-automatic-mid-turn/log.jsonl", log);
    machine.ok("d", &["sync"]);
    let id = machine.json("d", &["list"])[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(machine.json("d", &["show", &id])["context"]["compacts_at"], 989_079);
}

#[test]
fn compactions_are_counted() {
    for case in ["claude-code/compaction-and-resume", "codex/compaction-automatic"] {
        let used = used(case);
        assert!(used.compactions > 0 && used.tokens.is_some(), "{case}: {used:?}");
    }
}
