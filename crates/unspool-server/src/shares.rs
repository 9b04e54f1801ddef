//! Links with which guests see one session. A link has a random token; what it shows is a record in
//! the data folder.

use std::io;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use unspool_export::project::TurnRange;
use unspool_model::id::SessionId;

use crate::secret_records::{SecretRecord, SecretRecords};

/// The path of a link, before its token.
pub const GUEST_PATH: &str = "/guest/";

/// What a link shows.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Share {
    pub session: SessionId,
    /// The user's notes and bookmarks too.
    pub notes: bool,
    /// Only these turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<TurnRange>,
    pub created: Timestamp,
    /// None: until it is revoked.
    pub expires: Option<Timestamp>,
}

/// The links of one data folder.
#[derive(Clone, Debug)]
pub struct ShareStore(SecretRecords<Share>);

impl Share {
    /// A link that starts now. A lifetime beyond the end of the calendar is none.
    pub fn new(session: SessionId, lifetime: Option<SignedDuration>, now: Timestamp) -> Share {
        let expires = lifetime.and_then(|lifetime| now.checked_add(lifetime).ok());
        Share { session, notes: false, turns: None, created: now, expires }
    }
}

impl SecretRecord for Share {
    fn created(&self) -> Timestamp {
        self.created
    }

    fn expires(&self) -> Option<Timestamp> {
        self.expires
    }
}

impl ShareStore {
    /// The links below this data folder. Creates nothing.
    pub fn in_data_folder(data: &Path) -> ShareStore {
        ShareStore(SecretRecords::in_folder(data.join("shares")))
    }

    /// Adds a link and returns its token, which is stored nowhere.
    pub fn add(&self, share: &Share) -> io::Result<String> {
        self.0.add(share)
    }

    /// What a token shows. None for a token that does not exist, has expired or was revoked.
    pub fn find(&self, token: &str, now: Timestamp) -> Option<Share> {
        self.0.find(token, now)
    }

    /// All links that are valid, oldest first, by their ids. Removes those that have expired.
    pub fn list(&self, now: Timestamp) -> io::Result<Vec<(String, Share)>> {
        self.0.list(now)
    }

    /// Revokes the links whose ids begin like this, or the one with this token. Returns how many.
    pub fn revoke(&self, id_or_token: &str) -> io::Result<usize> {
        self.0.revoke(id_or_token)
    }

    /// Revokes all links to a session. Returns how many.
    pub fn revoke_session(&self, session: SessionId) -> io::Result<usize> {
        self.0.revoke_where(|share| share.session == session)
    }
}

#[cfg(test)]
#[path = "shares_tests.rs"]
mod tests;
