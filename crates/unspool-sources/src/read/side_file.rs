//! Small files that agents keep next to a log, with facts about its session: `agent_meta.rs` of
//! Claude Code, `droid_settings.rs` of Droid, `continue_index.rs` of Continue, which is one file for
//! all sessions, and the manifest and the compaction of `cline.rs`. Each is read as lines for the
//! decoders of its agent, as a source of its own.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::{agent_meta, cline, continue_index, droid_settings};

/// True if a path is such a file.
pub fn is_side_file(path: &Path) -> bool {
    agent_meta::is_agent_meta(path)
        || droid_settings::is_settings(path)
        || continue_index::is_index(path)
        || cline::is_side_file(path)
}

/// The files next to a log that exist.
pub fn side_files_of_log(log: &Path) -> Vec<PathBuf> {
    let of_name = agent_meta::meta_of_log(log).or_else(|| droid_settings::settings_of_log(log));
    of_name.into_iter().chain(cline::side_files_of_log(log)).collect()
}

/// The file as lines. `None` for any other file, and for those of Cline, which `cline::lines` reads.
pub fn text(path: &Path, file: &mut File) -> io::Result<Option<Vec<u8>>> {
    if let Some(text) = agent_meta::text(path, file)? {
        return Ok(Some(text));
    }
    if let Some(text) = droid_settings::text(path, file)? {
        return Ok(Some(text));
    }
    continue_index::text(path, file)
}
