//! Handlers for sessions: the list, one session, one session as an export.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use unspool_export::export;
use unspool_export::project::{Options, Projection, TurnRange};
use unspool_model::context::ContextUse;
use unspool_model::document::{SessionDocument, TurnDocument};
use unspool_model::id::{Id, SessionId, digest};
use unspool_model::session::Turn;
use unspool_model::source::RecordCounts;
use unspool_query::activity::ListDocument;
use unspool_query::context::context;
use unspool_redact::Rules;
use unspool_store::store::{
    ListPosition, SessionFilter, Store, StoreError, StoredSession, StoredWarning, TurnWindow, View,
};

use super::chat::sdk;
use super::find;
use super::parameter::MAX_PAGE_SIZE;
use super::request_params::RequestParams;
use super::response::{ApiResponse, tag, to_json};
use crate::App;
use crate::problem::Problem;

/// Attempts to read a consistent session while it is being written.
const MAX_TRIES: usize = 20;

pub async fn list<S: Store>(app: &App<S>, params: &RequestParams) -> Result<ApiResponse, Problem> {
    let limit = params.limit(MAX_PAGE_SIZE);
    let after = params.text("after").map(parse_cursor).transpose()?;
    let filter = SessionFilter {
        agent: params.owned("agent"),
        project: params.owned("project"),
        tag: params.owned("tag"),
        model: params.owned("model"),
        with_errors: params.flag("errors").unwrap_or_default(),
        since: params.time("since"),
        until: params.time("until"),
        after,
        // Fetch limit+1 rows to detect another page.
        limit: Some(limit + 1),
        ..SessionFilter::default()
    };
    let mut found = app.view().sessions(filter).await?;
    let more = found.len() as u64 > limit;
    found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let prices = &app.settings.prices;
    let mut documents = Vec::with_capacity(found.len());
    for stored in &found {
        documents.push(ListDocument::of(&app.view(), stored, prices).await?);
    }
    let next = found.last().filter(|_| more).map(|last| params.next(&cursor(last)));
    ApiResponse::page(params, &documents, next)
}

/// The cursor after this session.
fn cursor(last: &StoredSession) -> String {
    let started =
        last.summary.started.map_or("never".to_owned(), |at| at.as_millisecond().to_string());
    format!("{started}.{}", last.summary.session.id)
}

fn parse_cursor(cursor: &str) -> Result<ListPosition, Problem> {
    let wrong = || {
        let what = "invalid cursor in `after`; take it from a Link header, or leave it out";
        Problem::bad_request(what)
    };
    let (started, id) = cursor.rsplit_once('.').ok_or_else(wrong)?;
    let id = SessionId(id.parse::<Id>().map_err(|_| wrong())?);
    match started {
        "never" => Ok((None, id)),
        started => Ok((Some(started.parse().map_err(|_| wrong())?), id)),
    }
}

#[derive(Serialize)]
struct Document<'a> {
    session: SessionDocument<'a>,
    turns: Vec<TurnDocument<'a>>,
    context: Option<ContextUse>,
    records: &'a RecordCounts,
    warnings: Vec<Warning<'a>>,
    seq: u64,
}

#[derive(Serialize)]
struct Warning<'a> {
    file: &'a str,
    line: u64,
    what: &'a str,
}

pub async fn one<S: Store>(app: &App<S>, params: &RequestParams) -> Result<ApiResponse, Problem> {
    let range = TurnSelection::of(params)?;
    let prices = &app.settings.prices;
    let mut tries = 0;
    loop {
        let stored = find(app, params.path_param("id")).await?;
        let session = SessionDocument { summary: &stored.summary, prices };
        // Tags and sub-agent usage change without a new seq, so the summary is part of the ETag.
        let tag = tag([digest(&to_json(&session)?), stored.seq, params.digest()]);
        if params.has_etag(&tag) {
            return Ok(ApiResponse::NotModified { tag });
        }
        let (turns, more) = range.load(app, &stored).await?;
        let used = context(&app.view(), &stored).await?;
        let records = app.view().records(stored.row).await?;
        let warnings = app.view().warnings(stored.row).await?;
        tries += 1;
        // Retry if something was written while reading: the turns may be inconsistent.
        if find(app, params.path_param("id")).await?.seq != stored.seq && tries < MAX_TRIES {
            continue;
        }
        let next = turns.last().filter(|_| more).map(|last| params.next(&last.number.to_string()));
        let agent = &stored.summary.session.agent;
        let body = to_json(&Document {
            session,
            turns: turns.iter().map(|turn| TurnDocument { agent, turn, prices }).collect(),
            context: used,
            records: &records,
            warnings: warnings.iter().map(warning).collect(),
            seq: stored.seq,
        })?;
        return Ok(ApiResponse::Json { body, tag, next, permit: None });
    }
}

fn warning(stored: &StoredWarning) -> Warning<'_> {
    Warning { file: &stored.file, line: stored.line, what: &stored.what }
}

/// Which turns of a session to load.
pub enum TurnSelection {
    All,
    /// From the first to the last of these numbers.
    Span(u32, u32),
    /// First number and count.
    From(u32, u64),
}

impl TurnSelection {
    fn of(params: &RequestParams) -> Result<TurnSelection, Problem> {
        let (after, limit) = (params.number("after"), params.number("limit"));
        match (params.span("turns"), after, limit) {
            (Some((first, last)), None, None) => Ok(TurnSelection::Span(first, last)),
            (Some(_), _, _) => Err(Problem::bad_request(
                "turns cannot be combined with after and limit; leave out one or the other",
            )),
            (None, None, None) => Ok(TurnSelection::All),
            (None, after, limit) => {
                Ok(TurnSelection::following(after, limit.unwrap_or(MAX_PAGE_SIZE)))
            }
        }
    }

    /// `limit` turns after a turn.
    pub fn following(after: Option<u64>, limit: u64) -> TurnSelection {
        let first =
            after.map_or(0, |after| u32::try_from(after).unwrap_or(u32::MAX).saturating_add(1));
        TurnSelection::From(first, limit)
    }

    /// The turns, and whether there are more.
    pub async fn load<S: Store>(
        &self,
        app: &App<S>,
        stored: &StoredSession,
    ) -> Result<(Vec<Turn>, bool), StoreError> {
        let (mut turns, more) = match *self {
            TurnSelection::All => (app.view().turns(stored.row, TurnWindow::All).await?, false),
            TurnSelection::Span(first, last) => {
                let count = (last - first).saturating_add(1);
                let window = TurnWindow::From { number: first, count };
                let mut turns = app.view().turns(stored.row, window).await?;
                turns.retain(|turn| turn.number <= last);
                (turns, false)
            }
            TurnSelection::From(first, limit) => {
                let count = u32::try_from(limit).unwrap_or(u32::MAX);
                // Fetch limit+1 turns to detect another page.
                let window = TurnWindow::From { number: first, count: count.saturating_add(1) };
                let mut turns = app.view().turns(stored.row, window).await?;
                let more = turns.len() > count as usize;
                turns.truncate(count as usize);
                (turns, more)
            }
        };
        turns.retain(|turn| !turn.is_blank());
        stored.summary.settle(&mut turns, Timestamp::now());
        Ok((turns, more))
    }
}

pub async fn export<S: Store>(
    app: &Arc<App<S>>,
    params: &RequestParams,
) -> Result<ApiResponse, Problem> {
    let stored = find(app, params.path_param("id")).await?;
    let projection = params.text("to").and_then(Projection::named);
    let projection =
        projection.ok_or_else(|| Problem::bad_request("unknown export form in `to`"))?;
    let notes = params.flag("notes").unwrap_or(false);
    if notes && !projection.has_notes {
        return Err(Problem::bad_request("this format has no place for notes; leave out `notes`"));
    }
    let turns = params.span("turns").map(|(first, last)| TurnRange { first, last });
    if let Some(range) = turns {
        if !projection.has_turns {
            return Err(Problem::bad_request("this format has whole sessions; leave out `turns`"));
        }
        let sizes = app.view().sizes(stored.row).await?;
        if !sizes.iter().any(|size| range.contains(size.number)) {
            return Err(Problem::not_found(format!("this session has no {range}")));
        }
    }
    let prices = app.settings.prices.clone();
    let options = Options { sdk: sdk(params), prices, notes, turns, ..Options::default() };
    let rules = params.flag("redact").unwrap_or(true).then(|| app.settings.rules.clone());
    Ok(export_response(app, stored, projection, options, rules))
}

/// An export as a streamed download.
pub fn export_response<S: Store>(
    app: &Arc<App<S>>,
    stored: StoredSession,
    projection: &'static Projection,
    options: Options,
    rules: Option<Rules>,
) -> ApiResponse {
    let turns = match options.turns {
        Some(TurnRange { first, last }) if first == last => format!("-turns-{first}"),
        Some(TurnRange { first, last }) => format!("-turns-{first}-{last}"),
        None => String::new(),
    };
    let name = format!("unspool-{}{turns}.{}", stored.summary.session.id, projection.extension);
    let view = app.view();
    let body = super::stream::body_written_by(move |out| {
        export::write(&view, &stored, projection, &options, rules.as_ref(), out)
            .map(drop)
            .map_err(std::io::Error::other)
    });
    ApiResponse::File { name, media_type: projection.media_type, body }
}
