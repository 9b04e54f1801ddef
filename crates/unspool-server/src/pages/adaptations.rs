//! The pages of adaptations: the list, and one with its editor, its preview and where it was seen.

pub mod template;

use std::sync::Arc;

use axum::extract::{Path, State};
use unspool_query::adaptations::AdaptError;
use unspool_store::store::Store;

use super::{Page, UrlParams, html};
use crate::App;
use crate::api::{ProjectParam, adaptations_of, facts_of};
use crate::problem::Problem;

pub async fn adaptations<S: Store>(
    State(app): State<Arc<App<S>>>,
    UrlParams(params): UrlParams<ProjectParam>,
) -> Page {
    let folder = params.folder();
    let adaptations = adaptations_of(&app)?;
    let current = adaptations.store.current(folder.as_deref()).map_err(Problem::from)?;
    let proposals = adaptations.store.proposals().map_err(Problem::from)?;
    let page = template::ListPage {
        current: &current,
        proposals: &proposals,
        project: params.link_text(),
        is_editable: adaptations.is_editable,
    };
    Ok(html(&template::list(&page)))
}

pub async fn adaptation<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(id): Path<String>,
    UrlParams(params): UrlParams<ProjectParam>,
) -> Page {
    let folder = params.folder();
    let adaptations = adaptations_of(&app)?;
    let current = adaptations.store.current(folder.as_deref()).map_err(Problem::from)?;
    let found = current.state.find(&id, folder.as_deref());
    let versioned = found.ok_or_else(|| Problem::from(AdaptError::NotFound(id.clone())))?;
    let history = adaptations.store.history(&id, folder.as_deref()).map_err(Problem::from)?;
    // Sessions are looked at: few of such pages are made at once.
    let _permit = app.large_responses.acquire().await;
    let facts = facts_of(&app, &id, folder.as_deref()).await?;
    let page = template::ItemPage {
        versioned,
        facts: &facts,
        history: &history,
        project: params.link_text(),
        is_editable: adaptations.is_editable,
    };
    Ok(html(&template::item(&page)))
}
