//! The first record of a log, for the files next to it: what a log says about its session is there.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::de::DeserializeOwned;

use super::regular_file::open_regular;

/// A first record has a few short fields, or a prompt.
const MAX_RECORD_BYTES: u64 = 1024 * 1024;

/// `None` if there is no log, or if its first line is something else.
pub(crate) fn first_record<T: DeserializeOwned>(log: &Path) -> Option<T> {
    let mut line = Vec::new();
    let file = open_regular(log).ok()?.take(MAX_RECORD_BYTES);
    BufReader::new(file).read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}
