//! Writes a session losslessly, as the lines that `unspool import` reads.

use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde::Serialize;
use thiserror::Error;
use unspool_store::archive_lines::{
    ArchiveLine, FileLine, HeadLine, SnapshotLine, SourceLine, WarningLine,
};
use unspool_store::blocking::block_on;
use unspool_store::rows::{FileRow, Snapshot};
use unspool_store::store::{StoreError, StoredSession, TurnWindow, View};

/// Number of turns loaded at once.
const TURNS_PER_LOAD: u32 = 16;

#[derive(Debug, Error)]
pub enum LinesError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Writes a session as lines, with the user's notes if they are wanted.
pub fn write<V: View>(
    view: &V,
    stored: &StoredSession,
    with_notes: bool,
    out: &mut (impl Write + ?Sized),
) -> Result<(), LinesError> {
    let session_export = block_on(view.session_export(stored.row))?;
    let files: FxHashMap<i64, FileRow> =
        block_on(view.source_files(stored.row))?.into_iter().map(|file| (file.row, file)).collect();
    let mut sources = Vec::new();
    for source in session_export.sources {
        let Some(stored_file) = files.get(&source.file) else { continue };
        sources.push(SourceLine {
            number: source.number,
            feed: source.feed,
            first: source.first,
            records: source.records,
            file: FileLine::of(stored_file),
        });
    }
    let notes = match with_notes {
        true => block_on(view.notes(stored.summary.session.id))?,
        false => Vec::new(),
    };
    let head = HeadLine {
        unspool: 1,
        session: session_export.session,
        name: stored.name.clone(),
        tags: stored.summary.tags.clone(),
        notes: notes.into_iter().map(|placed| placed.note).collect(),
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
        prompts: session_export.prompts,
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
            write_line(out, &ArchiveLine::Turn(Box::new(turn)))?;
        }
    }
    write_line(out, &ArchiveLine::End { turns, parts })?;
    Ok(())
}

fn write_line(out: &mut (impl Write + ?Sized), line: &impl Serialize) -> Result<(), LinesError> {
    serde_json::to_writer(&mut *out, line).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(())
}
