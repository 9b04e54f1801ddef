//! Lines from chunks of any size (R-001-13 to R-001-15).

use proptest::prelude::*;
use std::fs::File;

use super::*;

type Read = (Vec<(u64, u64, Vec<u8>)>, Option<Unfinished>);

/// Reads the chunks and checks that every line is at its reported offset.
fn read_chunks<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Read {
    let mut reader = LineReader::new();
    let mut lines = Vec::new();
    let mut whole = Vec::new();
    for chunk in chunks {
        whole.extend_from_slice(chunk);
        reader.push(chunk, &mut |line| {
            lines.push((line.number, line.offset, line.bytes.to_vec()));
        });
    }
    let unfinished = reader.finish();
    let tail = unfinished.iter().map(|tail| (tail.offset, &tail.bytes));
    for (offset, bytes) in lines.iter().map(|(_, offset, bytes)| (*offset, bytes)).chain(tail) {
        let start = offset as usize;
        assert_eq!(&whole[start..start + bytes.len()], bytes.as_slice());
    }
    (lines, unfinished)
}

fn check(input: &[u8], lines: &[(u64, u64, &[u8])], unfinished: Option<(u64, u64, &[u8])>) {
    let lines: Vec<_> =
        lines.iter().map(|(n, offset, bytes)| (*n, *offset, bytes.to_vec())).collect();
    let unfinished = unfinished.map(|(number, offset, bytes)| Unfinished {
        number,
        offset,
        bytes: bytes.to_vec(),
    });
    let expected = (lines, unfinished);
    let name = String::from_utf8_lossy(input);
    assert_eq!(read_chunks([input]), expected, "at once: {name}");
    assert_eq!(read_chunks(input.chunks(1)), expected, "byte by byte: {name}");
    for at in 0..=input.len() {
        let (front, back) = input.split_at(at);
        assert_eq!(read_chunks([front, &[], back]), expected, "cut at {at}: {name}");
    }
}

#[test]
fn files_of_every_shape() {
    // R-001-13 R-001-15
    check(b"", &[], None);
    check(b"\n", &[], None);
    check(b"{}\n", &[(1, 0, b"{}")], None);
    check(b"{}", &[], Some((1, 0, b"{}")));
    check(b"a\nb\n", &[(1, 0, b"a"), (2, 2, b"b")], None);
    check(b"a\nb", &[(1, 0, b"a")], Some((2, 2, b"b")));
    check(b"a\r\nb\r\n", &[(1, 0, b"a"), (2, 3, b"b")], None);
    // Only the last `\r` belongs to the line end; others belong to the line.
    check(b"a\r\r\nb\rc\n", &[(1, 0, b"a\r"), (2, 4, b"b\rc")], None);
    check(b"a\nb\r", &[(1, 0, b"a")], Some((2, 2, b"b\r")));
}

#[test]
fn blank_lines_are_skipped_and_counted() {
    check(b"\n\r\n \t \na\n\n\nb\n", &[(4, 7, b"a"), (7, 11, b"b")], None);
    check(b"a\n  ", &[(1, 0, b"a")], None);
}

#[test]
fn a_byte_order_mark_is_none_of_the_line() {
    // R-001-13
    check(b"\xEF\xBB\xBF{}\n{}\n", &[(1, 3, b"{}"), (2, 6, b"{}")], None);
    check(b"\xEF\xBB\xBF{}", &[], Some((1, 3, b"{}")));
    check(b"\xEF\xBB\xBF", &[], None);
    check(b"\xEF\xBB\xBF\r\na\n", &[(2, 5, b"a")], None);
    // A later line has it where two files were joined.
    check(b"a\n\xEF\xBB\xBFb\n", &[(1, 0, b"a"), (2, 5, b"b")], None);
    // Anywhere but at the start of a line it is content.
    check(b"a\xEF\xBB\xBFb\n", &[(1, 0, b"a\xEF\xBB\xBFb")], None);
    check(b"\xEF\xBB\xBF\xEF\xBB\xBFa\n", &[(1, 3, b"\xEF\xBB\xBFa")], None);
}

#[test]
fn only_the_byte_0x0a_ends_a_line() {
    let text = "{\"a\":\"\u{2028}\u{2029}\u{85}\u{b}\u{c}\u{7f}\u{1e}\"}";
    check(format!("{text}\nb\n").as_bytes(), &[(1, 0, text.as_bytes()), (2, 21, b"b")], None);
}

#[test]
fn bytes_that_are_no_text_are_given_as_they_are() {
    check(b"\xFF\xFE\x00\n\xC3\n", &[(1, 0, b"\xFF\xFE\x00"), (2, 4, b"\xC3")], None);
}

#[test]
fn an_unfinished_line_can_be_taken_as_a_line() {
    let mut reader = LineReader::new();
    reader.push(b"a\n{}\r", &mut |_| {});
    let unfinished = reader.finish().unwrap();
    assert_eq!(unfinished.as_line(), Line { number: 2, offset: 2, bytes: b"{}" });
}

#[test]
fn reading_goes_on_where_it_stood() {
    let input = b"a\n\nbb\ncc";
    let mut reader = LineReader::new();
    reader.push(input, &mut |_| {});
    let position = reader.position();
    assert_eq!(position, ReadPosition { number: 4, offset: 6 });

    let mut again = LineReader::resume(position);
    let mut lines = Vec::new();
    again.push(&input[position.offset as usize..], &mut |_| panic!("it is not finished"));
    again.push(b"c\n", &mut |line| lines.push((line.number, line.offset, line.bytes.to_vec())));
    assert_eq!(lines, [(4, 6, b"ccc".to_vec())]);
    assert_eq!(again.position(), ReadPosition { number: 5, offset: 10 });
    assert_eq!(again.finish(), None);
}

#[test]
fn a_line_that_lies_whole_in_a_chunk_is_not_copied() {
    let chunk = b"a\nbb\nccc\n";
    let mut places = Vec::new();
    LineReader::new().push(chunk, &mut |line| {
        places.push(line.bytes.as_ptr().addr() - chunk.as_ptr().addr());
    });
    assert_eq!(places, [0, 2, 5]);
}

#[test]
fn a_line_of_100_megabytes() {
    let chunk = vec![b'x'; 64 * 1024];
    let mut reader = LineReader::new();
    let mut lengths = Vec::new();
    for _ in 0..1600 {
        reader.push(&chunk, &mut |_| panic!("it is not finished"));
    }
    reader.push(b"\ny\n", &mut |line| lengths.push((line.number, line.bytes.len())));
    assert_eq!(lengths, [(1, 1600 * 64 * 1024), (2, 1)]);
    // The memory of the long line is not kept.
    assert!(reader.held.capacity() <= MAX_RETAINED_BYTES);
}

/// A source that returns a few bytes per read.
struct Slow<'a>(&'a [u8], usize);

impl io::Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.1.min(self.0.len()).min(buffer.len());
        let (now, later) = self.0.split_at(length);
        buffer[..length].copy_from_slice(now);
        self.0 = later;
        Ok(length)
    }
}

/// Reads a source line by line, restarts after every `stops` lines, and checks that every position
/// leads to the right offset.
fn read_pulled(input: &[u8], at_a_time: usize, stops: usize) -> Read {
    let mut lines = Vec::new();
    let mut position = ReadPosition::default();
    loop {
        let mut pulled = Lines::new(Slow(&input[position.offset as usize..], at_a_time), position);
        let mut taken = 0;
        while let Some(line) = pulled.next_line().unwrap() {
            lines.push((line.number, line.offset, line.bytes.to_vec()));
            taken += 1;
            if taken == stops {
                break;
            }
        }
        position = pulled.position();
        if taken < stops {
            return (lines, pulled.unfinished());
        }
    }
}

#[test]
fn a_long_line_is_pulled_whole_and_its_memory_is_not_kept() {
    let mut input = vec![b'x'; MAX_RETAINED_BYTES * 3];
    input.extend_from_slice(b"\ny\n");
    input.extend_from_slice(&vec![b'z'; CHUNK_BYTES - 10]);
    input.extend_from_slice(b"\n{\"half");
    let mut lines = Lines::new(input.as_slice(), ReadPosition::default());
    let mut lengths = Vec::new();
    while let Some(line) = lines.next_line().unwrap() {
        lengths.push((line.number, line.bytes.len()));
    }
    assert_eq!(lengths, [(1, MAX_RETAINED_BYTES * 3), (2, 1), (3, CHUNK_BYTES - 10)]);
    assert_eq!(lines.unfinished().unwrap().bytes, b"{\"half");
    assert!(lines.buffer.capacity() <= MAX_RETAINED_BYTES);
}

#[test]
fn a_file_that_grows_is_pulled_on() {
    let path = std::env::temp_dir().join(format!("unspool-grows-{}.jsonl", std::process::id()));
    std::fs::write(&path, "one\ntw").unwrap();
    let mut lines = Lines::new(File::open(&path).unwrap(), ReadPosition::default());
    assert_eq!(lines.next_line().unwrap().unwrap().bytes, b"one");
    assert_eq!(lines.next_line().unwrap(), None);
    let position = lines.position();
    let mut file = File::options().append(true).open(&path).unwrap();
    io::Write::write_all(&mut file, b"o\n").unwrap();
    assert_eq!(lines.next_line().unwrap().unwrap().bytes, b"two");
    let mut source = crate::read::source::open(&path).unwrap();
    let mut again = Lines::new(source.from(position).unwrap(), position);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(again.next_line().unwrap(), Some(Line { number: 2, offset: 4, bytes: b"two" }));
}

#[test]
fn a_file_is_read_to_its_end() {
    let path = std::env::temp_dir().join(format!("unspool-lines-{}.jsonl", std::process::id()));
    let long = "x".repeat(CHUNK_BYTES * 2 + 7);
    // Two files that were joined, each with a byte order mark.
    std::fs::write(&path, format!("\u{feff}{long}\r\n\n\u{feff}{{}}\n{{\"half")).unwrap();
    let mut lines = Vec::new();
    let end = read_file(&path, &mut |line| {
        lines.push((line.number, line.offset, line.bytes.len()));
    });
    std::fs::remove_file(&path).unwrap();
    let length = long.len() as u64;
    assert_eq!(lines, [(1, 3, long.len()), (3, length + 9, 2)]);
    let end = end.unwrap();
    assert_eq!(end.position, ReadPosition { number: 4, offset: length + 12 });
    assert_eq!(end.unfinished.unwrap().bytes, b"{\"half");
}

#[test]
fn a_file_that_is_not_there_is_an_error() {
    assert!(read_file(Path::new("no/such/file.jsonl"), &mut |_| {}).is_err());
}

/// Files with many line ends, carriage returns, byte order marks and multi-byte characters.
fn any_file() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&[u8]> = vec![
        b"\n",
        b"\r",
        b"\r\n",
        b" ",
        b"{}",
        b"{\"a\":\"b\"}",
        b"\xEF\xBB\xBF",
        b"\xEF",
        b"\xFF",
        "é\u{2028}".as_bytes(),
        "🙂".as_bytes(),
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_chunks_give_the_same_lines(
        file in any_file(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        // R-001-14
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(file.len() + 1)).collect();
        cuts.sort_unstable();
        let mut chunks = Vec::new();
        let mut start = 0;
        for cut in cuts.into_iter().chain([file.len()]) {
            chunks.push(&file[start..cut]);
            start = cut;
        }
        prop_assert_eq!(read_chunks(chunks), read_chunks([file.as_slice()]));
    }

    #[test]
    fn lines_that_are_pulled_are_the_same(
        file in any_file(), at_a_time in 1_usize..9, stops in 1_usize..4,
    ) {
        prop_assert_eq!(read_pulled(&file, at_a_time, stops), read_chunks([file.as_slice()]));
    }

    #[test]
    fn no_byte_is_lost(file in any_file()) {
        // All bytes except line ends, marks and blanks come out again, in order.
        let (lines, unfinished) = read_chunks([file.as_slice()]);
        let mut out: Vec<u8> = lines.into_iter().flat_map(|(_, _, bytes)| bytes).collect();
        out.extend(unfinished.into_iter().flat_map(|tail| tail.bytes));
        let content = |bytes: &[u8]| -> Vec<u8> {
            bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
        };
        let without_mark = |line: &[u8]| line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).to_vec();
        let expected: Vec<u8> = file.split(|byte| *byte == b'\n').flat_map(without_mark).collect();
        prop_assert_eq!(content(&out), content(&expected));
    }
}

#[test]
fn a_line_beyond_the_limit_is_left_out_and_the_next_is_read() {
    let long = "x".repeat(3000);
    let text = format!("one\n{long}\ntwo\n{long}");
    for chunk in [1, 7, 4096, 100_000] {
        let source = Chunked { rest: text.as_bytes(), chunk };
        let mut lines = Lines::with_limit(source, ReadPosition::default(), 100);
        assert_eq!(lines.next_line().unwrap().unwrap().bytes, b"one");
        let line = lines.next_line().unwrap().unwrap();
        assert_eq!((line.number, line.offset, line.bytes), (3, 3005, b"two".as_slice()));
        let expected = OverlongLine {
            number: 2,
            offset: 4,
            length: 3000,
            digest: xxhash_rust::xxh3::xxh3_64(long.as_bytes()),
            start: long.as_bytes()[..lines.overlong[0].start.len()].to_vec(),
        };
        assert_eq!(lines.take_overlong(), [expected]);
        // The last line may still grow.
        assert!(lines.next_line().unwrap().is_none());
        assert_eq!(lines.position(), ReadPosition { number: 4, offset: 3009 });
        assert_eq!(lines.take_overlong(), []);
        assert!(lines.unfinished().is_none());
        assert_eq!(lines.end_overlong()[0].length, 3000);
        assert!(lines.unfinished().is_none());
        assert_eq!(lines.position(), ReadPosition { number: 5, offset: text.len() as u64 });
        assert!(lines.next_line().unwrap().is_none());
        assert!(lines.buffer.len() <= CHUNK_BYTES);
    }
}

/// Gives at most `chunk` bytes at a time.
struct Chunked<'a> {
    rest: &'a [u8],
    chunk: usize,
}

impl io::Read for Chunked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.rest.len().min(self.chunk).min(buffer.len());
        let (bytes, rest) = self.rest.split_at(length);
        buffer[..length].copy_from_slice(bytes);
        self.rest = rest;
        Ok(length)
    }
}
