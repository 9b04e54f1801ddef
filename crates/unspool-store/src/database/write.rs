//! Writes a batch in one transaction. Cursors and file offsets commit together with the parts made
//! from them; that makes re-reading a file idempotent (law 5).

mod parts;
mod payloads;
mod sum_changes;
mod sums;
mod turns;
mod vacate;

use crate::sql;
use crate::sql::{Connection, Transaction, params};
use rustc_hash::{FxHashMap, FxHashSet};

use self::parts::PartStatements;
use self::payloads::{PAYLOAD_LOCATION, contents};
use self::sum_changes::SumChanges;
use self::sums::{has_same_models, sum_up, update_prompt_and_models};
use self::turns::turns;
use super::block_store::add_segment;
use super::load::json_list;
use super::{notes, prompts, received};
use crate::rows::{Batch, FileRow, RowId, SessionWrite, milliseconds};

pub(super) use self::payloads::OrphanCandidates;
pub(super) use self::sums::sum_up_all;

pub fn write(connection: &mut Connection, batch: Batch) -> sql::Result<()> {
    let transaction = connection.transaction()?;
    // Check foreign keys at commit, so the order of inserts does not matter.
    if let Some(connection) = transaction.as_sqlite() {
        connection.pragma_update(None, "defer_foreign_keys", true)?;
    }
    files(&transaction, &batch.files)?;
    received::write(&transaction, &batch.received)?;
    let chunks: Vec<RowId> = batch.chunks.iter().map(|chunk| chunk.row).collect();
    let (contents, filled) = contents(&transaction, &batch, &chunks)?;
    let mut chunk =
        transaction.prepare_cached("INSERT INTO chunk (row, session, data) VALUES (?1, ?2, ?3)")?;
    for (at, new) in batch.chunks.iter().enumerate() {
        // Skip a shared chunk if all its contents are stored already.
        if new.session.is_some() || filled.contains(&at) {
            chunk.run(params![new.row, new.session, new.data])?;
        }
    }
    drop(chunk);
    let mut orphans = OrphanCandidates::default();
    for session in &batch.sessions {
        write_session(&transaction, session, &chunks, &contents, &mut orphans)?;
    }
    orphans.drop_unused(&transaction)?;
    received::drop_foreign_links(&transaction, &batch)?;
    words(&transaction, &batch)?;
    let mut outdated_warnings =
        transaction.prepare_cached("DELETE FROM warning WHERE file = ?1 AND what = ?2")?;
    for entry in &batch.outdated_warnings {
        outdated_warnings.run(*entry)?;
    }
    drop(outdated_warnings);
    let mut warning = transaction.prepare_cached(
        "INSERT INTO warning (file, session, line, what, bytes) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO NOTHING",
    )?;
    for new in &batch.warnings {
        warning.run(params![new.file, new.session, new.line as i64, new.what, new.bytes])?;
    }
    drop(warning);
    if transaction.is_server() {
        check_parts(&transaction, &batch)?;
    }
    transaction.commit()
}

/// Fails if a part that was written lacks its turn, its chunk or its content. A file has foreign keys
/// for that; on a server they would cost more than this.
fn check_parts(transaction: &Transaction<'_>, batch: &Batch) -> sql::Result<()> {
    let parts = batch.sessions.iter().flat_map(|session| &session.parts);
    let rows = json_list(parts.map(|part| part.row));
    let mut incomplete = transaction.prepare_cached(
        "SELECT 1 FROM row_list(?1) AS written JOIN part ON part.row = written.value
         WHERE NOT EXISTS (SELECT 1 FROM turn WHERE turn.row = part.turn)
             OR part.chunk IS NOT NULL
                 AND NOT EXISTS (SELECT 1 FROM chunk WHERE chunk.row = part.chunk)
             OR part.content IS NOT NULL
                 AND NOT EXISTS (SELECT 1 FROM content WHERE content.row = part.content)
         LIMIT 1",
    )?;
    if incomplete.exists([rows])? { Err(sql::Error::NoOwner) } else { Ok(()) }
}

fn files(transaction: &Transaction<'_>, files: &[FileRow]) -> sql::Result<()> {
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
        statement.run(params![
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
) -> sql::Result<()> {
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

fn head(transaction: &Transaction<'_>, write: &SessionWrite) -> sql::Result<()> {
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
            .run(params![
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
        .run(params![write.row, write.seq as i64, skip_counts, write.completeness])?;
    Ok(())
}

fn delete_gone(
    transaction: &Transaction<'_>,
    session: &SessionWrite,
    orphans: &mut OrphanCandidates,
) -> sql::Result<()> {
    let mut payload_location = transaction.prepare_cached(PAYLOAD_LOCATION)?;
    let mut part = transaction.prepare_cached("DELETE FROM part WHERE row = ?1")?;
    for row in &session.deleted_parts {
        orphans.note(&mut payload_location, *row)?;
        part.run([*row])?;
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
        moved.run([*from, *into])?;
        turn.run([*from])?;
    }
    Ok(())
}

/// Serializing our own types cannot fail.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn sources(transaction: &Transaction<'_>, session: &SessionWrite) -> sql::Result<()> {
    let mut source = transaction.prepare_cached(
        "INSERT INTO source (session, file, number, telling, first, read, in_parts, metadata,
             unreadable, left_out)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
         ON CONFLICT (session, file, number) DO UPDATE SET telling = ?4, first = ?5, read = ?6,
             in_parts = ?7, metadata = ?8, unreadable = ?9, left_out = ?10",
    )?;
    for entry in &session.sources {
        let records = &entry.records;
        source.run(params![
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
        "INSERT INTO cursor (session, telling, source, offset, nth) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (session, telling, source) DO UPDATE SET offset = ?4, nth = ?5",
    )?;
    for entry in &session.cursors {
        cursor.run(params![
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

fn words(transaction: &Transaction<'_>, batch: &Batch) -> sql::Result<()> {
    let mut unindexed = transaction
        .prepare_cached("INSERT INTO unindexed (part) VALUES (?1) ON CONFLICT DO NOTHING")?;
    for part in &batch.unindexed {
        unindexed.run([*part])?;
    }
    let mut indexed = transaction.prepare_cached("DELETE FROM unindexed WHERE part = ?1")?;
    for part in &batch.indexed {
        indexed.run([*part])?;
    }
    let Some(segment) = &batch.segment else { return Ok(()) };
    add_segment(transaction, segment)?;
    Ok(())
}
