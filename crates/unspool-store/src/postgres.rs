//! What only PostgreSQL has: its address, its connections, its schema, and the translation of the
//! queries that are written for both databases.

pub mod address;
pub(crate) mod connection;
mod copy;
mod dialect;
pub(crate) mod encryption;
mod error;
mod migrate;
mod values;

pub use address::Address;
pub use copy::{CopyReport, copy};
pub(crate) use error::kind as error_kind;
pub use migrate::SCHEMA_VERSION;
use migrate::State;

use self::connection::PostgresConnection;
use crate::store::{ArchivePlace, StoreError, StoreErrorKind};

/// Fails unless the database has an archive of this version. Creates it if `writes`, in an empty
/// database only: what changes an archive that people use is `migrate`.
pub(crate) fn check(connection: &PostgresConnection, writes: bool) -> Result<(), StoreError> {
    let kind = match migrate::state(connection)? {
        State::Version(version) if version == SCHEMA_VERSION => return Ok(()),
        State::Version(version) if version > SCHEMA_VERSION => {
            StoreErrorKind::Newer { version, supported: SCHEMA_VERSION }
        }
        State::Version(version) => StoreErrorKind::Older { version, supported: SCHEMA_VERSION },
        State::Empty if writes => {
            migrate::migrate(connection)?;
            return Ok(());
        }
        State::Empty => StoreErrorKind::Missing,
        State::Foreign => StoreErrorKind::Foreign,
    };
    Err(StoreError::new(kind))
}

/// Creates the archive or brings it to the current version. Returns the version that it had, if it
/// was there.
pub fn migrate(address: &Address) -> Result<Option<usize>, StoreError> {
    let run = || -> Result<Option<usize>, StoreError> {
        let connection = PostgresConnection::connect(address)?;
        if let State::Version(version) = migrate::state(&connection)?
            && version > SCHEMA_VERSION
        {
            let kind = StoreErrorKind::Newer { version, supported: SCHEMA_VERSION };
            return Err(StoreError::new(kind));
        }
        match migrate::migrate(&connection)? {
            State::Empty => Ok(None),
            State::Version(version) => Ok(Some(version)),
            State::Foreign => Err(StoreError::new(StoreErrorKind::Foreign)),
        }
    };
    run().map_err(|error| error.at_place(&ArchivePlace::Server(address.to_string())))
}
