//! The pages of findings: over the newest sessions that match the filters, of one session, and the
//! panel beside its transcript, which a script loads after the page.

pub mod template;

use std::sync::Arc;

use axum::extract::{Path, State};
use jiff::Timestamp;
use serde::Deserialize;
use unspool_query::findings::Findings;
use unspool_store::store::Store;
use unspool_view::finding::Rule;

use super::filters::{FilterMenu, FilterOption};
use super::sessions::uncounted_filters;
use super::{Page, UrlParams, html};
use crate::App;
use crate::api::find;
use crate::problem::Problem;
use crate::query_params::ListParams;
use crate::url_query::UrlQuery;

/// Sessions that the page over all looks at.
const MAX_SESSIONS: u64 = 200;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct FindingsParams {
    agent: Option<String>,
    project: Option<String>,
    since: Option<String>,
    until: Option<String>,
    /// Only findings of this rule.
    rule: Option<String>,
}

impl FindingsParams {
    fn rule(&self) -> Result<Option<Rule>, Problem> {
        let Some(name) = self.rule.as_deref().filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        let names: Vec<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
        Rule::of_name(name).map(Some).ok_or_else(|| {
            Problem::bad_request(format!(
                "there is no such rule; choose one of {}",
                names.join(", ")
            ))
        })
    }
}

pub async fn findings<S: Store>(
    State(app): State<Arc<App<S>>>,
    UrlParams(params): UrlParams<FindingsParams>,
) -> Page {
    let rule = params.rule()?;
    let FindingsParams { agent, project, since, until, .. } = params;
    // Those of sub-agents count: what they did went wrong too.
    let agents = Some("1".to_owned());
    let list = ListParams { agent, project, since, until, agents, ..ListParams::default() };
    let filter = list.filter(Timestamp::now(), MAX_SESSIONS)?;
    // Many sessions are read: few of such pages are made at once.
    let _permit = app.large_responses.acquire().await;
    let mut found = app.settings.reflection.over(&app.view(), filter, |_| {}).await?;
    if let Some(rule) = rule {
        found.retain(|other| other == rule);
    }
    let mut choices = uncounted_filters(&app).await?;
    choices.push(rules());
    let chosen: UrlQuery = list.query().without("agents").with("rule", rule.map(Rule::name));
    let sessions = found.sessions.len();
    let page = template::FindingsPage {
        findings: &found.placed(),
        sessions,
        is_cut: sessions as u64 == MAX_SESSIONS,
        rule,
        chosen: &chosen,
        choices: &choices,
    };
    Ok(html(&template::findings(&page)))
}

fn rules() -> FilterMenu {
    let option = |rule: &Rule| FilterOption {
        value: rule.name().to_owned(),
        label: rule.label().to_owned(),
        count: None,
    };
    let list = Rule::ALL.iter().map(option).collect();
    FilterMenu { name: "rule", label: "Rule", any: "All rules", list }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PanelParams {
    /// Only the panel.
    panel: Option<String>,
}

pub async fn of_session<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(id): Path<String>,
    UrlParams(params): UrlParams<PanelParams>,
) -> Page {
    let stored = find(&app, &id).await?;
    let _permit = app.large_responses.acquire().await;
    let session = app.settings.reflection.session(&app.view(), &stored).await?;
    let found = Findings { sessions: vec![session], across: Vec::new() };
    Ok(match params.panel {
        Some(_) => html(&template::panel(stored.summary.session.id, &found.placed())),
        None => html(&template::of_session(&stored.summary, &found.placed())),
    })
}
