//! Search over all sessions: the page, and its hits for the page script while the user types.

use std::sync::Arc;

use axum::extract::{Query, State};
use jiff::Timestamp;
use maud::Markup;
use unspool_render::page::{self, Choices, Offered};
use unspool_store::search::SearchRequest;
use unspool_store::store::Store;

use super::sessions::plain_choices;
use super::{Page, Trouble, html};
use crate::App;
use crate::asked::Asked;

/// Hits on the search page.
const FOUND: usize = 100;
/// Hits while the user types.
const AT_ONCE: usize = 30;

/// The values of the kind filter and their labels.
const KINDS: &[(&str, &str)] = &[
    ("user", "Prompts"),
    ("text", "Answers"),
    ("reasoning", "Reasoning"),
    ("tool", "Tool calls"),
    ("error", "Errors"),
    ("title", "Titles"),
];

pub async fn search<S: Store>(app: &App<S>, words: &str, asked: &Asked) -> Page {
    let mut choices = plain_choices(app).await?;
    let kinds = KINDS.iter().map(|(value, label)| Offered {
        value: (*value).to_owned(),
        label: (*label).to_owned(),
        count: None,
    });
    let kinds = Choices { name: "kind", label: "Kind", any: "Everything", list: kinds.collect() };
    choices.push(kinds);
    look(app, words, asked, FOUND, &choices, page::search).await
}

/// The hits as a fragment, while the user types.
pub async fn found<S: Store>(State(app): State<Arc<App<S>>>, Query(asked): Query<Asked>) -> Page {
    let words = asked.words().unwrap_or_default();
    look(&app, words, &asked, AT_ONCE, &[], page::found).await
}

async fn look<S: Store>(
    app: &App<S>,
    words: &str,
    asked: &Asked,
    limit: usize,
    choices: &[Choices],
    paint: fn(&page::Search<'_>) -> Markup,
) -> Result<axum::response::Html<String>, Trouble> {
    let narrowed = asked.filter(Timestamp::now(), 0);
    let kind = asked.kind.clone().filter(|kind| !kind.is_empty());
    let request = SearchRequest {
        agent: narrowed.agent,
        project: narrowed.project,
        model: narrowed.model,
        since: narrowed.since,
        until: narrowed.until,
        kind,
        limit,
        width: 240,
        ..SearchRequest::new(words)
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
        Some("No whole-word match; these hits contain it inside a longer word.")
    } else if findings.newest_first {
        Some("Many matches; these are the newest.")
    } else {
        None
    };
    let page = page::Search {
        query: words,
        found: found.collect(),
        more: findings.more || findings.hits.len() == limit,
        note,
        chosen: &asked.query(),
        choices,
    };
    Ok(html(&paint(&page)))
}
