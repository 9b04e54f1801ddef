//! Answers stay within their limits and always get on.

use super::*;
use crate::exit::Exit;
use crate::item::{Item, TextPiece};

fn item(text: &str) -> SafeValue {
    Item::new().text(&mut Exit::new(None), "text", text, usize::MAX).done()
}

#[test]
fn what_does_not_fit_is_left_for_the_next_answer() {
    let mut answer = AnswerBuilder::new(MIN_LIMIT, Item::new().done(), "items");
    let mut told = 0;
    while answer.push(item(&"é\"\n".repeat(40))) {
        told += 1;
    }
    let answer = answer.finish(Some("7.00000000000000000000000000".to_owned()));
    assert!(told > 3, "{told}");
    assert!(answer.chars() <= MIN_LIMIT, "{}", answer.chars());
    assert!(answer.chars() > MIN_LIMIT - 400, "{}", answer.chars());
    assert_eq!(answer.document()["truncated"], true);
}

#[test]
fn the_first_item_fits_however_long_it_is() {
    for text in ["x".repeat(100_000), "\"\\\n".repeat(50_000), "漢字".repeat(9_000)] {
        let mut head = Item::new();
        head.field(&mut Exit::new(None), "title", Some(&text)).number("turn", 3u32);
        let mut answer = AnswerBuilder::new(MIN_LIMIT, head.done(), "items");
        assert!(answer.push(item(&text)));
        let answer = answer.finish(None);
        assert!(answer.chars() <= MIN_LIMIT, "{}", answer.chars());
        assert_eq!(answer.document()["turn"], 3);
        assert_eq!(answer.document()["truncated"], false);
    }
}

#[test]
fn pieces_make_up_the_whole_text() {
    let text = "a\"é\n漢\\t".repeat(500);
    let (mut from, mut whole) = (0, String::new());
    for _ in 0..10_000 {
        let piece = TextPiece::of(&mut Exit::new(None), &text, from, 50);
        let told = Item::new().piece("text", &piece).done().into_value();
        let told = told["text"].as_str().unwrap().to_owned();
        assert!(serde_json::to_string(&told).unwrap().chars().count() <= 52);
        whole.push_str(&told);
        match piece.next {
            Some(next) => from = next,
            None => break,
        }
    }
    assert_eq!(whole, text);
}
