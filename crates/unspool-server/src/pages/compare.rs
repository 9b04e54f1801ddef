//! The page of two sessions side by side, and the choice of the second one.

pub mod template;

use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use unspool_query::compare::{candidates, comparison};
use unspool_store::store::Store;

use super::{Page, UrlParams, html};
use crate::App;
use crate::api::find;

#[derive(Debug, Deserialize)]
pub struct CompareParams {
    /// The session on the left.
    a: String,
    /// The session on the right. Without it the page offers sessions to choose from.
    b: Option<String>,
}

pub async fn compare<S: Store>(
    State(app): State<Arc<App<S>>>,
    UrlParams(params): UrlParams<CompareParams>,
) -> Page {
    let left = find(&app, &params.a).await?;
    // Diffs of two long sessions: few of such pages are made at once.
    let _permit = app.large_responses.acquire().await;
    let Some(right) = params.b.map(|id| id.trim().to_owned()).filter(|id| !id.is_empty()) else {
        let offered = candidates(&app.view(), &left).await?;
        let found = template::choice(&left.summary, &offered, &app.settings.prices);
        return Ok(html(&found));
    };
    let right = find(&app, &right).await?;
    let found = comparison(&app.view(), &left, &right, &app.settings.prices).await?;
    Ok(html(&template::compare(&found)))
}
