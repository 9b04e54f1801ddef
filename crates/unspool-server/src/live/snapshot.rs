//! Snapshots: what a live stream begins with. They are built on blocking threads, some turns at a
//! time, within the limit of large responses.

use axum::extract::ws::{Message, Utf8Bytes, WebSocket};
use tokio::time::timeout;
use unspool_store::store::TurnSize;

use crate::large_responses::{ResponsePermit, send_limit};

/// A message holds about this many parts. A turn is not divided.
const SNAPSHOT_PARTS: u64 = 1000;

/// First turn and number of turns of each snapshot message.
pub fn turn_ranges(sizes: &[TurnSize]) -> Vec<(u32, u32)> {
    let mut found: Vec<(u32, u32)> = Vec::new();
    let mut parts = SNAPSHOT_PARTS;
    for size in sizes {
        match found.last_mut().filter(|_| parts + size.parts <= SNAPSHOT_PARTS) {
            Some((_, count)) => *count += 1,
            None => {
                found.push((size.number, 1));
                parts = 0;
            }
        }
        parts += size.parts;
    }
    found
}

/// Sends the messages that were built with this permit.
pub async fn send(
    socket: &mut WebSocket,
    permit: ResponsePermit,
    messages: Vec<Utf8Bytes>,
) -> Result<(), axum::Error> {
    let bytes: usize = messages.iter().map(|message| message.as_str().len()).sum();
    let permit = permit.for_sending(bytes);
    let sending = async {
        for message in messages {
            socket.send(Message::Text(message)).await?;
        }
        Ok(())
    };
    let sent = timeout(send_limit(bytes), sending).await;
    drop(permit);
    sent.unwrap_or_else(|late| Err(axum::Error::new(late)))
}
