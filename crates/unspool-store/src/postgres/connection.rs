//! One connection to a server, used from one thread. All connections are driven by one background
//! thread, so that a batch goes on building its statements while the server runs the first ones.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::thread;

use pollster::block_on;
use rusqlite::types::ToSql as SqliteToSql;
use rustc_hash::FxHashMap;
use tokio::runtime::{Builder, Handle};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, Config, NoTls, Socket, Statement};

use super::Address;
use super::dialect::translate;
use super::encryption::Encryption;
use super::values::Param;
use crate::sql::{Error, Result};

pub use super::values::Row;

/// Statements that may be sent without an answer to the first of them.
const MAX_PENDING: usize = 1024;
/// Statements that are kept prepared. Filters of lists and searches make some of them.
const MAX_PREPARED: usize = 512;

/// What is set for each connection. Locks are held for the time of one write, and a process that
/// was stopped in the middle of one loses its transaction.
const SETTINGS: &str = "SET search_path TO unspool; SET lock_timeout TO '10s';
    SET idle_in_transaction_session_timeout TO '60s'; SET standard_conforming_strings TO on;
    SET client_min_messages TO warning; SET jit TO off";

type Sent = Pin<Box<dyn Future<Output = Result<u64>> + Send>>;

/// What the archive's nonce was after the last write of this process. Every transaction compares and
/// swaps it, so a process whose memory of the archive is old writes nothing. It is random: after a
/// restored backup a counter would come round to the same number again.
#[derive(Clone, Copy, Default)]
struct Nonce {
    last: i64,
    /// Of the transaction that is open.
    next: i64,
}

pub struct PostgresConnection {
    address: Address,
    client: Arc<Client>,
    /// For a connection that writes; the others only read, and see one state of the database.
    nonce: Cell<Option<Nonce>>,
    prepared: RefCell<FxHashMap<String, Statement>>,
    /// Statements whose outcome nobody has asked for yet.
    pending: RefCell<Vec<Sent>>,
}

impl PostgresConnection {
    /// A connection that only reads.
    pub fn connect(address: &Address) -> Result<PostgresConnection> {
        Ok(PostgresConnection {
            client: Arc::new(connect(address)?),
            address: address.clone(),
            nonce: Cell::new(None),
            prepared: RefCell::default(),
            pending: RefCell::default(),
        })
    }

    /// Connects again if the connection broke.
    pub fn reopen_if_closed(&mut self) -> Result<()> {
        if self.client.is_closed() {
            let nonce = self.nonce.take();
            *self = PostgresConnection::connect(&self.address)?;
            // Not that of the database: what this process remembers of the archive is still old.
            self.nonce.set(nonce);
        }
        Ok(())
    }

    /// Makes it a connection that writes.
    pub fn for_writing(self) -> Result<PostgresConnection> {
        let found = self.prepare("SELECT nonce FROM archive")?.query(&[])?;
        let last = found.first().ok_or(Error::NoRows)?.value(0)?.as_i64()?;
        self.nonce.set(Some(Nonce { last, next: last }));
        Ok(self)
    }

    /// Runs statements without values, in a row.
    pub fn batch(&self, sql: &str) -> Result<()> {
        self.wait(self.client.batch_execute(sql))
    }

    pub fn begin(&self) -> Result<()> {
        let Some(nonce) = self.nonce.get() else {
            return self.send_plain("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
        };
        let next = getrandom::u64().map_err(|_| Error::Closed)?.cast_signed();
        self.nonce.set(Some(Nonce { next, ..nonce }));
        let swap = "UPDATE archive SET nonce = ?2 WHERE nonce = ?1";
        let (client, statement) = (self.client.clone(), self.prepare(swap)?.statement);
        self.send_plain("BEGIN")?;
        // Writers of other processes wait here for the end of this transaction.
        self.send(async move {
            let values = [Param::from(nonce.last), Param::from(next)];
            match client.execute_raw(&statement, &values).await? {
                1 => Ok(1),
                _ => Err(Error::Overtaken),
            }
        })
    }

    pub fn commit(&self) -> Result<()> {
        let Some(nonce) = self.nonce.get() else { return self.send_plain("COMMIT") };
        if let Err(error) = self.settle() {
            self.rollback();
            return Err(error);
        }
        block_on(self.client.batch_execute("COMMIT"))?;
        self.nonce.set(Some(Nonce { last: nonce.next, ..nonce }));
        Ok(())
    }

    /// Ends a transaction without its changes.
    pub fn rollback(&self) {
        // Its errors are of no interest: the transaction is given up, by the server if not here.
        let _ = self.send_plain("ROLLBACK");
        if self.nonce.get().is_some() {
            let _ = self.settle();
        }
    }

    fn send_plain(&self, sql: &'static str) -> Result<()> {
        let client = self.client.clone();
        self.send(async move { Ok(client.batch_execute(sql).await.map(|()| 0)?) })
    }

    /// Sends something without waiting for the answer.
    fn send(&self, future: impl Future<Output = Result<u64>> + Send + 'static) -> Result<()> {
        let mut future: Sent = Box::pin(future);
        // The first poll puts the message into the connection's queue.
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => outcome.map(drop),
            Poll::Pending => {
                self.pending.borrow_mut().push(future);
                let count = self.pending.borrow().len();
                if count < MAX_PENDING { Ok(()) } else { self.settle() }
            }
        }
    }

    /// Sends something after all that was sent before, and waits for the answer. The earlier answers
    /// are taken first: the driver keeps only a few pieces of each, and would wait for us.
    fn wait<T>(
        &self,
        future: impl Future<Output = std::result::Result<T, tokio_postgres::Error>>,
    ) -> Result<T> {
        let mut future = pin!(future);
        let sent = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        self.settle()?;
        match sent {
            Poll::Ready(outcome) => Ok(outcome?),
            Poll::Pending => Ok(block_on(future)?),
        }
    }

    /// Waits for all that was sent. Returns the first error: the others follow from it.
    fn settle(&self) -> Result<()> {
        let pending = std::mem::take(&mut *self.pending.borrow_mut());
        let mut first = Ok(());
        for sent in pending {
            let outcome = block_on(sent).map(drop);
            if first.is_ok() {
                first = outcome;
            }
        }
        first
    }

    pub fn prepare(&self, sql: &str) -> Result<PostgresStatement<'_>> {
        if let Some(statement) = self.prepared.borrow().get(sql) {
            return Ok(PostgresStatement { connection: self, statement: statement.clone() });
        }
        let translated = translate(sql);
        let statement = self.wait(self.client.prepare(&translated))?;
        let mut all = self.prepared.borrow_mut();
        if all.len() >= MAX_PREPARED {
            all.clear();
        }
        all.insert(sql.to_owned(), statement.clone());
        Ok(PostgresStatement { connection: self, statement })
    }
}

pub struct PostgresStatement<'c> {
    connection: &'c PostgresConnection,
    statement: Statement,
}

impl PostgresStatement<'_> {
    pub fn execute(&self, values: &[&dyn SqliteToSql]) -> Result<usize> {
        let values = params(values)?;
        let sent = self.connection.client.execute_raw(&self.statement, &values);
        Ok(usize::try_from(self.connection.wait(sent)?).unwrap_or(usize::MAX))
    }

    pub fn run(&self, values: &[&dyn SqliteToSql]) -> Result<()> {
        let values = params(values)?;
        let (client, statement) = (self.connection.client.clone(), self.statement.clone());
        self.connection.send(async move { Ok(client.execute_raw(&statement, &values).await?) })
    }

    pub fn query(&self, values: &[&dyn SqliteToSql]) -> Result<Vec<Row>> {
        let values = params(values)?;
        let values: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> =
            values.iter().map(|value| value as _).collect();
        let found = self.connection.wait(self.connection.client.query(&self.statement, &values))?;
        Ok(found.into_iter().map(Row::new).collect())
    }
}

fn params(values: &[&dyn SqliteToSql]) -> Result<Vec<Param>> {
    values.iter().map(|value| Param::of(*value)).collect()
}

fn connect(address: &Address) -> Result<Client> {
    let config = address.config.clone();
    let connected = match address.encryption.clone() {
        Encryption::Off => driver()?.spawn(connect_with(config, NoTls)),
        Encryption::On(tls) => driver()?.spawn(connect_with(config, tls)),
    };
    match block_on(connected) {
        Ok(client) => client,
        Err(_) => Err(Error::Closed),
    }
}

async fn connect_with<T>(config: Config, tls: T) -> Result<Client>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let (client, connection) = config.connect(tls).await?;
    tokio::spawn(async move {
        // Whoever uses the client sees the error.
        let _ = connection.await;
    });
    client.batch_execute(SETTINGS).await?;
    Ok(client)
}

/// The thread that drives all connections of this process.
fn driver() -> Result<&'static Handle> {
    static DRIVER: OnceLock<Option<Handle>> = OnceLock::new();
    let start = || {
        let runtime = Builder::new_current_thread().enable_all().build().ok()?;
        let handle = runtime.handle().clone();
        thread::Builder::new()
            .name("postgres".to_owned())
            .spawn(move || runtime.block_on(std::future::pending::<()>()))
            .ok()?;
        Some(handle)
    };
    DRIVER.get_or_init(start).as_ref().ok_or(Error::Closed)
}
