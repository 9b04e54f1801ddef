//! MCP servers that the agent of a chat shall use: from the user's configuration only.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A server, as the configuration has it. Values may name variables of the environment, `${NAME}`:
/// secrets stay out of files.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct McpServer {
    pub name: String,
    pub transport: McpTransport,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum McpTransport {
    /// A program that the agent starts.
    Stdio {
        command: Vec<String>,
        env: BTreeMap<String, String>,
    },
    Http {
        url: String,
        headers: BTreeMap<String, String>,
    },
    Sse {
        url: String,
        headers: BTreeMap<String, String>,
    },
}

impl McpServer {
    /// The server with the values of variables in place. Fails with the name of one that is not set.
    pub fn resolve(&self, variable: impl Fn(&str) -> Option<String>) -> Result<McpServer, String> {
        let one = |text: &str| expand(text, &variable);
        let all = |values: &BTreeMap<String, String>| -> Result<BTreeMap<String, String>, String> {
            values.iter().map(|(name, value)| Ok((name.clone(), one(value)?))).collect()
        };
        let transport = match &self.transport {
            McpTransport::Stdio { command, env } => McpTransport::Stdio {
                command: command.iter().map(|word| one(word)).collect::<Result<_, _>>()?,
                env: all(env)?,
            },
            McpTransport::Http { url, headers } => {
                McpTransport::Http { url: one(url)?, headers: all(headers)? }
            }
            McpTransport::Sse { url, headers } => {
                McpTransport::Sse { url: one(url)?, headers: all(headers)? }
            }
        };
        Ok(McpServer { name: self.name.clone(), transport })
    }

    /// True if an agent with these `mcpCapabilities` can use it. Programs are always possible.
    pub fn suits(&self, capabilities: &Value) -> bool {
        match &self.transport {
            McpTransport::Stdio { .. } => true,
            McpTransport::Http { .. } => capabilities["http"] == true,
            McpTransport::Sse { .. } => capabilities["sse"] == true,
        }
    }

    /// The server on the wire.
    pub fn to_wire(&self) -> Value {
        let pairs = |values: &BTreeMap<String, String>| -> Vec<Value> {
            values.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
        };
        match &self.transport {
            McpTransport::Stdio { command, env } => {
                let (program, arguments) = match command.split_first() {
                    Some((program, arguments)) => (program.as_str(), arguments),
                    None => ("", &command[..]),
                };
                json!({"name": self.name, "command": program, "args": arguments, "env": pairs(env)})
            }
            McpTransport::Http { url, headers } => {
                json!({"type": "http", "name": self.name, "url": url, "headers": pairs(headers)})
            }
            McpTransport::Sse { url, headers } => {
                json!({"type": "sse", "name": self.name, "url": url, "headers": pairs(headers)})
            }
        }
    }
}

/// Puts the values of variables in place: `${NAME}`.
fn expand(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        let Some((name, after)) = behind.split_once('}') else { break };
        expanded.push_str(before);
        expanded.push_str(&variable(name).ok_or_else(|| name.to_owned())?);
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str) -> Option<String> {
        (name == "TOKEN").then(|| "s3cret".to_owned())
    }

    #[test]
    fn variables_are_replaced_and_missing_ones_named() {
        let pairs = |value: &str| BTreeMap::from([("Authorization".to_owned(), value.to_owned())]);
        let server = |value: &str| McpServer {
            name: "house".to_owned(),
            transport: McpTransport::Http {
                url: "https://h/${TOKEN}/x".to_owned(),
                headers: pairs(value),
            },
        };
        let wire = server("Bearer ${TOKEN}").resolve(variable).unwrap().to_wire();
        assert_eq!(wire["url"], "https://h/s3cret/x");
        assert_eq!(wire["headers"][0], json!({"name": "Authorization", "value": "Bearer s3cret"}));
        assert_eq!(server("${OTHER}").resolve(variable).unwrap_err(), "OTHER");
        assert_eq!(
            server("a ${ b").resolve(variable).unwrap().to_wire()["headers"][0]["value"],
            "a ${ b"
        );
    }

    #[test]
    fn a_server_is_offered_to_agents_that_can_use_it() {
        let command = vec!["node".to_owned(), "server.js".to_owned()];
        let transport = McpTransport::Stdio { command, env: BTreeMap::new() };
        let program = McpServer { name: "local".to_owned(), transport };
        assert!(program.suits(&Value::Null));
        assert_eq!(
            program.to_wire(),
            json!({"name": "local", "command": "node", "args": ["server.js"], "env": []})
        );
        let transport = McpTransport::Sse { url: "u".to_owned(), headers: BTreeMap::new() };
        let remote = McpServer { name: "far".to_owned(), transport };
        assert!(!remote.suits(&json!({"http": true})));
        assert!(remote.suits(&json!({"sse": true})));
    }
}
