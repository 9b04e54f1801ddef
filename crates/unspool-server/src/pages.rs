//! The pages, from the archive.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use jiff::Timestamp;
use maud::Markup;
use serde::Deserialize;
use unspool_core::present::{self, TurnView};
use unspool_core::session::Session;
use unspool_engine::family::family;
use unspool_render::{assets, page};
use unspool_store::contract::{Store, StoredSession, Window};
use unspool_store::search::SearchRequest;

use crate::App;
use crate::api::{Listing, find};
use crate::problem::Problem;
use crate::room::settle;

/// So many sessions are listed at first.
const LISTED: u64 = 200;
/// So many turns does a page show at first, and so many more at a time.
const TURNS: u32 = 20;
/// And so many behind one that is looked for.
const AFTER: u32 = 6;
/// So many hits does a search show.
const FOUND: usize = 100;

/// A page, or a page that says what went wrong.
type Page = Result<Html<String>, Trouble>;

pub struct Trouble(Problem);

impl<E: Into<Problem>> From<E> for Trouble {
    fn from(error: E) -> Trouble {
        Trouble(error.into())
    }
}

impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        let title = self.0.status().canonical_reason().unwrap_or("Trouble");
        let next = "Go back to the list, or see `unspool doctor`.";
        (self.0.status(), html(&page::trouble(title, self.0.detail(), next))).into_response()
    }
}

fn html(page: &Markup) -> Html<String> {
    Html(page.0.clone())
}

#[derive(Debug, Deserialize)]
pub struct Asked {
    q: Option<String>,
}

pub async fn sessions<S: Store>(
    State(app): State<Arc<App<S>>>,
    Query(asked): Query<Asked>,
    Query(listing): Query<Listing>,
) -> Page {
    if let Some(query) = asked.q.filter(|query| !query.trim().is_empty()) {
        return search(&app, &query, listing).await;
    }
    let found = app.store.sessions(listing.filter(LISTED)).await?;
    let rows = found
        .iter()
        .map(|StoredSession { summary, sub_agent, .. }| page::Row {
            summary,
            sub_agent: *sub_agent,
        })
        .collect();
    let shown = page::Sessions { rows, prices: &app.prices };
    Ok(html(&page::sessions(&shown)))
}

async fn search<S: Store>(app: &App<S>, query: &str, listing: Listing) -> Page {
    let request = SearchRequest {
        agent: listing.agent,
        project: listing.project,
        limit: FOUND,
        width: 240,
        ..SearchRequest::new(query)
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
        Some("No part has it as a whole word; these have it inside a longer one.")
    } else if findings.newest_first {
        Some("Many parts have it; these are the newest.")
    } else {
        None
    };
    Ok(html(&page::search(&page::Search { query, found: found.collect(), note })))
}

#[derive(Debug, Deserialize)]
pub struct Place {
    /// The turns before this one.
    before: Option<u32>,
    /// The turns around this one.
    turn: Option<u32>,
}

impl Place {
    /// The number behind the last turn that is shown.
    fn end(&self) -> Option<u32> {
        self.before.or(self.turn.map(|turn| turn.saturating_add(AFTER)))
    }
}

/// Some turns of a session, as they are shown.
struct Shown {
    views: Vec<TurnView>,
    /// The number of the turn before them.
    older: Option<u32>,
}

async fn load<S: Store>(
    app: &App<S>,
    stored: &StoredSession,
    before: Option<u32>,
) -> Result<Shown, Problem> {
    let end = before.unwrap_or(u32::MAX);
    let last = u32::try_from(stored.summary.turns).unwrap_or(u32::MAX).min(end);
    let first = last.saturating_sub(TURNS);
    let window = Window::From { number: first, count: TURNS + 1 };
    let mut turns = app.store.turns(stored.row, window).await?;
    turns.retain(|turn| turn.number < end);
    let session: &Session = &stored.summary.session;
    settle(&mut turns, stored.summary.ended);
    let family = family(&app.store, &session.agent, &turns).await?;
    let options = present::Options { family, ..present::Options::of(session) };
    let views: Vec<TurnView> = turns.iter().map(|turn| present::turn(turn, &options)).collect();
    Ok(Shown { views, older: first.checked_sub(1) })
}

pub async fn session<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(id): Path<String>,
    Query(place): Query<Place>,
) -> Page {
    let stored = find(&app, &id).await?;
    let shown = load(&app, &stored, place.end()).await?;
    let page = page::Session {
        summary: &stored.summary,
        prices: &app.prices,
        seq: stored.seq,
        turns: &shown.views,
        older: shown.older,
        resume: resume(&stored.summary.session),
    };
    Ok(html(&page::session(&page)))
}

/// Earlier turns, for a page that is open.
pub async fn turns<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(id): Path<String>,
    Query(place): Query<Place>,
) -> Page {
    let stored = find(&app, &id).await?;
    let shown = load(&app, &stored, place.before).await?;
    let id = stored.summary.session.id.to_string();
    Ok(html(&page::stretch(&id, &shown.views, shown.older)))
}

/// How to go on with a session in its agent.
fn resume(session: &Session) -> Option<String> {
    // An id is the agent's own text: only what no shell reads anything into is offered.
    let id = &session.agent_session_id;
    let plain = id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    let command = match session.agent.as_str() {
        "claude-code" => format!("claude --resume {id}"),
        "codex" => format!("codex resume {id}"),
        "opencode" => format!("opencode --session {id}"),
        "copilot" => format!("copilot --resume {id}"),
        "gemini" => format!("gemini --resume {id}"),
        _ => return None,
    };
    (plain && session.parent.is_none()).then_some(command)
}

pub async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some(asset) = assets::find(&name) else {
        return Problem::new(StatusCode::NOT_FOUND, "there is no such file").into_response();
    };
    let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let digest = [(ETAG, asset.digest.as_str()), (CACHE_CONTROL, "no-cache")];
    if known.is_some_and(|known| known.contains(&asset.digest)) {
        return (StatusCode::NOT_MODIFIED, digest).into_response();
    }
    (digest, [(CONTENT_TYPE, asset.media_type)], asset.content.as_str()).into_response()
}

pub async fn nothing() -> Response {
    Problem::new(StatusCode::NOT_FOUND, "there is nothing here; / lists all sessions")
        .into_response()
}
