//! The sessions beside an open one, as a fragment: those that run first, then the newest.

pub mod template;

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::ETAG;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use unspool_model::id::digest;
use unspool_query::activity::activity;
use unspool_store::store::{SessionFilter, Store, View};
use unspool_view::present::activity::Activity;

use super::{ErrorPage, html};
use crate::App;
use crate::api::etag_matches;

/// Sessions in the fragment.
const LIMIT: u64 = 60;

pub async fn beside<S: Store>(
    State(app): State<Arc<App<S>>>,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let filter =
        SessionFilter { limit: Some(LIMIT), without_agents: true, ..SessionFilter::default() };
    let view = app.view();
    let mut rows = Vec::new();
    for stored in view.sessions(filter).await? {
        let activity = activity(&view, &stored).await?;
        rows.push(template::BesideRow { summary: stored.summary, seq: stored.seq, activity });
    }
    // Stable: the newest of each kind stay in order.
    rows.sort_by_key(|row| Activity::order(row.activity.as_ref()));
    let painted = template::beside(&rows, Timestamp::now());
    let tag = format!("W/\"{:016x}\"", digest(painted.0.as_bytes()));
    if etag_matches(&headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response());
    }
    Ok(([(ETAG, tag)], html(&painted)).into_response())
}
