//! The tools of an MCP server are sent with every call and never called. In one session that says
//! little, so the finding is only made over several sessions (`across`).

use std::collections::BTreeMap;

use unspool_model::tools::mcp_server;

use super::{Evidence, Found, History};

/// What a session was sent of the tools of one MCP server.
pub struct ServerUse {
    /// Summed over all model calls.
    pub chars: u64,
    pub model_calls: u64,
    /// Its tools were called.
    pub called: bool,
    /// The first call whose prompt has them.
    pub first: Evidence,
}

pub fn find(history: &History) -> Found {
    Found { opportunities: servers(history).len() as u64, findings: Vec::new() }
}

/// The MCP servers whose tools a session was sent.
pub fn servers(history: &History) -> BTreeMap<String, ServerUse> {
    let mut servers: BTreeMap<String, ServerUse> = BTreeMap::new();
    for call in &history.prompts.calls {
        for (server, chars) in call.servers.iter() {
            let held = servers.entry(server.clone()).or_insert_with(|| ServerUse {
                chars: 0,
                model_calls: 0,
                called: false,
                first: history.step_evidence(
                    call.turn,
                    call.step,
                    format!("the tools of {server} are in the prompt"),
                ),
            });
            held.chars = held.chars.saturating_add(*chars);
            held.model_calls += 1;
        }
    }
    for (_, call) in history.calls() {
        if let Some(held) = mcp_server(&call.tool).and_then(|server| servers.get_mut(server)) {
            held.called = true;
        }
    }
    servers
}

#[cfg(test)]
#[path = "idle_schemas_tests.rs"]
mod tests;
