//! `unspool doctor --bundle`: one file with what a bug report needs. It has no content of sessions,
//! the home folder is shortened, and it passes the redactor like every export.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use unspool_ingest::lock::DataFolder;
use unspool_model::json::Json;
use unspool_model::summary::Summary;
use unspool_redact::Redactor;
use unspool_store::blocking::block_on;
use unspool_store::database::Database;
use unspool_store::replace_file::replace_file;
use unspool_store::store::{SessionFilter, Store, View, Viewer};

use super::Report;
use crate::config;

/// How much of the log's end is included.
const MAX_LOG_BYTES: u64 = 256 * 1024;

/// Writes the bundle.
pub fn write(path: &Path, report: &Report, folder: &DataFolder, log: Option<&Path>) -> Result<()> {
    let mut bundle = json!({
        "unspool": env!("CARGO_PKG_VERSION"),
        "platform": {
            "os": std::env::consts::OS,
            "family": std::env::consts::FAMILY,
            "architecture": std::env::consts::ARCH,
            "processors": std::thread::available_parallelism().map_or(0, |count| count.get()),
        },
        "schema": { "archive": schema_version(folder), "program": Database::SCHEMA_VERSION },
        "data_folder": files_of(folder.path()),
        "counts": counts(folder),
        "doctor": report,
        "log": log.map(|log| last_lines(log).unwrap_or_else(|error| vec![error.to_string()])),
    });
    if let Some(home) = std::env::home_dir().filter(|home| home.as_os_str().len() > 1) {
        shorten(&mut bundle, &home.display().to_string());
    }
    let text = serde_json::to_string_pretty(&bundle)?;
    let rules = config::redaction()?.homes(true);
    let mut redactor = Redactor::new(&rules);
    let redacted = Json::parse(&text).map(|json| redactor.json(&json).text().to_owned());
    let redacted = redacted.context("cannot make the bundle")?;
    replace_file(path, format!("{redacted}\n").as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))
}

/// None if the archive cannot be opened; the report says why.
fn schema_version(folder: &DataFolder) -> Option<usize> {
    Database::schema_version(&folder.database()).ok()
}

/// Totals over the archive. None if it cannot be read.
fn counts(folder: &DataFolder) -> Option<Value> {
    let view = Database::open_to_read(&folder.database()).ok()?.view(Viewer::Sole);
    let all = SessionFilter { with_empty: true, ..SessionFilter::default() };
    let sessions = block_on(view.sessions(all)).ok()?;
    let sum = |count: fn(&Summary) -> u64| -> u64 {
        sessions.iter().map(|stored| count(&stored.summary)).sum()
    };
    Some(json!({
        "sessions": sessions.len(),
        "turns": sum(|summary| summary.turns),
        "parts": sum(|summary| summary.parts),
        "errors": sum(|summary| summary.errors),
    }))
}

/// Names and sizes, and the number of files in folders: no names from inside them.
fn files_of(folder: &Path) -> Vec<Value> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<(String, Value)> = entries
        .flatten()
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let size = entry.metadata().map_or(0, |metadata| metadata.len());
            let inside = fs::read_dir(entry.path()).ok().map(Iterator::count);
            let file = json!({ "name": name, "bytes": size, "files": inside });
            (name, file)
        })
        .collect();
    files.sort_by(|(one, _), (other, _)| one.cmp(other));
    files.into_iter().map(|(_, file)| file).collect()
}

/// The last lines of the log, the first one complete.
fn last_lines(path: &Path) -> std::io::Result<Vec<String>> {
    let mut file = File::open(path)?;
    let start = file.metadata()?.len().saturating_sub(MAX_LOG_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(MAX_LOG_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let cut = usize::from(start > 0);
    Ok(text.lines().skip(cut).map(str::to_owned).collect())
}

/// Replaces the home folder by `~` in every string.
fn shorten(value: &mut Value, home: &str) {
    match value {
        Value::String(text) => *text = shortened(text, home),
        Value::Array(values) => values.iter_mut().for_each(|value| shorten(value, home)),
        Value::Object(fields) => fields.values_mut().for_each(|value| shorten(value, home)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn shortened(text: &str, home: &str) -> String {
    let mut parts = text.split(home);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // `/home/ann` is not the beginning of `/home/anna`.
        let is_longer = part.starts_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_');
        out.push_str(if is_longer { home } else { "~" });
        out.push_str(part);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn a_home_folder_is_shortened_and_no_other() {
        assert_eq!(shortened("/home/ann/x and /home/ann: no", "/home/ann"), "~/x and ~: no");
        assert_eq!(shortened("/home/anna/x", "/home/ann"), "/home/anna/x");
        assert_eq!(shortened("", "/home/ann"), "");
    }
}
