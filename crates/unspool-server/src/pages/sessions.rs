//! The list of sessions, and what a search found.

use std::sync::Arc;

use axum::extract::{Query, State};
use jiff::Timestamp;
use serde::Deserialize;
use unspool_render::page;
use unspool_store::contract::{Store, StoredSession};
use unspool_store::search::SearchRequest;

use super::{Page, html};
use crate::App;
use crate::api::Listing;

/// So many sessions are listed at first.
const LISTED: u64 = 200;
/// So many hits does a search show.
const FOUND: usize = 100;

#[derive(Debug, Deserialize)]
pub struct Asked {
    q: Option<String>,
}

pub async fn sessions<S: Store>(
    State(app): State<Arc<App<S>>>,
    Query(asked): Query<Asked>,
    Query(listing): Query<Listing>,
) -> Page {
    if let Some(query) = asked.q.filter(|query| !query.trim().is_empty()) {
        return search(&app, &query, listing).await;
    }
    let found = app.store.sessions(listing.filter(LISTED)).await?;
    let rows = found
        .iter()
        .map(|StoredSession { summary, sub_agent, .. }| page::Row {
            summary,
            sub_agent: *sub_agent,
        })
        .collect();
    let shown = page::Sessions { rows, prices: &app.prices };
    Ok(html(&page::sessions(&shown)))
}

async fn search<S: Store>(app: &App<S>, query: &str, listing: Listing) -> Page {
    let request = SearchRequest {
        agent: listing.agent,
        project: listing.project,
        limit: FOUND,
        width: 240,
        ..SearchRequest::new(query)
    };
    let findings = app.store.search(request).await?;
    let found = findings.hits.iter().map(|hit| page::Found {
        session: hit.session.to_string(),
        agent: &hit.agent,
        project: hit.project.as_deref(),
        title: hit.title.as_deref(),
        turn: hit.turn,
        part: hit.part.map(|part| part.to_string()),
        kind: &hit.kind,
        tool: hit.tool.as_deref(),
        at: hit.at.and_then(|at| Timestamp::from_millisecond(at).ok()),
        text: &hit.snippet.text,
        ranges: &hit.snippet.ranges,
    });
    let note = if findings.widened {
        Some("No part has it as a whole word; these have it inside a longer one.")
    } else if findings.newest_first {
        Some("Many parts have it; these are the newest.")
    } else {
        None
    };
    Ok(html(&page::search(&page::Search { query, found: found.collect(), note })))
}
