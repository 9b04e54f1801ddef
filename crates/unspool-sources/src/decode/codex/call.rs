//! Tool calls, questions and sub-agents, as all Codex sources write them. Emits the events for the
//! rollout, exec, app-server and hook decoders.

use std::sync::Arc;

use serde_json::json;
use unspool_model::event::{
    AgentEnd, AgentRef, CallRef, EventKind, ToolCall, ToolEnd, ToolOutcome,
};
use unspool_model::id::digest;
use unspool_model::json::Json;
use unspool_model::part::{Answer, Decision, Question, QuestionItem, QuestionKind, QuestionOption};

use super::super::{Emitter, Fields};
use super::text::{script, words};

pub(super) const COMMAND_TOOL: &str = "exec_command";
pub(super) const PATCH_TOOL: &str = "apply_patch";
pub(super) const SEARCH_TOOL: &str = "web_search";
pub(super) const ASK_TOOL: &str = "request_user_input";

/// Emits a call with its input.
pub(super) fn emit_call(
    emit: &mut Emitter<'_>,
    id: &Arc<str>,
    parent: Option<&Arc<str>>,
    name: &str,
    input: Option<Json>,
) {
    let content_hash = content_hash(name, input.as_ref());
    emit_call_with_hash(emit, id, parent, name, input, content_hash);
}

/// Emits a call whose content hash cannot be computed from its input.
pub(super) fn emit_call_with_hash(
    emit: &mut Emitter<'_>,
    id: &Arc<str>,
    parent: Option<&Arc<str>>,
    name: &str,
    input: Option<Json>,
    content_hash: u64,
) {
    emit.push(EventKind::ToolCalled(Box::new(ToolCall {
        call: CallRef::Id(id.clone()),
        parent_call_id: parent.map(|parent| parent.to_string()),
        name: name.to_owned(),
        input,
        content_hash,
        provider_executed: name == SEARCH_TOOL,
        title: None,
        // A call is written once its input is complete; it then runs or waits for approval.
        running: true,
    })));
}

/// The content hash that matches calls with those of `exec --json`, which has no call ids. For a
/// command it covers the script only: `exec` omits the other arguments.
pub(super) fn content_hash(name: &str, input: Option<&Json>) -> u64 {
    let value = input.map(Json::value);
    let text = |key: &str| value.as_ref()?.get(key)?.as_str();
    match (name, text("cmd").or_else(|| text("message"))) {
        (_, Some(text)) => text_hash(name, text),
        ("wait_agent" | "close_agent", None) => {
            text_hash(name, &targets(value.as_ref()).join("\n"))
        }
        (PATCH_TOOL, None) => text_hash(name, &paths(value.as_ref()).join("\n")),
        (_, None) => unspool_model::assemble::content_hash(name, input),
    }
}

pub(super) fn text_hash(name: &str, text: &str) -> u64 {
    digest(format!("{name}\n{text}").as_bytes())
}

/// The ids of the agents that a call targets.
fn targets(input: Option<&serde_json::Value>) -> Vec<String> {
    let Some(input) = input else { return Vec::new() };
    let listed = input.get("targets").and_then(|targets| targets.as_array());
    let listed = listed.into_iter().flatten().chain(input.get("target"));
    listed.filter_map(|target| target.as_str().map(str::to_owned)).collect()
}

/// The base names of the files in a patch, sorted.
fn paths(input: Option<&serde_json::Value>) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for line in input.and_then(|input| input.as_str()).unwrap_or_default().lines() {
        let marks = ["*** Add File: ", "*** Update File: ", "*** Delete File: "];
        let path = marks.iter().find_map(|mark| line.strip_prefix(mark));
        let name = path.map(|path| path.rsplit('/').next().unwrap_or(path));
        paths.extend(name.map(str::to_owned));
    }
    paths.sort_unstable();
    paths
}

/// The content hash of a patch to these files.
pub(super) fn patch_hash<'a>(files: impl Iterator<Item = &'a str>) -> u64 {
    let names = files.map(|path| path.rsplit('/').next().unwrap_or(path).to_owned());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    text_hash(PATCH_TOOL, &names.join("\n"))
}

/// The first of two spellings that is present: rollouts write `exit_code`, the server `exitCode`.
pub(super) fn either<'a>(item: &Fields<'a>, names: [&str; 2]) -> Option<&'a str> {
    names.iter().find_map(|name| item.raw(name))
}

/// The input of a command, rebuilt from its item.
pub(super) fn command_input(item: &Fields<'_>) -> Option<Json> {
    let listed: Option<Vec<String>> = item.read("command");
    let value = item.string("command");
    let split = listed.or_else(|| words(value.as_deref()?))?;
    let command = script(&split).or(value).unwrap_or_else(|| split.join(" "));
    let folder = item.string("cwd").unwrap_or_default();
    let folder = folder.strip_prefix("file://").unwrap_or(&folder);
    let input = if folder.is_empty() {
        json!({ "cmd": command })
    } else {
        json!({ "cmd": command, "workdir": folder })
    };
    Json::parse(&input.to_string())
}

/// How a call ended, by the status of its item; `None` while it runs.
pub(super) fn item_end(item: &Fields<'_>) -> Option<ToolEnd> {
    match item.text("status").as_deref() {
        Some("inProgress" | "in_progress") => None,
        Some("failed") => Some(ToolEnd::Failed),
        Some("declined") => Some(ToolEnd::Denied),
        Some("interrupted") => Some(ToolEnd::Interrupted),
        Some(_) | None => Some(ToolEnd::Completed),
    }
}

/// The outcome of a call, from its item.
pub(super) fn item_outcome(item: &Fields<'_>) -> ToolOutcome {
    let number = |names| either(item, names).and_then(|raw| raw.parse().ok());
    let spent = item.fields("duration");
    let value = spent.number("secs").map(|seconds| {
        let nanos = spent.number("nanos").unwrap_or(0);
        seconds.saturating_mul(1000).saturating_add(nanos / 1_000_000)
    });
    ToolOutcome {
        output: None,
        result: Some(item.whole()),
        exit_code: number(["exit_code", "exitCode"]),
        duration_ms: value.or_else(|| item.number("durationMs")),
    }
}

// ── Questions ───────────────────────────────────────────────────────────────────────────────

/// The questions of `request_user_input`.
pub(super) fn questions(request: &Fields<'_>, request_id: Option<String>) -> Option<Question> {
    let items: Vec<QuestionItem> = request
        .list("questions")
        .map(|item| QuestionItem {
            header: item.string("header"),
            question: item.string("question").unwrap_or_default(),
            options: item
                .list("options")
                .map(|option| QuestionOption {
                    label: option.string("label").unwrap_or_default(),
                    description: option.string("description"),
                })
                .collect(),
            multi_select: false,
        })
        .collect();
    (!items.is_empty()).then_some(Question { request_id, kind: QuestionKind::Choice, items })
}

/// The ids and texts of the questions. Answers refer to the ids.
pub(super) fn question_ids(request: &Fields<'_>) -> Vec<(String, String)> {
    let text = |item: &Fields<'_>, name: &str| item.string(name).unwrap_or_default();
    request.list("questions").map(|item| (text(&item, "id"), text(&item, "question"))).collect()
}

/// The user's answers, matched to the questions by id.
pub(super) fn answers(value: &Fields<'_>, request: &[(String, String)]) -> Option<Answer> {
    let value = value.fields("answers");
    let mut choices: Vec<(String, String)> = Vec::new();
    for (id, question) in request {
        let chosen: Vec<String> = value.fields(id).read("answers").unwrap_or_default();
        if !chosen.is_empty() {
            choices.push((question.clone(), chosen.join(", ")));
        }
    }
    if choices.is_empty() {
        return None;
    }
    let texts: Vec<&str> = choices.iter().map(|(_, answer)| answer.as_str()).collect();
    let text = texts.join(" · ");
    Some(Answer { decision: Decision::Answered, text, choices, observed: true, by: None })
}

// ── Sub-agents ──────────────────────────────────────────────────────────────────────────────

fn agent(call: Option<&str>, id: &str) -> AgentRef {
    AgentRef { call: call.map(Into::into), id: Some(id.into()) }
}

/// Emits the agent events of a v1 agent tool: `CollabAgentToolCall`.
pub(super) fn emit_collab_call(emit: &mut Emitter<'_>, call: Option<&str>, item: &Fields<'_>) {
    let tool = item.string("tool").unwrap_or_default();
    let read = |names| {
        let raw = either(item, names)?;
        serde_json::from_str::<Vec<String>>(raw).ok()
    };
    let receivers = read(["receiver_thread_ids", "receiverThreadIds"]).unwrap_or_default();
    let agents = item.list("receiver_agents").chain(item.list("receiverAgents"));
    let agents: Vec<Fields<'_>> = agents.collect();
    // `exec --json` passes no call id: then the agent cannot be linked to its call.
    if matches!(&*tool, "spawn_agent" | "spawnAgent") && call.is_some() {
        for id in &receivers {
            let of = |it: &&Fields<'_>| {
                let value = it.text("thread_id").or_else(|| it.text("threadId"));
                value.is_some_and(|value| *value == **id)
            };
            let who = agents.iter().find(of);
            let name = |names: [&str; 2]| names.iter().find_map(|name| who?.string(name));
            let role = name(["agent_role", "agentRole"]);
            let nick = name(["agent_nickname", "agentNickname"]);
            let name = match (role, nick) {
                (Some(role), Some(nick)) => format!("{role} {nick}"),
                (role, nick) => role.or(nick).unwrap_or_default(),
            };
            emit.push(EventKind::AgentStarted {
                agent: agent(call, id),
                name,
                task: item.string("prompt").unwrap_or_default(),
                background: true,
            });
        }
    }
    let states = item.fields("agents_states");
    let states = if states.is_object() { states } else { item.fields("agentsStates") };
    for id in &receivers {
        let state = states.fields(id);
        // Rollouts write the state as a string, or as an object keyed by the state with the message
        // under it; the server writes `status` and `message`.
        let word = states.string(id).or_else(|| state.string("status"));
        let ended = |name: &str| state.has(name) || word.as_deref() == Some(name);
        let end = if ended("completed") {
            AgentEnd::Completed
        } else if ended("errored") || ended("failed") {
            AgentEnd::Failed
        } else if ended("interrupted") || ended("shutdown") {
            AgentEnd::Interrupted
        } else {
            continue;
        };
        emit.push(EventKind::AgentEnded { agent: agent(None, id), end });
    }
}

/// Emits the agent event of a v2 sub-agent: `SubAgentActivity`.
pub(super) fn emit_agent_activity(emit: &mut Emitter<'_>, item: &Fields<'_>) {
    let text = |names: [&str; 2]| names.iter().find_map(|name| item.string(name));
    let Some(id) = text(["agent_thread_id", "agentThreadId"]) else { return };
    let path = text(["agent_path", "agentPath"]).unwrap_or_default();
    let call = item.text("id");
    match item.text("kind").as_deref() {
        Some("started") => emit.push(EventKind::AgentStarted {
            agent: agent(call.as_deref(), &id),
            name: path.rsplit('/').next().unwrap_or_default().to_owned(),
            task: String::new(),
            background: true,
        }),
        Some("completed") => {
            emit.push(EventKind::AgentEnded { agent: agent(None, &id), end: AgentEnd::Completed });
        }
        Some("failed" | "errored") => {
            emit.push(EventKind::AgentEnded { agent: agent(None, &id), end: AgentEnd::Failed });
        }
        Some("interrupted") => {
            emit.push(EventKind::AgentEnded {
                agent: agent(None, &id),
                end: AgentEnd::Interrupted,
            });
        }
        _ => emit.push(EventKind::AgentProgressed {
            agent: agent(None, &id),
            activity: None,
            background: false,
        }),
    }
}
