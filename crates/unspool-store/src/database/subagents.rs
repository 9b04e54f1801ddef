//! The sub-agents of sessions: parents and children, and what each of them spent.

use crate::sql::{Connection, OptionalExtension, Row};
use rustc_hash::FxHashSet;
use unspool_model::id::SessionId;
use unspool_model::part::Place;
use unspool_model::price::{ReportedCost, Spending};
use unspool_model::session::{Parent, Usage};

use super::load::{id, usage};
use crate::pack::PackError;
use crate::rows::RowId;
use crate::store::{StoreError, SubagentRef};

/// Which sessions have sub-agents, and which are sub-agents. Most are neither and skip the joins.
#[derive(Default)]
pub(super) struct SubagentIndex {
    parents: FxHashSet<RowId>,
    children: FxHashSet<String>,
}

impl SubagentIndex {
    pub fn load(connection: &Connection) -> Result<SubagentIndex, StoreError> {
        let mut parents = connection.prepare_cached(
            "SELECT parent FROM agent
             UNION SELECT session.row FROM session AS child JOIN session ON session.id = child.parent
             WHERE child.parent IS NOT NULL",
        )?;
        let mut children = connection.prepare_cached("SELECT DISTINCT session FROM agent")?;
        Ok(SubagentIndex {
            parents: parents.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?,
            children: children.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?,
        })
    }

    pub fn has_agents(&self, session: RowId) -> bool {
        self.parents.contains(&session)
    }

    pub fn is_agent(&self, session: SessionId) -> bool {
        self.children.contains(&session.to_string())
    }
}

/// The sub-agents of a session, nested ones included, each with the agent part of this session
/// that leads to it. Some are known only by the call that their own log names: the result of a call
/// in a sub-agent of Claude Code does not say which agent it started (2.1.325).
pub(super) fn subagents(
    connection: &Connection,
    session: RowId,
) -> Result<Vec<SubagentRef>, StoreError> {
    let mut statement = connection.prepare_cached(&format!(
        "WITH RECURSIVE below (session, turn, place) AS (
             SELECT agent.session, part.turn, part.place FROM agent
             JOIN part ON part.row = agent.part WHERE agent.parent = ?1
             UNION
             SELECT child.id, part.turn, part.place FROM session
             JOIN session AS child ON child.parent = session.id
             JOIN turn ON turn.session = session.row
             JOIN part ON part.turn = turn.row AND part.kind = 'agent'
                 AND part.call_id = child.parent_call
             WHERE session.row = ?1
                 AND NOT EXISTS (SELECT 1 FROM agent WHERE agent.session = child.id)
             UNION {}
         )
         SELECT below.session, turn.number, below.place FROM below
         JOIN turn ON turn.row = below.turn ORDER BY turn.number, below.place, below.session",
        match connection.is_server() {
            false => {
                "SELECT agent.session, below.turn, below.place FROM below
                 JOIN session ON session.id = below.session
                 JOIN agent ON agent.parent = session.row
                 UNION
                 SELECT child.id, below.turn, below.place FROM below
                 JOIN session AS child ON child.parent = below.session"
            }
            true => {
                "SELECT next.session, below.turn, below.place FROM below JOIN LATERAL
                     (SELECT agent.session FROM session JOIN agent ON agent.parent = session.row
                      WHERE session.id = below.session
                      UNION SELECT child.id FROM session AS child
                      WHERE child.parent = below.session) AS next ON true"
            }
        }
    ))?;
    let mut rows = statement.query([session])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(SubagentRef {
            session: SessionId(id(row.get_ref(0)?.as_str()?)?),
            turn: row.get(1)?,
            place: Place(row.get(2)?),
        });
    }
    Ok(found)
}

/// The sub-agents of a session that have a running turn, nested ones included. There may be thousands of
/// others, and lists ask for each of their rows.
pub(super) fn live_subagents(
    connection: &Connection,
    session: RowId,
) -> Result<Vec<SessionId>, StoreError> {
    let mut statement = connection.prepare_cached(
        "WITH RECURSIVE below (row) AS (
             SELECT session.row FROM agent JOIN session ON session.id = agent.session
             WHERE agent.parent = ?1
             UNION
             SELECT session.row FROM below JOIN agent ON agent.parent = below.row
             JOIN session ON session.id = agent.session
         )
         SELECT session.id FROM below JOIN session ON session.row = below.row
         WHERE EXISTS (SELECT 1 FROM turn WHERE turn.session = session.row AND turn.state = 'running')
         ORDER BY session.id",
    )?;
    let mut rows = statement.query([session])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(SessionId(id(row.get_ref(0)?.as_str()?)?));
    }
    Ok(found)
}

/// The sessions that those of the table `below` started, as the recursive part of a query.
pub(super) fn next_below(connection: &Connection) -> &'static str {
    match connection.is_server() {
        false => {
            "SELECT session.row FROM below
             JOIN agent ON agent.parent = below.row
             JOIN session ON session.id = agent.session
             UNION
             SELECT child.row FROM below
             JOIN session ON session.row = below.row
             JOIN session AS child ON child.parent = session.id"
        }
        // PostgreSQL takes one recursive part only, and SQLite has no LATERAL.
        true => {
            "SELECT next.row FROM below JOIN LATERAL
                 (SELECT session.row FROM agent JOIN session ON session.id = agent.session
                  WHERE agent.parent = below.row
                  UNION SELECT child.row FROM session JOIN session AS child
                      ON child.parent = session.id WHERE session.row = below.row) AS next ON true"
        }
    }
}

/// The usage of one sub-agent.
pub(super) struct SubagentUsage {
    pub used: Usage,
    pub spending: Spending,
}

/// The usage of a session's sub-agents, nested ones included. Ordered by id, so that sums of
/// floating point dollars do not depend on the import order.
pub(super) fn agents_of(
    connection: &Connection,
    session: RowId,
) -> Result<Vec<SubagentUsage>, StoreError> {
    let sql = format!(
        "WITH RECURSIVE below (row) AS (
             SELECT CAST(?1 AS INTEGER)
             UNION
             {}
         )
         SELECT input, output, cache_read, cache_write, reasoning, cache_write_1h, row, models,
             cost_usd, {COST_TOKENS}
         FROM session WHERE row IN (SELECT below.row FROM below) AND row <> ?1 ORDER BY id",
        next_below(connection)
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([session])?;
    let mut agents = Vec::new();
    while let Some(row) = rows.next()? {
        let used = usage(&row, 0)?;
        let models: Vec<String> =
            serde_json::from_str(row.get_ref(7)?.as_str()?).map_err(PackError::from)?;
        let spending = spending(connection, row.get(6)?, &models, used, reported_cost(&row, 8)?)?;
        agents.push(SubagentUsage { used, spending });
    }
    Ok(agents)
}

/// The tokens that the reported cost of a session is for, as JSON. Of the few sessions with a cost.
pub(super) const COST_TOKENS: &str = "CASE WHEN session.cost_usd IS NULL THEN NULL
    ELSE json_extract(session.head, '$.facts.cost_tokens') END";

/// The reported cost of a row: `cost_usd`, and after it `COST_TOKENS`.
pub(super) fn reported_cost(row: &Row<'_>, at: usize) -> Result<Option<ReportedCost>, StoreError> {
    let Some(usd) = row.get(at)? else { return Ok(None) };
    let tokens = row.get_ref(at + 1)?.as_str_or_null()?.map(serde_json::from_str);
    Ok(Some(ReportedCost { usd, tokens: tokens.transpose().map_err(PackError::from)? }))
}

/// The spending of a session by model. For at most one model the session's sums suffice.
pub(super) fn spending(
    connection: &Connection,
    session: RowId,
    models: &[String],
    used: Usage,
    reported: Option<ReportedCost>,
) -> Result<Spending, StoreError> {
    if let [] | [_] = models {
        let model = models.first().map(String::as_str);
        return Ok(Spending::of_session([(model, used)], reported));
    }
    let mut statement = connection.prepare_cached(
        "SELECT CAST(total(step.input) AS INTEGER), CAST(total(step.output) AS INTEGER),
             CAST(total(step.cache_read) AS INTEGER), CAST(total(step.cache_write) AS INTEGER),
             CAST(total(step.reasoning) AS INTEGER), CAST(total(step.cache_write_1h) AS INTEGER),
             step.model
         FROM turn JOIN step ON step.turn = turn.row WHERE turn.session = ?1 GROUP BY step.model
         ORDER BY step.model NULLS FIRST",
    )?;
    let calls: Vec<(Option<String>, Usage)> = statement
        .query_map([session], |row| Ok((row.get(6)?, usage(row, 0)?)))?
        .collect::<Result<_, _>>()?;
    let calls = calls.iter().map(|(model, used)| (model.as_deref(), *used));
    Ok(Spending::of_session(calls, reported))
}

/// The session and call that started this session as a sub-agent.
pub(super) fn parent(connection: &Connection, of: SessionId) -> Result<Option<Parent>, StoreError> {
    let found: Option<(String, String)> = connection
        .prepare_cached(
            "SELECT session.id, agent.call_id FROM agent
             JOIN session ON session.row = agent.parent
             WHERE agent.session = ?1 AND session.id <> ?1
             ORDER BY session.started NULLS FIRST, session.id LIMIT 1",
        )?
        .query_row([of.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    match found {
        Some((session, call_id)) => {
            let (session, call_id) = (SessionId(id(&session)?), Some(call_id));
            Ok(Some(Parent { session, call_id, kind: None }))
        }
        None => Ok(None),
    }
}
