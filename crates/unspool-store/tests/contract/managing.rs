//! User edits of sessions: names, tags, deletion, undeletion; and data beside the turns: settings,
//! sources, warnings, snapshots.

use std::collections::BTreeMap;

use unspool_core::event::EndReason::Completed;
use unspool_core::event::Voice::Text;
use unspool_core::event::{ToolEnd, What};
use unspool_core::id::SessionId;
use unspool_core::json::Json;
use unspool_core::session::{Title, TitleOrigin, Usage};
use unspool_core::telling::Telling;
use unspool_store::batch::Pace;
use unspool_store::blocking::wait;
use unspool_store::contract::{SessionFilter, Store, Window};
use unspool_store::recorder::Deleted;
use unspool_store::rows::{FileRow, FileStamp, Records, SourceRow, WarningRow};

use crate::desk::{AGENT, Desk, ask};
use crate::home::Home;
use crate::script::*;
use crate::writing::busy_turn;

fn id(session: &str) -> SessionId {
    SessionId::of(AGENT, session)
}

fn title(text: &str) -> Line {
    let origin = TitleOrigin::Generated;
    What::TitleTold(Title { text: text.to_owned(), origin }).into()
}

pub fn a_name_stands_before_every_title<H: Home>() {
    let desk = Desk::<H>::new();
    let row = desk.record("s", busy_turn("one")).row;
    let shown = || desk.session("s").summary.title;
    assert_eq!(shown().as_deref(), Some("please one"));
    desk.record("s", [title("agent's own")]);
    assert_eq!(shown().as_deref(), Some("agent's own"));
    let rename = |name: Option<&str>| {
        wait(desk.store().rename(row, name.map(str::to_owned))).unwrap();
    };
    rename(Some("mine"));
    assert_eq!(shown().as_deref(), Some("mine"));
    assert_eq!(desk.session("s").name.as_deref(), Some("mine"));
    // Recording more does not change the name.
    desk.record("s", [title("another")]);
    assert_eq!(shown().as_deref(), Some("mine"));
    assert_eq!(desk.found("mine"), ["s title"]);
    rename(None);
    assert_eq!((shown().as_deref(), desk.session("s").name), (Some("another"), None));
    wait(desk.store().rename(row + 9, Some("nobody".to_owned()))).unwrap();
    assert_eq!(desk.sessions(SessionFilter::default()), ["s"]);
    desk.is_clean();
}

pub fn tags_are_added_and_taken_away<H: Home>() {
    let desk = Desk::<H>::new();
    let row = desk.record("s", busy_turn("one")).row;
    let tag = |add: &[&str], remove: &[&str]| {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        wait(desk.store().tag(row, owned(add), owned(remove)))
    };
    tag(&["b", "a", "b", "ä\"'"], &[]).unwrap();
    assert_eq!(desk.session("s").summary.tags, ["a", "b", "ä\"'"]);
    tag(&["a"], &["b", "none"]).unwrap();
    assert_eq!(desk.session("s").summary.tags, ["a", "ä\"'"]);
    tag(&["c"], &["c"]).unwrap();
    assert_eq!(desk.session("s").summary.tags, ["a", "ä\"'"], "what is taken away is away");
    desk.record("s", busy_turn("two"));
    assert_eq!(desk.session("s").summary.tags.len(), 2, "recording leaves them alone");
    let desk = desk.reopened();
    assert_eq!(desk.session("s").summary.tags.len(), 2);
    assert!(
        wait(desk.store().tag(row + 9, vec!["x".to_owned()], Vec::new())).is_err(),
        "there is no such session"
    );
}

/// Two sessions that share contents, and a third with rows in every table.
fn crowded<H: Home>() -> Desk<H> {
    let desk = Desk::<H>::new();
    let same = format!("shared {}", "content ".repeat(500));
    for session in ["kept", "gone"] {
        let mut packer = desk.packer(Pace::Bulk);
        let mut fold = desk.open(AGENT, session);
        desk.take(&mut fold, busy_turn(session));
        desk.take(
            &mut fold,
            [
                ask("p", "more"),
                step("m"),
                called("t", "Bash"),
                ended("t", ToolEnd::Completed, &same),
                called("own", "Bash"),
                ended("own", ToolEnd::Failed, &format!("{session} {}", "alone ".repeat(500))),
                What::SnapshotTaken {
                    kind: "policy".to_owned(),
                    sha256: "5ha2ed".to_owned(),
                    content: Json::string("both"),
                }
                .into(),
                What::SnapshotTaken {
                    kind: "policy".to_owned(),
                    sha256: format!("of-{session}"),
                    content: Json::string(session),
                }
                .into(),
                grew(Text, "still going"),
            ],
        );
        let file = wait(desk.store().next_rows()).unwrap().file;
        let path = format!("/logs/{session}.jsonl");
        let stamp = FileStamp { size: 7, modified: 8, changed: 9, ..FileStamp::default() };
        packer.batch().files.push(FileRow { row: file, path, stamp, ..FileRow::default() });
        packer.batch().warnings.push(WarningRow {
            file,
            session: Some(fold.row),
            line: 3,
            what: "a line that is no JSON".to_owned(),
            bytes: b"\xff{".to_vec(),
        });
        fold.sources.push(SourceRow {
            file,
            number: 0,
            telling: Telling::Log,
            first: u64::MAX,
            sub_agent: false,
            records: records(),
        });
        desk.commit(&mut packer, &mut fold);
        let row = fold.row;
        wait(desk.store().tag(row, vec![session.to_owned()], Vec::new())).unwrap();
        desk.live(session, [grew(Text, " on")]);
    }
    desk
}

fn records() -> Records {
    Records {
        read: 9,
        in_parts: 5,
        metadata: 2,
        left_out: BTreeMap::from([("odd \"kind\"".to_owned(), 1)]),
        unreadable: 1,
    }
}

pub fn deleting_a_session_leaves_nothing_of_it<H: Home>() {
    // R-004-20 C-12
    let desk = crowded::<H>();
    let kept = desk.session("kept");
    let turns = wait(desk.store().whole_turns(kept.row, Window::All)).unwrap();
    let gone = desk.session("gone");
    assert_eq!(desk.found("gone").len(), 4);

    assert_eq!(wait(desk.store().delete(gone.row)).unwrap(), 1);
    assert_eq!(desk.home.leftovers(), Vec::<String>::new());
    assert_eq!(desk.sessions(SessionFilter::default()), ["kept"]);
    assert!(wait(desk.store().whole_turns(gone.row, Window::All)).unwrap().is_empty());
    assert!(wait(desk.store().outline(id("gone"))).unwrap().is_none());
    assert!(wait(desk.store().warnings(gone.row)).unwrap().is_empty());
    assert!(desk.found("gone").is_empty());
    // The other session is unchanged, shared contents included.
    assert_eq!(desk.session("kept"), kept);
    assert_eq!(wait(desk.store().whole_turns(kept.row, Window::All)).unwrap(), turns);
    assert_eq!(desk.found("content"), ["kept.2 tool"]);
    let archived = wait(desk.store().archived(kept.row)).unwrap();
    assert_eq!(archived.snapshots.len(), 2);
    desk.is_clean();
    // Delete the remaining sessions.
    assert_eq!(wait(desk.store().delete(kept.row)).unwrap(), 1);
    assert_eq!(desk.home.leftovers(), Vec::<String>::new());
    assert_eq!(wait(desk.store().delete(kept.row)).unwrap(), 0, "it is not there any more");
    let next = wait(desk.store().next_rows()).unwrap();
    assert_eq!([next.session, next.turn, next.part, next.chunk], [1; 4], "every table is empty");
    desk.is_clean();
}

pub fn what_was_deleted_does_not_come_back_by_itself<H: Home>() {
    // R-004-20
    let desk = crowded::<H>();
    assert!(!wait(desk.store().is_deleted(id("gone"))).unwrap());
    wait(desk.store().delete(desk.session("gone").row)).unwrap();
    let desk = desk.reopened();
    assert!(wait(desk.store().is_deleted(id("gone"))).unwrap());
    assert!(desk.recorder.open(AGENT, "gone").unwrap().is_none());
    assert!(!desk.recorder.may_record(id("gone")).unwrap());
    assert!(desk.recorder.may_record(id("kept")).unwrap());

    assert!(wait(desk.store().undelete(id("gone"))).unwrap());
    assert!(!wait(desk.store().undelete(id("gone"))).unwrap(), "it was not deleted any more");
    assert!(!wait(desk.store().undelete(id("nobody"))).unwrap());
    let back = desk.record("gone", busy_turn("gone"));
    assert_eq!(back.summary.turns, 1);
    assert!(back.summary.tags.is_empty() && back.name.is_none());

    // A recorder with `Deleted::Restore` records it again.
    wait(desk.store().delete(back.row)).unwrap();
    let recorder = desk.recorder.clone().with_deleted(Deleted::ComeBack);
    assert!(recorder.open(AGENT, "gone").unwrap().is_some());
    assert!(!wait(desk.store().is_deleted(id("gone"))).unwrap());
    desk.is_clean();
}

/// A session that starts a sub-agent.
fn starting(call: &str, agent: &str) -> Vec<Line> {
    let used = Usage { input: 10, output: 1, ..Usage::default() };
    vec![
        ask(call, "delegate"),
        step(&format!("m-{call}")),
        What::UsageTold { step: message(&format!("m-{call}")), usage: used }.into(),
        called(call, "Task"),
        agent_started(call, agent),
        over(Completed),
    ]
}

pub fn a_session_goes_with_its_sub_agents<H: Home>() {
    // R-004-20
    let desk = Desk::<H>::new();
    desk.record("parent", [starting("t1", "child"), starting("t2", "never-seen")].concat());
    desk.record("child", starting("t3", "grandchild"));
    desk.record("grandchild", busy_turn("one"));
    desk.record("other", busy_turn("two"));
    // The same id under another agent is another session.
    desk.record_as("codex", "child", Pace::Bulk, busy_turn("three"));
    let parent = |of: &str| desk.session(of).summary.session.parent.map(|parent| parent.session);
    assert_eq!(parent("grandchild"), Some(id("child")));
    assert_eq!(parent("child"), Some(id("parent")));
    assert_eq!(parent("parent"), None);
    assert_eq!(desk.session("parent").summary.usage.input, 20);
    assert_eq!(desk.session("parent").summary.usage_with_agents.input, 30);
    assert_eq!(wait(desk.store().delete(desk.session("parent").row)).unwrap(), 3);
    let mut left = desk.sessions(SessionFilter::default());
    left.sort();
    assert_eq!(left, ["child", "other"]);
    assert_eq!(desk.home.leftovers(), Vec::<String>::new());
    for gone in ["parent", "child", "grandchild"] {
        assert!(wait(desk.store().is_deleted(id(gone))).unwrap(), "{gone}");
    }
    desk.is_clean();
}

pub fn sub_agents_that_name_each_other_are_no_trouble<H: Home>() {
    // Law 8: logs are untrusted.
    let desk = Desk::<H>::new();
    desk.record("one", starting("t1", "two"));
    desk.record("two", starting("t2", "one"));
    desk.record("self", starting("t3", "self"));
    assert_eq!(desk.session("one").summary.usage_with_agents.input, 20);
    assert_eq!(desk.session("self").summary.usage_with_agents.input, 10);
    assert_eq!(desk.session("self").summary.session.parent, None);
    assert_eq!(wait(desk.store().delete(desk.session("self").row)).unwrap(), 1);
    assert_eq!(wait(desk.store().delete(desk.session("two").row)).unwrap(), 2);
    assert!(desk.sessions(SessionFilter::default()).is_empty());
    assert_eq!(desk.home.leftovers(), Vec::<String>::new());
}

pub fn a_session_that_is_forgotten_comes_back_as_it_was_called<H: Home>() {
    let desk = crowded::<H>();
    let row = desk.session("gone").row;
    wait(desk.store().rename(row, Some("mine".to_owned()))).unwrap();
    let kept = desk.session("kept");
    wait(desk.store().forget(row)).unwrap();
    assert_eq!(desk.home.leftovers(), Vec::<String>::new());
    assert!(!wait(desk.store().is_deleted(id("gone"))).unwrap());
    assert_eq!(desk.sessions(SessionFilter::default()), ["kept"]);
    assert_eq!(desk.session("kept"), kept);
    // Its file is marked for re-reading, the other one is not.
    for file in wait(desk.store().files()).unwrap() {
        let known = file.path == "/logs/kept.jsonl";
        assert_eq!((file.stamp.size, file.stamp.modified), if known { (7, 8) } else { (0, 0) });
    }
    let back = desk.record("gone", busy_turn("gone"));
    assert_eq!(back.name.as_deref(), Some("mine"));
    assert_eq!(back.summary.tags, ["gone"]);
    wait(desk.store().forget(row + 99)).unwrap();
    desk.is_clean();
}

pub fn contents_are_stored_once_and_go_with_the_last_who_needs_them<H: Home>() {
    // R-004-20: the earlier content of an updated part becomes unused.
    let desk = Desk::<H>::new();
    let long = |word: &str| format!("{word} {}", "output ".repeat(300));
    for pace in [Pace::Live, Pace::Bulk] {
        let mut packer = desk.packer(pace);
        let mut fold = desk.open(AGENT, "s");
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
                unspool_core::event::Outcome { output: Some(long("better")), ..Default::default() },
            ),
        ];
        for line in lines {
            desk.take(&mut fold, [line]);
            desk.commit(&mut packer, &mut fold);
            assert_eq!(desk.home.leftovers(), Vec::<String>::new(), "{pace:?}");
        }
        // The same content again, after a restart and in another session.
        desk.record("t", [ask("p", "go"), called("t", "Bash")]);
        desk.record("t", [ended("t", ToolEnd::Completed, &long("better"))]);
        assert_eq!(desk.home.leftovers(), Vec::<String>::new(), "{pace:?}");
        assert_eq!(desk.found("better"), ["s.1 tool", "t.1 tool"]);
        for session in ["s", "t"] {
            wait(desk.store().delete(desk.session(session).row)).unwrap();
            assert_eq!(desk.home.leftovers(), Vec::<String>::new(), "{pace:?}");
            wait(desk.store().undelete(id(session))).unwrap();
            desk.is_clean();
        }
    }
}

pub fn a_packer_outlives_what_it_stored<H: Home>() {
    // R-004-20: the only session with a large content is deleted, then another one stores it again.
    for pace in [Pace::Live, Pace::Bulk] {
        let desk = Desk::<H>::new();
        let mut packer = desk.packer(pace);
        let script = || {
            let output = "the same output ".repeat(100);
            [ask("p", "go"), called("t", "Bash"), ended("t", ToolEnd::Completed, &output)]
        };
        let mut first = desk.open(AGENT, "first");
        desk.take(&mut first, script());
        desk.commit(&mut packer, &mut first);
        wait(desk.store().delete(first.row)).unwrap();
        let mut written = false;
        // A bulk import fails on this and starts again.
        for _ in 0..2 {
            let mut second = desk.open(AGENT, "second");
            desk.take(&mut second, script());
            packer.add(&mut second).unwrap();
            written |= desk.recorder.commit(&mut packer, [&mut second]).is_ok();
            if written {
                break;
            }
            assert_eq!(pace, Pace::Bulk, "a live commit is not retried");
        }
        assert!(written);
        assert_eq!(desk.found("same"), ["second.1 tool"]);
        desk.is_clean();
    }
}

pub fn settings_are_kept<H: Home>() {
    let desk = Desk::<H>::new();
    let setting = |desk: &Desk<H>, name: &str| wait(desk.store().setting(name.to_owned())).unwrap();
    let set = |desk: &Desk<H>, name: &str, value: Option<&str>| {
        wait(desk.store().set(name.to_owned(), value.map(str::to_owned))).unwrap();
    };
    assert_eq!(setting(&desk, "retention"), None);
    set(&desk, "retention", Some("30"));
    set(&desk, "retention", Some("60 \0 ä"));
    set(&desk, "", Some(""));
    set(&desk, "never", None);
    let desk = desk.reopened();
    assert_eq!(setting(&desk, "retention").as_deref(), Some("60 \0 ä"));
    assert_eq!(setting(&desk, "").as_deref(), Some(""));
    set(&desk, "retention", None);
    assert_eq!(setting(&desk, "retention"), None);
    let reader = desk.home.open_to_read();
    assert!(wait(reader.set("x".to_owned(), None)).is_err(), "opened to be read only");
    assert_eq!(wait(reader.setting(String::new())).unwrap().as_deref(), Some(""));
}

pub fn what_is_kept_beside_the_turns_comes_back<H: Home>() {
    // R-000-19 R-001-15 R-001-16
    let desk = crowded::<H>();
    let stored = desk.session("gone");
    let archived = wait(desk.store().archived(stored.row)).unwrap();
    assert_eq!(archived.session.agent_session_id, "gone");
    assert_eq!(archived.session.id, id("gone"));
    let source = &archived.sources[0];
    assert_eq!((source.number, source.telling, source.first), (0, Telling::Log, u64::MAX));
    assert_eq!(source.records, records());
    assert_eq!(archived.cursors.len(), 1);
    let (path, warning) = &archived.warnings[0];
    assert_eq!((path.as_str(), warning.line), ("/logs/gone.jsonl", 3));
    assert_eq!(warning.bytes, b"\xff{");
    let mut snapshots: Vec<_> = archived
        .snapshots
        .iter()
        .map(|shot| (shot.sha256.as_str(), shot.kind.as_str(), shot.content.as_str()))
        .collect();
    snapshots.sort_unstable();
    let both = ("5ha2ed", "policy", "\"both\"");
    assert_eq!(snapshots, [both, ("of-gone", "policy", "\"gone\"")]);

    assert_eq!(wait(desk.store().records(stored.row)).unwrap(), records());
    assert_eq!(wait(desk.store().records(99)).unwrap(), Records::default());
    let warnings = wait(desk.store().warnings(stored.row)).unwrap();
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].what, "a line that is no JSON");
    assert!(wait(desk.store().archived(99)).is_err(), "there is no such session");
}
