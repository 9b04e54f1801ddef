//! The routes of proposals: changes of adaptations that wait for a person, who decides here or with
//! `unspool adapt apply`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use serde::Deserialize;
use serde_json::Value;
use unspool_model::adaptation::TrialChange;
use unspool_query::adaptations::AdaptError;
use unspool_store::store::Store;

use super::adaptations::{editable, of};
use super::request_params::RequestParams;
use super::response::ApiResponse;
use crate::App;
use crate::problem::Problem;

pub const PATH: &str = "/api/proposals";
pub const DECIDE_SUMMARY: &str = "Applies or dismisses a proposal that is open";

/// What a person decides about a proposal.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposalDecision {
    number: u64,
    decision: Decision,
    /// In which sessions, if it is applied.
    #[serde(default)]
    trial: Option<TrialChange>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Decision {
    Apply,
    Dismiss,
}

pub async fn list<S: Store>(app: &App<S>, params: &RequestParams) -> Result<ApiResponse, Problem> {
    ApiResponse::json(params, &of(app)?.store.proposals()?)
}

pub async fn decide<S: Store>(
    State(app): State<Arc<App<S>>>,
    body: Result<Json<ProposalDecision>, JsonRejection>,
) -> Result<Json<Value>, Problem> {
    let store = editable(&app)?.store.clone();
    let Json(ProposalDecision { number, decision, trial }) = body.map_err(|error| {
        let what = format!("{}; /api/openapi.json describes the body", error.body_text());
        Problem::bad_request(what)
    })?;
    let decide = move || {
        match decision {
            Decision::Apply => drop(store.apply(number, trial, "api")?),
            Decision::Dismiss => drop(store.dismiss(number)?),
        }
        let all = store.proposals()?;
        Ok::<_, AdaptError>(all.into_iter().find(|proposal| proposal.number == number))
    };
    let done = tokio::task::spawn_blocking(decide).await;
    let decided = done.map_err(|error| Problem::internal(error.to_string()))??;
    serde_json::to_value(decided).map(Json).map_err(|error| Problem::internal(error.to_string()))
}
