//! Search requests and results, and verification of candidates: the index only proposes parts, the
//! stored text decides. `database/search.rs` runs the search.

use std::borrow::Cow;
use std::ops::Range;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
pub use unspool_index::{Condition, ConditionKind, OtherReading, OtherReadingKind, TextQuery};
use unspool_index::{Matcher, Snippet, snippet};
use unspool_model::id::{PartId, SessionId, TurnId};
use unspool_model::part::{Body, Kind, Place, ToolState};
use unspool_view::present::card_summary;

use crate::searchable::{SearchField, field_text, fields, unescape_json};

/// The query and its filters.
#[derive(Clone, PartialEq, Debug)]
pub struct SearchRequest {
    /// As typed by the user; `TextQuery::parse` reads it.
    pub query: String,
    /// Only this session.
    pub session: Option<SessionId>,
    pub agent: Option<String>,
    /// A substring of the path of the project's folder.
    pub project: Option<String>,
    /// A part kind, `user` for the user's messages, `title` or `note`.
    pub kind: Option<String>,
    pub tool: Option<String>,
    pub state: Option<String>,
    pub model: Option<String>,
    /// Milliseconds.
    pub since: Option<i64>,
    pub until: Option<i64>,
    pub limit: usize,
    /// Approximate length of a snippet, in characters.
    pub width: usize,
}

impl SearchRequest {
    /// True if it says which parts to find even without words.
    pub fn is_about_parts(&self) -> bool {
        let kind = self.kind.as_deref().is_some_and(|kind| kind != "title");
        kind || self.tool.is_some() || self.state.is_some()
    }

    pub fn new(query: &str) -> SearchRequest {
        SearchRequest {
            query: query.to_owned(),
            session: None,
            agent: None,
            project: None,
            kind: None,
            tool: None,
            state: None,
            model: None,
            since: None,
            until: None,
            limit: 20,
            width: 160,
        }
    }
}

/// The result of a search.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SearchResults {
    /// Best first, or newest first.
    pub hits: Vec<Hit>,
    /// There were too many candidates to rank: these are the newest.
    pub newest_first: bool,
    /// A word had no whole-word match: hits may contain it inside a longer word.
    pub widened: bool,
    /// The search stopped before the end: there may be more hits.
    pub more: bool,
}

/// One part, one session's title, or one note.
#[derive(Clone, PartialEq, Debug)]
pub struct Hit {
    pub session: SessionId,
    pub agent: String,
    pub project: Option<String>,
    pub title: Option<String>,
    /// None for a title, and for a note on a session.
    pub turn: Option<u32>,
    pub turn_id: Option<TurnId>,
    /// Negative for the user's messages.
    pub place: Option<Place>,
    pub part: Option<PartId>,
    /// The kind of the part; `user` for the user's messages; `title`; `note`.
    pub kind: String,
    pub tool: Option<String>,
    pub state: Option<String>,
    /// Milliseconds.
    pub at: Option<i64>,
    pub snippet: Snippet,
}

impl Hit {
    /// The state of a call that did not simply complete.
    pub fn notable_state(&self) -> Option<&str> {
        self.state.as_deref().filter(|state| *state != ToolState::Completed.name())
    }
}

/// A hit as `search --json` writes it. The field names are a stable interface for scripts.
#[derive(Serialize)]
pub struct HitDocument<'a> {
    session: String,
    turn: Option<u32>,
    part: Option<String>,
    kind: &'a str,
    snippet: &'a str,
    agent: &'a str,
    project: Option<&'a str>,
    title: Option<&'a str>,
    tool: Option<&'a str>,
    state: Option<&'a str>,
    at: Option<String>,
}

impl HitDocument<'_> {
    /// The length of its snippet, in characters.
    pub const WIDTH: usize = 200;

    pub fn of(hit: &Hit) -> HitDocument<'_> {
        let at = hit.at.and_then(|at| Timestamp::from_millisecond(at).ok());
        HitDocument {
            session: hit.session.to_string(),
            turn: hit.turn,
            part: hit.part.map(|part| part.to_string()),
            kind: &hit.kind,
            snippet: &hit.snippet.text,
            agent: &hit.agent,
            project: hit.project.as_deref(),
            title: hit.title.as_deref(),
            tool: hit.tool.as_deref(),
            state: hit.state.as_deref(),
            at: at.map(|at| format!("{at:.3}")),
        }
    }
}

/// Matches a body against a query and returns a snippet if it matches. `result` loads the tool
/// result that `Extent::WithoutResult` left out; it is called only if the other fields do not
/// decide, and comes last, as in a complete body.
pub fn verify<'b>(
    query: &TextQuery,
    body: &'b Body,
    result: impl FnOnce() -> Option<Cow<'b, str>>,
    width: usize,
) -> Option<Snippet> {
    let mut verifier = Verifier::new(query);
    // The JSON with the most matches, if no plain text has as many.
    let mut json: Option<Cow<'b, str>> = None;
    fields(body, &mut |field| {
        let raw = match &field {
            SearchField::Text(_) => None,
            SearchField::Json(raw) => Some(*raw),
        };
        if verifier.add_field(|| field_text(field)) == Rank::Best {
            json = raw.map(Cow::Borrowed);
        }
    });
    if !verifier.matcher.is_decided()
        && let Some(raw) = result()
        && verifier.add_field(|| Cow::Owned(unescape_json(&raw))) == Rank::Best
    {
        json = Some(raw);
    }
    let found = verifier.snippet(width)?;
    let words = json.and_then(|json| snippet_of_words(query, body, &json, width));
    Some(words.unwrap_or(found))
}

/// A snippet of JSON without its syntax: from the head line of the call, or else from the string with
/// the most matches. `None` if the matches are elsewhere: in a name or a number.
fn snippet_of_words(query: &TextQuery, body: &Body, json: &str, width: usize) -> Option<Snippet> {
    let value: Value = serde_json::from_str(json).ok()?;
    let mut verifier = Verifier::new(query);
    verifier.add_field(|| Cow::Owned(card_summary(body).unwrap_or_default()));
    visit_strings(&value, &mut |text| {
        verifier.add_field(|| Cow::Borrowed(text));
    });
    let (text, ranges) = verifier.best.filter(|(_, ranges)| !ranges.is_empty())?;
    Some(snippet(&text, &ranges, width))
}

fn visit_strings<'a>(value: &'a Value, visit: &mut dyn FnMut(&'a str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| visit_strings(item, visit)),
        Value::Object(fields) => fields.values().for_each(|field| visit_strings(field, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What a body is about, for a hit of a search without words: the head line of a call, the
/// beginning of a text.
pub fn beginning(body: &Body, width: usize) -> Snippet {
    let mut text = card_summary(body).filter(|head| !head.trim().is_empty());
    fields(body, &mut |field| {
        if text.is_none() {
            text = Some(field_text(field).into_owned()).filter(|text| !text.trim().is_empty());
        }
    });
    snippet(&text.unwrap_or_default(), &[], width)
}

/// Like [`verify`], for plain text fields.
pub fn verify_fields(query: &TextQuery, fields: &[&str], width: usize) -> Option<Snippet> {
    let mut verifier = Verifier::new(query);
    for field in fields {
        verifier.add_field(|| Cow::Borrowed(*field));
    }
    verifier.snippet(width)
}

/// Whether a field has the most matches so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rank {
    Best,
    Other,
}

/// Feeds fields to the matcher until the query is decided, so later fields are not unescaped in
/// vain. The snippet comes from the field with the most matches; of equals, from the first.
struct Verifier<'q, 'f> {
    matcher: Matcher<'q>,
    best: Option<(Cow<'f, str>, Vec<Range<usize>>)>,
}

impl<'q, 'f> Verifier<'q, 'f> {
    fn new(query: &'q TextQuery) -> Self {
        Verifier { matcher: Matcher::new(query), best: None }
    }

    fn add_field(&mut self, field: impl FnOnce() -> Cow<'f, str>) -> Rank {
        if self.matcher.is_decided() {
            return Rank::Other;
        }
        let field = field();
        let ranges = self.matcher.add_field(&field);
        if self.best.as_ref().is_some_and(|(_, best)| ranges.len() <= best.len()) {
            return Rank::Other;
        }
        self.best = Some((field, ranges));
        Rank::Best
    }

    fn snippet(self, width: usize) -> Option<Snippet> {
        let (text, ranges) = self.best.filter(|_| self.matcher.holds())?;
        Some(snippet(&text, &ranges, width))
    }
}

/// The ranking weight of a part kind. Users mostly search for messages.
pub fn weight(kind: &str) -> f32 {
    // `user` and `title` are not kinds of parts.
    let Some(kind) = Kind::of_name(kind) else { return if kind == "user" { 1.5 } else { 1.0 } };
    match kind {
        Kind::Interjection => 1.5,
        Kind::Text => 1.3,
        Kind::Reasoning | Kind::Error | Kind::Compaction => 1.1,
        Kind::Tool
        | Kind::Agent
        | Kind::TaskList
        | Kind::SkillLoad
        | Kind::McpSnapshot
        | Kind::ContextInfo
        | Kind::File
        | Kind::Source
        | Kind::Patch
        | Kind::Notice
        | Kind::Data => 1.0,
    }
}
