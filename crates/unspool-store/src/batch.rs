//! Builds a batch: turns the changes in `SessionWriter`s into rows, compressed chunks, contents and
//! an index segment. Most of the time of an import is spent here, so the reader threads do it, not
//! the one writer thread.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use unspool_core::id::{SessionId, TurnId};
use unspool_core::part::{Body, Part, Place};
use unspool_core::session::Turn;
use unspool_core::telling::Origin;

use crate::fold::{HeldPart, HeldTurn, Numbers, SessionFold};
use crate::index;
use crate::pack::{self, Large, PackError, Press};
use crate::rows::{
    Batch, Chunk, Content, Names, PartRow, Payload, Role, Row, SessionWrite, TurnWrite, columns,
    is_settled, milliseconds, user_part_id, user_place,
};
use crate::words::{Field, fields};

/// A chunk is closed at this size. Reading one part decompresses its whole chunk: larger chunks
/// compress better and are slower to read.
const CHUNK: usize = 64 * 1024;
const SHARED_CHUNK: usize = 128 * 1024;
/// How many digests of already sent contents to remember. Beyond it, some contents are compressed
/// again.
const REMEMBERED: usize = 100_000;

/// Whether parts are packed and indexed with the batch or later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// Importing history. Settled parts are packed and indexed at once.
    Bulk,
    /// Small batches. Payloads of open turns stay in the journal, and new parts wait until there
    /// are enough for an index segment; until then a search scans them one by one.
    Live,
}

/// Builds batches, one after another.
pub struct Packer {
    numbers: Arc<Numbers>,
    pace: Pace,
    press: Press,
    known: FxHashSet<u128>,
    batch: Batch,
    words: index::Builder,
    /// The open chunk, and its session.
    chunk: Filling,
    chunk_session: Row,
    /// The open chunk of large payloads, shared by all sessions.
    shared: Filling,
}

/// A chunk that is not full yet, and its index in the batch.
#[derive(Default)]
struct Filling {
    bytes: Vec<u8>,
    place: Option<usize>,
}

impl Packer {
    pub fn new(numbers: &Arc<Numbers>, pace: Pace) -> Result<Packer, PackError> {
        Ok(Packer {
            numbers: numbers.clone(),
            pace,
            press: Press::new()?,
            known: FxHashSet::default(),
            batch: Batch::default(),
            words: index::Builder::default(),
            chunk: Filling::default(),
            chunk_session: 0,
            shared: Filling::default(),
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
        self.known.clear();
    }

    /// Closes the open chunks and returns the batch.
    pub fn finish(&mut self) -> Result<Batch, PackError> {
        self.close_chunk()?;
        self.close_shared()?;
        if self.words.documents() > 0 {
            self.batch.segment = Some(std::mem::take(&mut self.words).finish());
        }
        if self.pace == Pace::Live {
            // A live packer is long-lived; sessions and their contents may be deleted meanwhile.
            self.forget_contents();
        }
        // A content stored by this batch may be deleted again before the next one.
        self.known.clear();
        Ok(std::mem::take(&mut self.batch))
    }

    /// Adds everything that changed in a session since the last call. Evicts settled turns from
    /// memory.
    pub fn add(&mut self, fold: &mut SessionFold) -> Result<(), PackError> {
        if self.chunk_session != fold.row {
            self.close_chunk()?;
            self.chunk_session = fold.row;
        }
        let mut write = SessionWrite {
            row: fold.row,
            id: fold.id,
            head: std::mem::take(&mut fold.head_dirty).then(|| fold.mirror.session().clone()),
            seq: fold.seq,
            completeness: fold.completeness().name().to_owned(),
            sources: fold.sources.clone(),
            cursors: fold.assembler.cursors().collect(),
            turns: Vec::new(),
            parts: Vec::new(),
            merged: std::mem::take(&mut fold.merged),
            gone_parts: std::mem::take(&mut fold.gone_parts),
            snapshots: std::mem::take(&mut fold.snapshots),
            oddities: fold.oddities.clone(),
        };
        let turns: Vec<TurnId> = fold.mirror.turn_ids().collect();
        for id in turns {
            let settled = fold.assembler.release(id);
            if settled {
                if let (Some(turn), Some(held)) =
                    (fold.mirror.take_turn(id), fold.turns.remove(&id))
                {
                    self.add_settled(fold, turn, held, &mut write)?;
                }
            } else {
                self.add_unsettled(fold, id, &mut write)?;
            }
        }
        fold.dirty_turns.clear();
        fold.dirty_parts.clear();
        fold.stored = true;
        fold.written = fold.seq;
        self.batch.sessions.push(write);
        Ok(())
    }

    /// Adds a settled turn, which leaves memory. Its parts are packed without a copy.
    fn add_settled(
        &mut self,
        fold: &mut SessionFold,
        mut turn: Turn,
        held: HeldTurn,
        write: &mut SessionWrite,
    ) -> Result<(), PackError> {
        let agent = fold.mirror.session().agent.clone();
        let names = names(&turn, &held);
        let parts = std::mem::take(&mut turn.parts);
        for part in parts {
            let Some(row) = fold.parts.remove(&part.id) else { continue };
            if row.dirty || row.open {
                let part = self.part(&agent, &row, part, Role::Reply, Keep::Chunk)?;
                write.parts.push(part);
            }
        }
        if held.partial {
            fold.parts.retain(|_, part| part.turn != held.row);
        }
        if held.dirty || held.unsettled {
            let user = held.user.clone();
            let turn = self.head(&agent, turn, held, names, true, user, write)?.0;
            write.turns.push(turn);
        }
        Ok(())
    }

    /// Adds a turn that is still open.
    fn add_unsettled(
        &mut self,
        fold: &mut SessionFold,
        id: TurnId,
        write: &mut SessionWrite,
    ) -> Result<(), PackError> {
        let agent = fold.mirror.session().agent.clone();
        let Some(turn) = fold.mirror.find_turn(id) else { return Ok(()) };
        let mut away = Vec::new();
        for part in &turn.parts {
            let Some(held) = fold.parts.get_mut(&part.id) else { continue };
            if !std::mem::take(&mut held.dirty) {
                continue;
            }
            let packed = self.pace == Pace::Bulk && is_settled(part);
            let keep = if packed { Keep::Chunk } else { Keep::Open };
            let row = self.part(&agent, held, part.clone(), Role::Reply, keep)?;
            write.parts.push(row);
            held.stored = true;
            held.open = !packed;
            if packed {
                away.push(part.id);
            }
        }
        let Some(held) = fold.turns.get_mut(&id) else { return Ok(()) };
        if held.dirty || !away.is_empty() || !held.unsettled {
            let held = HeldTurn {
                row: held.row,
                stored: std::mem::replace(&mut held.stored, true),
                dirty: std::mem::take(&mut held.dirty),
                user: held.user.clone(),
                user_dirty: std::mem::take(&mut held.user_dirty),
                partial: held.partial,
                unsettled: std::mem::replace(&mut held.unsettled, true),
            };
            let names = names(turn, &held);
            let user = held.user.clone();
            let turn = Turn { parts: Vec::new(), ..turn.clone() };
            let (head, user) = self.head(&agent, turn, held, names, false, user, write)?;
            write.turns.push(head);
            if let Some(held) = fold.turns.get_mut(&id) {
                held.user = user;
                held.partial |= !away.is_empty();
            }
        }
        // Packed parts leave memory; the recorder reloads one if a later change needs it.
        for id in away {
            fold.mirror.take_part(id);
            if let Some(held) = fold.parts.get_mut(&id) {
                held.away = true;
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
        held: HeldTurn,
        names: Names,
        settled: bool,
        mut user: Vec<Row>,
        write: &mut SessionWrite,
    ) -> Result<(TurnWrite, Vec<Row>), PackError> {
        let said = std::mem::take(&mut turn.user);
        if held.user_dirty {
            write.gone_parts.extend(user.iter().skip(said.len()));
            user.truncate(said.len());
            let count = said.len();
            for (nth, body) in said.into_iter().enumerate() {
                let stored = nth < user.len();
                if !stored {
                    user.push(self.numbers.part());
                }
                let row = HeldPart {
                    row: user[nth],
                    turn: held.row,
                    dirty: true,
                    stored,
                    open: false,
                    away: false,
                };
                let part = user_part(&turn, nth, count, body);
                let part = self.part(agent, &row, part, Role::User, Keep::Chunk)?;
                write.parts.push(part);
            }
        }
        let steps = std::mem::take(&mut turn.steps);
        Ok((TurnWrite { row: held.row, turn, steps, names, settled }, user))
    }

    fn part(
        &mut self,
        agent: &str,
        held: &HeldPart,
        part: Part,
        role: Role,
        keep: Keep,
    ) -> Result<PartRow, PackError> {
        self.words(held, &part);
        let columns = columns(&part.body);
        let evidence = part.evidence.first().map(|told| (told.source, told.offset, told.length));
        let (id, place, step) = (part.id, part.place.0, part.step);
        let (started, ended) = (milliseconds(part.started), milliseconds(part.ended));
        let hidden = part.origin.foreign;
        let agents = agents(agent, &part.body);
        let packed = pack::pack(part)?;
        let content = packed.large.map(|large| self.content(&large)).transpose()?;
        let payload = match keep {
            Keep::Open => Payload::Open(packed.rest),
            Keep::Chunk => {
                let chunk =
                    self.chunk.place(&mut self.batch, Some(self.chunk_session), &self.numbers);
                let at = self.chunk.bytes.len();
                self.chunk.bytes.extend_from_slice(&packed.rest);
                if self.chunk.bytes.len() >= CHUNK {
                    self.close_chunk()?;
                }
                Payload::Chunk { chunk, at, length: packed.rest.len() }
            }
        };
        Ok(PartRow {
            row: held.row,
            turn: held.turn,
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
            stored: held.stored,
            content,
            hidden,
            agents,
        })
    }

    fn words(&mut self, held: &HeldPart, part: &Part) {
        if part.origin.foreign {
            return;
        }
        if self.pace == Pace::Live || !is_settled(part) {
            return self.batch.unindexed.push(held.row);
        }
        if held.stored {
            self.batch.indexed.push(held.row);
        }
        self.words.begin(held.row as u64);
        fields(&part.body, &mut |field| match field {
            Field::Text(text) => self.words.text(text),
            Field::Json(raw) => self.words.json(raw),
        });
        self.words.end();
    }

    /// Adds a large payload, unless this packer has sent it already.
    fn content(&mut self, large: &Large) -> Result<u128, PackError> {
        let digest = large.digest;
        if self.known.contains(&digest) {
            return Ok(digest);
        }
        let size = large.size();
        let (chunk, at) = if size >= SHARED_CHUNK {
            let row = self.numbers.chunk();
            self.batch.chunks.push(Chunk { row, session: None, data: large.compress()? });
            (self.batch.chunks.len() - 1, 0)
        } else {
            let chunk = self.shared.place(&mut self.batch, None, &self.numbers);
            let at = self.shared.bytes.len();
            large.append_to(&mut self.shared.bytes);
            if self.shared.bytes.len() >= SHARED_CHUNK {
                self.close_shared()?;
            }
            (chunk, at)
        };
        self.batch.contents.push(Content { digest, chunk, at, size });
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        self.known.insert(digest);
        Ok(digest)
    }

    fn close_chunk(&mut self) -> Result<(), PackError> {
        self.chunk.close(&mut self.batch, &mut self.press)
    }

    fn close_shared(&mut self) -> Result<(), PackError> {
        self.shared.close(&mut self.batch, &mut self.press)
    }
}

impl Filling {
    /// Its index among the chunks of the batch, assigned on first use.
    fn place(&mut self, batch: &mut Batch, session: Option<Row>, numbers: &Numbers) -> usize {
        *self.place.get_or_insert_with(|| {
            batch.chunks.push(Chunk { row: numbers.chunk(), session, data: Vec::new() });
            batch.chunks.len() - 1
        })
    }

    fn close(&mut self, batch: &mut Batch, press: &mut Press) -> Result<(), PackError> {
        if let Some(chunk) = self.place.take().and_then(|place| batch.chunks.get_mut(place)) {
            chunk.data = press.frame(&self.bytes)?;
        }
        self.bytes.clear();
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Chunk,
    Open,
}

fn names(turn: &Turn, held: &HeldTurn) -> Names {
    let names = turn.name_digests();
    if held.partial { Names::New(names) } else { Names::All(names) }
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
    let Body::Agent(told) = body else { return Vec::new() };
    told.agents
        .iter()
        // An agent with a temporary id has no session yet.
        .filter(|known| !known.id.starts_with("temp_"))
        .map(|known| (known.id.clone(), told.call_id.clone(), SessionId::of(agent, &known.id)))
        .collect()
}
