//! What a proxy records: the messages of both sides, each with its session.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use unspool_sources::decode::acp::agent_of_program;

use super::{PromptCounts, ProxySpec, WireLine};
use crate::host::capture::{Capture, Direction, Junk};
use crate::outgoing::hide_secrets;
use crate::wire::{self, Message};

/// How much waits for the agent to say who it is.
const MAX_EARLY_BYTES: usize = 1_000_000;
/// How many requests without a reply are remembered.
const MAX_REQUESTS: usize = 10_000;
/// How long the archive may take to count prompts.
const COUNT_TIME: Duration = Duration::from_secs(1);

/// The names in a message that decide to which session it belongs.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct SessionName {
    session_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CancelledRequest<'a> {
    #[serde(borrow)]
    request_id: &'a RawValue,
}

/// The capture, from the first line on.
pub(super) struct Recording {
    spec: ProxySpec,
    capture: Option<Capture>,
    agent: &'static str,
    /// Lines from before the agent said who it is.
    early: Vec<(Direction, String, u64)>,
    early_bytes: usize,
    /// The sessions of requests without a reply, by who replies and the id.
    requests: BTreeMap<(bool, String), String>,
}

impl Recording {
    pub fn new(spec: ProxySpec) -> Recording {
        let (capture, early, requests) = (None, Vec::new(), BTreeMap::new());
        Recording { spec, capture, agent: "acp", early, early_bytes: 0, requests }
    }

    pub fn line(&mut self, direction: Direction, line: WireLine<'_>) {
        let bytes = match line {
            WireLine::Whole(bytes) => bytes,
            WireLine::TooLong(junk) => return self.junk(direction, &junk),
        };
        let messages = std::str::from_utf8(bytes).ok().and_then(wire::split);
        let Some(messages) = messages else {
            return self.junk(direction, &Junk::short(&String::from_utf8_lossy(bytes)));
        };
        for message in messages {
            self.message(direction, message);
        }
    }

    /// What an editor writes that is not of the protocol says nothing about the agent.
    fn junk(&mut self, direction: Direction, junk: &Junk) {
        let capture = self.capture.as_mut().filter(|_| direction == Direction::ToClient);
        if let Some(capture) = capture {
            capture.junk(junk, now());
            let _ = capture.flush();
        }
    }

    fn message(&mut self, direction: Direction, text: &str) {
        let now = now();
        let parsed = wire::parse_one(text);
        if self.capture.is_none() {
            let opens = match &parsed {
                Message::Response { result: Ok(result), .. } => agent_info(result),
                Message::Response { .. }
                | Message::Request { .. }
                | Message::Notification { .. }
                | Message::Invalid => None,
            };
            match opens {
                Some(info) => self.open(&info, now),
                // No agent that we can name: it is recorded as one of many.
                None if self.early_bytes >= MAX_EARLY_BYTES => self.open(&Value::Null, now),
                None => {
                    let text = recorded(direction, &parsed, text);
                    self.early_bytes += text.len() + 1;
                    return self.early.push((direction, text, now));
                }
            }
        }
        self.record(direction, &parsed, text, now);
    }

    fn open(&mut self, info: &Value, now: u64) {
        self.agent = agent_of_program(info["name"].as_str().unwrap_or_default());
        let title = info["title"].as_str().or(info["name"].as_str());
        let head = json!({"acp": 1, "agent": self.agent, "name": title, "cwd": self.spec.folder,
            "connection": now, "prompts": {}, "t": now});
        self.capture = Some(Capture::new(&self.spec.captures, now, &head));
        for (direction, text, at) in std::mem::take(&mut self.early) {
            self.record(direction, &wire::parse_one(&text), &text, at);
        }
    }

    fn record(&mut self, direction: Direction, parsed: &Message, text: &str, now: u64) {
        let to_agent = direction == Direction::ToAgent;
        let session = self.session_of(to_agent, parsed);
        let text = recorded(direction, parsed, text);
        let Some(capture) = &mut self.capture else { return };
        capture.set_session(session.as_deref());
        if let (Message::Request { method, .. }, Some(session)) = (parsed, &session)
            && matches!(method.as_str(), "session/resume")
        {
            let counts = counts_in_time(&self.spec.count_prompts, session);
            capture.note(&json!({"what": "prompts", "prompts": counts}), now);
        }
        capture.message(direction, &text, now);
        // A recording that fails stops nothing.
        let _ = capture.flush();
    }

    /// The session of a message: it names it, or it replies to a message that does.
    fn session_of(&mut self, to_agent: bool, message: &Message) -> Option<String> {
        let named = |params: &str| {
            serde_json::from_str::<SessionName>(params).unwrap_or_default().session_id
        };
        match message {
            Message::Request { id, params, .. } => {
                let session = named(params);
                if let Some(session) =
                    session.as_ref().filter(|_| self.requests.len() < MAX_REQUESTS)
                {
                    self.requests.insert((!to_agent, id.as_json().to_owned()), session.clone());
                }
                session
            }
            Message::Notification { method, params } if method == "$/cancel_request" => {
                let of = serde_json::from_str::<CancelledRequest<'_>>(params).ok()?;
                self.requests.get(&(!to_agent, of.request_id.get().to_owned())).cloned()
            }
            Message::Notification { params, .. } => named(params),
            Message::Response { id, result } => {
                let asked = self.requests.remove(&(to_agent, id.as_json().to_owned()));
                asked.or_else(|| named(result.as_ref().ok()?))
            }
            Message::Invalid => None,
        }
    }

    /// Writes what had to wait.
    pub fn retry(&mut self) {
        if let Some(capture) = &mut self.capture {
            capture.release_patches(now());
            let _ = capture.flush();
        }
    }

    pub fn note(&mut self, note: &Value) {
        let open: Vec<String> = {
            let prompts = self.requests.iter().filter(|((to_agent, _), _)| !to_agent);
            prompts.map(|(_, session)| session.clone()).collect()
        };
        let Some(capture) = &mut self.capture else { return };
        capture.release_all_patches(now());
        // Each session with a request that has no reply learns why.
        for session in open {
            capture.set_session(Some(&session));
            capture.note(note, now());
        }
        let _ = capture.flush();
    }
}

/// What is recorded of a message: of MCP servers only their names, of a log-in no fields of the
/// vendor. The rest may be secret.
fn recorded(direction: Direction, parsed: &Message, text: &str) -> String {
    let method = match parsed {
        Message::Request { method, .. } | Message::Notification { method, .. } => method.as_str(),
        Message::Response { .. } | Message::Invalid => return text.to_owned(),
    };
    let sets_up = matches!(
        method,
        "authenticate" | "session/new" | "session/load" | "session/resume" | "session/fork"
    );
    if direction == Direction::ToClient || !sets_up && !text.contains("mcpServers") {
        return text.to_owned();
    }
    let mut message = serde_json::from_str::<Value>(text).unwrap_or_default();
    match hide_secrets(&mut message) {
        true => message.to_string(),
        false => text.to_owned(),
    }
}

/// Counts the prompts of a session. An archive that takes long does not keep the editor waiting.
fn counts_in_time(
    count: &Arc<dyn Fn(&str) -> PromptCounts + Send + Sync>,
    session: &str,
) -> PromptCounts {
    let (sender, counts) = std::sync::mpsc::channel();
    let (count, session) = (count.clone(), session.to_owned());
    thread::spawn(move || sender.send(count(&session)));
    counts.recv_timeout(COUNT_TIME).unwrap_or_default()
}

/// What an agent says about itself in the reply to `initialize`.
fn agent_info(result: &str) -> Option<Value> {
    let result = serde_json::from_str::<Value>(result).ok()?;
    let is_initialize = result.get("agentInfo").is_some()
        || result.get("agentCapabilities").is_some()
        || result.get("protocolVersion").is_some();
    is_initialize.then(|| result["agentInfo"].clone())
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or_default()
}
