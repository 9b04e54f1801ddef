//! The session list: live sessions on top, then one page of the rest; its fragments for the page
//! script, and the filters with their counts.

pub mod template;

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use jiff::{Timestamp, Zoned};
use unspool_model::live::MAX_SILENCE;
use unspool_model::session::SessionState;
use unspool_model::summary::UsageScope;
use unspool_query::activity::activity;
use unspool_query::budget::warnings;
use unspool_query::reader::Settings;
use unspool_query::times::parse_time_at;
use unspool_store::facets::{Facets as FacetCounts, FacetsRequest};
use unspool_store::search::SearchRequest;
use unspool_store::store::{SessionFilter, Store, StoreError, StoredSession, View};
use unspool_view::present::activity::Activity;
use unspool_view::present::budget::BudgetUse;

use super::{Page, UrlParams, html, search, welcome};
use crate::App;
use crate::pages::filters::FilterMenu;
use crate::pages::filters::FilterOption;
use crate::pages::filters::since_label;
use crate::query_params::{ListParams, encode_cursor};

/// Sessions per page.
const PAGE_SIZE: u64 = 200;
/// Limits of the view by project.
const SESSIONS_PER_PROJECT: u64 = 5;
const MAX_PROJECTS: usize = 40;
/// Suggestions in the command palette.
const MAX_SUGGESTIONS: usize = 8;
/// The values of the time filter.
pub const SINCE_OPTIONS: [&str; 3] = ["today", "7d", "30d"];

/// A session and its current activity.
struct ListedSession {
    stored: StoredSession,
    activity: Option<Activity>,
    scope: UsageScope,
    findings: u64,
}

impl ListedSession {
    /// True if it, or one of its sub-agents, is live.
    fn is_live(&self) -> bool {
        self.activity.is_some() || self.stored.summary.session.state == SessionState::Live
    }

    fn row(&self) -> template::ListRow<'_> {
        template::ListRow {
            summary: &self.stored.summary,
            sub_agent: self.stored.is_agent(),
            activity: self.activity.clone(),
            scope: self.scope,
            findings: self.findings,
        }
    }
}

async fn with_activity<S: Store>(
    app: &App<S>,
    found: Vec<StoredSession>,
    scope: UsageScope,
) -> Result<Vec<ListedSession>, StoreError> {
    let mut shown = Vec::with_capacity(found.len());
    let reflection = &app.settings.reflection;
    for stored in found {
        let activity = activity(&app.view(), &stored).await?;
        let findings = reflection.count_kept(&stored);
        shown.push(ListedSession { stored, activity, scope, findings });
    }
    // The list does not wait for them: the next view has their marks.
    reflection.look_later(app.view(), shown.iter().map(|one| one.stored.clone()).collect());
    Ok(shown)
}

/// The live sessions that match the filter. Only recently active sessions are read, so the size of
/// the archive does not matter.
async fn live<S: Store>(
    app: &App<S>,
    filter: &SessionFilter,
    now: Timestamp,
) -> Result<Vec<ListedSession>, StoreError> {
    let lately = (now - MAX_SILENCE).as_millisecond();
    let scope = filter.scope();
    let filter = SessionFilter {
        since: Some(filter.since.map_or(lately, |since| since.max(lately))),
        after: None,
        limit: None,
        ..filter.clone()
    };
    let found = app.view().sessions(filter).await?;
    let mut found = with_activity(app, found, scope).await?;
    found.retain(ListedSession::is_live);
    // Stable: the newest of each kind stay in order.
    found.sort_by_key(|listed| Activity::order(listed.activity.as_ref()));
    Ok(found)
}

pub async fn sessions<S: Store>(
    State(app): State<Arc<App<S>>>,
    UrlParams(params): UrlParams<ListParams>,
    headers: HeaderMap,
) -> Page {
    // A kind of parts or a tool without words: the newest of them.
    if params.is_search() {
        return search::search(&app, params.words().unwrap_or_default(), &params).await;
    }
    let now = Timestamp::now();
    let filter = params.filter(now, PAGE_SIZE)?;
    let (facets, choices) = choices(&app, &filter, now).await?;
    if facets.all == 0 {
        return Ok(html(&welcome::template::welcome(&welcome::page(&app))));
    }
    let chosen = params.query();
    let scope = filter.scope();
    let live = live(&app, &filter, now).await?;
    let mut projects = None;
    let mut listed = Vec::new();
    let mut next = None;
    if params.by_project() {
        projects = Some(by_project(&app, &filter, &facets, &live).await?);
    } else {
        let found = app.view().sessions(filter).await?;
        next = next_cursor(&found).map(|after| chosen.clone().with("after", Some(&after)).text());
        listed = found;
        listed.retain(|stored| live.iter().all(|live| live.stored.row != stored.row));
    }
    let listed = with_activity(&app, listed, scope).await?;
    let shown = template::SessionsPage {
        live: live.iter().map(ListedSession::row).collect(),
        rows: listed.iter().map(ListedSession::row).collect(),
        projects: projects.as_ref().map(|projects| {
            projects
                .iter()
                .map(|(path, sessions, rows)| template::Project {
                    path,
                    sessions: *sessions,
                    rows: rows.iter().map(ListedSession::row).collect(),
                })
                .collect()
        }),
        next,
        budgets: budget_warnings(&app).await?,
        chosen: &chosen,
        choices: &choices,
        sum: template::Sum {
            sessions: facets.sessions,
            sub_agents: facets.sub_agents,
            errors: facets.errors,
            usage: facets.usage,
            cost_usd: facets.cost_usd,
            is_estimated: facets.is_estimated,
        },
        prices: &app.settings.prices,
        may_drive: app.auth.is_driver(&headers),
    };
    Ok(html(&template::sessions(&shown)))
}

/// The budgets that are nearly spent.
async fn budget_warnings<S: Store>(app: &App<S>) -> Result<Vec<BudgetUse>, StoreError> {
    let Settings { prices, budgets, .. } = &app.settings;
    warnings(&app.view(), budgets, prices, &Zoned::now()).await
}

type ProjectSessions = (String, u64, Vec<ListedSession>);

/// The newest sessions of the most recently active projects. Live sessions stand above them.
async fn by_project<S: Store>(
    app: &App<S>,
    filter: &SessionFilter,
    facets: &FacetCounts,
    live: &[ListedSession],
) -> Result<Vec<ProjectSessions>, StoreError> {
    let mut projects: Vec<_> = facets.projects.iter().collect();
    projects.retain(|project| {
        filter.project.as_ref().is_none_or(|params| project.path.contains(params.as_str()))
    });
    projects.sort_by_key(|project| std::cmp::Reverse(project.last));
    let mut found = Vec::new();
    for project in projects.into_iter().take(MAX_PROJECTS) {
        let filter = SessionFilter {
            project: Some(project.path.clone()),
            limit: Some(SESSIONS_PER_PROJECT + live.len() as u64),
            ..filter.clone()
        };
        let scope = filter.scope();
        let mut rows = app.view().sessions(filter).await?;
        rows.retain(|stored| live.iter().all(|live| live.stored.row != stored.row));
        rows.truncate(SESSIONS_PER_PROJECT as usize);
        let rows = with_activity(app, rows, scope).await?;
        found.push((project.path.clone(), project.sessions, rows));
    }
    Ok(found)
}

/// The cursor after a full page.
fn next_cursor(found: &[StoredSession]) -> Option<String> {
    let last = found.last().filter(|_| found.len() as u64 == PAGE_SIZE)?;
    let started = last.summary.started.map(Timestamp::as_millisecond);
    Some(encode_cursor(&(started, last.summary.session.id)))
}

/// The next rows, for an open page.
pub async fn rows<S: Store>(
    State(app): State<Arc<App<S>>>,
    UrlParams(params): UrlParams<ListParams>,
) -> Page {
    let filter = params.filter(Timestamp::now(), PAGE_SIZE)?;
    let before = filter.after.and_then(|(started, _)| Timestamp::from_millisecond(started?).ok());
    let scope = filter.scope();
    let found = app.view().sessions(filter).await?;
    let next = next_cursor(&found).map(|after| params.query().with("after", Some(&after)).text());
    let shown = with_activity(&app, found, scope).await?;
    let rows: Vec<template::ListRow<'_>> = shown.iter().map(ListedSession::row).collect();
    Ok(html(&template::more(&rows, &app.settings.prices, before, next.as_deref())))
}

/// Sessions whose title matches the words typed so far; the newest ones without words.
pub async fn suggestions<S: Store>(
    State(app): State<Arc<App<S>>>,
    UrlParams(params): UrlParams<ListParams>,
) -> Page {
    let found;
    if let Some(words) = params.words() {
        let begun: Vec<String> = words
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(|word| format!("{word}*"))
            .collect();
        let request = SearchRequest {
            kind: Some("title".to_owned()),
            limit: MAX_SUGGESTIONS,
            ..SearchRequest::new(&begun.join(" "))
        };
        let hits = app.view().search(request).await?.hits;
        let ids = hits.iter().map(|hit| hit.session).collect();
        found = app.view().sessions_by_id(ids).await?;
    } else {
        let limit = Some(MAX_SUGGESTIONS as u64);
        let newest = SessionFilter { limit, without_agents: true, ..SessionFilter::default() };
        found = app.view().sessions(newest).await?;
    }
    let rows: Vec<template::ListRow<'_>> = found
        .iter()
        .map(|stored| template::ListRow {
            summary: &stored.summary,
            sub_agent: false,
            activity: None,
            scope: UsageScope::WithAgents,
            findings: 0,
        })
        .collect();
    Ok(html(&template::suggestions(&rows)))
}

/// The filter menus with their counts.
async fn choices<S: Store>(
    app: &App<S>,
    filter: &SessionFilter,
    now: Timestamp,
) -> Result<(FacetCounts, Vec<FilterMenu>), StoreError> {
    let request = FacetsRequest {
        filter: filter.clone(),
        times: SINCE_OPTIONS.iter().filter_map(|time| parse_time_at(time, now).ok()).collect(),
        prices: app.settings.prices.clone(),
    };
    let facets = app.view().facets(request).await?;
    let plain = |list: &[(String, u64)]| -> Vec<FilterOption> {
        list.iter()
            .map(|(value, count)| FilterOption {
                value: value.clone(),
                label: value.clone(),
                count: Some(*count),
            })
            .collect()
    };
    let times = SINCE_OPTIONS.iter().zip(&facets.times).map(|(time, count)| FilterOption {
        value: (*time).to_owned(),
        label: since_label(time),
        count: Some(*count),
    });
    let choices = vec![
        FilterMenu {
            name: "agent",
            label: "Agent",
            any: "All agents",
            list: plain(&facets.agents),
        },
        FilterMenu {
            name: "project",
            label: "Project",
            any: "All projects",
            list: facets.projects.iter().map(project).collect(),
        },
        FilterMenu {
            name: "model",
            label: "Model",
            any: "All models",
            list: plain(&facets.models),
        },
        FilterMenu { name: "since", label: "Time", any: "Any time", list: times.collect() },
        FilterMenu { name: "tag", label: "Tag", any: "All tags", list: plain(&facets.tags) },
    ];
    Ok((facets, choices))
}

fn project(project: &unspool_store::facets::ProjectFacet) -> FilterOption {
    FilterOption {
        value: project.path.clone(),
        label: project.path.clone(),
        count: Some(project.sessions),
    }
}

/// The filter menus without counts, for the search and stats pages.
pub async fn uncounted_filters<S: Store>(app: &App<S>) -> Result<Vec<FilterMenu>, StoreError> {
    let facets = app.view().facets(FacetsRequest::default()).await?;
    let bare =
        |value: &String| FilterOption { value: value.clone(), label: value.clone(), count: None };
    let times = SINCE_OPTIONS.iter().map(|time| FilterOption {
        value: (*time).to_owned(),
        label: since_label(time),
        count: None,
    });
    Ok(vec![
        FilterMenu {
            name: "agent",
            label: "Agent",
            any: "All agents",
            list: facets.agents.iter().map(|(agent, _)| bare(agent)).collect(),
        },
        FilterMenu {
            name: "project",
            label: "Project",
            any: "All projects",
            list: facets.projects.iter().map(|project| bare(&project.path)).collect(),
        },
        FilterMenu { name: "since", label: "Time", any: "Any time", list: times.collect() },
    ])
}
