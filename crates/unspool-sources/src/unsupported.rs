//! Files of agents that are known and not read, so that an error says what such a file is. Without
//! this a thread of Amp would be read as rows of messages, which lack its calls. What agents that are
//! read write beside their sessions is in their own folders.

use std::io;
use std::path::Path;

use crate::agents::AGENTS;
use crate::decode::Fields;
use crate::read::rows;

/// What an agent writes that no decoder reads.
struct UnsupportedFormat {
    /// What a file of it is.
    what: &'static str,
    /// The tables of its database.
    tables: &'static [&'static str],
    /// Recognises the beginning of its document.
    is_document: fn(&Fields<'_>) -> bool,
}

static UNSUPPORTED: &[UnsupportedFormat] = &[
    UnsupportedFormat {
        what: "a database of Crush",
        tables: &["goose_db_version", "sessions", "messages", "files"],
        is_document: |_| false,
    },
    UnsupportedFormat { what: "a thread of Amp", tables: &[], is_document: is_amp_thread },
];

/// What the document is that begins with this record.
pub fn of_record(fields: &Fields<'_>) -> Option<&'static str> {
    let known = UNSUPPORTED.iter().find(|format| (format.is_document)(fields));
    let of_agents = || AGENTS.iter().find_map(|agent| (agent.unread)(fields));
    known.map(|format| format.what).or_else(of_agents)
}

/// What a database is.
pub fn of_database(path: &Path) -> io::Result<Option<&'static str>> {
    for format in UNSUPPORTED.iter().filter(|format| !format.tables.is_empty()) {
        if rows::has_tables(path, format.tables)? {
            return Ok(Some(format.what));
        }
    }
    Ok(None)
}

/// The table that is missing in a database that has the others of an OpenCode database. A view is no
/// table: to read one runs what it says.
pub fn missing_table(path: &Path) -> io::Result<Option<&'static str>> {
    let mut missing = Vec::new();
    for table in ["session", "message", "part"] {
        if !rows::has_tables(path, &[table])? {
            missing.push(table);
        }
    }
    Ok(if let [table] = missing[..] { Some(table) } else { None })
}

/// Why a file was not read.
pub fn reason(what: &str) -> String {
    format!("{what}, which unspool does not read yet")
}

/// `amp threads export` names a thread `T-` and a UUID, and gives its creation in milliseconds.
fn is_amp_thread(fields: &Fields<'_>) -> bool {
    let id = fields.text("id").unwrap_or_default();
    let is_uuid = |id: &str| {
        let lengths: Vec<usize> = id.split('-').map(str::len).collect();
        let is_hex = id.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
        is_hex && lengths == [8, 4, 4, 4, 12]
    };
    id.strip_prefix("T-").is_some_and(is_uuid) && fields.number("created").is_some()
}

#[cfg(test)]
#[path = "unsupported_tests.rs"]
mod tests;
