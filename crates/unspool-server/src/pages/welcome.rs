//! The page of an empty archive, and the demo that it offers.

pub mod template;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header::ACCEPT;
use axum::response::{IntoResponse, Response};
use unspool_store::store::Store;

use super::html;
use crate::App;
use crate::problem::Problem;
use template::Demo;
use template::SearchedFolder;
use template::WelcomePage;

/// Opens the demo and returns its URL, or why it cannot be opened.
pub type OpenDemo =
    Box<dyn Fn() -> Pin<Box<dyn Future<Output = Result<String, String>> + Send>> + Send + Sync>;

/// What the binary provides for the empty-archive page: the searched folders, and how to open the
/// demo. The demo has its own archive, port and token, so it never mixes with this archive.
pub struct Onboarding {
    pub looked: Box<dyn Fn() -> Vec<SearchedFolder> + Send + Sync>,
    pub demo: Option<OpenDemo>,
}

pub fn page<S: Store>(app: &App<S>) -> WelcomePage {
    let onboarding = app.onboarding.get();
    let demo = onboarding.is_some_and(|onboarding| onboarding.demo.is_some());
    WelcomePage {
        looked: onboarding.map(|onboarding| (onboarding.looked)()).unwrap_or_default(),
        demo: if demo { Demo::Offered } else { Demo::None },
    }
}

/// Opens the demo. Scripts receive its URL as JSON. Without scripts the browser gets a page with a
/// link, since `form-action` forbids a redirect to another origin.
pub async fn demo<S: Store>(State(app): State<Arc<App<S>>>, headers: HeaderMap) -> Response {
    let Some(open) = app.onboarding.get().and_then(|onboarding| onboarding.demo.as_ref()) else {
        return Problem::new(StatusCode::NOT_FOUND, "no demo is available here").into_response();
    };
    let wants_json = headers
        .get(ACCEPT)
        .is_some_and(|accept| accept.as_bytes().starts_with(b"application/json"));
    match open().await {
        Err(error) => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error).into_response(),
        Ok(address) if wants_json => {
            axum::Json(serde_json::json!({ "address": address })).into_response()
        }
        Ok(address) => html(&template::demo(&address)).into_response(),
    }
}
