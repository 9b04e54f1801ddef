//! Search for all surfaces: runs a query, says how it was understood, and offers other readings
//! and, without hits, other searches. The syntax is in `unspool-index`; the words are here, so that
//! page, terminal and command line say the same.

use serde::{Deserialize, Serialize};
use unspool_store::search::{
    Condition, ConditionKind, OtherReadingKind, SearchRequest, SearchResults, TextQuery,
};
use unspool_store::store::{StoreError, View};

/// How many conditions of a query a sentence names.
const MAX_NAMED: usize = 6;
/// How many characters of a condition a sentence quotes.
const MAX_QUOTED_CHARS: usize = 80;

/// The hits of a search and how it was understood.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    pub results: SearchResults,
    pub reading: Reading,
}

/// How a search was understood.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Reading {
    /// What was searched for or, without hits, that it was not found: whole sentences.
    pub understood: String,
    /// Other searches, the likeliest first: the other readings and, without hits, wider searches.
    pub suggestions: Vec<Suggestion>,
    /// The texts to highlight, in lower case.
    pub texts: Vec<String>,
}

/// Another search.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Suggestion {
    /// What it does, as an imperative without a full stop.
    pub label: String,
    pub query: String,
    /// It drops the filters of the search.
    pub without_filters: bool,
}

/// Runs a search. A command line that no part has as it is written is searched by its pieces.
pub async fn search<V: View>(view: &V, request: SearchRequest) -> Result<Outcome, StoreError> {
    let mut none = None;
    let (found, reading) = search_among(view, request, |_, results| {
        Ok::<_, StoreError>(match results.hits.is_empty() {
            true => {
                none.get_or_insert(results);
                None
            }
            false => Some(results),
        })
    })
    .await?;
    Ok(Outcome { results: found.or(none).unwrap_or_default(), reading })
}

/// Runs a search of which only some hits may be told. `take` makes something of those; what it says
/// and whether the pieces of a command line are searched depends on them alone.
pub async fn search_among<V: View, T, E: From<StoreError>>(
    view: &V,
    request: SearchRequest,
    mut take: impl FnMut(&SearchRequest, SearchResults) -> Result<Option<T>, E>,
) -> Result<(Option<T>, Reading), E> {
    let query = TextQuery::parse(&request.query);
    let results = view.search(request.clone()).await?;
    if let Some(found) = take(&request, results)? {
        return Ok((Some(found), reading(&request, &query, true, None)));
    }
    let others = TextQuery::other_readings(&request.query);
    if let Some(pieces) = others.iter().find(|other| other.kind == OtherReadingKind::Pieces) {
        let by_pieces = SearchRequest { query: pieces.query.clone(), ..request.clone() };
        let results = view.search(by_pieces.clone()).await?;
        if let Some(found) = take(&by_pieces, results)? {
            let pieces = TextQuery::parse(&pieces.query);
            return Ok((Some(found), reading(&request, &pieces, true, Some(&query))));
        }
    }
    Ok((None, reading(&request, &query, false, None)))
}

/// `as_written` is the query that had no hits before its pieces had some.
fn reading(
    request: &SearchRequest,
    query: &TextQuery,
    found: bool,
    as_written: Option<&TextQuery>,
) -> Reading {
    let narrowed = is_narrowed(request);
    let filters = match (narrowed, request.session.is_some()) {
        (true, _) => " with these filters",
        (false, true) => " in this session",
        (false, false) => "",
    };
    let what = describe(query);
    let understood = match (as_written, found) {
        _ if query.conditions().is_empty() && !query.excluded().is_empty() => {
            format!("This search only excludes {what}. Add a word to search for.")
        }
        (_, true) if query.is_empty() => {
            format!("All {}, newest first.", describe_filters(request))
        }
        _ if query.is_empty() && request.is_about_parts() => {
            format!("No {} found.", describe_filters(request))
        }
        _ if query.is_empty() => "Type at least one word.".to_owned(),
        (Some(as_written), _) => format!(
            "Nothing contains {}{filters}. Searched for {what} instead.",
            describe(as_written)
        ),
        (None, true) => format!("Searched for {what}."),
        (None, false) => format!("Nothing found for {what}{filters}."),
    };
    let mut suggestions = Vec::new();
    if !found && narrowed && !query.conditions().is_empty() {
        suggestions.push(Suggestion {
            label: "Search without the filters".to_owned(),
            query: request.query.clone(),
            without_filters: true,
        });
    }
    for other in TextQuery::other_readings(&request.query) {
        // The pieces of a command line were searched already.
        if other.kind != OtherReadingKind::Pieces || (found && as_written.is_none()) {
            suggestions.push(suggestion(other.query));
        }
    }
    if !found && query.conditions().len() > 1 {
        let words = query.conditions().iter().filter(|it| it.kind() == ConditionKind::Word);
        suggestions.extend(words.take(MAX_NAMED).map(|it| suggestion(it.typed().to_owned())));
    }
    let texts = query.conditions().iter().map(|it| it.text().to_owned()).collect();
    Reading { understood, suggestions, texts }
}

fn suggestion(query: String) -> Suggestion {
    let label = format!("Search for {}", describe(&TextQuery::parse(&query)));
    Suggestion { label, query, without_filters: false }
}

/// True if a filter may be what leaves no hits. A search within a session has none.
fn is_narrowed(request: &SearchRequest) -> bool {
    let SearchRequest { agent, project, kind, tool, state, model, since, until, .. } = request;
    [agent, project, kind, tool, state, model].into_iter().any(Option::is_some)
        || since.is_some()
        || until.is_some()
}

/// What a search without words looks for: `errors`, `failed calls of Bash`.
fn describe_filters(request: &SearchRequest) -> String {
    let state = request.state.as_deref().map(|state| format!("{state} ")).unwrap_or_default();
    match (request.kind.as_deref(), &request.tool) {
        (_, Some(tool)) => format!("{state}calls of {tool}"),
        (Some("error"), None) => "errors".to_owned(),
        (Some("user"), None) => "prompts".to_owned(),
        (Some("note"), None) => "notes and bookmarks".to_owned(),
        (Some(kind), None) if kind != "tool" => format!("parts of the kind {kind}"),
        (Some(_) | None, None) => format!("{state}calls"),
    }
}

/// A query in words: `the words “a” and “b” and the text “c.d”, without the word “e”`.
fn describe(query: &TextQuery) -> String {
    let excluded = describe_all(query.excluded(), "or");
    match (describe_all(query.conditions(), "and"), excluded.is_empty()) {
        (wanted, true) => wanted,
        (wanted, false) if wanted.is_empty() => excluded,
        (wanted, false) => format!("{wanted}, without {excluded}"),
    }
}

fn describe_all(conditions: &[Condition], conjunction: &str) -> String {
    let (named, more) = conditions.split_at(conditions.len().min(MAX_NAMED));
    let of_kind = |one: &str, many: &str, is_kind: fn(ConditionKind) -> bool| {
        let of_kind = named.iter().filter(|condition| is_kind(condition.kind()));
        let texts: Vec<String> = of_kind.map(quoted).collect();
        match texts.len() {
            0 => None,
            1 => Some(format!("{one} {}", texts.concat())),
            _ => Some(format!("{many} {}", enumerate(&texts, conjunction))),
        }
    };
    let mut all: Vec<String> = [
        of_kind("the word", "the words", |kind| kind == ConditionKind::Word),
        of_kind("words that begin with", "words that begin with", |kind| {
            kind == ConditionKind::Prefix
        }),
        of_kind("the text", "the texts", |kind| {
            matches!(kind, ConditionKind::Phrase | ConditionKind::Fragment)
        }),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !more.is_empty() {
        all.push(format!("{} more", more.len()));
    }
    enumerate(&all, conjunction)
}

fn quoted(condition: &Condition) -> String {
    let mut text: String = condition.typed().chars().take(MAX_QUOTED_CHARS).collect();
    if text.len() < condition.typed().len() {
        text.push('…');
    }
    format!("“{text}”")
}

/// `a`, `a and b`, `a, b and c`.
fn enumerate(all: &[String], conjunction: &str) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} {conjunction} {last}", first.join(", ")),
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
