//! The page of what a session, or one of its turns, changed. What git still has of it is asked for by
//! a script after the page: it takes a moment.

pub mod template;

use std::sync::Arc;

use axum::extract::{Path, State};
use serde::Deserialize;
use tokio::task::spawn_blocking;
use unspool_query::blame::standing::standing;
use unspool_query::changes::changes as load;
use unspool_store::blocking::block_on;
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

/// What git has of the changes, as a part of the page. Empty if they are in no repository.
pub async fn in_git<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(id): Path<String>,
    UrlParams(params): UrlParams<ChangesParams>,
) -> Page {
    let stored = find(&app, &id).await?;
    let permit = app.large_responses.acquire().await;
    // Git is a process that is waited for.
    let asking = move || {
        let _permit = permit;
        let view = app.view();
        let changes = block_on(load(&view, &stored, params.turn))?.unwrap_or_default();
        let found = block_on(standing(&view, &stored, &changes));
        found.map_err(|error| Problem::internal(format!("git cannot be asked: {error}")))
    };
    let found = spawn_blocking(asking).await;
    let found = found.map_err(|error| Problem::internal(error.to_string()))??;
    Ok(html(&template::in_git(&found.standing)))
}
