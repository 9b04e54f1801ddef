//! The agent table: one line per supported agent. What an agent is (its formats, its log folders,
//! its hooks, how to resume a session) is in its own folder under `decode`; everything that differs
//! by agent reads it from here.

use serde_json::Value;
use unspool_model::provenance::Feed;

use crate::decode::{self, Fields, Format, acp, formats};
use crate::discover::LogLocation;
use crate::read::event_table::EventTable;
use crate::read::own_file::OwnFile;

/// Every supported agent, in display order.
pub static AGENTS: &[Agent] = &[
    decode::claude::AGENT,
    decode::codex::AGENT,
    decode::opencode::AGENT,
    decode::copilot::AGENT,
    decode::gemini::AGENT,
    decode::qwen::AGENT,
    decode::pi::AGENT,
    decode::kilo::AGENT,
    decode::cline::AGENT,
    decode::droid::AGENT,
    decode::continue_dev::AGENT,
    decode::mini_swe_agent::AGENT,
    decode::aider::AGENT,
    decode::acp::AGENT,
    decode::ai_sdk::AGENT,
    decode::atif::AGENT,
    decode::thoughtflow::AGENT,
    decode::rows::AGENT,
];

/// A supported agent.
pub struct Agent {
    /// Its name on the command line.
    pub name: &'static str,
    pub title: &'static str,
    /// What it writes, the most specific format first.
    pub formats: &'static [Format],
    /// The oldest and the newest recorded version. `None` for a format that many programs write,
    /// which has no versions and no log folder of its own.
    pub recorded: Option<(&'static str, &'static str)>,
    pub logs: Option<LogLocation>,
    /// Its files in a form of their own.
    pub files: &'static [OwnFile],
    /// The table of its database that has the events of all sessions.
    pub event_table: Option<&'static EventTable>,
    /// A table that only its databases have, if these are otherwise like OpenCode's, and the type of
    /// the first line of a session in them.
    pub database_mark: Option<(&'static str, &'static str)>,
    pub hooks: Option<HookSetup>,
    /// The shell command that resumes a session, without the session id.
    pub resume: Option<&'static str>,
    /// Where it says which process runs which session: a path in the agent's folder.
    pub process_files: Option<(&'static str, ProcessFiles)>,
    /// Where its logs have what model calls were sent.
    pub prompts: Option<&'static str>,
    /// What makes it write down what model calls are sent, beside its logs.
    pub trace_variables: &'static [TraceVariable],
    /// Its log has a call only when the call has ended.
    pub calls_come_late: bool,
    /// True for a record of the agent's list of typed prompts, which is not a session.
    pub is_prompt_history: fn(&Fields<'_>) -> bool,
    /// What a record is of that the agent writes and that is not read.
    pub unread: fn(&Fields<'_>) -> Option<&'static str>,
}

/// How an agent says which of its processes runs which session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProcessFiles {
    /// A folder with a file for each process: `PID.json` with `pid` and `sessionId`.
    Entries,
    /// A folder with a folder for each session, in which each process has an empty or short file,
    /// `inuse.PID.lock`.
    SessionLocks,
    /// A folder with a folder for each project, in which `chats` has a file for each session,
    /// `SESSION.runtime.json`, with `pid` and `session_id`. It stays when the process ends.
    ChatRuntimes,
    /// A log of all processes. A line has the id of the run, and of the session that it is about; no
    /// line has the process id. The first line of a run is written when its process starts.
    RunLog,
}

/// An environment variable that makes an agent write down what model calls are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceVariable {
    pub name: &'static str,
    pub value: TraceValue,
}

/// What it is set to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceValue {
    /// A folder for the files.
    Folder,
    /// The same, with this before the path.
    FolderAfter(&'static str),
    /// A file of this name in the folder.
    File(&'static str),
    /// No place: this text, which makes the agent write down more.
    Text(&'static str),
}

/// How an agent configures hooks.
pub struct HookSetup {
    /// The file, in the agent's folder.
    pub file: &'static str,
    pub form: HookForm,
    /// The events that carry information missing from logs.
    pub events: &'static [&'static str],
    /// The event whose hook can answer a question while the agent's own dialog stands. None if that
    /// is not known to be possible.
    pub answer_event: Option<&'static str>,
    /// The events whose hooks may add a text to the prompt of a session or a sub-agent.
    pub adapt_events: &'static [&'static str],
    /// A field that identifies a payload without the agent's folder in its transcript path.
    pub payload_field: Option<&'static str>,
    /// What the user must still do after the hooks are installed.
    pub after_install: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum HookForm {
    /// Part of the agent's settings: groups of hooks by event. `second` is the timeout value of one
    /// second.
    Settings { second: u32 },
    /// A separate file for our hooks.
    OwnFile,
}

/// How a version compares with the recorded range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VersionAge {
    Older,
    Recorded,
    Newer,
}

impl Agent {
    /// An agent without logs, hooks and sessions to resume.
    pub const fn new(name: &'static str, title: &'static str, formats: &'static [Format]) -> Agent {
        Agent {
            name,
            title,
            formats,
            recorded: None,
            logs: None,
            files: &[],
            event_table: None,
            database_mark: None,
            hooks: None,
            resume: None,
            process_files: None,
            prompts: None,
            trace_variables: &[],
            calls_come_late: false,
            is_prompt_history: |_| false,
            unread: |_| None,
        }
    }

    /// The agent with this name in the archive. Programs that only ACP tells about have the name
    /// that they give themselves, behind the name of the protocol.
    pub fn named(name: &str) -> Option<&'static Agent> {
        let name = if name.starts_with(acp::OTHER_PREFIX) { acp::AGENT.name } else { name };
        AGENTS.iter().find(|agent| agent.name == name)
    }

    /// The name of its program.
    pub fn program(&self) -> Option<&'static str> {
        self.resume?.split_whitespace().next()
    }

    /// True if its hooks report each question about a permission.
    pub fn hooks_report_permissions(&self) -> bool {
        let events = self.hooks.as_ref().map_or(&[] as &[&str], |hooks| hooks.events);
        events.iter().any(|event| ["PermissionRequest", "Notification"].contains(event))
    }

    /// The agents that have hooks.
    pub fn with_hooks() -> impl Iterator<Item = &'static Agent> {
        AGENTS.iter().filter(|agent| agent.hooks.is_some())
    }

    /// The agent that sent a hook payload: by its folder in the transcript path, or else by a field
    /// of the payload.
    pub fn of_payload(payload: &Value) -> Option<&'static Agent> {
        let path = payload.get("transcript_path").and_then(Value::as_str).unwrap_or_default();
        // In the order of formats, because some payload fields are of several agents.
        let senders = || {
            let formats = formats().filter(|format| format.feed == Feed::Hooks);
            formats.filter_map(|format| Agent::named(format.agent))
        };
        let by_path = |agent: &&Agent| {
            let folder = agent.logs.as_ref().map(LogLocation::agent_folder);
            folder.is_some_and(|folder| path.contains(&format!("/{folder}/")))
        };
        let by_field = |agent: &&Agent| {
            let field = agent.hooks.as_ref().and_then(|hooks| hooks.payload_field);
            field.is_some_and(|field| payload.get(field).is_some())
        };
        senders().find(by_path).or_else(|| senders().find(by_field))
    }

    /// The agent whose list of typed prompts this record is of.
    pub fn of_prompt_history(fields: &Fields<'_>) -> Option<&'static Agent> {
        AGENTS.iter().find(|agent| (agent.is_prompt_history)(fields))
    }

    pub fn version_age(&self, version: &str) -> VersionAge {
        let Some((oldest, newest)) = self.recorded else { return VersionAge::Recorded };
        let version = numbers(version);
        if version < numbers(oldest) {
            VersionAge::Older
        } else if version > numbers(newest) {
            VersionAge::Newer
        } else {
            VersionAge::Recorded
        }
    }
}

/// The numeric components of a version (`2.1.325-beta` → `[2, 1, 325]`), for comparison.
fn numbers(version: &str) -> Vec<u64> {
    let digits = |piece: &str| piece.chars().take_while(char::is_ascii_digit).collect::<String>();
    version.split('.').map(|piece| digits(piece).parse().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use unspool_model::agent::AgentTraits;

    use super::*;

    #[test]
    fn versions_compare_by_their_numbers() {
        let claude = Agent::named("claude-code").unwrap();
        for version in ["1.0.100", "2.0.30", "2.1.9", "2.1.325"] {
            assert_eq!(claude.version_age(version), VersionAge::Recorded, "{version}");
        }
        assert_eq!(claude.version_age("2.1.1000"), VersionAge::Newer);
        assert_eq!(claude.version_age("3.0.0-beta"), VersionAge::Newer);
        assert_eq!(claude.version_age("1.0.99"), VersionAge::Older);
        assert_eq!(claude.version_age("odd"), VersionAge::Older);
        assert!(Agent::named("nobody").is_none());
    }

    #[test]
    fn a_payload_is_of_the_agent_whose_folder_it_names() {
        let payload = |path: &str, field: &str| {
            let payload = serde_json::json!({ "transcript_path": path, field: "x" });
            Agent::of_payload(&payload).map(|agent| agent.name)
        };
        for (path, agent) in [
            ("/home/a/.codex/sessions/r.jsonl", "codex"),
            ("/home/a/.gemini/tmp/p/chats/s.jsonl", "gemini"),
            ("/home/a/.claude/projects/p/s.jsonl", "claude-code"),
        ] {
            assert_eq!(payload(path, "hook_event_name"), Some(agent));
        }
        assert_eq!(payload("", "sessionId"), Some("copilot"));
        assert_eq!(payload("/tmp/s.jsonl", "hook_event_name"), Some("claude-code"));
        assert_eq!(payload("", "odd"), None);
    }

    /// Exports read the traits by name; a name that no agent has would be a dead line.
    #[test]
    fn traits_are_of_agents_in_the_table() {
        let unlisted: Vec<&str> =
            AgentTraits::listed().filter(|name| Agent::named(name).is_none()).collect();
        assert!(unlisted.is_empty(), "{unlisted:?}");
    }
}
