//! The one route that writes: the user's name, tags and notes of a session. The server does not write
//! itself. It hands each change to the handler that the binary provides, as the terminal does.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use unspool_model::id::{PartId, SessionId, TurnId};
use unspool_model::note::{MAX_NOTE_BYTES, NoteDocument, NoteTarget, PlacedNote};
use unspool_query::request::Request;
use unspool_store::store::{Store, StoredSession, View};

use super::request_params::RequestParams;
use super::{ApiResponse, find};
use crate::App;
use crate::problem::Problem;

pub const PATH: &str = "/api/sessions/{id}";
pub const SUMMARY: &str =
    "Changes the user's name, tags or one note of a session, and answers with what they are then";

/// How long to wait for the process that records.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_NAME_BYTES: usize = 1024;
const MAX_TAGS: usize = 100;

/// The body of a request. What is absent stays as it is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionEdit {
    #[serde(default, deserialize_with = "present")]
    name: Option<Option<String>>,
    #[serde(default)]
    add_tags: Vec<String>,
    #[serde(default)]
    remove_tags: Vec<String>,
    note: Option<NoteEdit>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoteEdit {
    part: Option<PartId>,
    turn_id: Option<TurnId>,
    turn: Option<u32>,
    /// Required, so that a note is never removed by omission.
    #[serde(deserialize_with = "Option::deserialize")]
    text: Option<String>,
}

/// Tells `null` from an absent field.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// What the user's changes are now.
#[derive(Serialize)]
struct SessionEdits<'a> {
    title: Option<&'a str>,
    name: Option<&'a str>,
    tags: &'a [String],
    notes: Vec<NoteDocument<'a>>,
}

pub async fn notes<S: Store>(
    app: &Arc<App<S>>,
    params: &RequestParams,
) -> Result<ApiResponse, Problem> {
    let stored = find(app, params.path_param("id")).await?;
    let notes = app.view().notes(stored.summary.session.id).await?;
    let documents: Vec<NoteDocument<'_>> = notes.iter().map(NoteDocument).collect();
    ApiResponse::json(params, &documents)
}

pub async fn edit<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(id): Path<String>,
    body: Result<Json<SessionEdit>, JsonRejection>,
) -> Result<Json<Value>, Problem> {
    let Json(edit) = body.map_err(|error| {
        let what = format!("{}; /api/openapi.json describes the body", error.body_text());
        Problem::bad_request(what)
    })?;
    let stored = find(&app, &id).await?;
    for request in requests(&app, &stored, edit).await? {
        change(&app, request).await?;
    }
    let id = stored.summary.session.id;
    let stored =
        app.view().session(id).await?.ok_or_else(|| Problem::no_session(&id.to_string()))?;
    let notes: Vec<PlacedNote> = app.view().notes(id).await?;
    let edits = SessionEdits {
        title: stored.summary.title.as_deref(),
        name: stored.name.as_deref(),
        tags: &stored.summary.tags,
        notes: notes.iter().map(NoteDocument).collect(),
    };
    serde_json::to_value(&edits).map(Json).map_err(|error| Problem::internal(error.to_string()))
}

async fn requests<S: Store>(
    app: &App<S>,
    stored: &StoredSession,
    edit: SessionEdit,
) -> Result<Vec<Request>, Problem> {
    let session: SessionId = stored.summary.session.id;
    let SessionEdit { name, add_tags: add, remove_tags: remove, note } = edit;
    let mut requests = Vec::new();
    if let Some(name) = name {
        let name = name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        if name.as_ref().is_some_and(|name| name.len() > MAX_NAME_BYTES) {
            let what = format!("the name is longer than {MAX_NAME_BYTES} bytes: shorten it");
            return Err(Problem::bad_request(what));
        }
        requests.push(Request::Rename { session, name });
    }
    if !add.is_empty() || !remove.is_empty() {
        if add.len() + remove.len() > MAX_TAGS || add.iter().any(|tag| tag.len() > MAX_NAME_BYTES) {
            let what = format!("too long: at most {MAX_TAGS} tags of {MAX_NAME_BYTES} bytes each");
            return Err(Problem::bad_request(what));
        }
        if add.iter().any(|tag| tag.trim().is_empty()) {
            return Err(Problem::bad_request("a tag must not be blank; type a word"));
        }
        let add = add.iter().map(|tag| tag.trim().to_owned()).collect();
        requests.push(Request::Tag { session, add, remove });
    }
    if let Some(NoteEdit { part, turn_id, turn, text }) = note {
        if text.as_ref().is_some_and(|text| text.trim().len() > MAX_NOTE_BYTES) {
            let what = format!("the note is longer than {MAX_NOTE_BYTES} bytes: shorten it");
            return Err(Problem::bad_request(what));
        }
        let target = match (part, turn_id, turn) {
            (Some(part), ..) => NoteTarget::Part(part),
            (None, Some(turn), _) => NoteTarget::Turn(turn),
            (None, None, Some(number)) => {
                let sizes = app.view().sizes(stored.row).await?;
                let found = sizes.iter().find(|size| size.number == number);
                let missing = || Problem::not_found(format!("there is no turn {number}"));
                NoteTarget::Turn(found.ok_or_else(missing)?.id)
            }
            (None, None, None) => NoteTarget::Session,
        };
        requests.push(Request::Note { session, target, text });
    }
    Ok(requests)
}

/// Hands a change to the process that records, and waits until it is written.
pub async fn change<S: Store>(app: &Arc<App<S>>, request: Request) -> Result<String, Problem> {
    let Some(handler) = app.change_handler.get().cloned() else {
        let what = "this server only reads the archive; change it with `unspool` on its machine";
        return Err(Problem::new(StatusCode::CONFLICT, what));
    };
    match timeout(WRITE_TIMEOUT, spawn_blocking(move || handler(request))).await {
        Ok(Ok(done)) => done.map_err(|reason| {
            let what = format!("not saved: {reason}");
            Problem::new(StatusCode::CONFLICT, what)
        }),
        Ok(Err(error)) => Err(Problem::internal(format!("not saved: {error}"))),
        Err(_) => {
            let what = "the process that records has not answered yet: it reads many files. It may \
                        still save this; look again in a minute";
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, what))
        }
    }
}
