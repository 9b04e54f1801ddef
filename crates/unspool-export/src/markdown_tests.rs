//! Round trip: the presenter's own parser reads the Markdown back as the same blocks.

use unspool_model::id::{Id, PartId, StepId, TurnId};
use unspool_model::part::{Body, Failure, Interjection, Part, Place, Text};
use unspool_model::provenance::{Name, Origin, Positions};
use unspool_model::session::{Step, Turn, TurnOrigin, Usage};
use unspool_view::block::{
    Answer, Badge, Block, Card, Check, Code, Decision, Icon, List, ListItem, Node, Question,
    QuestionItem, QuestionKind, QuestionOption, Span, Tree, TreeDetail, text_of,
};
use unspool_view::present::markdown::blocks as read;
use unspool_view::present::{self, PresentOptions};

use super::*;

fn paragraph(text: &str) -> Block {
    Block::Paragraph { spans: vec![Span::plain(text)] }
}

fn texts(all: &[Block]) -> Vec<String> {
    all.iter()
        .map(|block| match block {
            Block::Paragraph { spans } => text_of(spans),
            Block::Code(code) => code.text.trim_end().to_owned(),
            Block::Heading { .. }
            | Block::List(_)
            | Block::Quote { .. }
            | Block::Table(_)
            | Block::Rule
            | Block::Diff(_)
            | Block::Terminal(_)
            | Block::Fields { .. }
            | Block::Tree(_)
            | Block::Notice(_)
            | Block::File(_)
            | Block::Aside { .. }
            | Block::Fold(_)
            | Block::Card(_)
            | Block::Question(_) => format!("{block:?}"),
        })
        .collect()
}

#[test]
fn text_stays_text() {
    for text in [
        "# no heading",
        "- no list",
        "1. no list",
        "12) no list",
        "> no quote",
        "*a* _b_ `c` ~~d~~ [e](http://f) <b>g</b> &amp; \\h",
        "| a | b |",
        "a\nb",
        "=====",
        "+ x",
        "![x](http://elsewhere.example/x.png)",
    ] {
        let written = blocks(&[paragraph(text)]);
        assert_eq!(texts(&read(&written)), [text], "{written}");
    }
}

#[test]
fn no_code_closes_its_fence() {
    let code = "```\nnot over\n```` nor here\n`````";
    let block = Block::Code(Code {
        language: Some("sh\" onclick=x".to_owned()),
        text: code.to_owned(),
        first_line: None,
    });
    let written = blocks(&[block, paragraph("after")]);
    assert_eq!(texts(&read(&written)), [code, "after"], "{written}");
    assert!(written.starts_with("``````shonclickx\n"), "{written}");
}

#[test]
fn lists_keep_what_stands_in_them() {
    let item = |inside: Vec<Block>| ListItem { check: None, blocks: inside };
    let code = Code { language: None, text: "x\n\ny".to_owned(), first_line: None };
    let list = Block::List(List {
        start: Some(9),
        tight: false,
        items: vec![item(vec![paragraph("one"), Block::Code(code)]), item(vec![paragraph("two")])],
    });
    let written = blocks(std::slice::from_ref(&list));
    let Block::List(back) = &read(&written)[0] else { panic!("{written}") };
    assert_eq!((back.start, back.items.len()), (Some(9), 2), "{written}");
    assert_eq!(texts(&back.items[0].blocks), ["one", "x\n\ny"], "{written}");
}

fn turn_of(bodies: Vec<Body>) -> Turn {
    let part = |(nth, body): (usize, Body)| Part {
        id: PartId(Id::derive([format!("p{nth}").as_bytes()])),
        place: Place(nth as i64),
        step: None,
        started: None,
        ended: None,
        evidence: Vec::new(),
        origin: Origin::default(),
        body,
    };
    let step = Step {
        id: StepId(Id::derive([b"step".as_slice()])),
        name: Name::Preamble,
        at: Positions::default(),
        model: Some("a_model_".into()),
        usage: Usage { input: 1_200, ..Usage::default() },
        stop_reason: None,
        request: None,
        provenance: None,
    };
    Turn {
        id: TurnId(Id::derive([b"turn".as_slice()])),
        number: 4,
        trigger: Trigger::User,
        user: Vec::new(),
        thinking_mode: false,
        state: TurnState::Completed,
        abandoned: false,
        inherited: false,
        started: "2026-01-01T00:00:00Z".parse().ok(),
        ended: "2026-01-01T00:00:02Z".parse().ok(),
        steps: vec![step],
        parts: bodies.into_iter().enumerate().map(part).collect(),
        origin: TurnOrigin::default(),
    }
}

fn written(turn: &Turn) -> String {
    super::turn(&present::turn(turn, &PresentOptions::default()))
}

fn said(text: &str) -> Body {
    Body::Text(Text { text: text.to_owned(), ..Text::default() })
}

fn card(summary: Vec<Span>, question: Option<Question>, body: Vec<Block>) -> Block {
    Block::Card(Box::new(Card {
        badge: Badge { word: "[OK]".into(), tone: Tone::Ok, state: None },
        icon: Icon::Completed,
        title: "grep".to_owned(),
        summary,
        duration_ms: Some(1_200),
        open: false,
        earlier: Vec::new(),
        question,
        body,
    }))
}

#[test]
fn heads_of_turns_say_what_other_views_say() {
    let plain = turn_of(Vec::new());
    let small = "<sub>2.0 s · 1,200 tokens · a_model\\_</sub>";
    assert_eq!(written(&plain), format!("## Turn 4\n\n{small}\n"));
    let odd = Turn {
        trigger: Trigger::Command,
        state: TurnState::Interrupted,
        abandoned: true,
        inherited: true,
        ..plain.clone()
    };
    let head = "## Turn 4 · command · interrupted · abandoned · from the forked session\n";
    assert!(written(&odd).starts_with(head), "{}", written(&odd));
    let unfinished = Turn { state: TurnState::Unknown, ..plain.clone() };
    assert!(written(&unfinished).starts_with("## Turn 4 · unknown\n"));
    let early = Turn { number: 0, ..plain };
    assert!(written(&early).starts_with("## Before the first prompt\n"));
}

fn answered(decision: Decision, text: &str, observed: bool) -> String {
    let text = text.to_owned();
    let answer = Some(Answer { decision, text, observed, missing: false, answered_by: None });
    let item = QuestionItem {
        header: None,
        question: "Allow Bash?".to_owned(),
        options: Vec::new(),
        multi_select: false,
        answer: None,
    };
    let question =
        Question { kind: QuestionKind::Permission, open: false, items: vec![item], answer };
    blocks(&[Block::Question(question)])
}

#[test]
fn answers_are_said_once_and_say_whether_they_were_seen() {
    let question_text = "**?** Allow Bash?\\\n";
    let allowed = answered(Decision::Allowed, "allowed once", true);
    assert_eq!(allowed, format!("{question_text}✓ allowed once"));
    let always = answered(Decision::Allowed, "always allowed", true);
    assert_eq!(always, format!("{question_text}✓ always allowed"));
    let inferred = answered(Decision::Denied, "denied", false);
    assert_eq!(inferred, format!("{question_text}✕ denied (answer not in the log)"));
    let why = answered(Decision::Denied, "not today", true);
    assert_eq!(why, format!("{question_text}✕ denied · not today"));
}

#[test]
fn choices_are_a_list_of_signs_and_no_tasks() {
    let option = |label: &str, description: Option<&str>, chosen| QuestionOption {
        label: label.to_owned(),
        description: description.map(str::to_owned),
        chosen,
    };
    let mut item = QuestionItem {
        header: Some("Unit".to_owned()),
        question: "Which unit?".to_owned(),
        options: vec![option("Celsius", Some("Metric"), true), option("Kelvin", None, false)],
        multi_select: false,
        answer: Some("Celsius".to_owned()),
    };
    let answer = Answer {
        decision: Decision::Answered,
        text: "Celsius".to_owned(),
        observed: true,
        missing: false,
        answered_by: None,
    };
    let question_text = |item: &QuestionItem| {
        let (items, answer) = (vec![item.clone()], Some(answer.clone()));
        blocks(&[Block::Question(Question {
            kind: QuestionKind::Choice,
            open: false,
            items,
            answer,
        })])
    };
    let list = "- ◉ **Celsius** · Metric\n- ○ Kelvin";
    assert_eq!(question_text(&item), format!("**?** **Unit** · Which unit?\n\n{list}"));
    // An answer that is not among the options is printed.
    item.answer = Some("Celsius, I think".to_owned());
    assert!(question_text(&item).ends_with("\n\n→ Celsius, I think"), "{}", question_text(&item));
    let task = |check, text: &str| ListItem { check: Some(check), blocks: vec![paragraph(text)] };
    let items = vec![task(Check::Done, "one"), task(Check::Open, "two")];
    let tasks = blocks(&[Block::List(List { start: None, tight: true, items })]);
    assert_eq!(tasks, "- ☑ one\n- ☐ two");
}

#[test]
fn pieces_of_code_do_not_touch() {
    let summary = vec![
        Span::plain("OFFSET|c_to_f").code(),
        Span::plain("  *.py").path(),
        Span::plain("  3 lines").dim(),
    ];
    let head = blocks(&[card(summary, None, Vec::new())]);
    assert_eq!(head, "**grep** `OFFSET|c_to_f` · `*.py` · 3 lines · `[OK]` · 1.2 s");
    let spans = vec![Span::plain(" a ").code(), Span::plain("b").code(), Span::plain("c").code()];
    assert_eq!(blocks(&[Block::Paragraph { spans }]).trim_start(), "`a` `b` `c`");
}

#[test]
fn line_breaks_stay_in_quotes() {
    let quote = Block::Quote { blocks: vec![paragraph("one\ntwo\n\nthree\n  four\n")] };
    let written = blocks(&[quote]);
    assert_eq!(written, "> one\\\n> two\n>\n> three\\\n> \u{a0}\u{a0}four");
    let Block::Quote { blocks: back } = &read(&written)[0] else { panic!("{written}") };
    assert_eq!(texts(back), ["one\ntwo", "three\n\u{a0}\u{a0}four"], "{written}");
}

#[test]
fn headings_of_agents_stand_below_ours() {
    let turn = turn_of(vec![said("# One\n\n## Two\n\n###### Six")]);
    assert!(written(&turn).ends_with("\n\n### One\n\n#### Two\n\n###### Six\n"));
    let title = Block::Heading { level: 1, spans: vec![Span::plain("Title")] };
    assert_eq!(session(&[title]), "# Title");
}

#[test]
fn nobody_is_mentioned_and_no_issue_is_linked() {
    let apart = |text: &str| blocks(&[paragraph(text)]);
    assert_eq!(apart("ask @name, see #12"), "ask @<!-- -->name, see #<!-- -->12");
    assert_eq!(apart("(@org/team) own/er#7"), "(@<!-- -->org/team) own/er#<!-- -->7");
    assert_eq!(apart("#12 and GH-3"), "\\#<!-- -->12 and GH-<!-- -->3");
    for plain in ["a@b.example", "C# 12", "x#12", "#1a2b3c is blue", "a @ b", "x-12"] {
        assert!(!apart(plain).contains("<!--"), "{}", apart(plain));
    }
    let code = Block::Paragraph { spans: vec![Span::plain("@name #12").code()] };
    assert_eq!(blocks(&[code]), "`@name #12`");
    let fold = details("@name <b>", "x");
    assert!(fold.starts_with("<details><summary>@<!-- -->name &lt;b&gt;</summary>"), "{fold}");
}

#[test]
fn cells_lists_and_empty_pieces_keep_apart() {
    let code = vec![Span::plain("a|b").code()];
    let table = Table {
        alignments: vec![Alignment::Right],
        header: vec![vec![Span::plain("x|y")]],
        rows: vec![vec![code]],
    };
    let written = blocks(&[Block::Table(table.clone())]);
    assert_eq!(written, "| x\\|y |\n| --: |\n| `a\\|b` |");
    assert_eq!(read(&written), [Block::Table(table)], "{written}");

    let item = || ListItem { check: None, blocks: vec![paragraph("a")] };
    let list = || Block::List(List { start: None, tight: true, items: vec![item()] });
    let two = blocks(&[list(), paragraph(" "), list()]);
    assert_eq!(two, "- a\n\n<!-- -->\n\n- a");
    let inner = ListItem { check: None, blocks: vec![paragraph("b"), list()] };
    let nested = List { start: Some(1), tight: true, items: vec![inner, item()] };
    assert_eq!(blocks(&[Block::List(nested)]), "1. b\n   - a\n2. a");
}

#[test]
fn reports_of_agents_are_folded() {
    let node = Node {
        key: "a".to_owned(),
        session: None,
        icon: Icon::Interrupted,
        label: vec![Span::plain("explorer").strong(), Span::plain("  Look around")],
        state: "interrupted".into(),
        note: Vec::new(),
        children: Vec::new(),
    };
    let tree = Tree { detail: TreeDetail::Compact, shown: 5, nodes: vec![node] };
    let written = card::lay_agents(&[Block::Tree(tree), paragraph("One."), paragraph("Two.")]);
    assert_eq!(
        written,
        "- **explorer** · Look around · `[FAILED]` interrupted\n\n\
         <details><summary>Report — One.</summary>\n\nOne.\n\nTwo.\n\n</details>"
    );
}

#[test]
fn folds_say_what_is_in_them() {
    let code = Code { language: None, text: "a\nb".to_owned(), first_line: Some(1) };
    let failure = |text: &str| {
        Block::Notice(Notice { tone: Tone::Failed, code: None, text: text.to_owned() })
    };
    let body = vec![Block::Code(code), failure("why\nnot")];
    let written = blocks(&[card(Vec::new(), None, body)]);
    assert!(
        written.contains("<summary>Content · 2 lines · Error — why not</summary>"),
        "{written}"
    );
    assert!(written.contains("\n\n```\nwhy\nnot\n```\n\n"), "{written}");
    // Short content is not folded.
    let written = blocks(&[card(Vec::new(), None, vec![failure("why")])]);
    assert_eq!(written, "**grep** · `[OK]` · 1.2 s\n\n✕ why");
}

#[test]
fn what_the_user_said_and_what_happened_look_different() {
    let failed = |text: &str| Failure {
        code: Some("interrupted".to_owned()),
        text: text.to_owned(),
        ..Failure::default()
    };
    let interjection = Interjection { text: "also this".to_owned() };
    let turn = turn_of(vec![
        Body::Interjection(interjection),
        Body::Error(failed("Interrupted")),
        Body::Error(failed("a\nb")),
    ]);
    let written = written(&turn);
    assert!(written.contains("\n\n**User**, while it ran:\n\n> also this\n\n"), "{written}");
    assert!(written.contains("\n\n> [!CAUTION]\n> Interrupted\n\n"), "{written}");
    let fenced = "> [!CAUTION]\n> **interrupted**\n>\n> ```\n> a\n> b\n> ```\n";
    assert!(written.ends_with(fenced), "{written}");
}
