//! The handlers for what a session changed, and what git still has of it.

use unspool_query::blame::standing::standing;
use unspool_query::changes::changes;
use unspool_store::store::{Store, StoredSession};
use unspool_view::present::changes::Changes;

use super::find;
use super::request_params::RequestParams;
use super::response::ApiResponse;
use super::turns::{not_modified, session_response};
use crate::App;
use crate::problem::Problem;

pub async fn one<S: Store>(app: &App<S>, params: &RequestParams) -> Result<ApiResponse, Problem> {
    let stored = find(app, params.path_param("id")).await?;
    if let Some(not_modified) = not_modified(params, &stored) {
        return Ok(not_modified);
    }
    let changes = load(app, params, &stored).await?;
    session_response(params, &stored, &changes.document(), None)
}

/// Git is asked each time: a commit changes the answer, and the session does not change.
pub async fn commits<S: Store>(
    app: &App<S>,
    params: &RequestParams,
) -> Result<ApiResponse, Problem> {
    let stored = find(app, params.path_param("id")).await?;
    let changes = load(app, params, &stored).await?;
    let found = standing(&app.view(), &stored, &changes).await;
    let found =
        found.map_err(|error| Problem::internal(format!("git cannot be asked: {error}")))?;
    ApiResponse::json(params, &found.document())
}

async fn load<S: Store>(
    app: &App<S>,
    params: &RequestParams,
    stored: &StoredSession,
) -> Result<Changes, Problem> {
    let turn = params.number("turn").map(|turn| u32::try_from(turn).unwrap_or(u32::MAX));
    changes(&app.view(), stored, turn).await?.ok_or_else(|| {
        let turn = turn.unwrap_or_default();
        Problem::not_found(format!("this session has no turn {turn}"))
    })
}
