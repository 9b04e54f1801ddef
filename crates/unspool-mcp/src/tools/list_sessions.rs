//! `list_sessions`: recorded sessions, newest first.

use unspool_model::id::{Id, SessionId};
use unspool_store::blocking::block_on;
use unspool_store::store::{ListPosition, SessionFilter, StoredSession, View};

use crate::answer::{Answer, AnswerBuilder};
use crate::arguments::Arguments;
use crate::exit::Exit;
use crate::item::{Item, SafeValue};
use crate::reader::Reader;
use crate::tool::{AFTER, AGENT, PROJECT, Parameter, SINCE, Tool, ToolError, UNTIL};

/// Sessions of one answer.
const MAX_SESSIONS: usize = 100;

const PARAMETERS: &[Parameter] = &[
    AGENT,
    PROJECT,
    Parameter::text("tag", "Only sessions with this tag."),
    Parameter::flag("errors", "Only sessions with errors."),
    Parameter::flag("sub_agents", "Also the sessions of sub-agents."),
    SINCE,
    UNTIL,
    AFTER,
];

pub fn tool<V: View>() -> Tool<V> {
    Tool {
        name: "list_sessions",
        title: "List recorded sessions",
        description: "The recorded agent sessions of this project, newest first: title, agent, when, \
                      how many turns, tool calls and errors, tokens. Use it to find what was worked \
                      on, by which agent, and which session to open with get_session. To find \
                      something that was said or done, use search_sessions.",
        parameters: PARAMETERS,
        run,
    }
}

fn run<V: View>(reader: &Reader<V>, arguments: &Arguments) -> Result<Answer, ToolError> {
    let filter = SessionFilter {
        agent: arguments.owned("agent"),
        project: reader.project(arguments)?,
        tag: arguments.owned("tag"),
        with_errors: arguments.flag("errors"),
        without_agents: !arguments.flag("sub_agents"),
        since: arguments.time("since")?,
        until: arguments.time("until")?,
        after: arguments.after(parse_cursor)?,
        ..SessionFilter::default()
    };
    let (sessions, more) = reader.sessions(filter, MAX_SESSIONS)?;
    let mut answer = AnswerBuilder::new(arguments.limit(), Item::new().done(), "sessions");
    for (at, stored) in sessions.iter().enumerate() {
        let mut exit = reader.exit(stored)?;
        let item = session(&mut exit, stored, reader);
        if !answer.push(item) {
            let before = at.checked_sub(1).and_then(|before| sessions.get(before));
            return Ok(answer.finish(before.map(cursor)));
        }
    }
    Ok(answer.finish(sessions.last().filter(|_| more).map(cursor)))
}

/// A session with its figures, without its turns.
fn session<V: View>(exit: &mut Exit<'_>, stored: &StoredSession, reader: &Reader<V>) -> SafeValue {
    let mut item = Item::new();
    session_fields(&mut item, exit, stored);
    let sub_agents = block_on(reader.view.subagents(stored.row)).unwrap_or_default();
    item.count("sub_agents", sub_agents.len() as u64);
    item.done()
}

/// The fields that every tool has of a session.
pub fn session_fields(item: &mut Item, exit: &mut Exit<'_>, stored: &StoredSession) {
    let told = exit.summary(&stored.summary);
    let session = &told.session;
    item.id("session", &session.id).field(exit, "agent", Some(&session.agent));
    item.title(exit, told.title.as_deref());
    item.field(exit, "project", session.facts.project.as_deref());
    item.field(exit, "branch", session.facts.branch.as_deref());
    item.word("state", session.state.name());
    item.time("started_at", told.started).time("ended_at", told.ended);
    item.fields(exit, "models", told.models.iter().map(String::as_str));
    item.fields(exit, "tags", told.tags.iter().map(String::as_str));
    item.number("turns", told.turns).number("tool_calls", told.tools);
    item.count("errors", told.errors);
    item.number("tokens", told.usage.input.saturating_add(told.usage.output));
    if let Some(parent) = &session.parent {
        item.id("started_by", &parent.session);
    }
}

fn cursor(last: &StoredSession) -> String {
    let started =
        last.summary.started.map_or("never".to_owned(), |at| at.as_millisecond().to_string());
    format!("{started}.{}", last.summary.session.id)
}

fn parse_cursor(text: &str) -> Option<ListPosition> {
    let (started, id) = text.rsplit_once('.')?;
    let id = SessionId(id.parse::<Id>().ok()?);
    match started {
        "never" => Some((None, id)),
        started => Some((Some(started.parse().ok()?), id)),
    }
}
