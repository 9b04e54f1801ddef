//! The session list: the SQL conditions of a filter, and paging in list order.

use crate::sql::Value;
use crate::sql::{Connection, params_from_iter};
use unspool_model::id::SessionId;

use super::session::{SESSION, session};
use crate::database::subagents::SubagentIndex;
use crate::store::{SessionFilter, StoreError, StoredSession};

/// Excludes sub-agents without turns: agents started only to warm a cache, and sessions of which
/// only a sidecar file (`agent-….meta.json`) was read.
pub(in crate::database) const NOT_EMPTY: &str =
    " AND NOT (session.sub_agent AND session.turns = 0)";

pub fn sessions(
    connection: &Connection,
    filter: &SessionFilter,
) -> Result<Vec<StoredSession>, StoreError> {
    let subagent_index = SubagentIndex::load(connection)?;
    let mut found = Vec::new();
    let mut read = |range: &ListRange, limit: Option<u64>| -> Result<u64, StoreError> {
        let mut conditions = SessionConditions::by(filter);
        match range {
            ListRange::All => {}
            // A range of the index `session_started`: constant cost at any depth of the list.
            ListRange::After(Some(started), id) => {
                conditions.require("session.started <= ?", (*started).into());
                conditions.sql.push_str(" AND (session.started < ? OR session.id > ?)");
                conditions.values.extend([(*started).into(), id.to_string().into()]);
            }
            ListRange::After(None, id) => {
                conditions
                    .require("session.started IS NULL AND session.id > ?", id.to_string().into());
            }
            ListRange::Untimed => conditions.sql.push_str(" AND session.started IS NULL"),
        }
        // Without a limit, `since` selects by the index `session_last_heard`; the unary plus keeps
        // SQLite from sorting by index. With a limit, walking the list order is faster.
        let order = match (filter.since, limit) {
            (Some(_), None) => "ORDER BY +session.started DESC NULLS LAST, session.id",
            (_, _) => "ORDER BY session.started DESC NULLS LAST, session.id",
        };
        let mut sql = format!("{SESSION} WHERE true{} {order}", conditions.sql);
        if let Some(limit) = limit {
            sql.push_str(" LIMIT ?");
            conditions.values.push(i64::try_from(limit).unwrap_or(i64::MAX).into());
        }
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params_from_iter(conditions.values))?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            found.push(session(connection, &subagent_index, &row)?);
            count += 1;
        }
        Ok(count)
    };
    let Some((started, id)) = filter.after else {
        read(&ListRange::All, filter.limit)?;
        return Ok(found);
    };
    let count = read(&ListRange::After(started, id), filter.limit)?;
    let left = filter.limit.map(|limit| limit - count);
    // Sessions without a time come last.
    if started.is_some() && left != Some(0) {
        read(&ListRange::Untimed, left)?;
    }
    Ok(found)
}

/// A range of the session list.
enum ListRange {
    All,
    After(Option<i64>, SessionId),
    Untimed,
}

/// SQL conditions on sessions, with their values in placeholder order.
struct SessionConditions {
    /// Each begins with ` AND `.
    pub sql: String,
    pub values: Vec<Value>,
}

impl SessionConditions {
    pub fn by(filter: &SessionFilter) -> SessionConditions {
        let mut conditions = SessionConditions { sql: String::new(), values: Vec::new() };
        if !filter.with_empty {
            conditions.sql.push_str(NOT_EMPTY);
        }
        if filter.without_agents {
            // Marked as a sub-agent by its own log or by its parent's.
            conditions.sql.push_str(
                " AND NOT session.sub_agent AND session.parent IS NULL AND NOT EXISTS
                 (SELECT 1 FROM agent WHERE agent.session = session.id
                     AND agent.parent <> session.row)",
            );
        }
        if filter.with_errors {
            conditions.sql.push_str(" AND session.errors > 0");
        }
        if let Some(agent) = &filter.agent {
            conditions.require("session.agent = ?", agent.clone().into());
        }
        if let Some(project) = &filter.project {
            conditions.require("instr(session.project, ?) > 0", project.clone().into());
        }
        if let Some(model) = &filter.model {
            conditions.require(
                "EXISTS (SELECT 1 FROM json_each(session.models) WHERE value = ?)",
                model.clone().into(),
            );
        }
        if let Some(tag) = &filter.tag {
            conditions.require(
                "EXISTS (SELECT 1 FROM tag WHERE tag.session = session.row AND tag.name = ?)",
                tag.clone().into(),
            );
        }
        if let Some(since) = filter.since {
            conditions.require("coalesce(session.ended, session.started) >= ?", since.into());
        }
        if let Some(until) = filter.until {
            conditions.require("session.started < ?", until.into());
        }
        conditions
    }

    fn require(&mut self, condition: &str, value: Value) {
        self.sql.push_str(" AND ");
        self.sql.push_str(condition);
        self.values.push(value);
    }
}
