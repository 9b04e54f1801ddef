//! OpenCode's log of its runs: `timestamp=… level=INFO run=72df9fa9 message="creating instance" …`,
//! and later `run=72df9fa9 … session.id=ses_…`. A run has no process id (1.18.33), but its first line
//! follows the start of its process, so the process is the one that started just before.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use rustc_hash::{FxHashMap, FxHashSet};
use unspool_query::processes::ProcessList;

use super::{Holder, ProcessRegistry, Registration};

/// How much of the end of the log is read.
const MAX_LOG_BYTES: u64 = 4 * 1024 * 1024;
/// The first line of a run is written this soon after the start of its process.
const MAX_START: Duration = Duration::from_secs(60);
/// Start times of processes are coarse.
const CLOCK_STEP: Duration = Duration::from_secs(2);
/// Runs that start this close together cannot be told apart.
const MIN_DISTANCE: Duration = Duration::from_secs(10);
/// The message of a run's first line.
const FIRST_MESSAGE: &str = "message=\"creating instance\"";

/// A run: when it began, and its sessions.
struct Run<'a> {
    began: SystemTime,
    sessions: FxHashSet<&'a str>,
}

impl ProcessRegistry {
    pub(super) fn read_run_log(&mut self, path: &Path, program: &str, processes: &ProcessList) {
        let Some(text) = end_of(path) else { return };
        let runs = runs(&text);
        let started: Vec<(u32, SystemTime)> = processes.of_program(program).collect();
        for run in &runs {
            let is_close = |other: &&Run<'_>| distance(other.began, run.began) < MIN_DISTANCE;
            let holders: Vec<Holder> = if runs.iter().filter(is_close).count() > 1 {
                vec![Holder::Unclear]
            } else {
                let own = |(_, at): &&(u32, SystemTime)| run_of(&runs, *at) == Some(run.began);
                let own = started.iter().filter(own).map(|(id, _)| Holder::Process(*id));
                own.chain([Holder::Gone]).collect()
            };
            for session in &run.sessions {
                for holder in &holders {
                    let registration =
                        Registration { holder: *holder, at: run.began, is_idle: false };
                    self.add((*session).to_owned(), registration);
                }
            }
        }
    }
}

/// When the run of a process began: the first that began after it started.
fn run_of(runs: &[Run<'_>], started: SystemTime) -> Option<SystemTime> {
    let later = runs.iter().map(|run| run.began).filter(|began| *began + CLOCK_STEP >= started);
    later.min().filter(|began| *began <= started + MAX_START)
}

fn distance(a: SystemTime, b: SystemTime) -> Duration {
    a.duration_since(b).or_else(|_| b.duration_since(a)).unwrap_or_default()
}

/// The runs whose first line is in the text.
fn runs(text: &str) -> Vec<Run<'_>> {
    let mut found: FxHashMap<&str, Run<'_>> = FxHashMap::default();
    for line in text.lines() {
        let field = |name: &str| {
            let mut words = line.split(' ');
            words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
        };
        let Some(id) = field("run") else { continue };
        if let Some(run) = found.get_mut(id) {
            let session = field("session.id").or_else(|| field("id"));
            run.sessions.extend(session.filter(|id| id.starts_with("ses_")));
        } else if line.contains(FIRST_MESSAGE)
            && let Some(began) = field("timestamp").and_then(|at| at.parse::<Timestamp>().ok())
        {
            let run = Run { began: began.into(), sessions: FxHashSet::default() };
            found.insert(id, run);
        }
    }
    found.into_values().collect()
}

/// The end of a file, from the beginning of a line.
fn end_of(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok().filter(|metadata| metadata.is_file())?.len();
    let from = length.saturating_sub(MAX_LOG_BYTES);
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_LOG_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match from {
        0 => Some(text),
        _ => text.split_once('\n').map(|(_, rest)| rest.to_owned()),
    }
}
