//! Errors of a store, in terms that hold for every database. The database's own error is the
//! source; where the archive is comes from whoever opened it.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

use unspool_index::CorruptIndex;

use crate::pack::PackError;

/// Where an archive is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ArchivePlace {
    File(PathBuf),
    /// The address of its database, without a password.
    Server(String),
}

impl ArchivePlace {
    pub fn of_file(path: &Path) -> ArchivePlace {
        ArchivePlace::File(path.to_owned())
    }
}

impl fmt::Display for ArchivePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArchivePlace::File(path) => path.display().fmt(f),
            ArchivePlace::Server(address) => f.write_str(address),
        }
    }
}

/// What went wrong, as far as a caller or the user can act on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreErrorKind {
    /// There is no archive.
    Missing,
    /// It belongs to another program.
    Foreign,
    /// It has a newer schema than this program.
    Newer { version: usize, supported: usize },
    /// It has an older schema, and only `db migrate` may change that.
    Older { version: usize, supported: usize },
    /// It has sessions already, and a copy would mix them with others.
    NotEmpty,
    /// The address of a server cannot be used.
    Address,
    /// The server does not answer.
    Unreachable,
    /// The server has no encryption, or a certificate that is not trusted.
    NotEncrypted,
    /// It was opened for reading only.
    ReadOnly,
    /// No space left.
    Full,
    /// It may not be written.
    NotWritable,
    /// It may not be opened.
    NotOpened,
    /// The database is damaged.
    Damaged,
    /// A stored part or head cannot be decoded.
    Payload,
    /// The search index is damaged.
    Index,
    /// The disk failed.
    Disk,
    /// Another program holds a lock.
    Busy,
    /// Another process has written to it since this one last did, and nothing was written: what
    /// this one remembers of it is old.
    Overtaken,
    /// Anything else that the database reports.
    Database,
    /// It was deleted, moved or replaced while it was open.
    Gone,
    /// The thread that runs the database has ended.
    Closed,
}

/// Why an operation on the archive failed. Every message tells the user what to do next.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    place: Option<ArchivePlace>,
    cause: Option<Box<dyn Error + Send + Sync>>,
}

impl StoreError {
    pub(crate) fn new(kind: StoreErrorKind) -> StoreError {
        StoreError { kind, place: None, cause: None }
    }

    pub(crate) fn because(
        kind: StoreErrorKind,
        cause: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> StoreError {
        StoreError { kind, place: None, cause: Some(cause.into()) }
    }

    /// Adds the path of the archive to an error that lacks it.
    pub(crate) fn at(self, path: &Path) -> StoreError {
        self.at_place(&ArchivePlace::of_file(path))
    }

    /// Adds where the archive is to an error that lacks it.
    pub(crate) fn at_place(mut self, place: &ArchivePlace) -> StoreError {
        self.place.get_or_insert_with(|| place.clone());
        self
    }

    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// The database's own error. Not `Error::source`, because the message includes what it says.
    pub fn cause(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.cause.as_deref()
    }

    /// What the cause says, in one line: SQLite may quote a whole schema or query after the first.
    fn cause_line(&self) -> String {
        let text = self.cause.as_ref().map(ToString::to_string).unwrap_or_default();
        text.lines().next().unwrap_or_default().to_owned()
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(ArchivePlace::Server(address)) = &self.place {
            return self.about_server(f, address);
        }
        let place = self.place.as_ref().map_or("the archive".to_owned(), ArchivePlace::to_string);
        let (place, cause) = (place.as_str(), self.cause_line());
        match self.kind {
            StoreErrorKind::Missing => {
                write!(f, "there is no archive at {place} yet; `unspool sync` creates it")
            }
            StoreErrorKind::Foreign => write!(
                f,
                "{place} belongs to another program and was not changed; choose another folder \
                 with --data"
            ),
            StoreErrorKind::Newer { version, supported } => write!(
                f,
                "{place} was written by a newer Unspool (its version is {version}, this program \
                 supports {supported}); install the newer one, or choose another folder with --data"
            ),
            StoreErrorKind::Overtaken => overtaken(f, place),
            StoreErrorKind::Older { version, supported } => write!(
                f,
                "{place} has the schema of an older Unspool (its version is {version}, this \
                 program needs {supported}); run `unspool sync`, which brings it up to date"
            ),
            StoreErrorKind::NotEmpty => not_empty(f, place),
            StoreErrorKind::Unreachable | StoreErrorKind::NotEncrypted => {
                write!(f, "{place}: {cause}")
            }
            StoreErrorKind::Address => write!(
                f,
                "this is no address of a PostgreSQL archive: {cause}; write it as \
                 --store postgres://user@host:5432/database (the password can be in PGPASSWORD)"
            ),
            StoreErrorKind::ReadOnly => read_only(f, place),
            StoreErrorKind::Full => write!(
                f,
                "no space left on the disk of {place}; stored data is safe: free some space and run \
                 the command again"
            ),
            StoreErrorKind::NotWritable => write!(
                f,
                "{place} cannot be written: the file or its folder is read-only; make it writable, \
                 or choose another folder with --data"
            ),
            StoreErrorKind::NotOpened => write!(
                f,
                "{place} cannot be opened: the file and its folder must be readable and writable; \
                 change their permissions, or choose another folder with --data"
            ),
            StoreErrorKind::Damaged => damaged(f, place, &cause),
            StoreErrorKind::Payload => {
                damaged(f, place, &format!("a stored part cannot be read: {cause}"))
            }
            StoreErrorKind::Index => write!(
                f,
                "the search index in {place} is damaged ({cause}); `unspool db rebuild` rebuilds it"
            ),
            StoreErrorKind::Disk => write!(
                f,
                "{place}: {cause}; its disk may be full, faulty or unmounted. Stored data is safe: \
                 fix the disk and run the command again"
            ),
            StoreErrorKind::Busy => {
                write!(f, "another program has locked {place} for too long; stop it, or try again")
            }
            StoreErrorKind::Database => {
                write!(f, "{place}: {cause}; the file may be damaged: run `unspool db check`")
            }
            StoreErrorKind::Gone => write!(
                f,
                "{place} was deleted, moved or replaced while Unspool used it, so nothing more is \
                 written to it; restore it and start Unspool again, or start Unspool without it: it \
                 then creates a new archive from the agents' logs"
            ),
            StoreErrorKind::Closed => write!(f, "the archive was closed"),
        }
    }
}

impl StoreError {
    /// The message for an archive on a server.
    fn about_server(&self, f: &mut fmt::Formatter<'_>, place: &str) -> fmt::Result {
        let cause = self.cause_line();
        match self.kind {
            StoreErrorKind::Missing => write!(
                f,
                "there is no archive at {place} yet; `unspool db migrate --store URL` creates it"
            ),
            StoreErrorKind::Foreign => write!(
                f,
                "the schema `unspool` at {place} belongs to another program and was not changed; \
                 choose another database with --store"
            ),
            StoreErrorKind::Newer { version, supported } => write!(
                f,
                "{place} was written by a newer Unspool (its version is {version}, this program \
                 supports {supported}); install the newer one, or choose another database with \
                 --store"
            ),
            StoreErrorKind::Older { version, supported } => write!(
                f,
                "{place} has the schema of an older Unspool (its version is {version}, this \
                 program needs {supported}); run `unspool db migrate --store URL`"
            ),
            StoreErrorKind::ReadOnly => read_only(f, place),
            StoreErrorKind::Full | StoreErrorKind::Disk => write!(
                f,
                "no space left on the disk of {place}; stored data is safe: free some space there \
                 and run the command again"
            ),
            StoreErrorKind::NotWritable => write!(
                f,
                "{place} cannot be written: {cause}; give its user the rights to the schema \
                 `unspool`, or name another user in --store"
            ),
            StoreErrorKind::NotOpened => write!(
                f,
                "{place} cannot be opened: {cause}; check the user, the password and the database \
                 in --store"
            ),
            StoreErrorKind::Unreachable => write!(
                f,
                "{place} cannot be reached: {cause}; check that PostgreSQL runs there and accepts \
                 connections from here, then run the command again: stored data is safe"
            ),
            StoreErrorKind::NotEncrypted => write!(
                f,
                "no connection to {place}: {cause}; the server must offer TLS, with a certificate for \
                 its name that this system trusts or that ?sslrootcert=FILE in --store names. \
                 ?sslmode=disable connects without encryption"
            ),
            StoreErrorKind::Damaged | StoreErrorKind::Payload => write!(
                f,
                "{place} is damaged ({cause}); restore a backup, or use an empty database: \
                 `unspool sync --store URL` then fills it from the agents' logs"
            ),
            StoreErrorKind::Index => write!(
                f,
                "the search index in {place} is damaged ({cause}); `unspool db rebuild --store URL` \
                 rebuilds it"
            ),
            StoreErrorKind::Overtaken => overtaken(f, place),
            StoreErrorKind::Busy => {
                write!(f, "another program has locked {place} for too long; try again ({cause})")
            }
            StoreErrorKind::Database => {
                write!(f, "{place}: {cause}; run `unspool db check --store URL`")
            }
            StoreErrorKind::NotEmpty => not_empty(f, place),
            StoreErrorKind::Address => write!(f, "{place}: {cause}"),
            StoreErrorKind::Gone | StoreErrorKind::Closed => write!(f, "the archive was closed"),
        }
    }
}

fn read_only(f: &mut fmt::Formatter<'_>, place: &str) -> fmt::Result {
    write!(f, "{place} is open read-only and cannot be changed")
}

fn not_empty(f: &mut fmt::Formatter<'_>, place: &str) -> fmt::Result {
    write!(f, "{place} has sessions already, and nothing was copied; name an empty database")
}

fn overtaken(f: &mut fmt::Formatter<'_>, place: &str) -> fmt::Result {
    write!(
        f,
        "another process records into {place} at the same time; nothing was mixed up: stop one of \
         them, or run the command again"
    )
}

fn damaged(f: &mut fmt::Formatter<'_>, place: &str, what: &str) -> fmt::Result {
    write!(
        f,
        "{place} is damaged ({what}); restore a backup, or move it away: then `unspool sync` \
         creates a new one from the agents' logs"
    )
}

impl Error for StoreError {}

impl From<PackError> for StoreError {
    fn from(error: PackError) -> StoreError {
        StoreError::because(StoreErrorKind::Payload, error)
    }
}

/// A corrupt block means a damaged database.
impl From<CorruptIndex> for StoreError {
    fn from(error: CorruptIndex) -> StoreError {
        StoreError::because(StoreErrorKind::Index, error)
    }
}
