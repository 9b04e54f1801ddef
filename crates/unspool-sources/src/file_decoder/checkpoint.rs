//! The saved state of a `FileDecoder`, so that another process continues after the last decoded
//! line as if decoding had never stopped. A sync stores it with the file's row.

use serde::{Deserialize, Serialize};

use super::{FileDecoder, FileDigest, Session, SessionHandle};
use crate::decode::acp::agent_of_name;
use crate::decode::{Format, formats};

/// Incremented when the saved state of any decoder changes. A checkpoint of another version is
/// rejected, and the file is read again.
const CHECKPOINT_VERSION: u32 = 4;

/// A state from which decoding can resume.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    version: u32,
    /// The format, by its name.
    format: Option<String>,
    /// The agent, if it is not that of the format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// The digest of the first record.
    first: Option<u64>,
    #[serde(rename = "whole")]
    file_digest: FileDigest,
    current: Option<usize>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_rewritten: bool,
    sessions: Vec<SessionCheckpoint>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionCheckpoint {
    id: String,
    sub_agent: bool,
    parent: Option<String>,
    source: u16,
    /// The state of its decoder; `None` if it is that of a new one, as after the conversation of a
    /// sub-agent that was whole in one record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decoder: Option<String>,
}

impl Checkpoint {
    /// The digest of everything that was read.
    pub fn file_digest(&self) -> FileDigest {
        self.file_digest
    }

    /// The session of a log, if the log is of this format.
    pub(super) fn session(&self, format: &Format) -> Option<(&str, Option<&str>, bool)> {
        let session =
            self.sessions.first().filter(|_| self.format.as_deref() == Some(format.name))?;
        Some((&session.id, session.parent.as_deref(), session.sub_agent))
    }

    /// The state of the decoder of a session, if the file is of this format.
    pub(super) fn decoder(&self, format: &Format, id: &str) -> Option<&str> {
        let is_format = self.format.as_deref() == Some(format.name);
        let session =
            self.sessions.iter().filter(|_| is_format).find(|session| session.id == id)?;
        session.decoder.as_deref()
    }
}

impl FileDecoder {
    /// The state that another process needs to continue from here. `None` while records are held
    /// without a session: then the file is read again from its start.
    pub fn save(&self) -> Option<Checkpoint> {
        // A file that is empty now may be truncated before it is written again.
        if let Some(former) = self.former.as_ref().filter(|_| self.first.is_none()) {
            return Some(former.clone());
        }
        let pending = &self.pending;
        let waiting =
            !pending.records.is_empty() || !pending.unreadable_lines.is_empty() || pending.given_up;
        if waiting || self.named_by_file {
            return None;
        }
        let new = self.format.and_then(|format| (format.decoder)().save());
        let sessions = self.sessions.iter().map(|session| {
            let decoder = session.decoder.save()?;
            Some(SessionCheckpoint {
                id: session.id.clone(),
                sub_agent: session.sub_agent,
                parent: session.parent.clone(),
                source: session.source,
                decoder: Some(decoder).filter(|decoder| new.as_ref() != Some(decoder)),
            })
        });
        Some(Checkpoint {
            version: CHECKPOINT_VERSION,
            format: self.format.map(|format| format.name.to_owned()),
            agent: self.agent.map(str::to_owned),
            first: self.first,
            file_digest: self.file_digest,
            current: self.current.map(|handle| handle.0),
            is_rewritten: self.is_rewritten,
            sessions: sessions.collect::<Option<_>>()?,
        })
    }

    /// Continues from a checkpoint. `None` if another version saved it: then the file is read
    /// again from its start, which changes nothing that was stored before.
    pub fn resume(name: &str, saved: &Checkpoint) -> Option<FileDecoder> {
        if saved.version != CHECKPOINT_VERSION {
            return None;
        }
        let mut file_decoder = FileDecoder::new(name);
        let name = saved.format.as_deref();
        let format = formats().find(|format| Some(format.name) == name);
        if format.is_none() != name.is_none() || (format.is_none() && saved.first.is_some()) {
            return None;
        }
        (file_decoder.format, file_decoder.first) = (format, saved.first);
        file_decoder.agent = saved.agent.as_deref().map(agent_of_name);
        file_decoder.file_digest = saved.file_digest;
        file_decoder.is_rewritten = saved.is_rewritten;
        for session in &saved.sessions {
            let decoder = match &session.decoder {
                Some(state) => (format?.resume)(state)?,
                None => (format?.decoder)(),
            };
            file_decoder.sessions.push(Session {
                id: session.id.clone(),
                sub_agent: session.sub_agent,
                parent: session.parent.clone(),
                source: session.source,
                decoder,
            });
        }
        let is_valid = |at: &usize| *at < file_decoder.sessions.len();
        file_decoder.current = saved.current.filter(is_valid).map(SessionHandle);
        (file_decoder.current.is_some() == saved.current.is_some()).then_some(file_decoder)
    }
}
