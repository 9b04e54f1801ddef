use std::sync::mpsc::{self, Receiver};

use unspool_core::lines::Highlighter as _;

use super::*;

const RUST: &str = "// why\nfn main() { println!(\"x\"); }\n";

fn painter() -> (Painter, Receiver<Event>) {
    let (events, told) = mpsc::channel();
    (Painter::start(events), told)
}

fn wait(told: &Receiver<Event>) {
    let event = told.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(matches!(event, Event::Coloured));
}

#[test]
fn r_001_38_colours_come_when_they_are_found() {
    let (painter, told) = painter();
    assert!(painter.colours().of("rust", RUST).is_none());
    wait(&told);
    let found = painter.colours().of("rust", RUST).unwrap();
    assert_eq!(found.first(), Some(&(Token::Comment, 0..7)));
    // A text without highlights is not announced, and is tried once.
    assert!(painter.colours().of("nonsense", RUST).is_none());
    assert!(painter.colours().of("Rust", "fn x() {}").is_none());
    wait(&told);
    assert!(painter.colours().of("Rust", "fn x() {}").is_some());
    assert!(told.try_recv().is_err());
    assert!(painter.colours().shared.state().waiting.is_empty());
}

#[test]
fn json_is_there_at_once() {
    let (painter, told) = painter();
    let found = painter.colours().of("json", "{\"a\": 1}").unwrap();
    assert!(found.contains(&(Token::Property, 1..4)));
    assert!(told.try_recv().is_err());
}

#[test]
fn text_that_grows_keeps_the_colours_it_had() {
    let (painter, told) = painter();
    painter.colours().of("rust", RUST);
    wait(&told);
    let known = painter.colours().of("rust", RUST).unwrap();
    let grown = format!("{RUST}fn more() {{}}");
    assert_eq!(painter.colours().of("rust", &grown), Some(known));
    // Another text with the same start gets none of them.
    assert_eq!(painter.colours().of("rust", &RUST.replace("println", "printer")), None);
}

#[test]
fn memory_is_bounded() {
    let (painter, _told) = painter();
    for at in 0..3000 {
        let text = format!("[{at}{}]", ", 1".repeat(100));
        assert!(painter.colours().of("json", &text).is_some());
    }
    let state = painter.colours().shared.state();
    assert!(state.bytes <= KEPT && state.bytes > KEPT / 4, "{}", state.bytes);
    assert_eq!(state.bytes, state.known.values().map(|known| known.bytes).sum::<usize>());
    drop(state);
    // Texts left behind while scrolling are not highlighted.
    for at in 0..1000 {
        painter.colours().of("rust", &format!("fn f{at}() {{}}"));
    }
    let state = painter.colours().shared.state();
    assert!(state.wanted.len() <= WAITING && state.waiting.len() <= WAITING + 1);
}

#[test]
fn it_ends_with_the_application() {
    let (painter, told) = painter();
    drop(painter);
    // The thread drops the channel.
    let end = told.recv_timeout(Duration::from_secs(60));
    assert_eq!(end.unwrap_err(), mpsc::RecvTimeoutError::Disconnected);
}
