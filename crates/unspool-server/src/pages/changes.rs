//! The page of what a session, or one of its turns, changed.

pub mod template;

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use unspool_query::changes::changes as load;
use unspool_store::store::{Store, View};

use super::{Page, UrlParams, html};
use crate::App;
use crate::api::find;
use crate::problem::Problem;

#[derive(Debug, Default, Deserialize)]
pub struct ChangesParams {
    /// Only this turn.
    turn: Option<u32>,
}

pub async fn changes<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(id): Path<String>,
    UrlParams(params): UrlParams<ChangesParams>,
) -> Page {
    let stored = find(&app, &id).await?;
    let view = app.view();
    if let Some(turn) = params.turn
        && view.head(stored.row, turn).await?.is_none()
    {
        let what = format!("this session has no turn {turn}");
        return Err(Problem::new(StatusCode::NOT_FOUND, what).into());
    }
    // Diffs of a long session: few of such pages are made at once.
    let _permit = app.large_responses.acquire().await;
    let changes = load(&view, &stored, params.turn).await?;
    let page =
        template::ChangesPage { summary: &stored.summary, turn: params.turn, changes: &changes };
    Ok(html(&template::changes(&page)))
}
