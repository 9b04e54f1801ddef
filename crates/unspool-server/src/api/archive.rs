//! Handlers over the whole archive: search and statistics.

use unspool_query::search;
use unspool_store::search::{HitDocument, SearchRequest};
use unspool_store::stats::csv::StatsTable;
use unspool_store::stats::{Stats, StatsRequest};
use unspool_store::store::{Store, View};

use super::parameter::DEFAULT_HITS;
use super::request_params::RequestParams;
use super::response::ApiResponse;
use crate::App;
use crate::problem::Problem;

pub async fn search<S: Store>(
    app: &App<S>,
    params: &RequestParams,
) -> Result<ApiResponse, Problem> {
    let request = SearchRequest {
        agent: params.owned("agent"),
        project: params.owned("project"),
        kind: params.owned("kind"),
        tool: params.owned("tool"),
        state: params.owned("state"),
        model: params.owned("model"),
        since: params.time("since"),
        until: params.time("until"),
        limit: usize::try_from(params.limit(DEFAULT_HITS)).unwrap_or(usize::MAX),
        width: HitDocument::WIDTH,
        ..SearchRequest::new(params.text("q").unwrap_or_default())
    };
    let found = search::search(&app.view(), request).await?.results;
    let hits: Vec<HitDocument<'_>> = found.hits.iter().map(HitDocument::of).collect();
    ApiResponse::json(params, &hits)
}

pub async fn stats<S: Store>(app: &App<S>, params: &RequestParams) -> Result<ApiResponse, Problem> {
    ApiResponse::json(params, &figures(app, params).await?)
}

pub async fn stats_csv<S: Store>(
    app: &App<S>,
    params: &RequestParams,
) -> Result<ApiResponse, Problem> {
    let table = params.text("by").and_then(StatsTable::of_name).unwrap_or(StatsTable::Day);
    let body = figures(app, params).await?.csv(table).into();
    let name = format!("unspool-{}.csv", table.name());
    Ok(ApiResponse::File { name, media_type: "text/csv; charset=utf-8", body })
}

async fn figures<S: Store>(app: &App<S>, params: &RequestParams) -> Result<Stats, Problem> {
    let request = StatsRequest {
        agent: params.owned("agent"),
        project: params.owned("project"),
        folder: None,
        since: params.time("since"),
        until: params.time("until"),
        without_tag: None,
        prices: app.settings.prices.clone(),
    };
    let mut figures = app.view().stats(request).await?;
    if let Some(limit) = params.number("limit") {
        figures.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    }
    Ok(figures)
}
