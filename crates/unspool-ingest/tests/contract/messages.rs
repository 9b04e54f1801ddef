//! Messages: the two sides of a turn, in the terms of other tools. A view derives them from the
//! parts on each query.

use unspool_model::event::EndReason::Completed;
use unspool_model::event::ProseKind::{Reasoning, Text};
use unspool_model::event::ToolEnd;
use unspool_model::id::SessionId;
use unspool_model::part::{Body, File, Kind};
use unspool_model::session::Turn;
use unspool_store::blocking::block_on;
use unspool_store::rows::milliseconds;
use unspool_store::store::{MessageFilter, Store, StoredMessage, View, Viewer};

use crate::fixtures::fixtures;
use crate::harness::{AGENT, Harness, ask};
use crate::model::{Outcome, same};
use crate::script::*;
use crate::test_archive::{SqliteTestArchive, TestArchive};

/// The expected messages, computed from the turns alone.
fn computed(turns: &[Turn]) -> Vec<StoredMessage> {
    let mut messages = Vec::new();
    for turn in turns {
        let reply: Vec<&Body> = turn.parts.iter().map(|part| &part.body).collect();
        let times = turn.parts.iter().filter_map(|part| milliseconds(part.started.or(part.ended)));
        let (first, started) = (times.min(), milliseconds(turn.started));
        if !turn.user.is_empty() {
            messages.push(message_of(turn, "user", turn.user.iter().collect(), started));
        }
        messages.push(message_of(turn, "assistant", reply, first.or(started)));
    }
    messages
}

fn message_of(turn: &Turn, role: &str, bodies: Vec<&Body>, at: Option<i64>) -> StoredMessage {
    let has = |kind: Kind| bodies.iter().any(|body| body.kind() == kind);
    let content: String = bodies.iter().filter_map(|body| body.prose()).collect();
    StoredMessage {
        id: format!("{}:{role}", turn.id),
        execution: turn.id,
        role: role.to_owned(),
        sequence: u64::from(turn.number) * 2 + u64::from(role == "assistant"),
        has_tool_calls: has(Kind::Tool),
        has_reasoning: has(Kind::Reasoning),
        has_files: has(Kind::File),
        text_preview: content.chars().take(200).collect(),
        content,
        created_at: at,
    }
}

/// Compares the messages of a session with its turns.
pub fn compare_messages<S: Store>(store: &S, session: SessionId, turns: &[Turn]) -> Outcome {
    let stored =
        block_on(store.view(Viewer::Sole).messages(session, MessageFilter::default())).unwrap();
    let expected = computed(turns);
    same("messages", &stored, &expected)?;
    for (turn, pair) in turns.iter().zip(expected.iter().filter(|it| it.role == "assistant")) {
        same("content", &turn.content(), &pair.content)?;
    }
    let unique: std::collections::BTreeSet<u64> = stored.iter().map(|it| it.sequence).collect();
    same("sequences", &unique.len(), &stored.len())
}

pub fn messages_of_fixtures_say_what_their_parts_say<H: TestArchive>() {
    // R-001-07 R-001-09 R-001-10 R-000-16 R-000-23 C-13
    let harness = Harness::<H>::new();
    for (name, script) in fixtures() {
        let stored = harness.record(&name, script);
        let turns = harness.turns(stored.row);
        compare_messages(harness.store(), stored.summary.session.id, &turns).unwrap();
    }
    harness.is_clean();
}

pub fn messages_are_filtered<H: TestArchive>() {
    // R-001-36
    let harness = Harness::<H>::new();
    let mut stored = harness.record(
        "s",
        [
            notice(Some("n"), "before the first prompt"),
            ask("p1", "one"),
            said(Text, "no tools"),
            over(Completed),
            ask("p2", "two"),
            called("t1", "Bash"),
            ended("t1", ToolEnd::Completed, "ok"),
            said(Reasoning, "hm"),
            over(Completed),
            ask("p3", "three"),
            called("t2", "Read"),
            over(Completed),
        ],
    );
    let turns = harness.turns(stored.row);
    let id = stored.summary.session.id;
    let list = |filter: MessageFilter| {
        let found = block_on(harness.view().messages(id, filter)).unwrap();
        found.into_iter().map(|message| message.sequence).collect::<Vec<u64>>()
    };
    let all = MessageFilter::default;
    assert_eq!(list(all()), [1, 2, 3, 4, 5, 6, 7]);
    let role = |role: &str| MessageFilter { role: Some(role.to_owned()), ..all() };
    assert_eq!(list(role("user")), [2, 4, 6]);
    assert_eq!(list(role("assistant")), [1, 3, 5, 7]);
    assert!(list(role("system")).is_empty());
    assert_eq!(list(MessageFilter { has_tool_calls: Some(true), ..all() }), [5, 7]);
    assert_eq!(list(MessageFilter { has_tool_calls: Some(false), ..all() }), [1, 2, 3, 4, 6]);
    let tool = |name: &str| MessageFilter { tool_name: Some(name.to_owned()), ..all() };
    assert_eq!(list(tool("Bash")), [5]);
    assert_eq!(list(tool("Read")), [7]);
    assert!(list(tool("bash' OR 1")).is_empty());
    let execution = MessageFilter { execution: Some(turns[2].id), ..all() };
    assert_eq!(list(execution.clone()), [4, 5]);
    assert_eq!(list(MessageFilter { role: Some("user".to_owned()), ..execution }), [4]);
    let from =
        |after: u64, limit: u64| MessageFilter { after: Some(after), limit: Some(limit), ..all() };
    assert_eq!(list(from(2, 3)), [3, 4, 5]);
    assert_eq!(list(from(5, 9)), [6, 7]);
    assert!(list(from(7, 1)).is_empty() && list(from(u64::MAX, 1)).is_empty());
    assert_eq!(list(MessageFilter { after: Some(1), limit: Some(2), ..role("assistant") }), [3, 5]);
    stored.summary.session.id = SessionId::of(AGENT, "nobody");
    let none = block_on(harness.view().messages(stored.summary.session.id, all())).unwrap();
    assert!(none.is_empty());
}

pub fn previews_are_cut_between_characters<H: TestArchive>() {
    // R-001-10 R-000-16 C-13
    let harness = Harness::<H>::new();
    let texts = [
        "x".repeat(199),
        "x".repeat(200),
        "ä".repeat(201),
        "🦀".repeat(300),
        "日本\u{301}".repeat(100),
        "a\0b".repeat(100),
        String::new(),
    ];
    for (nth, text) in texts.iter().enumerate() {
        let script = [
            ask(&format!("p{nth}"), text),
            said_in(Text, block("m", 0), text),
            // `content` is the concatenation of the text parts and nothing else.
            called("t", "Bash"),
            said_in(Text, block("m", 1), "end"),
            said_in(Reasoning, block("m", 2), "not this"),
            over(Completed),
        ];
        let stored = harness.record(&format!("s{nth}"), script);
        let turns = harness.turns(stored.row);
        compare_messages(harness.store(), stored.summary.session.id, &turns).unwrap();
        assert_eq!(turns[0].content(), format!("{text}end"));
    }
}

#[test]
fn the_message_view_can_be_queried_in_sql() {
    // R-001-07 R-001-11 C-02
    let harness = Harness::<SqliteTestArchive>::new();
    let file = Body::File(File { name: Some("a.png".to_owned()), ..File::default() });
    harness.record(
        "s",
        [
            started(vec![prompt_name("p")], vec![words("look at \"this\""), file]),
            said(Text, "one "),
            called("t1", "Bash"),
            ended("t1", ToolEnd::Failed, "no"),
            said(Text, "two"),
            over(Completed),
        ],
    );
    let connection = harness.archive.raw();
    let ask = |sql: &str| -> String {
        connection.query_row(sql, [], |row| row.get(0)).unwrap_or_else(|e| panic!("{sql}: {e}"))
    };
    let assistant = "FROM message WHERE role = 'assistant'";
    assert_eq!(ask(&format!("SELECT content {assistant}")), "one two");
    assert_eq!(ask("SELECT content FROM message WHERE role = 'user'"), "look at \"this\"");
    assert_eq!(ask("SELECT has_files || has_tool_calls FROM message WHERE role = 'user'"), "10");
    let id = SessionId::of(AGENT, "s").to_string();
    assert_eq!(ask(&format!("SELECT agent_id {assistant}")), id);
    let parts: serde_json::Value =
        serde_json::from_str(&ask(&format!("SELECT parts {assistant}"))).unwrap();
    let kinds: Vec<&str> =
        parts.as_array().unwrap().iter().map(|part| part["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["text", "tool", "text"], "in the order in which they were produced");
    assert_eq!(parts[1]["tool"], "Bash");
    assert_eq!(parts[1]["state"], "failed");
    assert_eq!(parts[1]["call_id"], "t1");
    let metadata: serde_json::Value =
        serde_json::from_str(&ask(&format!("SELECT metadata {assistant}"))).unwrap();
    assert_eq!(
        metadata,
        serde_json::json!({
            "trigger": "user", "state": "completed", "abandoned": false
        })
    );
    // Part rows by kind, tool, call and state.
    let count = |condition: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM part WHERE {condition}");
        connection.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(count("kind = 'text' AND role = 'assistant'"), 2);
    assert_eq!(count("tool = 'Bash' AND state = 'failed' AND call_id = 't1'"), 1);
}

#[test]
fn rows_have_one_place_each() {
    // R-001-07
    let harness = Harness::<SqliteTestArchive>::new();
    let mut script = crate::batches::busy_turn("one");
    script.extend(crate::batches::busy_turn("two"));
    harness.record("s", script);
    let connection = harness.archive.raw();
    let rows = |table: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        connection.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    assert!(rows("turn") > 1 && rows("part") > 1);
    for (clash, constraint) in [
        ("UPDATE turn SET number = 1", "turn.session, turn.number"),
        ("UPDATE part SET place = 2", "part.turn, part.place"),
        ("UPDATE part SET role = 'tool'", "role IN ('user', 'assistant')"),
    ] {
        let refused = connection.execute(clash, []).unwrap_err().to_string();
        assert!(refused.contains(constraint), "{clash}: {refused}");
    }
    let unique = "(SELECT DISTINCT agent_id, sequence FROM message)";
    assert_eq!(rows(unique), rows("message"));
    harness.is_clean();
}

#[test]
fn messages_are_found_by_index() {
    // R-001-08
    let harness = Harness::<SqliteTestArchive>::new();
    harness.record("s", [started(vec![prompt_name("p")], vec![words("x")]), over(Completed)]);
    let connection = harness.archive.raw();
    let plan = |condition: &str| -> Vec<String> {
        let sql = format!("EXPLAIN QUERY PLAN {condition}");
        let mut statement = connection.prepare(&sql).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, String>(3)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    for condition in ["agent_id = 'a'", "execution_id = 'e'", "agent_id = 'a' AND role = 'user'"] {
        let steps = plan(&format!("SELECT id, content FROM message WHERE {condition}"));
        let scans: Vec<&String> = steps
            .iter()
            .filter(|step| {
                ["turn", "part", "session"].iter().any(|it| *step == &format!("SCAN {it}"))
            })
            .collect();
        assert!(scans.is_empty(), "{condition}: {steps:#?}");
    }
    let with_tools = plan("SELECT row FROM turn WHERE session = 1 AND tools > 0");
    assert!(with_tools.iter().any(|step| step.contains("turn_with_tools")), "{with_tools:?}");
    let errors = plan("SELECT turn FROM part WHERE kind = 'error'");
    assert!(errors.iter().any(|step| step.contains("part_kind")), "{errors:?}");
    let user = plan("SELECT row FROM part WHERE turn = 1 AND role = 'user'");
    assert!(user.iter().any(|step| step.contains("part_user")), "{user:?}");
}

#[test]
fn deleting_in_sql_takes_everything_along() {
    // R-004-20 C-12
    let harness = Harness::<SqliteTestArchive>::new();
    harness.record("s", crate::batches::busy_turn("one"));
    let mut live = crate::batches::busy_turn("two");
    live.truncate(5);
    harness.live("t", live);
    let connection = harness.archive.raw();
    connection.pragma_update(None, "foreign_keys", true).unwrap();
    connection.execute("DELETE FROM session WHERE agent_session_id = 't'", []).unwrap();
    let left: Vec<String> = harness
        .archive
        .leftovers()
        .into_iter()
        .filter(|left| !left.contains("of content"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
    harness.is_clean();
    // Foreign keys prevent orphans.
    for orphan in [
        "INSERT INTO tag (session, name) VALUES (99, 'x')",
        "UPDATE part SET turn = 99",
        "UPDATE turn SET session = 99",
        "UPDATE part SET role = 'system'",
    ] {
        assert!(connection.execute(orphan, []).is_err(), "{orphan}");
    }
}
