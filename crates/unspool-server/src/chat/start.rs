//! Starts the agent of a chat for a page.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use unspool_live::client::list;
use unspool_live::open::{ChatRequest, OpenedChat};
use unspool_model::id::SessionId;
use unspool_store::facets::FacetsRequest;
use unspool_store::store::{Store, View};

use super::{Chats, authorized};
use crate::App;
use crate::problem::Problem;

/// The chats that may run at once.
const MAX_CHATS: usize = 8;
/// The time between two starts.
const START_INTERVAL: Duration = Duration::from_secs(2);

/// What a page wants to start.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum StartRequest {
    New {
        agent: String,
        project: String,
    },
    /// Goes on with a session of the archive.
    Resume {
        session: String,
    },
    /// Starts the agent of a chat again that has ended.
    Restart {
        chat: String,
        session: Option<String>,
        agent: String,
    },
}

/// Starts a chat, or finds the one that runs. Returns its id.
pub async fn start<S: Store>(
    State(app): State<Arc<App<S>>>,
    headers: HeaderMap,
    request: Result<axum::Json<StartRequest>, JsonRejection>,
) -> Result<Response, Problem> {
    let chats = authorized(&app, &headers)?;
    let axum::Json(request) =
        request.map_err(|error| Problem::new(error.status(), error.body_text()))?;
    let request = match request {
        StartRequest::New { agent, project } => {
            let project = allowed_project(&app, chats, &project).await?;
            ChatRequest::New { agent: find_agent(chats, agent)?, project }
        }
        StartRequest::Resume { session } => {
            let stored = crate::api::find(&app, &session).await?;
            ChatRequest::Resume(stored.summary.session.id)
        }
        StartRequest::Restart { chat, session, agent } => {
            let id = SessionId::of(&agent, session.as_deref().unwrap_or_default());
            ChatRequest::Restart { chat, session, id }
        }
    };
    limit(chats)?;
    let opener = chats.opener.clone();
    let opened = tokio::task::spawn_blocking(move || opener(request)).await;
    let opened = opened.unwrap_or_else(|error| Err(error.to_string()));
    match opened {
        Ok(OpenedChat::Chat(_, folder)) => {
            Ok(axum::Json(json!({ "chat": folder.id })).into_response())
        }
        Ok(OpenedChat::Session { .. }) => {
            Err(Problem::new(StatusCode::CONFLICT, "no chat runs for this session"))
        }
        Err(why) => Err(Problem::new(StatusCode::CONFLICT, why)),
    }
}

/// A script that a page was tricked into must not start agents without end.
fn limit(chats: &Chats) -> Result<(), Problem> {
    let too_many = |what: String| Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, what));
    let running = list(&chats.folders)
        .into_iter()
        .filter(|chat| chat.live && !chat.state.answers_only)
        .count();
    if running >= MAX_CHATS {
        return too_many(format!("{running} chats run already; end one of them first"));
    }
    let mut last = chats.last_start.lock().unwrap_or_else(PoisonError::into_inner);
    if last.is_some_and(|last| last.elapsed() < START_INTERVAL) {
        return too_many("an agent was started just now; try again in 2 seconds".to_owned());
    }
    *last = Some(Instant::now());
    Ok(())
}

fn find_agent(chats: &Chats, agent: String) -> Result<String, Problem> {
    let agents = (chats.agents)().map_err(Problem::internal)?;
    if agents.iter().any(|known| known.name == agent) {
        return Ok(agent);
    }
    let what = "there is no agent with this name; `unspool chat --agents` lists them";
    Err(Problem::bad_request(what))
}

/// The folder that a page named, if an agent may work there.
async fn allowed_project<S: Store>(
    app: &App<S>,
    chats: &Chats,
    project: &str,
) -> Result<PathBuf, Problem> {
    let refused = |what: &str| Problem::new(StatusCode::FORBIDDEN, what);
    let wanted = Path::new(project).canonicalize().ok().filter(|folder| folder.is_dir());
    let Some(wanted) = wanted else { return Err(Problem::bad_request("there is no such folder")) };
    let below = |root: &PathBuf| root.canonicalize().is_ok_and(|root| wanted.starts_with(root));
    if chats.roots.iter().any(below) {
        return Ok(wanted);
    }
    let known = projects(app).await?;
    let is_it = |path: &String| Path::new(path).canonicalize().is_ok_and(|path| path == wanted);
    if known.iter().any(is_it) {
        return Ok(wanted);
    }
    Err(refused(
        "an agent may work only in folders of the archive's sessions, and below `roots` of [chat] in \
         the configuration",
    ))
}

/// The projects of the archive whose folders are there, the one used last first.
pub async fn projects<S: Store>(app: &App<S>) -> Result<Vec<String>, Problem> {
    let facets = app.view().facets(FacetsRequest::default()).await?;
    let mut projects = facets.projects;
    projects.sort_by_key(|project| std::cmp::Reverse(project.last));
    let paths = projects.into_iter().map(|project| project.path);
    Ok(paths.filter(|path| Path::new(path).is_dir()).collect())
}
