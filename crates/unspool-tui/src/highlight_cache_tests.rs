use std::sync::mpsc::{self, Receiver};

use unspool_view::lines::Highlighter as _;

use super::*;

const RUST: &str = "// why\nfn main() { println!(\"x\"); }\n";

fn highlight_thread() -> (HighlightThread, Receiver<AppEvent>) {
    let (events, receiver) = mpsc::channel();
    (HighlightThread::start(events), receiver)
}

fn wait_for_highlights(receiver: &Receiver<AppEvent>) {
    let event = receiver.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(matches!(event, AppEvent::Highlighted));
}

#[test]
fn r_001_38_highlights_arrive_asynchronously() {
    let (highlight_thread, receiver) = highlight_thread();
    assert!(highlight_thread.colours().of("rust", RUST).is_none());
    wait_for_highlights(&receiver);
    let found = highlight_thread.colours().of("rust", RUST).unwrap();
    assert_eq!(found.first(), Some(&(Token::Comment, 0..7)));
    // A text without highlights is not announced, and is tried once.
    assert!(highlight_thread.colours().of("nonsense", RUST).is_none());
    assert!(highlight_thread.colours().of("Rust", "fn x() {}").is_none());
    wait_for_highlights(&receiver);
    assert!(highlight_thread.colours().of("Rust", "fn x() {}").is_some());
    assert!(receiver.try_recv().is_err());
    assert!(highlight_thread.colours().shared.state().queued.is_empty());
}

#[test]
fn json_is_highlighted_synchronously() {
    let (highlight_thread, receiver) = highlight_thread();
    let found = highlight_thread.colours().of("json", "{\"a\": 1}").unwrap();
    assert!(found.contains(&(Token::Property, 1..4)));
    assert!(receiver.try_recv().is_err());
}

#[test]
fn growing_text_keeps_the_highlights_of_its_prefix() {
    let (highlight_thread, receiver) = highlight_thread();
    highlight_thread.colours().of("rust", RUST);
    wait_for_highlights(&receiver);
    let cached = highlight_thread.colours().of("rust", RUST).unwrap();
    let grown = format!("{RUST}fn more() {{}}");
    assert_eq!(highlight_thread.colours().of("rust", &grown), Some(cached));
    // Another text with the same start gets none of them.
    assert_eq!(highlight_thread.colours().of("rust", &RUST.replace("println", "printer")), None);
}

#[test]
fn memory_is_bounded() {
    let (highlight_thread, _receiver) = highlight_thread();
    for at in 0..3000 {
        let text = format!("[{at}{}]", ", 1".repeat(100));
        assert!(highlight_thread.colours().of("json", &text).is_some());
    }
    let state = highlight_thread.colours().shared.state();
    assert!(state.bytes <= CACHE_BYTES && state.bytes > CACHE_BYTES / 4, "{}", state.bytes);
    assert_eq!(state.bytes, state.cached.values().map(|cached| cached.bytes).sum::<usize>());
    drop(state);
    // Texts left behind while scrolling are not highlighted.
    for at in 0..1000 {
        highlight_thread.colours().of("rust", &format!("fn f{at}() {{}}"));
    }
    let state = highlight_thread.colours().shared.state();
    assert!(state.jobs.len() <= MAX_QUEUED_TEXTS && state.queued.len() <= MAX_QUEUED_TEXTS + 1);
}

#[test]
fn the_thread_ends_with_the_application() {
    let (highlight_thread, receiver) = highlight_thread();
    drop(highlight_thread);
    // The thread drops the channel.
    let end = receiver.recv_timeout(Duration::from_secs(60));
    assert_eq!(end.unwrap_err(), mpsc::RecvTimeoutError::Disconnected);
}
