//! Writes the parts of a session: their rows, payloads in the journal, and the sub-agents that they
//! name.

use crate::sql;
use crate::sql::{Statement, Transaction, params};
use rustc_hash::FxHashMap;

use super::payloads::{OrphanCandidates, PAYLOAD_LOCATION};
use super::sum_changes::SumChanges;
use super::vacate;
use crate::database::edited_files;
use crate::rows::{PartRow, Payload, RowId};

pub(super) struct PartStatements<'t> {
    transaction: &'t Transaction<'t>,
    session: RowId,
    insert: Statement<'t>,
    open: Statement<'t>,
    close: Statement<'t>,
    agent: Statement<'t>,
    no_agent: Statement<'t>,
    find: Statement<'t>,
    payload_location: Statement<'t>,
}

impl<'t> PartStatements<'t> {
    pub(super) fn prepare(
        transaction: &'t Transaction<'t>,
        session: RowId,
    ) -> sql::Result<PartStatements<'t>> {
        Ok(PartStatements {
            transaction,
            session,
            insert: transaction.prepare_cached(
                "INSERT INTO part (row, turn, place, id, role, kind, state, tool, call_id, step,
                     started, ended, duration, hidden, source, offset, length, text, chunk, at,
                     size, content, counted_calls)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,
                     ?17, ?18, ?19, ?20, ?21, ?22, ?23)
                 ON CONFLICT (row) DO UPDATE SET turn = ?2, place = ?3, id = ?4, kind = ?6,
                     state = ?7, tool = ?8, call_id = ?9, step = ?10, started = ?11, ended = ?12,
                     duration = ?13, hidden = ?14, source = ?15, offset = ?16, length = ?17,
                     text = ?18, chunk = ?19, at = ?20, size = ?21, content = ?22,
                     counted_calls = ?23",
            )?,
            open: transaction.prepare_cached(
                "INSERT INTO journal (part, payload) VALUES (?1, ?2)
                 ON CONFLICT (part) DO UPDATE SET payload = ?2",
            )?,
            close: transaction.prepare_cached("DELETE FROM journal WHERE part = ?1")?,
            agent: transaction.prepare_cached(
                "INSERT INTO agent (part, agent_id, call_id, session, parent)
                 VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
            )?,
            no_agent: transaction.prepare_cached("DELETE FROM agent WHERE part = ?1")?,
            find: transaction.prepare_cached("SELECT row FROM content WHERE digest = ?1")?,
            payload_location: transaction.prepare_cached(PAYLOAD_LOCATION)?,
        })
    }

    /// Writes a part. `later` are those that the batch writes after it.
    pub(super) fn write(
        &mut self,
        part: &PartRow,
        later: &[PartRow],
        chunks: &[RowId],
        contents: &FxHashMap<u128, RowId>,
        orphans: &mut OrphanCandidates,
        sums: &mut SumChanges<'_>,
    ) -> sql::Result<()> {
        if part.stored {
            orphans.note(&mut self.payload_location, part.row)?;
            sums.part(part.moved_from.unwrap_or(part.turn), part.row, false)?;
        }
        let (chunk, at, size) = match &part.payload {
            Payload::Chunk { chunk, at, length } => {
                (chunks.get(*chunk).copied(), Some(*at as i64), Some(*length as i64))
            }
            Payload::Journal(_) => (None, None, None),
        };
        let content = match part.content {
            Some(digest) => Some(match contents.get(&digest) {
                Some(row) => *row,
                // Stored by an earlier batch.
                None => self.find.query_row([&digest.to_be_bytes()[..]], |row| row.get(0))?,
            }),
            None => None,
        };
        let evidence = part.evidence;
        let params = params![
            part.row,
            part.turn,
            part.place,
            part.id.to_string(),
            part.role.name(),
            part.kind,
            part.state,
            part.tool,
            part.call_id,
            part.step.map(|step| step.to_string()),
            part.started,
            part.ended,
            part.duration,
            part.hidden,
            evidence.map(|(source, _, _)| source),
            evidence.map(|(_, offset, _)| offset as i64),
            evidence.map(|(_, _, length)| length),
            part.text,
            chunk,
            at,
            size,
            content,
            part.counted_calls,
        ];
        vacate::execute(&mut self.insert, params, || vacate::places(self.transaction, later))?;
        sums.part(part.turn, part.row, true)?;
        match &part.payload {
            Payload::Journal(payload) => self.open.run(params![part.row, payload])?,
            Payload::Chunk { .. } if part.stored => self.close.run([part.row])?,
            Payload::Chunk { .. } => {}
        };
        if part.kind == unspool_model::part::Kind::Agent.name() {
            self.no_agent.run([part.row])?;
        }
        if part.tool.is_some() || !part.edited.is_empty() {
            edited_files::write(self.transaction, part.row, &part.edited, part.stored)?;
        }
        // Of two with one id the last counts.
        for (agent, call, session) in part.agents.iter().rev() {
            self.agent.run(params![part.row, agent, call, session.to_string(), self.session])?;
        }
        Ok(())
    }
}
