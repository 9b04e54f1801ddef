//! R-001-35: each format declares its agent, its feed and its sessions per file, and each agent
//! declares its recorded versions. Every overlap between two formats is listed here.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use unspool_core::provenance::Feed;

use super::{FORMATS, Format, JsonOutline, RecordOwner, SessionsPerFile, recognise};
use crate::agents::{AGENTS, Agent, VersionAge};

/// One record of each format, with the other formats that would also match it. The order of
/// `FORMATS` decides between them.
const RECORDS: &[(&str, &[&str], &str)] = &[
    (
        "Gemini CLI stream-json",
        &["Claude Code stream-json"],
        r#"{"type":"init","timestamp":"2026-11-15T00:47:43.378Z","session_id":"s","model":"m"}"#,
    ),
    (
        "Claude Code session log",
        &["Claude Code stream-json", "rows"],
        r#"{"type":"user","sessionId":"s","uuid":"u","message":{"role":"user","content":"hi"}}"#,
    ),
    (
        "Claude Code stream-json",
        &[],
        r#"{"type":"system","subtype":"init","session_id":"s","cwd":"/w"}"#,
    ),
    (
        "Codex hook payloads",
        &["Claude Code hook payloads"],
        r#"{"hook_event_name":"Stop","session_id":"s","turn_id":"t"}"#,
    ),
    (
        "Codex hook payloads",
        &["Gemini CLI hook payloads"],
        r#"{"event":"Stop","payload":{"hook_event_name":"Stop","session_id":"s","turn_id":"t"}}"#,
    ),
    (
        "Claude Code hook payloads",
        &[],
        r#"{"hook_event_name":"Stop","session_id":"s","transcript_path":"/p/s.jsonl"}"#,
    ),
    (
        "Codex rollout",
        &[],
        r#"{"timestamp":"2026-11-15T00:31:34.600Z","type":"session_meta","payload":{"id":"s"}}"#,
    ),
    ("Codex exec --json", &[], r#"{"type":"thread.started","thread_id":"s"}"#),
    (
        "Codex app-server protocol",
        &[],
        r#"{"method":"thread/started","params":{"thread":{"id":"s"}}}"#,
    ),
    (
        "Copilot CLI session log",
        &["Copilot CLI live events"],
        r#"{"type":"session.start","data":{"sessionId":"s"},"id":"e","timestamp":"2026-11-15T00:49:19.188Z"}"#,
    ),
    (
        "Copilot CLI live events",
        &[],
        r#"{"type":"assistant.message_delta","data":{},"id":"e","timestamp":"2026-11-15T00:49:19.188Z","ephemeral":true}"#,
    ),
    (
        "Copilot CLI hook payloads",
        &[],
        r#"{"event":"sessionStart","payload":{"sessionId":"s","cwd":"/w"}}"#,
    ),
    (
        "Gemini CLI chat file",
        &[],
        r#"{"sessionId":"s","projectHash":"p","startTime":"2026-11-15T00:37:54.382Z","kind":"main"}"#,
    ),
    (
        "Gemini CLI hook payloads",
        &[],
        r#"{"event":"SessionStart","payload":{"session_id":"s","hook_event_name":"SessionStart"}}"#,
    ),
    (
        "OpenCode database",
        &[],
        r#"{"type":"opencode.session","id":"ses_a","directory":"/w","time":{"created":1}}"#,
    ),
    (
        "OpenCode database",
        &[],
        r#"{"id":"evt_1","seq":0,"type":"session.created.1","data":{"info":{}}}"#,
    ),
    (
        "OpenCode export",
        &[],
        r#"{"info":{"id":"msg_1","sessionID":"ses_a","role":"user"},"parts":[]}"#,
    ),
    (
        "OpenCode events",
        &[],
        r#"{"id":"evt_1","type":"session.idle","properties":{"sessionID":"ses_a"}}"#,
    ),
    (
        "OpenCode run --format json",
        &[],
        r#"{"type":"text","timestamp":1,"sessionID":"ses_a","part":{"id":"prt_1","type":"text"}}"#,
    ),
    ("AI SDK messages", &[], r#"{"id":"m","role":"user","parts":[{"type":"text","text":"hi"}]}"#),
    ("AI SDK message stream", &[], r#"{"type":"text-delta","id":"0","delta":"hi"}"#),
    (
        "ThoughtFlow document",
        &[],
        r#"{"session_id":"s","started_at":"2026-11-15T00:28:32.334Z","ended_at":null}"#,
    ),
    ("ThoughtFlow document", &[], r#"{"conversation_id":"c","status":"unknown","steps":[]}"#),
    ("rows", &[], r#"{"role":"user","content":"hi"}"#),
];

#[test]
fn no_two_formats_take_the_same_record_unseen() {
    let mut outline = JsonOutline::default();
    for (name, others, record) in RECORDS {
        let fields = outline.read(record).unwrap();
        let taken = |format: &&Format| (format.recognise)(&fields).is_some();
        let takers: Vec<&str> = FORMATS.iter().filter(taken).map(|format| format.name).collect();
        let declared: Vec<&str> = [*name].into_iter().chain(others.iter().copied()).collect();
        assert_eq!(takers, declared, "{record}");
        assert_eq!(recognise(&fields).unwrap().0.name, *name, "{record}");
        // A format that recognises sub-agents must allow several sessions per file.
        let format = FORMATS.iter().find(|format| format.name == *name).unwrap();
        let says = (format.recognise)(&fields).unwrap();
        let sub_agent = matches!(says, RecordOwner::SubAgent { .. });
        assert!(format.sessions_per_file == SessionsPerFile::Several || !sub_agent, "{record}");
    }
    let shown: BTreeSet<&str> = RECORDS.iter().map(|(name, _, _)| *name).collect();
    let listed: BTreeSet<&str> = FORMATS.iter().map(|format| format.name).collect();
    assert_eq!(shown, listed, "each format has a record here");
}

#[test]
fn every_format_says_whose_it_is_and_every_agent_has_one() {
    let mut names = BTreeSet::new();
    for format in FORMATS {
        assert!(names.insert(format.name), "two formats are called {}", format.name);
        let agent = Agent::named(format.agent);
        assert!(agent.is_some(), "{} names {}, an undeclared agent", format.name, format.agent);
        // Its state can be saved and restored.
        let saved = (format.decoder)().save();
        let resumed = saved.as_deref().and_then(format.resume);
        assert_eq!(resumed.and_then(|decoder| decoder.save()), saved, "{}", format.name);
        assert!(saved.is_some(), "{}", format.name);
    }
    let mut names = BTreeSet::new();
    for agent in AGENTS {
        assert!(names.insert(agent.name) && !agent.title.is_empty(), "{}", agent.name);
        let has = |feed: Feed| {
            FORMATS.iter().any(|format| format.agent == agent.name && format.feed == feed)
        };
        // Hooks and streams only add to a log.
        assert!(has(Feed::Log), "{} has no log", agent.name);
        if let Some((oldest, newest)) = agent.recorded {
            assert_eq!(
                [oldest, newest].map(|version| agent.version_age(version)),
                [VersionAge::Recorded; 2]
            );
        }
    }
}
