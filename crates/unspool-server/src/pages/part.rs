//! Fragments for the session page: Markdown copies, the raw records of a part, find in session.

pub mod template;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use unspool_export::export;
use unspool_export::project::{Excerpt, Options};
use unspool_model::id::{Id, PartId};
use unspool_query::raw::raw as read_raw;
use unspool_query::search::{self, Outcome};
use unspool_store::search::SearchRequest;
use unspool_store::store::{Store, View};

use super::{ErrorPage, Page, UrlParams, html};
use crate::App;
use crate::api::find as find_session;
use crate::problem::Problem;

/// Hits of find in session.
const MAX_HITS: usize = 500;
/// The largest Markdown copy, in bytes.
const MAX_COPY_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug, Deserialize)]
pub struct PartParams {
    part: Option<String>,
    turn: Option<u32>,
}

impl PartParams {
    fn part(&self) -> Result<Option<PartId>, Problem> {
        let refuse = |_| {
            Problem::new(
                StatusCode::BAD_REQUEST,
                "the address has an invalid part id; reload the page",
            )
        };
        let id = self.part.as_deref().map(str::parse::<Id>).transpose().map_err(refuse)?;
        Ok(id.map(PartId))
    }
}

fn no_part() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "the session no longer has this part; reload the page")
}

/// A part, a turn or the whole session, as redacted Markdown.
pub async fn copy_markdown<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(id): Path<String>,
    UrlParams(params): UrlParams<PartParams>,
) -> Result<Response, ErrorPage> {
    let stored = find_session(&app, &id).await?;
    let excerpt = match (params.part()?, params.turn) {
        (Some(part), turn) => {
            let found = app.view().locate(stored.row, turn, part).await?.ok_or_else(no_part)?;
            Excerpt::Parts { turn: found.0, parts: vec![part] }
        }
        (None, Some(turn)) => Excerpt::Turn(turn),
        (None, None) => Excerpt::Session,
    };
    let writing = tokio::task::spawn_blocking(move || {
        let options = Options { prices: app.settings.prices.clone(), ..Options::default() };
        let mut copy = BoundedCopy::default();
        let done = export::markdown(
            &app.view(),
            &stored,
            &excerpt,
            &options,
            &app.settings.rules,
            &mut copy,
        );
        match done {
            Err(_) if copy.full => Ok(copy.truncated()),
            Ok(true) => Ok(copy.bytes),
            Ok(false) => Err(no_part()),
            Err(error) => Err(Problem::internal(error.to_string())),
        }
    });
    let text = writing.await.map_err(|error| Problem::internal(error.to_string()))??;
    Ok(([(CONTENT_TYPE, "text/markdown; charset=utf-8")], text).into_response())
}

/// A buffer that stops the writer when the copy is too large.
#[derive(Default)]
struct BoundedCopy {
    bytes: Vec<u8>,
    full: bool,
}

impl BoundedCopy {
    fn truncated(mut self) -> Vec<u8> {
        self.bytes.extend(b"\n\n*Truncated: this is too long to copy.*\n");
        self.bytes
    }
}

impl Write for BoundedCopy {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = MAX_COPY_BYTES - self.bytes.len();
        if bytes.len() <= room {
            self.bytes.extend(bytes);
            return Ok(bytes.len());
        }
        self.full = true;
        // One part may be larger than the whole copy. Text is cut between two characters.
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        self.bytes.extend(&bytes[..text.floor_char_boundary(room)]);
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The records that a part was read from.
pub async fn raw<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(id): Path<String>,
    UrlParams(params): UrlParams<PartParams>,
) -> Page {
    let stored = find_session(&app, &id).await?;
    let part = params.part()?.ok_or_else(no_part)?;
    let reading = tokio::task::spawn_blocking(move || read_raw(&app.view(), &stored, part)).await;
    let lost =
        |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "cannot read the records; try again");
    let found = reading.map_err(lost)??.ok_or_else(no_part)?;
    let records: Vec<template::RecordView> = found
        .records
        .iter()
        .map(|record| template::RecordView {
            file: record.file.clone(),
            offset: record.offset,
            text: record.text.as_ref().map(String::as_str).map_err(|absent| absent.explain(record)),
        })
        .collect();
    Ok(html(&template::raw(&records, found.left_out)))
}

#[derive(Debug, Deserialize)]
pub struct FindParams {
    q: String,
}

#[derive(Serialize)]
struct HitPlace {
    turn: u32,
    turn_id: String,
    /// None in the user's message.
    part: Option<String>,
    at: String,
}

#[derive(Serialize)]
struct FindResult {
    hits: Vec<HitPlace>,
    /// The matched texts, in lower case.
    words: BTreeSet<String>,
    /// How the search was understood.
    understood: String,
    more: bool,
}

/// The hits in a session, in transcript order.
pub async fn find<S: Store>(
    State(app): State<Arc<App<S>>>,
    Path(id): Path<String>,
    UrlParams(words): UrlParams<FindParams>,
) -> Result<Response, Problem> {
    let stored = find_session(&app, &id).await?;
    let request = SearchRequest {
        session: Some(stored.summary.session.id),
        limit: MAX_HITS,
        ..SearchRequest::new(&words.q)
    };
    let Outcome { results: findings, reading } = search::search(&app.view(), request).await?;
    let texts = findings.hits.iter().flat_map(|hit| {
        let ranges = hit.snippet.ranges.iter();
        ranges.filter_map(|range| hit.snippet.text.get(range.clone())).map(str::to_lowercase)
    });
    let words = texts.filter(|text| !text.is_empty()).collect();
    let mut places: Vec<(u32, i64, HitPlace)> = Vec::new();
    for hit in &findings.hits {
        let (Some(turn), Some(turn_id), Some(place)) = (hit.turn, hit.turn_id, hit.place) else {
            continue;
        };
        let part = hit.part.filter(|_| place.0 >= 0).map(|part| part.to_string());
        let (turn_id, at) = (turn_id.to_string(), format!("{turn}.{}", place.0));
        places.push((turn, place.0, HitPlace { turn, turn_id, part, at }));
    }
    places.sort_by_key(|(turn, place, _)| (*turn, *place));
    let hits = places.into_iter().map(|(_, _, place)| place).collect();
    let found = FindResult { hits, words, understood: reading.understood, more: findings.more };
    Ok(axum::Json(found).into_response())
}
