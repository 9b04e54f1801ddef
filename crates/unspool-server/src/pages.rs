//! The HTML pages. Each is a handler that reads the archive, `pages/<name>.rs`, and the template
//! that it fills, `pages/<name>/template.rs`. `shell` is the frame of all pages.

mod chart;
pub mod filters;
mod part;
pub mod search;
pub mod session;
pub mod sessions;
mod shell;
pub mod stats;
pub mod thoughtflow;
pub mod welcome;

use crate::assets;
use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use maud::Markup;

use crate::api::etag_matches;
use crate::problem::Problem;

pub use part::{copy_markdown, find, raw};
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

impl IntoResponse for ErrorPage {
    fn into_response(self) -> Response {
        let title = self.0.status().canonical_reason().unwrap_or("Error");
        let next = "Go back to the list, or run `unspool doctor`.";
        (self.0.status(), html(&shell::trouble(title, self.0.detail(), next))).into_response()
    }
}

fn html(page: &Markup) -> Html<String> {
    Html(page.0.clone())
}

pub async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some(asset) = assets::find(&name) else {
        return Problem::new(StatusCode::NOT_FOUND, "no such asset; reload the page")
            .into_response();
    };
    let digest = [(ETAG, asset.digest.as_str()), (CACHE_CONTROL, "no-cache")];
    if etag_matches(&headers, &asset.digest) {
        return (StatusCode::NOT_MODIFIED, digest).into_response();
    }
    (digest, [(CONTENT_TYPE, asset.media_type)], asset.content.as_str()).into_response()
}

pub async fn not_found() -> Response {
    Problem::new(StatusCode::NOT_FOUND, "nothing here; / lists all sessions").into_response()
}
