//! The raw records behind a part, as the agent wrote them, so that a view can be checked against
//! its source. A record is returned only if the file still has the bytes that were read; otherwise
//! the result says why it is missing.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use unspool_model::id::{PartId, digest};
use unspool_model::part::Part;
use unspool_model::provenance::{Evidence, Feed};
use unspool_model::source::FileStamp;
use unspool_sources::read::lines::ReadPosition;
use unspool_sources::read::rows;
use unspool_sources::read::source::{self, Source};
use unspool_store::blocking::block_on;
use unspool_store::received_text::ReceivedText;
use unspool_store::rows::{FileRow, RowId, is_forgotten, received_from};
use unspool_store::store::{StoreError, StoredSession, View};

/// Maximum number of records returned: a streamed text has one for every few words.
const MAX_RECORDS: usize = 100;
/// Maximum size of one record, and of all records together.
const MAX_RECORD_BYTES: u32 = 8 * 1024 * 1024;
const MAX_TOTAL_BYTES: usize = 16 * 1024 * 1024;

/// The records of one part.
#[derive(Debug, Serialize)]
pub struct Raw {
    /// Log records first, then stream records, then hooks; each in file order.
    pub records: Vec<RawRecord>,
    /// Number of further records.
    pub left_out: usize,
}

/// One record: its location and its text.
#[derive(Debug)]
pub struct RawRecord {
    pub feed: Feed,
    /// The path when the file was read; None if the archive does not have it.
    pub file: Option<String>,
    /// Byte offset in the text; for compressed files and databases, in the decoded text.
    pub offset: u64,
    pub length: u32,
    pub text: Result<String, Absent>,
}

/// Why a record is not available.
#[derive(Debug)]
pub enum Absent {
    /// The archive has no row for the file: the session was imported from an export.
    Unknown,
    /// The archive was to forget where the file is.
    Forgotten,
    /// The file no longer exists.
    Gone,
    /// The file has different content at that offset.
    Changed,
    /// The record or the whole response would be too large.
    Large,
    Unreadable(io::Error),
}

impl Absent {
    /// The value of `absent` in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Absent::Unknown => "unknown",
            Absent::Forgotten => "forgotten",
            Absent::Gone => "gone",
            Absent::Changed => "changed",
            Absent::Large => "large",
            Absent::Unreadable(_) => "unreadable",
        }
    }

    /// A sentence for the user.
    pub fn explain(&self, record: &RawRecord) -> String {
        let file = record.file.as_deref().unwrap_or("the file");
        match self {
            Absent::Unknown => {
                "the archive does not record which file this part was read from".to_owned()
            }
            Absent::Forgotten => {
                "the archive has forgotten where this log is (`unspool db forget-logs`); the stored \
                 part is complete"
                    .to_owned()
            }
            Absent::Gone => format!("{file} no longer exists; only the stored part is available"),
            Absent::Changed => format!(
                "{file} was rewritten: another record starts at byte {} now; the stored part is unchanged",
                record.offset
            ),
            Absent::Large => format!(
                "the record has {} bytes, too many to show here; it is in {file} at byte {}",
                record.length, record.offset
            ),
            Absent::Unreadable(error) => {
                format!("cannot read {file} ({error}); fix this and try again")
            }
        }
    }
}

impl Serialize for RawRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let absent = self.text.as_ref().err();
        let mut map = serializer.serialize_map(Some(7))?;
        map.serialize_entry("feed", &self.feed)?;
        map.serialize_entry("file", &self.file)?;
        map.serialize_entry("offset", &self.offset)?;
        map.serialize_entry("length", &self.length)?;
        map.serialize_entry("text", &self.text.as_ref().ok())?;
        map.serialize_entry("absent", &absent.map(Absent::name))?;
        map.serialize_entry("why", &absent.map(|absent| absent.explain(self)))?;
        map.end()
    }
}

/// The records of a part of this session. None if there is no such part. Blocking.
pub fn raw<V: View>(
    view: &V,
    session: &StoredSession,
    part: PartId,
) -> Result<Option<Raw>, StoreError> {
    let Some((turn, place)) = block_on(view.locate(session.row, None, part))? else {
        return Ok(None);
    };
    let found = block_on(view.parts(session.row, turn, vec![place]))?;
    found.first().map(|part| raw_of(view, session, part)).transpose()
}

/// The records of a loaded part. Blocking.
pub fn raw_of<V: View>(view: &V, session: &StoredSession, part: &Part) -> Result<Raw, StoreError> {
    let stored: FxHashMap<RowId, FileRow> = block_on(view.source_files(session.row))?
        .into_iter()
        .map(|file| (file.row, file))
        .collect();
    let sources = block_on(view.session_export(session.row))?.sources;
    let files = |evidence: &Evidence| -> Vec<&FileRow> {
        let its = sources
            .iter()
            .filter(|source| (source.number, source.feed) == (evidence.source, evidence.feed));
        // One log may have been read under several paths: renamed, compressed, restored.
        its.filter_map(|source| stored.get(&source.file)).collect()
    };
    let mut evidence: Vec<&Evidence> = part.evidence.iter().collect();
    evidence.sort_by_key(|evidence| {
        (std::cmp::Reverse(evidence.feed), evidence.source, evidence.offset)
    });
    let left_out = evidence.len().saturating_sub(MAX_RECORDS);
    let open = FxHashMap::default();
    let mut reader = RecordReader { view, open, bytes_left: MAX_TOTAL_BYTES };
    let records = evidence
        .into_iter()
        .take(MAX_RECORDS)
        .map(|evidence| reader.record(evidence, &files(evidence)));
    Ok(Raw { records: records.collect(), left_out })
}

/// Reads records, keeping their files open.
struct RecordReader<'v, V> {
    view: &'v V,
    open: FxHashMap<RowId, Source>,
    /// Remaining size budget in bytes.
    bytes_left: usize,
}

impl<V: View> RecordReader<'_, V> {
    fn record(&mut self, evidence: &Evidence, files: &[&FileRow]) -> RawRecord {
        let mut text = Err(Absent::Unknown);
        let mut file = files.first().copied();
        for stored in files {
            match self.text(evidence, stored) {
                Ok(found) => {
                    (text, file) = (Ok(found), Some(*stored));
                    break;
                }
                // Report *changed* in preference to *missing*.
                Err(why)
                    if matches!(text, Err(Absent::Unknown | Absent::Forgotten | Absent::Gone)) =>
                {
                    (text, file) = (Err(why), Some(*stored));
                }
                Err(_) => {}
            }
        }
        RawRecord {
            feed: evidence.feed,
            file: file.filter(|file| !is_forgotten(&file.path)).map(|file| file.path.clone()),
            offset: evidence.offset,
            length: evidence.length,
            text,
        }
    }

    fn text(&mut self, evidence: &Evidence, file: &FileRow) -> Result<String, Absent> {
        let length = evidence.length as usize;
        if is_forgotten(&file.path) {
            return Err(Absent::Forgotten);
        }
        if received_from(&file.path).is_none() && !rows::exists(Path::new(&file.path)) {
            return Err(Absent::Gone);
        }
        if evidence.length > MAX_RECORD_BYTES || length > self.bytes_left {
            return Err(Absent::Large);
        }
        let bytes = self.read(evidence, file).map_err(|error| {
            let gone = error.kind() == io::ErrorKind::NotFound;
            if gone { Absent::Gone } else { Absent::Unreadable(error) }
        })?;
        let text = verified_text(evidence, bytes).ok_or(Absent::Changed)?;
        self.bytes_left -= length;
        Ok(text)
    }

    fn read(&mut self, evidence: &Evidence, file: &FileRow) -> io::Result<Vec<u8>> {
        let source = match self.open.entry(file.row) {
            std::collections::hash_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::hash_map::Entry::Vacant(free) => free.insert(open(self.view, file)?),
        };
        let text = source.from(ReadPosition { number: 0, offset: evidence.offset })?;
        let mut bytes = Vec::with_capacity(evidence.length as usize);
        text.take(evidence.length.into()).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Opens the text of a file: on this machine, or what another machine sent of it.
fn open<V: View>(view: &V, file: &FileRow) -> io::Result<Source> {
    if received_from(&file.path).is_none() {
        return source::open(Path::new(&file.path));
    }
    let text = ReceivedText::stored(view.clone(), file.row, Arc::default());
    let text = text.map_err(io::Error::other)?;
    match text.length() {
        0 => Err(io::ErrorKind::NotFound.into()),
        length => Ok(Source::new(FileStamp::default(), Some(length), text)),
    }
}

/// The record at the start of these bytes, if its digest matches the one that was read.
fn verified_text(evidence: &Evidence, bytes: Vec<u8>) -> Option<String> {
    let is = |text: &str| {
        text.len() == evidence.length as usize && digest(text.as_bytes()) == evidence.digest
    };
    match String::from_utf8(bytes) {
        Ok(text) if is(&text) => Some(text),
        Ok(_) => None,
        // Invalid UTF-8 was replaced when the record was read, which made it longer.
        Err(error) => {
            let bytes = error.into_bytes();
            let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            Some(String::from_utf8_lossy(line).into_owned()).filter(|text| is(text))
        }
    }
}
