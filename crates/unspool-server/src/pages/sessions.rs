//! The session list: live sessions on top, then one page of the rest; its fragments for the page
//! script, and the filters with their counts.

use std::sync::Arc;

use axum::extract::{Query, State};
use jiff::Timestamp;
use unspool_core::live::SILENCE;
use unspool_core::present::activity::Activity;
use unspool_core::session::SessionState;
use unspool_engine::reader::activity;
use unspool_render::page::{self, Choices, Offered};
use unspool_store::facets::{Facets as Counted, FacetsRequest};
use unspool_store::search::SearchRequest;
use unspool_store::store::{SessionFilter, Store, StoreError, StoredSession};

use super::{Page, html, search, welcome};
use crate::App;
use crate::asked::{Asked, since, written};

/// Sessions per page.
const LISTED: u64 = 200;
/// Limits of the view by project.
const OF_PROJECT: u64 = 5;
const PROJECTS: usize = 40;
/// Suggestions in the command palette.
const SUGGESTED: usize = 8;
/// The values of the time filter.
pub const TIMES: [&str; 3] = ["today", "7d", "30d"];

/// A session and its current activity.
struct Shown {
    stored: StoredSession,
    activity: Option<Activity>,
}

impl Shown {
    fn row(&self) -> page::Row<'_> {
        page::Row {
            summary: &self.stored.summary,
            sub_agent: self.stored.is_agent(),
            activity: self.activity.clone(),
        }
    }
}

async fn dressed<S: Store>(
    app: &App<S>,
    found: Vec<StoredSession>,
) -> Result<Vec<Shown>, StoreError> {
    let mut shown = Vec::with_capacity(found.len());
    for stored in found {
        let activity = activity(&app.store, &stored).await?;
        shown.push(Shown { stored, activity });
    }
    Ok(shown)
}

/// The live sessions that match the filter. Only recently active sessions are read, so the size of
/// the archive does not matter.
async fn live<S: Store>(
    app: &App<S>,
    filter: &SessionFilter,
    now: Timestamp,
) -> Result<Vec<Shown>, StoreError> {
    let lately = (now - SILENCE).as_millisecond();
    let filter = SessionFilter {
        since: Some(filter.since.map_or(lately, |since| since.max(lately))),
        after: None,
        limit: None,
        ..filter.clone()
    };
    let mut found = app.store.sessions(filter).await?;
    found.retain(|stored| stored.summary.session.state == SessionState::Live);
    dressed(app, found).await
}

pub async fn sessions<S: Store>(
    State(app): State<Arc<App<S>>>,
    Query(asked): Query<Asked>,
) -> Page {
    if let Some(words) = asked.words() {
        return search::search(&app, words, &asked).await;
    }
    let now = Timestamp::now();
    let filter = asked.filter(now, LISTED);
    let (counted, choices) = choices(&app, &filter, now).await?;
    if counted.all == 0 {
        return Ok(html(&page::welcome(&welcome::page(&app))));
    }
    let chosen = asked.query();
    let live = live(&app, &filter, now).await?;
    let mut projects = None;
    let mut listed = Vec::new();
    let mut next = None;
    if asked.by_project() {
        projects = Some(by_project(&app, &filter, &counted).await?);
    } else {
        let found = app.store.sessions(filter).await?;
        next = behind(&found).map(|after| chosen.clone().with("after", Some(&after)).text());
        listed = found;
        listed.retain(|stored| stored.summary.session.state != SessionState::Live);
    }
    let listed = dressed(&app, listed).await?;
    let shown = page::Sessions {
        live: live.iter().map(Shown::row).collect(),
        rows: listed.iter().map(Shown::row).collect(),
        projects: projects.as_ref().map(|projects| {
            projects
                .iter()
                .map(|(path, sessions, rows)| page::Project {
                    path,
                    sessions: *sessions,
                    rows: rows.iter().map(Shown::row).collect(),
                })
                .collect()
        }),
        next,
        chosen: &chosen,
        choices: &choices,
        sum: page::Sum {
            sessions: counted.sessions,
            sub_agents: counted.sub_agents,
            errors: counted.errors,
            usage: counted.usage,
            cost_usd: counted.cost_usd,
            is_estimated: counted.is_estimated,
        },
        prices: &app.prices,
    };
    Ok(html(&page::sessions(&shown)))
}

type OfProject = (String, u64, Vec<Shown>);

/// The newest sessions of the most recently active projects.
async fn by_project<S: Store>(
    app: &App<S>,
    filter: &SessionFilter,
    counted: &Counted,
) -> Result<Vec<OfProject>, StoreError> {
    let mut projects: Vec<_> = counted.projects.iter().collect();
    projects.retain(|project| {
        filter.project.as_ref().is_none_or(|asked| project.path.contains(asked.as_str()))
    });
    projects.sort_by_key(|project| std::cmp::Reverse(project.last));
    let mut found = Vec::new();
    for project in projects.into_iter().take(PROJECTS) {
        let filter = SessionFilter {
            project: Some(project.path.clone()),
            limit: Some(OF_PROJECT),
            ..filter.clone()
        };
        let rows = dressed(app, app.store.sessions(filter).await?).await?;
        found.push((project.path.clone(), project.sessions, rows));
    }
    Ok(found)
}

/// The cursor after a full page.
fn behind(found: &[StoredSession]) -> Option<String> {
    let last = found.last().filter(|_| found.len() as u64 == LISTED)?;
    let started = last.summary.started.map(Timestamp::as_millisecond);
    Some(written(&(started, last.summary.session.id)))
}

/// The next rows, for an open page.
pub async fn rows<S: Store>(State(app): State<Arc<App<S>>>, Query(asked): Query<Asked>) -> Page {
    let filter = asked.filter(Timestamp::now(), LISTED);
    let before = filter.after.and_then(|(started, _)| Timestamp::from_millisecond(started?).ok());
    let found = app.store.sessions(filter).await?;
    let next = behind(&found).map(|after| asked.query().with("after", Some(&after)).text());
    let shown = dressed(&app, found).await?;
    let rows: Vec<page::Row<'_>> = shown.iter().map(Shown::row).collect();
    Ok(html(&page::more(&rows, &app.prices, before, next.as_deref())))
}

/// Sessions whose title matches the words typed so far; the newest ones without words.
pub async fn suggested<S: Store>(
    State(app): State<Arc<App<S>>>,
    Query(asked): Query<Asked>,
) -> Page {
    let mut found = Vec::new();
    if let Some(words) = asked.words() {
        let begun: Vec<String> = words
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(|word| format!("{word}*"))
            .collect();
        let request = SearchRequest {
            kind: Some("title".to_owned()),
            limit: SUGGESTED,
            ..SearchRequest::new(&begun.join(" "))
        };
        for hit in app.store.search(request).await?.hits {
            found.extend(app.store.find(hit.session.to_string()).await?.pop());
        }
    } else {
        let limit = Some(SUGGESTED as u64);
        let newest = SessionFilter { limit, without_agents: true, ..SessionFilter::default() };
        found = app.store.sessions(newest).await?;
    }
    let rows: Vec<page::Row<'_>> = found
        .iter()
        .map(|stored| page::Row { summary: &stored.summary, sub_agent: false, activity: None })
        .collect();
    Ok(html(&page::suggestions(&rows)))
}

/// The filter menus with their counts.
async fn choices<S: Store>(
    app: &App<S>,
    filter: &SessionFilter,
    now: Timestamp,
) -> Result<(Counted, Vec<Choices>), StoreError> {
    let request = FacetsRequest {
        filter: filter.clone(),
        times: TIMES.iter().filter_map(|time| since(time, now)).collect(),
        prices: app.prices.clone(),
    };
    let counted = app.store.facets(request).await?;
    let plain = |list: &[(String, u64)]| -> Vec<Offered> {
        list.iter()
            .map(|(value, count)| Offered {
                value: value.clone(),
                label: value.clone(),
                count: Some(*count),
            })
            .collect()
    };
    let times = TIMES.iter().zip(&counted.times).map(|(time, count)| Offered {
        value: (*time).to_owned(),
        label: page::since_label(time),
        count: Some(*count),
    });
    let choices = vec![
        Choices { name: "agent", label: "Agent", any: "All agents", list: plain(&counted.agents) },
        Choices {
            name: "project",
            label: "Project",
            any: "All projects",
            list: counted.projects.iter().map(project).collect(),
        },
        Choices { name: "model", label: "Model", any: "All models", list: plain(&counted.models) },
        Choices { name: "since", label: "Time", any: "Any time", list: times.collect() },
        Choices { name: "tag", label: "Tag", any: "All tags", list: plain(&counted.tags) },
    ];
    Ok((counted, choices))
}

fn project(project: &unspool_store::facets::ProjectFacet) -> Offered {
    Offered {
        value: project.path.clone(),
        label: project.path.clone(),
        count: Some(project.sessions),
    }
}

/// The filter menus without counts, for the search and stats pages.
pub async fn plain_choices<S: Store>(app: &App<S>) -> Result<Vec<Choices>, StoreError> {
    let counted = app.store.facets(FacetsRequest::default()).await?;
    let bare = |value: &String| Offered { value: value.clone(), label: value.clone(), count: None };
    let times = TIMES.iter().map(|time| Offered {
        value: (*time).to_owned(),
        label: page::since_label(time),
        count: None,
    });
    Ok(vec![
        Choices {
            name: "agent",
            label: "Agent",
            any: "All agents",
            list: counted.agents.iter().map(|(agent, _)| bare(agent)).collect(),
        },
        Choices {
            name: "project",
            label: "Project",
            any: "All projects",
            list: counted.projects.iter().map(|project| bare(&project.path)).collect(),
        },
        Choices { name: "since", label: "Time", any: "Any time", list: times.collect() },
    ])
}
