//! Decoding throughput on one core, in megabytes per second: lines, fields, events. `decoded` stops
//! at events; `folded` also folds them into a transcript, as `show` does. The input is a bundled
//! recording, repeated until it is long enough to measure.

use std::path::Path;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use unspool_sources::decode::{Format, JsonOutline, Record, claude};
use unspool_sources::in_memory::SessionSet;
use unspool_sources::read::lines::{Line, LineReader};

const CASE: &str = "../../fixtures/claude-code/discovery-loop";
const CAPTURES: [&str; 2] = ["log", "stream"];
/// How much is decoded per iteration.
const MIN_INPUT_BYTES: usize = 8 * 1024 * 1024;

fn main() {
    divan::main();
}

/// Splitting lines only: the lower bound of the other benchmarks.
#[divan::bench(args = CAPTURES)]
fn lines(bencher: Bencher<'_, '_>, capture: &str) {
    let bytes = repeated(capture);
    bencher.counter(BytesCount::new(bytes.len())).bench_local(|| {
        let mut count = 0_usize;
        LineReader::new().push(&bytes, &mut |line| count += black_box(line.bytes).len());
        count
    });
}

/// From bytes to events.
#[divan::bench(args = CAPTURES)]
fn decoded(bencher: Bencher<'_, '_>, capture: &str) {
    let bytes = repeated(capture);
    let format: &Format = if capture == "log" { &claude::LOG } else { &claude::STREAM };
    bencher.counter(BytesCount::new(bytes.len())).bench_local(|| {
        let mut decoder = (format.decoder)();
        let mut events = Vec::new();
        let mut outline = JsonOutline::default();
        LineReader::new().push(&bytes, &mut |line| {
            let text = std::str::from_utf8(line.bytes).unwrap_or_default();
            if let Ok(fields) = outline.read(text) {
                let (line, offset) = (line.number, line.offset);
                let record = Record { source: 0, line, offset, text };
                black_box(decoder.decode(&record, &fields, &mut events));
            }
            black_box(&events);
            events.clear();
        });
    });
}

/// From bytes to a transcript. Each repetition uses a new session set, because a repeated
/// recording changes nothing and costs nothing.
#[divan::bench(args = CAPTURES)]
fn folded(bencher: Bencher<'_, '_>, capture: &str) {
    let once = recording(capture);
    let times = MIN_INPUT_BYTES / once.len() + 1;
    bencher.counter(BytesCount::new(once.len() * times)).bench_local(|| {
        for _ in 0..times {
            let mut session_set = SessionSet::default();
            let mut input = session_set.open(capture);
            LineReader::new().push(&once, &mut |line: Line<'_>| session_set.take(&mut input, line));
            session_set.close(input, &mut |_| {});
            for session in &session_set.sessions {
                black_box(session.transcript());
            }
        }
    });
}

fn repeated(capture: &str) -> Vec<u8> {
    let once = recording(capture);
    once.repeat(MIN_INPUT_BYTES / once.len() + 1)
}

fn recording(capture: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(CASE).join(format!("{capture}.jsonl"));
    let mut bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) => {
            eprintln!("cannot read {}: {error}", path.display());
            std::process::exit(1);
        }
    };
    if bytes.last() != Some(&b'\n') {
        bytes.push(b'\n');
    }
    bytes
}
