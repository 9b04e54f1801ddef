//! One log file that is being written: lines go out as soon as they are whole, so memory stays the
//! same whatever the size of the file.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use jiff::Timestamp;

use crate::json::Json;
use crate::random::Uuid;

/// Lines are gathered up to this size before they are written.
const BATCH: usize = 1 << 18;

pub struct Journal {
    file: File,
    /// Lines that are not written yet, and the one that is being made.
    batch: Json,
    /// Bytes that are written.
    bytes: u64,
    pub records: u64,
    /// The record that the next one of the tree hangs on.
    pub parent: Option<Uuid>,
    /// The id of the sub-agent whose file this is.
    pub agent: Option<String>,
    /// The fields that every record of the tree ends with.
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

    /// Opens a record of the tree: what stands before `message`, `attachment` or `type`.
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

    /// Closes a record of the tree and hangs the next one on it.
    pub fn end(&mut self, uuid: Uuid) -> io::Result<()> {
        self.batch.raw(self.base.as_bytes());
        self.parent = Some(uuid);
        self.close()
    }

    /// Opens a record outside the tree.
    pub fn begin_note(&mut self) -> &mut Json {
        &mut self.batch
    }

    /// Closes a record that is whole but for its line feed.
    pub fn close(&mut self) -> io::Result<()> {
        self.batch.raw("\n");
        self.records += 1;
        if self.batch.0.len() >= BATCH {
            self.write()?;
        }
        Ok(())
    }

    /// What was told so far, written or not.
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

/// A time as the log writes it.
pub fn stamp(milliseconds: i64) -> String {
    let time = Timestamp::from_millisecond(milliseconds).unwrap_or_default();
    format!("{time:.3}")
}
