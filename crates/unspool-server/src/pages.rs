//! The HTML pages. Each is a handler that reads the archive, `pages/<name>.rs`, and the template
//! that it fills, `pages/<name>/template.rs`. `shell` is the frame of all pages.

pub mod adaptations;
pub mod beside;
pub mod changes;
mod chart;
pub mod compare;
pub mod filters;
pub mod findings;
mod guest;
#[cfg(unix)]
pub mod new_chat;
mod part;
pub mod prompts;
pub mod search;
pub mod session;
pub mod sessions;
mod shell;
pub mod stats;
pub mod thoughtflow;
pub mod welcome;

use crate::assets;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use maud::Markup;
use serde::de::DeserializeOwned;
use std::error::Error as _;

use crate::api::etag_matches;
use crate::problem::Problem;

pub use beside::beside;
pub use changes::changes;
pub use compare::compare;
pub use guest::guest;
#[cfg(unix)]
pub use new_chat::new_chat;
pub use part::{copy_markdown, find, raw};
pub use prompts::prompts;
pub use search::found;
pub use session::{inline, session, tools, window};
pub use sessions::{rows, sessions, suggestions};
pub use stats::stats;
pub use thoughtflow::{artifact, thoughtflow};
pub use welcome::template::SearchedFolder;
pub use welcome::{Onboarding, OpenDemo, demo};

/// A page, or an error page.
type Page = Result<Html<String>, ErrorPage>;

pub struct ErrorPage(Problem);

impl<E: Into<Problem>> From<E> for ErrorPage {
    fn from(error: E) -> ErrorPage {
        ErrorPage(error.into())
    }
}

/// The parameters in the URL of a page. Wrong ones are answered with an error page.
pub struct UrlParams<T>(pub T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for UrlParams<T> {
    type Rejection = ErrorPage;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ErrorPage> {
        let params = Query::try_from_uri(&parts.uri);
        let Query(params) = params.map_err(|error| {
            let why = error.source().map(ToString::to_string).unwrap_or_default();
            Problem::bad_request(format!("the URL has an invalid parameter: {why}"))
        })?;
        Ok(UrlParams(params))
    }
}

impl IntoResponse for ErrorPage {
    fn into_response(self) -> Response {
        let title = self.0.status().canonical_reason().unwrap_or("Error");
        let next = match self.0.status() {
            StatusCode::NOT_FOUND => "The link may be incomplete, or the session was deleted.",
            StatusCode::BAD_REQUEST | StatusCode::CONFLICT => "Correct the address of this page.",
            _ => "If this happens again, run `unspool doctor`.",
        };
        (self.0.status(), html(&shell::trouble(title, self.0.detail(), next))).into_response()
    }
}

fn html(page: &Markup) -> Html<String> {
    Html(page.0.clone())
}

pub async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some(asset) = assets::find(&name) else {
        return Problem::new(
            StatusCode::NOT_FOUND,
            "there is no asset with this name; reload the page",
        )
        .into_response();
    };
    let digest = [(ETAG, asset.digest.as_str()), (CACHE_CONTROL, "no-cache")];
    if etag_matches(&headers, &asset.digest) {
        return (StatusCode::NOT_MODIFIED, digest).into_response();
    }
    (digest, [(CONTENT_TYPE, asset.media_type)], asset.content.as_str()).into_response()
}

/// No page has this address. A browser gets a page that says so.
pub async fn not_found(headers: HeaderMap) -> Response {
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    match accepted.is_some_and(|accepted| accepted.contains("text/html")) {
        true => ErrorPage(Problem::not_found("there is no page with this address")).into_response(),
        false => Problem::not_found("there is no page with this address; / lists all sessions")
            .into_response(),
    }
}
