//! Two archives of the same logs have the same sessions: their lossless exports are equal, but for
//! where the logs are and how often they were written.

use std::collections::BTreeMap;
use std::fs;
use std::hash::Hasher;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rustc_hash::FxHasher;
use serde_json::Value;

/// A digest of each session's export, by id.
pub type Exports = BTreeMap<String, (u64, u64)>;

pub fn exports(mut command: Command) -> Result<Exports> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let out = BufReader::new(child.stdout.take().context("no output")?);
    let mut exports = Exports::new();
    let mut open: Option<(String, FxHasher, u64)> = None;
    for line in out.lines() {
        let line = line?;
        if !line.starts_with("{\"unspool\"") {
            let Some((_, digest, lines)) = &mut open else {
                bail!("no head before the first line")
            };
            digest.write(line.as_bytes());
            *lines += 1;
            continue;
        }
        let mut head: Value = serde_json::from_str(&line)?;
        let fields = head.as_object_mut().context("a head that is no object")?;
        fields.remove("seq").context("no seq")?;
        for source in
            fields.get_mut("sources").and_then(Value::as_array_mut).context("no sources")?
        {
            source.as_object_mut().context("no source")?.remove("file").context("no file")?;
        }
        let id = head["session"]["id"].as_str().context("no id")?.to_owned();
        let mut digest = FxHasher::default();
        digest.write(head.to_string().as_bytes());
        if let Some((id, digest, lines)) = open.replace((id, digest, 1)) {
            exports.insert(id, (digest.finish(), lines));
        }
    }
    if let Some((id, digest, lines)) = open {
        exports.insert(id, (digest.finish(), lines));
    }
    if !child.wait()?.success() {
        bail!("the export failed");
    }
    Ok(exports)
}

/// The exports of an archive that reads the logs undisturbed.
pub fn local(program: &Path, folder: &Path, logs: &Path) -> Result<Exports> {
    let home = folder.join("undisturbed");
    fs::create_dir_all(home.join(".config/unspool"))?;
    fs::write(home.join(".config/unspool/config.toml"), "idle_after = 1000000000\n")?;
    let command = |arguments: &[&str]| {
        let mut command = Command::new(program);
        command.arg("--data").arg(folder.join("local")).args(arguments).env("HOME", &home);
        command.env("CLAUDE_CONFIG_DIR", logs).env_remove("UNSPOOL_STORE");
        command
    };
    let synced = command(&["sync"]).output()?;
    if !synced.status.success() {
        bail!("sync: {}", String::from_utf8_lossy(&synced.stderr));
    }
    exports(command(&["export", "--all", "--to", "jsonl"]))
}

pub fn assert_same(team: &Exports, local: &Exports) -> Result<()> {
    if team.is_empty() {
        bail!("it has no session");
    }
    let ids: std::collections::BTreeSet<&String> = team.keys().chain(local.keys()).collect();
    let other: Vec<String> = ids
        .into_iter()
        .filter(|id| team.get(*id) != local.get(*id))
        .map(|id| format!("{id}: {:?} and {:?}", team.get(id), local.get(id)))
        .collect();
    match other.is_empty() {
        true => Ok(()),
        false => bail!("{} sessions differ:\n{}", other.len(), other.join("\n")),
    }
}
