//! Secrets stored in the data folder, readable by the owner only.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use unspool_ingest::lock::DataFolder;
use unspool_server::Auth;

/// Loads or creates the access token. It is stored with the archive, so that open pages and saved
/// links work after a restart. Anyone who can read it can read the archive anyway.
pub fn token(folder: &DataFolder) -> Result<String> {
    let path = folder.path().join("token");
    let is_one = |token: &str| token.len() == 48 && token.bytes().all(|c| c.is_ascii_hexdigit());
    if let Some(token) = fs::read_to_string(&path).ok().filter(|token| is_one(token)) {
        return Ok(token);
    }
    let token = Auth::secret().ok_or_else(|| anyhow!("the system has no random bytes"))?;
    write_private(&path, &token)?;
    Ok(token)
}

/// Atomically writes a file with mode 0600.
pub fn write_private(path: &Path, secret: &str) -> Result<()> {
    let new = path.with_extension("new");
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // A leftover of an earlier attempt may have wider permissions.
    let _ = fs::remove_file(&new);
    options
        .open(&new)
        .and_then(|mut file| file.write_all(secret.as_bytes()))
        .and_then(|()| fs::rename(&new, path))
        .with_context(|| format!("cannot write {}", path.display()))
}
