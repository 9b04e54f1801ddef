use super::*;
use crate::block::text_of;
use crate::lines::{LineOptions, layout};
use crate::plain::paint;

fn plain(text: &str) -> String {
    paint(&layout(&blocks(text), 60, &LineOptions::everything()))
}

fn paragraph(blocks: &[Block]) -> &[Span] {
    match blocks {
        [Block::Paragraph { spans }] => spans,
        other => panic!("one paragraph expected: {other:?}"),
    }
}

// R-003-56: newlines, lists and code fences are preserved.
#[test]
fn newlines_lists_and_fences_are_preserved() {
    let text = "First line\nsecond line\n\n1. one\n   - a\n   - b\n     continued\n2. two\n\n```rust\nfn main() {\n\n    x();\n}\n```\nafter";
    let expected = "\
First line
second line

1. one
   • a
   • b
     continued
2. two

  fn main() {

      x();
  }

after
";
    assert_eq!(plain(text), expected);
    // R-001-38: the text of code is not changed.
    let all = blocks(text);
    let Some(Block::Code(code)) = all.get(2) else { panic!("code: {all:?}") };
    assert_eq!(code.language.as_deref(), Some("rust"));
    assert_eq!(code.text, "fn main() {\n\n    x();\n}");
}

#[test]
fn html_stays_text() {
    let block = blocks("<div>\n<b onclick=x()>x</b>\n</div>");
    assert_eq!(text_of(paragraph(&block)), "<div>\n<b onclick=x()>x</b>\n</div>");
    let script = plain("<script>alert(1)</script>\n<b>x</b>");
    assert_eq!(script, "<script>alert(1)</script>\n\n<b>x</b>\n");
    let inline = blocks("a <img src=x onerror=alert(1)> b");
    assert_eq!(text_of(paragraph(&inline)), "a <img src=x onerror=alert(1)> b");
    assert!(paragraph(&inline).iter().all(|span| span.style == SpanStyle::default()));
}

#[test]
fn only_safe_links_are_links() {
    let spans =
        blocks("[a](https://e.org) [b](javascript:alert(1)) [c](/api/x) ![d](http://e.org/p.png)");
    let spans = paragraph(&spans);
    let links: Vec<(&str, &str)> = spans
        .iter()
        .filter_map(|span| Some((span.text.as_str(), span.style.link.as_deref()?)))
        .collect();
    assert_eq!(links, [("a", "https://e.org"), ("d", "http://e.org/p.png")]);
    assert!(text_of(spans).contains("b (javascript:alert(1))"));
    assert!(text_of(spans).contains("c (/api/x)"));
}

#[test]
fn tables_tasks_and_strikes() {
    let expected = "\
☑ done
☐ open, crossed

 n │ name
───┼─────
 1 │ a
10 │ b

▎ quoted
▎ twice
";
    let text = "- [x] done\n- [ ] open, ~~crossed~~\n\n| n | name |\n|--:|:--|\n| 1 | a |\n| 10 | b |\n\n> quoted\n> twice\n";
    assert_eq!(plain(text), expected);
    let list = blocks(text);
    let Some(Block::List(List { items, .. })) = list.first() else { panic!("a list") };
    assert_eq!(
        items.iter().map(|item| item.check).collect::<Vec<_>>(),
        [Some(Check::Done), Some(Check::Open)]
    );
    assert!(paragraph(&items[1].blocks).iter().any(|span| span.style.strike));
}

#[test]
fn depth_is_bounded_and_nothing_is_lost() {
    for mark in [">", "- ", "1. "] {
        let text = format!("{}end", mark.repeat(5_000));
        let painted = plain(&text);
        assert!(painted.contains("end"), "{mark}");
    }
}

// R-003-56: streamed text renders like the same text in one piece.
#[test]
fn a_fence_that_is_still_open_is_already_code() {
    assert_eq!(blocks("```js\nlet a = 1"), blocks("```js\nlet a = 1\n```"));
}
