//! The bodies of the fuzz targets and the invariants that they check. The targets only pass bytes
//! on, so all of this compiles with a stable compiler.

use unspool_sources::in_memory::SessionSet;
use unspool_sources::read::lines::{Line, LineReader};
use unspool_view::block::Block;
use unspool_view::lines::{LineOptions, layout, turn_lines};
use unspool_view::present::{self, ansi, markdown};

/// The line reader: the first bytes give the chunk sizes; the rest, split into those chunks, must
/// give the same lines as unsplit.
pub fn lines(data: &[u8]) {
    let count = usize::from(data.first().copied().unwrap_or(0) % 16);
    let Some((cuts, bytes)) = data.get(1..).and_then(|data| data.split_at_checked(count)) else {
        return;
    };
    let whole = read(&[bytes]);
    let mut chunks = Vec::new();
    let mut rest = bytes;
    for cut in cuts {
        let (chunk, after) = rest.split_at(usize::from(*cut).min(rest.len()));
        chunks.push(chunk);
        rest = after;
    }
    chunks.push(rest);
    assert_eq!(read(&chunks), whole);
    // No line contains a line end, and each is at its reported offset.
    for (_, offset, line) in &whole {
        assert!(!line.contains(&b'\n'));
        assert_eq!(&bytes[*offset as usize..][..line.len()], line);
    }
}

fn read(chunks: &[&[u8]]) -> Vec<(u64, u64, Vec<u8>)> {
    let mut found = Vec::new();
    let mut take = |line: Line<'_>| found.push((line.number, line.offset, line.bytes.to_vec()));
    let mut reader = LineReader::new();
    for chunk in chunks {
        reader.push(chunk, &mut take);
    }
    if let Some(rest) = reader.finish() {
        take(rest.as_line());
    }
    found
}

/// A decoder: `first` determines the format, then the bytes follow.
pub fn decode_capture(first: &str, data: &[u8]) {
    let mut session_set = SessionSet::default();
    let mut input = session_set.open("capture.jsonl");
    let mut taken = 0;
    let mut take = |line: Line<'_>| {
        taken += 1;
        session_set.take(&mut input, line);
    };
    let mut reader = LineReader::new();
    for chunk in [first.as_bytes(), b"\n", data] {
        reader.push(chunk, &mut take);
    }
    if let Some(rest) = reader.finish() {
        take(rest.as_line());
    }
    assert!(session_set.close(input, &mut |_| {}));

    let mut counted = 0;
    for session in &session_set.sessions {
        let record_counts = &session.record_counts;
        let left_out: u64 = record_counts.left_out.values().sum();
        assert_eq!(
            record_counts.read,
            record_counts.in_parts + record_counts.metadata + left_out + record_counts.unreadable
        );
        counted += record_counts.read;
        let transcript = session.transcript();
        transcript.usage();
        for turn in &transcript.turns {
            assert!(turn.parts.is_sorted_by_key(|part| part.place));
            let view = present::turn(turn, &present::PresentOptions::default());
            harmless(&turn_lines(&view, 60, &LineOptions::default()));
        }
    }
    assert_eq!(counted, taken, "records are missing from the counts");
}

/// The presenter: any text, as Markdown and as program output, at any width.
pub fn present(data: &[u8]) {
    let width = usize::from(data.first().copied().unwrap_or(80));
    let text = String::from_utf8_lossy(data.get(1..).unwrap_or_default());
    for options in [LineOptions::default(), LineOptions::everything()] {
        harmless(&layout(&markdown::blocks(&text), width, &options));
        harmless(&layout(&[Block::Terminal(ansi::terminal(&text))], width, &options));
    }
}

/// Asserts that lines hold no control characters or bidirectional overrides.
fn harmless(lines: &[unspool_view::lines::Line]) {
    for line in lines {
        let obeyed = |c: char| {
            c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        assert!(!line.text().contains(obeyed), "{:?}", line.text());
    }
}
