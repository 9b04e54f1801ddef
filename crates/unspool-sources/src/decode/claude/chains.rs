//! Side chains: up to 1.0.x the records of sub-agents are in the log of the session that started
//! them, each agent's as a separate tree. Only the first message links an agent to its call: it is
//! the call's prompt.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{AgentRef, EventKind};
use unspool_model::id::digest;

use super::super::{Emitter, Fields, SideChain};
use super::message::message_text;

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Chains {
    /// Calls that start agents and have no result yet, in order.
    calls: Vec<PendingAgentCall>,
    /// The chain of each record, by a digest of the uuid, until its call has a result.
    records: BTreeMap<u64, Arc<str>>,
    /// Chains whose calls got a result since the last record.
    #[serde(skip)]
    ended: Vec<Arc<str>>,
    /// Calls and their agents that were not yet reported to the calling session.
    #[serde(rename = "untold")]
    unreported: Vec<(Arc<str>, Arc<str>)>,
}

/// A call that starts an agent.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PendingAgentCall {
    call: Arc<str>,
    /// A digest of the agent's prompt.
    prompt: u64,
    kind: Option<String>,
    title: Option<String>,
    /// The chain that made the call; `None` for the main session.
    by: Option<Arc<str>>,
    /// The chain that it started.
    chain: Option<Arc<str>>,
}

impl Chains {
    /// The chain of a record of this log; `None` for records of the main session.
    pub fn chain_of(&mut self, session: &str, fields: &Fields<'_>) -> Option<SideChain> {
        let chain = fields.flag("isSidechain").then(|| self.place(session, fields));
        let by = chain.as_ref().map(|chain| chain.id.clone());
        match fields.text("type").as_deref() {
            Some("assistant") => self.note_calls(by, fields),
            Some("user") => self.note_results(fields),
            Some(_) | None => {}
        }
        chain
    }

    fn place(&mut self, session: &str, fields: &Fields<'_>) -> SideChain {
        let uuid = fields.text("uuid").unwrap_or_default();
        let parent = fields.text("parentUuid").map(|parent| digest(parent.as_bytes()));
        let parent_chain = parent.and_then(|parent| self.records.get(&parent).cloned());
        let chain = match (parent_chain, fields.text("agentId")) {
            (Some(id), _) => SideChain::of(id, session),
            (None, Some(id)) => SideChain::of(id.into(), session),
            (None, None) => self.begin(format!("{session}:{uuid}").into(), session, fields),
        };
        self.records.insert(digest(uuid.as_bytes()), chain.id.clone());
        chain
    }

    /// Starts a chain: it belongs to the oldest waiting call with the same prompt.
    fn begin(&mut self, id: Arc<str>, session: &str, fields: &Fields<'_>) -> SideChain {
        let mut chain = SideChain::of(id.clone(), session);
        let prompt = digest(message_text(&fields.fields("message")).as_bytes());
        let mut waiting = self.calls.iter_mut().filter(|call| call.chain.is_none());
        if let Some(call) = waiting.find(|call| call.prompt == prompt) {
            call.chain = Some(id.clone());
            chain.call = Some(call.call.clone());
            (chain.kind, chain.title) = (call.kind.clone(), call.title.clone());
            match &call.by {
                Some(by) => chain.parent.clone_from(by),
                None => self.unreported.push((call.call.clone(), id)),
            }
        }
        chain
    }

    fn note_calls(&mut self, by: Option<Arc<str>>, fields: &Fields<'_>) {
        for block in fields.fields("message").list("content") {
            if !(block.is("type", "tool_use") && block.is("name", "Task")) {
                continue;
            }
            let input = block.fields("input");
            self.calls.push(PendingAgentCall {
                call: block.text("id").unwrap_or_default().into(),
                prompt: digest(input.text("prompt").unwrap_or_default().as_bytes()),
                kind: input.string("subagent_type"),
                title: input.string("description").filter(|title| !title.trim().is_empty()),
                by: by.clone(),
                chain: None,
            });
        }
    }

    /// A call's result follows all records of its agent, so the chain has ended.
    fn note_results(&mut self, fields: &Fields<'_>) {
        if self.calls.is_empty() {
            return;
        }
        for block in fields.fields("message").list("content") {
            let id = block.text("tool_use_id").unwrap_or_default();
            let Some(at) = self.calls.iter().position(|call| *call.call == *id) else { continue };
            if let Some(chain) = self.calls.remove(at).chain {
                self.records.retain(|_, held| *held != chain);
                self.ended.push(chain);
            }
        }
    }

    pub fn ended(&mut self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.ended)
    }

    pub fn is_idle(&self) -> bool {
        self.calls.is_empty() && self.records.is_empty() && self.unreported.is_empty()
    }

    /// Reports the agents that the session's calls have started.
    pub fn report(&mut self, emit: &mut Emitter<'_>) {
        for (call, id) in self.unreported.drain(..) {
            let agent = AgentRef { call: Some(call), id: Some(id) };
            emit.push(EventKind::AgentProgressed { agent, activity: None, background: false });
        }
    }
}

#[cfg(test)]
#[path = "chains_tests.rs"]
mod tests;
