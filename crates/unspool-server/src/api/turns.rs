//! Handlers for turns, their parts, and the two messages of each turn.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use unspool_model::document::{BodyDocument, PartDocument, TurnDocument, time};
use unspool_model::id::{PartId, TurnId, digest};
use unspool_model::part::{Part, ToolState};
use unspool_model::session::{Session, Turn};
use unspool_model::skeleton::{PartSkeleton, Skeleton};
use unspool_query::raw::{Raw, raw_of};
use unspool_store::store::{MessageFilter, Store, StoredMessage, StoredSession, TurnWindow, View};

use super::find;
use super::parameter::{DEFAULT_MESSAGES, DEFAULT_TURNS, MAX_PARTS};
use super::request_params::RequestParams;
use super::response::{ApiResponse, tag};
use super::sessions::TurnSelection;
use crate::App;
use crate::frames_encoder::frame_parts::message_parts;
use crate::problem::Problem;

pub async fn list<S: Store>(app: &App<S>, params: &RequestParams) -> Result<ApiResponse, Problem> {
    let stored = find(app, params.path_param("id")).await?;
    if let Some(not_modified) = not_modified(params, &stored) {
        return Ok(not_modified);
    }
    let range = TurnSelection::following(params.number("after"), params.limit(DEFAULT_TURNS));
    let (turns, more) = range.load(app, &stored).await?;
    let next = turns.last().filter(|_| more).map(|last| params.next(&last.number.to_string()));
    let (agent, prices) = (&stored.summary.session.agent, &app.settings.prices);
    let documents: Vec<TurnDocument<'_>> =
        turns.iter().map(|turn| TurnDocument { agent, turn, prices }).collect();
    session_response(params, &stored, &documents, next)
}

/// The ETag of turn responses: they change only with the seq of the session.
fn etag(params: &RequestParams, stored: &StoredSession) -> String {
    let id = digest(stored.summary.session.id.to_string().as_bytes());
    tag([id, stored.seq, params.digest()])
}

pub fn not_modified(params: &RequestParams, stored: &StoredSession) -> Option<ApiResponse> {
    let tag = etag(params, stored);
    params.has_etag(&tag).then_some(ApiResponse::NotModified { tag })
}

pub fn session_response(
    params: &RequestParams,
    stored: &StoredSession,
    document: &impl Serialize,
    next: Option<String>,
) -> Result<ApiResponse, Problem> {
    let body = super::response::to_json(document)?;
    Ok(ApiResponse::Json { body, tag: etag(params, stored), next, permit: None })
}

/// The turn number in the path.
fn number(params: &RequestParams) -> u32 {
    params.path_param("number").parse().unwrap_or(u32::MAX)
}

pub fn no_turn(stored: &StoredSession, number: u32) -> Problem {
    let id = stored.summary.session.id;
    let what = format!("session {id} has no turn {number}; /api/sessions/{id}/turns lists them");
    Problem::not_found(what)
}

pub async fn one<S: Store>(app: &App<S>, params: &RequestParams) -> Result<ApiResponse, Problem> {
    let stored = find(app, params.path_param("id")).await?;
    if let Some(not_modified) = not_modified(params, &stored) {
        return Ok(not_modified);
    }
    let number = number(params);
    let mut turns = app.view().turns(stored.row, TurnWindow::Turn(number)).await?;
    stored.summary.settle(&mut turns, Timestamp::now());
    let turn = turns.pop().ok_or_else(|| no_turn(&stored, number))?;
    let agent = &stored.summary.session.agent;
    let document = TurnDocument { agent, turn: &turn, prices: &app.settings.prices };
    session_response(params, &stored, &document, None)
}

pub async fn parts<S: Store>(app: &App<S>, params: &RequestParams) -> Result<ApiResponse, Problem> {
    let stored = find(app, params.path_param("id")).await?;
    if let Some(not_modified) = not_modified(params, &stored) {
        return Ok(not_modified);
    }
    let number = number(params);
    let found = app.view().skeleton(stored.row, number).await?;
    let Skeleton { turn, parts } = found.ok_or_else(|| no_turn(&stored, number))?;
    let behind = match params.id("after").map(PartId) {
        None => 0,
        Some(after) => match parts.iter().position(|part_skeleton| part_skeleton.id == after) {
            Some(at) => at + 1,
            None => {
                let what = format!("turn {number} has no part {after}; leave after out");
                return Err(Problem::bad_request(what));
            }
        },
    };
    let limit = usize::try_from(params.limit(MAX_PARTS)).unwrap_or(usize::MAX);
    let wanted =
        parts.iter().skip(behind).filter(|part_skeleton| matches_filter(params, part_skeleton));
    let mut wanted: Vec<&PartSkeleton> = wanted.take(limit.saturating_add(1)).collect();
    let more = wanted.len() > limit;
    wanted.truncate(limit);
    let next = wanted.last().filter(|_| more).map(|last| params.next(&last.id.to_string()));
    // Load only the parts of this page.
    let places = wanted.iter().map(|part_skeleton| part_skeleton.place).collect();
    let found = app.view().parts(stored.row, number, places).await?;
    let agent = &stored.summary.session.agent;
    let documents: Vec<PartDocument<'_>> = PartDocument::all(agent, &turn, &found).collect();
    session_response(params, &stored, &documents, next)
}

fn matches_filter(params: &RequestParams, part_skeleton: &PartSkeleton) -> bool {
    let is = |name: &str, held: Option<&str>| {
        params.text(name).is_none_or(|wanted| held == Some(wanted))
    };
    is("kind", Some(part_skeleton.kind.name()))
        && is("tool", part_skeleton.tool.as_deref())
        && is("state", part_skeleton.state.map(ToolState::name))
}

#[derive(Serialize)]
struct PartInTurn<'a> {
    session: String,
    turn: u32,
    part: PartDocument<'a>,
    raw: Option<Raw>,
}

pub async fn part<S: Store>(
    app: &Arc<App<S>>,
    params: &RequestParams,
) -> Result<ApiResponse, Problem> {
    let stored = find(app, params.path_param("id")).await?;
    let session = stored.summary.session.id;
    let id = params.path_param("part");
    let missing = || {
        Problem::not_found(format!(
            "session {session} has no part {id}; /api/sessions/{session}/turns has them all"
        ))
    };
    let id = PartId(id.parse().map_err(|_| missing())?);
    let (number, place) = app.view().locate(stored.row, None, id).await?.ok_or_else(missing)?;
    let turn = app.view().head(stored.row, number).await?.ok_or_else(missing)?;
    let parts = app.view().parts(stored.row, number, vec![place]).await?;
    // User parts have ids for search only; they are returned with their turn.
    let part = parts.first().filter(|part| part.id == id).ok_or_else(missing)?;
    let agent = stored.summary.session.agent.clone();
    let raw = match params.flag("raw") {
        Some(true) => Some(records(app, stored, part.clone()).await?),
        Some(false) | None => None,
    };
    let part = PartDocument::new(&agent, &turn, part);
    let document = PartInTurn { session: session.to_string(), turn: turn.number, part, raw };
    // The agent's file may change without the session, so the ETag covers the content.
    ApiResponse::json(params, &document)
}

/// Reads the records on a blocking thread.
async fn records<S: Store>(
    app: &Arc<App<S>>,
    stored: StoredSession,
    part: Part,
) -> Result<Raw, Problem> {
    let view = app.view();
    let reading = tokio::task::spawn_blocking(move || raw_of(&view, &stored, &part));
    match reading.await {
        Ok(raw) => Ok(raw?),
        Err(error) => {
            Err(Problem::internal(format!("cannot read the records ({error}); try again")))
        }
    }
}

#[derive(Serialize)]
struct MessageDocument<'a> {
    id: &'a str,
    session: String,
    execution: String,
    role: &'a str,
    sequence: u64,
    created_at: Option<String>,
    has_tool_calls: bool,
    has_reasoning: bool,
    has_files: bool,
    parts: Vec<MessagePart<'a>>,
    content: &'a str,
    text_preview: &'a str,
}

/// A user part or a reply part.
#[derive(Serialize)]
#[serde(untagged)]
enum MessagePart<'a> {
    User(BodyDocument<'a>),
    Reply(PartDocument<'a>),
    Frame(serde_json::Value),
}

pub async fn messages<S: Store>(
    app: &App<S>,
    params: &RequestParams,
) -> Result<ApiResponse, Problem> {
    let stored = find(app, params.path_param("id")).await?;
    if let Some(not_modified) = not_modified(params, &stored) {
        return Ok(not_modified);
    }
    let limit = params.limit(DEFAULT_MESSAGES);
    let filter = MessageFilter {
        role: params.owned("role"),
        has_tool_calls: params.flag("has_tool_calls"),
        tool_name: params.owned("tool_name"),
        execution: params.id("execution").map(TurnId),
        after: params.number("after"),
        // Fetch limit+1 rows to detect another page.
        limit: Some(limit + 1),
    };
    let session = &stored.summary.session;
    let mut found = app.view().messages(session.id, filter).await?;
    let more = found.len() as u64 > limit;
    found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let mut turns: Vec<Turn> = Vec::new();
    for message in &found {
        if turns.last().is_some_and(|turn| turn.id == message.execution) {
            continue;
        }
        // Each turn has two messages.
        let number = u32::try_from(message.sequence / 2).unwrap_or(u32::MAX);
        turns.extend(app.view().turns(stored.row, TurnWindow::Turn(number)).await?);
    }
    let documents: Vec<MessageDocument<'_>> = found
        .iter()
        .filter_map(|message| {
            // A preamble without content is no turn to read.
            let is_its = |turn: &&Turn| turn.id == message.execution && !turn.is_blank();
            let turn = turns.iter().find(is_its)?;
            Some(document(session, message, turn, params.text("form") == Some("frames")))
        })
        .collect();
    let next = found.last().filter(|_| more).map(|last| params.next(&last.sequence.to_string()));
    session_response(params, &stored, &documents, next)
}

fn document<'a>(
    session: &'a Session,
    message: &'a StoredMessage,
    turn: &'a Turn,
    frames: bool,
) -> MessageDocument<'a> {
    let agent = &session.agent;
    let parts = match message.role.as_str() {
        "user" => {
            turn.user.iter().map(|body| MessagePart::User(BodyDocument { agent, body })).collect()
        }
        _ => {
            let all = PartDocument::all(agent, turn, &turn.parts);
            match frames {
                true => all.flat_map(|part| message_parts(&part)).map(MessagePart::Frame).collect(),
                false => all.map(MessagePart::Reply).collect(),
            }
        }
    };
    let created = message.created_at.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    MessageDocument {
        id: &message.id,
        session: session.id.to_string(),
        execution: message.execution.to_string(),
        role: &message.role,
        sequence: message.sequence,
        created_at: time(created),
        has_tool_calls: message.has_tool_calls,
        has_reasoning: message.has_reasoning,
        has_files: message.has_files,
        parts,
        content: &message.content,
        text_preview: &message.text_preview,
    }
}
