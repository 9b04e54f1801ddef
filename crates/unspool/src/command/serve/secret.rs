//! Secrets stored in the data folder, readable by the owner only.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use unspool_ingest::lock::DataFolder;
use unspool_server::random_secret;
use unspool_store::private_file;
use unspool_store::replace_file::FileReplacement;

/// Loads or creates the access token. It is stored with the archive, so that saved links work after
/// a restart. Anyone who can read it can read the archive anyway.
pub fn token(folder: &DataFolder) -> Result<String> {
    let path = folder.path().join("token");
    let is_one = |token: &str| token.len() == 48 && token.bytes().all(|c| c.is_ascii_hexdigit());
    if let Some(token) = fs::read_to_string(&path).ok().filter(|token| is_one(token)) {
        return Ok(token);
    }
    let token = random_secret().ok_or_else(|| anyhow!("the system has no random bytes"))?;
    write_private(&path, &token)?;
    Ok(token)
}

/// Replaces a file with one that only the owner may read, whatever mode the old one had.
pub fn write_private(path: &Path, secret: &str) -> Result<()> {
    let write = || -> io::Result<()> {
        let mut file = FileReplacement::begin(path)?;
        if let Some(permissions) = private_file::permissions() {
            file = file.with_permissions(permissions);
        }
        file.write_all(secret.as_bytes())?;
        file.commit()
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}
