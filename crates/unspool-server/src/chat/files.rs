//! The files that the composer offers after `@`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use unspool_live::project_files::project_files;
use unspool_store::store::Store;

use crate::App;
use crate::problem::Problem;

/// The files of the agent's folder.
pub async fn files<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(chat): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    // A page sends no Origin when it reads.
    let chats = app.chats.get().filter(|_| app.auth.is_driver(&headers));
    let found = chats.and_then(|chats| chats.folders.find(&chat)?.read());
    let Some(stored) = found else { return Err(Problem::not_found("there is no such chat")) };
    let files = tokio::task::spawn_blocking(move || project_files(&stored.state.folder)).await;
    Ok(axum::Json(files.unwrap_or_default()).into_response())
}
