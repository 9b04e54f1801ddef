//! What a load balancer or a service manager asks: does the process answer, and can it read the
//! archive? Both need no login and say nothing about the archive.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tokio::time::timeout;
use tracing::warn;
use unspool_model::id::SessionId;
use unspool_store::store::{Store, View};

use crate::App;
use crate::problem::Problem;

pub const HEALTHY: &str = "/healthz";
pub const READY: &str = "/readyz";

/// An archive that takes longer for one row makes a page that nobody waits for.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// The process accepts connections and answers.
pub async fn healthy() -> &'static str {
    "ok\n"
}

/// The archive can be read now.
pub async fn ready<S: Store>(State(app): State<Arc<App<S>>>) -> Response {
    // There is no such session: the answer depends on the database alone.
    let nothing = SessionId::of("", "");
    let why = match timeout(READ_TIMEOUT, app.view().session(nothing)).await {
        Ok(Ok(_)) => return "ok\n".into_response(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer in {} seconds", READ_TIMEOUT.as_secs()),
    };
    warn!(%why, "the archive cannot be read");
    // The reason may name a path or a host, and whoever asks is not logged in.
    let what = "the archive cannot be read; start the server with `--log FILE` to see why";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, what).into_response()
}
