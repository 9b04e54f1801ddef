//! `unspool hook --answer`: waits for an answer to the question of an agent in its own terminal, and
//! prints it.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::signal::unix::{SignalKind, signal};
use unspool_ingest::hooks::ANSWER_TIMEOUT_SECONDS;
use unspool_ingest::hooks::spool::{append_payload, spool_file};
use unspool_ingest::lock::DataFolder;
use unspool_live::answer_hook::question::HookQuestion;
use unspool_live::answer_hook::watch::{Watch, find_call};
use unspool_live::answer_hook::{self, Accepted, Wait};
use unspool_live::host::process::{CHAT_VARIABLE, identify};
use unspool_query::processes::hook_caller;
use unspool_sources::agents::Agent;
use unspool_sources::decode::claude::ANSWER_EVENT;

use super::now;
use crate::command::chat::folders;

/// How Claude Code says what started it: `cli` in a terminal, and other words where no dialog is
/// shown and it would wait for this hook.
const ENTRY_VARIABLE: &str = "CLAUDE_CODE_ENTRYPOINT";
const IN_TERMINAL: &str = "cli";

pub fn wait(data: &DataFolder, agent: &str, payload: &str) -> io::Result<()> {
    let answerable = Agent::named(agent)
        .filter(|agent| agent.hooks.as_ref().is_some_and(|hooks| hooks.answer_event.is_some()));
    let Some((agent, mut question)) = answerable.zip(HookQuestion::of_payload(payload)) else {
        return Ok(());
    };
    // An agent that a chat drives asks the chat.
    let is_driven = std::env::var_os(CHAT_VARIABLE).is_some();
    let entry = std::env::var(ENTRY_VARIABLE);
    if is_driven || entry.is_ok_and(|entry| entry != IN_TERMINAL) {
        return Ok(());
    }
    // Whoever started us must not answer. If that is unknown, nobody may.
    let Some(caller) = hook_caller().map(identify) else { return Ok(()) };
    let (folders, spool) = (folders(data), spool_of(data, agent.name));
    question.call = find_call(&question, agent.name, &spool(), &folders);
    let caller = Some(caller);
    let time = Duration::from_secs(u64::from(ANSWER_TIMEOUT_SECONDS));
    let watch = Watch::new(question.clone(), spool, caller, time);
    let call = question.call.clone();
    let deliver = |accepted: &Accepted<'_>| {
        let mut out = io::stdout().lock();
        writeln!(out, "{}", accepted.decision.output)?;
        out.flush()?;
        if let Some(record) = record(payload, call.as_deref(), accepted) {
            // An answer that cannot be recorded is given all the same.
            let _ = append_payload(data, agent.name, "", &record, &now());
        }
        Ok(())
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut signals = signal(SignalKind::terminate())?;
        let terminated = async move {
            signals.recv().await;
        };
        let spec = Wait { folders, agent: agent.name, question, watch, caller };
        answer_hook::wait(spec, terminated, deliver).await
    })
}

fn spool_of(data: &DataFolder, agent: &'static str) -> Box<dyn Fn() -> PathBuf> {
    let data = data.clone();
    Box::new(move || spool_file(&data, agent, &now()))
}

/// The answer as a payload of our own: that of the question, with who decided what.
fn record(payload: &str, call: Option<&str>, accepted: &Accepted<'_>) -> Option<String> {
    let mut fields: Map<String, Value> = serde_json::from_str(payload).ok()?;
    let Accepted { decision, by } = accepted;
    let mut set = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    set("hook_event_name", ANSWER_EVENT.into());
    set("decision", decision.kind.into());
    set("by", (*by).into());
    if let Some(call) = call {
        set("tool_use_id", call.into());
    }
    if let Some(message) = &decision.message {
        set("message", message.as_str().into());
    }
    if let Some(answers) = &decision.answers {
        set("answers", Value::Object(answers.clone()));
    }
    serde_json::to_string(&fields).ok()
}
