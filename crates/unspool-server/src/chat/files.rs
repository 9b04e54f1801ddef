//! The files that the composer offers after `@`.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use unspool_live::project_files::project_files;
use unspool_store::store::Store;

use crate::App;
use crate::problem::Problem;

/// The files of the folder in which the agent of a chat, or of a session, works.
pub async fn files<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(target): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    // A page sends no Origin when it reads.
    let Some(chats) = app.chats.get().filter(|_| app.auth.has_key(&headers, None)) else {
        return Err(Problem::not_found("this browser may not drive agents"));
    };
    let folder = match chats.folders.find(&target).and_then(|folder| folder.read()) {
        Some(stored) => Some(stored.state.folder),
        None => {
            let stored = crate::api::find(&app, &target).await?;
            stored.summary.session.facts.project.map(PathBuf::from)
        }
    };
    let list = move || folder.map(|folder| project_files(&folder)).unwrap_or_default();
    let files = tokio::task::spawn_blocking(list).await;
    Ok(axum::Json(files.unwrap_or_default()).into_response())
}
