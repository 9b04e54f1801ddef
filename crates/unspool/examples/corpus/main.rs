//! Writes a corpus of Claude Code session logs, for benchmarks and for tests of size.
//!
//! ```text
//! cargo run --release -p unspool --example corpus -- --out DIR
//! cargo run --release -p unspool --example corpus -- --out DIR --megabytes 2048 --sessions 1
//! cargo run --release -p unspool --example corpus -- --out DIR --megabytes 40 --files 10000
//! cargo run --release -p unspool --example corpus -- --inspect DIR
//! cargo run --release -p unspool --example corpus -- --check DIR
//! ```
//!
//! The folder is laid out like `~/.claude`, so `CLAUDE_CONFIG_DIR=DIR` points any tool at it. The
//! same arguments and the same source text give the same bytes. `DIR/corpus.json` describes the
//! corpus; `DIR/queries.tsv` has searches: words of one session, words of nearly all, fragments.

mod append;
mod calls;
mod check;
mod context;
mod inspect;
mod journal;
mod json;
mod message;
mod outputs;
mod plan;
mod random;
mod results;
mod session;
mod sources;
mod words;
mod working_set;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use clap::Parser;

use plan::Plan;
use session::{Session, SessionSummary};
use sources::Sources;

/// Records per megabyte, as measured in the logs behind the default size.
const RECORDS_PER_MEGABYTE: u64 = 260;

/// Writes a corpus of Claude Code session logs
#[derive(Parser)]
struct Arguments {
    /// The folder to write; gets a `projects/` like `~/.claude`
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The size of all logs together, in millions of bytes
    #[arg(long, default_value_t = 200)]
    megabytes: u64,
    /// How many sessions; sub-agents have files of their own beside them
    #[arg(long, default_value_t = 150)]
    sessions: usize,
    /// How many records; 260 per megabyte if not given
    #[arg(long)]
    records: Option<u64>,
    /// The exact number of files: one per session, without sub-agents
    #[arg(long)]
    files: Option<usize>,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The repository whose text is varied
    #[arg(long, value_name = "DIR")]
    sources: Option<PathBuf>,
    /// Counts what a corpus holds: records, text, distinct text, words
    #[arg(long, value_name = "DIR")]
    inspect: Option<PathBuf>,
    /// Has `unspool show --json` read every session, and fails on a warning
    #[arg(long, value_name = "DIR")]
    check: Option<PathBuf>,
    /// The `unspool` to check with
    #[arg(long, value_name = "FILE")]
    unspool: Option<PathBuf>,
    /// Appends one prompt to a session's log, as a running agent would
    #[arg(long, value_name = "FILE")]
    append: Option<PathBuf>,
}

fn main() -> ExitCode {
    match work(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("corpus: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn work(arguments: &Arguments) -> Result<()> {
    if let Some(folder) = &arguments.inspect {
        return inspect::inspect(folder);
    }
    if let Some(folder) = &arguments.check {
        return check::check(folder, arguments.unspool.as_deref());
    }
    if let Some(file) = &arguments.append {
        return append::append(file, arguments.seed);
    }
    let Some(out) = &arguments.out else {
        bail!("nothing to do: --out DIR writes a corpus; --inspect, --check and --append use one")
    };
    generate(arguments, out)
}

fn generate(arguments: &Arguments, out: &Path) -> Result<()> {
    let projects = out.join("projects");
    if projects.exists() {
        bail!("{} already exists; remove it or choose another folder", projects.display());
    }
    let started = Instant::now();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let sources = Sources::read(arguments.sources.as_deref().unwrap_or(&repository))?;
    let bytes = arguments.megabytes * 1_000_000;
    let records = arguments.records.unwrap_or(arguments.megabytes * RECORDS_PER_MEGABYTE).max(2);
    let sessions = arguments.files.unwrap_or(arguments.sessions).max(1);
    // A single session is one file; with several, some have sub-agents.
    let with_agents = arguments.files.is_none() && sessions > 1;
    let plan = Plan::new(&sources, arguments.seed, bytes, records, sessions, with_agents);
    for project in &plan.projects {
        let folder = projects.join(&project.slug);
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    }
    let summaries = write_all(&sources, &plan, &projects)?;
    let took = started.elapsed().as_secs_f64();

    write_queries(&sources, &summaries, &out.join("queries.tsv"))?;
    let written: u64 = summaries.iter().map(|one| one.bytes).sum();
    let records: u64 = summaries.iter().map(|one| one.records).sum();
    let summary = serde_json::json!({
        "megabytes": arguments.megabytes,
        "seed": arguments.seed,
        "sessions": sessions,
        "bytes": written,
        "records": records,
        "sources": format!("{:016x}", sources.fingerprint),
    });
    fs::write(out.join("corpus.json"), format!("{summary:#}\n"))?;
    println!(
        "{sessions} sessions, {records} records, {:.1} MB in {took:.2} s ({:.0} MB/s), sources {:016x}",
        written as f64 / 1e6,
        written as f64 / 1e6 / took,
        sources.fingerprint
    );
    Ok(())
}

/// Sessions do not depend on each other, so their order and the number of threads do not matter.
fn write_all(sources: &Sources, plan: &Plan, projects: &Path) -> Result<Vec<SessionSummary>> {
    let mut order: Vec<usize> = (0..plan.sessions.len()).collect();
    // Largest first, so that no thread ends with a long session alone.
    order.sort_by_key(|&index| std::cmp::Reverse(plan.sessions[index].bytes));
    let next = AtomicUsize::new(0);
    let work = || -> Result<Vec<(usize, SessionSummary)>> {
        let mut done = Vec::new();
        while let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let planned = &plan.sessions[index];
            let project = &plan.projects[planned.project];
            let folder = projects.join(&project.slug);
            let session = Session::create(sources, &folder, project, planned, plan.with_agents)?;
            done.push((index, session.run()?));
        }
        Ok(done)
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    let mut summaries = std::thread::scope(|scope| -> Result<Vec<(usize, SessionSummary)>> {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut all = Vec::new();
        for worker in workers {
            all.extend(worker.join().map_err(|_| anyhow!("a generator thread panicked"))??);
        }
        Ok(all)
    })?;
    summaries.sort_by_key(|(index, _)| *index);
    Ok(summaries.into_iter().map(|(_, one)| one).collect())
}

/// Writes searches with their expected hits: a rare word occurs in one session only.
fn write_queries(sources: &Sources, summaries: &[SessionSummary], path: &Path) -> Result<()> {
    let mut lines = String::new();
    let step = summaries.len().div_ceil(60).max(1);
    for one in summaries.iter().step_by(step) {
        lines.push_str(&format!("rare\t{}\t{}\n", one.needle, one.session));
    }
    for word in sources.words.common().step_by(5).take(60) {
        lines.push_str(&format!("common\t{word}\t\n"));
    }
    for one in summaries.iter().skip(step / 2).step_by(step) {
        // Words are ASCII, so every byte offset is a character boundary.
        let middle = one.needle.len() / 2;
        let fragment = &one.needle[middle - 3..(middle + 4).min(one.needle.len())];
        lines.push_str(&format!("fragment\t{fragment}\t{}\n", one.session));
    }
    fs::write(path, lines).with_context(|| format!("cannot write {}", path.display()))
}
