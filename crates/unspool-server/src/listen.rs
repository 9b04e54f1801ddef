//! Accepts connections. Clients may be slow, silent or many: a request head must arrive in time, the
//! number of connections is limited, and the end of the server waits for open requests only so
//! long. `axum::serve` has none of these limits.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ConnectInfo;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;

/// How long a client may take to send the head of a request, and how long an idle connection stays.
const MAX_HEAD_TIME: Duration = Duration::from_secs(10);
/// How long a client may take nothing of a response that waits for it. Without this limit a few
/// clients that ask and never read would hold every place.
const MAX_STALL_TIME: Duration = Duration::from_secs(30);
/// How long the end waits for open requests.
const MAX_SHUTDOWN_TIME: Duration = Duration::from_secs(5);
/// The largest number of connections at a time, if the system allows as many files.
const MAX_CONNECTIONS: u64 = 4096;
/// Files that the archive, its readers and a page's exports need beside the connections.
const OTHER_FILES: u64 = 64;
/// The pause after an error that hits every connection, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Serves until `shutdown` completes, then waits for open requests to finish.
pub async fn serve(
    router: Router,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    // Each connection has a receiver: a message asks it to end, and the channel is closed when all
    // connections have.
    let (end, places) = (watch::Sender::new(()), Arc::new(Semaphore::new(places())));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(MAX_HEAD_TIME);
    tokio::pin!(shutdown);
    loop {
        let next = next_connection(&listener, &places);
        let (stream, address, place) = tokio::select! {
            next = next => next,
            () = &mut shutdown => break,
        };
        // `ConnectInfo` is what the login limits attempts by.
        let service = router.clone().layer(Extension(ConnectInfo(address)));
        let service = TowerToHyperService::new(service);
        let stream = TokioIo::new(with_write_limit(stream, MAX_STALL_TIME));
        let connection = builder.serve_connection(stream, service).with_upgrades();
        let mut ended = end.subscribe();
        tokio::spawn(async move {
            tokio::pin!(connection);
            // A client that disconnects is not an error.
            tokio::select! {
                _ = connection.as_mut() => {}
                _ = ended.changed() => {
                    connection.as_mut().graceful_shutdown();
                    let _ = connection.await;
                }
            }
            drop(place);
        });
    }
    drop(listener);
    // An elapsed time limit is not an error: the client had its chance.
    let _ = end.send(());
    let _ = timeout(MAX_SHUTDOWN_TIME, end.closed()).await;
    Ok(())
}

/// A stream whose writes fail if the client takes nothing for so long.
fn with_write_limit(stream: TcpStream, limit: Duration) -> Pin<Box<TimeoutStream<TcpStream>>> {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(limit));
    Box::pin(stream)
}

/// Waits for a place, then for a client. Errors of one client do not end the server.
async fn next_connection(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> (TcpStream, SocketAddr, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed.
    let place = places.clone().acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                // Small messages are sent at once.
                let _ = stream.set_nodelay(true);
                return (stream, address, place);
            }
            Err(error) => {
                tracing::warn!(%error, "accept failed");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// The number of connections that leave enough files for everything else.
fn places() -> usize {
    // Each page may read a log while it is connected.
    let room = file_limit().map(|files| files.saturating_sub(OTHER_FILES) * 3 / 4);
    let places = room.map_or(MAX_CONNECTIONS, |room| room.clamp(16, MAX_CONNECTIONS));
    usize::try_from(places).unwrap_or(16)
}

/// How many files this process may open. Raises the soft limit, which is low by default.
#[cfg(unix)]
fn file_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current?;
    let wanted = limit.maximum.map_or(2 * MAX_CONNECTIONS, |most| most.min(2 * MAX_CONNECTIONS));
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
    let is_raised = current < wanted && setrlimit(Resource::Nofile, raised).is_ok();
    Some(if is_raised { wanted } else { current })
}

#[cfg(not(unix))]
fn file_limit() -> Option<u64> {
    None
}

#[cfg(test)]
#[path = "listen_tests.rs"]
mod tests;
