//! The page of one session, loaded window by window.

pub mod template;

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::header::ETAG;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use jiff::Timestamp;
use serde::Deserialize;
use unspool_export::html::session_head::HeadFigures;
use unspool_model::id::{Id, PartId};
use unspool_model::price::Prices;
use unspool_model::session::{SessionState, Turn};
use unspool_query::burn_rate::burn_rate;
use unspool_query::context::context;
use unspool_query::reader::resume;
use unspool_query::window::{
    Anchor, PartFilter, Position, Size, WindowRequest, WindowView, window as load_window,
};
use unspool_store::store::{Store, StoreError, StoredSession, View};
use unspool_view::present::tools::Tasks;

use super::{ErrorPage, Page, UrlParams, html};
use crate::App;
use crate::api::{etag_matches, find};
use crate::problem::Problem;

/// Selects a window of the session; its end by default.
#[derive(Debug, Default, Deserialize)]
pub struct WindowParams {
    /// From this turn on.
    turn: Option<u32>,
    /// Around this part.
    part: Option<String>,
    /// Before, after, or before in the same reasoning block.
    before: Option<String>,
    after: Option<String>,
    inside: Option<String>,
    /// From this position …
    from: Option<String>,
    /// … to this one.
    to: Option<String>,
    /// The part filter.
    only: Option<String>,
}

fn bad_request(what: &'static str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, what)
}

impl WindowParams {
    fn only(&self) -> Result<Option<PartFilter>, Problem> {
        let requested = self.only.as_deref().filter(|only| !only.is_empty());
        requested.map(str::parse).transpose().map_err(bad_request)
    }

    async fn anchor<S: Store>(
        &self,
        app: &App<S>,
        stored: &StoredSession,
    ) -> Result<Anchor, Problem> {
        let position = |text: &String| text.parse::<Position>().map_err(bad_request);
        let one = |requested: &Option<String>| requested.as_ref().map(position).transpose();
        if let Some(part) = self.part.as_deref().and_then(|part| part.parse::<Id>().ok())
            && let Some((turn, place)) =
                app.view().locate(stored.row, self.turn, PartId(part)).await?
        {
            return Ok(Anchor::Around(Position { turn, place }));
        }
        if let (Some(from), Some(to)) = (one(&self.from)?, one(&self.to)?) {
            return Ok(Anchor::Between(from, to));
        }
        let anchor = one(&self.before)?.map(Anchor::Before);
        let anchor = anchor.or(one(&self.after)?.map(Anchor::After));
        let anchor = anchor.or(one(&self.inside)?.map(Anchor::Inside));
        let turn = self.turn.map(|turn| Anchor::From(Position::start_of(turn)));
        Ok(anchor.or(turn).unwrap_or(Anchor::End))
    }
}

async fn load<S: Store>(
    app: &App<S>,
    stored: &StoredSession,
    requested: &WindowParams,
) -> Result<WindowView, Problem> {
    let anchor = requested.anchor(app, stored).await?;
    let only = requested.only()?;
    let settled = |turns: &mut [Turn]| stored.summary.settle(turns, Timestamp::now());
    let size = match anchor {
        Anchor::Before(_) | Anchor::After(_) | Anchor::Inside(_) => Size::SCROLL,
        Anchor::End | Anchor::Around(_) | Anchor::From(_) | Anchor::Between(..) => Size::default(),
    };
    let folding = app.settings.folding;
    let ask = WindowRequest { anchor, filter: only.as_ref(), size, folding };
    Ok(load_window(&app.view(), stored, ask, settled).await?)
}

/// The task list of a session.
async fn tasks<S: Store>(app: &App<S>, stored: &StoredSession) -> Result<Tasks, Problem> {
    Ok(app.view().plans(stored.row).await?.iter().collect())
}

/// What a head says about the present.
pub async fn head_figures<V: View>(
    view: &V,
    stored: &StoredSession,
    prices: &Prices,
) -> Result<HeadFigures, StoreError> {
    Ok(HeadFigures {
        notes: view.notes(stored.summary.session.id).await?,
        context: context(view, stored).await?,
        burn_rate: burn_rate(view, stored, prices, Timestamp::now()).await?,
    })
}

/// Paints a loaded window.
fn with_page<S: Store, T>(
    app: &App<S>,
    stored: &StoredSession,
    shown: &WindowView,
    prompts: &[template::Prompt],
    tasks: &Tasks,
    figures: HeadFigures,
    paint: impl FnOnce(&template::SessionPage<'_>) -> T,
) -> T {
    paint(&template::SessionPage {
        summary: &stored.summary,
        prices: &app.settings.prices,
        figures,
        is_live: stored.summary.session.state == SessionState::Live,
        seq: stored.seq,
        window: template::TranscriptWindow {
            turns: &shown.turns,
            earlier: shown.earlier.map(|position| position.to_string()),
            later: shown.later.map(|position| position.to_string()),
            prompts,
        },
        resume: resume(&stored.summary.session),
        tasks,
    })
}

pub async fn session<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(id): Path<String>,
    UrlParams(requested): UrlParams<WindowParams>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ErrorPage> {
    let stored = find(&app, &id).await?;
    // Scripts compare the address with the ids of live sessions.
    let whole = stored.summary.session.id.to_string();
    if id != whole {
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        return Ok(Redirect::temporary(&format!("/s/{whole}{query}")).into_response());
    }
    let shown = load(&app, &stored, &requested).await?;
    let prompts: Vec<template::Prompt> = app
        .view()
        .prompts(stored.row)
        .await?
        .into_iter()
        .map(|prompt| template::Prompt {
            turn: prompt.turn,
            number: prompt.number,
            said: prompt.said,
            errors: prompt.errors,
        })
        .collect();
    let may_drive = app.auth.is_driver(&headers) && stored.summary.session.parent.is_none();
    let choice = template::Choice { only: requested.only.as_deref(), may_drive };
    let tasks = tasks(&app, &stored).await?;
    let figures = head_figures(&app.view(), &stored, &app.settings.prices).await?;
    Ok(html(&with_page(&app, &stored, &shown, &prompts, &tasks, figures, |page| {
        template::session(page, &choice)
    }))
    .into_response())
}

/// The tools of a session with their counts, for the filter menu. Loaded on demand, since counting
/// reads every part.
pub async fn tools<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let stored = find(&app, &id).await?;
    let tools = app.view().tools(stored.row).await?;
    Ok(axum::Json(tools).into_response())
}

/// A window as a fragment, for an open page.
pub async fn window<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(id): Path<String>,
    UrlParams(requested): UrlParams<WindowParams>,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let stored = find(&app, &id).await?;
    let shown = load(&app, &stored, &requested).await?;
    // Only a reload needs the tasks: a page that loads more turns has them.
    let tasks = match requested.to.is_some() {
        true => tasks(&app, &stored).await?,
        false => Tasks::default(),
    };
    let figures = head_figures(&app.view(), &stored, &app.settings.prices).await?;
    let (painted, version) =
        with_page(&app, &stored, &shown, &[], &tasks, figures, template::window);
    let tag = format!("W/\"{version}\"");
    if etag_matches(&headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response());
    }
    Ok(([(ETAG, tag)], html(&painted)).into_response())
}

/// A sub-agent's session as a fragment, for the page of its parent.
pub async fn inline<S: Store>(State(app): State<Arc<App<S>>>, Path(id): Path<String>) -> Page {
    let stored = find(&app, &id).await?;
    let requested = WindowParams { turn: Some(0), ..WindowParams::default() };
    let shown = load(&app, &stored, &requested).await?;
    Ok(html(&with_page(
        &app,
        &stored,
        &shown,
        &[],
        &Tasks::default(),
        HeadFigures::default(),
        template::inline,
    )))
}
