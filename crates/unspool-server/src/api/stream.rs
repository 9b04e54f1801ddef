//! Streamed response bodies. The writer blocks while the client is slow and stops when the client
//! disconnects.

use std::io::{self, BufWriter, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use http_body::Frame;
use tokio::sync::mpsc;

/// Chunks queued before the writer blocks.
const WAITING: usize = 4;
const PIECE: usize = 64 * 1024;

/// Runs the writer on a blocking thread. If it fails, the connection is reset, so that a partial
/// body does not look complete.
pub fn written_by(write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static) -> Body {
    let (out, body) = pieces();
    tokio::task::spawn_blocking(move || {
        let mut writer = BufWriter::with_capacity(PIECE, Pieces(out.clone()));
        let outcome = write(&mut writer).and_then(|()| writer.flush());
        if let Err(error) = outcome {
            // Fails only when the client is gone.
            let _ = out.blocking_send(Err(error));
        }
    });
    body
}

/// A body and the sender of its chunks.
pub fn pieces() -> (mpsc::Sender<Piece>, Body) {
    let (out, pieces) = mpsc::channel(WAITING);
    (out, Body::new(Written(pieces)))
}

pub type Piece = io::Result<Bytes>;

struct Pieces(mpsc::Sender<Piece>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = Bytes::copy_from_slice(bytes);
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.0.blocking_send(Ok(piece)).map_err(gone)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Written(mpsc::Receiver<Piece>);

impl HttpBody for Written {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
