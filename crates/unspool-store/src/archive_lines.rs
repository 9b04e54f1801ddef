//! The lines of a lossless export (`export --to jsonl`): each session is a head line, its turns,
//! and an end line with their count. The exporter writes these types and the importer reads them.

use std::collections::BTreeMap;
use std::io::Read;

use serde::{Deserialize, Serialize};
use unspool_model::assemble::Cursor;
use unspool_model::note::Note;
use unspool_model::prompt::PromptRecord;
use unspool_model::provenance::Feed;
use unspool_model::session::{Session, Turn};
use unspool_model::source::{FileStamp, Fingerprint, RecordCounts};

use crate::rows::{FileRow, RowId};

/// The prefix of every head line; the number is the format version.
pub const HEAD_PREFIX: &str = "{\"unspool\":1,";

/// The first line of a session.
#[derive(Serialize, Deserialize)]
pub struct HeadLine {
    pub unspool: u32,
    pub session: Session,
    pub name: Option<String>,
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    pub seq: u64,
    pub sub_agent: bool,
    pub sources: Vec<SourceLine>,
    pub cursors: Vec<Cursor>,
    pub warnings: Vec<WarningLine>,
    pub snapshots: Vec<SnapshotLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<PromptRecord>,
    #[serde(rename = "oddities")]
    pub skip_counts: BTreeMap<String, u64>,
}

#[derive(Serialize, Deserialize)]
pub struct SourceLine {
    pub number: u16,
    #[serde(rename = "telling")]
    pub feed: Feed,
    pub first: u64,
    pub records: RecordCounts,
    pub file: FileLine,
}

/// A source file's stored state, so that an importer that has the file can resume reading it.
#[derive(Serialize, Deserialize, Clone)]
pub struct FileLine {
    pub path: String,
    #[serde(flatten)]
    pub stamp: FileStamp,
    // Not flattened: exports have the line between the fields of the fingerprint.
    pub offset: u64,
    pub line: u64,
    pub head: u64,
    pub tail: u64,
    pub saved: Option<String>,
}

#[derive(Serialize, Deserialize)]
pub struct WarningLine {
    pub file: String,
    pub line: u64,
    pub what: String,
    pub bytes: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
pub struct SnapshotLine {
    pub kind: String,
    pub sha256: String,
    pub content: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArchiveLine {
    Turn(Box<Turn>),
    End { turns: u64, parts: u64 },
}

impl FileLine {
    pub fn of(stored_file: &FileRow) -> FileLine {
        let Fingerprint { offset, head, tail } = stored_file.print;
        FileLine {
            path: stored_file.path.clone(),
            stamp: stored_file.stamp,
            offset,
            line: stored_file.line,
            head,
            tail,
            saved: stored_file.saved.clone(),
        }
    }

    pub fn into_row(self, row: RowId) -> FileRow {
        FileRow {
            row,
            path: self.path,
            stamp: self.stamp,
            print: Fingerprint { offset: self.offset, head: self.head, tail: self.tail },
            line: self.line,
            saved: self.saved,
            refused: None,
        }
    }
}

/// True if a text starts like an export.
pub fn is_export(mut text: impl Read) -> bool {
    let mut start = [0; HEAD_PREFIX.len()];
    text.read_exact(&mut start).is_ok() && start == HEAD_PREFIX.as_bytes()
}
