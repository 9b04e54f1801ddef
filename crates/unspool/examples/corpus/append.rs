//! Appends a prompt to a log, as a running agent does.

use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, Result};

use crate::journal::stamp;
use crate::json::Json;
use crate::random::Random;

/// Enough for the last records of a session, which are small notes.
const TAIL: u64 = 64 * 1024;

pub fn append(path: &Path, seed: u64) -> Result<()> {
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .open(path)
        .with_context(|| format!("cannot open {}", path.display()))?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let tail = String::from_utf8_lossy(&tail);
    let last = |field: &str| {
        let from = tail.rfind(field)? + field.len();
        tail[from..].split('"').next()
    };
    let lost = || format!("{} does not end as the generator's logs do", path.display());
    let parent = last("\"leafUuid\":\"").with_context(lost)?;
    let session = last("\"sessionId\":\"").with_context(lost)?;
    let folder = last("\"cwd\":\"").with_context(lost)?;
    // The prompt depends on the file's length, so that no two lines are equal.
    let mut random = Random::new(seed ^ length);
    let mut line = Json::default();
    line.raw("{\"parentUuid\":").text(parent).raw(",\"isSidechain\":false,\"promptId\":\"");
    line.raw(random.uuid()).raw("\",\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":");
    line.text(&format!("One more thing, number {length}: please look at it again."));
    line.raw("},\"uuid\":\"").raw(random.uuid()).raw("\",\"timestamp\":");
    line.text(&stamp(1_794_700_800_000 + (length % 86_400_000) as i64));
    line.raw(",\"permissionMode\":\"default\",\"origin\":{\"kind\":\"human\"},");
    line.raw("\"promptSource\":\"typed\",\"turnOrigin\":\"human\",\"userType\":\"external\",");
    line.raw("\"entrypoint\":\"cli\",\"cwd\":").text(folder).raw(",\"sessionId\":").text(session);
    line.raw(",\"version\":\"2.1.325\",\"gitBranch\":\"main\"}\n");
    file.write_all(&line.0)?;
    Ok(())
}
