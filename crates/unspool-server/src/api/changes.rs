//! The handler for what a session changed.

use unspool_query::changes::changes;
use unspool_store::store::{Store, View};

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
    let view = app.view();
    let turn = params.number("turn").map(|turn| u32::try_from(turn).unwrap_or(u32::MAX));
    if let Some(turn) = turn
        && view.head(stored.row, turn).await?.is_none()
    {
        return Err(Problem::not_found(format!("this session has no turn {turn}")));
    }
    let changes = changes(&view, &stored, turn).await?;
    session_response(params, &stored, &changes.document(), None)
}
