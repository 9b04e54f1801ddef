//! What the holder of a secret may do, as one file for each secret in the data folder: its name is
//! the SHA-256 of the secret, its content the record. So a command makes and revokes secrets without
//! a running server, several servers need no lock, and a secret that is revoked ends at once.

use std::fs;
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use unspool_model::id::sha256;
use unspool_store::private_file;
use unspool_store::replace_file::replace_file;

use crate::secret::{SECRET_CHARS, random_secret};

/// A shorter beginning of an id could be of several secrets.
const MIN_ID_CHARS: usize = 6;

/// A record with a time at which it ends.
pub trait SecretRecord: Serialize + DeserializeOwned {
    fn created(&self) -> Timestamp;

    /// None: until it is revoked.
    fn expires(&self) -> Option<Timestamp>;

    fn is_valid(&self, now: Timestamp) -> bool {
        self.expires().is_none_or(|expires| now < expires)
    }
}

/// The records of one kind in a data folder.
#[derive(Clone, Debug)]
pub struct SecretRecords<T> {
    folder: PathBuf,
    record: PhantomData<T>,
}

impl<T: SecretRecord> SecretRecords<T> {
    /// Creates nothing.
    pub fn in_folder(folder: PathBuf) -> SecretRecords<T> {
        SecretRecords { folder, record: PhantomData }
    }

    /// Adds a record and returns its secret, which is stored nowhere.
    pub fn add(&self, record: &T) -> io::Result<String> {
        let secret =
            random_secret().ok_or_else(|| io::Error::other("the system has no random bytes"))?;
        private_file::folders().recursive(true).create(&self.folder)?;
        let text = serde_json::to_vec(record).map_err(io::Error::other)?;
        replace_file(&self.folder.join(sha256(secret.as_bytes())), &text)?;
        Ok(secret)
    }

    /// None for a secret that does not exist, has expired or was revoked.
    pub fn find(&self, secret: &str, now: Timestamp) -> Option<T> {
        let is_one = secret.len() == SECRET_CHARS && secret.bytes().all(|c| c.is_ascii_hexdigit());
        let file = self.folder.join(sha256(secret.as_bytes()));
        read(&file).filter(|record: &T| is_one && record.is_valid(now))
    }

    /// All records that are valid, oldest first, by their ids. Removes those that have expired.
    pub fn list(&self, now: Timestamp) -> io::Result<Vec<(String, T)>> {
        let mut records = Vec::new();
        for (id, file) in self.files()? {
            match read(&file).filter(|record: &T| record.is_valid(now)) {
                Some(record) => records.push((id, record)),
                None => remove_file(&file)?,
            }
        }
        records.sort_by(|(one, a), (other, b)| (a.created(), one).cmp(&(b.created(), other)));
        Ok(records)
    }

    /// Revokes the secrets whose ids begin like this, or this one. Returns how many.
    pub fn revoke(&self, id_or_secret: &str) -> io::Result<usize> {
        let whole = sha256(id_or_secret.as_bytes());
        let is_prefix = id_or_secret.len() >= MIN_ID_CHARS;
        self.remove(|id, _| id == whole || (is_prefix && id.starts_with(id_or_secret)))
    }

    /// Revokes the secrets of some records. Returns how many.
    pub fn revoke_where(&self, matches: impl Fn(&T) -> bool) -> io::Result<usize> {
        self.remove(|_, file| read(file).is_some_and(|record| matches(&record)))
    }

    fn remove(&self, matches: impl Fn(&str, &Path) -> bool) -> io::Result<usize> {
        let mut files = self.files()?;
        files.retain(|(id, file)| matches(id, file));
        files.iter().try_for_each(|(_, file)| remove_file(file))?;
        Ok(files.len())
    }

    pub(crate) fn files(&self) -> io::Result<Vec<(String, PathBuf)>> {
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

fn read<T: DeserializeOwned>(file: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}
