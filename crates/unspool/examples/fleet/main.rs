//! Plays the collectors of a team against a real server, and compares what the server has with what
//! an archive of the same logs has.
//!
//! ```text
//! corpus --out DIR --files 200 --megabytes 600 --records 150000
//! fleet --program unspool --logs DIR --rate 5000
//! fleet --program unspool --logs DIR --rate 2000 --kills 20
//! ```
//!
//! Every log of the corpus is one machine, which sends what an agent has written since the last
//! request, four times a second. `--rate` is the number of records that all agents together write
//! in a second. The age of a record is the time from its line in the log to the answer of the server
//! that it is committed. Nothing is redacted, as that is the work of other machines.

mod compare;
mod machine;
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use clap::Parser;

use machine::{Machine, Sent};
use server::Server;

/// How long the server runs between two kills.
const BETWEEN_KILLS: Duration = Duration::from_millis(700);

/// Plays the collectors of a team against a server
#[derive(Parser)]
struct Arguments {
    /// The `unspool` to measure
    #[arg(long, value_name = "FILE")]
    program: PathBuf,
    /// A corpus; each of its logs is one machine
    #[arg(long, value_name = "DIR")]
    logs: PathBuf,
    /// Records a second, all machines together
    #[arg(long)]
    rate: f64,
    /// The server's archive, instead of one in a file
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// How often the server is killed and started again meanwhile
    #[arg(long, default_value_t = 0)]
    kills: u32,
    /// Leave out the comparison with an archive of the same logs
    #[arg(long)]
    no_compare: bool,
}

fn main() -> ExitCode {
    match work(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fleet: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn work(arguments: &Arguments) -> Result<()> {
    let logs = logs_below(&arguments.logs.join("projects"))?;
    if logs.is_empty() {
        bail!("{} has no logs; make them with the example `corpus`", arguments.logs.display());
    }
    let folder = tempfile::tempdir()?;
    let mut server = Server::begin(&arguments.program, folder.path(), arguments.store.as_deref())?;
    let machines: Vec<Machine> =
        logs.iter().enumerate().map(|(nth, log)| Machine::new(nth, log)).collect::<Result<_>>()?;
    let records: usize = machines.iter().map(Machine::records).sum();
    let bytes: u64 = machines.iter().map(Machine::bytes).sum();
    let seconds = records as f64 / arguments.rate;
    println!(
        "{} machines, {records} records, {:.1} MB, in {seconds:.0} s: {:.0} records/s, {:.1} MB/s",
        machines.len(),
        bytes as f64 / 1e6,
        arguments.rate,
        bytes as f64 / 1e6 / seconds,
    );
    let address = server.address();
    let begun = Instant::now();
    let is_over = AtomicBool::new(false);
    let sent = thread::scope(|scope| -> Result<Vec<Sent>> {
        let each: Vec<_> = machines
            .iter()
            .map(|machine| {
                let rate = arguments.rate * machine.records() as f64 / records as f64;
                let (address, token) = (address.as_str(), server.token.clone());
                scope.spawn(move || machine.send(address, token, begun, rate))
            })
            .collect();
        let server = &mut server;
        let over = &is_over;
        let watch = scope.spawn(move || -> Result<()> {
            let mut left = arguments.kills;
            while !over.load(Ordering::Relaxed) {
                thread::sleep(if left > 0 { BETWEEN_KILLS } else { Duration::from_millis(200) });
                server.look();
                if left > 0 && !over.load(Ordering::Relaxed) {
                    server.kill_and_begin()?;
                    left -= 1;
                }
            }
            match left {
                0 => Ok(()),
                left => bail!("everything was sent before the last {left} kills; send more slowly"),
            }
        });
        let mut sent = Vec::new();
        for machine in each {
            sent.push(machine.join().map_err(|_| anyhow!("a machine's thread panicked"))?);
        }
        is_over.store(true, Ordering::Relaxed);
        watch.join().map_err(|_| anyhow!("the watching thread panicked"))??;
        sent.into_iter().collect()
    })?;
    let took = begun.elapsed().as_secs_f64();
    let mut ages: Vec<f32> = sent.iter().flat_map(|sent| sent.ages.iter().copied()).collect();
    ages.sort_by(f32::total_cmp);
    let age = |share: f64| ages[((ages.len() - 1) as f64 * share) as usize] * 1000.0;
    let failed: usize = sent.iter().map(|sent| sent.failed).sum();
    let requests: usize = sent.iter().map(|sent| sent.requests).sum();
    println!(
        "{took:.1} s, {:.0} records/s; {requests} requests, {failed} of them failed",
        records as f64 / took
    );
    println!(
        "age of a record when it is committed: p50 {:.0} ms, p95 {:.0} ms, p99 {:.0} ms, max {:.0} ms",
        age(0.5),
        age(0.95),
        age(0.99),
        age(1.0)
    );
    println!("server: {}", server.usage());
    if arguments.no_compare {
        return Ok(());
    }
    let team = server.exports()?;
    drop(server);
    let local = compare::local(&arguments.program, folder.path(), &arguments.logs)?;
    compare::assert_same(&team, &local).context("the server has something else than the logs")?;
    println!("{} sessions are those of an archive of the same logs", team.len());
    Ok(())
}

fn logs_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut logs = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(&folder);
        for entry in entries.with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            match path.is_dir() {
                true => open.push(path),
                false => logs.push(path),
            }
        }
    }
    logs.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    logs.sort();
    Ok(logs)
}
