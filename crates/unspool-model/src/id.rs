//! Ids. An id is opaque and derived from the source's own name for the turn, step or part, so the
//! same log yields the same ids on every machine, whatever the order of its feeds. An id contains
//! no time and no position and never orders anything (R-003-01).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::digest::common::hazmat::SerializableState;
use sha2::{Digest, Sha256};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const ID_LENGTH: usize = 20;

/// One hundred bits of a hash, written as twenty characters of Crockford's base 32.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(u128);

impl Id {
    /// Derives an id from a list of fields. Each field is hashed with its length, so `["ab", "c"]`
    /// and `["a", "bc"]` differ.
    pub fn derive<'a>(fields: impl IntoIterator<Item = &'a [u8]>) -> Id {
        let mut hash = Xxh3::new();
        for field in fields {
            hash.update(&(field.len() as u64).to_le_bytes());
            hash.update(field);
        }
        Id(hash.digest128() >> 28)
    }

    pub fn bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = [0u8; ID_LENGTH];
        for (at, slot) in out.iter_mut().enumerate() {
            *slot = ALPHABET[((self.0 >> (5 * (ID_LENGTH - 1 - at))) & 31) as usize];
        }
        f.write_str(std::str::from_utf8(&out).unwrap_or_default())
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The string is not a valid id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAnId;

impl fmt::Display for NotAnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an id is {ID_LENGTH} characters of 0-9 and a-z without i, l, o and u")
    }
}

impl std::error::Error for NotAnId {}

impl FromStr for Id {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Id, NotAnId> {
        if text.len() != ID_LENGTH {
            return Err(NotAnId);
        }
        let mut value = 0u128;
        for byte in text.bytes() {
            let digit = ALPHABET.iter().position(|&a| a == byte).ok_or(NotAnId)?;
            value = value << 5 | digit as u128;
        }
        Ok(Id(value))
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Id, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Id);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

id_type!(
    /// A session of one agent.
    SessionId
);
id_type!(
    /// A turn of a session.
    TurnId
);
id_type!(
    /// A model call inside a turn.
    StepId
);
id_type!(
    /// A part of a turn.
    PartId
);

impl SessionId {
    /// The id of the session that `agent` calls `agent_session_id`.
    pub fn of(agent: &str, agent_session_id: &str) -> SessionId {
        SessionId(Id::derive([
            b"session".as_slice(),
            agent.as_bytes(),
            agent_session_id.as_bytes(),
        ]))
    }
}

/// A fast, non-cryptographic digest.
pub fn digest(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// The SHA-256 in hexadecimal. Snapshots are deduplicated by it (R-002-11).
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// A SHA-256 of text that comes in pieces. Its state can be saved between two of them.
#[derive(Clone, Default)]
pub struct Sha256Stream(Sha256);

impl Sha256Stream {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of everything so far, in hexadecimal.
    pub fn hexadecimal(&self) -> String {
        hexadecimal(&self.0.clone().finalize())
    }
}

impl fmt::Debug for Sha256Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hexadecimal())
    }
}

impl Serialize for Sha256Stream {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hexadecimal(&self.0.serialize()))
    }
}

impl<'de> Deserialize<'de> for Sha256Stream {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Sha256Stream, D::Error> {
        let invalid = || serde::de::Error::custom("not the state of a digest");
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
        let bytes: Vec<u8> =
            (0..text.len()).step_by(2).map(byte).collect::<Option<_>>().ok_or_else(invalid)?;
        let state = bytes.as_slice().try_into().map_err(|_| invalid())?;
        Sha256::deserialize(state).map(Sha256Stream).map_err(|_| invalid())
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[path = "id_tests.rs"]
mod tests;
