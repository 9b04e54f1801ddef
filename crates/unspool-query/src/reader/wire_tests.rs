//! Every message survives a round trip through JSON.

use unspool_model::change::Urgency;
use unspool_model::context::ContextUse;
use unspool_model::id::SessionId;
use unspool_model::note::{Note, NoteTarget, PlacedNote};
use unspool_model::part::{Kind, Place};
use unspool_model::prompt::PieceKind;
use unspool_model::session::{SessionState, TurnState};
use unspool_view::block::{
    Alignment, AnsiRun, AnsiStyle, Answer as Answered, Badge, Block, Card, Check, Code, Color,
    Decision, Diff, DiffKind, DiffLine, DiffSpan, Field, FileReference, Fold, Hunk, Icon, List,
    ListItem, Node, Notice, Question, QuestionItem, QuestionKind, QuestionOption, Span, Table,
    Terminal, Tone, Tree, TreeDetail,
};
use unspool_view::present::activity::Activity;
use unspool_view::present::burn_rate::BurnRate;
use unspool_view::present::prompt::{CallRow, PieceView, PromptCalls, PromptView, Share};
use unspool_view::present::tools::Tasks;

use super::*;
use crate::findings::FindingEntry;
use crate::prompts::{CallTarget, PromptAnswer, PromptQuery};
use crate::reader::{SearchHit, SessionRow, WindowData};
use crate::search::{Reading, Suggestion};
use crate::window::{Anchor, PartFilter, Position, Size, WindowView};

fn session() -> SessionId {
    SessionId::of("codex", "a")
}

#[track_caller]
fn same<T>(it: T)
where
    T: Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let text = serde_json::to_string(&it).unwrap();
    let back: T = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(back, it, "{text}");
}

/// Spans of every style.
fn spans() -> Vec<Span> {
    let mut emphasis = Span::plain("a\nb");
    emphasis.style.emphasis = true;
    emphasis.style.strike = true;
    vec![
        Span::plain(""),
        Span::plain("\u{1b}[31m \u{202e} \"<script>\" \0 日本"),
        emphasis,
        Span::plain("x").strong().code().dim().path(),
        Span::plain("link").link("https://example.org/?a=1&b=2").toned(Tone::Accent),
    ]
}

fn runs() -> Vec<AnsiRun> {
    let styles = [
        AnsiStyle::default(),
        AnsiStyle { foreground: Some(Color::Indexed(3)), bold: true, ..AnsiStyle::default() },
        AnsiStyle {
            background: Some(Color::Rgb(1, 2, 255)),
            inverse: true,
            strike: true,
            ..AnsiStyle::default()
        },
    ];
    styles.map(|style| AnsiRun { text: "out".to_owned(), style }).into()
}

fn question() -> Question {
    Question {
        open: true,
        kind: QuestionKind::Choice,
        items: vec![QuestionItem {
            header: None,
            question: "Which?".to_owned(),
            options: vec![QuestionOption {
                label: "This".to_owned(),
                description: Some("one".to_owned()),
                chosen: true,
            }],
            multi_select: false,
            answer: Some("This".to_owned()),
        }],
        answer: Some(Answered {
            decision: Decision::Declined,
            text: String::new(),
            observed: false,
            missing: true,
            answered_by: None,
        }),
    }
}

fn card() -> Card {
    Card {
        badge: Badge {
            word: "[FAILED]".into(),
            tone: Tone::Failed,
            // A state that is not one of the program's static strings.
            state: Some(String::from("denied").into()),
        },
        icon: Icon::Failed,
        title: "Bash".to_owned(),
        summary: spans(),
        duration_ms: Some(u64::MAX),
        open: true,
        earlier: vec![question()],
        question: Some(question()),
        body: vec![Block::Rule],
    }
}

/// A block of every kind.
fn blocks() -> Vec<Block> {
    let line = DiffLine {
        kind: DiffKind::Added,
        old: None,
        new: Some(3),
        spans: vec![DiffSpan { text: "+".to_owned(), changed: true }],
        no_newline: true,
    };
    let node = Node {
        key: "k".to_owned(),
        session: Some(session()),
        icon: Icon::Background,
        label: spans(),
        state: "background".into(),
        note: Vec::new(),
        children: Vec::new(),
    };
    let item = ListItem { check: Some(Check::Cancelled), blocks: vec![Block::Rule] };
    vec![
        Block::Paragraph { spans: spans() },
        Block::Heading { level: 3, spans: spans() },
        Block::List(List { start: Some(7), tight: true, items: vec![item] }),
        Block::Quote { blocks: vec![Block::Quote { blocks: vec![Block::Rule] }] },
        Block::Code(Code {
            language: Some("rust".to_owned()),
            text: "\t".to_owned(),
            first_line: None,
        }),
        Block::Table(Table {
            alignments: vec![Alignment::None, Alignment::Right],
            header: vec![spans(), Vec::new()],
            rows: vec![vec![spans()]],
        }),
        Block::Rule,
        Block::Diff(Diff {
            path: Some("a".to_owned()),
            language: None,
            hunks: vec![Hunk { lines: vec![line] }],
        }),
        Block::Terminal(Terminal {
            lines: vec![runs(), Vec::new()],
            omitted: 2,
            exit_code: Some(-1),
        }),
        Block::Fields { fields: vec![Field::new("name", spans())] },
        Block::Tree(Tree {
            detail: TreeDetail::Full,
            shown: 1,
            nodes: vec![Node { children: vec![node.clone()], ..node }],
        }),
        Block::Notice(Notice { tone: Tone::Warning, code: None, text: "n".to_owned() }),
        Block::File(FileReference { bytes: Some(1), ..FileReference::default() }),
        Block::Aside { blocks: vec![Block::Rule] },
        Block::Fold(Fold {
            title: spans(),
            summary: String::new(),
            open: true,
            tone: Tone::Muted,
            blocks: vec![Block::Card(Box::new(card()))],
        }),
        Block::Card(Box::new(card())),
        Block::Question(question()),
    ]
}

fn session_row() -> SessionRow {
    SessionRow {
        id: session(),
        agent: "codex".to_owned(),
        title: "t".to_owned(),
        project: None,
        models: vec!["m".to_owned()],
        tags: Vec::new(),
        started: "2026-05-31T12:00:00.123456789Z".parse().ok(),
        ended: None,
        state: SessionState::Live,
        activity: Some(Activity::Waiting {
            what: "Which?".to_owned(),
            since: "2026-05-31T12:00:00.5Z".parse().ok(),
        }),
        last_turn: Some(TurnState::Running),
        turns: 1,
        parts: 2,
        tools: 3,
        errors: 4,
        tokens: u64::MAX,
        cached_tokens: 7,
        cost: "$0.01".to_owned(),
        sub_agent: true,
        seq: 9,
        resume: None,
        last_heard: "2026-05-31T12:00:00.123456789Z".parse().ok(),
        context: Some(ContextUse {
            tokens: Some(88),
            window: Some(200),
            compactions: 2,
            compacts_at: Some(150),
        }),
        burn_rate: Some(BurnRate { tokens_per_minute: 7, usd_per_hour: Some(0.5) }),
        findings: 3,
    }
}

#[test]
fn every_block_is_what_it_was() {
    for block in blocks() {
        same(block);
    }
}

#[test]
fn everything_that_is_said_is_what_it_was() {
    let found = SearchHit {
        session: session(),
        agent: "codex".to_owned(),
        title: None,
        turn: Some(0),
        place: Some(Place(-1)),
        kind: "user".to_owned(),
        tool: Some("Bash".to_owned()),
        state: Some("failed".to_owned()),
        at: Some(i64::MIN),
        snippet: "snippet".to_owned(),
        ranges: vec![(0, 3), (4, 7)],
    };
    let suggestion = Suggestion {
        label: "Search for x".to_owned(),
        query: "x".to_owned(),
        without_filters: true,
    };
    let reading = Reading {
        understood: "Searched for x.".to_owned(),
        suggestions: vec![suggestion],
        texts: vec!["x".to_owned()],
    };
    let edge = Some(Position { turn: u32::MAX, place: Place(i64::MAX) });
    let shown = WindowView { turns: Vec::new(), earlier: edge, later: None };
    let loaded = WindowData {
        session_row: session_row(),
        head: blocks(),
        view: shown,
        tasks: Tasks::default(),
    };
    let (target, at) = (NoteTarget::Session, "2026-05-31T12:00:00Z".parse().unwrap());
    let note = Note { target, text: "\u{1b}".to_owned(), at };
    for answer in [
        Response::List { sessions: vec![session_row()], more: true },
        Response::Session(None),
        Response::Session(Some(Box::new(session_row()))),
        Response::Window(Box::new(loaded)),
        Response::Hits { hits: vec![found], reading },
        Response::Findings(vec![FindingEntry {
            title: "Read failed 3 times".to_owned(),
            figures: "3 of 20 calls".to_owned(),
            position: edge,
        }]),
        Response::Notes(vec![PlacedNote {
            note,
            turn: None,
            place: Some(Place(1)),
            about: "Bash npm test".to_owned(),
        }]),
        Response::Prompts(PromptAnswer::Calls(Box::new(prompt_calls()))),
        Response::Prompts(PromptAnswer::Call(Box::new(prompt_view()))),
        Response::Prompts(PromptAnswer::Piece(Box::new(piece_view()))),
        Response::Changed("saved".to_owned()),
        Response::Failed("why".to_owned()),
    ] {
        same(ServerMessage::Response { number: u64::MAX, response: answer });
    }
    for urgency in [Urgency::Text, Urgency::State] {
        same(ServerMessage::Written(WriteNotice { session: session(), urgency }));
    }
    same(ServerMessage::Lagged);
    same(ServerMessage::Ready { version: VERSION.to_owned() });
    same(ServerMessage::Error { detail: "why".to_owned() });
}

fn shares() -> Vec<Share> {
    PieceKind::ALL.iter().map(|kind| Share { kind: *kind, chars: u64::MAX, percent: 100 }).collect()
}

fn prompt_calls() -> PromptCalls {
    let row = CallRow {
        request: "req\u{202e}".to_owned(),
        place: "1.2".to_owned(),
        chars: 3,
        tokens: 1,
        shares: shares(),
        change: "+1 message".to_owned(),
    };
    PromptCalls { calls: vec![row], all: 7 }
}

fn piece_view() -> PieceView {
    PieceView {
        number: 4,
        kind: PieceKind::Hook,
        title: "hooks".to_owned(),
        summary: "\u{1b}[31m".to_owned(),
        is_unknown: true,
        is_new: true,
        is_hit: false,
        find: Some("text".to_owned()),
        blocks: blocks(),
        rest: 1,
    }
}

fn prompt_view() -> PromptView {
    PromptView {
        request: "r".to_owned(),
        place: "2.1".to_owned(),
        number: 2,
        calls: 3,
        previous: Some("a".to_owned()),
        next: None,
        head: blocks(),
        shares: shares(),
        since: Some(("1.1".to_owned(), "+2 messages".to_owned())),
        pieces: vec![piece_view()],
    }
}

#[test]
fn every_query_round_trips() {
    let at = Position { turn: 1, place: Place(4_000_000) };
    let anchor = [
        Anchor::End,
        Anchor::Around(at),
        Anchor::From(at),
        Anchor::Before(at),
        Anchor::After(at),
        Anchor::Inside(at),
        Anchor::Between(Position::start_of(0), Position::end_of(1)),
    ];
    let filter = [None, Some(PartFilter::Errors), Some(PartFilter::Tool("Bash".to_owned()))];
    let filter =
        filter.into_iter().chain([Some(PartFilter::Edits), Some(PartFilter::Kind(Kind::TaskList))]);
    let windows = filter.flat_map(|filter| {
        anchor.map(|anchor| {
            let (filter, size) = (filter.clone(), Size::default());
            Query::Window { session: session(), anchor, filter, size }
        })
    });
    let after = Some((None, session()));
    let prompts = |query| Query::Prompts { session: session(), query };
    let others = [
        Query::List { after, limit: u64::MAX },
        Query::List { after: None, limit: 0 },
        Query::Session { id: "\"".to_owned() },
        Query::Search { query: "a \"b c\"".to_owned(), session: None, limit: 3 },
        Query::Changes { session: session(), turn: Some(3) },
        Query::Notes { session: session() },
        Query::Findings { session: session() },
        prompts(PromptQuery::Calls { find: Some("<b>".to_owned()) }),
        prompts(PromptQuery::Call { target: CallTarget::At(at), find: None }),
        prompts(PromptQuery::Call { target: CallTarget::Request("r".to_owned()), find: None }),
        prompts(PromptQuery::Piece { request: "r".to_owned(), number: usize::MAX }),
    ];
    for query in windows.chain(others) {
        same(ClientMessage { number: 0, query });
    }
}

#[test]
fn what_is_said_is_what_the_docs_say() {
    let text = |message: &ServerMessage| serde_json::to_string(message).unwrap();
    assert_eq!(text(&ServerMessage::Lagged), r#"{"type":"lagged"}"#);
    let write = WriteNotice { session: session(), urgency: Urgency::Text };
    let written = ServerMessage::from(Update::Written(write));
    let told = format!(r#"{{"type":"written","session":"{}","urgency":"text"}}"#, session());
    assert_eq!(text(&written), told);
    let answer = Response::Failed("why".to_owned());
    let told = r#"{"type":"response","number":7,"response":{"failed":"why"}}"#;
    assert_eq!(text(&ServerMessage::Response { number: 7, response: answer }), told);
}

#[test]
fn nobody_gets_more_than_a_lot() {
    let huge = Size { parts: usize::MAX, block: usize::MAX, long: u64::MAX };
    let window =
        |size| Query::Window { session: session(), anchor: Anchor::End, filter: None, size };
    let most = Size { parts: 4000, block: 4000, long: 4000 };
    assert_eq!(window(huge).bounded(), window(most));
    assert_eq!(window(Size::SCROLL).bounded(), window(Size::SCROLL));
    let list = |limit| Query::List { after: None, limit };
    assert_eq!((list(u64::MAX).bounded(), list(3).bounded()), (list(500), list(3)));
}
