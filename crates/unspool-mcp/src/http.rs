//! The server over HTTP, for the web server to mount. Who may connect is decided there: host, origin
//! and token.

use std::sync::Arc;

use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use unspool_store::store::View;

use crate::server::McpServer;

/// A service for requests to one path.
pub type McpService<V> = StreamableHttpService<McpServer<V>, NeverSessionManager>;

/// The longest request: as long as any request to the web server.
const MAX_REQUEST_BYTES: usize = 64 * 1024;

/// A service without sessions: each request is answered by itself, with one JSON document.
pub fn http_service<V: View>(server: McpServer<V>) -> McpService<V> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_REQUEST_BYTES)
        // The web server has checked both, and knows its own names.
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let make = move || Ok(server.clone());
    StreamableHttpService::new(make, Arc::new(NeverSessionManager::default()), config)
}
