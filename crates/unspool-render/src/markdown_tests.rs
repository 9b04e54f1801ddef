//! What is written reads back as what it was: the presenter's own parser is the judge.

use unspool_core::block::{Block, Code, List, ListItem, Span, text_of};
use unspool_core::present::markdown::blocks as read;

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
