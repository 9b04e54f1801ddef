//! The saved state of a `FileDecoder`, so that another process continues after the last decoded
//! line as if decoding had never stopped. The engine stores it with the file's row.

use serde::{Deserialize, Serialize};

use super::{Handle, Reading, Session, Whole};
use crate::decode::FORMATS;

/// Incremented when the saved state of any decoder changes. A checkpoint of another version is
/// rejected, and the file is read again.
const VERSION: u32 = 4;

/// A state from which decoding can resume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Saved {
    version: u32,
    /// The format, by its name.
    format: Option<String>,
    /// The digest of the first record.
    first: Option<u64>,
    #[serde(rename = "whole")]
    whole: Whole,
    current: Option<usize>,
    sessions: Vec<SavedSession>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedSession {
    id: String,
    sub_agent: bool,
    parent: Option<String>,
    source: u16,
    decoder: String,
}

impl Saved {
    /// The digest of everything that was read.
    pub fn whole(&self) -> Whole {
        self.whole
    }
}

impl Reading {
    /// The state that another process needs to continue from here. `None` while records are held
    /// without a session: then the file is read again from its start.
    pub fn save(&self) -> Option<Saved> {
        let early = &self.early;
        let waiting = !early.records.is_empty() || !early.unread.is_empty() || early.given_up;
        if waiting || self.named_by_file {
            return None;
        }
        let sessions = self.sessions.iter().map(|session| {
            Some(SavedSession {
                id: session.id.clone(),
                sub_agent: session.sub_agent,
                parent: session.parent.clone(),
                source: session.source,
                decoder: session.decoder.save()?,
            })
        });
        Some(Saved {
            version: VERSION,
            format: self.format.map(|format| format.name.to_owned()),
            first: self.first,
            whole: self.whole,
            current: self.current.map(|handle| handle.0),
            sessions: sessions.collect::<Option<_>>()?,
        })
    }

    /// Continues from a checkpoint. `None` if another version saved it: then the file is read
    /// again from its start, which changes nothing that was stored before.
    pub fn resume(name: &str, saved: &Saved) -> Option<Reading> {
        if saved.version != VERSION {
            return None;
        }
        let mut reading = Reading::new(name);
        let name = saved.format.as_deref();
        let format = FORMATS.iter().find(|format| Some(format.name) == name);
        if format.is_none() != name.is_none() || (format.is_none() && saved.first.is_some()) {
            return None;
        }
        (reading.format, reading.first) = (format, saved.first);
        reading.whole = saved.whole;
        for session in &saved.sessions {
            reading.sessions.push(Session {
                id: session.id.clone(),
                sub_agent: session.sub_agent,
                parent: session.parent.clone(),
                source: session.source,
                decoder: (format?.resume)(&session.decoder)?,
            });
        }
        let known = |at: &usize| *at < reading.sessions.len();
        reading.current = saved.current.filter(known).map(Handle);
        (reading.current.is_some() == saved.current.is_some()).then_some(reading)
    }
}
