//! Reads sessions, turns, messages and files, and what the recorder needs to resume a session.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row as SqlRow, params_from_iter};
use rustc_hash::FxHashMap;
use unspool_core::assemble::{Cursor, TurnStub};
use unspool_core::id::{SessionId, TurnId};
use unspool_core::provenance::Feed;
use unspool_core::session::{Parent, Turn};
use unspool_core::source::{FileStamp, Fingerprint, RecordCounts};
use unspool_core::summary::{Completeness, Summary};

use super::load::{Loader, id, usage};
use super::subagents::{SubagentIndex, agents_of, parent, spending};
use crate::pack::PackError;
use crate::rows::{FileRow, RowId, Snapshot, SourceRow, WarningRow};
use crate::store::{
    MessageFilter, NextRows, SessionExport, SessionFilter, SessionOutline, StoreError,
    StoredMessage, StoredSession, StoredTurn, StoredWarning, TurnWindow,
};

const SESSION: &str = "SELECT session.row, session.head, session.name, session.title,
    session.prompt, session.models, session.completeness, session.sub_agent, session.started,
    session.ended, session.turns, session.parts, session.tools, session.errors, session.input,
    session.output, session.cache_read, session.cache_write, session.reasoning,
    session.cache_write_1h, session.seq,
    (SELECT json_group_array(tag.name) FROM tag WHERE tag.session = session.row),
    session.oddities,
    (SELECT turn.state = 'running' AND turn.number > 0 FROM turn WHERE turn.session = session.row
        ORDER BY turn.number DESC, turn.row DESC LIMIT 1) FROM session";

/// Excludes sub-agents without turns: agents started only to warm a cache, and sessions of which
/// only a sidecar file (`agent-….meta.json`) was read.
pub(super) const NOT_EMPTY: &str = " AND NOT (session.sub_agent AND session.turns = 0)";

fn session(
    connection: &Connection,
    subagent_index: &SubagentIndex,
    row: &SqlRow<'_>,
) -> Result<StoredSession, StoreError> {
    let head = row.get_ref(1)?.as_str()?;
    let session: unspool_core::session::Session =
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
    let spending = spending(connection, row_number, &models, used, session.facts.cost_usd)?;
    let mut with_agents = (used, spending.clone());
    if subagent_index.has_agents(row_number) {
        for agent in agents_of(connection, row_number)? {
            with_agents.0.add(agent.used);
            with_agents.1.add(&agent.spending);
        }
    }
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
        running: row.get::<_, Option<bool>>(23)?.unwrap_or_default(),
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
        let mut sql = format!("{SESSION} WHERE 1{} {order}", conditions.sql);
        if let Some(limit) = limit {
            sql.push_str(" LIMIT ?");
            conditions.values.push(i64::try_from(limit).unwrap_or(i64::MAX).into());
        }
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params_from_iter(conditions.values))?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            found.push(session(connection, &subagent_index, row)?);
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
pub(super) struct SessionConditions {
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
        let stored = session(connection, &subagent_index, row)?;
        found.insert(stored.summary.session.id, stored);
    }
    Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
}

pub fn find(connection: &Connection, text: &str) -> Result<Vec<StoredSession>, StoreError> {
    // A range instead of LIKE, which would interpret `%` and `_`.
    let sql = format!(
        "{SESSION} WHERE (session.id >= ?1 AND session.id < ?2)
             OR (session.agent_session_id >= ?1 AND session.agent_session_id < ?2)
         ORDER BY session.id = ?1 DESC, session.agent_session_id = ?1 DESC,
             session.started DESC, session.id LIMIT 50"
    );
    let subagent_index = SubagentIndex::load(connection)?;
    let end = format!("{text}\u{10FFFF}");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([text, &end])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(session(connection, &subagent_index, row)?);
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

pub fn turns(
    connection: &Connection,
    session: RowId,
    window: TurnWindow,
) -> Result<Vec<Turn>, StoreError> {
    let (first, last, count) = match window {
        TurnWindow::All => (0, i64::MAX, -1),
        TurnWindow::Turn(number) => (number.into(), number.into(), -1),
        TurnWindow::From { number, count } => (number.into(), i64::MAX, i64::from(count)),
    };
    let mut loader = Loader::new(connection);
    let mut statement = connection.prepare_cached(
        "SELECT row, head FROM turn WHERE session = ?1 AND number BETWEEN ?2 AND ?3
         ORDER BY number, row LIMIT ?4",
    )?;
    let mut rows = statement.query([session, first, last, count])?;
    let mut turns = Vec::new();
    while let Some(row) = rows.next()? {
        let head = row.get_ref(1)?.as_str()?;
        turns.push(loader.turn(row.get(0)?, head)?.turn);
    }
    Ok(turns)
}

pub fn turn(
    connection: &Connection,
    session: RowId,
    id: TurnId,
) -> Result<Option<StoredTurn>, StoreError> {
    let found: Option<(RowId, String)> = connection
        .prepare_cached("SELECT row, head FROM turn WHERE session = ?1 AND id = ?2")?
        .query_row((session, id.to_string()), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    found.map(|(row, head)| Loader::new(connection).turn(row, &head)).transpose()
}

pub fn outline(
    connection: &Connection,
    id: SessionId,
) -> Result<Option<SessionOutline>, StoreError> {
    let sql = format!("{SESSION} WHERE session.id = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([id.to_string()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let mut stored = session(connection, &SubagentIndex::default(), row)?;
    // The recorder needs the stored head, without the fields that reads join in.
    stored.summary.session =
        serde_json::from_str(row.get_ref(1)?.as_str()?).map_err(PackError::from)?;
    let row = stored.row;
    let mut outline = SessionOutline {
        stored,
        turns: Vec::new(),
        unsettled: Vec::new(),
        cursors: cursors(connection, row)?,
        sources: sources(connection, row)?,
    };
    let mut turns = connection.prepare_cached(
        "SELECT row, head, names, settled FROM turn WHERE session = ?1 ORDER BY row",
    )?;
    let mut rows = turns.query([row])?;
    while let Some(row) = rows.next()? {
        let turn: Turn =
            serde_json::from_str(row.get_ref(1)?.as_str()?).map_err(PackError::from)?;
        let names = row.get_ref(2)?.as_blob()?;
        let names = names.as_chunks::<8>().0.iter().map(|name| u64::from_le_bytes(*name)).collect();
        if !row.get::<_, bool>(3)? {
            outline.unsettled.push(turn.id);
        }
        outline.turns.push((row.get(0)?, TurnStub { turn, names }));
    }
    Ok(Some(outline))
}

fn feed(name: &str) -> Feed {
    match name {
        "hooks" => Feed::Hooks,
        "stream" => Feed::Stream,
        _ => Feed::Log,
    }
}

fn cursors(connection: &Connection, session: RowId) -> Result<Vec<Cursor>, StoreError> {
    let mut statement = connection
        .prepare_cached("SELECT telling, source, offset, nth FROM cursor WHERE session = ?1")?;
    let rows = statement.query_map([session], |row| {
        Ok(Cursor {
            feed: feed(row.get_ref(0)?.as_str()?),
            source: row.get(1)?,
            offset: row.get::<_, i64>(2)? as u64,
            nth: row.get(3)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn sources(connection: &Connection, session: RowId) -> Result<Vec<SourceRow>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT file, number, telling, first, read, in_parts, metadata, unreadable, left_out,
             (SELECT sub_agent FROM session WHERE row = source.session)
         FROM source WHERE session = ?1 ORDER BY number, file",
    )?;
    let mut rows = statement.query([session])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let count = |at: usize| row.get::<_, i64>(at).map(|count| count as u64);
        found.push(SourceRow {
            file: row.get(0)?,
            number: row.get(1)?,
            feed: feed(row.get_ref(2)?.as_str()?),
            first: count(3)?,
            sub_agent: row.get(9)?,
            records: RecordCounts {
                read: count(4)?,
                in_parts: count(5)?,
                metadata: count(6)?,
                unreadable: count(7)?,
                left_out: serde_json::from_str(row.get_ref(8)?.as_str()?)
                    .map_err(PackError::from)?,
            },
        });
    }
    Ok(found)
}

pub fn records(connection: &Connection, session: RowId) -> Result<RecordCounts, StoreError> {
    // Sources with the same number are copies of one log (renamed, compressed, restored). Count
    // the longest.
    let mut longest: BTreeMap<u16, RecordCounts> = BTreeMap::new();
    for source in sources(connection, session)? {
        let held = longest.entry(source.number).or_default();
        if source.records.read > held.read {
            *held = source.records;
        }
    }
    let mut records = RecordCounts::default();
    longest.values().for_each(|counted| records.merge(counted));
    Ok(records)
}

pub fn warnings(connection: &Connection, session: RowId) -> Result<Vec<StoredWarning>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT file.path, warning.line, warning.what FROM warning
         JOIN file ON file.row = warning.file
         WHERE warning.session = ?1 ORDER BY file.path, warning.line, warning.row",
    )?;
    let rows = statement.query_map([session], |row| {
        Ok(StoredWarning {
            file: row.get(0)?,
            line: row.get::<_, i64>(1)? as u64,
            what: row.get(2)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The length of a message preview, in characters (R-001-10).
const PREVIEW_CHARS: usize = 200;

pub fn messages(
    connection: &Connection,
    session: SessionId,
    filter: &MessageFilter,
) -> Result<Vec<StoredMessage>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT id, execution_id, role, sequence, has_tool_calls, has_reasoning, has_files,
             content, created_at FROM message
         WHERE agent_id = ?1 AND (?2 IS NULL OR role = ?2)
             AND (?3 IS NULL OR has_tool_calls = ?3)
             AND (?4 IS NULL OR (role = 'assistant' AND EXISTS (SELECT 1 FROM part
                 JOIN turn ON turn.row = part.turn
                 JOIN session ON session.row = turn.session AND session.id = ?1
                 WHERE turn.id = message.execution_id AND part.tool = ?4 AND NOT part.hidden)))
             AND (?5 IS NULL OR execution_id = ?5)
             AND (?6 IS NULL OR sequence > ?6)
         ORDER BY sequence LIMIT ?7",
    )?;
    let mut rows = statement.query((
        session.to_string(),
        &filter.role,
        filter.has_tool_calls,
        &filter.tool_name,
        filter.execution.map(|turn| turn.to_string()),
        filter.after.map(|after| i64::try_from(after).unwrap_or(i64::MAX)),
        filter.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX)),
    ))?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        // Not the view's preview: SQL functions end a text at its first NUL.
        let content: String = row.get(7)?;
        messages.push(StoredMessage {
            id: row.get(0)?,
            execution: TurnId(id(row.get_ref(1)?.as_str()?)?),
            role: row.get(2)?,
            sequence: row.get::<_, i64>(3)? as u64,
            has_tool_calls: row.get(4)?,
            has_reasoning: row.get(5)?,
            has_files: row.get(6)?,
            text_preview: content.chars().take(PREVIEW_CHARS).collect(),
            content,
            created_at: row.get(8)?,
        });
    }
    Ok(messages)
}

/// Everything stored about a session except its turns.
pub fn session_export(
    connection: &Connection,
    session: RowId,
) -> Result<SessionExport, StoreError> {
    let head: String =
        connection
            .query_row("SELECT head FROM session WHERE row = ?1", [session], |row| row.get(0))?;
    let mut statement = connection.prepare_cached(
        "SELECT file.path, warning.file, warning.line, warning.what, warning.bytes FROM warning
         JOIN file ON file.row = warning.file WHERE warning.session = ?1 ORDER BY warning.row",
    )?;
    let warnings = statement.query_map([session], |row| {
        let warning = WarningRow {
            file: row.get(1)?,
            session: Some(session),
            line: row.get::<_, i64>(2)? as u64,
            what: row.get(3)?,
            bytes: row.get(4)?,
        };
        Ok((row.get(0)?, warning))
    })?;
    let mut shots = connection.prepare_cached(
        "SELECT kind, snapshot.sha256, content FROM session_snapshot
         JOIN snapshot ON snapshot.sha256 = session_snapshot.sha256 WHERE session = ?1",
    )?;
    let snapshots = shots.query_map([session], |row| {
        Ok(Snapshot { kind: row.get(0)?, sha256: row.get(1)?, content: row.get(2)? })
    })?;
    Ok(SessionExport {
        session: serde_json::from_str(&head).map_err(PackError::from)?,
        sources: sources(connection, session)?,
        cursors: cursors(connection, session)?,
        warnings: warnings.collect::<Result<_, _>>()?,
        snapshots: snapshots.collect::<Result<_, _>>()?,
    })
}

pub fn next_rows(connection: &Connection) -> Result<NextRows, StoreError> {
    let next = |table: &str| -> rusqlite::Result<RowId> {
        let sql = format!("SELECT coalesce(max(row), 0) + 1 FROM {table}");
        connection.query_row(&sql, [], |row| row.get(0))
    };
    Ok(NextRows {
        session: next("session")?,
        turn: next("turn")?,
        part: next("part")?,
        chunk: next("chunk")?,
        file: next("file")?,
    })
}

const FILE: &str = "SELECT row, path, size, modified, changed, inode, device, offset, line, head,
    tail, refused FROM file";

/// A file, without its saved state: `saved` loads that when the file is resumed.
fn file(row: &SqlRow<'_>) -> rusqlite::Result<FileRow> {
    let number = |at: usize| row.get::<_, i64>(at);
    Ok(FileRow {
        row: number(0)?,
        path: row.get(1)?,
        stamp: FileStamp {
            size: number(2)? as u64,
            modified: number(3)?,
            changed: number(4)?,
            inode: number(5)? as u64,
            device: number(6)? as u64,
        },
        print: Fingerprint {
            offset: number(7)? as u64,
            head: number(9)? as u64,
            tail: number(10)? as u64,
        },
        line: number(8)? as u64,
        saved: None,
        refused: row.get(11)?,
    })
}

pub fn files(connection: &Connection) -> Result<Vec<FileRow>, StoreError> {
    let mut statement = connection.prepare_cached(FILE)?;
    let rows = statement.query_map([], file)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The files of one session, with their saved states.
pub fn source_files(connection: &Connection, session: RowId) -> Result<Vec<FileRow>, StoreError> {
    let sql =
        format!("{FILE} WHERE row IN (SELECT file FROM source WHERE session = ?1) ORDER BY row");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([session], file)?;
    let mut files = rows.collect::<Result<Vec<FileRow>, _>>()?;
    for file in &mut files {
        file.saved = saved(connection, file.row)?;
    }
    Ok(files)
}

/// The saved decoder state of a file.
pub fn saved(connection: &Connection, file: RowId) -> Result<Option<String>, StoreError> {
    let found: Option<Option<Vec<u8>>> = connection
        .prepare_cached("SELECT saved FROM file WHERE row = ?1")?
        .query_row([file], |row| row.get(0))
        .optional()?;
    // If it cannot be read, the file is read from its start.
    let saved = found.flatten().and_then(|saved| crate::pack::decompress(&saved).ok());
    Ok(saved.and_then(|saved| String::from_utf8(saved).ok()))
}

pub fn is_deleted(connection: &Connection, id: SessionId) -> Result<bool, StoreError> {
    let mut statement = connection.prepare_cached("SELECT 1 FROM deleted WHERE id = ?1")?;
    Ok(statement.exists([id.to_string()])?)
}
