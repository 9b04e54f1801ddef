//! Cline CLI 3.0: its conversations and manifests, its hooks, and what `cline --json` prints. The conversations are documents
//! that Cline writes again as a whole; `files.rs` makes lines of them. This file registers the
//! formats.

mod agent;
mod files;
mod live;
mod log;
mod message;
mod printed;
mod result;

use unspool_model::provenance::Feed;

use super::{Fields, Format, Precedence, RecordOwner, SessionsPerFile, resume};

pub use agent::AGENT;

const NAME: &str = "cline";

pub const LOG: Format = Format {
    agent: NAME,
    feed: Feed::Log,
    sessions_per_file: SessionsPerFile::One,
    name: "Cline conversation",
    recognise: recognise_log,
    decoder: || Box::new(log::LogDecoder::default()),
    resume: resume::<log::LogDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"type":"cline.session","sessionId":"1_a","agent":"lead","origin":{"mode":"user"}}"#,
        r#"{"type":"cline.manifest","session_id":"1_a","cwd":"/w"}"#,
        r#"{"type":"cline.compaction","sessionId":"1_a","after":"m"}"#,
    ],
};

/// Cline runs executables as hooks; `unspool hooks` does not install those. What a hook wrote down
/// is read as a stream.
pub const LIVE: Format = Format {
    agent: NAME,
    feed: Feed::Stream,
    sessions_per_file: SessionsPerFile::Several,
    name: "Cline events and hook payloads",
    recognise: recognise_live,
    decoder: || Box::new(live::LiveDecoder::default()),
    resume: resume::<live::LiveDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"version":"v1","event":"run.started","eventId":"hevt_1","sessionId":"1_a","payload":{}}"#,
        r#"{"clineVersion":"","hookName":"tool_call","sessionContext":{"rootSessionId":"1_a"}}"#,
    ],
};

pub const PRINTED: Format = Format {
    agent: NAME,
    feed: Feed::Stream,
    sessions_per_file: SessionsPerFile::One,
    name: "Cline --json",
    recognise: recognise_printed,
    decoder: || Box::new(printed::PrintedDecoder::default()),
    resume: resume::<printed::PrintedDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"ts":"t","type":"hook_event","hookEventName":"agent_start","agentId":"a","taskId":"conv_1","parentAgentId":null}"#,
        r#"{"ts":"t","type":"agent_event","event":{"type":"iteration_start","iteration":1}}"#,
        r#"{"ts":"t","type":"run_result","finishReason":"completed","iterations":1}"#,
    ],
};

/// No line names the session.
fn recognise_printed<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let is_ours = match &*fields.text("type").filter(|_| fields.has("ts"))? {
        "hook_event" => fields.has("hookEventName"),
        "agent_event" => fields.fields("event").has("type"),
        "run_result" => fields.has("finishReason"),
        "run_aborted" => true,
        _ => false,
    };
    is_ours.then_some(RecordOwner::Format)
}

fn recognise_log<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    if is_head(fields) {
        let id = fields.text("sessionId")?;
        let parent = fields.fields("origin").text("parentThreadId");
        return Some(match parent {
            Some(parent) => RecordOwner::SubAgent { id, parent: Some(parent) },
            None => RecordOwner::Session(id),
        });
    }
    match &*fields.text("type")? {
        "cline.manifest" => fields.text("session_id").map(RecordOwner::Session),
        "cline.compaction" => fields.text("sessionId").map(RecordOwner::Session),
        _ => None,
    }
}

/// The fields before the messages of a conversation. A document under another name has no type.
fn is_head(fields: &Fields<'_>) -> bool {
    let typed = !fields.has("type") || fields.is("type", "cline.session");
    typed && fields.has("sessionId") && fields.fields("origin").has("mode") && fields.has("agent")
}

/// Payloads of sub-agents name the outermost session, and their own agent.
fn recognise_live<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    if fields.text("eventId").is_some_and(|id| id.starts_with("hevt_")) {
        return fields.text("sessionId").filter(|_| fields.has("event")).map(RecordOwner::Session);
    }
    let session = fields.fields("sessionContext").text("rootSessionId")?;
    if !fields.has("hookName") {
        return None;
    }
    Some(match fields.text("agent_id").filter(|_| fields.has("parent_agent_id")) {
        Some(agent) => {
            let id = format!("{session}__{agent}").into();
            RecordOwner::SubAgent { id, parent: Some(session) }
        }
        None => RecordOwner::Session(session),
    })
}
