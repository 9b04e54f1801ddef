//! Codex CLI, as of 0.166: rollouts (paginated and legacy), `exec --json`, the app-server protocol,
//! and hooks with `notify`. This file registers the four formats and owns the names of turns,
//! steps, items and calls, so that all feeds of a thread refer to the same ones.

mod agent;
mod call;
mod event;
mod exec;
mod hooks;
mod item;
mod log;
mod metadata;
mod prompts;
mod response;
mod review;
mod server;
mod server_item;
mod text;
mod trace;

use std::borrow::Cow;
use std::sync::Arc;

use unspool_model::provenance::{Feed, Name};

use super::{Fields, Format, Precedence, RecordOwner, SessionsPerFile, resume};

pub use agent::AGENT;

const NAME: &str = "codex";

pub const LOG: Format = Format {
    agent: NAME,
    feed: Feed::Log,
    sessions_per_file: SessionsPerFile::One,
    name: "Codex rollout",
    recognise: recognise_log,
    decoder: || Box::new(log::LogDecoder::default()),
    resume: resume::<log::LogDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"timestamp":"2026-11-15T00:31:34.600Z","type":"session_meta","payload":{"id":"s"}}"#,
    ],
};

pub const EXEC: Format = Format {
    agent: NAME,
    feed: Feed::Stream,
    sessions_per_file: SessionsPerFile::One,
    name: "Codex exec --json",
    recognise: recognise_exec,
    decoder: || Box::new(exec::ExecDecoder::default()),
    resume: resume::<exec::ExecDecoder>,
    precedence: Precedence::Specific,
    samples: &[r#"{"type":"thread.started","thread_id":"s"}"#],
};

/// What `CODEX_ROLLOUT_TRACE_ROOT` writes, with the payloads (`read/trace_files.rs`).
pub const TRACE: Format = Format {
    agent: NAME,
    feed: Feed::Stream,
    sessions_per_file: SessionsPerFile::Several,
    name: "Codex rollout trace",
    recognise: trace::recognise,
    decoder: || Box::new(trace::TraceDecoder::default()),
    resume: resume::<trace::TraceDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"trace_index":{"schema_version":2,"rollout_id":"s","thread_id":"s","payload":{"type":"rollout_started"}}}"#,
    ],
};

pub const SERVER: Format = Format {
    agent: NAME,
    feed: Feed::Stream,
    sessions_per_file: SessionsPerFile::Several,
    name: "Codex app-server protocol",
    recognise: recognise_server,
    decoder: || Box::new(server::ServerDecoder::default()),
    resume: resume::<server::ServerDecoder>,
    precedence: Precedence::Specific,
    samples: &[r#"{"method":"thread/started","params":{"thread":{"id":"s"}}}"#],
};

pub const HOOKS: Format = Format {
    agent: NAME,
    feed: Feed::Hooks,
    sessions_per_file: SessionsPerFile::Several,
    name: "Codex hook payloads",
    recognise: recognise_hooks,
    decoder: || Box::new(hooks::HooksDecoder::default()),
    resume: resume::<hooks::HooksDecoder>,
    precedence: Precedence::Specific,
    samples: &[
        r#"{"hook_event_name":"Stop","session_id":"s","turn_id":"t"}"#,
        r#"{"event":"Stop","payload":{"hook_event_name":"Stop","session_id":"s","turn_id":"t"}}"#,
    ],
};

fn recognise_log<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let kind = fields.text("type")?;
    let payload = fields.fields("payload");
    if !payload.is_object() || !fields.has("timestamp") {
        return None;
    }
    match &*kind {
        "session_meta" => {
            let id = payload.text("id")?;
            Some(match payload.text("parent_thread_id") {
                Some(parent) => RecordOwner::SubAgent { id, parent: Some(parent) },
                None => RecordOwner::Session(id),
            })
        }
        "response_item" | "event_msg" | "turn_context" | "world_state" | "compacted"
        | "token_usage_record" => Some(RecordOwner::Format),
        _ => None,
    }
}

fn recognise_exec<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    match &*fields.text("type")? {
        "thread.started" => fields.text("thread_id").map(RecordOwner::Session),
        "turn.started" | "turn.completed" | "turn.failed" | "item.started" | "item.updated"
        | "item.completed" => Some(RecordOwner::Format),
        _ => None,
    }
}

/// A message of the app-server protocol, bare or inside a two-way capture (`dir`, `msg`).
fn message<'a>(fields: &Fields<'a>) -> Fields<'a> {
    let inner = fields.fields("msg");
    if fields.has("dir") && inner.is_object() { inner } else { *fields }
}

fn recognise_server<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    let message = message(fields);
    let params = message.fields("params");
    if let Some(method) = message.text("method") {
        let ours = ["thread/", "turn/", "item/", "review/", "serverRequest/"];
        let aside = matches!(&*method, "error" | "warning") && params.has("threadId");
        if !aside && !ours.iter().any(|prefix| method.starts_with(prefix)) {
            return None;
        }
        // In `thread/fork`, `threadId` is the thread being forked, not the new one.
        let made = matches!(&*method, "thread/fork");
        let thread = params.text("threadId").filter(|_| !made);
        let thread = thread.or_else(|| params.fields("thread").text("id"));
        return Some(thread.map_or(RecordOwner::Format, RecordOwner::Session));
    }
    let result = message.fields("result");
    if let Some(id) = result.fields("thread").text("id").filter(|_| message.has("id")) {
        return Some(RecordOwner::Session(id));
    }
    result.has("codexHome").then_some(RecordOwner::Format)
}

fn recognise_hooks<'a>(fields: &Fields<'a>) -> Option<RecordOwner<'a>> {
    if fields.is("type", "agent-turn-complete") {
        return fields.text("thread-id").map(RecordOwner::Session);
    }
    let payload = payload(fields);
    let event = payload.text("hook_event_name")?;
    let path = payload.text("transcript_path");
    let rollout = path.as_deref().and_then(thread_of);
    if rollout.is_none() && !payload.has("turn_id") {
        return None;
    }
    let session = payload.text("session_id")?;
    // Hooks of sub-agents carry the root's `session_id`, but the path of their own rollout.
    if matches!(&*event, "SubagentStart" | "SubagentStop") {
        return Some(RecordOwner::Session(session));
    }
    let own = payload.text("agent_id").or_else(|| rollout.map(|id| Cow::Owned(id.to_owned())));
    Some(match own.filter(|own| *own != session) {
        Some(id) => RecordOwner::SubAgent { id, parent: None },
        None => RecordOwner::Session(session),
    })
}

/// A hook's payload, bare or inside a wrapper that adds the time of arrival.
fn payload<'a>(fields: &Fields<'a>) -> Fields<'a> {
    let inner = fields.fields("payload");
    if inner.has("hook_event_name") { inner } else { *fields }
}

/// The thread id in a rollout's file name: `rollout-<time>-<thread>[_<segment>].jsonl[.zst]`.
fn thread_of(path: &str) -> Option<&str> {
    let name = path.rsplit(['/', '\\']).next()?.strip_prefix("rollout-")?;
    let name = name.strip_suffix(".zst").unwrap_or(name).strip_suffix(".jsonl")?;
    let name = name.split_once('_').map_or(name, |(thread, _)| thread);
    name.get(name.len().checked_sub(36)?..)
}

/// A turn, by its id.
fn turn_name(turn: &Arc<str>) -> Name {
    Name::Prompt(turn.clone())
}

/// The n-th model call of a turn. Only the rollout has response ids, so all sources count.
fn step_name(turn: &str, nth: u32) -> Name {
    Name::Message(format!("{turn}/{nth}").into())
}

/// The prose block of an item.
fn block_name(item: &str) -> Name {
    Name::Block(item.into(), 0)
}

/// The n-th compaction of a turn: a legacy rollout has no id for it.
fn compaction_name(nth: u32) -> Name {
    Name::ByContent(unspool_model::id::digest(b"compaction"), nth)
}

/// The error part of a failed turn.
pub(super) fn failure_name() -> Name {
    Name::ByContent(unspool_model::id::digest(b"failure"), 0)
}
