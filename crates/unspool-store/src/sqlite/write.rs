//! Writes a batch in one transaction. Cursors and file offsets commit together with the parts made
//! from them; that makes re-reading a file idempotent (law 5).

use rusqlite::{CachedStatement, Connection, OptionalExtension, Transaction, params};
use rustc_hash::{FxHashMap, FxHashSet};
use unspool_core::session::Step;

use super::block_store::add_segment;
use super::derived_columns::{
    STEP_SUMS, TURN_SUMS, first_prompt, models_of, part_sums, prompt_and_models,
};
use crate::rows::{
    Batch, Content, FileRow, NameDigests, PartRow, Payload, RowId, SessionWrite, TurnWrite,
    milliseconds,
};

pub fn write(connection: &mut Connection, batch: Batch) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    // Check foreign keys at commit, so the order of inserts does not matter.
    transaction.pragma_update(None, "defer_foreign_keys", true)?;
    files(&transaction, &batch.files)?;
    let chunks: Vec<RowId> = batch.chunks.iter().map(|chunk| chunk.row).collect();
    let (contents, filled) = contents(&transaction, &batch.contents, &chunks)?;
    let mut chunk =
        transaction.prepare_cached("INSERT INTO chunk (row, session, data) VALUES (?1, ?2, ?3)")?;
    for (at, new) in batch.chunks.iter().enumerate() {
        // Skip a shared chunk if all its contents are stored already.
        if new.session.is_some() || filled.contains(&at) {
            chunk.execute(params![new.row, new.session, new.data])?;
        }
    }
    drop(chunk);
    let mut orphans = OrphanCandidates::default();
    for session in &batch.sessions {
        write_session(&transaction, session, &chunks, &contents, &mut orphans)?;
    }
    orphans.drop_unused(&transaction)?;
    words(&transaction, &batch)?;
    let mut outdated_warnings =
        transaction.prepare_cached("DELETE FROM warning WHERE file = ?1 AND what = ?2")?;
    for entry in &batch.outdated_warnings {
        outdated_warnings.execute(*entry)?;
    }
    drop(outdated_warnings);
    let mut warning = transaction.prepare_cached(
        "INSERT OR IGNORE INTO warning (file, session, line, what, bytes)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for new in &batch.warnings {
        warning.execute(params![new.file, new.session, new.line as i64, new.what, new.bytes])?;
    }
    drop(warning);
    transaction.commit()
}

fn files(transaction: &Transaction<'_>, files: &[FileRow]) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare_cached(
        "INSERT INTO file (row, path, size, modified, changed, inode, device, offset, line, head,
                           tail, saved, refused)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
         ON CONFLICT (path) DO UPDATE SET size = ?3, modified = ?4, changed = ?5, inode = ?6,
             device = ?7, offset = ?8, line = ?9, head = ?10, tail = ?11, saved = ?12,
             refused = ?13",
    )?;
    for file in files {
        let stamp = file.stamp;
        statement.execute(params![
            file.row,
            file.path,
            stamp.size as i64,
            stamp.modified,
            stamp.changed,
            stamp.inode as i64,
            stamp.device as i64,
            file.print.offset as i64,
            file.line as i64,
            file.print.head as i64,
            file.print.tail as i64,
            file.saved.as_ref().and_then(|saved| zstd::bulk::compress(saved.as_bytes(), 1).ok()),
            file.refused,
        ])?;
    }
    Ok(())
}

/// Contents and chunks that lost a part in this transaction and may be unused now.
#[derive(Default)]
pub(super) struct OrphanCandidates {
    pub contents: FxHashSet<RowId>,
    pub chunks: FxHashSet<RowId>,
}

impl OrphanCandidates {
    /// Notes the payload location of a part that will be replaced or deleted.
    fn note(&mut self, statement: &mut CachedStatement<'_>, part: RowId) -> rusqlite::Result<()> {
        let mut rows = statement.query([part])?;
        if let Some(row) = rows.next()? {
            self.contents.extend(row.get::<_, Option<RowId>>(0)?);
            self.chunks.extend(row.get::<_, Option<RowId>>(1)?);
        }
        Ok(())
    }

    /// Deletes those that no part uses.
    pub fn drop_unused(mut self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let mut content = transaction.prepare_cached(
            "DELETE FROM content WHERE row = ?1
                 AND NOT EXISTS (SELECT 1 FROM part WHERE content = ?1) RETURNING chunk",
        )?;
        for row in &self.contents {
            let chunk: Option<RowId> = content.query_row([row], |row| row.get(0)).optional()?;
            self.chunks.extend(chunk);
        }
        let mut chunk = transaction.prepare_cached(
            "DELETE FROM chunk WHERE row = ?1
                 AND NOT EXISTS (SELECT 1 FROM content WHERE chunk = ?1)
                 AND NOT EXISTS (SELECT 1 FROM part WHERE chunk = ?1)",
        )?;
        for row in &self.chunks {
            chunk.execute([row])?;
        }
        Ok(())
    }
}

const PAYLOAD_LOCATION: &str = "SELECT content, chunk FROM part WHERE row = ?1";

/// Stores new contents. Returns the row of each content, and the chunks that hold a new one.
fn contents(
    transaction: &Transaction<'_>,
    contents: &[Content],
    chunks: &[RowId],
) -> rusqlite::Result<(FxHashMap<u128, RowId>, FxHashSet<usize>)> {
    let mut rows = FxHashMap::default();
    let mut filled = FxHashSet::default();
    let mut find = transaction.prepare_cached("SELECT row FROM content WHERE digest = ?1")?;
    let mut add = transaction
        .prepare_cached("INSERT INTO content (digest, chunk, at, size) VALUES (?1, ?2, ?3, ?4)")?;
    for content in contents {
        let digest = content.digest.to_be_bytes();
        let existing: Option<RowId> = find.query_row([&digest[..]], |row| row.get(0)).optional()?;
        let row = match existing {
            Some(row) => row,
            None => {
                filled.insert(content.chunk);
                add.insert(params![
                    &digest[..],
                    chunks.get(content.chunk),
                    content.at as i64,
                    content.size as i64,
                ])?
            }
        };
        rows.insert(content.digest, row);
    }
    Ok((rows, filled))
}

fn write_session(
    transaction: &Transaction<'_>,
    session: &SessionWrite,
    chunks: &[RowId],
    contents: &FxHashMap<u128, RowId>,
    orphans: &mut OrphanCandidates,
) -> rusqlite::Result<()> {
    head(transaction, session)?;
    delete_gone(transaction, session, orphans)?;
    let mut dirty: FxHashSet<RowId> = session.turns.iter().map(|turn| turn.row).collect();
    turns(transaction, session)?;
    let mut parts = PartStatements::prepare(transaction, session.row)?;
    for part in &session.parts {
        dirty.insert(part.turn);
        parts.write(part, chunks, contents, orphans)?;
    }
    drop(parts);
    let mut dirty: Vec<RowId> = dirty.into_iter().collect();
    dirty.sort_unstable();
    sum_up(transaction, session.row, &dirty)?;
    let same_models = has_same_models(transaction, session)?;
    update_prompt_and_models(transaction, session.row, same_models)?;
    sources(transaction, session)?;
    let mut snapshot = transaction.prepare_cached(
        "INSERT OR IGNORE INTO snapshot (sha256, kind, content) VALUES (?1, ?2, ?3)",
    )?;
    let mut taken = transaction.prepare_cached(
        "INSERT OR IGNORE INTO session_snapshot (session, sha256) VALUES (?1, ?2)",
    )?;
    for new in &session.snapshots {
        snapshot.execute(params![new.sha256, new.kind, new.content])?;
        taken.execute(params![session.row, new.sha256])?;
    }
    Ok(())
}

fn head(transaction: &Transaction<'_>, write: &SessionWrite) -> rusqlite::Result<()> {
    let skip_counts = json(&write.skip_counts);
    if let Some(session) = &write.head {
        let facts = &session.facts;
        let parent = session.parent.as_ref();
        let forked = session.forked_from.as_ref();
        transaction
            .prepare_cached(
                "INSERT INTO session (row, id, agent, agent_session_id, project, branch, version,
                     title, state, completeness, parent, parent_call, forked_from, forked_turn,
                     sub_agent, cost_usd, head, begun)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,
                     ?17, ?18)
                 ON CONFLICT (row) DO UPDATE SET project = ?5, branch = ?6, version = ?7,
                     title = ?8, state = ?9, completeness = ?10, parent = ?11, parent_call = ?12,
                     forked_from = ?13, forked_turn = ?14, sub_agent = ?15, cost_usd = ?16,
                     head = ?17, begun = ?18",
            )?
            .execute(params![
                write.row,
                write.id.to_string(),
                session.agent,
                session.agent_session_id,
                facts.project,
                facts.branch,
                facts.version,
                facts.title.as_ref().map(|title| &title.text),
                session.state.name(),
                write.completeness,
                parent.map(|parent| parent.session.to_string()),
                parent.map(|parent| &parent.call_id),
                forked.map(|from| from.session.to_string()),
                forked.and_then(|from| from.turn).map(|turn| turn.to_string()),
                write.sources.iter().any(|source| source.sub_agent),
                facts.cost_usd,
                json(session),
                milliseconds(facts.started),
            ])?;
    }
    transaction
        .prepare_cached(
            "UPDATE session SET seq = ?2, oddities = ?3, completeness = ?4 WHERE row = ?1",
        )?
        .execute(params![write.row, write.seq as i64, skip_counts, write.completeness])?;
    Ok(())
}

fn delete_gone(
    transaction: &Transaction<'_>,
    session: &SessionWrite,
    orphans: &mut OrphanCandidates,
) -> rusqlite::Result<()> {
    let mut payload_location = transaction.prepare_cached(PAYLOAD_LOCATION)?;
    let mut part = transaction.prepare_cached("DELETE FROM part WHERE row = ?1")?;
    for row in &session.deleted_parts {
        orphans.note(&mut payload_location, *row)?;
        part.execute([row])?;
    }
    // Move the parts of merged turns first, or deleting the turn would cascade to them.
    let mut moved = transaction
        .prepare_cached("UPDATE part SET turn = ?2 WHERE turn = ?1 AND role = 'assistant'")?;
    let mut turn = transaction.prepare_cached("DELETE FROM turn WHERE row = ?1")?;
    for (from, into) in &session.merged {
        moved.execute([from, into])?;
        turn.execute([from])?;
    }
    Ok(())
}

fn turns(transaction: &Transaction<'_>, session: &SessionWrite) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(
        "INSERT INTO turn (row, session, id, number, trigger, thinking_mode, state, abandoned,
             inherited, started, ended, settled, head, names)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?15)
         ON CONFLICT (row) DO UPDATE SET id = ?3, number = ?4, trigger = ?5, thinking_mode = ?6,
             state = ?7, abandoned = ?8, inherited = ?9, started = ?10, ended = ?11,
             settled = ?12, head = ?13, names = iif(?14, ?15, CAST(names || ?15 AS BLOB))",
    )?;
    let mut forget = transaction.prepare_cached("DELETE FROM step WHERE turn = ?1")?;
    let mut step = transaction.prepare_cached(
        "INSERT INTO step (turn, number, id, model, input, output, cache_read, cache_write,
             reasoning, cache_write_1h, stop_reason, origin)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    for TurnWrite { row, turn, steps, names, settled } in &session.turns {
        let (NameDigests::All(entry) | NameDigests::Added(entry)) = names;
        let digests: Vec<u8> = entry.iter().flat_map(|name| name.to_le_bytes()).collect();
        insert.execute(params![
            row,
            session.row,
            turn.id.to_string(),
            turn.number,
            turn.trigger.name(),
            turn.thinking_mode,
            turn.state.name(),
            turn.abandoned,
            turn.inherited,
            milliseconds(turn.started),
            milliseconds(turn.ended),
            settled,
            json(turn),
            matches!(names, NameDigests::All(_)),
            digests,
        ])?;
        forget.execute([row])?;
        for (number, entry) in steps.iter().enumerate() {
            write_step(&mut step, *row, number, entry)?;
        }
    }
    Ok(())
}

fn write_step(
    statement: &mut CachedStatement<'_>,
    turn: RowId,
    number: usize,
    step: &Step,
) -> rusqlite::Result<()> {
    let usage = step.usage;
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let counts = [
        usage.input,
        usage.output,
        usage.cache_read,
        usage.cache_write,
        usage.reasoning,
        usage.cache_write_1h,
    ];
    let too_much = counts.iter().any(|count| i64::try_from(*count).is_err());
    let origin = StepOrigin {
        name: &step.name,
        at: step.at,
        usage: too_much.then_some(usage),
        provenance: step.provenance.as_ref(),
    };
    statement.execute(params![
        turn,
        number as i64,
        step.id.to_string(),
        step.model.as_deref(),
        count(usage.input),
        count(usage.output),
        count(usage.cache_read),
        count(usage.cache_write),
        count(usage.reasoning),
        count(usage.cache_write_1h),
        step.stop_reason.as_deref(),
        json(&origin),
    ])?;
    Ok(())
}

#[derive(serde::Serialize)]
struct StepOrigin<'a> {
    name: &'a unspool_core::provenance::Name,
    at: unspool_core::provenance::Positions,
    /// Counts that do not fit an SQLite integer.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<unspool_core::session::Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provenance: Option<&'a unspool_core::session::Provenance>,
}

/// Serializing our own types cannot fail.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

struct PartStatements<'t> {
    session: RowId,
    insert: CachedStatement<'t>,
    open: CachedStatement<'t>,
    close: CachedStatement<'t>,
    agent: CachedStatement<'t>,
    no_agent: CachedStatement<'t>,
    find: CachedStatement<'t>,
    payload_location: CachedStatement<'t>,
}

impl<'t> PartStatements<'t> {
    fn prepare(
        transaction: &'t Transaction<'_>,
        session: RowId,
    ) -> rusqlite::Result<PartStatements<'t>> {
        Ok(PartStatements {
            session,
            insert: transaction.prepare_cached(
                "INSERT INTO part (row, turn, place, id, role, kind, state, tool, call_id, step,
                     started, ended, duration, hidden, source, offset, length, text, chunk, at,
                     size, content)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,
                     ?17, ?18, ?19, ?20, ?21, ?22)
                 ON CONFLICT (row) DO UPDATE SET turn = ?2, place = ?3, id = ?4, kind = ?6,
                     state = ?7, tool = ?8, call_id = ?9, step = ?10, started = ?11, ended = ?12,
                     duration = ?13, hidden = ?14, source = ?15, offset = ?16, length = ?17,
                     text = ?18, chunk = ?19, at = ?20, size = ?21, content = ?22",
            )?,
            open: transaction.prepare_cached(
                "INSERT INTO journal (part, payload) VALUES (?1, ?2)
                 ON CONFLICT (part) DO UPDATE SET payload = ?2",
            )?,
            close: transaction.prepare_cached("DELETE FROM journal WHERE part = ?1")?,
            agent: transaction.prepare_cached(
                "INSERT OR REPLACE INTO agent (part, agent_id, call_id, session, parent)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?,
            no_agent: transaction.prepare_cached("DELETE FROM agent WHERE part = ?1")?,
            find: transaction.prepare_cached("SELECT row FROM content WHERE digest = ?1")?,
            payload_location: transaction.prepare_cached(PAYLOAD_LOCATION)?,
        })
    }

    fn write(
        &mut self,
        part: &PartRow,
        chunks: &[RowId],
        contents: &FxHashMap<u128, RowId>,
        orphans: &mut OrphanCandidates,
    ) -> rusqlite::Result<()> {
        if part.stored {
            orphans.note(&mut self.payload_location, part.row)?;
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
        self.insert.execute(params![
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
        ])?;
        match &part.payload {
            Payload::Journal(payload) => self.open.execute(params![part.row, payload])?,
            Payload::Chunk { .. } if part.stored => self.close.execute([part.row])?,
            Payload::Chunk { .. } => 0,
        };
        if part.kind == unspool_core::part::Kind::Agent.name() {
            self.no_agent.execute([part.row])?;
        }
        for (agent, call, session) in &part.agents {
            self.agent.execute(params![
                part.row,
                agent,
                call,
                session.to_string(),
                self.session
            ])?;
        }
        Ok(())
    }
}

/// Updates the sums of changed turns from their rows, then of the session from its turns.
fn sum_up(transaction: &Transaction<'_>, session: RowId, turns: &[RowId]) -> rusqlite::Result<()> {
    let ((parts, of_parts), (steps, of_steps)) = (part_sums(), STEP_SUMS);
    let sql = format!("UPDATE turn SET {parts} = {of_parts}, {steps} = {of_steps} WHERE row = ?1");
    let mut turn = transaction.prepare_cached(&sql)?;
    for row in turns {
        turn.execute([row])?;
    }
    let (sums, of_turns) = TURN_SUMS;
    let sql = format!("UPDATE session SET {sums} = {of_turns} WHERE row = ?1");
    transaction.prepare_cached(&sql)?.execute([session])?;
    Ok(())
}

/// Recomputes all sums.
pub(super) fn sum_up_all(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    let sessions: Vec<RowId> = transaction
        .prepare("SELECT row FROM session")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for session in sessions {
        let turns: Vec<RowId> = transaction
            .prepare_cached("SELECT row FROM turn WHERE session = ?1")?
            .query_map([session], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        sum_up(&transaction, session, &turns)?;
        update_prompt_and_models(&transaction, session, false)?;
    }
    transaction.commit()
}

/// Updates the first line of the first prompt, and the models in order of first use unless
/// `same_models`.
fn update_prompt_and_models(
    transaction: &Transaction<'_>,
    session: RowId,
    same_models: bool,
) -> rusqlite::Result<()> {
    let (prompt, existing): (Option<String>, Vec<String>) =
        prompt_and_models(transaction, session)?;
    let first = first_prompt(transaction, session)?;
    let models = if same_models { existing.clone() } else { models_of(transaction, session)? };
    if first != prompt || models != existing {
        transaction
            .prepare_cached("UPDATE session SET prompt = ?2, models = ?3 WHERE row = ?1")?
            .execute(params![session, first, json(&models)])?;
    }
    Ok(())
}

/// True if the batch cannot change the model list: it has at most one model, and the batch no
/// other.
fn has_same_models(transaction: &Transaction<'_>, write: &SessionWrite) -> rusqlite::Result<bool> {
    let (_, existing) = prompt_and_models(transaction, write.row)?;
    let steps = write.turns.iter().flat_map(|turn| &turn.steps);
    let mut entry = steps.filter_map(|step| step.model.as_deref());
    Ok(existing.len() <= 1 && entry.all(|model| existing.iter().any(|existing| existing == model)))
}

fn sources(transaction: &Transaction<'_>, session: &SessionWrite) -> rusqlite::Result<()> {
    let mut source = transaction.prepare_cached(
        "INSERT OR REPLACE INTO source (session, file, number, telling, first, read, in_parts,
             metadata, unreadable, left_out)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    for entry in &session.sources {
        let records = &entry.records;
        source.execute(params![
            session.row,
            entry.file,
            entry.number,
            feed_name(entry.feed),
            entry.first as i64,
            records.read as i64,
            records.in_parts as i64,
            records.metadata as i64,
            records.unreadable as i64,
            json(&records.left_out),
        ])?;
    }
    let mut cursor = transaction.prepare_cached(
        "INSERT OR REPLACE INTO cursor (session, telling, source, offset, nth)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for entry in &session.cursors {
        cursor.execute(params![
            session.row,
            feed_name(entry.feed),
            entry.source,
            entry.offset as i64,
            entry.nth
        ])?;
    }
    Ok(())
}

pub(super) fn feed_name(feed: unspool_core::provenance::Feed) -> &'static str {
    use unspool_core::provenance::Feed;
    match feed {
        Feed::Hooks => "hooks",
        Feed::Stream => "stream",
        Feed::Log => "log",
    }
}

fn words(transaction: &Transaction<'_>, batch: &Batch) -> rusqlite::Result<()> {
    let mut unindexed =
        transaction.prepare_cached("INSERT OR IGNORE INTO unindexed (part) VALUES (?1)")?;
    for part in &batch.unindexed {
        unindexed.execute([part])?;
    }
    let mut indexed = transaction.prepare_cached("DELETE FROM unindexed WHERE part = ?1")?;
    for part in &batch.indexed {
        indexed.execute([part])?;
    }
    let Some(segment) = &batch.segment else { return Ok(()) };
    add_segment(transaction, segment)?;
    Ok(())
}
