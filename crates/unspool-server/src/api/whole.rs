//! Handlers over the whole archive: search and statistics.

use unspool_store::search::{HitDocument, SearchRequest};
use unspool_store::stats::StatsRequest;
use unspool_store::store::Store;

use super::answer::Answer;
use super::asked::Asked;
use super::route::HITS;
use crate::App;
use crate::problem::Problem;

pub async fn search<S: Store>(app: &App<S>, asked: &Asked) -> Result<Answer, Problem> {
    let request = SearchRequest {
        agent: asked.owned("agent"),
        project: asked.owned("project"),
        kind: asked.owned("kind"),
        tool: asked.owned("tool"),
        state: asked.owned("state"),
        model: asked.owned("model"),
        since: asked.time("since"),
        until: asked.time("until"),
        limit: usize::try_from(asked.limit(HITS)).unwrap_or(usize::MAX),
        width: HitDocument::WIDTH,
        ..SearchRequest::new(asked.text("q").unwrap_or_default())
    };
    let findings = app.store.search(request).await?;
    let hits: Vec<HitDocument<'_>> = findings.hits.iter().map(HitDocument::of).collect();
    Answer::json(asked, &hits)
}

pub async fn stats<S: Store>(app: &App<S>, asked: &Asked) -> Result<Answer, Problem> {
    let request = StatsRequest {
        agent: asked.owned("agent"),
        project: asked.owned("project"),
        since: asked.time("since"),
        until: asked.time("until"),
        prices: app.prices.clone(),
    };
    let mut figures = app.store.stats(request).await?;
    if let Some(limit) = asked.number("limit") {
        figures.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    }
    Answer::json(asked, &figures)
}
