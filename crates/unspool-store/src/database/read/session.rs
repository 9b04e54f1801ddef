//! One session as lists and pages show it: its stored summary, joined with the spending of its
//! sub-agents and with its parent.

use crate::sql::{Connection, Row as SqlRow};
use jiff::Timestamp;
use rustc_hash::FxHashMap;
use unspool_model::id::{Id, SessionId};
use unspool_model::session::{Parent, TurnState};
use unspool_model::summary::{Completeness, Summary};

use crate::database::load::usage;
use crate::database::subagents::{SubagentIndex, agents_of, parent, spending};
use crate::pack::PackError;
use crate::store::{StoreError, StoredSession};

pub(super) const SESSION: &str = "SELECT session.row, session.head, session.name, session.title,
    session.prompt, session.models, session.completeness, session.sub_agent, session.started,
    session.ended, session.turns, session.parts, session.tools, session.errors, session.input,
    session.output, session.cache_read, session.cache_write, session.reasoning,
    session.cache_write_1h, session.seq,
    (SELECT json_group_array(named.name) FROM
        (SELECT tag.name FROM tag WHERE tag.session = session.row ORDER BY tag.name) AS named),
    session.oddities,
    (SELECT CASE WHEN turn.number > 0 THEN turn.state END FROM turn WHERE turn.session = session.row
        ORDER BY turn.number DESC, turn.row DESC LIMIT 1) FROM session";

pub(super) fn session(
    connection: &Connection,
    subagent_index: &SubagentIndex,
    row: &SqlRow<'_>,
) -> Result<StoredSession, StoreError> {
    let head = row.get_ref(1)?.as_str()?;
    let session: unspool_model::session::Session =
        serde_json::from_str(head).map_err(PackError::from)?;
    let list = |at: usize| -> Result<Vec<String>, StoreError> {
        let text = row.get_ref(at)?.as_str()?;
        Ok(serde_json::from_str(text).map_err(PackError::from)?)
    };
    let count = |at: usize| row.get::<_, i64>(at).map(|count| count.max(0) as u64);
    let name: Option<String> = row.get(2)?;
    let (reported, prompt): (Option<String>, Option<String>) = (row.get(3)?, row.get(4)?);
    let time = |at: usize| -> Result<Option<Timestamp>, StoreError> {
        let at: Option<i64> = row.get(at)?;
        Ok(at.and_then(|at| Timestamp::from_millisecond(at).ok()))
    };
    let row_number = row.get(0)?;
    let (used, models) = (usage(row, 14)?, list(5)?);
    let mut spending = spending(connection, row_number, &models, used, session.facts.cost())?;
    let mut with_agents = (used, spending.clone());
    if subagent_index.has_agents(row_number) {
        for agent in agents_of(connection, row_number)? {
            with_agents.0.add(agent.used);
            with_agents.1.add(&agent.spending);
        }
    }
    spending.check_against(&with_agents.1);
    let completeness = row.get_ref(6)?.as_str()?;
    let mut summary = Summary {
        session,
        title: name.clone().or(reported).or(prompt),
        tags: list(21)?,
        models,
        completeness: Completeness::of_name(completeness).unwrap_or(Completeness::Partial),
        started: time(8)?,
        ended: time(9)?,
        turns: count(10)?,
        parts: count(11)?,
        tools: count(12)?,
        errors: count(13)?,
        last_turn: row.get::<_, Option<String>>(23)?.as_deref().and_then(TurnState::of_name),
        usage: used,
        usage_with_agents: with_agents.0,
        spending,
        spending_with_agents: with_agents.1,
    };
    summary.session.state = summary.state(Timestamp::now());
    let is_child = subagent_index.is_agent(summary.session.id);
    // The parent's agent part names the call, and the right parent of a nested agent.
    let vague = |parent: &Parent| parent.call_id.is_none();
    if is_child
        && summary.session.parent.as_ref().is_none_or(vague)
        && let Some(reported) = parent(connection, summary.session.id)?
    {
        let kind = summary.session.parent.and_then(|parent| parent.kind);
        summary.session.parent = Some(Parent { kind, ..reported });
    }
    Ok(StoredSession {
        row: row_number,
        summary,
        name,
        sub_agent: row.get(7)?,
        seq: count(20)?,
        skip_counts: serde_json::from_str(row.get_ref(22)?.as_str()?).map_err(PackError::from)?,
    })
}

/// The sessions with these ids, in this order.
pub fn sessions_by_id(
    connection: &Connection,
    ids: &[SessionId],
) -> Result<Vec<StoredSession>, StoreError> {
    let sql = format!("{SESSION} WHERE session.id IN (SELECT value FROM json_each(?1))");
    let wanted: Vec<String> = ids.iter().map(SessionId::to_string).collect();
    let wanted = serde_json::to_string(&wanted).map_err(PackError::from)?;
    let subagent_index = SubagentIndex::load(connection)?;
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([wanted])?;
    let mut found = FxHashMap::default();
    while let Some(row) = rows.next()? {
        let stored = session(connection, &subagent_index, &row)?;
        found.insert(stored.summary.session.id, stored);
    }
    Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
}

pub fn project_folders(connection: &Connection, limit: u32) -> Result<Vec<String>, StoreError> {
    // A folder of another machine may be the name of any folder here.
    let elsewhere = match connection.has_table("received")? {
        true => {
            "AND NOT EXISTS (SELECT 1 FROM source JOIN received ON received.file = source.file
                             WHERE source.session = session.row)"
        }
        false => "",
    };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT project FROM session WHERE project IS NOT NULL {elsewhere} GROUP BY project
         ORDER BY max(coalesce(ended, started, begun, 0)) DESC, project LIMIT ?1",
    ))?;
    let folders = statement.query_map([limit], |row| row.get(0))?;
    Ok(folders.collect::<Result<_, _>>()?)
}

pub fn sessions_with_running_turns(connection: &Connection) -> Result<Vec<SessionId>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT id FROM session WHERE row IN (SELECT session FROM turn WHERE state = 'running')",
    )?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let id: Option<Id> = row.get_ref(0)?.as_str()?.parse().ok();
        found.extend(id.map(SessionId));
    }
    Ok(found)
}

pub fn find(connection: &Connection, text: &str) -> Result<Vec<StoredSession>, StoreError> {
    // A range instead of LIKE, which would interpret `%` and `_`.
    let sql = format!(
        "{SESSION} WHERE (session.id >= ?1 AND session.id < ?2)
             OR (session.agent_session_id >= ?1 AND session.agent_session_id < ?2)
         ORDER BY session.id = ?1 DESC, session.agent_session_id = ?1 DESC,
             session.started DESC NULLS LAST, session.id LIMIT 50"
    );
    let subagent_index = SubagentIndex::load(connection)?;
    let end = format!("{text}\u{10FFFF}");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([text, &end])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(session(connection, &subagent_index, &row)?);
    }
    // The agent session id of a re-imported export is the Unspool id of the original. Prefer a
    // match of the Unspool id, then of the agent's id.
    let ours = |stored: &StoredSession| stored.summary.session.id.to_string();
    let theirs = |stored: &StoredSession| stored.summary.session.agent_session_id == text;
    if found.iter().any(|stored| ours(stored) == text) {
        found.retain(|stored| ours(stored) == text);
    } else if found.iter().any(theirs) {
        found.retain(theirs);
    } else if found.iter().any(|stored| ours(stored).starts_with(text)) {
        found.retain(|stored| ours(stored).starts_with(text));
    }
    Ok(found)
}
