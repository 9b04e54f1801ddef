//! The address of the server of an archive, for the links that other commands print.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{DEFAULT_PORT, secret};

const FILE: &str = "address";

/// Says where the server is while it runs.
pub struct AddressFile {
    path: PathBuf,
    address: String,
}

impl AddressFile {
    pub fn write(folder: &Path, at: SocketAddr) -> Result<AddressFile> {
        let (ip, port) = (at.ip(), at.port());
        let address = match ip.is_unspecified() {
            true => format!("http://127.0.0.1:{port}"),
            false => format!("http://{at}"),
        };
        let path = folder.join(FILE);
        secret::write_private(&path, &address)?;
        Ok(AddressFile { path, address })
    }
}

impl Drop for AddressFile {
    /// Removes it, unless a later server has written its own.
    fn drop(&mut self) {
        if fs::read_to_string(&self.path).is_ok_and(|written| written == self.address) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The address of the server that runs over this archive, or of the next one.
pub fn of_server(folder: &Path) -> String {
    let written = fs::read_to_string(folder.join(FILE)).ok();
    let is_address = |written: &String| written.starts_with("http://") && written.len() < 100;
    written.filter(is_address).unwrap_or_else(|| format!("http://127.0.0.1:{DEFAULT_PORT}"))
}
