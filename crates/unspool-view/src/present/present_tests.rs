use proptest::prelude::*;
use unspool_model::id::{Id, PartId, SessionId, StepId, TurnId};
use unspool_model::json::Json;
use unspool_model::part::*;
use unspool_model::price::ReportedCost;
use unspool_model::provenance::{Name, Origin, Positions};
use unspool_model::session::{
    Facts, Session, SessionState, Step, Title, TitleOrigin, Transcript, Trigger, Turn, TurnOrigin,
    TurnState,
};
use unspool_model::summary::Completeness;

use super::*;
use crate::lines::{LineOptions, layout, turn_lines};
use crate::plain::paint;

fn at(place: usize, body: Body) -> Part {
    Part {
        id: PartId(Id::derive([place.to_string().as_bytes()])),
        place: Place(place as i64),
        step: None,
        started: None,
        ended: None,
        evidence: Vec::new(),
        origin: Origin::default(),
        body,
    }
}

fn text(text: &str) -> Body {
    Body::Text(Text { text: text.into(), ..Text::default() })
}

fn reasoning(text: &str) -> Body {
    Body::Reasoning(Reasoning { text: text.into(), ..Reasoning::default() })
}

fn bash(command: &str, output: &str) -> Body {
    Body::Tool(Box::new(Tool {
        name: "Bash".into(),
        input: Some(Json::from(serde_json::json!({ "command": command }))),
        state: ToolState::Completed,
        output: Some(output.into()),
        duration_ms: Some(159),
        ..Tool::default()
    }))
}

fn turn_of(bodies: Vec<Body>) -> Turn {
    let usage = Usage { input: 1_200, output: 529, ..Usage::default() };
    let step = Step {
        id: StepId(Id::derive([b"step".as_slice()])),
        name: Name::Preamble,
        at: Positions::default(),
        model: Some("opus".into()),
        usage,
        stop_reason: None,
        request: None,
        provenance: None,
    };
    Turn {
        id: TurnId(Id::derive([b"turn".as_slice()])),
        number: 3,
        trigger: Trigger::User,
        user: vec![text("Fix *the* cache.\n  please")],
        thinking_mode: true,
        state: TurnState::Completed,
        abandoned: false,
        inherited: false,
        started: Some(Timestamp::from_millisecond(1_000).unwrap()),
        ended: Some(Timestamp::from_millisecond(13_400).unwrap()),
        steps: vec![step],
        parts: bodies.into_iter().enumerate().map(|(n, body)| at(n, body)).collect(),
        origin: TurnOrigin::default(),
    }
}

fn drawn(turn: &Turn, options: &LineOptions) -> String {
    paint(&turn_lines(&super::turn(turn, &PresentOptions::default()), 60, options))
}

// The share of a window is shown only where the agent reports its size.
#[test]
fn a_step_shows_how_full_the_context_was() {
    let mut turn = turn_of(vec![text("Done.")]);
    turn.parts[0].step = Some(turn.steps[0].id);
    let context = |windows: &[(&str, u64)]| {
        let context_windows =
            windows.iter().map(|(model, size)| ((*model).into(), *size)).collect();
        let options = PresentOptions { context_windows, ..PresentOptions::default() };
        match &super::turn(&turn, &options).items[0] {
            Item::Part(view) => view.step_end.as_ref().unwrap().context_text().unwrap(),
            Item::Reasoning(_) => unreachable!("the turn has no reasoning"),
        }
    };
    assert_eq!(context(&[("opus", 10_000)]), "context 1,200 of 10.0k (12 %)");
    assert_eq!(context(&[("haiku", 10_000)]), "context 1,200");
}

// R-004-13, R-000-22: the closed panel shows its title and its tools in place; the user's message
// is shown as typed. R-000-05, R-003-26: two texts stay two, and only the first has a bullet.
// R-000-06: an output is below its call.
#[test]
fn a_turn_reads_in_order() {
    let turn = turn_of(vec![
        reasoning("**Look** first."),
        bash("ls", "a.ts"),
        reasoning("Then fix."),
        bash("sed", "ok"),
        text("Done: `x`."),
        text("More."),
    ]);
    let expected = "\
── Turn 3 · user · completed · 12.4 s · 1,729 tokens ───────

❯ Fix *the* cache.
    please

◌ Reasoning (2 tool calls) — Look first.
┊ ● Bash  ls                                     [OK] 159 ms
┊   │ a.ts
┊ ◌ Reasoning — Then fix.
┊ ● Bash  sed                                    [OK] 159 ms
┊   │ ok

◆ Done: x.

  More.
";
    assert_eq!(drawn(&turn, &LineOptions::default()), expected);
    let opened = drawn(&turn, &LineOptions::everything());
    assert!(
        opened.contains("◌ Reasoning (2 tool calls)\n┊ ◌ Reasoning\n┊   Look first.\n"),
        "{opened}"
    );
}

// C-10, R-004-11: outside thinking mode there is no panel, and nothing is lost.
#[test]
fn no_panel_outside_thinking_mode() {
    let mut turn = turn_of(vec![reasoning("Hm."), bash("ls", ""), text("Yes.")]);
    turn.thinking_mode = false;
    let view = super::turn(&turn, &PresentOptions::default());
    assert!(view.items.iter().all(|item| matches!(item, Item::Part(_))));
    let Item::Part(first) = &view.items[0] else { panic!("a part") };
    assert!(matches!(first.blocks.as_slice(), [Block::Aside { .. }]));
    assert!(drawn(&turn, &LineOptions::default()).contains("┊ Hm.\n"));
}

// R-004-12: joined, the items hold every part once and in order.
#[test]
fn nothing_moves() {
    let notice = || Body::Notice(Notice { code: "retry".into(), text: "again".into() });
    let turn =
        turn_of(vec![reasoning("a"), notice(), bash("b", ""), bash("c", ""), notice(), text("d")]);
    let view = super::turn(&turn, &PresentOptions::default());
    let shown: Vec<PartId> = view
        .items
        .iter()
        .flat_map(|item| match item {
            Item::Part(part) => vec![part.id],
            Item::Reasoning(block) => block.parts.iter().map(|part| part.id).collect(),
        })
        .collect();
    assert_eq!(shown, turn.parts.iter().map(|part| part.id).collect::<Vec<_>>());
}

// R-000-22: what a thought says is dim, in the terminal as a style and on the page as a class.
#[test]
fn reasoning_is_dim() {
    let turn = turn_of(vec![reasoning("Hm, a thought."), text("Words.")]);
    let is_dim = |options: &LineOptions<'_>, thinking_mode: bool, words: &str| {
        let turn = Turn { thinking_mode, ..turn.clone() };
        let view = super::turn(&turn, &PresentOptions::default());
        let lines = turn_lines(&view, 60, options);
        let mut runs = lines.iter().flat_map(|line| &line.runs);
        let run = runs.find(|run| run.text.contains(words)).unwrap();
        run.style.dim
    };
    for options in [LineOptions::default(), LineOptions::everything()] {
        for thinking_mode in [true, false] {
            assert!(is_dim(&options, thinking_mode, "thought"), "{options:?} {thinking_mode}");
            assert!(!is_dim(&options, thinking_mode, "Words"));
        }
    }
}

// R-000-07: a result whose call is missing stands at its own place, with all that it says.
#[test]
fn a_result_without_a_call_is_drawn_by_itself() {
    let orphan = Tool {
        call_id: "gone".into(),
        state: ToolState::Completed,
        output: Some("all of it".into()),
        ..Tool::default()
    };
    let turn = turn_of(vec![text("Before."), Body::Tool(Box::new(orphan)), text("After.")]);
    let drawn = drawn(&turn, &LineOptions::default());
    let at = |words: &str| drawn.find(words).unwrap_or_else(|| panic!("{words}:\n{drawn}"));
    let output = drawn.rfind("│ all of it").unwrap();
    assert!(at("Before.") < at("[OK]") && at("[OK]") < output, "{drawn}");
    assert!(output < at("After."), "{drawn}");
}

// R-003-24, R-000-24, R-001-31: every kind is visible, data of unknown kinds too (C-22); R-003-27
// for agents.
#[test]
fn every_kind_is_shown() {
    let agent = |name: &str, state| Agent {
        name: name.into(),
        task: "look".into(),
        state,
        ..Agent::default()
    };
    let data = || Json::parse(r#"{"b":1,"a":2}"#).unwrap();
    let cases: Vec<(Body, &str)> = vec![
        (
            Body::Reasoning(Reasoning { redacted: true, ..Reasoning::default() }),
            "▸ Reasoning — Redacted reasoning\n",
        ),
        (
            Body::Agent(Agents {
                call_id: "c".into(),
                agents: vec![
                    agent("Explore", AgentState::Running),
                    agent("Plan", AgentState::Background),
                ],
            }),
            "◐ Explore  look  running\n⧈ Plan  look  background\n",
        ),
        (Body::Interjection(Interjection { text: "stop *now*".into() }), "stop *now*\n"),
        (
            Body::TaskList(TaskList {
                items: vec![TaskItem { id: None, text: "one".into(), state: TaskState::Cancelled }],
            }),
            "☒ one\n",
        ),
        (
            Body::SkillLoad(SkillLoad {
                name: "notes".into(),
                call_id: None,
                text: "# How\nto".into(),
            }),
            "▸ Skill notes — # How to\n",
        ),
        (
            Body::McpSnapshot(McpSnapshot {
                servers: vec![McpServer { name: "station".into(), status: None, tools: vec![] }],
            }),
            "▸ MCP servers — station\n",
        ),
        (
            Body::ContextInfo(ContextInfo { title: "CLAUDE.md".into(), text: "Be kind.".into() }),
            "▸ CLAUDE.md — Be kind.\n",
        ),
        (
            Body::Compaction(Compaction {
                trigger: Some("auto".into()),
                tokens_before: Some(150_000),
                tokens_after: Some(9_000),
                duration_ms: None,
                summary: "So far.".into(),
            }),
            "▸ Conversation compacted · auto · 150,000 → 9,000 tokens — So far.\n",
        ),
        (
            Body::File(File {
                name: Some("a.png".into()),
                media_type: Some("image/png".into()),
                url: Some("data:image/png;base64,AAAA".into()),
                text: None,
            }),
            "▣ a.png · image/png · 3 bytes\n",
        ),
        (
            Body::Source(SourceLink {
                url: Some("https://e.org".into()),
                title: Some("E".into()),
                quote: None,
            }),
            "E  https://e.org\n",
        ),
        (
            Body::Patch(Patch {
                path: Some("a".into()),
                diff: "@@ -1 +1 @@\n-x\n+y\n".into(),
                call_id: None,
            }),
            "a\n1 - x\n1 + y\n",
        ),
        (
            Body::Notice(Notice { code: "interrupted".into(), text: "by the user".into() }),
            "! interrupted  by the user\n",
        ),
        (Body::Notice(Notice { code: "command-output".into(), text: "\x1b[1mok".into() }), "ok\n"),
        (
            Body::Error(Failure {
                code: Some("overloaded".into()),
                status: Some(529),
                text: "Busy".into(),
            }),
            "✕ overloaded 529  Busy\n",
        ),
        (
            Body::Data(Data { kind: "x-new".into(), payload: data() }),
            "▸ x-new — { \"b\": 1, \"a\": 2 }\n",
        ),
    ];
    let mut kinds = vec![Kind::Text, Kind::Tool];
    for (body, expected) in cases {
        let kind = body.kind();
        kinds.push(kind);
        let blocks = part(&at(0, body));
        assert_eq!(paint(&layout(&blocks, 80, &LineOptions::default())), expected, "{kind:?}");
    }
    // Texts and calls have tests of their own.
    kinds.sort();
    kinds.dedup();
    assert_eq!(kinds, Kind::ALL);
}

#[test]
fn agents_beyond_five_are_counted() {
    let agents = (0..8).map(|n| Agent {
        name: format!("a{n}"),
        state: AgentState::Completed,
        ..Agent::default()
    });
    let body = Body::Agent(Agents { call_id: "c".into(), agents: agents.collect() });
    let painted = paint(&layout(&part(&at(0, body)), 80, &LineOptions::default()));
    assert!(
        painted.contains("a4") && !painted.contains("a5") && painted.ends_with("\n+3\n"),
        "{painted}"
    );
}

#[test]
fn a_session_has_a_head() {
    let session = Session {
        id: SessionId::of("claude-code", "abc"),
        agent: "claude-code".into(),
        agent_session_id: "abc".into(),
        facts: Facts {
            title: Some(Title { text: "Fix the cache".into(), origin: TitleOrigin::Custom }),
            project: Some("/w".into()),
            ..Facts::default()
        },
        state: SessionState::Idle,
        parent: None,
        forked_from: None,
    };
    let transcript = Transcript { session, turns: Vec::new() };
    let all = Usage { input: 10, output: 1_990, ..Usage::default() };
    let mut summary = transcript.summary(Completeness::Full, &[]);
    summary.usage_with_agents = all;
    let blocks = super::session(&summary, &unspool_model::price::Prices::none());
    let painted = paint(&layout(&blocks, 80, &LineOptions::default()));
    assert!(painted.starts_with("# Fix the cache\n\nagent            claude-code\n"), "{painted}");
    assert!(painted.contains("with sub-agents  2,000 · 10 in · 1,990 out\n"), "{painted}");
}

proptest! {
    // R-003-56: a streaming part renders like a finished one with the same text.
    #[test]
    fn streaming_and_finished_are_drawn_alike(words in "[a-z`*#>\\-\\n \\[\\]()|0-9]{0,120}") {
        let body = |open| Body::Text(Text { text: words.clone(), open, citations: Vec::new() });
        prop_assert_eq!(part(&at(0, body(true))), part(&at(0, body(false))));
        let thought = |open| Body::Reasoning(Reasoning { text: words.clone(), open, ..Reasoning::default() });
        prop_assert_eq!(part(&at(0, thought(true))), part(&at(0, thought(false))));
    }
}

#[test]
fn numbers_are_short() {
    let cases = [
        (0, "0"),
        (9_999, "9,999"),
        (10_000, "10.0k"),
        (99_999, "99.9k"),
        (123_456, "123k"),
        (1_234_567, "1.2M"),
        (999_999_999, "999M"),
        (1_500_000_000, "1.5G"),
        (u64::MAX, "18,446P"),
    ];
    for (value, short) in cases {
        assert_eq!(format::compact(value), short);
    }
}

#[test]
fn cached_tokens_stand_apart() {
    for (fresh, cached, sum, phrase) in [
        (0, 0, "", ""),
        (417, 0, "417", "417 tokens"),
        (0, 1_300, "1,300 cached", "1,300 cached tokens"),
        (88_100, 132_000, "88.1k + 132k cached", "88.1k tokens + 132k cached"),
    ] {
        assert_eq!(format::token_sum(fresh, cached), sum);
        assert_eq!(format::token_phrase(fresh, cached), phrase);
    }
}

#[test]
fn a_cost_says_when_and_why_it_is_estimated() {
    let tokens = Usage { input: 1_000_000, ..Usage::default() };
    let prices = Prices::listed();
    let spending = |cost: Option<ReportedCost>| {
        Spending::of_session([(Some("claude-opus-5-5"), tokens)], cost)
    };
    let reported = |usd: f64, input: u64| {
        let tokens = Some(Usage { input, ..Usage::default() });
        Some(ReportedCost { usd, tokens })
    };
    let whole = spending(reported(3.5, 1_000_000));
    assert_eq!(super::short_cost(&whole, &prices), "$3.50");
    assert_eq!(super::cost_text(&whole, &prices).unwrap(), "$3.5000 · $4.0000 estimated");
    let partial = spending(reported(0.5, 10));
    assert_eq!(super::short_cost(&partial, &prices), "~$4.00");
    assert_eq!(
        super::cost_text(&partial, &prices).unwrap(),
        "~$4.0000 estimated: the agent's own sum covers only a part of the session ($0.5000)"
    );
    let none = super::cost_text(&partial, &Prices::none()).unwrap();
    assert!(none.starts_with("$0.5000 at least: "), "{none}");
    assert_eq!(super::cost_text(&spending(None), &prices).unwrap(), "$4.0000 estimated");
}
