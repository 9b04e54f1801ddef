//! Listing and finding sessions, facets, and ranges of turns.

use unspool_ingest::recorder::batch::IngestMode;
use unspool_model::event::EndReason::Completed;
use unspool_model::event::ProseKind::Text;
use unspool_model::event::{EventKind, ToolEnd};
use unspool_model::id::SessionId;
use unspool_model::price::Prices;
use unspool_model::session::{Parent, Usage};
use unspool_store::blocking::block_on;
use unspool_store::facets::FacetsRequest;
use unspool_store::store::{ListPosition, SessionFilter, Store, TurnWindow, View};

use crate::harness::{AGENT, Harness, ask, in_project};
use crate::script::*;
use crate::test_archive::TestArchive;

/// A session with one turn that starts and ends at these seconds.
fn short(from: i64, to: i64, project: &str) -> Vec<Line> {
    vec![
        in_project(project).at(from),
        ask("p", "hello").at(from),
        said(Text, "hi").at(from),
        over(Completed).at(to),
    ]
}

fn step_of(id: &str, model: &str) -> Line {
    EventKind::StepStarted { step: message(id), model: Some(model.to_owned()) }.into()
}

fn all() -> SessionFilter {
    SessionFilter::default()
}

pub fn sessions_are_listed_newest_first<H: TestArchive>() {
    // R-001-36 R-004-04
    let harness = Harness::<H>::new();
    assert!(harness.sessions(all()).is_empty());
    harness.record("old", short(100, 900, "/a"));
    harness.record("new", short(300, 400, "/b"));
    harness.record("middle", short(200, 250, "/a/c"));
    // Equal start times: ordered by id.
    let mut twins = ["twin-1", "twin-2", "twin-3"];
    for twin in twins {
        harness.record(twin, short(150, 160, "/a"));
    }
    twins.sort_by_key(|twin| SessionId::of(AGENT, twin).to_string());
    // Sessions without a time come last.
    let untimed = Line { at: Some(None), ..ask("p", "when?") };
    harness.record("untimed", [untimed]);
    let order = ["new", "middle", twins[0], twins[1], twins[2], "old", "untimed"];
    assert_eq!(harness.sessions(all()), order);
    for limit in 0..9 {
        let few = harness.sessions(SessionFilter { limit: Some(limit), ..all() });
        assert_eq!(few, order[..order.len().min(limit as usize)]);
    }
    let most = SessionFilter { limit: Some(u64::MAX), ..all() };
    assert_eq!(harness.sessions(most).len(), order.len());
}

pub fn every_filter_of_a_list_narrows_it<H: TestArchive>() {
    // R-001-36
    let harness = Harness::<H>::new();
    let one = harness.record("one", short(100, 200, "/home/a/project"));
    harness.record("two", short(300, 400, "/home/b/pro%ject"));
    harness.record_as("codex", "three", IngestMode::Bulk, short(500, 600, "/home/a/project/below"));
    block_on(harness.store().tag(one.row, vec!["good".to_owned()], Vec::new())).unwrap();

    let agent = |agent: &str| SessionFilter { agent: Some(agent.to_owned()), ..all() };
    assert_eq!(harness.sessions(agent(AGENT)), ["two", "one"]);
    assert_eq!(harness.sessions(agent("codex")), ["three"]);
    assert!(harness.sessions(agent("CODEX")).is_empty());
    assert!(harness.sessions(agent("")).is_empty());

    let project = |path: &str| SessionFilter { project: Some(path.to_owned()), ..all() };
    assert_eq!(harness.sessions(project("/home/a/project")), ["three", "one"]);
    assert_eq!(harness.sessions(project("pro%ject")), ["two"], "no character means anything");
    assert!(harness.sessions(project("/home/_")).is_empty());

    let tag = |tag: &str| SessionFilter { tag: Some(tag.to_owned()), ..all() };
    assert_eq!(harness.sessions(tag("good")), ["one"]);
    assert!(harness.sessions(tag("goo")).is_empty());

    let time = |since: Option<i64>, until: Option<i64>| {
        let seconds = |time: Option<i64>| time.map(|time| time * 1000);
        SessionFilter { since: seconds(since), until: seconds(until), ..all() }
    };
    assert_eq!(harness.sessions(time(Some(400), None)), ["three", "two"], "ended then or later");
    assert_eq!(harness.sessions(time(Some(401), None)), ["three"]);
    assert_eq!(harness.sessions(time(None, Some(300))), ["one"], "began before");
    assert_eq!(harness.sessions(time(None, Some(301))), ["two", "one"]);
    assert_eq!(harness.sessions(time(Some(350), Some(450))), ["two"]);
    assert!(harness.sessions(time(Some(i64::MAX / 1000), None)).is_empty());
    let both = SessionFilter { limit: Some(1), ..project("/home/a") };
    assert_eq!(harness.sessions(both), ["three"]);
}

pub fn sessions_are_chosen_by_model_by_errors_and_by_whose_they_are<H: TestArchive>() {
    // R-001-36
    let harness = Harness::<H>::new();
    let by = |model: &str| vec![step_of("st", model), over(Completed)];
    harness.record("one", [vec![ask("p", "a").at(100)], by("claude-opus-4")].concat());
    harness.record("two", [vec![ask("p", "b").at(200)], by("claude-opus-4-5")].concat());
    let both = [step_of("s1", "gpt-5"), step_of("s2", "claude-opus-4"), over(Completed)];
    harness.record("both", [vec![ask("p", "c").at(300)], both.to_vec()].concat());
    harness.record("none", [ask("p", "d").at(400), said(Text, "hi"), over(Completed)]);

    let model = |model: &str| SessionFilter { model: Some(model.to_owned()), ..all() };
    let mut found = harness.sessions(model("claude-opus-4"));
    found.sort();
    assert_eq!(found, ["both", "one"], "its whole name");
    assert_eq!(harness.sessions(model("claude-opus-4-5")), ["two"]);
    assert_eq!(harness.sessions(model("gpt-5")), ["both"]);
    for none in ["claude", "", ",", "\",\"", "%", "GPT-5"] {
        assert!(harness.sessions(model(none)).is_empty(), "{none:?}");
    }

    let broken = [
        ask("p", "e").at(500),
        called("c", "Bash"),
        ended("c", ToolEnd::Failed, "no"),
        over(Completed),
    ];
    harness.record("broken", broken);
    let errors = SessionFilter { with_errors: true, ..all() };
    assert_eq!(harness.sessions(errors.clone()), ["broken"]);
    assert!(
        harness.sessions(SessionFilter { model: Some("gpt-5".to_owned()), ..errors }).is_empty()
    );

    // Marked as a sub-agent by its own log or by its parent's.
    let parent = Parent { session: SessionId::of(AGENT, "one"), call_id: None, kind: None };
    let started_by = Line::from(EventKind::StartedBy(parent));
    harness.record("below", [started_by, ask("p", "f").at(600), said(Text, "hi")]);
    harness.record("named", [ask("p", "g").at(700), said(Text, "hi")]);
    harness.record("one", [ask("p", "a"), called("t", "Task"), agent_started("t", "named")]);
    let sorted = |filter: SessionFilter| {
        let mut found = harness.sessions(filter);
        found.sort();
        found
    };
    assert_eq!(sorted(all()), ["below", "both", "broken", "named", "none", "one", "two"]);
    let own = SessionFilter { without_agents: true, ..all() };
    assert_eq!(sorted(own), ["both", "broken", "none", "one", "two"]);
}

/// Sessions of all kinds.
fn record_many<H: TestArchive>(harness: &Harness<H>) {
    for nth in 0..24_i64 {
        let (agent, name) = (["claude-code", "codex"][nth as usize % 2], format!("s{nth}"));
        let project = ["/home/a/app", "/home/a/app/below", "/home/b"][nth as usize % 3];
        let mut script = vec![in_project(project).at(100 * nth), ask("p", "hello").at(100 * nth)];
        if nth % 4 > 0 {
            let model = ["opus", "opus-4", "gpt"][nth as usize % 3];
            script.push(step_of("st", model).at(100 * nth + 1));
            let usage = Usage { input: 1000, output: nth as u64, ..Usage::default() };
            script.push(
                Line::from(EventKind::UsageUpdated { step: message("st"), usage })
                    .at(100 * nth + 2),
            );
        }
        if nth % 5 == 0 {
            script.push(called("c", "Bash").at(100 * nth + 3));
            script.push(ended("c", ToolEnd::Failed, "no").at(100 * nth + 4));
        }
        if nth == 7 {
            script.push(called("t", "Task").at(100 * nth + 5));
            script.push(agent_started("t", "s9").at(100 * nth + 5));
        }
        script.push(over(Completed).at(100 * nth + 10));
        harness.record_as(agent, &name, IngestMode::Bulk, script);
    }
    let row = |nth: i64| {
        let agent = ["claude-code", "codex"][nth as usize % 2];
        harness.stored(SessionId::of(agent, &format!("s{nth}"))).row
    };
    for nth in [1, 2, 3, 8] {
        block_on(harness.store().tag(row(nth), vec!["good".to_owned()], Vec::new())).unwrap();
    }
    block_on(harness.store().tag(row(2), vec!["odd".to_owned()], Vec::new())).unwrap();
}

/// Every filter, and some combinations.
fn filters_of_all_kinds() -> Vec<SessionFilter> {
    let said = |text: &str| Some(text.to_owned());
    let mut filters = vec![
        all(),
        SessionFilter { agent: said("codex"), ..all() },
        SessionFilter { project: said("/home/a/app"), ..all() },
        SessionFilter { project: said("below"), ..all() },
        SessionFilter { model: said("opus"), ..all() },
        SessionFilter { tag: said("good"), ..all() },
        SessionFilter { with_errors: true, ..all() },
        SessionFilter { since: Some(1_000_000), ..all() },
        SessionFilter { until: Some(1_500_000), ..all() },
    ];
    let more: Vec<SessionFilter> = filters
        .iter()
        .flat_map(|filter| {
            let own = SessionFilter { without_agents: true, ..filter.clone() };
            let of =
                SessionFilter { agent: said("claude-code"), with_errors: true, ..filter.clone() };
            let late = SessionFilter { since: Some(700_000), tag: said("good"), ..filter.clone() };
            [own, of, late]
        })
        .collect();
    filters.extend(more);
    filters
}

pub fn a_session_by_itself_is_chosen_as_a_list_chooses_it<H: TestArchive>() {
    let harness = Harness::<H>::new();
    record_many(&harness);
    let everything = block_on(harness.view().sessions(all())).unwrap();
    assert_eq!(everything.len(), 24);
    for filter in filters_of_all_kinds() {
        let mut chosen = everything.clone();
        chosen.retain(|stored| filter.allows(stored));
        assert_eq!(
            block_on(harness.view().sessions(filter.clone())).unwrap(),
            chosen,
            "{filter:?}"
        );
    }
}

pub fn facet_counts_match_the_filtered_lists<H: TestArchive>() {
    let harness = Harness::<H>::new();
    record_many(&harness);
    let list = |filter: SessionFilter| block_on(harness.view().sessions(filter)).unwrap();
    let length = |filter: SessionFilter| list(filter).len() as u64;
    for filter in filters_of_all_kinds() {
        let times = vec![500_000, 1_200_000];
        let request = FacetsRequest {
            filter: filter.clone(),
            times: times.clone(),
            prices: Prices::default(),
        };
        let counted = block_on(harness.view().facets(request)).unwrap();
        assert_eq!((counted.all, counted.sessions), (24, length(filter.clone())), "{filter:?}");
        let with = |change: &dyn Fn(&mut SessionFilter)| {
            let mut filter = filter.clone();
            change(&mut filter);
            length(filter)
        };
        for (agent, count) in &counted.agents {
            assert_eq!(*count, with(&|filter| filter.agent = Some(agent.clone())), "{agent}");
        }
        for project in &counted.projects {
            let path = Some(project.path.clone());
            assert_eq!(project.sessions, with(&|filter| filter.project = path.clone()));
        }
        for (model, count) in &counted.models {
            assert_eq!(*count, with(&|filter| filter.model = Some(model.clone())), "{model}");
        }
        for (tag, count) in &counted.tags {
            assert_eq!(*count, with(&|filter| filter.tag = Some(tag.clone())), "{tag}");
        }
        for (since, count) in times.into_iter().zip(&counted.times) {
            assert_eq!(*count, with(&|filter| filter.since = Some(since)), "{since}");
        }
        assert_eq!(counted.errors, with(&|filter| filter.with_errors = true));
        let whole = with(&|filter| filter.without_agents = false);
        assert_eq!(counted.sub_agents, whole - with(&|filter| filter.without_agents = true));
        // Each session once, whether selected itself or as a sub-agent of a selected one.
        let mut below: Vec<SessionId> = Vec::new();
        let mut tokens = 0;
        let everything = list(all());
        for stored in &everything {
            let parent = stored.summary.session.parent.as_ref().map(|parent| parent.session);
            let above = everything.iter().find(|other| Some(other.summary.session.id) == parent);
            if filter.allows(stored) || above.is_some_and(|above| filter.allows(above)) {
                below.push(stored.summary.session.id);
                tokens += stored.summary.usage.total();
            }
        }
        assert_eq!(counted.usage.total(), tokens, "{filter:?}");
    }
}

pub fn a_list_continues_after_a_position<H: TestArchive>() {
    // R-004-04
    let harness = Harness::<H>::new();
    for nth in 0..9 {
        // Three sessions for each start time.
        harness.record(&format!("s{nth}"), short(100 * (nth / 3), 5000, "/a"));
    }
    for name in ["u1", "u2", "u3", "u4"] {
        harness.record(name, [Line { at: Some(None), ..ask("p", "when?") }]);
    }
    let whole = harness.sessions(all());
    assert_eq!(whole.len(), 13);
    let place = |name: &str| -> ListPosition {
        let stored = harness.session(name);
        let started = stored.summary.started.map(|at| at.as_millisecond());
        (started, stored.summary.session.id)
    };
    for (nth, name) in whole.iter().enumerate() {
        let after = SessionFilter { after: Some(place(name)), ..all() };
        assert_eq!(harness.sessions(after.clone()), whole[nth + 1..], "behind {name}");
        let few = SessionFilter { limit: Some(2), ..after };
        let end = whole.len().min(nth + 3);
        assert_eq!(harness.sessions(few), whole[nth + 1..end], "two behind {name}");
    }
    // Page through the list, four at a time, while the last listed session is deleted and others
    // are added.
    let mut in_project: Vec<String> = Vec::new();
    let mut after = None;
    loop {
        let filter = SessionFilter { after, limit: Some(4), ..all() };
        let page = harness.sessions(filter);
        let Some(last) = page.last() else { break };
        after = Some(place(last));
        let gone = harness.session(last).row;
        in_project.extend(page);
        block_on(harness.store().delete(gone)).unwrap();
        harness.record(&format!("new-{}", in_project.len()), short(9000, 9001, "/a"));
    }
    assert_eq!(in_project, whole, "each once, in order");
    let project = SessionFilter { project: Some("/b".to_owned()), after, ..all() };
    assert!(harness.sessions(project).is_empty());
}

pub fn a_session_is_found_by_what_people_call_it<H: TestArchive>() {
    let harness = Harness::<H>::new();
    for name in ["abc-1", "abc-2", "abc", "ähnlich", "50%_x"] {
        harness.record(name, short(100, 200, "/a"));
    }
    let find = |text: &str| {
        let found = block_on(harness.view().find(text.to_owned())).unwrap();
        let mut names: Vec<String> =
            found.into_iter().map(|stored| stored.summary.session.agent_session_id).collect();
        names.sort();
        names
    };
    let id = SessionId::of(AGENT, "abc-1").to_string();
    assert_eq!(find(&id), ["abc-1"], "our id");
    assert_eq!(find(&id[..8]), ["abc-1"], "its start");
    assert_eq!(find("abc-2"), ["abc-2"], "the agent's own id");
    assert_eq!(find("abc"), ["abc"], "one that is meant exactly");
    assert_eq!(find("ab"), ["abc", "abc-1", "abc-2"], "several that may be meant");
    assert_eq!(find("äh"), ["ähnlich"]);
    let none = ["abd", "ABC", "bc-1", "%", "_", "50%%", "abc-1 ", "' OR 1=1 --", "\0", "abc\0"];
    for none in none {
        assert!(find(none).is_empty(), "{none:?}");
    }
    assert_eq!(find("50%"), ["50%_x"]);
    assert!(find(&"a".repeat(1_000_000)).is_empty());
    assert!(find(&format!("{id}x")).is_empty());
}

pub fn the_session_that_is_meant_exactly_is_never_crowded_out<H: TestArchive>() {
    // Sixty newer sessions with the same id prefix.
    let harness = Harness::<H>::new();
    harness.record("run", short(1, 2, "/a"));
    for nth in 0..60 {
        harness.record(&format!("run-{nth}"), short(1000 + nth, 2000, "/a"));
    }
    let found = block_on(harness.view().find("run".to_owned())).unwrap();
    let names: Vec<&str> =
        found.iter().map(|stored| stored.summary.session.agent_session_id.as_str()).collect();
    assert_eq!(names, ["run"]);
}

pub fn turns_come_in_windows<H: TestArchive>() {
    // R-004-04
    let harness = Harness::<H>::new();
    let mut script = vec![notice(Some("n"), "before")];
    for nth in 1..=5 {
        script.extend([
            ask(&format!("p{nth}"), &format!("ask {nth}")),
            said(Text, &format!("answer {nth}")),
            over(Completed),
        ]);
    }
    let row = harness.record("s", script).row;
    harness.record("other", short(1, 2, "/a"));
    let numbers = |window: TurnWindow| {
        let shown = block_on(harness.view().turns(row, window)).unwrap();
        let whole = block_on(harness.view().whole_turns(row, window)).unwrap();
        assert_eq!(shown, whole, "nothing is hidden here");
        shown.iter().map(|turn| turn.number).collect::<Vec<u32>>()
    };
    let from = |number: u32, count: u32| TurnWindow::From { number, count };
    assert_eq!(numbers(TurnWindow::All), [0, 1, 2, 3, 4, 5]);
    assert_eq!(numbers(TurnWindow::Turn(3)), [3]);
    assert_eq!(numbers(TurnWindow::Turn(0)), [0]);
    assert!(numbers(TurnWindow::Turn(6)).is_empty());
    assert_eq!(numbers(from(0, 2)), [0, 1]);
    assert_eq!(numbers(from(4, 9)), [4, 5]);
    assert!(numbers(from(2, 0)).is_empty());
    assert!(numbers(from(6, 1)).is_empty());
    assert_eq!(numbers(from(0, u32::MAX)).len(), 6);
    assert!(numbers(from(u32::MAX, u32::MAX)).is_empty());
    assert!(block_on(harness.view().turns(row + 9, TurnWindow::All)).unwrap().is_empty());
    // `locate` finds the turn of a part, within its session only.
    for turn in block_on(harness.view().turns(row, TurnWindow::All)).unwrap() {
        for part in &turn.parts {
            let found = block_on(harness.view().locate(row, None, part.id)).unwrap();
            assert_eq!(found, Some((turn.number, part.place)));
            assert_eq!(block_on(harness.view().locate(row + 1, None, part.id)).unwrap(), None);
        }
    }
}

pub fn what_is_not_shown_is_kept<H: TestArchive>() {
    // Hooks report a call that the complete log of this turn does not contain: it is hidden.
    let harness = Harness::<H>::new();
    let row = harness
        .record(
            "s",
            [
                ask("p", "go").hook(),
                called_with("elsewhere", "Bash", r#"{"command":"secret"}"#).hook(),
                ask("p", "go"),
                said(Text, "done"),
                over(Completed),
            ],
        )
        .row;
    let shown = harness.turns(row);
    let whole = block_on(harness.view().whole_turns(row, TurnWindow::All)).unwrap();
    assert_eq!((shown[0].parts.len(), whole[0].parts.len()), (1, 2));
    assert!(whole[0].parts.iter().any(|part| part.origin.is_hidden()));
    assert_eq!(harness.session("s").summary.parts, 1);
    assert!(harness.found("secret").is_empty(), "what is not shown is not found");
    block_on(harness.store().rebuild()).unwrap();
    assert!(harness.found("secret").is_empty(), "nor after a rebuild of the index");
    harness.is_clean();
}
