use ratatui::style::{Color, Modifier};
use unspool_view::block::{Block, Span};
use unspool_view::lines::{LineOptions, Run, Style as LineStyle, layout};

use super::*;

fn drawn(line: &Line, width: u16) -> (Vec<String>, u16) {
    let area = Rect::new(0, 0, width, 1);
    let mut buffer = Buffer::empty(area);
    let taken = draw(line, area, &mut buffer, &Theme::mocha());
    (buffer.content.iter().map(|cell| cell.symbol().to_owned()).collect(), taken)
}

fn plain(text: &str) -> Line {
    Line::of(text, LineStyle::default())
}

#[test]
fn graphemes_take_their_cells() {
    assert_eq!(drawn(&plain("ab"), 3), (vec!["a".into(), "b".into(), " ".into()], 2));
    assert_eq!(drawn(&plain("東x"), 4).0, ["東", " ", "x", " "]);
    assert_eq!(drawn(&plain("👩‍💻!"), 3).0, ["👩‍💻", " ", "!"]);
    assert_eq!(drawn(&plain("e\u{301}e"), 2).0, ["e\u{301}", "e"]);
    assert_eq!(drawn(&plain("שלום"), 4).0, ["ש", "ל", "ו", "ם"]);
    assert_eq!(drawn(&plain("لا"), 2).0, ["ل", "ا"]);
    assert_eq!(drawn(&plain("ｶﾞx"), 3).0, ["ｶﾞ", " ", "x"]);
    let area = Rect::new(0, 0, 3, 1);
    let mut kana = Buffer::empty(area);
    draw(&plain("ｶﾞx"), area, &mut kana, &Theme::mono());
    let symbols: Vec<&str> =
        Buffer::empty(area).diff(&kana).iter().map(|(_, _, cell)| cell.symbol()).collect();
    assert_eq!(symbols, ["ｶﾞ", "x"]);
}

#[test]
fn graphemes_that_do_not_fit_are_left_out_whole() {
    assert_eq!(
        drawn(&plain("a東京"), 4),
        (vec!["a".into(), "東".into(), " ".into(), " ".into()], 3)
    );
    assert_eq!(drawn(&plain("東"), 1), (vec![" ".into()], 0));
    assert_eq!(drawn(&plain("abc"), 0), (vec![], 0));
    // An area beyond the edge of the screen.
    let mut buffer = Buffer::empty(Rect::new(0, 0, 3, 1));
    assert_eq!(draw(&plain("abcdef"), Rect::new(1, 0, 9, 1), &mut buffer, &Theme::mono()), 2);
    assert_eq!(draw(&plain("abcdef"), Rect::new(0, 5, 9, 1), &mut buffer, &Theme::mono()), 0);
}

/// Law 8, even for a line that was not escaped before.
#[test]
fn law_8_no_cell_holds_a_control_sequence() {
    let run = |text: &str| Run { text: text.to_owned(), style: LineStyle::default() };
    let line = Line { runs: vec![run("a\x1b[31m\u{202e}b"), run("\u{9b}c\u{200b}\u{feff}d\u{7}")] };
    let (cells, _) = drawn(&line, 40);
    assert_eq!(cells.concat().trim_end(), "a␛[31m‹U+202E›b\u{fffd}cd␇");
    let zalgo = format!("x{}y", "\u{301}".repeat(5000));
    let (cells, taken) = drawn(&plain(&zalgo), 3);
    assert_eq!((cells[1].as_str(), taken), ("y", 2));
    assert_eq!(cells[0].chars().count(), MAX_GRAPHEME_CHARS);
}

#[test]
fn a_grapheme_split_over_two_runs_is_drawn_once() {
    let mut line = plain("e");
    line.push("\u{301}x", LineStyle { strong: true, ..LineStyle::default() });
    assert_eq!(drawn(&line, 3).0, ["e\u{301}", "x", " "]);
    let mut line = plain("👩\u{200d}");
    line.push("💻x", LineStyle { strong: true, ..LineStyle::default() });
    assert_eq!((line.width(), drawn(&line, 3).0), (3, vec!["👩‍💻".into(), " ".into(), "x".into()]));
}

/// The layout, ratatui and we agree on widths; otherwise remains of old frames stay on the screen.
#[test]
fn layout_and_ratatui_agree_on_widths() {
    let graphemes = ["a", "é", "東", "👍🏽", "👩‍👩‍👧‍👦", "🇩🇪", "☺\u{fe0f}", "☺", "ﬁ", "한", "ᄒ", "क्षि"];
    for grapheme in graphemes {
        assert_eq!(lines::width(grapheme), usize::from(grapheme.cell_width()), "{grapheme}");
    }
}

#[test]
fn styles_patch_the_existing_cells() {
    let theme = Theme::mocha();
    let area = Rect::new(0, 0, 4, 1);
    let mut buffer = Buffer::empty(area);
    buffer.set_style(area, theme.base().patch(theme.selection()));
    let ground = buffer[(0, 0)].bg;
    let mut line = plain("a");
    line.push("東", LineStyle { strong: true, ..LineStyle::role(lines::TextRole::Code) });
    draw(&line, area, &mut buffer, &theme);
    assert_eq!((buffer[(0, 0)].fg, buffer[(0, 0)].bg), (Color::Rgb(0xcd, 0xd6, 0xf4), ground));
    for x in [1, 2] {
        assert_eq!((buffer[(x, 0)].fg, buffer[(x, 0)].bg), (Color::Rgb(0x94, 0xe2, 0xd5), ground));
        assert!(buffer[(x, 0)].modifier.contains(Modifier::BOLD));
    }
}

fn linked(text: &str, url: &str) -> Line {
    let spans = vec![Span::plain("see "), Span::plain(text).link(url), Span::plain(" now")];
    layout(&[Block::Paragraph { spans }], 60, &LineOptions::default()).remove(0)
}

fn frame(line: &Line) -> (Buffer, Vec<Link>) {
    let area = Rect::new(2, 1, 40, 1);
    let mut buffer = Buffer::empty(Rect::new(0, 0, 42, 3));
    draw(line, area, &mut buffer, &Theme::mono());
    (buffer, links([(line, area)]))
}

fn written(links: &mut Links, frame: &(Buffer, Vec<Link>)) -> String {
    let mut out = Vec::new();
    links.write(&mut out, &frame.1, &frame.0).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn links_can_be_followed() {
    let line = linked("the 東 page", "https://example.org/ü?a=1;b");
    let shown = frame(&line);
    assert_eq!(shown.1.len(), 1);
    let link = &shown.1[0];
    assert_eq!((link.x, link.y, link.width, link.text.as_str()), (6, 1, 11, "the 東 page"));
    let mut links = Links::default();
    let out = written(&mut links, &shown);
    assert!(out.starts_with("\x1b7\x1b]8;id="), "{out:?}");
    assert!(out.contains(";https://example.org/%C3%BC?a=1;b\x1b\\\x1b[2;7H"), "{out:?}");
    // The cursor is positioned after a wide character: terminals disagree on its width.
    assert!(out.contains("the 東\x1b[2;13H page\x1b["), "{out:?}");
    assert!(out.ends_with("\x1b]8;;\x1b\\\x1b8"), "{out:?}");
    assert_eq!(out.matches("\x1b]8;").count(), 2);
    // The same frame again writes nothing.
    assert_eq!(written(&mut links, &shown), "");
    links.forget();
    assert_eq!(written(&mut links, &shown), out);
}

#[test]
fn links_disappear_with_their_text() {
    let mut links = Links::default();
    let first = frame(&linked("page", "https://example.org/1"));
    let second = frame(&linked("page", "https://example.org/2"));
    let nothing = frame(&plain("see page now"));
    written(&mut links, &first);
    let out = written(&mut links, &second);
    assert!(out.contains("https://example.org/2") && !out.contains("https://example.org/1"));
    // The cells are printed without the link, though ratatui's diff does not include them.
    let out = written(&mut links, &nothing);
    assert!(out.contains("page") && !out.contains("\x1b]8"), "{out:?}");
    assert_eq!(written(&mut links, &nothing), "");
    // A covered link is dropped; one drawn in other colours is written again.
    written(&mut links, &first);
    let (mut covered, found) = first.clone();
    covered[(7, 1)].set_symbol("#");
    let out = written(&mut links, &(covered, found));
    assert!(out.contains("p#ge") && !out.contains("\x1b]8"), "{out:?}");
    written(&mut links, &first);
    let (mut marked, found) = first.clone();
    marked[(7, 1)].set_bg(Color::Yellow);
    assert!(written(&mut links, &(marked, found)).contains("https://example.org/1"));
}

#[test]
fn law_8_only_safe_links_are_written() {
    let area = Rect::new(0, 0, 20, 1);
    let hostile = [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://a/\x1b]8;;evil",
        "https://a/\u{9c}x",
        "https://a/\u{202e}x",
        "https://a b",
        &format!("https://a/{}", "x".repeat(MAX_URL_BYTES)),
    ];
    for url in hostile {
        let line = plain("click");
        let mut line = Line { runs: line.runs };
        line.runs[0].style.link = Some(url.to_owned());
        let mut buffer = Buffer::empty(area);
        draw(&line, area, &mut buffer, &Theme::mono());
        let found = links([(&line, area)]);
        assert_eq!(written(&mut Links::default(), &(buffer, found)), "", "{url:?}");
    }
}

const MAX_URL_BYTES: usize = 2000;
