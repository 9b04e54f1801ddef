//! PostgreSQL's errors as errors of a store.

use tokio_postgres::error::SqlState;

use crate::store::StoreErrorKind;

/// How the driver's error begins when server and client do not agree on TLS.
const TLS_FAILED: &str = "error performing TLS handshake";

pub fn kind(error: &tokio_postgres::Error) -> StoreErrorKind {
    let Some(code) = error.code() else {
        // The driver's own kinds of errors are not public.
        if error.to_string().starts_with(TLS_FAILED) {
            return StoreErrorKind::NotEncrypted;
        }
        // No answer from the server: it is away, or the connection broke.
        return StoreErrorKind::Unreachable;
    };
    match *code {
        SqlState::DISK_FULL => StoreErrorKind::Full,
        SqlState::READ_ONLY_SQL_TRANSACTION | SqlState::INSUFFICIENT_PRIVILEGE => {
            StoreErrorKind::NotWritable
        }
        SqlState::INVALID_PASSWORD
        | SqlState::INVALID_AUTHORIZATION_SPECIFICATION
        | SqlState::INVALID_CATALOG_NAME => StoreErrorKind::NotOpened,
        SqlState::LOCK_NOT_AVAILABLE
        | SqlState::T_R_DEADLOCK_DETECTED
        | SqlState::T_R_SERIALIZATION_FAILURE => StoreErrorKind::Busy,
        SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => StoreErrorKind::Damaged,
        SqlState::ADMIN_SHUTDOWN
        | SqlState::CRASH_SHUTDOWN
        | SqlState::CANNOT_CONNECT_NOW
        | SqlState::TOO_MANY_CONNECTIONS => StoreErrorKind::Unreachable,
        _ => StoreErrorKind::Database,
    }
}
