//! REST: what the command line writes with `--json`, under the same names.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use unspool_core::document::{SessionDocument, TurnDocument};
use unspool_store::contract::{SessionFilter, Store, StoredSession, Window};

use crate::App;
use crate::problem::Problem;

#[derive(Debug, Default, Deserialize)]
pub struct Listing {
    pub agent: Option<String>,
    pub project: Option<String>,
    pub tag: Option<String>,
    pub limit: Option<u64>,
}

impl Listing {
    pub fn filter(self, most: u64) -> SessionFilter {
        SessionFilter {
            agent: self.agent,
            project: self.project,
            tag: self.tag,
            limit: Some(self.limit.unwrap_or(most).min(most)),
            ..SessionFilter::default()
        }
    }
}

/// More sessions than this are not told at once.
const MOST: u64 = 1000;

pub async fn sessions<S: Store>(
    State(app): State<Arc<App<S>>>,
    Query(listing): Query<Listing>,
) -> Result<Response, Problem> {
    let found = app.store.sessions(listing.filter(MOST)).await?;
    let prices = &app.prices;
    let documents: Vec<SessionDocument<'_>> = found
        .iter()
        .map(|StoredSession { summary, .. }| SessionDocument { summary, prices })
        .collect();
    Ok(json(&documents))
}

pub async fn session<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    #[derive(Serialize)]
    struct Document<'a> {
        session: SessionDocument<'a>,
        turns: Vec<TurnDocument<'a>>,
        seq: u64,
    }
    let stored = find(&app, &id).await?;
    let turns = app.store.turns(stored.row, Window::All).await?;
    let (summary, prices) = (&stored.summary, &app.prices);
    let agent = &summary.session.agent;
    let turns = turns.iter().map(|turn| TurnDocument { agent, turn, prices }).collect();
    Ok(json(&Document { session: SessionDocument { summary, prices }, turns, seq: stored.seq }))
}

/// The one session that is meant.
pub async fn find<S: Store>(app: &App<S>, id: &str) -> Result<StoredSession, Problem> {
    let mut found = app.store.find(id.to_owned()).await?;
    match found.len() {
        1 => found.pop().ok_or_else(|| Problem::no_session(id)),
        0 => Err(Problem::no_session(id)),
        count => {
            let what = format!("{id} may be one of {count} sessions; say more of its id");
            Err(Problem::new(axum::http::StatusCode::CONFLICT, what))
        }
    }
}

fn json(document: &impl Serialize) -> Response {
    match serde_json::to_vec(document) {
        Ok(bytes) => ([(CONTENT_TYPE, "application/json")], bytes).into_response(),
        Err(error) => {
            let status = axum::http::StatusCode::INTERNAL_SERVER_ERROR;
            Problem::new(status, error.to_string()).into_response()
        }
    }
}
