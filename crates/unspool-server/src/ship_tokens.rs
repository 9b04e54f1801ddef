//! Tokens with which collectors send (`unspool ship`). A token belongs to a member and can do nothing
//! but send: it reads nothing of what others sent.

use std::io;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::secret_records::{SecretRecord, SecretRecords};

/// What a token looks like, so that people and scanners of secrets recognise one.
const PREFIX: &str = "ust_";

/// Members' names are parts of the names of files, with `@` and `/` around them.
const MAX_MEMBER_CHARS: usize = 64;

/// Who may send with a token.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ShipToken {
    pub member: String,
    pub created: Timestamp,
    pub expires: Option<Timestamp>,
}

/// The tokens of one data folder.
#[derive(Clone, Debug)]
pub struct ShipTokens(SecretRecords<ShipToken>);

impl ShipToken {
    pub fn new(member: String, lifetime: Option<SignedDuration>, now: Timestamp) -> ShipToken {
        let expires = lifetime.and_then(|lifetime| now.checked_add(lifetime).ok());
        ShipToken { member, created: now, expires }
    }
}

impl SecretRecord for ShipToken {
    fn created(&self) -> Timestamp {
        self.created
    }

    fn expires(&self) -> Option<Timestamp> {
        self.expires
    }
}

impl ShipTokens {
    /// The tokens below this data folder. Creates nothing.
    pub fn in_data_folder(data: &Path) -> ShipTokens {
        ShipTokens(SecretRecords::in_folder(data.join("ship-tokens")))
    }

    /// Adds a token and returns it. It is stored nowhere.
    pub fn add(&self, token: &ShipToken) -> io::Result<String> {
        Ok(format!("{PREFIX}{}", self.0.add(token)?))
    }

    /// None for a token that does not exist, has expired or was revoked.
    pub fn find(&self, token: &str, now: Timestamp) -> Option<ShipToken> {
        self.0.find(token.strip_prefix(PREFIX)?, now)
    }

    /// All tokens that are valid, oldest first, by their ids.
    pub fn list(&self, now: Timestamp) -> io::Result<Vec<(String, ShipToken)>> {
        self.0.list(now)
    }

    /// Revokes the tokens whose ids begin like this, or this one. Returns how many.
    pub fn revoke(&self, id_or_token: &str) -> io::Result<usize> {
        self.0.revoke(id_or_token.strip_prefix(PREFIX).unwrap_or(id_or_token))
    }

    /// Revokes all tokens of a member. Returns how many.
    pub fn revoke_member(&self, member: &str) -> io::Result<usize> {
        self.0.revoke_where(|token| token.member == member)
    }
}

/// True if a member or a machine can have this name: it is shown, and part of the names of files.
pub fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    !name.is_empty() && name.chars().count() <= MAX_MEMBER_CHARS && name.chars().all(is_plain)
}
