//! Runs a command once and samples it through `/proc`.
//!
//! Peak memory is the kernel's high-water mark of each process (`VmHWM`), sampled every few
//! milliseconds and summed over the command and its children. `getrusage` would be exact, but it
//! needs unsafe code or another dependency, and it reports only the largest child. A command that
//! ends within a millisecond may be missed. On systems other than Linux the columns are empty.

use std::fs;
use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use crate::sample::Sample;

/// Linux reports process times in hundredths of a second, whatever the kernel's tick rate.
const TICK: Duration = Duration::from_millis(10);
const FAST_POLL: Duration = Duration::from_micros(500);
const SLOW_POLL: Duration = Duration::from_millis(4);

pub fn run(command: &[String], first_output: bool) -> Result<Sample> {
    let [program, arguments @ ..] = command else { return Err(anyhow!("there is no command")) };
    let used = used_by_children();
    let start = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(if first_output { Stdio::piped() } else { Stdio::null() })
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    let (process, output, errors) = (child.id(), child.stdout.take(), child.stderr.take());
    let done = AtomicBool::new(false);
    let (status, wall, memory, stderr) = thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(process, &done));
        let teller = scope.spawn(|| {
            let mut stderr = String::new();
            errors.map(|mut errors| errors.read_to_string(&mut stderr));
            stderr
        });
        let first = scope.spawn(|| first_byte(output, start));
        let status = child.wait();
        let wall = start.elapsed();
        done.store(true, Ordering::Relaxed);
        let memory = watcher.join().unwrap_or_default();
        let first = first.join().ok().flatten();
        (status, first.unwrap_or(wall), memory, teller.join().unwrap_or_default())
    });
    let status = status.with_context(|| format!("cannot wait for {program}"))?;
    ensure!(status.success(), "{} failed ({status}):\n{stderr}", command.join(" "));
    Ok(Sample { wall, processors: used_by_children().saturating_sub(used), memory })
}

/// The time of the first output byte. Reads the rest too, so that the command can finish.
fn first_byte(output: Option<impl Read>, start: Instant) -> Option<Duration> {
    let mut output = output?;
    let mut byte = [0];
    let first = (output.read(&mut byte).ok()? > 0).then(|| start.elapsed());
    io::copy(&mut output, &mut io::sink()).ok();
    first
}

fn watch(process: u32, done: &AtomicBool) -> u64 {
    let started = Instant::now();
    let mut peak = 0;
    while !done.load(Ordering::Relaxed) {
        peak = peak.max(memory_of(process, 0));
        // Sample short commands often; do not disturb long ones.
        thread::sleep(if started.elapsed() < SLOW_POLL * 12 { FAST_POLL } else { SLOW_POLL });
    }
    peak
}

/// Peak memory of a process and its living children, in bytes.
fn memory_of(process: u32, depth: usize) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let own = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok())
        .unwrap_or_default();
    let mut sum = own * 1024;
    if depth < 8 {
        for thread in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten()
        {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            let children = children.split_ascii_whitespace().filter_map(|id| id.parse().ok());
            sum += children.map(|child| memory_of(child, depth + 1)).sum::<u64>();
        }
    }
    sum
}

/// User and system time of all finished children.
fn used_by_children() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name may contain spaces and parentheses: count fields after the last one.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u32 = fields
        .split_ascii_whitespace()
        .skip(13)
        .take(2)
        .filter_map(|f| f.parse::<u32>().ok())
        .sum();
    TICK * ticks
}
