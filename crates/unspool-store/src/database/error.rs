//! The errors of SQLite and of queries as errors of a store.

use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;

use crate::sql;
use crate::store::{StoreError, StoreErrorKind};

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        StoreError::because(kind(&error), error)
    }
}

impl From<sql::FromSqlError> for StoreError {
    fn from(error: sql::FromSqlError) -> StoreError {
        rusqlite::Error::from(error).into()
    }
}

impl From<sql::Error> for StoreError {
    fn from(error: sql::Error) -> StoreError {
        match error {
            sql::Error::Sqlite(error) => error.into(),
            sql::Error::Value(error) => error.into(),
            sql::Error::NoRows => rusqlite::Error::QueryReturnedNoRows.into(),
            sql::Error::NoOwner => StoreError::because(StoreErrorKind::Database, error),
            sql::Error::Overtaken => StoreError::new(StoreErrorKind::Overtaken),
            sql::Error::Closed => StoreError::new(StoreErrorKind::Closed),
            sql::Error::Postgres(error) => {
                let kind = crate::postgres::error_kind(&error);
                StoreError::because(kind, sql::Error::Postgres(error))
            }
        }
    }
}

fn kind(error: &rusqlite::Error) -> StoreErrorKind {
    let extended = error.sqlite_error().map(|error| error.extended_code);
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreErrorKind::Full,
        Some(ErrorCode::ReadOnly) => StoreErrorKind::NotWritable,
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => StoreErrorKind::NotOpened,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreErrorKind::Damaged,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreErrorKind::Busy,
        // No space to grow the -shm file. SQLite reports that as an I/O error, not "disk full".
        Some(ErrorCode::SystemIoFailure) if extended == Some(SQLITE_IOERR_SHMSIZE) => {
            StoreErrorKind::Full
        }
        Some(ErrorCode::SystemIoFailure) => StoreErrorKind::Disk,
        Some(_) | None => StoreErrorKind::Database,
    }
}

/// The error of SQLite behind an error of the store.
pub fn sqlite_error(error: &StoreError) -> Option<&rusqlite::Error> {
    error.cause()?.downcast_ref()
}
