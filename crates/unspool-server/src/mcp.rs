//! `/mcp`: the MCP server over HTTP. `auth` has checked host, origin and login; `unspool-mcp` answers.

use std::path::Path;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Query, Request};
use axum::routing::{MethodRouter, any};
use serde::Deserialize;
use unspool_mcp::{Adaptations, McpServer, Reader, Scope, Settings, http_service};
use unspool_query::adaptations::AdaptationStore;
use unspool_query::reader::Settings as ReaderSettings;
use unspool_store::store::View;

/// The path; `auth` treats it like the API.
pub const PATH: &str = "/mcp";

/// Whose sessions a client is told of. The server has no project: it tells of all.
#[derive(Debug, Default, Deserialize)]
pub struct McpParams {
    project: Option<String>,
}

/// The route of the MCP server, for all methods.
pub fn route<V: View, T>(
    view: V,
    settings: &ReaderSettings,
    adaptations: Option<&AdaptationStore>,
) -> MethodRouter<T>
where
    T: Clone + Send + Sync + 'static,
{
    let settings = Settings {
        rules: Some(Arc::new(settings.rules.clone())),
        prices: settings.prices.clone(),
        scope: Scope::All,
        own_session: None,
        reflection: settings.reflection.clone(),
    };
    let mut reader = Reader::new(view, settings);
    if let Some(store) = adaptations {
        // Whoever has the token may propose; changes are made by hand.
        reader = reader.with_adaptations(Adaptations { store: store.clone(), allows_edits: false });
    }
    let server = McpServer::new(reader);
    any(async move |Query(params): Query<McpParams>, request: Request| {
        let project = params.project.filter(|project| !project.is_empty());
        let scope = project.map_or(Scope::All, |project| Scope::folder(Path::new(&project)));
        http_service(server.in_scope(scope)).handle(request).await.map(Body::new)
    })
}
