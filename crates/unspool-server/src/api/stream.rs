//! Streamed response bodies. The writer blocks while the client is slow and stops when the client
//! disconnects.

use std::io::{self, BufWriter, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use http_body::Frame;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::large_responses::{ResponsePermit, send_limit};

/// Chunks queued before the writer blocks.
const QUEUED_CHUNKS: usize = 4;
const CHUNK_BYTES: usize = 64 * 1024;

/// Runs the writer on a blocking thread. If it fails, the connection is reset, so that a partial
/// body does not look complete.
pub fn body_written_by(
    write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static,
) -> Body {
    let (out, body) = body_channel();
    tokio::task::spawn_blocking(move || {
        let mut writer = BufWriter::with_capacity(CHUNK_BYTES, ChunkWriter(out.clone()));
        let outcome = write(&mut writer).and_then(|()| writer.flush());
        if let Err(error) = outcome {
            // Fails only when the client is gone.
            let _ = out.blocking_send(Err(error));
        }
    });
    body
}

/// A body that is in memory, sent while its permit is held. A client that does not read it is
/// disconnected.
pub fn body_within(permit: ResponsePermit, body: Vec<u8>) -> Body {
    let (out, chunks) = mpsc::channel(QUEUED_CHUNKS);
    let expected = body.len();
    let mut rest = Bytes::from(body);
    tokio::spawn(async move {
        let sending = async {
            while !rest.is_empty() {
                let chunk = rest.split_to(rest.len().min(CHUNK_BYTES));
                // Fails only when the client is gone.
                if out.send(Ok(chunk)).await.is_err() {
                    return;
                }
            }
        };
        let _late = timeout(send_limit(expected), sending).await;
        drop(permit);
    });
    Body::new(ChunkBody { chunks, missing: expected })
}

/// A body and the sender of its chunks.
pub fn body_channel() -> (mpsc::Sender<BodyChunk>, Body) {
    let (out, chunks) = mpsc::channel(QUEUED_CHUNKS);
    (out, Body::new(ChunkBody { chunks, missing: 0 }))
}

pub type BodyChunk = io::Result<Bytes>;

struct ChunkWriter(mpsc::Sender<BodyChunk>);

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let chunk = Bytes::copy_from_slice(bytes);
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.0.blocking_send(Ok(chunk)).map_err(gone)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct ChunkBody {
    chunks: mpsc::Receiver<BodyChunk>,
    /// So many bytes of a known length are still to come: an earlier end is an error, so that a
    /// partial body does not look complete.
    missing: usize,
}

impl HttpBody for ChunkBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let chunk = std::task::ready!(self.chunks.poll_recv(context));
        if let Some(Ok(chunk)) = &chunk {
            self.missing = self.missing.saturating_sub(chunk.len());
        } else if chunk.is_none() && std::mem::take(&mut self.missing) > 0 {
            return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
        }
        Poll::Ready(chunk.map(|chunk| chunk.map(Frame::data)))
    }
}
