//! Search over all sessions: the page, and its hits for the page script while the user types.

pub mod template;

use std::sync::Arc;

use axum::extract::State;
use jiff::Timestamp;
use maud::Markup;
use unspool_query::search::{self as searching, Outcome};
use unspool_store::search::SearchRequest;
use unspool_store::store::Store;

use super::sessions::uncounted_filters;
use super::{ErrorPage, Page, UrlParams, html};
use crate::App;
use crate::pages::filters::FilterMenu;
use crate::pages::filters::FilterOption;
use crate::query_params::ListParams;

/// Hits on the search page.
const MAX_HITS: usize = 100;
/// Hits while the user types.
const MAX_INSTANT_HITS: usize = 30;

/// The values of the kind filter and their labels.
const KIND_OPTIONS: &[(&str, &str)] = &[
    ("user", "Prompts"),
    ("text", "Replies"),
    ("reasoning", "Reasoning"),
    ("tool", "Tool calls"),
    ("error", "Errors"),
    ("title", "Titles"),
    ("note", "Notes"),
];

pub async fn search<S: Store>(app: &App<S>, words: &str, params: &ListParams) -> Page {
    let mut choices = uncounted_filters(app).await?;
    let kinds = KIND_OPTIONS.iter().map(|(value, label)| FilterOption {
        value: (*value).to_owned(),
        label: (*label).to_owned(),
        count: None,
    });
    let kinds =
        FilterMenu { name: "kind", label: "Kind", any: "Everything", list: kinds.collect() };
    choices.push(kinds);
    run_search(app, words, params, MAX_HITS, &choices, template::search).await
}

/// The hits as a fragment, while the user types.
pub async fn found<S: Store>(
    State(app): State<Arc<App<S>>>,
    UrlParams(params): UrlParams<ListParams>,
) -> Page {
    let words = params.words().unwrap_or_default();
    run_search(&app, words, &params, MAX_INSTANT_HITS, &[], template::found).await
}

async fn run_search<S: Store>(
    app: &App<S>,
    words: &str,
    params: &ListParams,
    limit: usize,
    choices: &[FilterMenu],
    paint: fn(&template::SearchPage<'_>) -> Markup,
) -> Result<axum::response::Html<String>, ErrorPage> {
    let narrowed = params.filter(Timestamp::now(), 0)?;
    let chosen = |value: &Option<String>| value.clone().filter(|value| !value.is_empty());
    let request = SearchRequest {
        agent: narrowed.agent,
        project: narrowed.project,
        model: narrowed.model,
        since: narrowed.since,
        until: narrowed.until,
        kind: chosen(&params.kind),
        tool: chosen(&params.tool),
        limit,
        width: 240,
        ..SearchRequest::new(words)
    };
    let Outcome { results, reading } = searching::search(&app.view(), request).await?;
    let found = results.hits.iter().map(|hit| template::HitRow {
        session: hit.session.to_string(),
        agent: &hit.agent,
        project: hit.project.as_deref(),
        title: hit.title.as_deref(),
        turn: hit.turn,
        part: hit.part.map(|part| part.to_string()),
        kind: &hit.kind,
        tool: hit.tool.as_deref(),
        state: hit.notable_state(),
        at: hit.at.and_then(|at| Timestamp::from_millisecond(at).ok()),
        text: &hit.snippet.text,
        ranges: &hit.snippet.ranges,
    });
    let note = if results.hits.is_empty() {
        None
    } else if results.widened {
        Some("No whole word matches; these hits contain it inside a longer word.")
    } else if results.newest_first && !words.is_empty() {
        Some("There are too many matches to rank; these are the newest.")
    } else {
        None
    };
    let page = template::SearchPage {
        query: words,
        found: found.collect(),
        more: results.more || results.hits.len() == limit,
        reading: &reading,
        note,
        chosen: &params.query(),
        choices,
    };
    Ok(html(&paint(&page)))
}
