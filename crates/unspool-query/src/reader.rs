//! Queries on the archive and their responses: session lists, windows of a session, search hits,
//! redacted Markdown to copy. Both serialise, so the terminal application uses the same types in
//! process and over a connection (`wire`).

mod session_row;
pub mod wire;

use std::sync::Arc;

use jiff::{Timestamp, Zoned};
use serde::{Deserialize, Serialize};
use unspool_export::export::{self, ExportError};
use unspool_export::project::{Excerpt, Options};
use unspool_model::id::SessionId;
use unspool_model::note::PlacedNote;
use unspool_model::part::Place;
use unspool_model::price::Prices;
use unspool_model::session::{Session, Turn};
use unspool_redact::Rules;
use unspool_sources::agents::Agent;
use unspool_store::search::{Hit, SearchRequest};
use unspool_store::store::{ListPosition, SessionFilter, StoreError, StoredSession, View};
use unspool_view::block::Block;
use unspool_view::present::budget::BudgetUse;
use unspool_view::present::changes::{Changes, Standing};
use unspool_view::present::notes::head_blocks;
use unspool_view::present::tools::Tasks;
use unspool_view::present::{self, Folding, UNTITLED};

use crate::activity::activity;
use crate::blame::standing::standing;
use crate::budget::{Budgets, warnings};
use crate::burn_rate::burn_rate;
use crate::changes::changes;
use crate::context::context;
use crate::findings::{FindingEntry, Reflection};
use crate::prompts::{PromptAnswer, PromptQuery, answer_prompts};
use crate::search::{self, Outcome, Reading};
use crate::window::{
    Anchor, MAX_WINDOW_PARTS, PartFilter, Size, WindowRequest, WindowView, window,
};
pub use session_row::SessionRow;

/// Maximum number of sessions or hits in a response to a remote client.
const MAX_RESULTS: usize = 500;

/// What the config file says about answers.
#[derive(Clone, Debug)]
pub struct Settings {
    pub prices: Prices,
    /// What copies and exports redact.
    pub rules: Rules,
    pub budgets: Budgets,
    pub folding: Folding,
    pub reflection: Arc<Reflection>,
}

impl Settings {
    /// Without budgets.
    pub fn new(prices: Prices, rules: Rules) -> Settings {
        let reflection = Arc::new(Reflection::new(rules.clone(), Vec::new()));
        let (budgets, folding) = (Budgets::default(), Folding::default());
        Settings { prices, rules, budgets, folding, reflection }
    }
}

/// A read request.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Query {
    /// A page of sessions, newest first, starting after `after`.
    List { after: Option<ListPosition>, limit: u64 },
    /// One session's list row, by our id, a unique prefix of it, or the agent's own id.
    Session { id: String },
    /// A window of a session.
    Window { session: SessionId, anchor: Anchor, filter: Option<PartFilter>, size: Size },
    /// A text search, in one session or in all of them.
    Search { query: String, session: Option<SessionId>, limit: usize },
    /// The budgets that are nearly spent.
    Budgets,
    /// What a session or one of its turns changed.
    Changes { session: SessionId, turn: Option<u32> },
    /// What git still has of the changes of a session.
    Standing { session: SessionId },
    /// What model calls of a session were sent.
    Prompts { session: SessionId, query: PromptQuery },
    /// The user's notes on a session.
    Notes { session: SessionId },
    /// What went wrong in a session.
    Findings { session: SessionId },
    /// Redacted Markdown, to be copied or saved.
    Markdown { session: SessionId, excerpt: Excerpt },
}

impl Query {
    /// Whether other programs are asked, which takes so long that other queries must not wait.
    pub fn is_slow(&self) -> bool {
        matches!(self, Query::Standing { .. })
    }

    /// Caps all limits, to bound what each remote client can make the server load.
    pub fn bounded(self) -> Query {
        match self {
            Query::List { after, limit } => {
                Query::List { after, limit: limit.min(MAX_RESULTS as u64) }
            }
            Query::Search { query, session, limit } => {
                Query::Search { query, session, limit: limit.min(MAX_RESULTS) }
            }
            Query::Window { session, anchor, filter, size: Size { parts, block, long } } => {
                let most = usize::try_from(MAX_WINDOW_PARTS).unwrap_or(usize::MAX);
                let (parts, block) = (parts.min(most), block.min(most));
                let size = Size { parts, block, long: long.min(MAX_WINDOW_PARTS) };
                Query::Window { session, anchor, filter, size }
            }
            Query::Session { .. }
            | Query::Budgets
            | Query::Changes { .. }
            | Query::Standing { .. }
            | Query::Prompts { .. }
            | Query::Notes { .. }
            | Query::Findings { .. }
            | Query::Markdown { .. } => self,
        }
    }
}

/// The response to a query.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    List {
        sessions: Vec<SessionRow>,
        more: bool,
    },
    /// None if no session matches, or more than one.
    Session(Option<Box<SessionRow>>),
    Window(Box<WindowData>),
    Hits {
        hits: Vec<SearchHit>,
        reading: Reading,
    },
    Budgets(Vec<BudgetUse>),
    Changes(Box<Changes>),
    Standing(Box<Standing>),
    Prompts(PromptAnswer),
    Notes(Vec<PlacedNote>),
    Findings(Vec<FindingEntry>),
    /// A change was made: a message about it.
    Changed(String),
    Markdown(String),
    /// What went wrong and what to do next.
    Failed(String),
}

/// A window of a session, with the session's row and header blocks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WindowData {
    pub session_row: SessionRow,
    pub head: Vec<Block>,
    pub view: WindowView,
    /// What the agent plans now.
    #[serde(default)]
    pub tasks: Tasks,
}

/// A part or a title that matches a search.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SearchHit {
    pub session: SessionId,
    pub agent: String,
    pub title: Option<String>,
    pub turn: Option<u32>,
    /// Negative for user messages.
    pub place: Option<Place>,
    pub kind: String,
    pub tool: Option<String>,
    /// The state of a call that did not simply complete.
    #[serde(default)]
    pub state: Option<String>,
    pub at: Option<i64>,
    pub snippet: String,
    /// Byte ranges of the matches in the snippet, in order.
    pub ranges: Vec<(usize, usize)>,
}

/// Runs a query. Errors become a `Failed` response. `Query::Markdown` blocks the thread.
pub async fn answer<V: View>(view: &V, settings: &Settings, query: Query) -> Response {
    match run(view, settings, query).await {
        Ok(answer) => answer,
        Err(error) => Response::Failed(error.to_string()),
    }
}

async fn run<V: View>(
    view: &V,
    settings: &Settings,
    query: Query,
) -> Result<Response, ExportError> {
    let Settings { prices, rules, budgets, folding, reflection } = settings;
    match query {
        Query::List { after, limit } => {
            let first = SessionFilter { limit: Some(limit), ..SessionFilter::default() };
            let filter = SessionFilter { after, without_agents: true, ..first };
            let found = view.sessions(filter).await?;
            let more = found.len() as u64 >= limit;
            let sessions = session_rows(view, prices, reflection, found).await?;
            Ok(Response::List { sessions, more })
        }
        Query::Session { id } => {
            let mut found = view.find(id).await?;
            let only = found.pop().filter(|_| found.is_empty());
            let Some(stored) = only else { return Ok(Response::Session(None)) };
            let mut session_row = session_row(view, prices, &stored).await?;
            add_figures(view, prices, &stored, &mut session_row).await?;
            session_row.findings = reflection.count_kept(&stored);
            Ok(Response::Session(Some(Box::new(session_row))))
        }
        Query::Window { session, anchor, filter, size } => {
            let Some(stored) = view.session(session).await? else { return Ok(no_session()) };
            let request =
                WindowRequest { anchor, filter: filter.as_ref(), size, folding: *folding };
            let settle = |turns: &mut [Turn]| stored.summary.settle(turns, Timestamp::now());
            let loaded = window(view, &stored, request, settle).await?;
            let mut head = present::session(&stored.summary, prices);
            head.extend(head_blocks(&view.notes(session).await?));
            let mut session_row = session_row(view, prices, &stored).await?;
            add_figures(view, prices, &stored, &mut session_row).await?;
            let tasks = view.plans(stored.row).await?.iter().collect();
            Ok(Response::Window(Box::new(WindowData { session_row, head, view: loaded, tasks })))
        }
        Query::Search { query, session, limit } => {
            let request = SearchRequest { session, limit, ..SearchRequest::new(&query) };
            let Outcome { results, reading } = search::search(view, request).await?;
            let hits = results.hits.into_iter().map(SearchHit::from).collect();
            Ok(Response::Hits { hits, reading })
        }
        Query::Budgets => {
            Ok(Response::Budgets(warnings(view, budgets, prices, &Zoned::now()).await?))
        }
        Query::Changes { session, turn } => {
            let Some(stored) = view.session(session).await? else { return Ok(no_session()) };
            Ok(match changes(view, &stored, turn).await? {
                Some(changes) => Response::Changes(Box::new(changes)),
                None => Response::Failed("the session has no such turn".to_owned()),
            })
        }
        Query::Standing { session } => {
            let Some(stored) = view.session(session).await? else { return Ok(no_session()) };
            Ok(standing_of(view, &stored).await?)
        }
        Query::Prompts { session, query } => {
            let Some(stored) = view.session(session).await? else { return Ok(no_session()) };
            let found = answer_prompts(view, &stored, query).await?;
            Ok(found.map_or_else(Response::Failed, Response::Prompts))
        }
        Query::Findings { session } => {
            let Some(stored) = view.session(session).await? else { return Ok(no_session()) };
            Ok(Response::Findings(reflection.entries(view, &stored).await?))
        }
        Query::Notes { session } => Ok(Response::Notes(view.notes(session).await?)),
        Query::Markdown { session, excerpt } => {
            let Some(stored) = view.session(session).await? else { return Ok(no_session()) };
            let options = Options { prices: prices.clone(), ..Options::default() };
            let mut text = Vec::new();
            match export::markdown(view, &stored, &excerpt, &options, rules, &mut text)? {
                true => Ok(Response::Markdown(String::from_utf8_lossy(&text).into_owned())),
                false => Ok(Response::Failed("the session no longer has this part".to_owned())),
            }
        }
    }
}

async fn standing_of<V: View>(view: &V, stored: &StoredSession) -> Result<Response, StoreError> {
    let changes = changes(view, stored, None).await?.unwrap_or_default();
    let found = standing(view, stored, &changes).await;
    Ok(found.map_or_else(
        |error| Response::Failed(error.to_string()),
        |found| Response::Standing(Box::new(found.standing)),
    ))
}

/// The rows of a list, with the findings that are there already; the others are looked for later.
async fn session_rows<V: View>(
    view: &V,
    prices: &Prices,
    reflection: &Arc<Reflection>,
    found: Vec<StoredSession>,
) -> Result<Vec<SessionRow>, StoreError> {
    let mut rows = Vec::with_capacity(found.len());
    for stored in &found {
        let findings = reflection.count_kept(stored);
        rows.push(SessionRow { findings, ..session_row(view, prices, stored).await? });
    }
    reflection.look_later(view.clone(), found);
    Ok(rows)
}

/// Adds what a single session's row has beyond that of a list.
async fn add_figures<V: View>(
    view: &V,
    prices: &Prices,
    stored: &StoredSession,
    session_row: &mut SessionRow,
) -> Result<(), StoreError> {
    session_row.context = context(view, stored).await?;
    session_row.burn_rate = burn_rate(view, stored, prices, Timestamp::now()).await?;
    Ok(())
}

fn no_session() -> Response {
    Response::Failed("this session is no longer in the archive".to_owned())
}

async fn session_row<V: View>(
    view: &V,
    prices: &Prices,
    stored: &StoredSession,
) -> Result<SessionRow, StoreError> {
    let summary = &stored.summary;
    let session = &summary.session;
    Ok(SessionRow {
        id: session.id,
        agent: session.agent.clone(),
        title: summary.title.clone().unwrap_or_else(|| UNTITLED.to_owned()),
        project: session.facts.project.clone(),
        models: summary.models.clone(),
        tags: summary.tags.clone(),
        started: summary.started,
        ended: summary.ended,
        last_heard: summary.last_heard(),
        state: session.state,
        activity: activity(view, stored).await?,
        last_turn: summary.last_turn,
        turns: summary.turns,
        parts: summary.parts,
        tools: summary.tools,
        errors: summary.errors,
        tokens: summary.usage_with_agents.total(),
        cached_tokens: summary.usage_with_agents.cache_read,
        cost: present::short_cost(&summary.spending_with_agents, prices),
        sub_agent: stored.is_agent(),
        seq: stored.seq,
        resume: resume(session),
        context: None,
        burn_rate: None,
        findings: 0,
    })
}

/// The shell command that resumes a session in its agent.
pub fn resume(session: &Session) -> Option<String> {
    // The id is untrusted: offer the command only if no shell can interpret its characters and the
    // agent cannot take it for an option.
    let id = &session.agent_session_id;
    let plain = id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    let command = Agent::named(&session.agent)?.resume?;
    let folder = session.facts.project.as_deref().and_then(change_folder).unwrap_or_default();
    (plain && session.parent.is_none()).then(|| format!("{folder}{command} {id}"))
}

/// `cd PROJECT && `, quoted for a shell: agents look for a session in the folder where they start.
/// None for a path that a terminal could not show as it is.
fn change_folder(project: &str) -> Option<String> {
    let plain = |c: char| c.is_alphanumeric() || "/._-+@%".contains(c);
    if !project.starts_with('/') || project.chars().any(char::is_control) {
        None
    } else if project.chars().all(plain) {
        Some(format!("cd {project} && "))
    } else {
        Some(format!("cd '{}' && ", project.replace('\'', r"'\''")))
    }
}

impl From<Hit> for SearchHit {
    fn from(hit: Hit) -> SearchHit {
        SearchHit {
            state: hit.notable_state().map(str::to_owned),
            session: hit.session,
            agent: hit.agent,
            title: hit.title,
            turn: hit.turn,
            place: hit.place,
            kind: hit.kind,
            tool: hit.tool,
            at: hit.at,
            snippet: hit.snippet.text,
            ranges: hit.snippet.ranges.iter().map(|range| (range.start, range.end)).collect(),
        }
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
