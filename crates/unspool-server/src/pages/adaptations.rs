//! The pages of adaptations: the list, and one with its editor, its preview, where it was seen and what
//! it changed, which a script loads after the page.

mod effect;
pub mod template;

use std::sync::Arc;

use axum::extract::{Path, State};
use serde::Deserialize;
use unspool_query::adaptations::AdaptError;
use unspool_store::store::{SessionFilter, Store};

use super::{Page, UrlParams, html};
use crate::App;
use crate::api::{ProjectParam, adaptations_of, effect_of, facts_of};
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

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct EffectParams {
    #[serde(flatten)]
    project: ProjectParam,
    /// Only the section.
    panel: Option<String>,
}

pub async fn effect<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(id): Path<String>,
    UrlParams(params): UrlParams<EffectParams>,
) -> Page {
    let folder = params.project.folder();
    let _permit = app.large_responses.acquire().await;
    let filter = SessionFilter::default();
    let verified = effect_of(&app, &id, folder.as_deref(), None, filter).await?;
    if params.panel.is_some() {
        return Ok(html(&effect::panel(verified.as_ref())));
    }
    let current = adaptations_of(&app)?.store.current(folder.as_deref()).map_err(Problem::from)?;
    let found = current.state.find(&id, folder.as_deref());
    let title = found.map_or(id.as_str(), |versioned| versioned.item.title.as_str());
    Ok(html(&effect::page(&id, title, verified.as_ref(), params.project.link_text())))
}
