//! Derived columns: copies of values in heads and payloads, for SQL queries. Every batch writes
//! them, `check` compares them with their origin, and `rebuild` recomputes them.

use crate::sql;
use std::sync::LazyLock;

use crate::sql::Value;
use crate::sql::{Connection, OptionalExtension, Transaction, params_from_iter};
use rustc_hash::FxHashSet;
use unspool_model::landmark::Landmark;
use unspool_model::part::{Kind, Part, ToolState};
use unspool_model::provenance::Name;
use unspool_model::session::{Session, Turn};

use super::edited_files;
use super::load::Loader;
use crate::rows::sub_agents;
use crate::rows::{RowId, columns, milliseconds};
use crate::store::StoreError;

/// The derived columns of a table.
pub(super) struct TableColumns {
    pub table: &'static str,
    pub names: &'static [&'static str],
}

pub(super) const SESSION: TableColumns = TableColumns {
    table: "session",
    names: &[
        "id",
        "agent",
        "agent_session_id",
        "project",
        "branch",
        "version",
        "title",
        "state",
        "parent",
        "parent_call",
        "forked_from",
        "forked_turn",
        "cost_usd",
        "begun",
    ],
};

pub(super) const TURN: TableColumns = TableColumns {
    table: "turn",
    names: &[
        "id",
        "number",
        "trigger",
        "thinking_mode",
        "state",
        "abandoned",
        "inherited",
        "started",
        "ended",
    ],
};

pub(super) const PART: TableColumns = TableColumns {
    table: "part",
    names: &[
        "kind",
        "state",
        "tool",
        "call_id",
        "started",
        "ended",
        "duration",
        "hidden",
        "source",
        "offset",
        "length",
        "counted_calls",
    ],
};

pub(super) fn session_values(session: &Session) -> Vec<Value> {
    let facts = &session.facts;
    let parent = session.parent.as_ref();
    let forked = session.forked_from.as_ref();
    vec![
        session.id.to_string().into(),
        session.agent.clone().into(),
        session.agent_session_id.clone().into(),
        facts.project.clone().into(),
        facts.branch.clone().into(),
        facts.version.clone().into(),
        facts.title.as_ref().map(|title| title.text.clone()).into(),
        session.state.name().to_owned().into(),
        parent.map(|parent| parent.session.to_string()).into(),
        parent.map(|parent| parent.call_id.clone()).into(),
        forked.map(|from| from.session.to_string()).into(),
        forked.and_then(|from| from.turn).map(|turn| turn.to_string()).into(),
        facts.cost_usd.into(),
        milliseconds(facts.started).into(),
    ]
}

pub(super) fn turn_values(turn: &Turn) -> Vec<Value> {
    vec![
        turn.id.to_string().into(),
        turn.number.into(),
        turn.trigger.name().to_owned().into(),
        turn.thinking_mode.into(),
        turn.state.name().to_owned().into(),
        turn.abandoned.into(),
        turn.inherited.into(),
        milliseconds(turn.started).into(),
        milliseconds(turn.ended).into(),
    ]
}

pub(super) fn part_values(part: &Part) -> Vec<Value> {
    let stored = columns(&part.body);
    let first = part.evidence.first();
    vec![
        stored.kind.to_owned().into(),
        stored.state.map(str::to_owned).into(),
        stored.tool.into(),
        stored.call_id.into(),
        milliseconds(part.started).into(),
        milliseconds(part.ended).into(),
        stored.duration.into(),
        part.origin.is_hidden().into(),
        first.map(|record| i64::from(record.source)).into(),
        first.map(|record| record.offset as i64).into(),
        first.map(|record| i64::from(record.length)).into(),
        stored.counted_calls.into(),
    ]
}

/// The digests of a part's session-wide names.
fn names_of(part: &Part) -> impl Iterator<Item = u64> {
    part.origin.names.iter().filter(|name| !name.is_local()).map(Name::digest)
}

impl TableColumns {
    /// The stored values of a row.
    pub fn stored(&self, connection: &Connection, row: RowId) -> sql::Result<Vec<Value>> {
        let sql = format!("SELECT {} FROM {} WHERE row = ?1", self.names.join(", "), self.table);
        connection
            .prepare_cached(&sql)?
            .query_row([row], |row| (0..self.names.len()).map(|at| row.get(at)).collect())
    }

    /// Updates a row if its values differ.
    fn update(&self, connection: &Connection, row: RowId, values: Vec<Value>) -> sql::Result<()> {
        if self.stored(connection, row)? == values {
            return Ok(());
        }
        let places = self.names.iter().enumerate();
        let set: Vec<String> = places.map(|(at, name)| format!("{name} = ?{}", at + 2)).collect();
        let sql = format!("UPDATE {} SET {} WHERE row = ?1", self.table, set.join(", "));
        let values = std::iter::once(Value::from(row)).chain(values);
        connection.prepare_cached(&sql)?.execute(params_from_iter(values)).map(|_| ())
    }
}

/// More than this a count does not add to a sum, which would overflow. Logs are untrusted.
pub(super) const MAX_COUNTED: i64 = 1 << 60;

/// What one visible part adds to the sums of its turn: first, last, parts, tools, errors.
pub(super) static PART_FIGURES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "coalesce(part.started, part.ended), coalesce(part.ended, part.started), 1,
         iif(part.kind = 'tool', 1, 0) + coalesce(min(part.counted_calls, {MAX_COUNTED}), 0),
         iif({}, 1, 0)",
        is_error()
    )
});

/// What steps add to the sums of their turn.
pub(super) const STEP_FIGURES: &str =
    "CAST(NULL AS INTEGER), CAST(NULL AS INTEGER), CAST(total(input) AS INTEGER), CAST(total(output) AS INTEGER),
     CAST(total(cache_read) AS INTEGER), CAST(total(cache_write) AS INTEGER),
     CAST(total(reasoning) AS INTEGER), CAST(total(cache_write_1h) AS INTEGER)";

/// `Turn::is_blank` as an expression that is 0 for a blank turn and 1 for any other.
pub(super) const IS_SHOWN: &str = "(turn.number > 0 OR turn.parts > 0 OR EXISTS
     (SELECT 1 FROM part WHERE part.turn = turn.row AND part.role = 'user'))";

/// What one turn adds to the sums of its session. The times of inherited turns count only if there
/// are no others, so sessions with such turns are added up again.
pub(super) static TURN_FIGURES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "min(coalesce(started, ended, first), coalesce(first, started, ended)),
     max(coalesce(ended, started, last), coalesce(last, ended, started)),
     {IS_SHOWN}, parts, tools, errors, input, output, cache_read, cache_write, reasoning, cache_write_1h"
    )
});

/// The columns of `PART` that the archive has. A command that only reads does not migrate it, so it
/// may lack the last one.
pub(super) fn part_columns(connection: &Connection) -> sql::Result<TableColumns> {
    let sql = "SELECT count(*) FROM pragma_table_info('part') WHERE name = 'counted_calls'";
    // What is on a server always has the newest schema.
    let newest = connection.is_server() || connection.query_row(sql, [], |row| row.get(0))?;
    let names = if newest { PART.names } else { &PART.names[..PART.names.len() - 1] };
    Ok(TableColumns { names, ..PART })
}

/// Sums over the visible parts of a turn.
pub(super) fn part_sums(columns: &TableColumns) -> (&'static str, String) {
    let counted = match columns.names.contains(&"counted_calls") {
        true => "part.counted_calls",
        false => "0",
    };
    let sums = format!(
        "(SELECT min(coalesce(part.started, part.ended)), max(coalesce(part.ended, part.started)),
          count(*), CAST(total(iif(part.kind = 'tool', 1, 0)
              + coalesce(min({counted}, {MAX_COUNTED}), 0)) AS INTEGER),
          count(*) FILTER (WHERE {})
      FROM part WHERE part.turn = turn.row AND part.role = 'assistant' AND NOT part.hidden)",
        is_error()
    );
    ("(first, last, parts, tools, errors)", sums)
}

/// `Landmark::Error` as a condition on `part`: the kinds and the states that it matches.
fn is_error() -> String {
    let kinds = Kind::ALL.into_iter().filter(|kind| Landmark::Error.matches(*kind, None, None));
    let is_failure = |state: &ToolState| Landmark::Error.matches(Kind::Tool, None, Some(*state));
    let states = ToolState::ALL.into_iter().filter(is_failure);
    let kinds = kinds.map(|kind| format!("part.kind = '{}'", kind.name()));
    let states = states.map(|state| format!("part.state = '{}'", state.name()));
    format!("({})", kinds.chain(states).collect::<Vec<_>>().join(" OR "))
}

/// Sums over the steps of a turn. `total` cannot overflow and is exact up to 2^53.
pub(super) const STEP_SUMS: (&str, &str) = (
    "(input, output, cache_read, cache_write, reasoning, cache_write_1h)",
    "(SELECT CAST(total(step.input) AS INTEGER), CAST(total(step.output) AS INTEGER),
          CAST(total(step.cache_read) AS INTEGER), CAST(total(step.cache_write) AS INTEGER),
          CAST(total(step.reasoning) AS INTEGER), CAST(total(step.cache_write_1h) AS INTEGER)
      FROM step WHERE step.turn = turn.row)",
);

/// Sums over the turns of a session.
pub(super) static TURN_SUMS: LazyLock<(&str, String)> = LazyLock::new(|| {
    let started = "min(coalesce(turn.started, turn.ended, turn.first),
                       coalesce(turn.first, turn.started, turn.ended))";
    let ended = "max(coalesce(turn.ended, turn.started, turn.last),
                     coalesce(turn.last, turn.ended, turn.started))";
    let sums = format!(
        "(SELECT iif(session.begun IS NULL, sums.started,
              min(coalesce(sums.started, session.begun), session.begun)),
          sums.ended, sums.turns, sums.parts, sums.tools, sums.errors, sums.input, sums.output,
          sums.cache_read, sums.cache_write, sums.reasoning, sums.cache_write_1h
      FROM (SELECT coalesce(min({started}) FILTER (WHERE NOT turn.inherited), min({started}))
                    AS started,
                coalesce(max({ended}) FILTER (WHERE NOT turn.inherited), max({ended})) AS ended,
                count(*) FILTER (WHERE {IS_SHOWN}) AS turns,
                CAST(total(turn.parts) AS INTEGER) AS parts,
                CAST(total(turn.tools) AS INTEGER) AS tools,
                CAST(total(turn.errors) AS INTEGER) AS errors,
                CAST(total(turn.input) AS INTEGER) AS input,
                CAST(total(turn.output) AS INTEGER) AS output,
                CAST(total(turn.cache_read) AS INTEGER) AS cache_read,
                CAST(total(turn.cache_write) AS INTEGER) AS cache_write,
                CAST(total(turn.reasoning) AS INTEGER) AS reasoning,
                CAST(total(turn.cache_write_1h) AS INTEGER) AS cache_write_1h
            FROM turn WHERE turn.session = session.row) AS sums)"
    );
    let columns = "(started, ended, turns, parts, tools, errors, input, output, cache_read,
          cache_write, reasoning, cache_write_1h)";
    (columns, sums)
});

/// The stored first prompt and models of a session.
pub(super) fn prompt_and_models(
    connection: &Connection,
    session: RowId,
) -> sql::Result<(Option<String>, Vec<String>)> {
    connection.prepare_cached("SELECT prompt, models FROM session WHERE row = ?1")?.query_row(
        [session],
        |row| {
            let models = row.get_ref(1)?.as_str()?;
            Ok((row.get(0)?, serde_json::from_str(models).unwrap_or_default()))
        },
    )
}

/// The first line of the first prompt.
pub(super) fn first_prompt(connection: &Connection, session: RowId) -> sql::Result<Option<String>> {
    let first = connection
        .prepare_cached(
            "SELECT turn.row FROM turn WHERE session = ?1 AND number > 0
                 AND EXISTS (SELECT 1 FROM part WHERE turn = turn.row AND role = 'user')
             ORDER BY number LIMIT 1",
        )?
        .query_row([session], |row| row.get::<_, RowId>(0))
        .optional()?;
    let stored: Option<String> = connection
        .prepare_cached(
            "SELECT text FROM part WHERE turn = ?1 AND role = 'user' AND kind = 'text'
             ORDER BY place LIMIT 1",
        )?
        .query_row([first], |row| row.get(0))
        .optional()?
        .flatten();
    Ok(stored.as_deref().and_then(unspool_model::session::title_of_prompt))
}

/// The models of a session's steps, in the order of their first use.
pub(super) fn models_of(connection: &Connection, session: RowId) -> sql::Result<Vec<String>> {
    let mut statement = connection.prepare_cached(
        "SELECT step.model FROM turn JOIN step ON step.turn = turn.row
         WHERE turn.session = ?1 AND step.model IS NOT NULL
         ORDER BY turn.number, turn.row, step.number",
    )?;
    let mut rows = statement.query([session])?;
    let mut models: Vec<String> = Vec::new();
    while let Some(row) = rows.next()? {
        let model = row.get_ref(0)?.as_str()?;
        if !models.iter().any(|earlier| earlier == model) {
            models.push(model.to_owned());
        }
    }
    Ok(models)
}

/// Recomputes all derived columns. Unreadable rows stay unchanged; `check` reports them.
pub(super) fn derive(connection: &mut Connection) -> Result<(), StoreError> {
    let transaction = connection.transaction()?;
    derive_sessions(&transaction)?;
    edited_files::all_derived(&transaction)?;
    Ok(transaction.commit()?)
}

fn derive_sessions(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    let mut loader = Loader::new(transaction);
    for (row, head) in heads(transaction, "SELECT row, head FROM session")? {
        let Ok(session) = serde_json::from_str::<Session>(&head) else { continue };
        SESSION.update(transaction, row, session_values(&session))?;
        let turns = format!("SELECT row, head FROM turn WHERE session = {row}");
        for (turn, head) in heads(transaction, &turns)? {
            if let Ok(stored) = serde_json::from_str(&head) {
                TURN.update(transaction, turn, turn_values(&stored))?;
            }
            derive_parts(transaction, &mut loader, &session, row, turn)?;
        }
    }
    Ok(())
}

fn heads(connection: &Connection, sql: &str) -> sql::Result<Vec<(RowId, String)>> {
    connection.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Recomputes the columns of a turn's parts, their `agent` rows, and the turn's name digests.
fn derive_parts(
    transaction: &Transaction<'_>,
    loader: &mut Loader<'_>,
    session: &Session,
    session_row: RowId,
    turn: RowId,
) -> Result<(), StoreError> {
    let rows: Vec<RowId> = transaction
        .prepare_cached("SELECT row FROM part WHERE turn = ?1")?
        .query_map([turn], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut names: FxHashSet<u64> = stored_names(transaction, turn)?.into_iter().collect();
    let earlier = names.len();
    names.extend(loader.steps_if_readable(turn)?.iter().map(|step| step.name.digest()));
    for row in rows {
        let Some(loaded) = loader.part_if_readable(row)? else { continue };
        PART.update(transaction, row, part_values(&loaded.part))?;
        edited_files::write(transaction, row, &edited_files::paths_of(&loaded.part), true)?;
        names.extend(names_of(&loaded.part));
        transaction.prepare_cached("DELETE FROM agent WHERE part = ?1")?.execute([row])?;
        let mut agent = transaction.prepare_cached(
            "INSERT INTO agent (part, agent_id, call_id, session, parent)
             VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
        )?;
        for (id, call, of) in sub_agents(&session.agent, &loaded.part.body).into_iter().rev() {
            agent.execute((row, id, call, of.to_string(), session_row))?;
        }
    }
    if names.len() != earlier {
        let names: Vec<u8> = names.iter().flat_map(|name| name.to_le_bytes()).collect();
        transaction
            .prepare_cached("UPDATE turn SET names = ?2 WHERE row = ?1")?
            .execute((turn, names))?;
    }
    Ok(())
}

/// The stored name digests of a turn.
pub(super) fn stored_names(connection: &Connection, turn: RowId) -> sql::Result<Vec<u64>> {
    connection.prepare_cached("SELECT names FROM turn WHERE row = ?1")?.query_row([turn], |row| {
        let names = row.get_ref(0)?.as_blob()?;
        Ok(names.as_chunks::<8>().0.iter().map(|name| u64::from_le_bytes(*name)).collect())
    })
}
