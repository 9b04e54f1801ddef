//! A log file being written. Complete lines are flushed in batches, so memory does not grow with
//! the file.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use jiff::Timestamp;

use crate::json::Json;
use crate::random::Uuid;

/// Lines are buffered up to this size.
const BATCH: usize = 1 << 18;

pub struct Journal {
    file: File,
    /// Buffered lines, and the line under construction.
    batch: Json,
    /// Bytes written to the file.
    bytes: u64,
    pub records: u64,
    /// The parent of the next record in the tree.
    pub parent: Option<Uuid>,
    /// The id of the sub-agent whose file this is.
    pub agent: Option<String>,
    /// The trailing fields of every record in the tree.
    base: String,
}

impl Journal {
    pub fn create(path: &Path, base: String, agent: Option<String>) -> Result<Journal> {
        let file =
            File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Journal {
            file,
            batch: Json::default(),
            bytes: 0,
            records: 0,
            parent: None,
            agent,
            base,
        })
    }

    /// Starts a record in the tree: the fields before `message`, `attachment` or `type`.
    pub fn begin(&mut self, parent: Option<Uuid>, prompt: Option<&Uuid>) -> &mut Json {
        let line = &mut self.batch;
        match parent {
            Some(uuid) => line.raw("{\"parentUuid\":\"").raw(uuid).raw("\""),
            None => line.raw("{\"parentUuid\":null"),
        };
        line.raw(if self.agent.is_some() {
            ",\"isSidechain\":true,"
        } else {
            ",\"isSidechain\":false,"
        });
        if let Some(prompt) = prompt {
            line.raw("\"promptId\":\"").raw(prompt).raw("\",");
        }
        if let Some(agent) = &self.agent {
            line.raw("\"agentId\":").text(agent).raw(",");
        }
        line
    }

    /// Ends a record in the tree and makes it the parent of the next one.
    pub fn end(&mut self, uuid: Uuid) -> io::Result<()> {
        self.batch.raw(self.base.as_bytes());
        self.parent = Some(uuid);
        self.close()
    }

    /// Starts a record outside the tree.
    pub fn begin_note(&mut self) -> &mut Json {
        &mut self.batch
    }

    /// Ends a record that only lacks its line feed.
    pub fn close(&mut self) -> io::Result<()> {
        self.batch.raw("\n");
        self.records += 1;
        if self.batch.0.len() >= BATCH {
            self.write()?;
        }
        Ok(())
    }

    /// Total bytes so far, flushed or not.
    pub fn size(&self) -> u64 {
        self.bytes + self.batch.0.len() as u64
    }

    fn write(&mut self) -> io::Result<()> {
        self.bytes += self.batch.0.len() as u64;
        self.file.write_all(&self.batch.0)?;
        self.batch.0.clear();
        Ok(())
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.write()
    }
}

/// A timestamp in the log's format.
pub fn stamp(milliseconds: i64) -> String {
    let time = Timestamp::from_millisecond(milliseconds).unwrap_or_default();
    format!("{time:.3}")
}
