//! The handler for what a session changed.

use unspool_query::changes::changes;
use unspool_store::store::Store;

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
    let turn = params.number("turn").map(|turn| u32::try_from(turn).unwrap_or(u32::MAX));
    let Some(changes) = changes(&app.view(), &stored, turn).await? else {
        let turn = turn.unwrap_or_default();
        return Err(Problem::not_found(format!("this session has no turn {turn}")));
    };
    session_response(params, &stored, &changes.document(), None)
}
