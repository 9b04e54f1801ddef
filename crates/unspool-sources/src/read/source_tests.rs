use std::io::{Cursor, Read};

use super::{lines_of, open};
use crate::fingerprint::fingerprint;
use crate::read::lines::ReadPosition;

fn text_of(path: &std::path::Path) -> String {
    let mut text = String::new();
    open(path).unwrap().from(ReadPosition::default()).unwrap().read_to_string(&mut text).unwrap();
    text
}

#[test]
fn every_form_becomes_lines() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let plain = write("log.jsonl", b"{\"a\":1}\n{\"b\":2}\n");
    let packed = zstd::encode_all(&b"{\"a\":1}\n{\"b\":2}\n"[..], 3).unwrap();
    let packed = write("log.jsonl.zst", &packed);
    let document = write("chat.json", b"[\n {\"a\": 1},\n {\"b\": 2}\n]\n");
    let events = write(
        "capture.sse",
        b": hello\n\nevent: message\ndata: {\"a\":1}\n\nid: 7\ndata: {\"b\":\ndata: 2}\n\ndata: [DONE]\n\n",
    );
    assert_eq!(text_of(&plain), "{\"a\":1}\n{\"b\":2}\n");
    assert_eq!(text_of(&packed), text_of(&plain));
    assert_eq!(text_of(&document), text_of(&plain));
    assert_eq!(text_of(&events), "{\"a\":1}\n{\"b\": 2}\n");
    // A compressed log reads as the original.
    let print = |path| fingerprint(open(path).unwrap().text(), 8).unwrap();
    assert_eq!(print(&packed), print(&plain));
}

#[test]
fn streams_are_recognised_by_their_first_bytes() {
    let of = |text: &'static str| {
        let mut lines = String::new();
        lines_of(Cursor::new(text)).unwrap().read_to_string(&mut lines).unwrap();
        lines
    };
    assert_eq!(of("{\"a\":1}\n"), "{\"a\":1}\n");
    assert_eq!(of(" [ {\"a\": 1} ]"), "{\"a\":1}\n");
    assert_eq!(of("data: {\"a\":1}\n\n"), "{\"a\":1}\n");
    assert_eq!(of("data: {\"a\":1}"), "");
    assert_eq!(of(""), "");
    let packed = zstd::encode_all(&b"{\"a\":1}\n"[..], 3).unwrap();
    let mut lines = String::new();
    lines_of(Cursor::new(packed)).unwrap().read_to_string(&mut lines).unwrap();
    assert_eq!(lines, "{\"a\":1}\n");
}

#[test]
fn an_object_over_several_lines_is_a_document_whatever_it_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let cut = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let found = text_of(&path);
        let mut streamed = String::new();
        let stream = Cursor::new(text.to_owned());
        lines_of(stream).unwrap().read_to_string(&mut streamed).unwrap();
        assert_eq!(found, streamed, "{text}");
        found
    };
    let lines = "{\"id\":\"x\"}\n{\"a\":1}\n{}\n";
    for document in [
        "{\"id\":\"x\",\"messages\":[{\"a\":1}]}",
        "{\"id\":\"x\",\"messages\":[{\"a\":1}]}\n",
        "\u{feff}{\n  \"id\": \"x\",\n  \"messages\": [\n    {\"a\": 1}\n  ]\n}\n",
        "{\"id\":\"x\",\"conversations\":[\n{\"a\":1}\n]}\n",
        "{\"id\":\"x\",\"conversations\":[{\"a\":1}]}",
    ] {
        for name in ["document", "document.txt", "document.json"] {
            assert_eq!(cut(name, document), lines, "{name}: {document}");
        }
    }
    // All of these are lines: one record, several, an incomplete one, a truncated one.
    for log in [
        "{\"a\":[1]}\n",
        "{\"messages\":[{\"a\":1}]}\n{\"messages\":[{\"b\":1}]}\n",
        "{\"a\":{\"messages\":[{\"b\":1}]}}\n",
        "{\"a\":1,\"b",
        "{\"a\":1,\n{\"b\":2}\n",
        "{\"a\":\"cut\n{\"b\":2}\n",
    ] {
        assert_eq!(cut("log", log), log);
    }
}
