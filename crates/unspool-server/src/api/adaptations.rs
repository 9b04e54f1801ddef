//! The routes of adaptations. They are files of the data folder and no part of the archive, so the
//! store that the binary provides changes them, under its own lock. A server for other machines only
//! reads them: what stands in them is what agents are told to do.

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, Query, State};
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use unspool_model::adaptation::{Patch, TEXT_CHANNEL};
use unspool_query::adaptations::{
    AdaptError, AdaptationDocument, AdaptationStore, AdaptationsDocument, Author, Facts,
    HistoryDocument, ListFilter, PreviewDocument, VersionedItem, deliveries, facts,
};
use unspool_store::store::{SessionFilter, Store};

use super::request_params::RequestParams;
use super::response::ApiResponse;
use crate::App;
use crate::problem::Problem;

pub const LIST: &str = "/api/adaptations";
pub const ONE: &str = "/api/adaptations/{item}";
pub const CHANGE_SUMMARY: &str = "Changes what the body names of an adaptation and keeps the rest. \
    `If-Match` has the version that the change was made for, in quotes; 412 if it is another one";
pub const RELOAD_SUMMARY: &str = "Takes over what was changed in the files by hand";

/// Sessions that are looked at for where an adaptation was seen.
const MAX_SESSIONS: u64 = 500;

/// The adaptations that a server shows.
#[derive(Clone, Debug)]
pub struct Adaptations {
    pub store: AdaptationStore,
    /// The data folder.
    pub data: PathBuf,
    /// They can be changed here.
    pub is_editable: bool,
}

impl From<AdaptError> for Problem {
    fn from(error: AdaptError) -> Problem {
        let status = match &error {
            AdaptError::NotFound(_) => StatusCode::NOT_FOUND,
            AdaptError::Conflict { .. } => StatusCode::PRECONDITION_FAILED,
            AdaptError::Refused(_) => StatusCode::BAD_REQUEST,
            AdaptError::Broken(_) => StatusCode::CONFLICT,
            AdaptError::Io { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Problem::new(status, error.to_string())
    }
}

/// The adaptations of this server.
pub fn of<S: Store>(app: &App<S>) -> Result<&Adaptations, Problem> {
    let what = "this server has no adaptations; use `unspool adapt` on its machine";
    app.adaptations.get().ok_or_else(|| Problem::not_found(what))
}

/// The folder of a project in a request. Only an absolute path is one.
fn project(text: Option<&str>) -> Option<PathBuf> {
    text.map(PathBuf::from).filter(|path| path.is_absolute())
}

fn text_of<'a>(params: &'a RequestParams, name: &str) -> Option<&'a str> {
    params.text(name).filter(|text| !text.is_empty())
}

pub async fn list<S: Store>(app: &App<S>, params: &RequestParams) -> Result<ApiResponse, Problem> {
    let project = project(params.text("project"));
    let current = of(app)?.store.current(project.as_deref())?;
    let filter = ListFilter {
        agent: text_of(params, "agent"),
        channel: text_of(params, "channel"),
        tag: text_of(params, "tag"),
        enabled: params.flag("enabled"),
    };
    ApiResponse::json(params, &AdaptationsDocument::new(&current, &filter))
}

pub async fn one<S: Store>(app: &App<S>, params: &RequestParams) -> Result<ApiResponse, Problem> {
    let versioned =
        find(app, params.path_param("item"), project(params.text("project")).as_deref())?;
    let response = ApiResponse::json(params, &AdaptationDocument::new(&versioned))?;
    Ok(response.with_tag(version_tag(versioned.version)))
}

fn find<S: Store>(
    app: &App<S>,
    id: &str,
    project: Option<&FilePath>,
) -> Result<VersionedItem, Problem> {
    let current = of(app)?.store.current(project)?;
    let found = current.state.find(id, project).cloned();
    found.ok_or_else(|| AdaptError::NotFound(id.to_owned()).into())
}

/// What `If-Match` has to say.
fn version_tag(version: u64) -> String {
    format!("\"{version}\"")
}

pub async fn preview<S: Store>(
    app: &App<S>,
    params: &RequestParams,
) -> Result<ApiResponse, Problem> {
    let project = project(params.text("project"));
    let current = of(app)?.store.current(project.as_deref())?;
    let agent = params.text("agent").unwrap_or_default();
    let channel = text_of(params, "channel").unwrap_or(TEXT_CHANNEL);
    let preview = PreviewDocument::new(&current.state, agent, channel, project.as_deref());
    ApiResponse::json(params, &preview)
}

pub async fn history<S: Store>(
    app: &App<S>,
    params: &RequestParams,
) -> Result<ApiResponse, Problem> {
    let id = params.path_param("item");
    let versions = of(app)?.store.history(id, project(params.text("project")).as_deref())?;
    ApiResponse::json(params, &HistoryDocument { id, versions: &versions })
}

/// Where an adaptation was delivered and seen.
#[derive(Serialize)]
struct SeenDocument<'a> {
    id: &'a str,
    enabled: bool,
    #[serde(flatten)]
    facts: Facts,
}

pub async fn seen<S: Store>(app: &App<S>, params: &RequestParams) -> Result<ApiResponse, Problem> {
    let id = params.path_param("item");
    let project = project(params.text("project"));
    let versioned = find(app, id, project.as_deref())?;
    let facts = facts_of(app, id, project.as_deref()).await?;
    ApiResponse::json(params, &SeenDocument { id, enabled: versioned.item.enabled, facts })
}

/// Where an adaptation was delivered and seen: in the newest sessions since it was first enabled.
pub async fn facts_of<S: Store>(
    app: &App<S>,
    id: &str,
    project: Option<&FilePath>,
) -> Result<Facts, Problem> {
    let Adaptations { store, data, .. } = of(app)?;
    let history = store.history(id, project)?;
    let Some(first) = history.iter().find(|change| change.enabled) else {
        return Ok(Facts::default());
    };
    let filter = SessionFilter {
        since: Some(first.at.as_millisecond()),
        limit: Some(MAX_SESSIONS),
        ..SessionFilter::default()
    };
    let found = app.settings.reflection.over(&app.view(), filter, |_| {}).await?;
    let delivered = deliveries(data).unwrap_or_default();
    Ok(facts(id, &history, &delivered, &found.sessions))
}

/// The project that a request is about.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ProjectParam {
    project: Option<String>,
}

impl ProjectParam {
    pub fn folder(&self) -> Option<PathBuf> {
        project(self.project.as_deref())
    }

    /// The text of an absolute path, for links.
    pub fn link_text(&self) -> Option<&str> {
        self.project.as_deref().filter(|text| project(Some(text)).is_some())
    }
}

/// Changes an adaptation.
pub async fn change<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(id): Path<String>,
    Query(params): Query<ProjectParam>,
    headers: HeaderMap,
    body: Result<Json<Patch>, JsonRejection>,
) -> Result<Response, Problem> {
    let adaptations = editable(&app)?;
    let Json(patch) = body.map_err(|error| {
        let what = format!("{}; /api/openapi.json describes the body", error.body_text());
        Problem::bad_request(what)
    })?;
    let expected = expected_version(&headers)?;
    let project = params.folder();
    let author = Author { who: "api", why: None };
    let store = adaptations.store.clone();
    let made = tokio::task::spawn_blocking(move || {
        store.update(&id, project.as_deref(), &patch, Some(expected), author)
    });
    let versioned = made.await.map_err(|error| Problem::internal(error.to_string()))??;
    let document = serde_json::to_value(AdaptationDocument::new(&versioned));
    let document = document.map_err(|error| Problem::internal(error.to_string()))?;
    Ok(([(ETAG, version_tag(versioned.version))], Json(document)).into_response())
}

/// Takes over what was changed in the files.
pub async fn reload<S: Store>(State(app): State<Arc<App<S>>>) -> Result<Json<Value>, Problem> {
    let store = editable(&app)?.store.clone();
    let reload = move || {
        let changed = store.reload(Author { who: "file", why: None })?;
        Ok::<_, AdaptError>((changed, store.current(None)?.state.version))
    };
    let done = tokio::task::spawn_blocking(reload).await;
    let (changed, version) = done.map_err(|error| Problem::internal(error.to_string()))??;
    Ok(Json(serde_json::json!({ "version": version, "changed": changed })))
}

pub fn editable<S: Store>(app: &App<S>) -> Result<&Adaptations, Problem> {
    let what =
        "this server only shows adaptations; change them with `unspool adapt` on its machine";
    let adaptations = of(app)?;
    adaptations
        .is_editable
        .then_some(adaptations)
        .ok_or_else(|| Problem::new(StatusCode::CONFLICT, what))
}

/// The version that a change was made for. Without it somebody else's change could be lost.
fn expected_version(headers: &HeaderMap) -> Result<u64, Problem> {
    let Some(value) = headers.get(IF_MATCH) else {
        let what = "If-Match is missing: send the version that the change was made for, such as \
                    If-Match: \"3\"";
        return Err(Problem::new(StatusCode::PRECONDITION_REQUIRED, what));
    };
    let text = value.to_str().unwrap_or_default().trim();
    let text = text.strip_prefix("W/").unwrap_or(text).trim_matches('"');
    text.parse().map_err(|_| {
        Problem::bad_request("If-Match is not a version: send one such as If-Match: \"3\"")
    })
}
