//! Search: hits, their locations, and texts that must not be found.

use unspool_ingest::recorder::batch::IngestMode;
use unspool_model::event::EndReason::Completed;
use unspool_model::event::ProseKind::{Reasoning, Text};
use unspool_model::event::{EventKind, ToolEnd, ToolOutcome};
use unspool_model::session::{Title, TitleOrigin};
use unspool_store::blocking::block_on;
use unspool_store::search::SearchRequest;
use unspool_store::store::Store;

use crate::harness::{AGENT, Harness, ask, in_project};
use crate::script::*;
use crate::test_archive::TestArchive;

fn request(query: &str) -> SearchRequest {
    SearchRequest { limit: 1000, ..SearchRequest::new(query) }
}

fn title(text: &str) -> Line {
    EventKind::TitleSet(Title { text: text.to_owned(), origin: TitleOrigin::Custom }).into()
}

/// One session with a distinct word in each of its parts.
fn wordy() -> Vec<Line> {
    vec![
        in_project("/home/ada/engine").at(1000),
        ask("p1", "Please mend the Quicksort").at(1000),
        EventKind::StepStarted { step: message("m1"), model: Some("sonnet-4".to_owned()) }.into(),
        said_in(Reasoning, block("m1", 0), "perhaps the pivot is wrong").at(1001),
        said_in(Text, block("m1", 1), "I read src/sort.rs, then I run the tests.").at(1002),
        called_with("t1", "Bash", r#"{"command":"cargo test --all\t\u00e4hm"}"#).at(1003),
        ended("t1", ToolEnd::Failed, "test panicked at 'index out of bounds'").at(1004),
        called_with("t2", "Read", r#"{"file_path":"/home/ada/lib.rs"}"#).at(1005),
        ended("t2", ToolEnd::Completed, "fn partition() {}").at(1006),
        failed(Some("e1"), "overloaded").at(1007),
        over(Completed).at(1008),
        ask("p2", "And the mergesort?").at(2000),
        said(Text, "It is stable.").at(2001),
        over(Completed).at(2002),
    ]
}

fn both_modes<H: TestArchive>(mut law: impl FnMut(Harness<H>, IngestMode)) {
    for mode in [IngestMode::Bulk, IngestMode::Live] {
        let harness = Harness::<H>::new();
        harness.record_as(AGENT, "s", mode, wordy());
        law(harness, mode);
    }
}

pub fn words_are_found_where_they_were_said<H: TestArchive>() {
    // R-001-11
    both_modes::<H>(|harness, mode| {
        let cases: &[(&str, &[&str])] = &[
            ("quicksort", &["s.1 user"]),
            ("QuickSort", &["s.1 user"]),
            ("pivot", &["s.1 reasoning"]),
            ("read", &["s.1 text", "s.1 tool"]),
            ("stable", &["s.2 text"]),
            ("partition", &["s.1 tool"]),
            ("overloaded", &["s.1 error"]),
            ("ähm", &["s.1 tool"]),
            ("the", &["s.1 reasoning", "s.1 text", "s.1 user", "s.2 user"]),
            // Several words, anywhere in the part.
            ("tests run", &["s.1 text"]),
            ("pivot quicksort", &[]),
            // A prefix.
            ("merge*", &["s.2 user"]),
            ("par*", &["s.1 tool"]),
            // Phrases, and fragments with punctuation.
            ("\"out of bounds\"", &["s.1 tool"]),
            ("\"bounds of out\"", &[]),
            ("src/sort.rs", &["s.1 text"]),
            ("\"sort.rs, then\"", &["s.1 text"]),
            ("--all", &["s.1 tool"]),
            ("fn partition()", &["s.1 tool"]),
            ("'index", &["s.1 tool"]),
            // Exclusions.
            ("the -pivot", &["s.1 text", "s.1 user", "s.2 user"]),
            ("the -\"run the\" -mend -piv*", &["s.2 user"]),
            // No match.
            ("heapsort", &[]),
            ("\"\"", &[]),
            ("", &[]),
            ("   ", &[]),
        ];
        for (query, expected) in cases {
            assert_eq!(harness.found(query), *expected, "{query} {mode:?}");
        }
    });
}

pub fn a_word_inside_a_longer_one_is_found_where_no_whole_one_is<H: TestArchive>() {
    both_modes::<H>(|harness, mode| {
        let results = harness.search(request("sort"));
        assert!(!results.widened, "src/sort.rs has it whole, {mode:?}");
        assert_eq!(harness.found("sort"), ["s.1 text"], "{mode:?}");
        assert_eq!(harness.found("icksor"), ["s.1 user"], "{mode:?}");
        assert!(harness.search(request("icksor")).widened, "{mode:?}");
        assert_eq!(harness.found("icksor mend"), ["s.1 user"], "{mode:?}");
        assert!(harness.found("icksor pivot").is_empty(), "{mode:?}");
    });
}

pub fn every_filter_of_a_search_narrows_it<H: TestArchive>() {
    // R-001-36
    both_modes::<H>(|harness, mode| {
        harness.record_as(
            "codex",
            "other",
            mode,
            [in_project("/srv/b"), ask("q", "the other one")],
        );
        let with = |change: fn(&mut SearchRequest)| {
            let mut request = request("the");
            change(&mut request);
            let mut found = harness.find_with(request);
            found.sort();
            found
        };
        let all = ["other.1 user", "s.1 reasoning", "s.1 text", "s.1 user", "s.2 user"];
        assert_eq!(with(|_| {}), all, "{mode:?}");
        assert_eq!(with(|it| it.agent = Some("codex".into())), all[..1]);
        assert_eq!(with(|it| it.agent = Some("Codex".into())), all[..0]);
        assert_eq!(with(|it| it.project = Some("ada/eng".into())), all[1..]);
        assert_eq!(with(|it| it.project = Some("%".into())), all[..0]);
        assert_eq!(with(|it| it.kind = Some("user".into())), [all[0], all[3], all[4]]);
        assert_eq!(with(|it| it.kind = Some("text".into())), ["s.1 text"]);
        assert_eq!(with(|it| it.kind = Some("tool".into())), all[..0]);
        assert_eq!(with(|it| it.model = Some("sonnet".into())), ["s.1 reasoning", "s.1 text"]);
        assert_eq!(with(|it| it.model = Some("opus".into())), all[..0]);
        assert_eq!(with(|it| it.since = Some(1_002_000)), ["s.1 text", "s.2 user"]);
        let until = |it: &mut SearchRequest| {
            (it.since, it.until) = (Some(1_001_000), Some(1_002_000));
        };
        assert_eq!(with(until), ["s.1 reasoning"], "up to, and not at");
        assert_eq!(with(|it| it.limit = 0), all[..0]);
        assert_eq!(with(|it| it.limit = 2).len(), 2);
        let tool = |tool: Option<&str>, state: Option<&str>| {
            let owned = |text: Option<&str>| text.map(str::to_owned);
            let mut found = harness.find_with(SearchRequest {
                tool: owned(tool),
                state: owned(state),
                ..request("home*")
            });
            found.sort();
            found
        };
        assert_eq!(tool(Some("Read"), None), ["s.1 tool"]);
        assert_eq!(tool(Some("Read"), Some("completed")), ["s.1 tool"]);
        assert!(tool(Some("Read"), Some("failed")).is_empty());
        assert!(tool(Some("Bash"), None).is_empty());
        assert_eq!(tool(None, None).len(), 2, "and the folder of the session");
    });
}

pub fn titles_names_folders_and_branches_are_found<H: TestArchive>() {
    let harness = Harness::<H>::new();
    harness.record("s", wordy());
    harness.record("s", [title("Sorting things out")]);
    let branch = EventKind::SessionUpdated {
        project: None,
        branch: Some("feature/heaps".to_owned()),
        version: None,
        cost: None,
    };
    harness.record("s", [branch.into()]);
    assert_eq!(harness.found("sorting"), ["s title"]);
    assert_eq!(harness.found("engine"), ["s title"], "the folder");
    assert_eq!(harness.found("feature/heaps"), ["s title"], "the branch");
    let titles = |query: &str| {
        harness.find_with(SearchRequest { kind: Some("title".to_owned()), ..request(query) })
    };
    assert_eq!(titles("things"), ["s title"]);
    assert!(titles("stable").is_empty(), "only titles were asked for");
    let hit = harness.search(request("things")).hits.remove(0);
    assert_eq!(
        (hit.part, hit.turn, hit.title.as_deref()),
        (None, None, Some("Sorting things out"))
    );
    assert_eq!(&hit.snippet.text[hit.snippet.ranges[0].clone()], "things");
    let of_tool = SearchRequest { tool: Some("Bash".to_owned()), ..request("things") };
    assert!(harness.find_with(of_tool).is_empty(), "a title has no tool");
}

pub fn a_hit_says_where_it_is<H: TestArchive>() {
    // R-001-11: a hit identifies the part.
    both_modes::<H>(|harness, mode| {
        let stored = harness.session("s");
        let parts = harness.parts(stored.row);
        for (query, kind, tool, state, at) in [
            ("bounds", "tool", Some("Bash"), Some("failed"), 1003),
            ("partition", "tool", Some("Read"), Some("completed"), 1005),
            ("pivot", "reasoning", None, None, 1001),
        ] {
            let results = harness.search(request(query));
            let [hit] = results.hits.as_slice() else { panic!("{query} {mode:?}") };
            assert_eq!(hit.session, stored.summary.session.id);
            assert_eq!(hit.agent, AGENT);
            assert_eq!(hit.project.as_deref(), Some("/home/ada/engine"));
            assert_eq!(hit.title.as_deref(), Some("Please mend the Quicksort"));
            assert_eq!((hit.turn, hit.kind.as_str()), (Some(1), kind));
            assert_eq!((hit.tool.as_deref(), hit.state.as_deref()), (tool, state));
            assert_eq!(hit.at, Some(at * 1000));
            let body = &parts[&hit.part.unwrap()];
            assert_eq!(body.kind().name(), kind);
            let snippet = &hit.snippet;
            assert!(!snippet.ranges.is_empty());
            for range in &snippet.ranges {
                assert_eq!(snippet.text[range.clone()].to_lowercase(), query);
            }
        }
        let narrow = SearchRequest { width: 5, ..request("bounds") };
        assert!(harness.search(narrow).hits[0].snippet.text.chars().count() < 20);
    });
}

pub fn a_part_is_one_hit_however_often_it_was_indexed<H: TestArchive>() {
    let harness = Harness::<H>::new();
    let mut packer = harness.packer(IngestMode::Bulk);
    let mut writer = harness.open(AGENT, "s");
    harness.take(&mut writer, [ask("p", "go"), called("t", "Bash")]);
    for nth in 0..30 {
        let output = Some(format!("word word word {nth}"));
        let outcome = ToolOutcome { output, ..ToolOutcome::default() };
        let call = call_id("t");
        let ended = EventKind::ToolEnded { call: call.clone(), end: ToolEnd::Completed, outcome };
        harness.take(&mut writer, [ended.into()]);
        let more = ToolOutcome { exit_code: Some(nth), ..ToolOutcome::default() };
        harness.take(&mut writer, [EventKind::ToolRefined { call, outcome: more }.into()]);
        harness.commit(&mut packer, &mut writer);
    }
    harness.live("s", [notice(Some("n"), "word")]);
    assert_eq!(harness.found("word"), ["s.1 notice", "s.1 tool"]);
}

/// Asserts that the current words of a part are found and its earlier ones are not.
fn now_and_before<H: TestArchive>(harness: &Harness<H>, now: &[&str], before: &[&str], what: &str) {
    for word in now {
        assert!(!harness.found(word).is_empty(), "{what}: {word} is not found");
    }
    for word in before {
        let found = harness.found(word);
        assert!(found.is_empty(), "{what}: {word} is still found in {found:?}");
    }
}

pub fn old_words_are_not_found_and_new_ones_are<H: TestArchive>() {
    // R-001-09 R-001-11
    for (first, second) in [
        (IngestMode::Bulk, IngestMode::Bulk),
        (IngestMode::Bulk, IngestMode::Live),
        (IngestMode::Live, IngestMode::Bulk),
    ] {
        let what = format!("{first:?} {second:?}");
        let harness = Harness::<H>::new();
        let bash = |output: &str| ended("t", ToolEnd::Completed, output);
        let record =
            |mode: IngestMode, script: Vec<Line>| harness.record_as(AGENT, "s", mode, script);
        let began = ask("p", "go").stream();
        record(first, vec![began, called("t", "Bash").stream(), bash("zebra").stream()]);
        now_and_before(&harness, &["zebra"], &[], &what);
        // A stronger feed overrides the text.
        record(second, vec![ask("p", "leave"), called("t", "Bash"), bash("yak")]);
        now_and_before(&harness, &["yak", "leave"], &["zebra", "go"], &what);
        // A provisional part is removed: the turn had ended without a reply, then gets one.
        record(first, vec![over(Completed), ask("q", "again"), over(Completed)]);
        assert_eq!(harness.found("reply*").len(), harness.found("\"no-reply\"").len(), "{what}");
        let before = harness.found("no-reply");
        record(second, vec![said(Text, "xenops").in_turn("q")]);
        now_and_before(&harness, &["xenops"], &[], &what);
        assert!(harness.found("no-reply").len() <= before.len(), "{what}");
        for query in ["yak", "zebra", "xenops", "no-reply"] {
            let found = harness.found(query);
            block_on(harness.store().rebuild()).unwrap();
            assert_eq!(harness.found(query), found, "{what}: the rebuilt index finds the same");
        }
        harness.is_clean();
    }
}

pub fn parts_and_turns_that_turn_out_to_be_one_are_found_once<H: TestArchive>() {
    // Hooks and the log report the same turn; the two are merged only later.
    for mode in [IngestMode::Bulk, IngestMode::Live] {
        let harness = Harness::<H>::new();
        let alike = unspool_model::provenance::Name::ByContent(1, 0);
        let record = |script: Vec<Line>| harness.record_as(AGENT, "s", mode, script);
        record(vec![
            started(vec![alike.clone()], vec![words("walrus")]).hook(),
            called("t", "Bash").hook(),
        ]);
        record(vec![ask("p", "walrus"), said(Text, "vole")]);
        record(vec![started(vec![prompt_name("p"), alike], vec![words("walrus")])]);
        record(vec![called("t", "Bash"), ended("t", ToolEnd::Completed, "urchin")]);
        assert_eq!(harness.found("walrus"), ["s.1 user"], "{mode:?}");
        assert_eq!(harness.found("vole"), ["s.1 text"], "{mode:?}");
        assert_eq!(harness.found("urchin"), ["s.1 tool"], "{mode:?}");
        assert_eq!(harness.session("s").summary.turns, 1, "{mode:?}");
        harness.is_clean();
    }
}

pub fn what_is_live_is_found_at_once<H: TestArchive>() {
    // R-X-14
    let harness = Harness::<H>::new();
    let mut packer = harness.packer(IngestMode::Live);
    let mut writer = harness.open(AGENT, "s");
    let mut tell = |line: Line| {
        harness.take(&mut writer, [line]);
        harness.commit(&mut packer, &mut writer);
    };
    tell(ask("p", "hello"));
    assert_eq!(harness.found("hello"), ["s.1 user"]);
    tell(grew(Text, "grow"));
    assert_eq!(harness.found("grow"), ["s.1 text"]);
    tell(grew(Text, "ing"));
    assert_eq!(harness.found("growing"), ["s.1 text"]);
    tell(input_grew("t", "Bash", "{\"command\": \"sleep"));
    assert_eq!(harness.found("sleep"), ["s.1 tool"]);
    assert_eq!(harness.found("growing sleep"), Vec::<String>::new());
}

pub fn no_query_is_an_error<H: TestArchive>() {
    // Law 8: a query may be any text.
    let harness = Harness::<H>::new();
    harness.record("s", wordy());
    harness.live("t", wordy());
    let hostile = [
        "\"",
        "\"\"\"",
        "-",
        "--",
        "*",
        "**",
        "-*",
        "-\"",
        "\0",
        "%",
        "_",
        "'",
        "\\",
        "()",
        "AND",
        "a OR",
        "NEAR(",
        "^x",
        "col:x",
        "{",
        "}",
        "ß",
        "İ",
        "ﬁ",
        "\u{202e}",
        "\u{301}",
        "日本",
        "🦀",
        "-🦀",
        "\u{FFFD}",
        "a\u{0}b",
        "; DROP TABLE part",
        "?1",
        "-the",
        "-the -a",
        ".",
        "e",
        ".*",
        "\"the\"*",
        "the*\"",
        "- -",
        "\t\n",
    ];
    for query in hostile {
        harness.search(SearchRequest { width: 0, ..request(query) });
        harness.search(SearchRequest {
            width: usize::MAX / 4,
            limit: usize::MAX,
            ..request(query)
        });
    }
    for long in ["x".repeat(100_000), "a ".repeat(50_000), "\"".repeat(10_000), "-a".repeat(9999)] {
        harness.search(request(&long));
    }
    let extremes = SearchRequest { since: Some(i64::MIN), until: Some(i64::MAX), ..request("the") };
    assert_eq!(harness.search(extremes).hits.len(), 8);
    let odd = SearchRequest {
        agent: Some("' OR 1=1".to_owned()),
        kind: Some("no such kind".to_owned()),
        ..request("the")
    };
    assert!(harness.search(odd).hits.is_empty());
}

pub fn a_limited_search_reports_more_hits<H: TestArchive>() {
    let harness = Harness::<H>::new();
    let mut script = Vec::new();
    for nth in 0..120 {
        script.extend([
            ask(&format!("p{nth}"), &format!("common number{nth}")).at(nth),
            said(Text, "reply").at(nth),
            over(Completed).at(nth),
        ]);
    }
    harness.record("s", script);
    for limit in [1, 7, 50, 119, 120, 121] {
        let results = harness.search(SearchRequest { limit, ..SearchRequest::new("common") });
        assert_eq!(results.hits.len(), limit.min(120));
        let newest = results.hits[0].turn;
        assert_eq!(newest, Some(120), "of those that are as good the newest comes first");
        if limit < 120 {
            assert!(results.more, "{limit}");
        }
    }
    assert_eq!(harness.found("number7"), ["s.8 user"]);
    assert_eq!(harness.find_with(request("number7*")).len(), 11);
}
