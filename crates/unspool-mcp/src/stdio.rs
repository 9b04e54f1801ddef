//! The server on standard input and output: one JSON-RPC message per line.

use rmcp::service::serve_server;
use thiserror::Error;
use unspool_store::store::View;

use crate::server::McpServer;

#[derive(Debug, Error)]
pub enum StdioError {
    #[error("cannot start")]
    Start(#[from] std::io::Error),
    #[error("the client did not begin with a request of the Model Context Protocol: {0}")]
    Begin(String),
    #[error("the connection ended: {0}")]
    Connection(String),
}

/// Serves the client that started this process, until it closes our standard input.
pub fn serve_stdio<V: View>(server: McpServer<V>) -> Result<(), StdioError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let transport = (tokio::io::stdin(), tokio::io::stdout());
        let running = serve_server(server, transport).await;
        let running = running.map_err(|error| StdioError::Begin(error.to_string()))?;
        running.waiting().await.map_err(|error| StdioError::Connection(error.to_string()))?;
        Ok(())
    });
    // Reading standard input cannot be cancelled.
    runtime.shutdown_background();
    served
}
