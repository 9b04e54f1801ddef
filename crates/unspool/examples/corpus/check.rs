//! Checks that Unspool reads a corpus: runs `unspool show --json` on every session and fails on an
//! unreadable line or a warning.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde::de::IgnoredAny;

#[derive(Deserialize)]
struct ShowOutput {
    records: Records,
    warnings: Vec<IgnoredAny>,
    turns: Vec<Turn>,
}

#[derive(Deserialize)]
struct Records {
    read: u64,
    unreadable: u64,
}

#[derive(Deserialize)]
struct Turn {
    #[serde(default)]
    parts: Vec<IgnoredAny>,
}

pub fn check(folder: &Path, unspool: Option<&Path>) -> Result<()> {
    let unspool = match unspool {
        Some(path) => path.to_owned(),
        None => beside_us()?,
    };
    let (mut sessions, mut records, mut turns, mut parts) = (0, 0, 0, 0);
    for log in logs(folder)? {
        let shown = Command::new(&unspool)
            .arg("show")
            .arg(&log)
            .arg("--json")
            .output()
            .with_context(|| format!("cannot run {}", unspool.display()))?;
        let stderr = String::from_utf8_lossy(&shown.stderr);
        ensure!(shown.status.success(), "unspool cannot show {}: {stderr}", log.display());
        ensure!(stderr.is_empty(), "unspool warns about {}: {stderr}", log.display());
        let shown: ShowOutput = serde_json::from_slice(&shown.stdout)
            .with_context(|| format!("unspool wrote no valid document for {}", log.display()))?;
        ensure!(
            shown.records.unreadable == 0 && shown.warnings.is_empty(),
            "{} has {} unreadable lines and {} warnings",
            log.display(),
            shown.records.unreadable,
            shown.warnings.len()
        );
        ensure!(!shown.turns.is_empty(), "{} has no turn", log.display());
        sessions += 1;
        records += shown.records.read;
        turns += shown.turns.len();
        parts += shown.turns.iter().map(|turn| turn.parts.len()).sum::<usize>();
    }
    ensure!(sessions > 0, "{} holds no session; write one with --out", folder.display());
    println!(
        "{sessions} sessions read without a warning: {records} records, {turns} turns, {parts} \
         parts"
    );
    Ok(())
}

/// Every session's log under `projects`, sorted; sub-agents are read with their parents.
pub fn logs(folder: &Path) -> Result<Vec<PathBuf>> {
    let projects = folder.join("projects");
    let mut logs = Vec::new();
    let list = |path: &Path| {
        std::fs::read_dir(path).with_context(|| format!("cannot list {}", path.display()))
    };
    for project in list(&projects)? {
        let project = project?.path();
        if !project.is_dir() {
            continue;
        }
        for log in list(&project)? {
            let log = log?.path();
            if log.extension().is_some_and(|ending| ending == "jsonl") {
                logs.push(log);
            }
        }
    }
    logs.sort();
    Ok(logs)
}

/// The program next to the `examples` folder that cargo builds into.
fn beside_us() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let program = own.ancestors().nth(2).map(|target| target.join("unspool"));
    match program.filter(|path| path.exists()) {
        Some(path) => Ok(path),
        None => bail!("build unspool first, or name it with --unspool"),
    }
}
