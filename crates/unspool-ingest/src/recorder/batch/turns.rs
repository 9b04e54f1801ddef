//! Adds the turns of a session to a batch. A settled turn leaves memory; of an open turn only what
//! changed is added.

use unspool_model::id::{PartId, TurnId};
use unspool_model::part::{Body, Part, Place};
use unspool_model::provenance::Origin;
use unspool_model::session::Turn;
use unspool_store::pack::PackError;
use unspool_store::rows::{
    NameDigests, Role, RowId, SessionWrite, TurnWrite, is_settled, user_part_id, user_place,
};

use crate::recorder::batch::parts::PayloadTarget;
use crate::recorder::batch::{IngestMode, Packer};
use crate::recorder::session_writer::{SessionWriter, TrackedPart, TrackedTurn};

impl Packer {
    /// Adds a settled turn, which leaves memory. Its parts are packed without a copy.
    pub(super) fn add_settled(
        &mut self,
        writer: &mut SessionWriter,
        mut turn: Turn,
        tracked: TrackedTurn,
        write: &mut SessionWrite,
    ) -> Result<(), PackError> {
        let agent = writer.transcript.session().agent.clone();
        let names = names(&turn, &tracked);
        turn.steps.drain(..tracked.steps_from.min(turn.steps.len()));
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

    /// Adds a turn that is still open. `dirty`: its parts that may have changed.
    pub(super) fn add_unsettled(
        &mut self,
        writer: &mut SessionWriter,
        id: TurnId,
        dirty: Vec<PartId>,
        write: &mut SessionWrite,
    ) -> Result<(), PackError> {
        let agent = writer.transcript.session().agent.clone();
        let Some(turn) = writer.transcript.find_turn(id) else { return Ok(()) };
        let mut evicted = Vec::new();
        let dirty = dirty.into_iter().filter_map(|part| writer.transcript.find_part(part));
        let mut dirty: Vec<&Part> = dirty.collect();
        dirty.sort_by_key(|part| part.place);
        for part in dirty {
            let Some(tracked) = writer.parts.get_mut(&part.id) else { continue };
            if !std::mem::take(&mut tracked.dirty) {
                continue;
            }
            let packed = self.mode == IngestMode::Bulk && is_settled(part);
            let target = if packed { PayloadTarget::Chunk } else { PayloadTarget::Journal };
            let row = self.part(&agent, tracked, part.clone(), Role::Reply, target)?;
            write.parts.push(row);
            tracked.stored = true;
            tracked.moved_from = None;
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
                steps_from: std::mem::replace(&mut tracked.steps_from, turn.steps.len()),
                forgotten_names: std::mem::take(&mut tracked.forgotten_names),
            };
            let names = names(turn, &tracked);
            let user = tracked.user.clone();
            let steps = turn.steps.get(tracked.steps_from..).unwrap_or_default().to_vec();
            let turn = Turn { steps, ..turn.head() };
            let (head, user) = self.head(&agent, turn, tracked, names, false, user, write)?;
            write.turns.push(head);
            if let Some(tracked) = writer.turns.get_mut(&id) {
                tracked.user = user;
                tracked.partial |= !evicted.is_empty();
            }
        }
        // Packed parts leave memory; the recorder reloads one if a later change needs it.
        writer.transcript.drop_parts(id, &evicted);
        for id in evicted {
            if let Some(tracked) = writer.parts.get_mut(&id) {
                tracked.evicted = true;
            }
        }
        Ok(())
    }

    /// The head of a turn, whose steps are those to write. Also adds the rows of the user's message.
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
                    moved_from: None,
                };
                let part = user_part(&turn, nth, count, body);
                let part = self.part(agent, &row, part, Role::User, PayloadTarget::Chunk)?;
                write.parts.push(part);
            }
        }
        let TrackedTurn { row, steps_from, forgotten_names, .. } = tracked;
        let steps = std::mem::take(&mut turn.steps);
        let write = TurnWrite { row, turn, steps_from, steps, names, forgotten_names, settled };
        Ok((write, user))
    }
}

fn names(turn: &Turn, tracked: &TrackedTurn) -> NameDigests {
    if tracked.partial {
        NameDigests::Added(turn.name_digests(tracked.steps_from))
    } else {
        NameDigests::All(turn.name_digests(0))
    }
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
