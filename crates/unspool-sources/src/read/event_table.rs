//! What the table of agents says about databases: which of them have one table for the events of all
//! sessions (`Agent::event_table`), and whose a database like OpenCode's is (`Agent::database_mark`).
//! Each session of a table of events is read as a text of its own, one event per line.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, params};
use unspool_model::source::FileStamp;

use super::restartable_reader::RestartableReader;
use super::rows::{connect, has_table, io_error};
use super::source::Source;
use crate::agents::AGENTS;
use crate::decode::opencode;

/// How many rows are read at a time.
const CHUNK_ROWS: i64 = 256;
/// The approximate length of an event as a line.
const ESTIMATED_EVENT_BYTES: i64 = 512;

/// A table of events, with the names of its columns.
pub struct EventTable {
    pub name: &'static str,
    /// The order of the events, a number.
    pub sequence: &'static str,
    pub session: &'static str,
    /// When the event was written, in milliseconds.
    pub created: &'static str,
    pub kind: &'static str,
    /// The whole event, as JSON.
    pub event: &'static str,
    /// How the kinds of the events begin that are not read.
    pub left_out: &'static str,
}

/// The type of the first line of a session in a database like OpenCode's, which says whose it is:
/// programs that are made from OpenCode add tables to those of OpenCode.
pub(super) fn head_type(connection: &Connection) -> io::Result<&'static str> {
    for (table, head) in AGENTS.iter().filter_map(|agent| agent.database_mark) {
        if has_table(connection, table)? {
            return Ok(head);
        }
    }
    Ok(opencode::SESSION_RECORD_TYPE)
}

/// The table of a database, if it has one.
pub(super) fn of(connection: &Connection) -> io::Result<Option<&'static EventTable>> {
    for table in AGENTS.iter().filter_map(|agent| agent.event_table) {
        if has_table(connection, table.name)? {
            return Ok(Some(table));
        }
    }
    Ok(None)
}

impl EventTable {
    /// The rows that are read.
    fn rows(&self) -> String {
        let EventTable { name, session, kind, left_out, .. } = self;
        format!("FROM {name} WHERE {session} IS NOT NULL AND {kind} NOT LIKE '{left_out}%'")
    }

    /// The sessions of the table, as paths.
    pub(super) fn sessions(
        &self,
        connection: &Connection,
        database: &Path,
    ) -> io::Result<Vec<(PathBuf, FileStamp)>> {
        let (session, created, rows) = (self.session, self.created, self.rows());
        let wanted =
            format!("SELECT {session}, count(*), max({created}) {rows} GROUP BY {session}");
        let mut statement = connection.prepare(&wanted).map_err(io_error)?;
        let rows = statement
            .query_map([], |row| Ok((row.get::<_, String>(0)?, stamp(row, 1)?)))
            .map_err(io_error)?;
        let named = |row: rusqlite::Result<(String, FileStamp)>| {
            let (session, stamp) = row.map_err(io_error)?;
            let mut path = database.as_os_str().to_owned();
            path.push(format!("#{session}"));
            Ok((PathBuf::from(path), stamp))
        };
        rows.map(named).collect()
    }

    pub(super) fn read_stamp(
        &self,
        connection: &Connection,
        session: &str,
    ) -> io::Result<Option<FileStamp>> {
        let (of, created, rows) = (self.session, self.created, self.rows());
        let wanted =
            format!("SELECT count(*), max({created}) {rows} AND {of} = ?1 HAVING count(*) > 0");
        connection.query_row(&wanted, [session], |row| stamp(row, 0)).optional().map_err(io_error)
    }

    /// The events of a session as text.
    pub(super) fn open(&'static self, database: &Path, session: &str, stamp: FileStamp) -> Source {
        let (database, session) = (database.to_owned(), session.to_owned());
        let begin = move || -> io::Result<Box<dyn Read + Send>> {
            let (connection, session) = (connect(&database)?, session.clone());
            let (out, given) = (Vec::new(), 0);
            Ok(Box::new(Events { connection, table: self, session, after: -1, out, given }))
        };
        Source::new(stamp, None, RestartableReader::new(begin))
    }
}

fn stamp(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<FileStamp> {
    let events = row.get::<_, i64>(at)?.saturating_mul(ESTIMATED_EVENT_BYTES);
    let updated = row.get::<_, Option<i64>>(at + 1)?.unwrap_or(0);
    Ok(FileStamp {
        size: u64::try_from(events).unwrap_or(0),
        modified: updated.saturating_mul(1_000_000),
        ..FileStamp::default()
    })
}

struct Events {
    connection: Connection,
    table: &'static EventTable,
    session: String,
    /// The last row that was read.
    after: i64,
    out: Vec<u8>,
    given: usize,
}

impl Events {
    fn make(&mut self) -> io::Result<()> {
        let EventTable { sequence, session, event, .. } = self.table;
        let wanted = format!(
            "SELECT {sequence}, {event} {} AND {session} = ?1 AND {sequence} > ?2 \
             ORDER BY {sequence} LIMIT ?3",
            self.table.rows()
        );
        let mut statement = self.connection.prepare_cached(&wanted).map_err(io_error)?;
        let mut rows =
            statement.query(params![self.session, self.after, CHUNK_ROWS]).map_err(io_error)?;
        while let Some(row) = rows.next().map_err(io_error)? {
            self.after = row.get(0).map_err(io_error)?;
            let event: String = row.get(1).map_err(io_error)?;
            // A line break in JSON is white space.
            self.out.extend(event.bytes().map(|byte| if byte == b'\n' { b' ' } else { byte }));
            self.out.push(b'\n');
        }
        Ok(())
    }
}

impl Read for Events {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.given == self.out.len() {
            self.out.clear();
            self.given = 0;
            self.make()?;
        }
        let rest = &self.out[self.given..];
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        self.given += length;
        Ok(length)
    }
}
