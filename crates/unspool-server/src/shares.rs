//! Links with which guests see one session. A link has a random token; the data folder has one file
//! for each link: its name is the SHA-256 of the token, its content what the guest may see and until
//! when. So `unspool share` needs no running server, and a link that is revoked ends at once.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use unspool_model::id::{SessionId, sha256};
use unspool_store::private_file;
use unspool_store::replace_file::replace_file;

use crate::secret::{SECRET_CHARS, random_secret};

/// The path of a link, before its token.
pub const GUEST_PATH: &str = "/guest/";

/// A shorter beginning of an id could be of several links.
const MIN_ID_CHARS: usize = 6;

/// What a link shows.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Share {
    pub session: SessionId,
    /// The user's notes and bookmarks too.
    pub notes: bool,
    pub created: Timestamp,
    /// None: until it is revoked.
    pub expires: Option<Timestamp>,
}

/// The links of one data folder.
#[derive(Clone, Debug)]
pub struct ShareStore {
    folder: PathBuf,
}

impl Share {
    /// A link that starts now. A lifetime beyond the end of the calendar is none.
    pub fn new(session: SessionId, lifetime: Option<SignedDuration>, now: Timestamp) -> Share {
        let expires = lifetime.and_then(|lifetime| now.checked_add(lifetime).ok());
        Share { session, notes: false, created: now, expires }
    }

    fn is_valid(&self, now: Timestamp) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }
}

impl ShareStore {
    /// The links below this data folder. Creates nothing.
    pub fn in_data_folder(data: &Path) -> ShareStore {
        ShareStore { folder: data.join("shares") }
    }

    /// Adds a link and returns its token, which is stored nowhere.
    pub fn add(&self, share: &Share) -> io::Result<String> {
        let token =
            random_secret().ok_or_else(|| io::Error::other("the system has no random bytes"))?;
        private_file::folders().recursive(true).create(&self.folder)?;
        let text = serde_json::to_vec(share).map_err(io::Error::other)?;
        replace_file(&self.folder.join(sha256(token.as_bytes())), &text)?;
        Ok(token)
    }

    /// What a token shows. None for a token that does not exist, has expired or was revoked.
    pub fn find(&self, token: &str, now: Timestamp) -> Option<Share> {
        let is_one = token.len() == SECRET_CHARS && token.bytes().all(|c| c.is_ascii_hexdigit());
        let file = self.folder.join(sha256(token.as_bytes()));
        read(&file).filter(|share| is_one && share.is_valid(now))
    }

    /// All links that are valid, oldest first, by their ids. Removes those that have expired.
    pub fn list(&self, now: Timestamp) -> io::Result<Vec<(String, Share)>> {
        let mut shares = Vec::new();
        for (id, file) in self.files()? {
            match read(&file).filter(|share| share.is_valid(now)) {
                Some(share) => shares.push((id, share)),
                None => remove_file(&file)?,
            }
        }
        shares.sort_by(|(one, a), (other, b)| (a.created, one).cmp(&(b.created, other)));
        Ok(shares)
    }

    /// Revokes the links whose ids begin like this, or the one with this token. Returns how many.
    pub fn revoke(&self, id_or_token: &str) -> io::Result<usize> {
        let whole = sha256(id_or_token.as_bytes());
        let is_prefix = id_or_token.len() >= MIN_ID_CHARS;
        self.remove(|id, _| id == whole || (is_prefix && id.starts_with(id_or_token)))
    }

    /// Revokes all links to a session. Returns how many.
    pub fn revoke_session(&self, session: SessionId) -> io::Result<usize> {
        self.remove(|_, file| read(file).is_some_and(|share| share.session == session))
    }

    fn remove(&self, matches: impl Fn(&str, &Path) -> bool) -> io::Result<usize> {
        let mut files = self.files()?;
        files.retain(|(id, file)| matches(id, file));
        files.iter().try_for_each(|(_, file)| remove_file(file))?;
        Ok(files.len())
    }

    fn files(&self) -> io::Result<Vec<(String, PathBuf)>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
            files.extend(name.filter(|name| name.len() == 64).map(|name| (name, path)));
        }
        Ok(files)
    }
}

/// Another process may have removed it.
fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn read(file: &Path) -> Option<Share> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

#[cfg(test)]
#[path = "shares_tests.rs"]
mod tests;
