//! The MCP servers that an agent names when it starts, and their states. Agents repeat the list for
//! each turn; a part shows it when it changes.

use serde::{Deserialize, Serialize};
use unspool_model::part::{Body, McpServer, McpSnapshot};

use super::Fields;

/// The servers as the last part showed them.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpServers {
    shown: Vec<McpServer>,
}

impl McpServers {
    /// The list of the first frame of a turn, as Claude Code and its kin write it: `mcp_servers`
    /// with names and states, and the tools of all servers in `tools`.
    pub fn start(&mut self, fields: &Fields<'_>) -> Option<Body> {
        let tools: Vec<String> = fields.read("tools").unwrap_or_default();
        let servers = fields.list("mcp_servers").filter_map(|server| {
            let name = server.string("name")?;
            let prefix = tool_prefix(&name);
            let tools = tools.iter().filter_map(|tool| tool.strip_prefix(&prefix));
            let tools = tools.map(str::to_owned).collect();
            Some(McpServer { status: server.string("status"), tools, name })
        });
        self.show(servers.collect())
    }

    /// A list of servers with their states.
    pub fn list<'a>(&mut self, servers: impl Iterator<Item = Fields<'a>>) -> Option<Body> {
        let servers = servers.filter_map(|server| {
            let name = server.string("name")?;
            Some(McpServer { status: server.string("status"), tools: Vec::new(), name })
        });
        self.show(servers.collect())
    }

    /// The new state of one server.
    pub fn change(&mut self, name: String, status: Option<String>) -> Option<Body> {
        let mut servers = self.shown.clone();
        match servers.iter_mut().find(|server| server.name == name) {
            Some(server) => server.status = status,
            None => servers.push(McpServer { name, status, tools: Vec::new() }),
        }
        self.show(servers)
    }

    fn show(&mut self, servers: Vec<McpServer>) -> Option<Body> {
        if servers == self.shown {
            return None;
        }
        self.shown.clone_from(&servers);
        Some(Body::McpSnapshot(McpSnapshot { servers }))
    }
}

/// What the names of a server's tools begin with: characters that a tool's name may not have are
/// underscores there.
fn tool_prefix(server: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || *c == '_' || *c == '-';
    let plain = server.chars().map(|c| Some(c).filter(is_plain).unwrap_or('_'));
    format!("mcp__{}__", plain.collect::<String>())
}

#[cfg(test)]
#[path = "mcp_servers_tests.rs"]
mod tests;
