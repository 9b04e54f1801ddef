//! HTML pages of every recording and of hostile text: nothing that an agent wrote becomes markup.

use std::collections::{BTreeMap, BTreeSet};

use unspool_export::html::flow::FlowRun;
use unspool_export::html::session_head::HeadFigures;
use unspool_export::project::SessionStream;
use unspool_export::project::thoughtflow::Flow;
use unspool_model::id::SessionId;
use unspool_model::part::{Body, Text};
use unspool_model::price::Prices;
use unspool_model::session::{SessionState, Transcript};
use unspool_model::summary::UsageScope;
use unspool_model::summary::{Completeness, Summary};
use unspool_query::compare::Candidate;
use unspool_query::search::{Reading, Suggestion};
use unspool_redact::Redactor;
use unspool_server::templates;
use unspool_server::templates::UrlQuery;
use unspool_store::stats::{HourFigures, UsageFigures};
use unspool_store::store::StoredSession;
use unspool_view::block::Tone;
use unspool_view::finding::{Cost, Evidence, Finding, Rule};
use unspool_view::present;
use unspool_view::present::activity::Activity;
use unspool_view::present::budget::BudgetUse;
use unspool_view::present::changes::{ChangesBuilder, EditRef, FileStatus};
use unspool_view::present::compare::{
    Calls, ComparedFigure, ComparedFile, ComparedHead, ComparedRow, ComparedTool, Comparison,
    FileCell, TurnCell, Verdict,
};
use unspool_view::present::findings::PlacedFinding;
use unspool_view::present::tools::Tasks;

use crate::by_source::by_source;
use crate::case::{all_cases, captures, cases, fold_in, main_session, name, root};

/// The allowed elements.
const TAGS: &[&str] = &[
    "a",
    "article",
    "aside",
    "blockquote",
    "body",
    "button",
    "caption",
    "clipPath",
    "code",
    "data",
    "dd",
    "desc",
    "details",
    "div",
    "dl",
    "dt",
    "em",
    "figcaption",
    "figure",
    "form",
    "g",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "img",
    "input",
    "label",
    "li",
    "line",
    "link",
    "main",
    "mark",
    "marker",
    "meta",
    "nav",
    "ol",
    "option",
    "p",
    "path",
    "pre",
    "rect",
    "s",
    "script",
    "section",
    "select",
    "span",
    "strong",
    "summary",
    "svg",
    "table",
    "tbody",
    "td",
    "text",
    "th",
    "thead",
    "time",
    "title",
    "tr",
    "ul",
];

/// The allowed attributes: no event handlers and no styles.
const ATTRIBUTES: &[&str] = &[
    "action",
    "alt",
    "aria-current",
    "aria-hidden",
    "aria-label",
    "aria-labelledby",
    "aria-pressed",
    "autocomplete",
    "autofocus",
    "charset",
    "checked",
    "class",
    "clip-path",
    "content",
    "d",
    "data-act",
    "data-agent",
    "data-at",
    "spellcheck",
    "data-verdict",
    "data-transcript",
    "data-row",
    "data-changes",
    "data-copy",
    "data-day",
    "data-figure",
    "data-file",
    "data-from",
    "data-gap",
    "data-inline",
    "data-kind",
    "data-language",
    "data-line",
    "data-live-now",
    "data-list",
    "data-more",
    "data-number",
    "data-only",
    "data-query",
    "data-seq",
    "data-session",
    "data-side",
    "data-sign",
    "data-order",
    "data-started",
    "data-state",
    "data-step",
    "data-landmark",
    "data-call",
    "data-tool",
    "data-turn",
    "data-version",
    "data-without",
    "data-zoom",
    "datetime",
    "download",
    "height",
    "hidden",
    "href",
    "id",
    "lang",
    "loading",
    "marker-end",
    "markerHeight",
    "markerWidth",
    "method",
    "name",
    "open",
    "orient",
    "placeholder",
    "preserveAspectRatio",
    "refX",
    "refY",
    "rel",
    "required",
    "role",
    "rx",
    "scope",
    "selected",
    "src",
    "start",
    "tabindex",
    "target",
    "text-anchor",
    "title",
    "transform",
    "type",
    "value",
    "viewBox",
    "width",
    "x",
    "x1",
    "x2",
    "y",
    "y1",
    "y2",
];

/// A start tag: its name and its attributes.
struct Start<'a> {
    tag: &'a str,
    attributes: Vec<(&'a str, &'a str)>,
}

/// Parses the start tags of our own markup. Panics on anything else.
fn starts(html: &str) -> Vec<Start<'_>> {
    let mut found = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if rest.starts_with('/') || rest.starts_with("!DOCTYPE") {
            rest = &rest[rest.find('>').unwrap() + 1..];
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap();
        let tag = &rest[..end];
        assert!(!tag.is_empty(), "a bare < stands before {:?}", &rest[..rest.len().min(40)]);
        rest = &rest[end..];
        let mut attributes = Vec::new();
        loop {
            rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix('>') {
                rest = after;
                break;
            }
            let end = rest.find(['=', ' ', '>']).unwrap();
            let key = &rest[..end];
            rest = &rest[end..];
            let mut value = "";
            if let Some(after) = rest.strip_prefix("=\"") {
                let end = after.find('"').unwrap();
                value = &after[..end];
                rest = &after[end + 1..];
            }
            attributes.push((key, value));
        }
        found.push(Start { tag, attributes });
    }
    found
}

fn render(transcript: &Transcript) -> String {
    let summary = transcript.summary(Completeness::Full, &[]);
    let options = present::PresentOptions::of(&transcript.session);
    let turns: Vec<_> = transcript.turns.iter().map(|turn| present::turn(turn, &options)).collect();
    let prices = Prices::listed();
    let tasks: Tasks = transcript.turns.iter().flat_map(|turn| &turn.parts).collect();
    let page = templates::session::SessionPage {
        summary: &summary,
        prices: &prices,
        figures: HeadFigures::default(),
        is_live: true,
        seq: 0,
        window: templates::session::TranscriptWindow {
            turns: &turns,
            earlier: None,
            later: None,
            prompts: &[],
        },
        resume: None,
        tasks: &tasks,
    };
    templates::session::session(&page, &templates::session::Choice { only: None, may_drive: false })
        .into_string()
}

fn check(html: &str, whose: &str) {
    let bad = |c: char| {
        (c.is_control() && c != '\n' && c != '\t') || unspool_view::block::is_deceptive(c)
    };
    assert!(!html.contains(bad), "{whose}: a character that no page may hold");
    let mut ids = BTreeSet::new();
    for Start { tag, attributes } in starts(html) {
        assert!(TAGS.contains(&tag), "{whose}: <{tag}>");
        for (key, value) in attributes {
            assert!(ATTRIBUTES.contains(&key), "{whose}: <{tag} {key}>");
            match (tag, key) {
                ("script" | "link", "src" | "href") => {
                    assert!(value.starts_with("/assets/"), "{whose}: {value}");
                }
                ("img", "src") => assert!(value.starts_with("data:image/"), "{whose}: {value:.40}"),
                (_, "src" | "action") => {
                    let ours = ["/", "/stats", "/findings", "/compare", "/demo", "/login"];
                    assert!(ours.contains(&value), "{whose}: {key}={value}");
                }
                (_, "href") => {
                    let ours = value.starts_with('#') || value.starts_with('/');
                    let safe = ["http://", "https://", "mailto:"];
                    // The link that opens a changed file in an editor.
                    let ours = ours || value.starts_with("vscode://file/");
                    let safe = ours || safe.iter().any(|start| value.starts_with(start));
                    assert!(safe && !value.starts_with("//"), "{whose}: {value}");
                }
                (_, "id") => assert!(ids.insert(value.to_owned()), "{whose}: two are {value}"),
                _ => {}
            }
        }
    }
}

/// The page of what a session changed.
fn changed(transcript: &Transcript) -> String {
    let summary = transcript.summary(Completeness::Full, &[]);
    let session = transcript.session.id;
    let mut builder = ChangesBuilder::new(transcript.session.facts.project.as_deref());
    for turn in &transcript.turns {
        for part in &turn.parts {
            let (turn, place) = (turn.number, part.place);
            builder.add(part, EditRef { session, turn, place, part: part.id });
        }
    }
    let changes = builder.finish();
    let page =
        templates::changes::ChangesPage { summary: &summary, turn: Some(1), changes: &changes };
    templates::changes::changes(&page).into_string()
}

/// The flow page of a session's runs.
fn drawn(transcript: &Transcript) -> String {
    let summary = transcript.summary(Completeness::Full, &[]);
    let unchanged = Redactor::off().release_transcript(transcript.clone());
    let document = Flow::new(SessionStream::of(&unchanged)).unwrap().document().unwrap();
    let numbered = transcript.turns.iter().zip(document.conversations);
    let runs: Vec<FlowRun> = numbered
        .map(|(turn, conversation)| FlowRun { number: turn.number, conversation, before: 0 })
        .collect();
    let flow = templates::thoughtflow::FlowPage {
        summary: &summary,
        runs: &runs,
        earlier: true,
        later: Some((1, 2)),
    };
    templates::thoughtflow::thoughtflow(&flow).into_string()
}

by_source!(law_8_no_recording_becomes_markup);

fn law_8_no_recording_becomes_markup(source: &str) {
    // R-001-31, R-000-24: every recording has a page of allowed elements only.
    for case in cases(source) {
        let captures = captures(&case);
        let all: Vec<usize> = (0..captures.len()).collect();
        let session_set = fold_in(&captures, &all);
        let transcript = main_session(&session_set).transcript();
        check(&render(&transcript), &name(&case));
        check(&drawn(&transcript), &name(&case));
        check(&changed(&transcript), &name(&case));
    }
}

/// Common injection attacks.
const ATTACKS: &[&str] = &[
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "![x](https://elsewhere.example/pixel.png)",
    "<style>*{display:none}</style>",
    "[Thinking] I am not",
    "\u{1b}[31mred\u{1b}]8;;javascript:alert(1)\u{7}link",
    "\u{202e}gnp.exe",
    "</code></pre></div><iframe src=//evil>",
    "a\u{0}b\u{85}c\u{2028}d",
    "```\" onclick=\"alert(1)\n<b>x</b>\n```",
    "| a | <b onclick=x> |\n|---|---|\n| ' | \" |",
    "&lt;script&gt; &amp;#60;",
];

#[test]
fn law_8_no_attack_becomes_markup() {
    let case = all_cases().into_iter().find(|case| name(case) == "odd-output").unwrap();
    let session_set = fold_in(&captures(&case)[..1], &[0]);
    let mut transcript = main_session(&session_set).transcript();
    let attacks = ATTACKS.join("\n\n");
    transcript.session.facts.project = Some(ATTACKS[2].to_owned());
    transcript.session.facts.branch = Some(ATTACKS[1].to_owned());
    transcript.session.agent_session_id = ATTACKS[2].to_owned();
    for turn in &mut transcript.turns {
        turn.user = vec![Body::Text(Text { text: attacks.clone(), ..Text::default() })];
        for part in &mut turn.parts {
            match &mut part.body {
                Body::Text(text) => text.text = attacks.clone(),
                Body::Reasoning(reasoning) => reasoning.text = attacks.clone(),
                Body::Tool(tool) => {
                    tool.name = ATTACKS[2].to_owned();
                    tool.title = Some(ATTACKS[0].to_owned());
                    tool.output = Some(attacks.clone());
                    tool.result = None;
                }
                Body::Notice(notice) => notice.text = attacks.clone(),
                Body::Error(error) => error.text = attacks.clone(),
                _ => {}
            }
        }
    }
    check(&changed(&transcript), "changes");
    let html = render(&transcript);
    check(&html, "attacks");
    assert_eq!(html.matches("<script").count(), 2, "only ours");
    // The text is still visible.
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
}

/// A summary in which every free text is an attack.
fn attacked() -> Summary {
    let case = all_cases().into_iter().find(|case| name(case) == "odd-output").unwrap();
    let session_set = fold_in(&captures(&case)[..1], &[0]);
    let transcript = main_session(&session_set).transcript();
    let mut summary = transcript.summary(Completeness::Full, &[]);
    let attacks = ATTACKS.concat();
    summary.title = Some(attacks.clone());
    summary.session.agent = attacks.clone();
    summary.session.facts.project = Some(attacks.clone());
    summary.models = vec![attacks.clone()];
    summary.tags = ATTACKS.iter().map(|attack| (*attack).to_owned()).collect();
    summary.session.state = SessionState::Live;
    summary
}

fn attacked_query() -> UrlQuery {
    let attacks = ATTACKS.concat();
    ["q", "agent", "project", "model", "tag", "since", "kind"]
        .into_iter()
        .fold(UrlQuery::default(), |query, name| query.with(name, Some(&attacks)))
}

fn attacked_choices() -> Vec<templates::filters::FilterMenu> {
    let value = ATTACKS.concat();
    let list =
        vec![templates::filters::FilterOption { label: value.clone(), value, count: Some(3) }];
    vec![templates::filters::FilterMenu { name: "agent", label: "Agent", any: "All agents", list }]
}

#[test]
fn law_8_no_attack_becomes_markup_in_a_comparison() {
    let attacks = ATTACKS.concat();
    let summary = attacked();
    let id = summary.session.id;
    let head = || ComparedHead { id, title: attacks.clone(), agent: attacks.clone() };
    let cell = || TurnCell {
        number: 1,
        said: attacks.clone(),
        state: "completed",
        tone: Tone::Ok,
        abandoned: false,
        duration_ms: Some(3),
        calls: Calls { all: 2, failed: 1 },
        tokens: String::new(),
        cost: String::new(),
        files: 1,
    };
    let row = |is_same| ComparedRow { turns: [Some(cell()), Some(cell())], is_same };
    let change = FileCell { status: FileStatus::New, added: 1, removed: 0 };
    let comparison = Comparison {
        heads: [head(), head()],
        notes: Vec::new(),
        figures: vec![ComparedFigure {
            name: "Models",
            values: [attacks.clone(), attacks.clone()],
        }],
        turns: vec![row(true), row(false)],
        tools: vec![ComparedTool { name: attacks.clone(), calls: [Calls::default(); 2] }],
        files: vec![ComparedFile {
            name: attacks.clone(),
            changes: [Some(change), None],
            verdict: Verdict::OnlyOne,
        }],
    };
    check(&templates::compare::compare(&comparison).into_string(), "comparison");
    let stored = StoredSession {
        row: 1,
        summary: summary.clone(),
        name: None,
        sub_agent: false,
        seq: 1,
        skip_counts: BTreeMap::new(),
    };
    let offered = [Candidate { stored, reason: Some("same project") }];
    let page = templates::compare::choice(&summary, &offered, &Prices::none());
    check(&page.into_string(), "choice of a comparison");
}

#[test]
fn law_8_no_attack_becomes_markup_in_findings() {
    let attacks = ATTACKS.concat();
    let evidence = Evidence { turn: 1, step: None, part: None, what: attacks.clone() };
    let finding = |rule: &Rule| Finding {
        rule: *rule,
        signature: attacks.clone(),
        title: attacks.clone(),
        count: 3,
        opportunities: 4,
        cost: Cost::default(),
        evidence: vec![evidence.clone()],
    };
    let found: Vec<Finding> = Rule::ALL.iter().map(finding).collect();
    let summary = attacked();
    let session = summary.session.id;
    let place = |finding| PlacedFinding {
        finding,
        sessions: 2,
        place: Some((session, Some(attacks.as_str()), &evidence)),
    };
    let placed: Vec<PlacedFinding<'_>> = found.iter().map(place).collect();
    let (chosen, choices) = (attacked_query(), attacked_choices());
    let page = templates::findings::FindingsPage {
        findings: &placed,
        sessions: 2,
        is_cut: true,
        rule: None,
        chosen: &chosen,
        choices: &choices,
    };
    check(&templates::findings::findings(&page).into_string(), "findings");
    let of_session = templates::findings::of_session(&summary, &placed).into_string();
    check(&of_session, "findings of a session");
    assert!(of_session.contains("14 findings"), "{of_session}");
    check(&templates::findings::panel(session, &placed).into_string(), "panel of findings");
}

#[test]
fn law_8_no_attack_becomes_markup_in_a_list() {
    let (first, second, prices) = (attacked(), attacked(), Prices::listed());
    let mut third = attacked();
    let other = |nth: &str| SessionId::of("claude-code", nth);
    third.session.id = other("third");
    let mut second = second;
    second.session.id = other("second");
    let question = ATTACKS.concat();
    let row = |summary, activity| templates::sessions::ListRow {
        summary,
        sub_agent: true,
        activity,
        scope: UsageScope::WithAgents,
        findings: 2,
    };
    let (chosen, choices) = (attacked_query(), attacked_choices());
    let budget = BudgetUse {
        project: Some(ATTACKS.concat()),
        spent_usd: 9.0,
        limit_usd: 10.0,
        is_estimated: true,
    };
    let list = templates::sessions::SessionsPage {
        budgets: vec![budget],
        live: vec![row(&first, Some(Activity::Waiting { what: question.clone(), since: None }))],
        rows: vec![row(&second, Some(Activity::Working { what: question.clone(), since: None }))],
        projects: None,
        next: Some(chosen.text()),
        chosen: &chosen,
        choices: &choices,
        sum: templates::sessions::Sum {
            sessions: 2,
            sub_agents: 1,
            errors: 1,
            ..templates::sessions::Sum::default()
        },
        prices: &prices,
        may_drive: false,
    };
    let html = templates::sessions::sessions(&list).into_string();
    check(&html, "list");
    assert!(html.contains("Waiting for you") && html.contains("&lt;img src=x onerror"));
    let rows = vec![row(&third, None)];
    let projects = Some(vec![templates::sessions::Project { path: &question, sessions: 9, rows }]);
    let by =
        templates::sessions::SessionsPage { live: Vec::new(), rows: Vec::new(), projects, ..list };
    check(&templates::sessions::sessions(&by).into_string(), "projects");
    check(&templates::sessions::suggestions(&[row(&third, None)]).into_string(), "suggestions");
}

#[test]
fn law_8_no_attack_becomes_markup_in_a_search() {
    let text = ATTACKS.concat();
    let (chosen, choices) = (attacked_query(), attacked_choices());
    let hit = || templates::search::HitRow {
        session: SessionId::of("codex", "x").to_string(),
        agent: &text,
        project: Some(&text),
        title: Some(&text),
        turn: Some(1),
        part: None,
        kind: "tool",
        tool: Some(&text),
        state: Some(&text),
        at: None,
        text: &text,
        ranges: &[0..7, 8..12],
    };
    let reading = Reading {
        understood: text.clone(),
        suggestions: vec![Suggestion {
            label: text.clone(),
            query: text.clone(),
            without_filters: false,
        }],
        texts: Vec::new(),
    };
    for found in [vec![hit()], Vec::new()] {
        let page = templates::search::SearchPage {
            query: &text,
            found,
            more: true,
            reading: &reading,
            note: None,
            chosen: &chosen,
            choices: &choices,
        };
        check(&templates::search::search(&page).into_string(), "search");
    }
}

#[test]
fn law_8_no_attack_becomes_markup_in_figures() {
    let text = ATTACKS.concat();
    let (chosen, choices) = (attacked_query(), attacked_choices());
    let bars = || {
        let spent = UsageFigures { spent_usd: Some(1.0), ..UsageFigures::default() };
        vec![templates::stats::UsageBar {
            name: Some(text.clone()),
            sessions: 1,
            turns: 1,
            steps: 1,
            spent,
            address: Some("/".to_owned()),
        }]
    };
    let stats = templates::stats::StatsPage {
        totals: templates::stats::TotalsView {
            sessions: 1,
            ..templates::stats::TotalsView::default()
        },
        spent: UsageFigures::default(),
        periods: bars(),
        period: templates::stats::Period::Day,
        hours: vec![HourFigures { weekday: 1, turns: 1, ..HourFigures::default() }],
        agents: bars(),
        models: bars(),
        projects: bars(),
        expensive: vec![templates::stats::ExpensiveRow {
            address: "/s/x".to_owned(),
            title: text.clone(),
            agent: text.clone(),
            project: Some(text.clone()),
            sub_agents: 1,
            spent: UsageFigures::default(),
        }],
        tools: vec![templates::stats::ToolStats {
            address: "/?tool=Bash".to_owned(),
            name: text.clone(),
            calls: 1,
            error_rate: Some(1.0),
            median_ms: Some(1),
            p95_ms: None,
            total_ms: 1,
            with_waiting: 1,
        }],
        slowest: vec![templates::stats::SlowCallRow {
            tool: text.clone(),
            what: text.clone(),
            duration_ms: 1,
            waited_ms: Some(5_000),
            may_include_waiting: true,
            address: "/s/x".to_owned(),
            title: text.clone(),
        }],
        failures: vec![templates::stats::FailureRow {
            tool: text.clone(),
            error: text.clone(),
            count: 3,
            sessions: 1,
            address: "/s/x".to_owned(),
        }],
        chosen: &chosen,
        choices: &choices,
    };
    check(&templates::stats::stats(&stats).into_string(), "stats");
    let looked = templates::welcome::SearchedFolder {
        agent: text.clone(),
        folder: text.clone(),
        exists: true,
    };
    let welcome = templates::welcome::WelcomePage {
        looked: vec![looked],
        demo: templates::welcome::Demo::Offered,
    };
    check(&templates::welcome::welcome(&welcome).into_string(), "welcome");
}

#[test]
fn the_page_that_asks_for_a_password_runs_nothing() {
    for attack in ATTACKS {
        let html = templates::login::login(Some("Wrong password."), attack).into_string();
        check(&html, attack);
        assert!(!html.contains("<script"), "{html}");
    }
}

/// The selectors of all rules of the style sheets that have a property.
fn selectors_with(property: &str) -> Vec<String> {
    let sheets = ["page", "transcript", "flow", "theme"].map(|name| {
        let path = root().join(format!("crates/unspool-export/assets/{name}.css"));
        std::fs::read_to_string(path).unwrap()
    });
    let text = sheets.concat();
    let mut found = Vec::new();
    for (at, _) in text.match_indices(&format!("{property}:")) {
        let open = text[..at].rfind('{').unwrap();
        let begin = text[..open].rfind(['}', '{', ';', '/']).map_or(0, |begin| begin + 1);
        found.push(text[begin..open].trim().to_owned());
    }
    found
}

#[test]
fn only_the_glyphs_of_what_runs_move() {
    // R-000-22 R-003-26 R-003-51, C-18: the pulse of a running turn, the icon of a running call, the bullet
    // of a growing text; a message at the edge of the page fades.
    let all = "*, *::before, *::after";
    let moving = [".pulse", all, ".part.text.growing::before", ".blink"];
    assert_eq!(selectors_with("animation"), moving, "and none for who wants none");
    assert_eq!(selectors_with("transition"), [all, ".spoken"]);
    assert_eq!(selectors_with("transition-property"), Vec::<String>::new());

    let case = root().join("fixtures/claude-code/discovery-loop");
    let session_set = fold_in(&captures(&case), &[0]);
    let mut transcript = main_session(&session_set).transcript();
    let classes = |transcript: &Transcript, class: &str| {
        let html = render(transcript);
        let all = starts(&html).into_iter().flat_map(|start| start.attributes);
        let all = all.filter(|(name, _)| *name == "class").map(|(_, value)| value.to_owned());
        all.filter(|value| value.split(' ').any(|one| one == class)).collect::<Vec<_>>()
    };
    for class in ["growing", "blink", "pulse"] {
        assert_eq!(classes(&transcript, class), Vec::<String>::new(), "nothing runs");
    }
    // A text has a bullet if it is the first one after something else.
    let texts = transcript.turns.iter().flat_map(|turn| {
        let before =
            [false].into_iter().chain(turn.parts.iter().map(|part| part.body.prose().is_some()));
        let first = turn
            .parts
            .iter()
            .zip(before)
            .filter(|(part, after_text)| part.body.prose().is_some() && !after_text);
        first.map(|(part, _)| part.id).collect::<Vec<_>>()
    });
    assert_eq!(classes(&transcript, "bullet").len(), texts.count());
    let last = transcript.turns[0].parts.iter_mut().rev().find_map(|part| match &mut part.body {
        Body::Text(text) => Some(text),
        _ => None,
    });
    last.unwrap().open = true;
    let tool = transcript.turns[0].parts.iter_mut().find_map(|part| match &mut part.body {
        Body::Tool(tool) => Some(tool),
        _ => None,
    });
    tool.unwrap().state = unspool_model::part::ToolState::Running;
    transcript.turns[0].state = unspool_model::session::TurnState::Running;
    let growing = classes(&transcript, "growing");
    let text = growing.iter().filter(|class| class.contains("text") && class.contains("bullet"));
    assert_eq!(text.count(), 1, "{growing:?}");
    assert_eq!(classes(&transcript, "pulse").len(), 1);
    assert_eq!(classes(&transcript, "blink").len(), 1);
}
