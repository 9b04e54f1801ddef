//! The handlers for findings, of one session and over many.

use unspool_query::findings::{Findings, FindingsDocument};
use unspool_store::store::{SessionFilter, Store};
use unspool_view::finding::Rule;

use super::find;
use super::request_params::RequestParams;
use super::response::ApiResponse;
use crate::App;
use crate::problem::Problem;

/// Sessions that are looked at unless the request says how many.
pub const DEFAULT_SESSIONS: u64 = 200;

pub async fn one<S: Store>(app: &App<S>, params: &RequestParams) -> Result<ApiResponse, Problem> {
    let stored = find(app, params.path_param("id")).await?;
    let session = app.settings.reflection.session(&app.view(), &stored).await?;
    respond(params, Findings { sessions: vec![session], across: Vec::new() })
}

pub async fn many<S: Store>(app: &App<S>, params: &RequestParams) -> Result<ApiResponse, Problem> {
    let filter = SessionFilter {
        agent: params.owned("agent"),
        project: params.owned("project"),
        since: params.time("since"),
        until: params.time("until"),
        limit: Some(params.limit(DEFAULT_SESSIONS)),
        ..SessionFilter::default()
    };
    let found = app.settings.reflection.over(&app.view(), filter, |_| {}).await?;
    respond(params, found)
}

fn respond(params: &RequestParams, mut found: Findings) -> Result<ApiResponse, Problem> {
    if let Some(rule) = params.text("rule").and_then(Rule::of_name) {
        found.retain(|other| other == rule);
    }
    ApiResponse::json(params, &FindingsDocument::new(&found))
}
