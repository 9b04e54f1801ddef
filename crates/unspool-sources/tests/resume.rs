//! A `FileDecoder` that is saved, dropped and resumed after every line gives its sink exactly the
//! same calls as one that never stopped (R-001-14, law 2).

#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use unspool_model::event::Event;
use unspool_model::provenance::Feed;
use unspool_sources::decode::{RecordOutcome, Warning};
use unspool_sources::file_decoder::{
    Checkpoint, DecodedRecord, FileDecoder, LastLine, ReadOutcome, RecordSink, SessionHandle,
    SessionIdent, Verdict, decode_from,
};
use unspool_sources::read::lines::ReadPosition;

/// A call that a sink receives.
#[derive(Clone, PartialEq, Debug)]
enum SinkCall {
    Source(SessionHandle, &'static str, String, Feed, u64, bool, Option<String>),
    Record(SessionHandle, u64, u64, RecordOutcome, Vec<Event>),
    Warning(Option<SessionHandle>, Warning),
}

#[derive(Default)]
struct RecordingSink(Vec<SinkCall>);

impl RecordSink for RecordingSink {
    fn source(&mut self, session: SessionHandle, ident: &SessionIdent<'_>) -> u16 {
        let &SessionIdent { agent, session: id, feed, first, sub_agent, parent } = ident;
        let (id, parent) = (id.to_owned(), parent.map(str::to_owned));
        self.0.push(SinkCall::Source(session, agent, id, feed, first, sub_agent, parent));
        7 + session.0 as u16
    }

    fn record(&mut self, taken: DecodedRecord<'_>) {
        let DecodedRecord { session, line, outcome, events } = taken;
        let events = std::mem::take(events);
        assert!(events.iter().all(|event| event.evidence.source == 7 + session.0 as u16));
        self.0.push(SinkCall::Record(session, line.number, line.offset, outcome, events));
    }

    fn warn(&mut self, session: Option<SessionHandle>, warning: Warning) {
        self.0.push(SinkCall::Warning(session, warning));
    }
}

/// Decodes without stopping.
fn whole(name: &str, bytes: &[u8]) -> (Vec<SinkCall>, Verdict) {
    let (mut file_decoder, mut sink) = (FileDecoder::new(name), RecordingSink::default());
    let (mut position, go_on) = (ReadPosition::default(), ControlFlow::Continue(()));
    let last = LastLine::TakeWhole;
    let reached =
        decode_from(bytes, &mut position, last, &mut file_decoder, &mut sink, |_, _, _| go_on)
            .unwrap();
    assert_eq!(reached, ReadOutcome::End);
    let verdict = file_decoder.finish(&mut sink);
    (sink.0, verdict)
}

/// Decodes `lines` lines at a time. Between two runs only serialised state survives: the checkpoint
/// as JSON and the position. A decoder that cannot be saved is kept; returns how often that was.
fn in_pieces(name: &str, bytes: &[u8], lines: usize) -> (Vec<SinkCall>, Verdict, usize) {
    let (mut file_decoder, mut sink) = (FileDecoder::new(name), RecordingSink::default());
    let (mut position, mut kept) = (ReadPosition::default(), 0);
    loop {
        let mut taken = 0;
        let stop = |_: &FileDecoder, _: &mut RecordingSink, _| {
            taken += 1;
            if taken == lines { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let rest = &bytes[position.offset as usize..];
        let last = LastLine::TakeWhole;
        let reached =
            decode_from(rest, &mut position, last, &mut file_decoder, &mut sink, stop).unwrap();
        position = serde_json::from_str(&serde_json::to_string(&position).unwrap()).unwrap();
        let Some(saved) = file_decoder.save() else {
            kept += 1;
            if reached == ReadOutcome::End {
                break;
            }
            continue;
        };
        let written = serde_json::to_string(&saved).unwrap();
        let read: Checkpoint = serde_json::from_str(&written).unwrap();
        let resumed = FileDecoder::resume(name, &read).unwrap();
        assert_eq!(resumed.save().unwrap(), saved, "saving again gives the same checkpoint");
        assert!(file_decoder.sessions().eq(resumed.sessions()));
        file_decoder = resumed;
        if reached == ReadOutcome::End {
            break;
        }
    }
    let verdict = file_decoder.finish(&mut sink);
    (sink.0, verdict, kept)
}

fn check(name: &str, bytes: &[u8]) {
    let (expected, expected_verdict) = whole(name, bytes);
    for lines in [1, 2, 3, 7] {
        let (calls, verdict, _) = in_pieces(name, bytes, lines);
        for (at, (expected, calls)) in expected.iter().zip(&calls).enumerate() {
            assert_eq!(expected, calls, "{name}: {at}, {lines} lines at a time");
        }
        assert_eq!((expected.len(), expected_verdict), (calls.len(), verdict), "{name}");
    }
}

fn recordings() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let (mut folders, mut files) = (vec![folder], Vec::new());
    while let Some(folder) = folders.pop() {
        for path in folder.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                files.push(path);
            }
        }
    }
    files.sort();
    assert!(files.len() > 150, "{} recordings", files.len());
    files
}

#[test]
fn law_2_stopping_at_every_line_changes_nothing() {
    // R-001-14
    for path in recordings() {
        let bytes = std::fs::read(&path).unwrap();
        check(&path.to_string_lossy(), &bytes);
    }
}

/// Recordings that are broken, concatenated in one file, and preceded by lines without meaning.
#[test]
fn law_2_holds_for_files_that_are_broken() {
    // R-001-14 R-001-15
    for pair in recordings().windows(2) {
        let mut bytes = b"no JSON\n{\"some\":\"thing\"}\n\n\xFF\n".to_vec();
        for path in pair {
            for (at, line) in std::fs::read(path).unwrap().split(|byte| *byte == b'\n').enumerate()
            {
                match at % 9 {
                    3 => bytes.extend_from_slice(&line[..line.len() / 2]),
                    5 => bytes.extend_from_slice(&line.to_ascii_lowercase()),
                    7 => {
                        bytes.extend_from_slice(b"{\"type\":\"user\",\"uuid\":7,\"text\":\"\xC3\"}")
                    }
                    _ => bytes.extend_from_slice(line),
                }
                bytes.push(b'\n');
            }
        }
        check(&pair[0].to_string_lossy(), &bytes);
    }
}

/// Recordings of growing files. Streams come through a pipe in one piece and are not resumed.
fn resumed() -> impl Iterator<Item = PathBuf> {
    let stream = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("stream."))
    };
    recordings().into_iter().filter(move |path| !stream(path))
}

#[test]
fn recordings_can_be_saved_nearly_everywhere() {
    let (mut stops, mut kept) = (0, 0);
    for path in resumed() {
        let bytes = std::fs::read(&path).unwrap();
        stops += bytes.split(|byte| *byte == b'\n').count();
        kept += in_pieces("capture.jsonl", &bytes, 1).2;
    }
    assert!(kept * 20 < stops, "{kept} of {stops} times a decoder could not be saved");
}

/// The saved state does not grow with the text that is read (target: 40 bytes per record, and 240
/// for each session of the file: its id, its parent and its source).
#[test]
fn what_is_saved_stays_small() {
    for path in resumed() {
        let bytes = std::fs::read(&path).unwrap();
        let (mut file_decoder, mut sink) =
            (FileDecoder::new("capture.jsonl"), RecordingSink::default());
        let go_on = |_: &_, _: &mut _, _| ControlFlow::Continue(());
        let mut saved = Vec::new();
        let mut lines = 0;
        // New turns, messages and records in each round: the same session keeps growing.
        for round in 0..60_u32 {
            let text =
                String::from_utf8_lossy(&bytes).replace("toolu_", &format!("toolu_{round}x"));
            let text = text.replace("\"uuid\":\"", &format!("\"uuid\":\"{round}x"));
            let text = text.replace("\"parentUuid\":\"", &format!("\"parentUuid\":\"{round}x"));
            let text = text.replace("msg_", &format!("msg_{round}x"));
            lines += text.lines().count();
            let source = text.as_bytes();
            let (mut position, last) = (ReadPosition::default(), LastLine::TakeWhole);
            decode_from(source, &mut position, last, &mut file_decoder, &mut sink, go_on).unwrap();
            sink.0.clear();
            let size =
                file_decoder.save().map_or(0, |saved| serde_json::to_string(&saved).unwrap().len());
            saved.push(size.saturating_sub(file_decoder.sessions().count() * 240));
        }
        let (first, last) = (saved[9], saved[59]);
        let grown = last.saturating_sub(first) / (lines / 60 * 50).max(1);
        assert!(grown <= 40, "{}: {grown} bytes a record, {first} to {last}", path.display());
    }
}
