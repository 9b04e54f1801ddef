//! The JSON in the column `data` of a row, as a part of a line.

use std::borrow::Cow;
use std::io::{self, Read};
use std::path::Path;

use rusqlite::types::ValueRef;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::read::lines::MAX_LINE_BYTES;
use crate::read::regular_file::open_regular;

/// The column `data`, unless it is longer than a line may be, and its length. To know the length,
/// SQLite does not read the value, which may have a gigabyte.
pub(super) fn data_columns() -> String {
    format!("iif(octet_length(data) < {MAX_LINE_BYTES}, data, NULL), octet_length(data)")
}

/// The value of `data_columns`. What is no text or too long becomes an object that says so: one row
/// must not cost the rest of the session.
pub(super) fn data_of<'r>(row: &'r rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Cow<'r, str>> {
    let bytes = row.get::<_, Option<i64>>(at + 1)?.unwrap_or(0);
    let unreadable = |reason| Ok(Cow::Owned(unreadable(reason, bytes)));
    match row.get_ref(at)? {
        ValueRef::Text(text) | ValueRef::Blob(text) => match std::str::from_utf8(text) {
            Ok(text) => Ok(Cow::Borrowed(text)),
            Err(_) => unreadable("the column is not UTF-8"),
        },
        ValueRef::Null if bytes > 0 => unreadable("the column is too long"),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => {
            unreadable("the column has no text")
        }
    }
}

fn unreadable(reason: &str, bytes: i64) -> String {
    json!({ "type": "unreadable", "reason": reason, "bytes": bytes }).to_string()
}

/// Writes JSON on one line. Line ends occur only between values, so replacing them is safe.
pub(super) fn put(out: &mut Vec<u8>, json: &str) {
    out.extend(json.trim().bytes().map(|byte| match byte {
        b'\n' | b'\r' => b' ',
        other => other,
    }));
}

/// Writes an object with extra fields in front: other columns of its row. One that is not JSON would
/// spoil the others on its line.
pub(super) fn put_object(out: &mut Vec<u8>, names: &[(&str, &str)], json: &str) {
    if serde_json::from_str::<IgnoredAny>(json).is_err() {
        let length = i64::try_from(json.len()).unwrap_or(i64::MAX);
        return put_object(out, names, &unreadable("the column is not JSON", length));
    }
    let rest = json.trim().strip_prefix('{').unwrap_or_default().trim_start();
    for (nth, (name, value)) in names.iter().enumerate() {
        let mark = if nth == 0 { '{' } else { ',' };
        out.extend_from_slice(format!("{mark}\"{name}\":{}", Value::from(*value)).as_bytes());
    }
    match rest {
        "" | "}" => out.push(b'}'),
        rest => {
            out.push(b',');
            put(out, rest);
        }
    }
}

pub fn is_sqlite(database: &Path) -> io::Result<bool> {
    let mut beginning = Vec::new();
    open_regular(database)?.take(16).read_to_end(&mut beginning)?;
    Ok(beginning == b"SQLite format 3\0")
}
