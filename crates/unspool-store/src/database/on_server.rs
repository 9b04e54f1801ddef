//! Opens an archive that is in a PostgreSQL database.

use super::Database;
use super::connection_thread::ConnectionThread;
use crate::postgres::connection::PostgresConnection;
use crate::postgres::{self, Address};
use crate::sql::Connection;
use crate::store::{ArchivePlace, StoreError};

impl Database {
    /// Opens the archive on a server for writing, and creates it in an empty database.
    pub fn open_on_server(address: &Address) -> Result<Database, StoreError> {
        Database::connect_to_server(address, true)
    }

    /// Opens the archive on a server for reading. Other processes may be writing to it.
    pub fn open_on_server_to_read(address: &Address) -> Result<Database, StoreError> {
        Database::connect_to_server(address, false)
    }

    fn connect_to_server(address: &Address, writes: bool) -> Result<Database, StoreError> {
        let place = ArchivePlace::Server(address.to_string());
        let open = || -> Result<(Option<ConnectionThread>, ConnectionThread), StoreError> {
            let connection = PostgresConnection::connect(address)?;
            postgres::check(&connection, writes)?;
            let thread =
                |connection| ConnectionThread::start(Connection::Postgres(Box::new(connection)));
            if !writes {
                return Ok((None, thread(connection)?));
            }
            let reader = thread(PostgresConnection::connect(address)?)?;
            Ok((Some(thread(connection.for_writing()?)?), reader))
        };
        let (writer, reader) = open().map_err(|error| error.at_place(&place))?;
        Ok(Database { place, identity: None, writer, reader })
    }
}
