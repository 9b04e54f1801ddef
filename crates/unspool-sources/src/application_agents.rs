//! Agent tables: SQLite databases in which an application stores one row per agent run, with its
//! prompt, its result and the path of its log (R-001-12). Opened read-only. Column names vary, so
//! each column is looked up by several names. `unspool-ingest` imports each run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use thiserror::Error;

/// Accepted column names, in order of preference.
const ID_COLUMNS: [&str; 5] = ["id", "agent_id", "uuid", "execution_id", "run_id"];
const PROMPT_COLUMNS: [&str; 4] = ["prompt", "task", "input", "question"];
const RESULT_COLUMNS: [&str; 5] = ["result", "output", "response", "answer", "completion"];
const LOG_COLUMNS: [&str; 5] = ["log_path", "logpath", "log_file", "transcript_path", "log"];
/// Columns that `decode::rows` would read as the kind of the row; they are renamed.
const KIND_COLUMNS: [&str; 4] = ["role", "type", "kind", "sender"];

#[derive(Debug, Error)]
pub enum TableError {
    #[error("cannot read {path}: {source}; give a SQLite database with a table of agents")]
    Unreadable { path: PathBuf, source: rusqlite::Error },
    #[error(
        "{path} has no table of agents: none of its tables has a prompt and a result or a log_path{tables}; \
         `unspool import --help` lists the columns that Unspool looks for"
    )]
    NoTable { path: PathBuf, tables: String },
}

/// One run of an agent.
#[derive(Clone, PartialEq, Debug)]
pub struct AgentRun {
    /// The id from the table, or the row number if the table has none.
    pub id: String,
    /// The path of its log, as given in the table.
    pub log: Option<PathBuf>,
    pub has_prompt: bool,
    /// All other columns, as a row that `decode::rows` reads.
    row: BTreeMap<String, Value>,
}

impl AgentRun {
    /// The run as one line of flat history that belongs to this session.
    pub fn line(&self, session: &str) -> String {
        let mut row = self.row.clone();
        row.insert("id".to_owned(), Value::from(self.id.as_str()));
        row.insert("session".to_owned(), Value::from(session));
        serde_json::to_string(&row).unwrap_or_default()
    }
}

/// The agent runs of a database, in row order.
pub fn read(path: &Path) -> Result<Vec<AgentRun>, TableError> {
    let unreadable = |source| TableError::Unreadable { path: path.to_owned(), source };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(unreadable)?;
    let tables = tables(&connection).map_err(unreadable)?;
    let wanted = |(name, columns): &&(String, Vec<String>)| {
        let has = |names: &[&str]| columns.iter().any(|column| names.contains(&&**column));
        let content = has(&["prompt"]) && (has(&RESULT_COLUMNS) || has(&LOG_COLUMNS[..4]));
        content || (name == "agents" && (has(&PROMPT_COLUMNS) || has(&LOG_COLUMNS)))
    };
    let named = |(name, _): &&(String, Vec<String>)| name == "agents";
    let mut found: Vec<&(String, Vec<String>)> = tables.iter().filter(wanted).collect();
    found.sort_by_key(|table| !named(table));
    let Some((table, columns)) = found.first() else {
        let names: Vec<&str> = tables.iter().map(|(name, _)| name.as_str()).collect();
        let tables = match names.is_empty() {
            true => String::new(),
            false => format!(" ({})", names.join(", ")),
        };
        return Err(TableError::NoTable { path: path.to_owned(), tables });
    };
    rows(&connection, table, columns).map_err(unreadable)
}

/// The tables of a database with their column names in lower case.
fn tables(connection: &Connection) -> rusqlite::Result<Vec<(String, Vec<String>)>> {
    let mut names =
        connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")?;
    let names: Vec<String> =
        names.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    names
        .into_iter()
        .map(|name| {
            let mut columns = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
            let columns = columns.query_map([&name], |row| row.get::<_, String>(0))?;
            let columns: Vec<String> = columns.collect::<rusqlite::Result<_>>()?;
            Ok((name, columns.iter().map(|column| column.to_lowercase()).collect()))
        })
        .collect()
}

fn rows(
    connection: &Connection,
    table: &str,
    columns: &[String],
) -> rusqlite::Result<Vec<AgentRun>> {
    let table = table.replace('"', "\"\"");
    let mut statement = connection.prepare(&format!("SELECT * FROM \"{table}\""))?;
    let mut rows = statement.query([])?;
    let mut agents = Vec::new();
    while let Some(row) = rows.next()? {
        let mut fields = BTreeMap::new();
        for (at, column) in columns.iter().enumerate() {
            fields.insert(column.clone(), value(row.get_ref(at)?));
        }
        agents.push(agent(fields, agents.len() + 1));
    }
    Ok(agents)
}

fn agent(mut fields: BTreeMap<String, Value>, number: usize) -> AgentRun {
    let mut take = |names: &[&str]| {
        let name = names.iter().find(|name| fields.get(**name).is_some_and(|held| !held.is_null()));
        name.and_then(|name| fields.remove(*name))
    };
    let id = match take(&ID_COLUMNS) {
        Some(Value::String(id)) if !id.is_empty() => id,
        Some(Value::Number(id)) => id.to_string(),
        _ => number.to_string(),
    };
    let log = take(&LOG_COLUMNS).and_then(|log| log.as_str().map(str::trim).map(PathBuf::from));
    let log = log.filter(|path| !path.as_os_str().is_empty());
    let prompt = take(&PROMPT_COLUMNS).unwrap_or(Value::Null);
    let result = take(&RESULT_COLUMNS).unwrap_or(Value::Null);
    let title = take(&["title", "name", "description"]);
    let has_prompt = prompt.as_str().is_some_and(|text| !text.trim().is_empty());
    let mut row = BTreeMap::from([("prompt".to_owned(), prompt), ("result".to_owned(), result)]);
    row.extend(title.map(|title| ("title".to_owned(), title)));
    for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_null()) {
        let name = if KIND_COLUMNS.contains(&&*name) { format!("agent_{name}") } else { name };
        row.entry(name).or_insert(value);
    }
    AgentRun { id, log, has_prompt, row }
}

fn value(content: ValueRef<'_>) -> Value {
    match content {
        ValueRef::Null | ValueRef::Blob(_) => Value::Null,
        ValueRef::Integer(number) => Value::from(number),
        ValueRef::Real(number) => Value::from(number),
        ValueRef::Text(text) => Value::from(String::from_utf8_lossy(text)),
    }
}
