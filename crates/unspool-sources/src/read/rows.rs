//! Sessions in databases: OpenCode, and programs that are made from it, keep all sessions in one
//! SQLite file. Each session is read as a text of its own, one row per line. Its path is that of the file, `#`, and its id.
//!
//! ```text
//! {"type":"opencode.session","id":"ses_…","directory":"…","version":"…","time":{"created":…}}
//! {"info":{…},"parts":[…]}                                         a message older than events
//! {"id":"evt_…","seq":0,"type":"session.created.1","data":{…}}                            an event
//! ```
//!
//! Events are append-only, so the text is too. Columns that change without an event (the title, the
//! costs) are not in it.
//!
//! OpenCode writes to the database while we read it. It is opened read-only, and no files are
//! created next to it.

mod row_text;

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use serde_json::Value;
use unspool_model::source::FileStamp;

use super::event_table;
use super::lines::MAX_LINE_BYTES;
use super::restartable_reader::RestartableReader;
use super::source::Source;
use row_text::{data_columns, data_of, is_sqlite, put, put_object};

/// How long to wait for a writer. In WAL mode, which OpenCode uses, readers never wait.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The approximate length of an event as a line.
const ESTIMATED_EVENT_BYTES: i64 = 512;

/// How much text is generated at a time, unless one row is longer.
const CHUNK_BYTES: usize = 256 * 1024;

/// Splits the path of a session in a database into the database and the session id.
pub fn split(path: &Path) -> Option<(PathBuf, String)> {
    let (database, session) = path.to_str()?.rsplit_once('#')?;
    database.ends_with(".db").then(|| (PathBuf::from(database), session.to_owned()))
}

/// True if a path exists: a file, a folder, or the database of a session.
pub fn exists(path: &Path) -> bool {
    path.exists() || split(path).is_some_and(|(database, _)| database.exists())
}

/// The stamp of a session in a database, if the path names one.
pub fn stamp_of(path: &Path) -> Option<FileStamp> {
    let (database, session) = split(path)?;
    read_stamp(&connect(&database).ok()?, &session).ok()?
}

/// The sessions of a database, as paths; empty if it is of another program.
pub fn sessions(database: &Path) -> io::Result<Vec<(PathBuf, FileStamp)>> {
    if !is_sqlite(database)? {
        return Ok(Vec::new());
    }
    let connection = connect(database)?;
    if let Some(table) = event_table::of(&connection)? {
        return table.sessions(&connection, database);
    }
    if !has_table(&connection, "session")? || !has_table(&connection, "part")? {
        return Ok(Vec::new());
    }
    let mut statement = connection
        .prepare(&format!("SELECT id, {} FROM session s", stamp_columns(&connection)?))
        .map_err(io_error)?;
    let mut rows = statement.query([]).map_err(io_error)?;
    let mut sessions = Vec::new();
    while let Some(row) = rows.next().map_err(io_error)? {
        // A row that is damaged is the loss of one session, not of all.
        let Ok(session) = row.get::<_, String>(0) else {
            tracing::warn!(database = %database.display(), "a session without a readable id");
            continue;
        };
        let mut path = database.as_os_str().to_owned();
        path.push(format!("#{session}"));
        // Without a stamp it is read, which says what is wrong with it.
        sessions.push((PathBuf::from(path), stamp(row, 1).unwrap_or_default()));
    }
    Ok(sessions)
}

/// True if a file is a database with all of these tables.
pub fn has_tables(database: &Path, tables: &[&str]) -> io::Result<bool> {
    if !is_sqlite(database)? {
        return Ok(false);
    }
    let connection = connect(database)?;
    for table in tables {
        if !has_table(&connection, table)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The rows of a session as text.
pub fn open(database: &Path, session: &str) -> io::Result<Source> {
    let Some(stamp) = read_stamp(&connect(database)?, session)? else {
        let what = format!("{} has no session {session}", database.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, what));
    };
    if let Some(table) = event_table::of(&connect(database)?)? {
        return Ok(table.open(database, session, stamp));
    }
    let (database, session) = (database.to_owned(), session.to_owned());
    let begin = move || -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(Rows::new(connect(&database)?, session.clone())?))
    };
    Ok(Source::new(stamp, None, RestartableReader::new(begin)))
}

// ── The database ────────────────────────────────────────────────────────────────────────────

/// Opens a database read-only. A reader of a database in WAL mode creates missing `-wal` and `-shm`
/// files. If they are missing, no process has it open, so it is opened as immutable.
pub(super) fn connect(database: &Path) -> io::Result<Connection> {
    let beside = |end: &str| {
        let mut path = database.as_os_str().to_owned();
        path.push(end);
        Path::new(&path).exists()
    };
    let still = !beside("-wal") || !beside("-shm");
    let mode = if still { "mode=ro&immutable=1" } else { "mode=ro" };
    let path = std::path::absolute(database)?;
    let address = format!("file:{}?{mode}", escaped(path.as_os_str().as_encoded_bytes()));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(address, flags).map_err(io_error)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(io_error)?;
    // A short database can have values that are long to compute, and any column can be long.
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_LINE_BYTES as i32).map_err(io_error)?;
    Ok(connection)
}

/// Percent-encodes a path for a URI.
fn escaped(path: &[u8]) -> String {
    let mut address = String::with_capacity(path.len());
    for byte in path {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                address.push(char::from(*byte));
            }
            _ => address.push_str(&format!("%{byte:02X}")),
        }
    }
    address
}

pub(super) fn has_table(connection: &Connection, name: &str) -> io::Result<bool> {
    let wanted = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1";
    connection.prepare_cached(wanted).and_then(|mut rows| rows.exists([name])).map_err(io_error)
}

fn has_column(connection: &Connection, table: &str, name: &str) -> io::Result<bool> {
    let wanted = "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2";
    let found = connection.prepare_cached(wanted).and_then(|mut rows| rows.exists([table, name]));
    found.map_err(io_error)
}

/// The columns that change with a session: its number of events and the time of its last update.
fn stamp_columns(connection: &Connection) -> io::Result<&'static str> {
    Ok(if has_table(connection, "event_sequence")? {
        "(SELECT seq + 1 FROM event_sequence WHERE aggregate_id = s.id), time_updated"
    } else {
        "NULL, time_updated"
    })
}

fn read_stamp(connection: &Connection, session: &str) -> io::Result<Option<FileStamp>> {
    if let Some(table) = event_table::of(connection)? {
        return table.read_stamp(connection, session);
    }
    let wanted = format!("SELECT {} FROM session s WHERE id = ?1", stamp_columns(connection)?);
    connection.query_row(&wanted, [session], |row| stamp(row, 0)).optional().map_err(io_error)
}

fn stamp(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<FileStamp> {
    // An estimate of the text's length: callers expect the size in bytes.
    let events = row.get::<_, Option<i64>>(at)?.unwrap_or(0).saturating_mul(ESTIMATED_EVENT_BYTES);
    let updated = row.get::<_, Option<i64>>(at + 1)?.unwrap_or(0);
    Ok(FileStamp {
        size: u64::try_from(events).unwrap_or(0),
        modified: updated.saturating_mul(1_000_000),
        ..FileStamp::default()
    })
}

pub(super) fn io_error(error: rusqlite::Error) -> io::Error {
    io::Error::other(error)
}

// ── A session as text ───────────────────────────────────────────────────────────────────────

/// Generates the text of a session while it is read. It queries the rows after the last one, so it
/// holds one chunk in memory and no read transaction between chunks.
struct Rows {
    connection: Connection,
    session: String,
    next: Next,
    out: Vec<u8>,
    given: usize,
}

/// What to generate next.
enum Next {
    Head,
    /// Messages without events: those created before this time, after the one with this creation
    /// time and id.
    Messages {
        before: i64,
        after: (i64, String),
    },
    /// Events after this `seq`.
    Events(i64),
    Nothing,
}

impl Rows {
    fn new(connection: Connection, session: String) -> io::Result<Rows> {
        Ok(Rows { connection, session, next: Next::Head, out: Vec::new(), given: 0 })
    }

    /// Generates the next chunk, which may be empty before the end.
    fn make(&mut self) -> io::Result<()> {
        self.next = match &self.next {
            Next::Head => self.head()?,
            Next::Messages { before, after } => self.messages(*before, after.clone())?,
            Next::Events(after) => self.events(*after)?,
            Next::Nothing => Next::Nothing,
        };
        Ok(())
    }

    fn head(&mut self) -> io::Result<Next> {
        // The agent of a session may change, but not that of a sub-agent. Old databases have none.
        let agent = if has_column(&self.connection, "session", "agent")? {
            "iif(parent_id IS NULL, NULL, agent)"
        } else {
            "NULL"
        };
        let wanted = format!(
            "SELECT parent_id, directory, version, {agent}, time_created FROM session WHERE id = ?1"
        );
        let program = event_table::head_type(&self.connection)?;
        let head = self
            .connection
            .query_row(&wanted, [&self.session], |row| {
                let mut head = serde_json::Map::new();
                head.insert("type".into(), program.into());
                head.insert("id".into(), self.session.as_str().into());
                for (at, name) in
                    ["parentID", "directory", "version", "agent"].into_iter().enumerate()
                {
                    if let Some(value) = row.get::<_, Option<String>>(at)? {
                        head.insert(name.into(), value.into());
                    }
                }
                let created = row.get::<_, Option<i64>>(4)?;
                head.insert("time".into(), serde_json::json!({ "created": created }));
                Ok(Value::Object(head))
            })
            .optional()
            .map_err(io_error)?;
        // The session was deleted meanwhile.
        let Some(head) = head else { return Ok(Next::Nothing) };
        self.out.extend_from_slice(head.to_string().as_bytes());
        self.out.push(b'\n');
        Ok(match self.messages_before_events()? {
            Some(before) => Next::Messages { before, after: (i64::MIN, String::new()) },
            None => Next::Events(-1),
        })
    }

    /// The time before which messages have no events; `None` if all have. OpenCode began to write
    /// events at some version, and older sessions continue with events from then on.
    fn messages_before_events(&self) -> io::Result<Option<i64>> {
        if !has_table(&self.connection, "event")? {
            return Ok(Some(i64::MAX));
        }
        let first = "SELECT type FROM event WHERE aggregate_id = ?1 AND seq = 0";
        let first: Option<String> = self
            .connection
            .query_row(first, [&self.session], |row| row.get(0))
            .optional()
            .map_err(io_error)?;
        if first.is_some_and(|kind| kind.starts_with("session.created")) {
            return Ok(None);
        }
        // The first message that began with an event. A repeated update of a user's message has a
        // summary.
        let begun = "SELECT json_extract(data, '$.info.time.created') FROM event \
             WHERE aggregate_id = ?1 AND type LIKE 'message.updated%' \
             AND json_extract(data, '$.info.role') = 'user' \
             AND json_extract(data, '$.info.summary') IS NULL ORDER BY seq LIMIT 1";
        let begun: Option<Option<i64>> = self
            .connection
            .query_row(begun, [&self.session], |row| row.get(0))
            .optional()
            .map_err(io_error)?;
        Ok(Some(begun.flatten().unwrap_or(i64::MAX)))
    }

    fn messages(&mut self, before: i64, mut after: (i64, String)) -> io::Result<Next> {
        let data = data_columns();
        let wanted = format!(
            "SELECT id, time_created, {data} FROM message WHERE session_id = ?1 \
             AND time_created < ?2 AND (time_created, id) > (?3, ?4) ORDER BY time_created, id"
        );
        let mut messages = self.connection.prepare_cached(&wanted).map_err(io_error)?;
        let of_message = format!("SELECT id, {data} FROM part WHERE message_id = ?1 ORDER BY id");
        let mut parts = self.connection.prepare_cached(&of_message).map_err(io_error)?;
        let mut rows =
            messages.query(params![self.session, before, after.0, after.1]).map_err(io_error)?;
        while let Some(row) = rows.next().map_err(io_error)? {
            let id: String = row.get(0).map_err(io_error)?;
            let created: i64 = row.get(1).map_err(io_error)?;
            let data = data_of(row, 2).map_err(io_error)?;
            let names = [("id", &*id), ("sessionID", &*self.session)];
            self.out.extend_from_slice(b"{\"info\":");
            put_object(&mut self.out, &names, &data);
            self.out.extend_from_slice(b",\"parts\":[");
            let mut of_message = parts.query([&id]).map_err(io_error)?;
            let mut first = true;
            while let Some(part) = of_message.next().map_err(io_error)? {
                let part_id: String = part.get(0).map_err(io_error)?;
                let data = data_of(part, 1).map_err(io_error)?;
                if !std::mem::take(&mut first) {
                    self.out.push(b',');
                }
                put_object(&mut self.out, &[("id", &*part_id), ("messageID", &*id)], &data);
            }
            self.out.extend_from_slice(b"]}\n");
            after = (created, id);
            if self.out.len() >= CHUNK_BYTES {
                return Ok(Next::Messages { before, after });
            }
        }
        Ok(if has_table(&self.connection, "event")? { Next::Events(-1) } else { Next::Nothing })
    }

    fn events(&mut self, after: i64) -> io::Result<Next> {
        let wanted = format!(
            "SELECT id, seq, type, {} FROM event WHERE aggregate_id = ?1 AND seq > ?2 ORDER BY seq",
            data_columns()
        );
        let mut events = self.connection.prepare_cached(&wanted).map_err(io_error)?;
        let mut rows = events.query(params![self.session, after]).map_err(io_error)?;
        while let Some(row) = rows.next().map_err(io_error)? {
            let id: String = row.get(0).map_err(io_error)?;
            let seq: i64 = row.get(1).map_err(io_error)?;
            let kind: String = row.get(2).map_err(io_error)?;
            let data = data_of(row, 3).map_err(io_error)?;
            let (id, kind) = (Value::from(id), Value::from(kind));
            let head = format!("{{\"id\":{id},\"seq\":{seq},\"type\":{kind},\"data\":");
            self.out.extend_from_slice(head.as_bytes());
            put(&mut self.out, &data);
            self.out.extend_from_slice(b"}\n");
            if self.out.len() >= CHUNK_BYTES {
                return Ok(Next::Events(seq));
            }
        }
        Ok(Next::Nothing)
    }
}

impl Read for Rows {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.given == self.out.len() {
            self.out.clear();
            self.given = 0;
            if matches!(self.next, Next::Nothing) {
                return Ok(0);
            }
            self.make()?;
        }
        let rest = self.out.get(self.given..).unwrap_or_default();
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        self.given += length;
        Ok(length)
    }
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
