//! Tests of saving and resuming decoders, of recognition, and of unmapped fields.

use std::path::{Path, PathBuf};

use unspool_model::event::Event;
use unspool_model::part::Body;

use super::*;
use crate::decode::{JsonOutline, Record, recognise};
use crate::in_memory::SessionSet;
use crate::read::document::DocumentLines;
use crate::read::sse::SseLines;
use crate::read::{lines, source};

fn recordings() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/ai-sdk");
    let cases = folder.read_dir().unwrap().map(|case| case.unwrap().path());
    let cases = cases.filter(|case| case.is_dir());
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
fn law_2_resuming_after_every_record_emits_the_same_events() {
    let recordings = recordings();
    assert!(recordings.len() > 80);
    for path in recordings {
        let format =
            if path.extension().is_some_and(|form| form == "json") { &DOCUMENT } else { &STREAM };
        let decode = |resumed: bool| -> Vec<Event> {
            let mut decoder = (format.decoder)();
            let mut events = Vec::new();
            for (line, (offset, text)) in (1..).zip(lines_of(&path)) {
                let mut outline = JsonOutline::default();
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
    let recognised_as = |text: &str| {
        let mut outline = JsonOutline::default();
        let fields = outline.read(text).unwrap();
        let found = recognise(&fields);
        found.map(|(format, recognised)| (format.name, format!("{recognised:?}")))
    };
    let message = |text: &str, whose: &str| {
        assert_eq!(recognised_as(text), Some((DOCUMENT.name, whose.to_owned())), "{text}");
    };
    message(r#"{"id":"a","role":"user","parts":[]}"#, "Format");
    message(r#"{"id":"a","chatId":"c","role":"assistant","parts":[]}"#, r#"Session("c")"#);
    for chunk in [
        r#"{"type":"start"}"#,
        r#"{"type":"start","messageId":"a"}"#,
        r#"{"type":"data-x","data":null}"#,
        r#"{"type":"error","errorText":"x"}"#,
    ] {
        assert_eq!(recognised_as(chunk), Some((STREAM.name, "Format".to_owned())), "{chunk}");
    }
    for other in [
        r#"{"type":"start","pid":4}"#,
        r#"{"type":"error","message":"x"}"#,
        r#"{"type":"text-delta","text":"x"}"#,
        r#"{"role":"user","parts":"none"}"#,
        r#"{"role":"model","parts":[]}"#,
    ] {
        assert_eq!(
            recognised_as(other).map(|(name, _)| name).filter(|name| name.starts_with("AI")),
            None
        );
    }
}

fn read_sessions(file: &str, text: &str) -> SessionSet {
    let mut session_set = SessionSet::default();
    let path = Path::new(file);
    let lines: Box<dyn std::io::Read> = if file.ends_with(".sse") {
        Box::new(SseLines::new(text.as_bytes()))
    } else {
        Box::new(DocumentLines::new(text.as_bytes()))
    };
    session_set.read(path, lines, &mut |_| {}).unwrap();
    session_set
}

/// The unmapped fields of the only message.
fn kept(session_set: &SessionSet) -> serde_json::Value {
    let transcript = session_set.sessions[0].transcript();
    let bodies = transcript
        .turns
        .iter()
        .flat_map(|turn| turn.user.iter().chain(turn.parts.iter().map(|part| &part.body)));
    let data =
        bodies.filter_map(|body| if let Body::Data(data) = body { Some(data) } else { None });
    let mut kept = data.filter(|data| data.kind == "ai-sdk-message");
    kept.next().map(|data| data.payload.value()).unwrap_or_default()
}

#[test]
fn a_field_of_a_part_that_is_not_what_it_should_be_is_kept() {
    // Law 4
    for (part, place, value) in [
        (r#"{"type":"text","text":"x","citations":"c"}"#, "citations", r#""c""#),
        (r#"{"type":"text","text":" ","citations":[1]}"#, "citations", "[1]"),
        (r#"{"type":"text","text":{"a":1}}"#, "text", r#"{"a":1}"#),
        (r#"{"type":"text","text":"x","state":"resting"}"#, "state", r#""resting""#),
        (
            r#"{"type":"reasoning","text":" \n","providerMetadata":{"anthropic":{"signature":"s"}}}"#,
            "providerMetadata/anthropic/signature",
            r#""s""#,
        ),
        (r#"{"type":"file","mediaType":7,"url":"u:u"}"#, "mediaType", "7"),
        (r#"{"type":"source-url","sourceId":"s","url":"u","title":["t"]}"#, "title", r#"["t"]"#),
        (
            r#"{"type":"tool-x","toolCallId":"a","state":"output-available","input":1,"output":2,"title":3}"#,
            "title",
            "3",
        ),
        (
            r#"{"type":"tool-x","toolCallId":"a","state":"output-error","errorText":"e","output":2}"#,
            "output",
            "2",
        ),
        (
            r#"{"type":"tool-x","toolCallId":"a","state":"input-available","input":1,"approval":"yes"}"#,
            "approval",
            r#""yes""#,
        ),
    ] {
        let chat = format!(r#"[{{"id":"m","role":"assistant","parts":[{part}]}}]"#);
        let rest = kept(&read_sessions("chat.json", &chat));
        let expected: serde_json::Value = serde_json::from_str(value).unwrap();
        assert_eq!(rest.pointer(&format!("/parts/0/{place}")), Some(&expected), "{part}\n{rest}");
    }
}

#[test]
fn a_thought_of_white_space_keeps_its_signature_in_a_stream_too() {
    let stream = r#"data: {"type":"start","messageId":"m"}

data: {"type":"reasoning-start","id":"r"}

data: {"type":"reasoning-delta","id":"r","delta":" "}

data: {"type":"reasoning-end","id":"r","providerMetadata":{"anthropic":{"signature":"s"}}}

data: {"type":"text-start","id":"t"}

data: {"type":"text-end","id":"t","citations":[1]}

data: {"type":"text-start","id":"u"}

data: {"type":"text-delta","id":"u","delta":"x"}

data: {"type":"text-end","id":"u","citations":"c"}

data: {"type":"finish"}

"#;
    let rest = kept(&read_sessions("chat.sse", stream));
    assert_eq!(rest["parts"]["0"]["providerMetadata"]["anthropic"]["signature"], "s", "{rest}");
    assert_eq!(rest["parts"]["1"]["citations"], serde_json::json!([1]), "{rest}");
    assert_eq!(rest["parts"]["2"]["citations"], "c", "{rest}");
}

#[test]
fn parts_that_are_no_objects_are_kept_and_reported() {
    for role in ["user", "assistant", "system"] {
        let chat = format!(
            r#"[{{"id":"m","role":"{role}","parts":["hello",{{"type":"text","text":"x"}},7]}}]"#
        );
        let session_set = read_sessions("chat.json", &chat);
        let rest = kept(&session_set);
        assert_eq!(
            (&rest["fields"]["parts[0]"], &rest["fields"]["parts[2]"]),
            (&"hello".into(), &7.into())
        );
        let [warning] = &session_set.sessions[0].warnings[..] else { panic!("one warning") };
        assert!(warning.what.contains("parts[0]: expected an object"), "{}", warning.what);
    }
    // Part numbers are their indexes in the message.
    let chat =
        r#"[{"id":"m","role":"assistant","parts":[{"type":"text","text":"x"},{"type":"none"}]}]"#;
    let session_set = read_sessions("chat.json", chat);
    assert!(session_set.sessions[0].warnings[0].what.contains("parts[1].type"));
}

#[test]
fn a_chat_that_unspool_wrote_is_named_by_its_session() {
    let ours = |id: &str| {
        format!(
            r#"[{{"id":"m","role":"user","metadata":{{"agent":"codex","sessionId":"{id}"}},"parts":[{{"type":"text","text":"x"}}]}}]"#
        )
    };
    let named =
        |file: &str, text: &str| read_sessions(file, text).sessions[0].agent_session_id.clone();
    assert_eq!(named("chat.json", &ours("one")), "one");
    assert_eq!(named("chat.json", &ours("two")), "two");
    // It is only a fallback: the application's chat id takes precedence.
    let table = ours("one").replace(r#""id":"m""#, r#""id":"m","chatId":"c""#);
    assert_eq!(named("chat.json", &table), "c");
    assert_eq!(named("chat.json", &format!(r#"{{"id":"h","messages":{}}}"#, ours("one"))), "h");
    assert_eq!(named("chat.json", &ours("one").replace("sessionId", "session")), "chat");
    let stream = "data: {\"type\":\"start\",\"messageId\":\"m\",\"messageMetadata\":{\"agent\":\"codex\",\"sessionId\":\"one\"}}\n\n";
    assert_eq!(named("chat.sse", stream), "one");
}

#[test]
fn a_file_in_which_all_is_wrong_says_so_a_few_times() {
    let chunk = "data: {\"type\":\"text-delta\",\"id\":\"t\"}\n\n";
    let begun = "data: {\"type\":\"text-start\",\"id\":\"t\"}\n\n";
    let warnings_of = |count: usize| {
        let session_set = read_sessions("chat.sse", &format!("{begun}{}", chunk.repeat(count)));
        let warnings = &session_set.sessions[0].warnings;
        (warnings.len(), warnings.last().unwrap().what.contains("are not reported"))
    };
    assert_eq!(warnings_of(20), (20, false));
    assert_eq!(warnings_of(21), (21, true));
    assert_eq!(warnings_of(500), (21, true));
}

#[test]
fn a_streaming_input_is_updated_when_the_chat_is_saved_again() {
    let mut session_set = SessionSet::default();
    for input in [r#"{\"a\":"#, r#"{\"a\":1"#] {
        let chat = format!(
            r#"[{{"id":"m","role":"assistant","parts":[{{"type":"tool-x","toolCallId":"k","state":"input-streaming","rawInput":"{input}"}}]}}]"#
        );
        session_set
            .read(Path::new("chat.json"), DocumentLines::new(chat.as_bytes()), &mut |_| {})
            .unwrap();
    }
    let transcript = session_set.sessions[0].transcript();
    let Body::Tool(tool) = &transcript.turns[0].parts[0].body else { panic!("a call") };
    assert_eq!(tool.input_text, r#"{"a":1"#);
}

#[test]
fn a_new_signature_is_not_attributed_to_the_old_signer() {
    let mut session_set = SessionSet::default();
    for provider in ["anthropic", "unspool"] {
        let chat = format!(
            r#"[{{"id":"m","role":"assistant","parts":[{{"type":"reasoning","text":"x","providerMetadata":{{"{provider}":{{"signature":"{provider}"}}}}}}]}}]"#
        );
        session_set
            .read(Path::new("chat.json"), DocumentLines::new(chat.as_bytes()), &mut |_| {})
            .unwrap();
    }
    let transcript = session_set.sessions[0].transcript();
    let Body::Reasoning(thought) = &transcript.turns[0].parts[0].body else { panic!("a thought") };
    assert_eq!((thought.signature.as_deref(), thought.signer.as_deref()), (Some("unspool"), None));
}
