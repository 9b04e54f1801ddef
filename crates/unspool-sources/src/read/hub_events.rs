//! The event log of Cline's hub: a table of a SQLite file with the events of all sessions. Each
//! session is read as a text of its own, one event per line. Old rows are removed by Cline.
//!
//! Rows that carry a whole conversation (`capability.…`) are nearly all of the bytes, and repeat
//! what the conversation's own file has; they are not read.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, params};
use unspool_model::source::FileStamp;

use super::restartable_reader::RestartableReader;
use super::rows::{connect, has_table, io_error};
use super::source::Source;

/// How many rows are read at a time.
const CHUNK_ROWS: i64 = 256;
/// The approximate length of an event as a line.
const ESTIMATED_EVENT_BYTES: i64 = 512;

pub(super) fn is_event_log(connection: &Connection) -> io::Result<bool> {
    has_table(connection, "hub_events")
}

/// The sessions of the log, as paths.
pub(super) fn sessions(
    connection: &Connection,
    database: &Path,
) -> io::Result<Vec<(PathBuf, FileStamp)>> {
    let wanted = "SELECT session_id, count(*), max(created_at) FROM hub_events \
         WHERE session_id IS NOT NULL AND event NOT LIKE 'capability.%' GROUP BY session_id";
    let mut statement = connection.prepare(wanted).map_err(io_error)?;
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

pub(super) fn read_stamp(connection: &Connection, session: &str) -> io::Result<Option<FileStamp>> {
    let wanted = "SELECT count(*), max(created_at) FROM hub_events \
         WHERE session_id = ?1 AND event NOT LIKE 'capability.%' HAVING count(*) > 0";
    connection.query_row(wanted, [session], |row| stamp(row, 0)).optional().map_err(io_error)
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

/// The events of a session as text.
pub(super) fn open(database: &Path, session: &str, stamp: FileStamp) -> Source {
    let (database, session) = (database.to_owned(), session.to_owned());
    let begin = move || -> io::Result<Box<dyn Read + Send>> {
        let connection = connect(&database)?;
        let (out, given) = (Vec::new(), 0);
        Ok(Box::new(Events { connection, session: session.clone(), after: -1, out, given }))
    };
    Source::new(stamp, None, RestartableReader::new(begin))
}

struct Events {
    connection: Connection,
    session: String,
    /// The last row that was read.
    after: i64,
    out: Vec<u8>,
    given: usize,
}

impl Events {
    fn make(&mut self) -> io::Result<()> {
        let wanted = "SELECT sequence, envelope_json FROM hub_events WHERE session_id = ?1 \
             AND sequence > ?2 AND event NOT LIKE 'capability.%' ORDER BY sequence LIMIT ?3";
        let mut statement = self.connection.prepare_cached(wanted).map_err(io_error)?;
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
