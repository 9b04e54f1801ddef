//! Decoders that are saved and resumed, and what is recognised.

use std::path::{Path, PathBuf};

use unspool_core::event::Event;

use super::*;
use crate::decode::{Outline, Record, recognise};
use crate::read::{lines, source};

fn recordings() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/ai-sdk");
    let cases = folder.read_dir().unwrap().map(|case| case.unwrap().path());
    let files = cases.flat_map(|case| case.read_dir().unwrap().map(|file| file.unwrap().path()));
    let mut files: Vec<PathBuf> = files
        .filter(|file| file.extension().is_some_and(|form| form == "json" || form == "sse"))
        .collect();
    files.sort();
    files
}

fn lines_of(path: &Path) -> Vec<(u64, String)> {
    let mut all = Vec::new();
    let mut source = source::open(path).unwrap();
    let mut keep = |line: lines::Line<'_>| {
        all.push((line.offset, String::from_utf8(line.bytes.to_vec()).unwrap()));
    };
    let end = lines::read(source.text(), &mut keep).unwrap();
    if let Some(rest) = end.unfinished {
        keep(rest.as_line());
    }
    all
}

#[test]
fn law_2_a_decoder_that_is_saved_behind_every_record_tells_the_same() {
    let recordings = recordings();
    assert!(recordings.len() > 80);
    for path in recordings {
        let format =
            if path.extension().is_some_and(|form| form == "json") { &DOCUMENT } else { &STREAM };
        let decode = |resumed: bool| -> Vec<Event> {
            let mut decoder = (format.decoder)();
            let mut events = Vec::new();
            for (line, (offset, text)) in (1..).zip(lines_of(&path)) {
                let mut outline = Outline::default();
                let fields = outline.read(&text).unwrap();
                let record = Record { source: 0, line, offset, text: &text };
                decoder.decode(&record, &fields, &mut events);
                if resumed {
                    decoder = (format.resume)(&decoder.save().unwrap()).unwrap();
                }
            }
            events
        };
        assert_eq!(decode(true), decode(false), "{}", path.display());
    }
}

#[test]
fn messages_and_chunks_are_recognised_and_nothing_else() {
    let known = |text: &str| {
        let mut outline = Outline::default();
        let fields = outline.read(text).unwrap();
        let found = recognise(&fields);
        found.map(|(format, recognised)| (format.name, format!("{recognised:?}")))
    };
    let message = |text: &str, whose: &str| {
        assert_eq!(known(text), Some((DOCUMENT.name, whose.to_owned())), "{text}");
    };
    message(r#"{"id":"a","role":"user","parts":[]}"#, "Format");
    message(r#"{"id":"a","chatId":"c","role":"assistant","parts":[]}"#, r#"Session("c")"#);
    for chunk in [
        r#"{"type":"start"}"#,
        r#"{"type":"start","messageId":"a"}"#,
        r#"{"type":"data-x","data":null}"#,
        r#"{"type":"error","errorText":"x"}"#,
    ] {
        assert_eq!(known(chunk), Some((STREAM.name, "Format".to_owned())), "{chunk}");
    }
    for other in [
        r#"{"type":"start","pid":4}"#,
        r#"{"type":"error","message":"x"}"#,
        r#"{"type":"text-delta","text":"x"}"#,
        r#"{"role":"user","parts":"none"}"#,
        r#"{"role":"model","parts":[]}"#,
    ] {
        assert_eq!(known(other).map(|(name, _)| name).filter(|name| name.starts_with("AI")), None);
    }
}
