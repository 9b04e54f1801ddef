//! Writes a batch in one transaction. Cursors and file offsets commit together with the parts made
//! from them; that makes re-reading a file idempotent (law 5).

mod parts;
mod payloads;
mod sum_changes;
mod sums;
mod turns;
mod vacate;

use rusqlite::{Connection, Transaction, params};
use rustc_hash::{FxHashMap, FxHashSet};

use self::parts::PartStatements;
use self::payloads::{PAYLOAD_LOCATION, contents};
use self::sum_changes::SumChanges;
use self::sums::{has_same_models, sum_up, update_prompt_and_models};
use self::turns::turns;
use super::block_store::add_segment;
use super::{notes, prompts};
use crate::rows::{Batch, FileRow, RowId, SessionWrite, milliseconds};

pub(super) use self::payloads::OrphanCandidates;
pub(super) use self::sums::sum_up_all;

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

fn write_session(
    transaction: &Transaction<'_>,
    session: &SessionWrite,
    chunks: &[RowId],
    contents: &FxHashMap<u128, RowId>,
    orphans: &mut OrphanCandidates,
) -> rusqlite::Result<()> {
    head(transaction, session)?;
    delete_gone(transaction, session, orphans)?;
    notes::follow(transaction, session.id, &session.moved_targets, &session.moved_parts)?;
    let mut sums = SumChanges::new(transaction, session)?;
    let dirty = session.turns.iter().map(|turn| turn.row);
    let dirty: FxHashSet<RowId> = dirty.chain(session.parts.iter().map(|part| part.turn)).collect();
    let mut dirty: Vec<RowId> = dirty.into_iter().collect();
    dirty.sort_unstable();
    for turn in &dirty {
        sums.before_turn(*turn)?;
    }
    turns(transaction, session, &mut sums)?;
    let mut parts = PartStatements::prepare(transaction, session.row)?;
    for (nth, part) in session.parts.iter().enumerate() {
        let later = session.parts.get(nth + 1..).unwrap_or_default();
        parts.write(part, later, chunks, contents, orphans, &mut sums)?;
    }
    drop(parts);
    let outdated = sums.apply(transaction, session.row, &dirty)?;
    if outdated.session {
        sum_up(transaction, session.row, &outdated.turns)?;
    }
    let same_models = has_same_models(transaction, session)?;
    update_prompt_and_models(transaction, session.row, same_models)?;
    sources(transaction, session)?;
    prompts::write(transaction, session)
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
                write.sub_agent,
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
    if !session.merged.is_empty() {
        // A part of one turn may stand where one of the other turn does until both are written.
        vacate::places(transaction, &session.parts)?;
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

/// Serializing our own types cannot fail.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
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

pub(super) fn feed_name(feed: unspool_model::provenance::Feed) -> &'static str {
    use unspool_model::provenance::Feed;
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
