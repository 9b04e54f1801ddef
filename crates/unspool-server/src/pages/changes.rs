//! The page of what a session, or one of its turns, changed.

pub mod template;

use std::sync::Arc;

use axum::extract::{Path, State};
use serde::Deserialize;
use unspool_query::changes::changes as load;
use unspool_store::store::Store;

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
    // Diffs of a long session: few of such pages are made at once.
    let _permit = app.large_responses.acquire().await;
    let Some(changes) = load(&app.view(), &stored, params.turn).await? else {
        let turn = params.turn.unwrap_or_default();
        return Err(Problem::not_found(format!("this session has no turn {turn}")).into());
    };
    let page =
        template::ChangesPage { summary: &stored.summary, turn: params.turn, changes: &changes };
    Ok(html(&template::changes(&page)))
}
