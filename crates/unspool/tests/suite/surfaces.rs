//! Law 6: for every part of every recording the terminal's lines and the page's HTML have the same
//! words in the same order, with every fold open. Each surface's own marks are ignored on both
//! sides; each exception has its reason.

use unspool_export::html::turn::fragments;
use unspool_model::part::Kind;
use unspool_view::lines::{self, Line, LineOptions, Run, TextRole};
use unspool_view::present::{self, Item, PartView};

use crate::by_source::{assert_seen, by_source};
use crate::case::{captures, case_sessions, cases, fold_in, name};

/// Wide enough that nothing wraps, and that tables stay tables.
const WIDTH: usize = 1_000_000;

/// Bullets, boxes, icons, rails, rules and other symbols of either surface.
const MARKS: &str = "┌│┊▎•☐☑☒◐●○◉✕✓⋯◆❯▾▸◌▣→—·!?+-−#⧈─┼└├";

/// The words of one surface, and the heads of cards, which a terminal keeps on one line.
#[derive(Default, Debug, PartialEq)]
struct SurfaceText {
    words: Vec<String>,
    heads: Vec<String>,
}

impl SurfaceText {
    /// Marks the place of a head among the words.
    const HEAD: &'static str = " \u{f8ff} ";

    fn of(text: &str, heads: Vec<String>) -> SurfaceText {
        // Line ends inside a line: a page breaks the line, a terminal shows a symbol.
        let text = text.replace(['␊', '␤', '␍'], " ");
        let words = text.split_whitespace();
        let words = words.filter(|word| !word.chars().all(|c| MARKS.contains(c)));
        SurfaceText { words: words.map(str::to_owned).collect(), heads }
    }
}

/// The words of lines.
fn of_lines(laid: &[Line]) -> SurfaceText {
    let mut text = String::new();
    let mut heads = Vec::new();
    for line in laid {
        let badge = line.runs.iter().position(|run| matches!(run.style.role, TextRole::Badge(_)));
        if let Some(badge) = badge {
            // The duration is after the badge here, and before it on the page.
            let is_head =
                |(at, run): &(usize, &Run)| *at <= badge || run.style.role != TextRole::Gutter;
            let head = line.runs.iter().enumerate().filter(is_head);
            heads.push(head.map(|(_, run)| run.text.as_str()).collect());
            text.push_str(SurfaceText::HEAD);
            continue;
        }
        // The name of a changed file: a page shows it above every change, a terminal only if a card
        // has several. The card's head has it too.
        let is_path = |run: &Run| run.style.role == TextRole::Path && run.style.strong;
        if line.runs.iter().all(|run| is_path(run) || is_mark(run)) {
            continue;
        }
        line.runs.iter().for_each(|run| text.push_str(if is_mark(run) { " " } else { &run.text }));
        text.push('\n');
    }
    SurfaceText::of(&text, heads)
}

/// Line and item numbers, which are not in the page's text.
fn is_mark(run: &Run) -> bool {
    let text = run.text.trim().trim_end_matches('.');
    run.style.role == TextRole::Gutter
        && text
            .split_whitespace()
            .all(|word| word.chars().all(|c| c.is_ascii_digit() || MARKS.contains(c) || c == '.'))
}

/// Inline elements; all others separate words.
const INLINE_TAGS: &[&str] = &["a", "code", "em", "mark", "s", "span", "strong"];
/// Classes of spans that separate words as well.
const SEPARATED_CLASSES: &[&str] =
    &["name", "gist", "badge", "state", "title", "label", "icon", "box"];
/// Classes only a page has: a step's cost, the link to a sub-agent's transcript, the size of a
/// change, text for screen readers, and the duration, which a terminal shows after the badge.
const PAGE_ONLY_CLASSES: &[&str] =
    &["step-foot", "transcript-of", "counts", "visually-hidden", "duration"];

struct Element {
    tag: String,
    classes: Vec<String>,
}

impl Element {
    fn is(&self, class: &str) -> bool {
        self.classes.iter().any(|one| one == class)
    }
}

/// The words of HTML as maud writes it.
fn of_html(html: &str) -> SurfaceText {
    let mut text = String::new();
    let mut heads: Vec<String> = Vec::new();
    let mut open: Vec<Element> = Vec::new();
    // The depth of the omitted element, and the depth and text offset of the open card head.
    let (mut left_out, mut head): (Option<usize>, Option<(usize, usize)>) = (None, None);
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        if left_out.is_none() {
            text.push_str(&decoded(&rest[..at]));
        }
        let end = at + tag_end(&rest[at..]);
        let tag = &rest[at + 1..end - 1];
        rest = &rest[end..];
        if let Some(tag) = tag.strip_prefix('/') {
            let element = open.pop().unwrap();
            assert_eq!(element.tag, tag);
            if left_out.is_some_and(|depth| depth > open.len()) {
                left_out = None;
            }
            if is_separated(&element, &open) && left_out.is_none() {
                text.push(' ');
            }
            if let Some((_, start)) = head.filter(|(depth, _)| *depth > open.len()) {
                heads.push(text.split_off(start));
                text.push_str(SurfaceText::HEAD);
                head = None;
            }
            continue;
        }
        let name = tag.split([' ', '/']).next().unwrap_or_default();
        let classes = attribute(tag, "class").unwrap_or_default();
        let element = Element {
            tag: name.to_owned(),
            classes: classes.split(' ').map(str::to_owned).collect(),
        };
        if is_separated(&element, &open) && left_out.is_none() {
            text.push(' ');
        }
        if matches!(name, "img" | "hr" | "br" | "input") {
            continue;
        }
        let is_hidden = attribute(tag, "aria-hidden") == Some("true");
        let is_head = element.is("card-head");
        let is_out = is_hidden || is_added(&element, &open);
        open.push(element);
        if is_out && left_out.is_none() {
            left_out = Some(open.len());
        }
        if is_head {
            head = Some((open.len(), text.len()));
        }
    }
    assert!(open.is_empty());
    text.push_str(&decoded(rest));
    SurfaceText::of(&text, heads)
}

fn tag_end(html: &str) -> usize {
    let mut is_quoted = false;
    for (at, byte) in html.bytes().enumerate() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'>' if !is_quoted => return at + 1,
            _ => {}
        }
    }
    panic!("a tag without an end: {html}")
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let start = tag.find(&format!(" {name}=\""))? + name.len() + 3;
    tag[start..].split('"').next()
}

fn is_separated(element: &Element, within: &[Element]) -> bool {
    let is_option = within.iter().any(|one| one.is("options"));
    !INLINE_TAGS.contains(&element.tag.as_str())
        || SEPARATED_CLASSES.iter().any(|class| element.is(class))
        || is_option
}

fn is_added(element: &Element, within: &[Element]) -> bool {
    let parent = within.last();
    let grand = within.len().checked_sub(2).and_then(|at| within.get(at));
    let inside = |class: &str| parent.is_some_and(|parent| parent.is(class));
    PAGE_ONLY_CLASSES.iter().any(|class| element.is(class))
        // The language of a block of code, and the name of a changed file.
        || (element.tag == "figcaption" && (inside("code") || inside("diff")))
        // The number of folded agents: all are shown.
        || (element.tag == "summary" && (inside("more") || inside("rest") || inside("whole")))
        // The summary of a closed fold.
        || (element.is("gist")
            && parent.is_some_and(|parent| parent.tag == "summary")
            && grand.is_some_and(|grand| grand.is("fold") || grand.is("reasoning")))
}

fn decoded(text: &str) -> String {
    assert!(!text.contains("&#"), "{text}");
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// A terminal shortens a long head in the middle: its start and end remain.
fn fits(terminal: &str, page: &str) -> bool {
    let words = |text: &str| SurfaceText::of(text, Vec::new()).words.join(" ");
    let (terminal, page) = (words(terminal), words(page));
    let mut fragments = terminal.split('…');
    let (first, last) = (fragments.next().unwrap_or_default(), fragments.next_back());
    match last {
        None => terminal == page,
        Some(last) => {
            page.starts_with(first.trim_end())
                && page.ends_with(last.trim_start())
                && fragments.all(|piece| page.contains(piece.trim()))
        }
    }
}

/// Where they differ, if they do.
fn difference(terminal: &SurfaceText, page: &SurfaceText) -> Option<String> {
    if terminal.words != page.words {
        let alike = terminal.words.iter().zip(&page.words).take_while(|(one, other)| one == other);
        let from = alike.count().saturating_sub(3);
        let near =
            |said: &SurfaceText| said.words.iter().skip(from).take(12).cloned().collect::<Vec<_>>();
        return Some(format!("\n  terminal: {:?}\n  page:     {:?}", near(terminal), near(page)));
    }
    // The numbers of heads are equal, since their marks are among the words.
    let mut heads = terminal.heads.iter().zip(&page.heads);
    let (terminal, page) = heads.find(|(terminal, page)| !fits(terminal, page))?;
    Some(format!("\n  terminal: {terminal}\n  page:     {page}"))
}

fn part_lines(part: &PartView) -> Vec<Line> {
    lines::item_lines(&Item::Part(part.clone()), WIDTH, &LineOptions::everything())
}

by_source!(law_6_the_surfaces_say_the_same);

fn law_6_the_surfaces_say_the_same(source: &str) {
    let mut compared = 0;
    let mut differences = Vec::new();
    let mut compare = |whose: &str, laid: &[Line], html: &str| {
        let found = difference(&of_lines(laid), &of_html(html));
        differences.extend(found.map(|found| format!("{whose}{found}")));
        compared += 1;
    };
    for case in cases(source) {
        let captures = captures(&case);
        let order: Vec<usize> = (0..captures.len()).collect();
        let session_set = fold_in(&captures, &order);
        for session in case_sessions(&session_set) {
            let transcript = session.transcript();
            let options = present::PresentOptions::of(&transcript.session);
            for turn in &transcript.turns {
                let view = present::turn(turn, &options);
                let whose = format!("{} turn {}", name(&case), view.header.number);
                let fragments = fragments(&view);
                let html = |id: String| {
                    fragments.iter().find(|piece| piece.id == id).unwrap().html.as_str()
                };
                if !view.user.is_empty() {
                    let laid = lines::layout(&view.user, WIDTH, &LineOptions::everything());
                    compare(&whose, &laid, html(format!("u-{}", view.id)));
                }
                for item in &view.items {
                    let (parts, in_block) = match item {
                        Item::Part(part) => (std::slice::from_ref(part), false),
                        Item::Reasoning(block) => (block.parts.as_slice(), true),
                    };
                    for part in parts {
                        let mut laid = part_lines(part);
                        let mut html = html(format!("p-{}", part.id)).to_owned();
                        // On a page, the first fold of a reasoning block has the block's title.
                        if in_block && part.kind == Kind::Reasoning && !laid.is_empty() {
                            laid.remove(0);
                            let (before, rest) = html.split_once("<summary>").unwrap();
                            html = format!("{before}{}", rest.split_once("</summary>").unwrap().1);
                        }
                        let whose = format!("{whose}, {} at {}", part.kind.name(), part.place.0);
                        compare(&whose, &laid, &html);
                    }
                }
            }
        }
    }
    let first: Vec<&str> = differences.iter().take(20).map(String::as_str).collect();
    assert!(first.is_empty(), "{} of {compared}:\n{}", differences.len(), first.join("\n"));
    assert_seen(
        source,
        compared,
        [140, 10, 12, 400, 12, 220, 8, 84, 12, 52, 10, 8, 184, 19, 15, 15, 10],
    );
}

/// Checks that the comparison detects a difference.
#[test]
fn a_lost_word_is_noticed() {
    let said = |text: &str| Line::of(text, lines::Style::default());
    let differ = |line: &Line, html: &str| {
        difference(&of_lines(std::slice::from_ref(line)), &of_html(html)).is_some()
    };
    let page = "<p>one <code>two</code>&lt;three&gt;</p><div class=\"step-foot\">step 1</div>";
    assert!(!differ(&said("• one two<three>"), page));
    assert!(differ(&said("one two"), page));
    assert!(differ(&said("two<three> one"), page));
    assert!(differ(&said("one two<three> four"), page));
    let mut head = said("● Bash  echo a b… ");
    head.push("[OK]", lines::Style::role(TextRole::Badge(unspool_view::block::Tone::Ok)));
    head.push(" 1.2 s", lines::Style::gutter());
    let card = |gist: &str| {
        format!(
            "<div class=\"card-head\"><span class=\"name\">Bash</span>\
             <span class=\"gist\">{gist}</span><span class=\"duration\">1.2 s</span>\
             <span class=\"badge tone-ok\">[OK]</span></div>"
        )
    };
    assert!(!differ(&head, &card("echo a bc d")));
    assert!(differ(&head, &card("echo x bc d")));
}
