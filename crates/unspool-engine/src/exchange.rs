//! Lossless export and import of sessions as JSON lines (`export --to jsonl`). Each session is a
//! head line, its turns, and an end line with their count.

pub mod export;

use std::io::{self, BufRead, Write};

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use unspool_core::assemble::Cursor;
use unspool_core::id::SessionId;
use unspool_core::provenance::Feed;
use unspool_core::session::{Session, Turn};
use unspool_core::source::{FileStamp, Fingerprint, RecordCounts};
use unspool_store::batch::IngestMode;
use unspool_store::blocking::block_on;
use unspool_store::recorder::Recorder;
use unspool_store::rows::{FileRow, Snapshot, SourceRow, WarningRow};
use unspool_store::store::{Store, StoreError, StoredSession, TurnWindow, View, Viewer};

use crate::report::SyncReport;

/// The prefix of every head line; the number is the format version.
pub const HEAD_PREFIX: &str = "{\"unspool\":1,";
/// Number of turns loaded at once.
const TURNS_PER_LOAD: u32 = 16;
/// A batch is committed after this many bytes of lines.
const BATCH_BYTES: usize = 8 * 1024 * 1024;

#[derive(Debug, Error)]
pub enum ExchangeError {
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

/// The first line of a session.
#[derive(Serialize, Deserialize)]
struct Head {
    unspool: u32,
    session: Session,
    name: Option<String>,
    tags: Vec<String>,
    seq: u64,
    sub_agent: bool,
    sources: Vec<Source>,
    cursors: Vec<Cursor>,
    warnings: Vec<WarningLine>,
    snapshots: Vec<SnapshotLine>,
    #[serde(rename = "oddities")]
    skip_counts: std::collections::BTreeMap<String, u64>,
}

#[derive(Serialize, Deserialize)]
struct Source {
    number: u16,
    #[serde(rename = "telling")]
    feed: Feed,
    first: u64,
    records: RecordCounts,
    file: File,
}

/// A source file's stored state, so that an importer that has the file can resume reading it.
#[derive(Serialize, Deserialize, Clone)]
struct File {
    path: String,
    #[serde(flatten)]
    stamp: FileStamp,
    // Not flattened: exports have the line between the fields of the fingerprint.
    offset: u64,
    line: u64,
    head: u64,
    tail: u64,
    saved: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct WarningLine {
    file: String,
    line: u64,
    what: String,
    bytes: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct SnapshotLine {
    kind: String,
    sha256: String,
    content: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    Turn(Box<Turn>),
    End { turns: u64, parts: u64 },
}

/// Writes a session as lines.
pub fn export<V: View>(
    view: &V,
    stored: &StoredSession,
    out: &mut (impl Write + ?Sized),
) -> Result<(), ExchangeError> {
    let session_export = block_on(view.session_export(stored.row))?;
    let files: FxHashMap<i64, FileRow> =
        block_on(view.source_files(stored.row))?.into_iter().map(|file| (file.row, file)).collect();
    let mut sources = Vec::new();
    for source in session_export.sources {
        let Some(stored_file) = files.get(&source.file) else { continue };
        sources.push(Source {
            number: source.number,
            feed: source.feed,
            first: source.first,
            records: source.records,
            file: file(stored_file),
        });
    }
    let head = Head {
        unspool: 1,
        session: session_export.session,
        name: stored.name.clone(),
        tags: stored.summary.tags.clone(),
        seq: stored.seq,
        sub_agent: stored.sub_agent,
        sources,
        cursors: session_export.cursors,
        warnings: session_export
            .warnings
            .into_iter()
            .map(|(file, warning)| WarningLine {
                file,
                line: warning.line,
                what: warning.what,
                bytes: warning.bytes,
            })
            .collect(),
        snapshots: session_export
            .snapshots
            .into_iter()
            .map(|Snapshot { kind, sha256, content }| SnapshotLine { kind, sha256, content })
            .collect(),
        skip_counts: stored.skip_counts.clone(),
    };
    write_line(out, &head)?;
    let (mut number, mut turns, mut parts) = (0, 0, 0);
    loop {
        let window = TurnWindow::From { number, count: TURNS_PER_LOAD };
        let some = block_on(view.whole_turns(stored.row, window))?;
        let Some(last) = some.last() else { break };
        number = last.number + 1;
        for turn in some {
            turns += 1;
            parts += turn.parts.len() as u64;
            write_line(out, &Line::Turn(Box::new(turn)))?;
        }
    }
    write_line(out, &Line::End { turns, parts })?;
    Ok(())
}

fn write_line(out: &mut (impl Write + ?Sized), line: &impl Serialize) -> Result<(), ExchangeError> {
    serde_json::to_writer(&mut *out, line).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(())
}

fn file(stored_file: &FileRow) -> File {
    let Fingerprint { offset, head, tail } = stored_file.print;
    File {
        path: stored_file.path.clone(),
        stamp: stored_file.stamp,
        offset,
        line: stored_file.line,
        head,
        tail,
        saved: stored_file.saved.clone(),
    }
}

/// Imports an export. A stored session that is at least as new is kept.
pub fn import<S: Store>(
    recorder: &Recorder<S>,
    from: impl BufRead,
) -> Result<SyncReport, ExchangeError> {
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
        let wrong = |error| ExchangeError::Line { line: number, error };
        if line.starts_with("{\"unspool\":") {
            if let Some(importing) = importing.take() {
                return Err(ExchangeError::Truncated(importing.head.session.agent_session_id));
            }
            let head: Head = serde_json::from_str(&line).map_err(wrong)?;
            importing = Some(ImportingSession::begin(recorder, head)?);
            continue;
        }
        let what = "a turn without the head of its session";
        let current = importing.as_mut().ok_or(ExchangeError::Order { line: number, what })?;
        match serde_json::from_str(&line).map_err(wrong)? {
            Line::Turn(turn) => {
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
            Line::End { turns, parts } => {
                if (turns, parts) != (current.turns, current.parts) {
                    let what = "the number of turns and parts differs from the session's end line";
                    return Err(ExchangeError::Order { line: number, what });
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
            Err(ExchangeError::Truncated(cut.head.session.agent_session_id))
        }
        None => Ok(report),
    }
}

/// The session being imported.
struct ImportingSession {
    head: Head,
    /// None if the session is skipped: already stored, or deleted by the user.
    writer: Option<unspool_store::session_writer::SessionWriter>,
    files: Vec<FileRow>,
    warnings: Vec<WarningRow>,
    turns: u64,
    parts: u64,
}

impl ImportingSession {
    fn begin<S: Store>(
        recorder: &Recorder<S>,
        mut head: Head,
    ) -> Result<ImportingSession, ExchangeError> {
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
        let mut stored_file: FxHashMap<String, i64> = block_on(recorder.store().files())?
            .into_iter()
            .map(|file| (file.path, file.row))
            .collect();
        let mut importing = none(head);
        for source in importing.head.sources.drain(..) {
            let row = match stored_file.get(&source.file.path) {
                Some(row) => *row,
                None => {
                    let row = recorder.row_ids().file();
                    stored_file.insert(source.file.path.clone(), row);
                    importing.files.push(file_row(row, source.file));
                    row
                }
            };
            writer.sources.push(SourceRow {
                file: row,
                number: source.number,
                feed: source.feed,
                first: source.first,
                sub_agent: importing.head.sub_agent,
                records: source.records,
            });
        }
        for warning in importing.head.warnings.drain(..) {
            if let Some(file) = stored_file.get(&warning.file) {
                importing.warnings.push(WarningRow {
                    file: *file,
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
        packer: &mut unspool_store::batch::Packer,
    ) -> Result<(), StoreError> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        packer.batch().files.append(&mut self.files);
        packer.batch().warnings.append(&mut self.warnings);
        packer.add(writer)?;
        recorder.commit(packer, [writer])
    }

    /// Restores the user's name and tags.
    fn finish<S: Store>(&mut self, recorder: &Recorder<S>) -> Result<(), StoreError> {
        let Some(writer) = &self.writer else { return Ok(()) };
        if let Some(name) = self.head.name.take() {
            block_on(recorder.store().rename(writer.row, Some(name)))?;
        }
        let tags = std::mem::take(&mut self.head.tags);
        if !tags.is_empty() {
            block_on(recorder.store().tag(writer.row, tags, Vec::new()))?;
        }
        Ok(())
    }
}

fn file_row(row: i64, file: File) -> FileRow {
    FileRow {
        row,
        path: file.path,
        stamp: file.stamp,
        print: Fingerprint { offset: file.offset, head: file.head, tail: file.tail },
        line: file.line,
        saved: file.saved,
        refused: None,
    }
}

/// True if a file starts like an export.
pub fn is_export(path: &std::path::Path) -> bool {
    let mut start = [0; HEAD_PREFIX.len()];
    let read =
        std::fs::File::open(path).and_then(|mut file| io::Read::read_exact(&mut file, &mut start));
    read.is_ok() && start == HEAD_PREFIX.as_bytes()
}
