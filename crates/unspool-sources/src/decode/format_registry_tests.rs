//! R-001-35: each format declares its agent, its feed and its sessions per file, and each agent
//! declares its recorded versions. Every overlap between two formats is listed here.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use unspool_model::provenance::Feed;

use super::{Format, JsonOutline, RecordOwner, SessionsPerFile, formats, recognise};
use crate::agents::{AGENTS, Agent, VersionAge};

/// Formats whose samples other formats also match, with those. `Precedence` decides between them.
const OVERLAPS: &[(&str, &[&str])] = &[
    ("AI SDK messages", &["rows"]),
    ("Claude Code session log", &["Claude Code stream-json", "rows"]),
    ("Cline conversation", &["Claude Code session log", "Claude Code stream-json"]),
    ("Codex hook payloads", &["Claude Code hook payloads", "Gemini CLI hook payloads"]),
    ("Copilot CLI session log", &["Copilot CLI live events"]),
    ("Droid hook payloads", &["Claude Code hook payloads"]),
    ("Droid stream-json", &["Claude Code stream-json", "rows"]),
    ("Gemini CLI chat file", &["rows"]),
    ("Gemini CLI stream-json", &["Claude Code stream-json"]),
    ("Kilo events", &["OpenCode events"]),
    ("Kilo export", &["OpenCode export"]),
    ("Kilo run --format json", &["OpenCode run --format json"]),
    ("Pi session file", &["Pi events", "rows"]),
    ("Qwen Code hook payloads", &["Claude Code hook payloads"]),
    ("Qwen Code session log", &["Claude Code session log", "Claude Code stream-json", "rows"]),
    ("Qwen Code stream-json", &["Claude Code stream-json"]),
    ("mini-swe-agent trajectory", &["rows"]),
];

#[test]
fn no_two_formats_take_the_same_record_unseen() {
    // R-001-35
    let mut outline = JsonOutline::default();
    for format in formats() {
        assert!(!format.samples.is_empty(), "{} has no sample", format.name);
        let listed = OVERLAPS.iter().find(|(name, _)| *name == format.name);
        let mut unseen: BTreeSet<&str> =
            listed.into_iter().flat_map(|(_, others)| *others).copied().collect();
        for record in format.samples {
            let fields = outline.read(record).unwrap();
            let taken = |format: &&Format| (format.recognise)(&fields).is_some();
            let takers: Vec<&str> = formats().filter(taken).map(|format| format.name).collect();
            assert_eq!(takers.first(), Some(&format.name), "{record}");
            for other in &takers[1..] {
                let is_listed = listed.is_some_and(|(_, others)| others.contains(other));
                assert!(is_listed, "{other} also takes {record}");
                unseen.remove(other);
            }
            assert_eq!(recognise(&fields).unwrap().0.name, format.name, "{record}");
            // A format that recognises sub-agents must allow several sessions per file.
            let sub_agent =
                matches!((format.recognise)(&fields), Some(RecordOwner::SubAgent { .. }));
            assert!(format.sessions_per_file == SessionsPerFile::Several || !sub_agent, "{record}");
        }
        assert!(unseen.is_empty(), "{}: no sample shows the overlap with {unseen:?}", format.name);
    }
}

#[test]
fn every_format_says_whose_it_is_and_every_agent_has_one() {
    // R-001-35
    let mut names = BTreeSet::new();
    for format in formats() {
        assert!(names.insert(format.name), "two formats are called {}", format.name);
        let lists = |agent: &Agent| agent.formats.iter().any(|listed| listed.name == format.name);
        let agent = Agent::named(format.agent);
        assert!(agent.is_some_and(lists), "{} is not of {}", format.name, format.agent);
        // Its state can be saved and restored.
        let saved = (format.decoder)().save();
        let resumed = saved.as_deref().and_then(format.resume);
        assert_eq!(resumed.and_then(|decoder| decoder.save()), saved, "{}", format.name);
        assert!(saved.is_some(), "{}", format.name);
    }
    let mut names = BTreeSet::new();
    for agent in AGENTS {
        assert!(names.insert(agent.name) && !agent.title.is_empty(), "{}", agent.name);
        let has = |feed: Feed| agent.formats.iter().any(|format| format.feed == feed);
        // Hooks and streams only add to a log, except for agents that only a capture tells about.
        assert!(has(Feed::Log) || agent.name == "acp", "{} has no log", agent.name);
        assert_eq!(has(Feed::Hooks), agent.hooks.is_some(), "{}", agent.name);
        assert_eq!(agent.recorded.is_some(), agent.logs.is_some(), "{}", agent.name);
        if let Some((oldest, newest)) = agent.recorded {
            assert_eq!(
                [oldest, newest].map(|version| agent.version_age(version)),
                [VersionAge::Recorded; 2]
            );
        }
    }
}
