//! What a sink receives for files of every shape. `tests/resume.rs` tests that decoding can stop
//! and resume anywhere.

use std::ops::ControlFlow;

use super::*;
use crate::read::lines::{LineReader, ReadPosition};

#[derive(Default)]
struct RecordingSink {
    sources: Vec<(String, bool, Option<String>)>,
    records: Vec<(usize, u64, bool)>,
    warnings: Vec<(Option<SessionHandle>, u64, String)>,
}

impl RecordSink for RecordingSink {
    fn source(&mut self, session: SessionHandle, reported: &SessionIdent<'_>) -> u16 {
        assert_eq!(session.0, self.sources.len());
        let parent = reported.parent.map(str::to_owned);
        self.sources.push((reported.session.to_owned(), reported.sub_agent, parent));
        0
    }

    fn record(&mut self, record: DecodedRecord<'_>) {
        let readable = !matches!(record.outcome, RecordOutcome::Unreadable(_));
        self.records.push((record.session.0, record.line.number, readable));
    }

    fn warn(&mut self, session: Option<SessionHandle>, warning: Warning) {
        self.warnings.push((session, warning.line, warning.what));
    }
}

impl RecordingSink {
    fn sessions(&self) -> Vec<&str> {
        self.sources.iter().map(|(id, ..)| &**id).collect()
    }
}

fn user(session: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"u","sessionId":"{session}","message":{{"content":"hello"}}}}"#
    )
}

fn read(text: &str) -> (FileDecoder, RecordingSink, Verdict) {
    let (mut file_decoder, mut sink) =
        (FileDecoder::new("folder/some-name.jsonl"), RecordingSink::default());
    let mut reader = LineReader::new();
    reader.push(text.as_bytes(), &mut |line| file_decoder.take(line, &mut sink));
    let verdict = file_decoder.finish(&mut sink);
    (file_decoder, sink, verdict)
}

#[test]
fn a_file_is_what_its_records_say() {
    assert_eq!(read("").2, Verdict::Empty);
    assert_eq!(read("\n \n").2, Verdict::Empty);
    assert_eq!(read("{}\n").2, Verdict::Unknown);
    assert_eq!(read("no JSON\n").2, Verdict::Unknown);
    let prompt = r#"{"display":"hi","pastedContents":{},"sessionId":"s"}"#;
    assert_eq!(read(&format!("{prompt}\n")).2, Verdict::PromptHistory { agent: "claude-code" });
    assert_eq!(read(&format!("{}\n", user("s"))).2, Verdict::HasSessions);
}

#[test]
fn records_before_the_first_session_id_belong_to_that_session() {
    let (file_decoder, sink, _) = read(&format!("{{\"odd\":1}}\nno JSON\n{}\n", user("s")));
    assert_eq!(sink.sessions(), ["s"]);
    assert_eq!(sink.records, [(0, 2, false), (0, 1, true), (0, 3, true)]);
    assert_eq!(sink.warnings.len(), 1);
    assert!(file_decoder.save().is_some());
}

#[test]
fn a_file_that_names_no_session_is_named_by_its_name_and_not_saved() {
    let summary = r#"{"type":"summary","summary":"A title","leafUuid":"l"}"#;
    let (mut file_decoder, mut sink, verdict) = read(&format!("{summary}\n"));
    assert_eq!((verdict, sink.sessions()), (Verdict::HasSessions, vec!["some-name"]));
    assert!(file_decoder.save().is_none());
    // Finishing again reports nothing more.
    let reported = sink.records.len();
    assert_eq!(file_decoder.finish(&mut sink), Verdict::HasSessions);
    assert_eq!(sink.records.len(), reported);
}

#[test]
fn sub_agents_carry_their_parent() {
    let log = r#"{"type":"user","isSidechain":true,"agentId":"a1","sessionId":"s","message":{}}"#;
    let (_, sink, _) = read(&format!("{log}\n"));
    assert_eq!(sink.sources, [("a1".to_owned(), true, Some("s".to_owned()))]);

    // One file holds hooks of several sessions; `SubagentStop` belongs to the parent.
    let hook = |event: &str, agent: &str| {
        format!("{{\"hook_event_name\":\"{event}\",\"session_id\":\"s\"{agent}}}\n")
    };
    let agent = ",\"agent_id\":\"a1\"";
    let hooks = [
        hook("Stop", ""),
        hook("PreToolUse", agent),
        hook("Notification", ""),
        hook("SubagentStop", agent),
        hook("PostToolUse", agent),
    ];
    let (file_decoder, sink, _) = read(&hooks.concat());
    let session = ("s".to_owned(), false, None);
    assert_eq!(sink.sources, [session, ("a1".to_owned(), true, Some("s".to_owned()))]);
    let sessions: Vec<usize> = sink.records.iter().map(|(session, ..)| *session).collect();
    assert_eq!(sessions, [0, 1, 0, 0, 1]);
    assert_eq!(file_decoder.sessions().count(), 2);
}

#[test]
fn unrecognised_input_is_dropped_at_the_limit() {
    let (mut file_decoder, mut sink) = (FileDecoder::new("large.jsonl"), RecordingSink::default());
    let line = format!("{{\"odd\":\"{}\"}}", "x".repeat(1024 * 1024));
    for number in 1..=70 {
        file_decoder.take(Line { number, offset: 0, bytes: line.as_bytes() }, &mut sink);
    }
    assert!(file_decoder.pending.records.is_empty() && file_decoder.save().is_none());
    file_decoder.take(Line { number: 71, offset: 0, bytes: user("s").as_bytes() }, &mut sink);
    assert_eq!(file_decoder.finish(&mut sink), Verdict::Unknown);
    assert_eq!((sink.records.len(), sink.sources.len()), (0, 0));
}

/// Decodes from `position` to the end of `text`.
fn on(text: &str, position: &mut ReadPosition, last: LastLine) -> RecordingSink {
    let (mut file_decoder, mut sink) =
        (FileDecoder::new("some-name.jsonl"), RecordingSink::default());
    let first = user("s");
    file_decoder.take(Line { number: 1, offset: 0, bytes: first.as_bytes() }, &mut sink);
    sink.records.clear();
    let rest = &text.as_bytes()[position.offset as usize..];
    let go_on = |_: &_, _: &mut _, _| ControlFlow::Continue(());
    assert_eq!(
        decode_from(rest, position, last, &mut file_decoder, &mut sink, go_on).unwrap(),
        ReadOutcome::End
    );
    sink
}

#[test]
fn an_unfinished_line_is_left_unless_requested() {
    let text = "{\"a\":1}\n{\"b\":2}";
    let mut position = ReadPosition::default();
    assert_eq!(on(text, &mut position, LastLine::Leave).records.len(), 1);
    assert_eq!(position, ReadPosition { number: 2, offset: 8 });

    let mut position = ReadPosition::default();
    assert_eq!(on(text, &mut position, LastLine::TakeWhole).records.len(), 2);
    // Its line end is still missing; when it comes, it is not a new line.
    assert_eq!(position, ReadPosition { number: 2, offset: 15 });
    let sink = on(&format!("{text}\n{{\"c\":3}}\n"), &mut position, LastLine::Leave);
    assert_eq!(sink.records, [(0, 3, true)]);
    assert_eq!(position, ReadPosition { number: 4, offset: 24 });

    let mut position = ReadPosition::default();
    let cut = on("{\"a\":1}\n{\"b\":", &mut position, LastLine::TakeWhole);
    assert_eq!((cut.records.len(), cut.warnings.len()), (1, 1));
    assert_eq!((cut.warnings[0].0, cut.warnings[0].1), (Some(SessionHandle(0)), 2));
    assert_eq!(position, ReadPosition { number: 2, offset: 8 });
    for leaves in [LastLine::Leave, LastLine::TakeComplete] {
        assert_eq!(on("{\"a\":1}\n{\"b\":", &mut position, leaves).warnings, []);
    }
}

#[test]
fn decoding_stops_on_request_and_keeps_its_position_on_a_read_error() {
    struct Failing(bool);
    impl std::io::Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            if std::mem::replace(&mut self.0, true) {
                return Err(std::io::Error::other("the disk is gone"));
            }
            buffer[..12].copy_from_slice(b"{\"a\":1}\n{\"b\"");
            Ok(12)
        }
    }
    let (mut file_decoder, mut sink) = (FileDecoder::new("name"), RecordingSink::default());
    let go_on = |_: &_, _: &mut _, _| ControlFlow::Continue(());
    let (mut position, leave) = (ReadPosition::default(), LastLine::Leave);
    let read =
        decode_from(Failing(false), &mut position, leave, &mut file_decoder, &mut sink, go_on);
    assert!(read.is_err());
    assert_eq!(position, ReadPosition { number: 2, offset: 8 });

    let stop = |_: &_, _: &mut _, at: ReadPosition| {
        if at.number > 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let text = b"{\"b\":2}\n\n{\"c\":3}\n{\"d\":4}\n".as_slice();
    let read = decode_from(text, &mut position, leave, &mut file_decoder, &mut sink, stop).unwrap();
    assert_eq!((read, position), (ReadOutcome::Stop, ReadPosition { number: 5, offset: 25 }));
}

#[test]
fn what_another_version_saved_is_not_resumed() {
    let (file_decoder, ..) = read(&format!("{}\n", user("s")));
    let saved = serde_json::to_string(&file_decoder.save().unwrap()).unwrap();
    let resume = |text: &str| FileDecoder::resume("name", &serde_json::from_str(text).unwrap());
    assert!(resume(&saved).is_some());
    for (ours, theirs) in [
        ("\"version\":", "\"version\":9"),
        ("Claude Code session log", "another log"),
        ("Claude Code session log", "Claude Code hook payloads"),
        ("by_summary", "by_hearsay"),
        ("\"current\":0", "\"current\":3"),
    ] {
        assert!(saved.contains(ours), "{ours} in {saved}");
        assert!(resume(&saved.replace(ours, theirs)).is_none(), "{theirs}");
    }
}

fn event(kind: &str, more: &str) -> String {
    format!(r#"{{"type":"{kind}","id":"i","timestamp":"t",{more},"parentId":null}}"#)
}

#[test]
fn the_second_record_may_say_what_the_first_one_is() {
    // A log and a live stream that begin with the same record.
    let start = event("session.start", r#""data":{"sessionId":"s"}"#);
    let kept = event("hook.start", r#""data":{}"#);
    let passing = event("session.info", r#""data":{},"ephemeral":true"#);
    for (second, name) in [(kept, "Copilot CLI session log"), (passing, "Copilot CLI live events")]
    {
        let (file_decoder, sink, verdict) = read(&format!("{start}\n{second}\n"));
        assert_eq!(verdict, Verdict::HasSessions);
        assert_eq!(file_decoder.format.map(|format| format.name), Some(name));
        assert_eq!(sink.sessions(), ["s"]);
        assert_eq!(sink.records, [(0, 1, true), (0, 2, true)]);
        assert!(file_decoder.save().is_some());
    }
    // Alone it counts as a log until more is written.
    let (file_decoder, sink, verdict) = read(&format!("{start}\n"));
    assert_eq!((verdict, sink.sessions()), (Verdict::HasSessions, vec!["s"]));
    assert!(file_decoder.save().is_none());
}

#[test]
fn a_sub_agent_seen_first_is_not_the_main_session() {
    let own = event("session.info", r#""data":{},"ephemeral":true"#);
    let other = event("tool.execution_start", r#""data":{},"agentId":"a""#);
    let end = r#"{"type":"result","sessionId":"s","exitCode":0}"#;
    let (_, sink, _) = read(&format!("{own}\n{other}\n{own}\n{end}\n"));
    assert_eq!(sink.sessions(), ["a", "s"]);
    assert_eq!(sink.records, [(0, 2, true), (1, 1, true), (1, 3, true), (1, 4, true)]);
    // No record names the session: use the file name.
    let (file_decoder, sink, _) = read(&format!("{own}\n{other}\n{own}\n"));
    assert_eq!(sink.sessions(), ["a", "some-name"]);
    assert_eq!(sink.records, [(0, 2, true), (1, 1, true), (1, 3, true)]);
    assert!(file_decoder.save().is_none());
}
