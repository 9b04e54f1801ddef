//! `search_sessions`: full-text search. The snippet is taken from the redacted text, and a part that
//! matches only in what is redacted is no hit: otherwise a client could guess a secret.

use unspool_model::id::SessionId;
use unspool_query::params::{SEARCH_KINDS, TOOL_STATES};
use unspool_query::search::search_among;
use unspool_store::blocking::block_on;
use unspool_store::search::{Hit, SearchRequest, SearchResults};
use unspool_store::store::{StoredSession, View};

use super::list_sessions::session_fields;
use crate::answer::{Answer, AnswerBuilder};
use crate::arguments::Arguments;
use crate::hits::{HitTexts, hit_text};
use crate::item::Item;
use crate::reader::Reader;
use crate::tool::{AFTER, AGENT, PROJECT, Parameter, SESSION, SINCE, Tool, ToolError, UNTIL};

/// Hits that a search looks at, over all its answers.
const MAX_HITS: usize = 200;
/// Hits of one answer, by default and at most.
const HITS: usize = 10;
const MAX_COUNT: usize = 50;
/// Characters of a snippet.
const SNIPPET_CHARS: usize = 240;

const PARAMETERS: &[Parameter] = &[
    Parameter::text("query", "Words, an exact text in quotes, a path, an error message."),
    Parameter::one_of("kind", SEARCH_KINDS, "Only parts of this kind."),
    Parameter::text("tool", "Only calls of this tool."),
    Parameter::one_of("state", TOOL_STATES, "Only calls in this state."),
    Parameter { description: "Only this session: its id or a prefix.", ..SESSION },
    AGENT,
    PROJECT,
    SINCE,
    UNTIL,
    Parameter::number("count", "Hits of one answer: 10 by default, at most 50."),
    AFTER,
];

pub fn tool<V: View>() -> Tool<V> {
    Tool {
        name: "search_sessions",
        title: "Search recorded sessions",
        description: "Full-text search over everything that agents and users said, read and wrote in \
                      this project: prompts, reasoning, commands and their output, edits, errors. \
                      Call it before you try something that may have been tried: an error message, a \
                      file name, a decision. All words must be in one part; \"exact text\", pre*, and \
                      NOT word work; paths and commands need no quotes. Without words, `kind`, `tool` \
                      or `state` list the newest parts.",
        parameters: PARAMETERS,
        run,
    }
}

fn run<V: View>(reader: &Reader<V>, arguments: &Arguments) -> Result<Answer, ToolError> {
    let query = arguments.text("query").unwrap_or_default();
    let session = match arguments.text("session") {
        Some(text) => Some(reader.named(text)?.summary.session.id),
        None => None,
    };
    let told = arguments.after(|cursor| cursor.parse::<usize>().ok())?.unwrap_or(0);
    let asked = arguments.number("count").and_then(|count| usize::try_from(count).ok());
    let count = asked.unwrap_or(HITS).clamp(1, MAX_COUNT);
    let wanted = told.saturating_add(count).min(MAX_HITS);
    let narrower = reader.project(arguments)?;
    let request = SearchRequest {
        session,
        agent: arguments.owned("agent"),
        project: reader.scope().folder_path().map(str::to_owned).or_else(|| narrower.clone()),
        kind: arguments.owned("kind"),
        tool: arguments.owned("tool"),
        state: arguments.owned("state"),
        since: arguments.time("since")?,
        until: arguments.time("until")?,
        limit: wanted.saturating_add(1),
        width: SNIPPET_CHARS,
        ..SearchRequest::new(query)
    };
    if query.is_empty() && !request.is_about_parts() {
        return Err(ToolError::message(
            "give `query`, or `kind`, `tool` or `state` for the newest parts",
        ));
    }
    let texts = HitTexts::new(query);
    let (found, reading) = block_on(search_among(&reader.view, request, |request, results| {
        let seen = Seen { reader, texts: &texts, project: narrower.as_deref() };
        let (results, hits) = seen.hits(request, results, wanted)?;
        let found = Found { newest_first: results.newest_first, hits };
        Ok::<_, ToolError>((!found.hits.is_empty()).then_some(found))
    }))?;
    let mut head = Item::new();
    head.text(&mut reader.exit_of_none(), "understood", &reading.understood, 300);
    head.flag("newest_first", found.as_ref().is_some_and(|found| found.newest_first));
    if found.is_none() {
        let other = reading.suggestions.first().map(|other| other.query.as_str());
        head.field(&mut reader.exit_of_none(), "try_instead", other);
    }
    let mut answer = AnswerBuilder::new(arguments.limit(), head.done(), "hits");
    let hits = found.map(|found| found.hits).unwrap_or_default();
    let more = hits.len() > wanted && wanted < MAX_HITS;
    for (next, SeenHit { hit, stored, text }) in hits.iter().enumerate().skip(told).take(count) {
        let mut exit = reader.exit(stored)?;
        let mut item = Item::new();
        if let Some(part) = hit.part.filter(|_| hit.kind != "user") {
            item.id("part", &part);
        }
        item.number_if("turn", hit.turn);
        item.word("kind", kind_name(&hit.kind));
        item.field(&mut exit, "tool", hit.tool.as_deref());
        item.field(&mut exit, "state", hit.notable_state()).milliseconds("at", hit.at);
        item.text(&mut exit, "snippet", text, SNIPPET_CHARS + 80);
        item.object("of", brief(&mut exit, stored));
        if !answer.push(item.done()) {
            return Ok(answer.finish(Some(next.to_string())));
        }
    }
    Ok(answer.finish(more.then(|| wanted.to_string())))
}

/// The hits that the client may see.
struct Found {
    newest_first: bool,
    hits: Vec<SeenHit>,
}

/// A hit that the client may see, and its text.
struct SeenHit {
    hit: Hit,
    stored: StoredSession,
    text: String,
}

/// What decides whether a hit is seen. Everything that an answer says comes from seen hits, the cursor
/// and the sentence about the search too: each would tell whether a guess at a secret is right.
struct Seen<'r, V: View> {
    reader: &'r Reader<V>,
    texts: &'r HitTexts,
    project: Option<&'r str>,
}

impl<V: View> Seen<'_, V> {
    /// The first hits that are seen: one more than wanted, if there are so many.
    fn hits(
        &self,
        request: &SearchRequest,
        results: SearchResults,
        wanted: usize,
    ) -> Result<(SearchResults, Vec<SeenHit>), ToolError> {
        let seen = self.first(&results.hits, wanted)?;
        if seen.len() > wanted || results.hits.len() < request.limit {
            return Ok((results, seen));
        }
        // Hits that are not seen took the places of others.
        let request = SearchRequest { limit: MAX_HITS + 1, ..request.clone() };
        let results = block_on(self.reader.view.search(request))?;
        let seen = self.first(&results.hits, wanted)?;
        Ok((results, seen))
    }

    fn first(&self, hits: &[Hit], wanted: usize) -> Result<Vec<SeenHit>, ToolError> {
        let mut seen = Vec::new();
        for hit in hits {
            if seen.len() > wanted {
                break;
            }
            let Some(stored) = visible(self.reader, hit.session, self.project)? else { continue };
            let mut exit = self.reader.exit(&stored)?;
            let text = hit_text(self.reader, &mut exit, &stored, hit, self.texts, SNIPPET_CHARS)?;
            drop(exit);
            if let Some(text) = text {
                seen.push(SeenHit { hit: hit.clone(), stored, text });
            }
        }
        Ok(seen)
    }
}

/// The session of a hit, if the client may see it.
pub fn visible<V: View>(
    reader: &Reader<V>,
    session: SessionId,
    project: Option<&str>,
) -> Result<Option<StoredSession>, ToolError> {
    let Some(stored) = block_on(reader.view.session(session))? else { return Ok(None) };
    let is_seen = reader.is_in_project(&stored, project) && reader.may_see(&stored)?;
    Ok(is_seen.then_some(stored))
}

/// What a hit says about its session.
pub fn brief(exit: &mut crate::exit::Exit<'_>, stored: &StoredSession) -> crate::item::SafeValue {
    let mut whole = Item::new();
    session_fields(&mut whole, exit, stored);
    whole.only(&["session", "agent", "title", "project", "started_at", "state"])
}

/// The kind as a word of the program.
pub fn kind_name(kind: &str) -> &'static str {
    SEARCH_KINDS.iter().find(|known| **known == kind).copied().unwrap_or("part")
}
