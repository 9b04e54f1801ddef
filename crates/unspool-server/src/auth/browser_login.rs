//! Logins of browsers. A browser that shows the token, a one-time code or the password gets a random
//! cookie. The data folder has one file for each login: its name is the SHA-256 of the cookie, its
//! content the time at which the login expires. Without a common list, several servers of one
//! archive and `unspool serve --revoke-logins` need no lock, and a login that is removed ends
//! everywhere at once.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use unspool_model::id::sha256;
use unspool_store::private_file;
use unspool_store::replace_file::replace_file;

use super::{SECRET_CHARS, random_secret};

/// The number of logins kept; those that expire first are removed first.
const MAX_LOGINS: usize = 1000;

/// The logins of one data folder.
#[derive(Clone, Debug)]
pub struct LoginStore {
    folder: PathBuf,
}

impl LoginStore {
    /// The logins below this data folder. Creates nothing.
    pub fn in_data_folder(data: &Path) -> LoginStore {
        LoginStore { folder: data.join("logins") }
    }

    /// Adds a login and returns its cookie, which is stored nowhere.
    pub fn add(&self, lifetime: Duration, now: SystemTime) -> io::Result<String> {
        let cookie =
            random_secret().ok_or_else(|| io::Error::other("the system has no random bytes"))?;
        private_file::folders().recursive(true).create(&self.folder)?;
        self.remove_expired(now)?;
        let until = seconds(now).saturating_add(lifetime.as_secs());
        replace_file(&self.file(&cookie), until.to_string().as_bytes())?;
        Ok(cookie)
    }

    pub fn is_valid(&self, cookie: &str, now: SystemTime) -> bool {
        let is_one = cookie.len() == SECRET_CHARS && cookie.bytes().all(|c| c.is_ascii_hexdigit());
        is_one && expiry(&self.file(cookie)).is_some_and(|until| until > seconds(now))
    }

    /// Ends one login.
    pub fn remove(&self, cookie: &str) -> io::Result<()> {
        remove_file(&self.file(cookie))
    }

    /// Ends all logins and returns how many there were.
    pub fn remove_all(&self) -> io::Result<usize> {
        let files = self.files()?;
        files.iter().try_for_each(|file| remove_file(file))?;
        Ok(files.len())
    }

    /// Removes what has expired, and makes room for one login.
    fn remove_expired(&self, now: SystemTime) -> io::Result<()> {
        let mut logins: Vec<(u64, PathBuf)> = Vec::new();
        for file in self.files()? {
            match expiry(&file) {
                Some(until) if until > seconds(now) => logins.push((until, file)),
                Some(_) | None => remove_file(&file)?,
            }
        }
        logins.sort_unstable();
        let excess = (logins.len() + 1).saturating_sub(MAX_LOGINS);
        logins.iter().take(excess).try_for_each(|(_, file)| remove_file(file))
    }

    fn file(&self, cookie: &str) -> PathBuf {
        self.folder.join(sha256(cookie.as_bytes()))
    }

    fn files(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let is_login = |path: &PathBuf| path.file_name().is_some_and(|name| name.len() == 64);
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        paths.filter(|path| path.as_ref().map_or(true, is_login)).collect()
    }
}

/// Another process may have removed it.
fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// When a login ends, in seconds since 1970. None if there is no such login.
fn expiry(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.parse().ok()
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
#[path = "browser_login_tests.rs"]
mod tests;
