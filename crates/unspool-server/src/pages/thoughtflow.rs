//! The ThoughtFlow page of a session, and its runs as JSON and D2 files (R-002-29).

pub mod template;

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use unspool_export::export;
use unspool_export::project::{Options, Projection};
use unspool_redact::Redactor;
use unspool_store::store::Store;

use super::{Page, UrlParams, html};
use crate::App;
use crate::api::{ApiResponse, export_response, find};
use crate::problem::Problem;

/// Steps drawn on one page.
const MAX_STEPS: usize = 2000;

/// Where the picture starts.
#[derive(Debug, Default, Deserialize)]
pub struct FlowParams {
    turn: Option<u32>,
    step: Option<usize>,
}

pub async fn thoughtflow<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(id): Path<String>,
    UrlParams(params): UrlParams<FlowParams>,
) -> Page {
    let stored = find(&app, &id).await?;
    let (turn, step) = (params.turn.unwrap_or(0), params.step.unwrap_or(0));
    let drawing = tokio::task::spawn_blocking(move || {
        let window = export::runs(&app.view(), &stored, turn, step, MAX_STEPS, Redactor::off())?;
        let flow = template::FlowPage {
            summary: &stored.summary,
            runs: &window.runs,
            earlier: turn > 0 || step > 0,
            later: window.later,
        };
        Ok::<_, export::ExportError>(html(&template::thoughtflow(&flow)))
    });
    let lost = |what: String| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, what);
    let drawn = drawing.await.map_err(|error| lost(error.to_string()))?;
    Ok(drawn.map_err(|error| lost(error.to_string()))?)
}

/// `<session>.json` and `<session>.d2`.
pub async fn artifact<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(file): Path<String>,
) -> Result<ApiResponse, Problem> {
    let nothing = || {
        let what = format!("no file {file}; available are <session>.json and <session>.d2");
        Problem::not_found(what)
    };
    let (id, form) = file.rsplit_once('.').ok_or_else(nothing)?;
    let form = match form {
        "json" => "thoughtflow",
        "d2" => "d2",
        _ => return Err(nothing()),
    };
    if id.contains(['/', '\\']) || id.contains("..") {
        return Err(nothing());
    }
    let projection = Projection::named(form).ok_or_else(nothing)?;
    let options = Options { prices: app.settings.prices.clone(), ..Options::default() };
    let stored = find(&app, id).await?;
    let rules = Some(app.settings.rules.clone());
    Ok(export_response(&app, stored, projection, options, rules))
}
