//! The MCP server: what agents may ask about recorded sessions, over stdio (`unspool mcp`) and over
//! HTTP (`/mcp` of `unspool serve`).
//!
//! A request arrives at `server`, which finds the tool in `tools` and runs it on a blocking thread. A
//! tool reads through the `Reader`, which knows what the client may see, redacts through an `Exit`,
//! and builds a bounded `Answer`. Nothing here writes to the
//! archive. Adaptations are files beside it: a client may propose changes, and make them if it may.

mod answer;
mod arguments;
mod exit;
mod hits;
mod http;
mod item;
mod parts;
mod prompts;
mod reader;
mod resources;
mod scope;
mod server;
mod stdio;
mod tool;
mod tools;

pub use answer::{Answer, DEFAULT_LIMIT, MAX_LIMIT, MIN_LIMIT};
pub use http::{McpService, http_service};
pub use reader::{Adaptations, Reader, Settings};
pub use scope::Scope;
pub use server::McpServer;
pub use stdio::{StdioError, serve_stdio};
pub use tool::{Parameter, ParameterKind, Tool, ToolError};
pub use tools::tools;
