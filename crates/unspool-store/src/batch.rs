//! Builds a batch: turns the changes in `SessionWriter`s into rows, compressed chunks, contents and
//! an index segment. Most of the time of an import is spent here, so the reader threads do it, not
//! the one writer thread.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use unspool_core::id::{SessionId, TurnId};
use unspool_core::part::{Body, Part, Place};
use unspool_core::provenance::Origin;
use unspool_core::session::Turn;

use crate::index;
use crate::pack::{self, Compressor, LargePayload, PackError};
use crate::rows::{
    Batch, Chunk, Content, NameDigests, PartRow, Payload, Role, RowId, SessionWrite, TurnWrite,
    columns, is_settled, milliseconds, user_part_id, user_place,
};
use crate::searchable::{SearchField, fields};
use crate::session_writer::{RowIds, SessionWriter, TrackedPart, TrackedTurn};

/// A chunk is closed at this size. Reading one part decompresses its whole chunk: larger chunks
/// compress better and are slower to read.
const CHUNK_BYTES: usize = 64 * 1024;
const SHARED_CHUNK_BYTES: usize = 128 * 1024;
/// How many digests of already sent contents to remember. Beyond it, some contents are compressed
/// again.
const MAX_SENT_CONTENTS: usize = 100_000;

/// Whether parts are packed and indexed with the batch or later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IngestMode {
    /// Importing history. Settled parts are packed and indexed at once.
    Bulk,
    /// Small batches. Payloads of open turns stay in the journal, and new parts wait until there
    /// are enough for an index segment; until then a search scans them one by one.
    Live,
}

/// Builds batches, one after another.
pub struct Packer {
    row_ids: Arc<RowIds>,
    mode: IngestMode,
    compressor: Compressor,
    sub_agent: FxHashSet<u128>,
    batch: Batch,
    words: index::SegmentBuilder,
    /// The open chunk, and its session.
    chunk: OpenChunk,
    chunk_session: RowId,
    /// The open chunk of large payloads, shared by all sessions.
    shared: OpenChunk,
}

/// A chunk that is not full yet, and its index in the batch.
#[derive(Default)]
struct OpenChunk {
    bytes: Vec<u8>,
    place: Option<usize>,
}

impl Packer {
    pub fn new(row_ids: &Arc<RowIds>, mode: IngestMode) -> Result<Packer, PackError> {
        Ok(Packer {
            row_ids: row_ids.clone(),
            mode,
            compressor: Compressor::new()?,
            sub_agent: FxHashSet::default(),
            batch: Batch::default(),
            words: index::SegmentBuilder::default(),
            chunk: OpenChunk::default(),
            chunk_session: 0,
            shared: OpenChunk::default(),
        })
    }

    /// The batch so far, to add rows that belong to no session.
    pub fn batch(&mut self) -> &mut Batch {
        &mut self.batch
    }

    /// The memory that the index of the batch takes, in bytes.
    pub fn words_memory(&self) -> usize {
        self.words.memory()
    }

    /// Forgets which contents were sent, because the last batch was not written.
    pub(crate) fn forget_contents(&mut self) {
        self.sub_agent.clear();
    }

    /// Closes the open chunks and returns the batch.
    pub fn finish(&mut self) -> Result<Batch, PackError> {
        self.close_chunk()?;
        self.close_shared()?;
        if self.words.documents() > 0 {
            self.batch.segment = Some(std::mem::take(&mut self.words).finish());
        }
        if self.mode == IngestMode::Live {
            // A live packer is long-lived; sessions and their contents may be deleted meanwhile.
            self.forget_contents();
        }
        // A content stored by this batch may be deleted again before the next one.
        self.sub_agent.clear();
        Ok(std::mem::take(&mut self.batch))
    }

    /// Adds everything that changed in a session since the last call. Evicts settled turns from
    /// memory.
    pub fn add(&mut self, writer: &mut SessionWriter) -> Result<(), PackError> {
        if self.chunk_session != writer.row {
            self.close_chunk()?;
            self.chunk_session = writer.row;
        }
        let mut write = SessionWrite {
            row: writer.row,
            id: writer.id,
            head: std::mem::take(&mut writer.head_dirty)
                .then(|| writer.transcript.session().clone()),
            seq: writer.seq,
            completeness: writer.completeness().name().to_owned(),
            sources: writer.sources.clone(),
            cursors: writer.assembler.cursors().collect(),
            turns: Vec::new(),
            parts: Vec::new(),
            merged: std::mem::take(&mut writer.merged),
            deleted_parts: std::mem::take(&mut writer.deleted_parts),
            snapshots: std::mem::take(&mut writer.snapshots),
            skip_counts: writer.skip_counts.clone(),
        };
        let turns: Vec<TurnId> = writer.transcript.turn_ids().collect();
        for id in turns {
            let settled = writer.assembler.release(id);
            if settled {
                if let (Some(turn), Some(tracked)) =
                    (writer.transcript.take_turn(id), writer.turns.remove(&id))
                {
                    self.add_settled(writer, turn, tracked, &mut write)?;
                }
            } else {
                self.add_unsettled(writer, id, &mut write)?;
            }
        }
        writer.dirty_turns.clear();
        writer.dirty_parts.clear();
        writer.stored = true;
        writer.written = writer.seq;
        self.batch.sessions.push(write);
        Ok(())
    }

    /// Adds a settled turn, which leaves memory. Its parts are packed without a copy.
    fn add_settled(
        &mut self,
        writer: &mut SessionWriter,
        mut turn: Turn,
        tracked: TrackedTurn,
        write: &mut SessionWrite,
    ) -> Result<(), PackError> {
        let agent = writer.transcript.session().agent.clone();
        let names = names(&turn, &tracked);
        let parts = std::mem::take(&mut turn.parts);
        for part in parts {
            let Some(row) = writer.parts.remove(&part.id) else { continue };
            if row.dirty || row.open {
                let part = self.part(&agent, &row, part, Role::Reply, PayloadTarget::Chunk)?;
                write.parts.push(part);
            }
        }
        if tracked.partial {
            writer.parts.retain(|_, part| part.turn != tracked.row);
        }
        if tracked.dirty || tracked.unsettled {
            let user = tracked.user.clone();
            let turn = self.head(&agent, turn, tracked, names, true, user, write)?.0;
            write.turns.push(turn);
        }
        Ok(())
    }

    /// Adds a turn that is still open.
    fn add_unsettled(
        &mut self,
        writer: &mut SessionWriter,
        id: TurnId,
        write: &mut SessionWrite,
    ) -> Result<(), PackError> {
        let agent = writer.transcript.session().agent.clone();
        let Some(turn) = writer.transcript.find_turn(id) else { return Ok(()) };
        let mut evicted = Vec::new();
        for part in &turn.parts {
            let Some(tracked) = writer.parts.get_mut(&part.id) else { continue };
            if !std::mem::take(&mut tracked.dirty) {
                continue;
            }
            let packed = self.mode == IngestMode::Bulk && is_settled(part);
            let target = if packed { PayloadTarget::Chunk } else { PayloadTarget::Journal };
            let row = self.part(&agent, tracked, part.clone(), Role::Reply, target)?;
            write.parts.push(row);
            tracked.stored = true;
            tracked.open = !packed;
            if packed {
                evicted.push(part.id);
            }
        }
        let Some(tracked) = writer.turns.get_mut(&id) else { return Ok(()) };
        if tracked.dirty || !evicted.is_empty() || !tracked.unsettled {
            let tracked = TrackedTurn {
                row: tracked.row,
                stored: std::mem::replace(&mut tracked.stored, true),
                dirty: std::mem::take(&mut tracked.dirty),
                user: tracked.user.clone(),
                user_dirty: std::mem::take(&mut tracked.user_dirty),
                partial: tracked.partial,
                unsettled: std::mem::replace(&mut tracked.unsettled, true),
            };
            let names = names(turn, &tracked);
            let user = tracked.user.clone();
            let turn = Turn { parts: Vec::new(), ..turn.clone() };
            let (head, user) = self.head(&agent, turn, tracked, names, false, user, write)?;
            write.turns.push(head);
            if let Some(tracked) = writer.turns.get_mut(&id) {
                tracked.user = user;
                tracked.partial |= !evicted.is_empty();
            }
        }
        // Packed parts leave memory; the recorder reloads one if a later change needs it.
        for id in evicted {
            writer.transcript.take_part(id);
            if let Some(tracked) = writer.parts.get_mut(&id) {
                tracked.evicted = true;
            }
        }
        Ok(())
    }

    /// The head of a turn. Also adds the rows of the user's message.
    #[allow(clippy::too_many_arguments)]
    fn head(
        &mut self,
        agent: &str,
        mut turn: Turn,
        tracked: TrackedTurn,
        names: NameDigests,
        settled: bool,
        mut user: Vec<RowId>,
        write: &mut SessionWrite,
    ) -> Result<(TurnWrite, Vec<RowId>), PackError> {
        let said = std::mem::take(&mut turn.user);
        if tracked.user_dirty {
            write.deleted_parts.extend(user.iter().skip(said.len()));
            user.truncate(said.len());
            let count = said.len();
            for (nth, body) in said.into_iter().enumerate() {
                let stored = nth < user.len();
                if !stored {
                    user.push(self.row_ids.part());
                }
                let row = TrackedPart {
                    row: user[nth],
                    turn: tracked.row,
                    dirty: true,
                    stored,
                    open: false,
                    evicted: false,
                };
                let part = user_part(&turn, nth, count, body);
                let part = self.part(agent, &row, part, Role::User, PayloadTarget::Chunk)?;
                write.parts.push(part);
            }
        }
        let steps = std::mem::take(&mut turn.steps);
        Ok((TurnWrite { row: tracked.row, turn, steps, names, settled }, user))
    }

    fn part(
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
        let hidden = part.origin.hidden;
        let agents = agents(agent, &part.body);
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
            evidence,
            text: packed.text,
            payload,
            stored: tracked.stored,
            content,
            hidden,
            agents,
        })
    }

    fn words(&mut self, tracked: &TrackedPart, part: &Part) {
        if part.origin.hidden {
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
        if self.sub_agent.contains(&digest) {
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
        if self.sub_agent.len() >= MAX_SENT_CONTENTS {
            self.sub_agent.clear();
        }
        self.sub_agent.insert(digest);
        Ok(digest)
    }

    fn close_chunk(&mut self) -> Result<(), PackError> {
        self.chunk.close(&mut self.batch, &mut self.compressor)
    }

    fn close_shared(&mut self) -> Result<(), PackError> {
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum PayloadTarget {
    Chunk,
    Journal,
}

fn names(turn: &Turn, tracked: &TrackedTurn) -> NameDigests {
    let names = turn.name_digests();
    if tracked.partial { NameDigests::Added(names) } else { NameDigests::All(names) }
}

/// A part for one body of the user's message. Transcripts keep those bodies in the turn; the
/// archive stores them as rows.
fn user_part(turn: &Turn, nth: usize, count: usize, body: Body) -> Part {
    Part {
        id: user_part_id(turn.id, nth),
        place: Place(user_place(nth, count)),
        step: None,
        started: None,
        ended: None,
        evidence: Vec::new(),
        origin: Origin::default(),
        body,
    }
}

/// The sub-agents of an agent part: agent id, call id, session.
pub(crate) fn agents(agent: &str, body: &Body) -> Vec<(String, String, SessionId)> {
    let Body::Agent(found) = body else { return Vec::new() };
    found
        .agents
        .iter()
        // An agent with a temporary id has no session yet.
        .filter(|sub_agent| !sub_agent.id.starts_with("temp_"))
        .map(|sub_agent| {
            (sub_agent.id.clone(), found.call_id.clone(), SessionId::of(agent, &sub_agent.id))
        })
        .collect()
}
