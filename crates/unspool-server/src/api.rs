//! The REST API: the JSON of the command line (`--json`) under the same names. The routes of
//! `edits`, `adaptations` and `proposals` write; all others read.
//!
//! `route` is the table of all routes, `request_params` validates a request against it, `response`
//! is what handlers return. The other files are the handlers.

mod adaptations;
mod archive;
mod changes;
mod chat;
mod edits;
mod effect;
mod findings;
mod history;
mod openapi;
mod parameter;
mod prompts;
mod proposals;
mod request_params;
mod response;
mod route;
mod schema;
mod sessions;
mod stream;
mod turns;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::routing::{MethodRouter, any, get};
use tokio::task::spawn_blocking;
use unspool_store::blocking::block_on;
use unspool_store::store::{Store, StoredSession, View};

use crate::App;
use crate::problem::Problem;
use request_params::RequestParams;
use route::{Endpoint, ROUTES, Route};

pub use adaptations::{Adaptations, ProjectParam, facts_of, of as adaptations_of};
pub use edits::change;
pub use effect::effect_of;
pub use openapi::{openapi, table};
pub use request_params::{etag_matches, percent_encode};
pub use response::ApiResponse;
pub use schema::session_schema;
pub use sessions::export_response;
pub use stream::body_written_by;

/// A route for every row of the table; everything else is 404. `live` handles the WebSocket.
pub fn router<S: Store>(live: MethodRouter<Arc<App<S>>>) -> Router<Arc<App<S>>> {
    let mut router = Router::new();
    for route in ROUTES {
        let handler = if route.endpoint == Endpoint::Live {
            live.clone()
        } else {
            get(async move |State(app): State<Arc<App<S>>>, request: Request| {
                respond(route, app, request).await
            })
        };
        let handler = match route.path == edits::PATH {
            true => handler.post(edits::edit::<S>),
            false => match route.path {
                adaptations::LIST => handler.post(adaptations::reload::<S>),
                proposals::PATH => handler.post(proposals::decide::<S>),
                adaptations::ONE => {
                    handler.put(adaptations::change::<S>).patch(adaptations::change::<S>)
                }
                _ => handler,
            },
        };
        router = router.route(route.path, handler);
    }
    router
        .route("/api", any(not_found))
        .route("/api/", any(not_found))
        .route("/api/{*rest}", any(not_found))
}

async fn not_found() -> Problem {
    Problem::not_found("there is no such route; /api/openapi.json lists all routes")
}

async fn respond<S: Store>(
    route: &'static Route,
    app: Arc<App<S>>,
    request: Request,
) -> Result<ApiResponse, Problem> {
    let (parts, _) = request.into_parts();
    let params = RequestParams::of(route, parts).await?;
    if !route.endpoint.has_parts() {
        return handle(route.endpoint, &app, &params).await;
    }
    // The response may be large: it is built on a blocking thread, and few exist at once.
    let permit = app.large_responses.acquire().await;
    let building = move || block_on(handle(route.endpoint, &app, &params));
    match spawn_blocking(building).await {
        Ok(response) => Ok(response?.within(permit)),
        Err(error) => Err(Problem::internal(format!("cannot build the response ({error})"))),
    }
}

async fn handle<S: Store>(
    endpoint: Endpoint,
    app: &Arc<App<S>>,
    params: &RequestParams,
) -> Result<ApiResponse, Problem> {
    match endpoint {
        Endpoint::Sessions => sessions::list(app, params).await,
        Endpoint::Session => sessions::one(app, params).await,
        Endpoint::Turns => turns::list(app, params).await,
        Endpoint::Turn => turns::one(app, params).await,
        Endpoint::TurnParts => turns::parts(app, params).await,
        Endpoint::Part => turns::part(app, params).await,
        Endpoint::Messages => turns::messages(app, params).await,
        Endpoint::Groups => history::groups(app, params).await,
        Endpoint::ToolCalls => history::calls(app, params).await,
        Endpoint::Notes => edits::notes(app, params).await,
        Endpoint::Changes => changes::one(app, params).await,
        Endpoint::Commits => changes::commits(app, params).await,
        Endpoint::Prompts => prompts::many(app, params).await,
        Endpoint::SessionFindings => findings::one(app, params).await,
        Endpoint::Findings => findings::many(app, params).await,
        Endpoint::Adaptations => adaptations::list(app, params).await,
        Endpoint::Adaptation => adaptations::one(app, params).await,
        Endpoint::AdaptationPreview => adaptations::preview(app, params).await,
        Endpoint::AdaptationHistory => adaptations::history(app, params).await,
        Endpoint::AdaptationSeen => adaptations::seen(app, params).await,
        Endpoint::AdaptationEffect => effect::effect(app, params).await,
        Endpoint::Proposals => proposals::list(app, params).await,
        Endpoint::Export => sessions::export(app, params).await,
        Endpoint::Chat => chat::stream(app, params).await,
        Endpoint::Search => archive::search(app, params).await,
        Endpoint::Stats => archive::stats(app, params).await,
        Endpoint::StatsCsv => archive::stats_csv(app, params).await,
        Endpoint::Document | Endpoint::Live => ApiResponse::json(params, &openapi()),
    }
}

/// The session with this id, unique prefix or agent's own id. 409 if several match.
pub async fn find<S: Store>(app: &App<S>, id: &str) -> Result<StoredSession, Problem> {
    let mut found = app.view().find(id.to_owned()).await?;
    match found.len() {
        1 => found.pop().ok_or_else(|| Problem::no_session(id)),
        0 => Err(Problem::no_session(id)),
        count => {
            let what = format!("{id} matches {count} sessions; use a longer id");
            Err(Problem::new(StatusCode::CONFLICT, what))
        }
    }
}
