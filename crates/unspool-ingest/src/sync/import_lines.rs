//! Imports a lossless export (`unspool_store::archive_lines`).

use std::io::{self, BufRead};

use rustc_hash::{FxHashMap, FxHashSet};
use thiserror::Error;
use unspool_model::id::SessionId;
use unspool_model::note::NoteTarget;
use unspool_store::archive_lines::{ArchiveLine, HeadLine, SnapshotLine};
use unspool_store::blocking::block_on;
use unspool_store::rows::{FileRow, RowId, Snapshot, SourceRow, WarningRow};
use unspool_store::store::{Store, StoreError, View, Viewer};

use crate::recorder::Recorder;
use crate::recorder::batch::{IngestMode, Packer};
use crate::recorder::session_writer::SessionWriter;
use crate::report::SyncReport;

/// A batch is committed after this many bytes of lines.
const BATCH_BYTES: usize = 8 * 1024 * 1024;

#[derive(Debug, Error)]
pub enum ImportLinesError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("line {line} is not a valid export line: {error}")]
    Line { line: u64, error: serde_json::Error },
    #[error("line {line}: {what}")]
    Order { line: u64, what: &'static str },
    #[error("the file ends in the middle of session {0}; the turns before that point are stored")]
    Truncated(String),
}

/// Imports an export. A stored session that is at least as new is kept.
pub fn import<S: Store>(
    recorder: &Recorder<S>,
    from: impl BufRead,
) -> Result<SyncReport, ImportLinesError> {
    let mut report = SyncReport::default();
    let mut importing: Option<ImportingSession> = None;
    let mut packer = recorder.packer(IngestMode::Bulk)?;
    let mut waiting = 0;
    for (line, number) in from.lines().zip(1..) {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        report.bytes += line.len() as u64 + 1;
        report.records += 1;
        let wrong = |error| ImportLinesError::Line { line: number, error };
        if line.starts_with("{\"unspool\":") {
            if let Some(importing) = importing.take() {
                return Err(ImportLinesError::Truncated(importing.head.session.agent_session_id));
            }
            let head: HeadLine = serde_json::from_str(&line).map_err(wrong)?;
            importing = Some(ImportingSession::begin(recorder, head)?);
            continue;
        }
        let what = "a turn before the line of its session";
        let current = importing.as_mut().ok_or(ImportLinesError::Order { line: number, what })?;
        match serde_json::from_str(&line).map_err(wrong)? {
            ArchiveLine::Turn(turn) => {
                current.turns += 1;
                current.parts += turn.parts.len() as u64;
                waiting += line.len();
                if let Some(writer) = &mut current.writer {
                    writer.adopt(*turn);
                }
                if waiting >= BATCH_BYTES {
                    waiting = 0;
                    current.write(recorder, &mut packer)?;
                }
            }
            ArchiveLine::End { turns, parts } => {
                if (turns, parts) != (current.turns, current.parts) {
                    let what = "the number of turns and parts differs from the session's end line";
                    return Err(ImportLinesError::Order { line: number, what });
                }
                waiting = 0;
                current.write(recorder, &mut packer)?;
                current.finish(recorder)?;
                if current.writer.is_some() {
                    report.sessions += 1;
                    report.turns += turns;
                    report.parts += parts;
                }
                importing = None;
            }
        }
    }
    match importing {
        Some(mut cut) => {
            cut.write(recorder, &mut packer)?;
            Err(ImportLinesError::Truncated(cut.head.session.agent_session_id))
        }
        None => Ok(report),
    }
}

/// The rows of the files that a session names.
struct FileRows<'a, S: Store> {
    store: &'a S,
    known: FxHashMap<String, RowId>,
}

impl<S: Store> FileRows<'_, S> {
    fn get(&mut self, path: &str) -> Result<Option<RowId>, StoreError> {
        if let Some(row) = self.known.get(path) {
            return Ok(Some(*row));
        }
        let stored = block_on(self.store.file_row(path.to_owned()))?;
        self.known.extend(stored.map(|row| (path.to_owned(), row)));
        Ok(stored)
    }
}

/// The session being imported.
struct ImportingSession {
    head: HeadLine,
    /// None if the session is skipped: already stored, or deleted by the user.
    writer: Option<SessionWriter>,
    files: Vec<FileRow>,
    warnings: Vec<WarningRow>,
    turns: u64,
    parts: u64,
}

impl ImportingSession {
    fn begin<S: Store>(
        recorder: &Recorder<S>,
        mut head: HeadLine,
    ) -> Result<ImportingSession, ImportLinesError> {
        let (agent, own) = (head.session.agent.clone(), head.session.agent_session_id.clone());
        let id = SessionId::of(&agent, &own);
        let none = |head| ImportingSession {
            head,
            writer: None,
            files: Vec::new(),
            warnings: Vec::new(),
            turns: 0,
            parts: 0,
        };
        if !recorder.may_record(id)? {
            return Ok(none(head));
        }
        if let Some(stored) = block_on(recorder.store().view(Viewer::Sole).session(id))? {
            if stored.seq >= head.seq {
                return Ok(none(head));
            }
            // Replace the older state.
            block_on(recorder.store().forget(stored.row))?;
        }
        let mut writer = recorder.begin(&agent, &own);
        writer.set_head(head.session.clone(), head.seq, std::mem::take(&mut head.skip_counts));
        head.cursors.drain(..).for_each(|cursor| writer.set_cursor(cursor));
        for SnapshotLine { kind, sha256, content } in head.snapshots.drain(..) {
            writer.add_snapshot(Snapshot { kind, sha256, content });
        }
        writer.add_prompts(head.prompts.drain(..));
        let mut file_rows = FileRows { store: recorder.store(), known: FxHashMap::default() };
        let mut importing = none(head);
        for source in importing.head.sources.drain(..) {
            let row = match file_rows.get(&source.file.path)? {
                Some(row) => row,
                None => {
                    let row = recorder.row_ids().file();
                    file_rows.known.insert(source.file.path.clone(), row);
                    importing.files.push(source.file.into_row(row));
                    row
                }
            };
            writer.add_source(SourceRow {
                file: row,
                number: source.number,
                feed: source.feed,
                first: source.first,
                sub_agent: importing.head.sub_agent,
                records: source.records,
            });
        }
        for warning in importing.head.warnings.drain(..) {
            if let Some(file) = file_rows.get(&warning.file)? {
                importing.warnings.push(WarningRow {
                    file,
                    session: Some(writer.row),
                    line: warning.line,
                    what: warning.what,
                    bytes: warning.bytes,
                });
            }
        }
        importing.writer = Some(writer);
        Ok(importing)
    }

    fn write<S: Store>(
        &mut self,
        recorder: &Recorder<S>,
        packer: &mut Packer,
    ) -> Result<(), StoreError> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        packer.batch().files.append(&mut self.files);
        packer.batch().warnings.append(&mut self.warnings);
        packer.add(writer)?;
        recorder.commit(packer, [writer])
    }

    /// Restores the user's name, tags and notes. Notes that are here already stay.
    fn finish<S: Store>(&mut self, recorder: &Recorder<S>) -> Result<(), StoreError> {
        let Some(writer) = &self.writer else { return Ok(()) };
        if let Some(name) = self.head.name.take() {
            block_on(recorder.store().rename(writer.row, Some(name)))?;
        }
        let tags = std::mem::take(&mut self.head.tags);
        if !tags.is_empty() {
            block_on(recorder.store().tag(writer.row, tags, Vec::new()))?;
        }
        let notes = std::mem::take(&mut self.head.notes);
        if notes.is_empty() {
            return Ok(());
        }
        let own = block_on(recorder.store().view(Viewer::Sole).notes(writer.id))?;
        let noted: FxHashSet<NoteTarget> = own.iter().map(|own| own.note.target).collect();
        for note in notes.into_iter().filter(|note| !noted.contains(&note.target)) {
            block_on(recorder.store().set_note(writer.id, note))?;
        }
        Ok(())
    }
}
