//! Draws every kind of block with hostile text at every width: no panic, no cell with a control
//! sequence, no line wider than allowed.

use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unspool_view::block::*;
use unspool_view::lines::{self, LineOptions, layout};

use super::draw;
use crate::theme::Theme;

/// Control characters, escapes, bidi marks, wide and joined graphemes, combining marks without a
/// base, zero-width characters, overlong words.
const HOSTILE: &[&str] = &[
    "plain words",
    " ",
    "\n",
    "\r\n",
    "\r",
    "\t",
    "\u{0}",
    "\u{7}\u{8}",
    "\u{1b}[2J\u{1b}[31m",
    "\u{1b}]8;;https://evil.example\u{1b}\\",
    "\u{1b}P+q\u{9c}",
    "\u{9b}1m",
    "\u{7f}",
    "\u{202e}abc\u{202c}",
    "\u{2066}\u{2069}\u{200e}\u{200f}\u{61c}",
    "\u{2028}\u{2029}",
    "東京の天気予報は晴れ",
    "👩‍👩‍👧‍👦👍🏽🇩🇪🇩",
    "e\u{301}\u{301}\u{301}",
    "\u{301}\u{200d}",
    "\u{200b}\u{feff}\u{2060}\u{ad}",
    "שלום עולם",
    "لا إله",
    "ｶﾞﾟ",
    "☺\u{fe0f}",
    "क्षि",
    "\u{e0041}\u{e007f}",
    "\u{fffe}\u{10ffff}",
    "averyveryveryveryveryveryveryveryveryveryveryveryveryveryveryveryveryverylongword",
    "│ ● [OK] ❯",
    "Ａ",
];

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(HOSTILE), 0..8).prop_map(|pieces| pieces.concat())
}

fn spans() -> impl Strategy<Value = Vec<Span>> {
    let span = (text(), any::<u8>()).prop_map(|(text, bits)| {
        let bit = |at: u8| bits >> at & 1 == 1;
        let style = SpanStyle {
            strong: bit(0),
            emphasis: bit(1),
            strike: bit(2),
            code: bit(3),
            dim: bit(4),
            path: bit(5),
            link: bit(6).then(|| "https://example.org/".to_owned()),
            tone: bit(7).then_some(Tone::Warning),
        };
        Span { text, style }
    });
    prop::collection::vec(span, 0..4)
}

fn colour() -> impl Strategy<Value = Option<Color>> {
    prop::option::of(prop_oneof![
        any::<u8>().prop_map(Color::Indexed),
        any::<(u8, u8, u8)>().prop_map(|(r, g, b)| Color::Rgb(r, g, b)),
    ])
}

fn terminal() -> impl Strategy<Value = Terminal> {
    let run = (text(), colour(), colour(), any::<bool>()).prop_map(
        |(text, foreground, background, flag)| AnsiRun {
            text,
            style: AnsiStyle {
                foreground,
                background,
                inverse: flag,
                dim: !flag,
                ..AnsiStyle::default()
            },
        },
    );
    let lines = prop::collection::vec(prop::collection::vec(run, 0..4), 0..16);
    (lines, 0..3_usize, prop::option::of(-1_i64..3))
        .prop_map(|(lines, omitted, exit_code)| Terminal { lines, omitted, exit_code })
}

fn diff() -> impl Strategy<Value = Diff> {
    let kind = prop::sample::select(&[DiffKind::Context, DiffKind::Added, DiffKind::Removed][..]);
    let line = (kind, prop::option::of(any::<u64>()), text(), text()).prop_map(
        |(kind, new, one, other)| DiffLine {
            kind,
            old: None,
            new,
            spans: vec![
                DiffSpan { text: one, changed: false },
                DiffSpan { text: other, changed: true },
            ],
            no_newline: false,
        },
    );
    let hunk = prop::collection::vec(line, 0..5).prop_map(|lines| Hunk { lines });
    (prop::option::of(text()), prop::collection::vec(hunk, 0..3)).prop_map(|(path, hunks)| Diff {
        path,
        language: None,
        hunks,
    })
}

fn table() -> impl Strategy<Value = Table> {
    let row = || prop::collection::vec(spans(), 0..6);
    let alignments = prop::collection::vec(
        prop::sample::select(&[Alignment::None, Alignment::Center, Alignment::Right][..]),
        0..6,
    );
    (alignments, row(), prop::collection::vec(row(), 0..3))
        .prop_map(|(alignments, header, rows)| Table { alignments, header, rows })
}

fn question() -> impl Strategy<Value = Question> {
    let option = (text(), prop::option::of(text()), any::<bool>())
        .prop_map(|(label, description, chosen)| QuestionOption { label, description, chosen });
    let options = prop::collection::vec(option, 0..3);
    let item = (prop::option::of(text()), text(), options, any::<bool>(), prop::option::of(text()))
        .prop_map(|(header, question, options, multi_select, answer)| QuestionItem {
            header,
            question,
            options,
            multi_select,
            answer,
        });
    let answer = (text(), any::<bool>()).prop_map(|(text, observed)| Answer {
        decision: if observed { Decision::Denied } else { Decision::Answered },
        text,
        observed,
        missing: false,
        answered_by: None,
    });
    (prop::collection::vec(item, 0..3), prop::option::of(answer)).prop_map(|(items, answer)| {
        Question { kind: QuestionKind::Choice, open: true, items, answer }
    })
}

fn node() -> impl Strategy<Value = Node> {
    let leaf = (spans(), spans(), text()).prop_map(|(label, note, state)| Node {
        key: "key".into(),
        session: None,
        icon: Icon::Running,
        label,
        state: state.into(),
        note,
        children: Vec::new(),
    });
    leaf.prop_recursive(3, 6, 3, |inner| {
        (inner.clone(), prop::collection::vec(inner, 0..3))
            .prop_map(|(node, children)| Node { children, ..node })
    })
}

fn tree() -> impl Strategy<Value = Tree> {
    (prop::collection::vec(node(), 0..4), 0..4_usize, any::<bool>()).prop_map(
        |(nodes, shown, full)| {
            let detail = if full { TreeDetail::Full } else { TreeDetail::Compact };
            Tree { detail, shown, nodes }
        },
    )
}

/// Blocks that hold no others.
fn leaf() -> BoxedStrategy<Block> {
    let code = (text(), prop::option::of(any::<u64>())).prop_map(|(text, first_line)| {
        Block::Code(Code { language: Some("json".into()), text, first_line })
    });
    let fields = prop::collection::vec((text(), spans()), 0..4).prop_map(|fields| {
        let fields = fields.into_iter().map(|(name, value)| Field::new(name, value));
        Block::Fields { fields: fields.collect() }
    });
    let file = (prop::option::of(text()), prop::option::of(text()), any::<u64>()).prop_map(
        |(name, media_type, bytes)| {
            let bytes = Some(bytes);
            Block::File(FileReference { name, media_type, bytes, ..FileReference::default() })
        },
    );
    let notice = (text(), prop::option::of(text()))
        .prop_map(|(text, code)| Block::Notice(Notice { tone: Tone::Warning, code, text }));
    prop_oneof![
        spans().prop_map(|spans| Block::Paragraph { spans }),
        (any::<u8>(), spans()).prop_map(|(level, spans)| Block::Heading { level, spans }),
        code,
        table().prop_map(Block::Table),
        Just(Block::Rule),
        diff().prop_map(Block::Diff),
        terminal().prop_map(Block::Terminal),
        fields,
        tree().prop_map(Block::Tree),
        notice,
        file,
        question().prop_map(Block::Question),
    ]
    .boxed()
}

/// Blocks that contain other blocks.
fn holding(inner: BoxedStrategy<Block>) -> BoxedStrategy<Block> {
    let inside = prop::collection::vec(inner, 0..4).boxed();
    let check = prop::option::of(prop::sample::select(
        &[Check::Open, Check::Running, Check::Done, Check::Cancelled][..],
    ));
    let item = (check, inside.clone()).prop_map(|(check, blocks)| ListItem { check, blocks });
    let list = (prop::option::of(any::<u64>()), any::<bool>(), prop::collection::vec(item, 0..4))
        .prop_map(|(start, tight, items)| Block::List(List { start, tight, items }));
    let fold = (spans(), text(), any::<bool>(), inside.clone()).prop_map(
        |(title, summary, open, blocks)| {
            Block::Fold(Fold { title, summary, open, tone: Tone::Muted, blocks })
        },
    );
    let card = (text(), spans(), text(), prop::option::of(question()), inside.clone()).prop_map(
        |(title, summary, state, question, body)| {
            let badge =
                Badge { word: "[FAILED]".into(), tone: Tone::Failed, state: Some(state.into()) };
            let (icon, duration_ms) = (Icon::Failed, Some(u64::MAX));
            Block::Card(Box::new(Card {
                badge,
                icon,
                title,
                summary,
                duration_ms,
                open: true,
                earlier: question.clone().into_iter().collect(),
                question,
                body,
            }))
        },
    );
    prop_oneof![
        list,
        inside.clone().prop_map(|blocks| Block::Quote { blocks }),
        inside.prop_map(|blocks| Block::Aside { blocks }),
        fold,
        card,
    ]
    .boxed()
}

fn block() -> BoxedStrategy<Block> {
    let one = prop_oneof![leaf(), holding(leaf())].boxed();
    prop_oneof![2 => leaf(), 3 => holding(one)].boxed()
}

/// Control characters, and bidi marks that would display text in another order.
fn is_harmful(c: char) -> bool {
    c.is_control() || is_deceptive(c) || matches!(c, '\u{2028}' | '\u{2029}')
}

fn check(blocks: &[Block], options: &LineOptions<'_>) -> Result<(), TestCaseError> {
    let theme = Theme::mocha();
    for width in 1_u16..=300 {
        let laid = layout(blocks, usize::from(width), options);
        let area = Rect::new(1, 0, width, 1);
        // Guard columns on both sides.
        let mut buffer = Buffer::empty(Rect::new(0, 0, width + 2, 1));
        for line in &laid {
            // Below this width lines are cut off by the screen; see `lines::Frame`.
            if width >= 12 {
                prop_assert!(line.width() <= usize::from(width), "{width}: {:?}", line.text());
            }
            buffer.reset();
            let taken = draw(line, area, &mut buffer, &theme);
            prop_assert_eq!(usize::from(taken), line.width().min(usize::from(taken)));
            prop_assert!(taken <= width);
            let mut held = 0;
            for cell in &buffer.content {
                let symbol = cell.symbol();
                prop_assert!(!symbol.chars().any(is_harmful), "{width}: {symbol:?}");
                held = held.max(lines::width(symbol));
            }
            prop_assert!(held <= 8);
            for x in [0, width + 1] {
                prop_assert_eq!(buffer[(x, 0)].symbol(), " ");
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn law_8_every_block_is_drawn_at_every_width(one in block(), expand in any::<bool>()) {
        let options = if expand { LineOptions::everything() } else { LineOptions::default() };
        check(&[one], &options)?;
    }
}
