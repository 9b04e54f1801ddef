//! Adds a part to a batch: its row, its words in the index, and its payload in a chunk or in the
//! journal. Large payloads are stored once for all parts with the same content.

use unspool_model::part::Part;
use unspool_store::pack::{self, Compressor, LargePayload, PackError};
use unspool_store::rows::{
    Batch, Chunk, Content, PartRow, Payload, Role, RowId, columns, edited_paths, is_settled,
    milliseconds, sub_agents,
};
use unspool_store::searchable::{SearchField, fields};

use crate::recorder::batch::{IngestMode, Packer};
use crate::recorder::session_writer::{RowIds, TrackedPart};

/// A chunk is closed at this size. Reading one part decompresses its whole chunk: larger chunks
/// compress better and are slower to read.
const CHUNK_BYTES: usize = 64 * 1024;
const SHARED_CHUNK_BYTES: usize = 128 * 1024;
/// How many digests of already sent contents to remember. Beyond it, some contents are compressed
/// again.
const MAX_SENT_CONTENTS: usize = 100_000;

/// A chunk that is not full yet, and its index in the batch.
#[derive(Default)]
pub(super) struct OpenChunk {
    bytes: Vec<u8>,
    place: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PayloadTarget {
    Chunk,
    Journal,
}

impl Packer {
    pub(super) fn part(
        &mut self,
        agent: &str,
        tracked: &TrackedPart,
        part: Part,
        role: Role,
        target: PayloadTarget,
    ) -> Result<PartRow, PackError> {
        self.words(tracked, &part);
        let columns = columns(&part.body);
        let evidence =
            part.evidence.first().map(|found| (found.source, found.offset, found.length));
        let (id, place, step) = (part.id, part.place.0, part.step);
        let (started, ended) = (milliseconds(part.started), milliseconds(part.ended));
        let hidden = part.origin.is_hidden();
        let agents = sub_agents(agent, &part.body);
        let edited = edited_paths(&part.body);
        let packed = pack::pack(part)?;
        let content = packed.large.map(|large| self.content(&large)).transpose()?;
        let payload = match target {
            PayloadTarget::Journal => Payload::Journal(packed.rest),
            PayloadTarget::Chunk => {
                let chunk =
                    self.chunk.place(&mut self.batch, Some(self.chunk_session), &self.row_ids);
                let at = self.chunk.bytes.len();
                self.chunk.bytes.extend_from_slice(&packed.rest);
                if self.chunk.bytes.len() >= CHUNK_BYTES {
                    self.close_chunk()?;
                }
                Payload::Chunk { chunk, at, length: packed.rest.len() }
            }
        };
        Ok(PartRow {
            row: tracked.row,
            turn: tracked.turn,
            place,
            id,
            role,
            kind: columns.kind,
            state: columns.state,
            tool: columns.tool,
            call_id: columns.call_id,
            step,
            started,
            ended,
            duration: columns.duration,
            counted_calls: columns.counted_calls,
            evidence,
            text: packed.text,
            payload,
            stored: tracked.stored,
            moved_from: tracked.moved_from,
            content,
            hidden,
            agents,
            edited,
        })
    }

    fn words(&mut self, tracked: &TrackedPart, part: &Part) {
        if part.origin.is_hidden() {
            return;
        }
        if self.mode == IngestMode::Live || !is_settled(part) {
            return self.batch.unindexed.push(tracked.row);
        }
        if tracked.stored {
            self.batch.indexed.push(tracked.row);
        }
        self.words.begin(tracked.row as u64);
        fields(&part.body, &mut |field| match field {
            SearchField::Text(text) => self.words.text(text),
            SearchField::Json(raw) => self.words.json(raw),
        });
        self.words.end();
    }

    /// Adds a large payload, unless this packer has sent it already.
    fn content(&mut self, large: &LargePayload) -> Result<u128, PackError> {
        let digest = large.digest;
        if self.sent_contents.contains(&digest) {
            return Ok(digest);
        }
        let size = large.size();
        let (chunk, at) = if size >= SHARED_CHUNK_BYTES {
            let row = self.row_ids.chunk();
            self.batch.chunks.push(Chunk { row, session: None, data: large.compress()? });
            (self.batch.chunks.len() - 1, 0)
        } else {
            let chunk = self.shared.place(&mut self.batch, None, &self.row_ids);
            let at = self.shared.bytes.len();
            large.append_to(&mut self.shared.bytes);
            if self.shared.bytes.len() >= SHARED_CHUNK_BYTES {
                self.close_shared()?;
            }
            (chunk, at)
        };
        self.batch.contents.push(Content { digest, chunk, at, size });
        if self.sent_contents.len() >= MAX_SENT_CONTENTS {
            self.sent_contents.clear();
        }
        self.sent_contents.insert(digest);
        Ok(digest)
    }

    pub(super) fn close_chunk(&mut self) -> Result<(), PackError> {
        self.chunk.close(&mut self.batch, &mut self.compressor)
    }

    pub(super) fn close_shared(&mut self) -> Result<(), PackError> {
        self.shared.close(&mut self.batch, &mut self.compressor)
    }
}

impl OpenChunk {
    /// Its index among the chunks of the batch, assigned on first use.
    fn place(&mut self, batch: &mut Batch, session: Option<RowId>, row_ids: &RowIds) -> usize {
        *self.place.get_or_insert_with(|| {
            batch.chunks.push(Chunk { row: row_ids.chunk(), session, data: Vec::new() });
            batch.chunks.len() - 1
        })
    }

    fn close(&mut self, batch: &mut Batch, compressor: &mut Compressor) -> Result<(), PackError> {
        if let Some(chunk) = self.place.take().and_then(|place| batch.chunks.get_mut(place)) {
            chunk.data = compressor.compress(&self.bytes)?;
        }
        self.bytes.clear();
        Ok(())
    }
}
