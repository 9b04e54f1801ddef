//! User edits of sessions: names, tags, deletion, undeletion; and data beside the turns: settings,
//! sources, warnings, snapshots.

use std::collections::BTreeMap;

use unspool_ingest::recorder::Deleted;
use unspool_ingest::recorder::batch::IngestMode;
use unspool_model::event::EndReason::Completed;
use unspool_model::event::ProseKind::Text;
use unspool_model::event::{EventKind, ToolEnd};
use unspool_model::id::SessionId;
use unspool_model::json::Json;
use unspool_model::provenance::Feed;
use unspool_model::session::{Title, TitleOrigin, Usage};
use unspool_model::source::{FileStamp, RecordCounts};
use unspool_store::blocking::block_on;
use unspool_store::rows::{FileRow, SourceRow, WarningRow};
use unspool_store::store::{SessionFilter, Store, TurnWindow, View};

use crate::batches::busy_turn;
use crate::harness::{AGENT, Harness, ask};
use crate::script::*;
use crate::test_archive::TestArchive;

fn id(session: &str) -> SessionId {
    SessionId::of(AGENT, session)
}

fn title(text: &str) -> Line {
    let origin = TitleOrigin::Generated;
    EventKind::TitleSet(Title { text: text.to_owned(), origin }).into()
}

pub fn a_name_stands_before_every_title<H: TestArchive>() {
    let harness = Harness::<H>::new();
    let row = harness.record("s", busy_turn("one")).row;
    let shown = || harness.session("s").summary.title;
    assert_eq!(shown().as_deref(), Some("please one"));
    harness.record("s", [title("agent's own")]);
    assert_eq!(shown().as_deref(), Some("agent's own"));
    let rename = |name: Option<&str>| {
        block_on(harness.store().rename(row, name.map(str::to_owned))).unwrap();
    };
    rename(Some("mine"));
    assert_eq!(shown().as_deref(), Some("mine"));
    assert_eq!(harness.session("s").name.as_deref(), Some("mine"));
    // Recording more does not change the name.
    harness.record("s", [title("another")]);
    assert_eq!(shown().as_deref(), Some("mine"));
    assert_eq!(harness.found("mine"), ["s title"]);
    rename(None);
    assert_eq!((shown().as_deref(), harness.session("s").name), (Some("another"), None));
    block_on(harness.store().rename(row + 9, Some("nobody".to_owned()))).unwrap();
    assert_eq!(harness.sessions(SessionFilter::default()), ["s"]);
    harness.is_clean();
}

pub fn tags_are_added_and_taken_away<H: TestArchive>() {
    let harness = Harness::<H>::new();
    let row = harness.record("s", busy_turn("one")).row;
    let tag = |add: &[&str], remove: &[&str]| {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        block_on(harness.store().tag(row, owned(add), owned(remove)))
    };
    tag(&["b", "a", "b", "ä\"'"], &[]).unwrap();
    assert_eq!(harness.session("s").summary.tags, ["a", "b", "ä\"'"]);
    tag(&["a"], &["b", "none"]).unwrap();
    assert_eq!(harness.session("s").summary.tags, ["a", "ä\"'"]);
    tag(&["c"], &["c"]).unwrap();
    assert_eq!(harness.session("s").summary.tags, ["a", "ä\"'"], "what is taken away is away");
    harness.record("s", busy_turn("two"));
    assert_eq!(harness.session("s").summary.tags.len(), 2, "recording leaves them alone");
    let harness = harness.reopened();
    assert_eq!(harness.session("s").summary.tags.len(), 2);
    assert!(
        block_on(harness.store().tag(row + 9, vec!["x".to_owned()], Vec::new())).is_err(),
        "there is no such session"
    );
}

/// Two sessions that share contents, and a third with rows in every table.
fn crowded<H: TestArchive>() -> Harness<H> {
    let harness = Harness::<H>::new();
    let same = format!("shared {}", "content ".repeat(500));
    for session in ["kept", "gone"] {
        let mut packer = harness.packer(IngestMode::Bulk);
        let mut writer = harness.open(AGENT, session);
        harness.take(&mut writer, busy_turn(session));
        harness.take(
            &mut writer,
            [
                ask("p", "more"),
                step("m"),
                called("t", "Bash"),
                ended("t", ToolEnd::Completed, &same),
                called("own", "Bash"),
                ended("own", ToolEnd::Failed, &format!("{session} {}", "alone ".repeat(500))),
                EventKind::SnapshotTaken {
                    kind: "policy".to_owned(),
                    sha256: "5ha2ed".to_owned(),
                    content: Json::string("both"),
                }
                .into(),
                EventKind::SnapshotTaken {
                    kind: "policy".to_owned(),
                    sha256: format!("of-{session}"),
                    content: Json::string(session),
                }
                .into(),
                grew(Text, "still going"),
            ],
        );
        let file = block_on(harness.store().next_rows()).unwrap().file;
        let path = format!("/logs/{session}.jsonl");
        let stamp = FileStamp { size: 7, modified: 8, changed: 9, ..FileStamp::default() };
        let saved = Some(format!("read {session}"));
        packer.batch().files.push(FileRow { row: file, path, stamp, saved, ..FileRow::default() });
        packer.batch().warnings.push(WarningRow {
            file,
            session: Some(writer.row),
            line: 3,
            what: "a line that is no JSON".to_owned(),
            bytes: b"\xff{".to_vec(),
        });
        writer.add_source(SourceRow {
            file,
            number: 0,
            feed: Feed::Log,
            first: u64::MAX,
            sub_agent: false,
            records: records(),
        });
        harness.commit(&mut packer, &mut writer);
        let row = writer.row;
        block_on(harness.store().tag(row, vec![session.to_owned()], Vec::new())).unwrap();
        harness.live(session, [grew(Text, " on")]);
    }
    harness
}

fn records() -> RecordCounts {
    RecordCounts {
        read: 9,
        in_parts: 5,
        metadata: 2,
        left_out: BTreeMap::from([("odd \"kind\"".to_owned(), 1)]),
        unreadable: 1,
    }
}

pub fn deleting_a_session_leaves_nothing_of_it<H: TestArchive>() {
    // R-004-20 C-12
    let harness = crowded::<H>();
    let kept = harness.session("kept");
    let turns = block_on(harness.view().whole_turns(kept.row, TurnWindow::All)).unwrap();
    let gone = harness.session("gone");
    assert_eq!(harness.found("gone").len(), 4);

    assert_eq!(block_on(harness.store().delete(gone.row)).unwrap(), 1);
    assert_eq!(harness.archive.leftovers(), Vec::<String>::new());
    assert_eq!(harness.sessions(SessionFilter::default()), ["kept"]);
    assert!(block_on(harness.view().whole_turns(gone.row, TurnWindow::All)).unwrap().is_empty());
    assert!(block_on(harness.store().outline(id("gone"))).unwrap().is_none());
    assert!(block_on(harness.view().warnings(gone.row)).unwrap().is_empty());
    assert!(harness.found("gone").is_empty());
    // The other session is unchanged, shared contents included.
    assert_eq!(harness.session("kept"), kept);
    assert_eq!(block_on(harness.view().whole_turns(kept.row, TurnWindow::All)).unwrap(), turns);
    assert_eq!(harness.found("content"), ["kept.2 tool"]);
    let session_export = block_on(harness.view().session_export(kept.row)).unwrap();
    assert_eq!(session_export.snapshots.len(), 2);
    harness.is_clean();
    // Delete the remaining sessions.
    assert_eq!(block_on(harness.store().delete(kept.row)).unwrap(), 1);
    assert_eq!(harness.archive.leftovers(), Vec::<String>::new());
    assert_eq!(block_on(harness.store().delete(kept.row)).unwrap(), 0, "it is not there any more");
    let next = block_on(harness.store().next_rows()).unwrap();
    assert_eq!([next.session, next.turn, next.part, next.chunk], [1; 4], "every table is empty");
    harness.is_clean();
}

pub fn what_was_deleted_does_not_come_back_by_itself<H: TestArchive>() {
    // R-004-20
    let harness = crowded::<H>();
    assert!(!block_on(harness.store().is_deleted(id("gone"))).unwrap());
    block_on(harness.store().delete(harness.session("gone").row)).unwrap();
    let harness = harness.reopened();
    assert!(block_on(harness.store().is_deleted(id("gone"))).unwrap());
    assert!(harness.recorder.open(AGENT, "gone").unwrap().is_none());
    assert!(!harness.recorder.may_record(id("gone")).unwrap());
    assert!(harness.recorder.may_record(id("kept")).unwrap());

    assert!(block_on(harness.store().undelete(id("gone"))).unwrap());
    assert!(
        !block_on(harness.store().undelete(id("gone"))).unwrap(),
        "it was not deleted any more"
    );
    assert!(!block_on(harness.store().undelete(id("nobody"))).unwrap());
    let back = harness.record("gone", busy_turn("gone"));
    assert_eq!(back.summary.turns, 1);
    assert!(back.summary.tags.is_empty() && back.name.is_none());

    // A recorder with `Deleted::Restore` records it again.
    block_on(harness.store().delete(back.row)).unwrap();
    let recorder = harness.recorder.clone().with_deleted(Deleted::Restore);
    assert!(recorder.open(AGENT, "gone").unwrap().is_some());
    assert!(!block_on(harness.store().is_deleted(id("gone"))).unwrap());
    harness.is_clean();
}

/// A session that starts a sub-agent.
fn starting(call: &str, agent: &str) -> Vec<Line> {
    let used = Usage { input: 10, output: 1, ..Usage::default() };
    vec![
        ask(call, "delegate"),
        step(&format!("m-{call}")),
        EventKind::UsageUpdated { step: message(&format!("m-{call}")), usage: used }.into(),
        called(call, "Task"),
        agent_started(call, agent),
        over(Completed),
    ]
}

pub fn a_session_goes_with_its_sub_agents<H: TestArchive>() {
    // R-004-20
    let harness = Harness::<H>::new();
    harness.record("parent", [starting("t1", "child"), starting("t2", "never-seen")].concat());
    harness.record("child", starting("t3", "grandchild"));
    harness.record("grandchild", busy_turn("one"));
    harness.record("other", busy_turn("two"));
    // The same id under another agent is another session.
    harness.record_as("codex", "child", IngestMode::Bulk, busy_turn("three"));
    let parent = |of: &str| harness.session(of).summary.session.parent.map(|parent| parent.session);
    assert_eq!(parent("grandchild"), Some(id("child")));
    assert_eq!(parent("child"), Some(id("parent")));
    assert_eq!(parent("parent"), None);
    assert_eq!(harness.session("parent").summary.usage.input, 20);
    assert_eq!(harness.session("parent").summary.usage_with_agents.input, 30);
    assert_eq!(block_on(harness.store().delete(harness.session("parent").row)).unwrap(), 3);
    let mut left = harness.sessions(SessionFilter::default());
    left.sort();
    assert_eq!(left, ["child", "other"]);
    assert_eq!(harness.archive.leftovers(), Vec::<String>::new());
    for gone in ["parent", "child", "grandchild"] {
        assert!(block_on(harness.store().is_deleted(id(gone))).unwrap(), "{gone}");
    }
    harness.is_clean();
}

pub fn sub_agents_that_name_each_other_are_no_trouble<H: TestArchive>() {
    // Law 8: logs are untrusted.
    let harness = Harness::<H>::new();
    harness.record("one", starting("t1", "two"));
    harness.record("two", starting("t2", "one"));
    harness.record("self", starting("t3", "self"));
    assert_eq!(harness.session("one").summary.usage_with_agents.input, 20);
    assert_eq!(harness.session("self").summary.usage_with_agents.input, 10);
    assert_eq!(harness.session("self").summary.session.parent, None);
    assert_eq!(block_on(harness.store().delete(harness.session("self").row)).unwrap(), 1);
    assert_eq!(block_on(harness.store().delete(harness.session("two").row)).unwrap(), 2);
    assert!(harness.sessions(SessionFilter::default()).is_empty());
    assert_eq!(harness.archive.leftovers(), Vec::<String>::new());
}

pub fn a_session_that_is_forgotten_comes_back_as_it_was_called<H: TestArchive>() {
    let harness = crowded::<H>();
    let row = harness.session("gone").row;
    block_on(harness.store().rename(row, Some("mine".to_owned()))).unwrap();
    let kept = harness.session("kept");
    block_on(harness.store().forget(row)).unwrap();
    assert_eq!(harness.archive.leftovers(), Vec::<String>::new());
    assert!(!block_on(harness.store().is_deleted(id("gone"))).unwrap());
    assert_eq!(harness.sessions(SessionFilter::default()), ["kept"]);
    assert_eq!(harness.session("kept"), kept);
    // Its file is marked for re-reading, the other one is not.
    for file in block_on(harness.store().files()).unwrap() {
        let is_kept = file.path == "/logs/kept.jsonl";
        assert_eq!((file.stamp.size, file.stamp.modified), if is_kept { (7, 8) } else { (0, 0) });
    }
    let back = harness.record("gone", busy_turn("gone"));
    assert_eq!(back.name.as_deref(), Some("mine"));
    assert_eq!(back.summary.tags, ["gone"]);
    block_on(harness.store().forget(row + 99)).unwrap();
    harness.is_clean();
}

pub fn contents_are_stored_once_and_go_with_the_last_who_needs_them<H: TestArchive>() {
    // R-004-20: the earlier content of an updated part becomes unused.
    let harness = Harness::<H>::new();
    let long = |word: &str| format!("{word} {}", "output ".repeat(300));
    for mode in [IngestMode::Live, IngestMode::Bulk] {
        let mut packer = harness.packer(mode);
        let mut writer = harness.open(AGENT, "s");
        let lines = [
            ask("p", "go"),
            called("t", "Bash"),
            output_grew("t", &long("first")),
            output_grew("t", &long("second")),
            ended("t", ToolEnd::Completed, &long("last")),
            over(Completed),
            ask("q", "next"),
            refined(
                "t",
                unspool_model::event::ToolOutcome {
                    output: Some(long("better")),
                    ..Default::default()
                },
            ),
        ];
        for line in lines {
            harness.take(&mut writer, [line]);
            harness.commit(&mut packer, &mut writer);
            assert_eq!(harness.archive.leftovers(), Vec::<String>::new(), "{mode:?}");
        }
        // The same content again, after a restart and in another session.
        harness.record("t", [ask("p", "go"), called("t", "Bash")]);
        harness.record("t", [ended("t", ToolEnd::Completed, &long("better"))]);
        assert_eq!(harness.archive.leftovers(), Vec::<String>::new(), "{mode:?}");
        assert_eq!(harness.found("better"), ["s.1 tool", "t.1 tool"]);
        for session in ["s", "t"] {
            block_on(harness.store().delete(harness.session(session).row)).unwrap();
            assert_eq!(harness.archive.leftovers(), Vec::<String>::new(), "{mode:?}");
            block_on(harness.store().undelete(id(session))).unwrap();
            harness.is_clean();
        }
    }
}

pub fn a_packer_outlives_what_it_stored<H: TestArchive>() {
    // R-004-20: the only session with a large content is deleted, then another one stores it again.
    for mode in [IngestMode::Live, IngestMode::Bulk] {
        let harness = Harness::<H>::new();
        let mut packer = harness.packer(mode);
        let script = || {
            let output = "the same output ".repeat(100);
            [ask("p", "go"), called("t", "Bash"), ended("t", ToolEnd::Completed, &output)]
        };
        let mut first = harness.open(AGENT, "first");
        harness.take(&mut first, script());
        harness.commit(&mut packer, &mut first);
        block_on(harness.store().delete(first.row)).unwrap();
        let mut written = false;
        // A bulk import fails on this and starts again.
        for _ in 0..2 {
            let mut second = harness.open(AGENT, "second");
            harness.take(&mut second, script());
            packer.add(&mut second).unwrap();
            written |= harness.recorder.commit(&mut packer, [&mut second]).is_ok();
            if written {
                break;
            }
            assert_eq!(mode, IngestMode::Bulk, "a live commit is not retried");
        }
        assert!(written);
        assert_eq!(harness.found("same"), ["second.1 tool"]);
        harness.is_clean();
    }
}

pub fn settings_are_kept<H: TestArchive>() {
    let harness = Harness::<H>::new();
    let setting = |harness: &Harness<H>, name: &str| {
        block_on(harness.store().setting(name.to_owned())).unwrap()
    };
    let set = |harness: &Harness<H>, name: &str, value: Option<&str>| {
        block_on(harness.store().set(name.to_owned(), value.map(str::to_owned))).unwrap();
    };
    assert_eq!(setting(&harness, "retention"), None);
    set(&harness, "retention", Some("30"));
    set(&harness, "retention", Some("60 \0 ä"));
    set(&harness, "", Some(""));
    set(&harness, "never", None);
    let harness = harness.reopened();
    assert_eq!(setting(&harness, "retention").as_deref(), Some("60 \0 ä"));
    assert_eq!(setting(&harness, "").as_deref(), Some(""));
    set(&harness, "retention", None);
    assert_eq!(setting(&harness, "retention"), None);
    let reader = harness.archive.open_to_read();
    assert!(block_on(reader.set("x".to_owned(), None)).is_err(), "opened to be read only");
    assert_eq!(block_on(reader.setting(String::new())).unwrap().as_deref(), Some(""));
}

pub fn what_is_kept_beside_the_turns_comes_back<H: TestArchive>() {
    // R-001-15 R-001-16
    let harness = crowded::<H>();
    let stored = harness.session("gone");
    let session_export = block_on(harness.view().session_export(stored.row)).unwrap();
    assert_eq!(session_export.session.agent_session_id, "gone");
    assert_eq!(session_export.session.id, id("gone"));
    let source = &session_export.sources[0];
    assert_eq!((source.number, source.feed, source.first), (0, Feed::Log, u64::MAX));
    assert_eq!(source.records, records());
    let files = block_on(harness.view().source_files(stored.row)).unwrap();
    assert_eq!(files.len(), 1, "its own file, and no other session's");
    assert_eq!((files[0].row, files[0].path.as_str()), (source.file, "/logs/gone.jsonl"));
    assert_eq!(files[0].saved.as_deref(), Some("read gone"));
    assert_eq!(session_export.cursors.len(), 1);
    let (path, warning) = &session_export.warnings[0];
    assert_eq!((path.as_str(), warning.line), ("/logs/gone.jsonl", 3));
    assert_eq!(warning.bytes, b"\xff{");
    let mut snapshots: Vec<_> = session_export
        .snapshots
        .iter()
        .map(|shot| (shot.sha256.as_str(), shot.kind.as_str(), shot.content.as_str()))
        .collect();
    snapshots.sort_unstable();
    let both = ("5ha2ed", "policy", "\"both\"");
    assert_eq!(snapshots, [both, ("of-gone", "policy", "\"gone\"")]);

    assert_eq!(block_on(harness.view().records(stored.row)).unwrap(), records());
    assert_eq!(block_on(harness.view().records(99)).unwrap(), RecordCounts::default());
    let warnings = block_on(harness.view().warnings(stored.row)).unwrap();
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].what, "a line that is no JSON");
    assert!(block_on(harness.view().session_export(99)).is_err(), "there is no such session");
}
