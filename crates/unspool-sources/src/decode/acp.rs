//! Captures of the Agent Client Protocol: both directions of the wire between a client and an agent,
//! one message per line, `{"t":ms,"dir":"a2c","msg":{…}}`. Ours begin with a line that names the
//! agent, others are recognised by the reply to `initialize`.
//!
//! A capture of an agent that we know is one more feed of the agent's own session: session ids and
//! call ids are equal. The log is complete; the capture has permissions, questions, aborted text and
//! every word as it came. `adapter.rs` lists what differs from agent to agent.

mod adapter;
mod call;
mod compaction;
mod decoder;
mod question;
mod update;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use unspool_model::provenance::Feed;

use super::{Fields, Format, Precedence, RecordOwner, SessionsPerFile, resume};
use crate::agents::Agent;

use adapter::Adapter;
use decoder::AcpDecoder;
pub use question::{CHAT_ABOUT_THIS, form_request};

/// Agents that only a capture tells about.
pub const AGENT: Agent = Agent::new("acp", "ACP agent", &[OTHER]);

/// A format per agent, because a format has one agent. They differ in the adapter alone.
macro_rules! capture_of {
    ($adapter:ident, $agent:literal, $name:literal, $precedence:ident, $sample:literal) => {
        Format {
            agent: $agent,
            feed: Feed::Stream,
            sessions_per_file: SessionsPerFile::Several,
            name: $name,
            recognise: |fields| owner(fields, Adapter::$adapter),
            decoder: || Box::new(AcpDecoder::new(Adapter::$adapter)),
            resume: resume::<AcpDecoder>,
            precedence: Precedence::$precedence,
            samples: &[$sample],
        }
    };
}

pub const CLAUDE: Format = capture_of!(
    Claude,
    "claude-code",
    "Claude Code ACP capture",
    General,
    r#"{"dir":"a2c","msg":{"id":0,"result":{"agentInfo":{"name":"@agentclientprotocol/claude-agent-acp"}}}}"#
);
pub const CODEX: Format = capture_of!(
    Codex,
    "codex",
    "Codex ACP capture",
    General,
    r#"{"dir":"a2c","msg":{"id":0,"result":{"agentInfo":{"name":"codex-acp"}}}}"#
);
pub const COPILOT: Format = capture_of!(
    Copilot,
    "copilot",
    "Copilot CLI ACP capture",
    General,
    r#"{"dir":"a2c","msg":{"id":0,"result":{"agentInfo":{"name":"Copilot"}}}}"#
);
pub const DROID: Format = capture_of!(
    Droid,
    "droid",
    "Droid ACP capture",
    General,
    r#"{"dir":"s2c","msg":{"id":1,"result":{"agentInfo":{"name":"@factory/cli"}}}}"#
);
pub const GEMINI: Format = capture_of!(
    Gemini,
    "gemini",
    "Gemini CLI ACP capture",
    General,
    r#"{"dir":"a2c","msg":{"id":0,"result":{"agentInfo":{"name":"gemini-cli"}}}}"#
);
pub const OPENCODE: Format = capture_of!(
    OpenCode,
    "opencode",
    "OpenCode ACP capture",
    General,
    r#"{"dir":"s2c","msg":{"id":0,"result":{"agentInfo":{"name":"OpenCode"}}}}"#
);
pub const KILO: Format = capture_of!(
    Kilo,
    "kilo",
    "Kilo ACP capture",
    General,
    r#"{"dir":"s2c","msg":{"id":0,"result":{"agentInfo":{"name":"Kilo"}}}}"#
);
pub const QWEN: Format = capture_of!(
    Qwen,
    "qwen",
    "Qwen Code ACP capture",
    General,
    r#"{"dir":"a2c","msg":{"id":0,"result":{"agentInfo":{"name":"qwen-code"}}}}"#
);
/// Before the others: a message that does not name the agent is nobody's.
const OTHER: Format = capture_of!(
    Other,
    "acp",
    "ACP capture",
    Specific,
    r#"{"dir":"a2c","msg":{"id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"my-agent"}}}}"#
);

/// The name in the archive of an agent that calls itself this in the reply to `initialize`.
pub fn agent_of_program(name: &str) -> &'static str {
    let adapter = Adapter::of_program(name);
    if matches!(adapter, Adapter::Other) { other_agent(name) } else { adapter.agent() }
}

/// The name in the archive of the agent of a capture, from the record that decided what the file is.
pub(crate) fn agent_of_record(fields: &Fields<'_>) -> &'static str {
    if fields.has("acp") {
        return agent_of_name(&fields.text("agent").unwrap_or_default());
    }
    let info = fields.fields("msg").fields("result").fields("agentInfo");
    agent_of_program(&info.text("name").unwrap_or_default())
}

/// The agent that the archive names so. Captures of earlier versions have one name for all programs,
/// which stays theirs.
pub(crate) fn agent_of_name(name: &str) -> &'static str {
    name.strip_prefix(OTHER_PREFIX).map_or(AGENT.name, other_agent)
}

/// What the name of a program stands behind that has no adapter here.
pub const OTHER_PREFIX: &str = "acp:";
/// A longer name of a program is cut.
const MAX_NAME: usize = 40;
/// More programs than a machine has. Those beyond are nameless, because names are never freed.
const MAX_NAMES: usize = 1000;

/// The name of a program that has no adapter. It is kept as long as this process runs, like the
/// names of the other agents.
fn other_agent(program: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.@/".contains(c);
    let plain = |c: char| if is_plain(c) { c.to_ascii_lowercase() } else { '-' };
    let name: String = program.trim().chars().take(MAX_NAME).map(plain).collect();
    if name.is_empty() {
        return AGENT.name;
    }
    let name = format!("{OTHER_PREFIX}{name}");
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    match names.get(name.as_str()) {
        Some(held) => held,
        None if names.len() >= MAX_NAMES => AGENT.name,
        None => {
            let name: &'static str = name.leak();
            names.insert(name);
            name
        }
    }
}

/// The session of a message. A message that names a session may be of any agent; whether it is of
/// this one, an earlier message of the file has decided.
fn owner<'a>(fields: &Fields<'a>, adapter: Adapter) -> Option<RecordOwner<'a>> {
    if fields.has("acp") {
        let agent = fields.text("agent")?;
        return (Adapter::of_agent(&agent) == adapter).then_some(RecordOwner::Format);
    }
    let message = fields.fields("msg");
    if !fields.has("dir") || !message.is_object() {
        return None;
    }
    let (params, result) = (message.fields("params"), message.fields("result"));
    let info = result.fields("agentInfo");
    if info.is_object() || result.has("agentCapabilities") {
        let named = Adapter::of_program(&info.text("name").unwrap_or_default());
        return (named == adapter).then_some(RecordOwner::Format);
    }
    let session = fields.text("s").filter(|id| !id.is_empty());
    let session = session.or_else(|| params.text("sessionId")).or_else(|| result.text("sessionId"));
    let method = message.text("method").unwrap_or_default();
    let speaks_acp = ["session/", "elicitation/"].iter().any(|prefix| method.starts_with(prefix));
    let known = fields.has("s") || speaks_acp || result.has("sessionId");
    session.filter(|_| known).map(RecordOwner::Session)
}
