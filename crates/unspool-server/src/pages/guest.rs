//! The page of a guest: one session with its sub-agents, through the same redacting export as every
//! file that leaves (law 12). It is rendered on each request and links to nothing of this server.
//! While the session is live, browsers load it again.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFRESH};
use axum::http::{Response as HttpResponse, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use unspool_export::export;
use unspool_export::project::{Audience, Options, Projection, html_policy};
use unspool_model::session::SessionState;
use unspool_store::store::{Store, View};

use crate::App;
use crate::api::body_written_by;
use crate::problem::Problem;
use crate::shares::Share;

/// The same for every link that does not work, so that nobody learns which ones existed.
const NO_LINK: &str = "This link does not work: it has expired, was revoked, or is incomplete. \
    Ask whoever sent it for a new one.\n";

/// How often the page of a live session loads itself again. A guest has no socket.
const LIVE_REFRESH_SECONDS: u32 = 15;

pub async fn guest<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(token): Path<String>,
) -> Result<Response, Problem> {
    let Some(share) = app.auth.share(&token, Timestamp::now()) else {
        return Ok((StatusCode::NOT_FOUND, NO_LINK).into_response());
    };
    page(&app, &share).await
}

async fn page<S: Store>(app: &Arc<App<S>>, share: &Share) -> Result<Response, Problem> {
    let id = share.session;
    let found = app.view().find(id.to_string()).await?;
    let found = found.into_iter().find(|stored| stored.summary.session.id == id);
    let (Some(stored), Some(projection)) = (found, Projection::named("html")) else {
        return Ok((StatusCode::NOT_FOUND, NO_LINK).into_response());
    };
    let prices = app.settings.prices.clone();
    let options = Options {
        prices,
        notes: share.notes,
        turns: share.turns,
        audience: Audience::Guest,
        ..Options::default()
    };
    let is_live = stored.summary.session.state == SessionState::Live;
    let (view, rules) = (app.view(), app.settings.rules.clone());
    let permit = app.guest_pages.acquire().await;
    let body = body_written_by(move |out| {
        let written = export::write(&view, &stored, projection, &options, Some(&rules), out);
        drop(permit);
        written.map(drop).map_err(std::io::Error::other)
    });
    let mut response = HttpResponse::builder()
        .header(CONTENT_TYPE, projection.media_type)
        .header(CONTENT_SECURITY_POLICY, format!("{}; frame-ancestors 'none'", html_policy()))
        // Revoked is revoked: no cache keeps the page.
        .header(CACHE_CONTROL, "no-store")
        .header("x-robots-tag", "noindex, nofollow");
    if is_live {
        response = response.header(REFRESH, LIVE_REFRESH_SECONDS);
    }
    response.body(body).map_err(|error| Problem::internal(error.to_string()))
}
