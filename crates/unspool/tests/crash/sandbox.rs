//! A sandbox in a temporary folder: an agent's log folder, folders for archives, and the real
//! program.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tempfile::TempDir;
use unspool_ingest::lock::DataFolder;
use unspool_store::database::Database;

/// The longest wait for anything: a test fails instead of hanging.
pub const DEADLINE: Duration = Duration::from_secs(90);

pub struct Sandbox {
    folder: TempDir,
}

impl Sandbox {
    pub fn new() -> Sandbox {
        let sandbox = Sandbox { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(sandbox.projects()).unwrap();
        // No process writes these logs. Their open turns must not end while a test compares them.
        let config = sandbox.path("home").join(".config/unspool");
        fs::create_dir_all(&config).unwrap();
        fs::write(config.join("config.toml"), "idle_after = 1000000000\n").unwrap();
        sandbox
    }

    /// A sandbox with the recordings as logs.
    pub fn filled() -> Sandbox {
        let sandbox = Sandbox::new();
        crate::corpus::fill(&sandbox.projects());
        sandbox
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The agent's log folder.
    pub fn projects(&self) -> PathBuf {
        self.path("agent").join("projects")
    }

    /// The program with an archive of this name.
    pub fn unspool(&self, data: &str) -> Unspool {
        let (agent, home, data) = (self.path("agent"), self.path("home"), self.path(data));
        Unspool { agent, home, data, inside: None }
    }

    /// Everything in the agent's folder: names, sizes, times and content digests (law 7).
    pub fn listing(&self) -> Listing {
        let mut listing = Listing::default();
        list(&self.path("agent"), &mut listing);
        listing
    }
}

pub type Listing = BTreeMap<PathBuf, (u64, SystemTime, u64)>;

fn list(folder: &Path, listing: &mut Listing) {
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        let digest = match metadata.is_file() {
            true => crate::corpus::hash(&fs::read(&path).unwrap()),
            false => 0,
        };
        listing.insert(path.clone(), (metadata.len(), metadata.modified().unwrap(), digest));
        if metadata.is_dir() {
            list(&path, listing);
        }
    }
}

#[derive(Clone)]
pub struct Unspool {
    agent: PathBuf,
    home: PathBuf,
    data: PathBuf,
    /// The process in whose mount namespace it runs, if not in ours.
    inside: Option<u32>,
}

impl Unspool {
    /// The same in the mount namespace of a process.
    pub fn inside(self, process: u32) -> Unspool {
        Unspool { inside: Some(process), ..self }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let program = env!("CARGO_BIN_EXE_unspool");
        let mut command = match self.inside {
            Some(process) => {
                let mut command = Command::new("nsenter");
                command.args(["--mount", "--target", &process.to_string(), program]);
                command
            }
            None => Command::new(program),
        };
        command.args(arguments);
        self.set_environment(&mut command);
        command
    }

    /// Sets the environment of a command, so that it finds this sandbox and nothing of the user's.
    pub fn set_environment(&self, command: &mut Command) {
        command
            .env("CLAUDE_CONFIG_DIR", &self.agent)
            .env("UNSPOOL_DATA", &self.data)
            .env("HOME", &self.home)
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs a command that must succeed. Returns its output.
    pub fn print(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "unspool {arguments:?}: {} {errors}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.print(arguments)).unwrap()
    }

    /// Syncs once to the end. Returns the report.
    pub fn sync(&self) -> Value {
        self.json(&["sync", "--json"])
    }

    /// Starts a command that the test may kill.
    pub fn begin(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    pub fn watch(&self) -> Watcher {
        Watcher::start(self)
    }

    pub fn folder(&self) -> DataFolder {
        DataFolder::new(self.data.clone())
    }

    pub fn database(&self) -> PathBuf {
        self.folder().database()
    }

    /// The size of the database file, read inside its mount namespace.
    pub fn database_size(&self) -> u64 {
        let path = match self.inside {
            Some(process) => {
                let root = PathBuf::from(format!("/proc/{process}/root"));
                root.join(self.database().strip_prefix("/").unwrap())
            }
            None => self.database(),
        };
        path.metadata().unwrap().len()
    }

    /// Opens the archive read-only, as another process would.
    pub fn store(&self) -> Database {
        Database::open_to_read(&self.database()).unwrap()
    }

    /// The session with this agent session id, as `show --json` prints it.
    pub fn shown(&self, id: &str) -> Value {
        self.json(&["show", id, "--json"])
    }
}

/// `unspool sync --watch --json`. Killed when it is dropped.
pub struct Watcher {
    child: Child,
    reports: Receiver<Value>,
    errors: PathBuf,
}

impl Watcher {
    fn start(unspool: &Unspool) -> Watcher {
        let number = unspool.data.with_extension("errors");
        let errors = (0..).map(|at| number.with_extension(format!("errors-{at}")));
        let errors = errors.into_iter().find(|path| !path.exists()).unwrap();
        let mut command = unspool.command(&["sync", "--watch", "--json"]);
        command.stdout(Stdio::piped()).stderr(File::create(&errors).unwrap());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (send, reports) = channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                // A line cut off by a kill is the last one.
                let Ok(report) = serde_json::from_str(&line) else { break };
                if send.send(report).is_err() {
                    break;
                }
            }
        });
        Watcher { child, reports, errors }
    }

    /// Waits for the next report line.
    pub fn report(&self) -> Value {
        self.reports.recv_timeout(DEADLINE).unwrap_or_else(|_| {
            panic!("the watcher says nothing more; on standard error: {}", self.errors())
        })
    }

    /// Waits until it has read this many further records.
    pub fn take(&self, records: u64) {
        let mut taken = 0;
        while taken < records {
            taken += self.report()["records"].as_u64().unwrap();
        }
        assert_eq!(taken, records, "more records than there are");
    }

    /// True if a report is waiting.
    pub fn has_reported(&self) -> bool {
        self.reports.try_recv().is_ok()
    }

    pub fn errors(&self) -> String {
        fs::read_to_string(&self.errors).unwrap()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its peak memory in bytes, if the system reports it.
    pub fn peak_memory(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).ok()?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        Some(peak.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
    }

    pub fn kill(mut self) -> ExitStatus {
        self.child.kill().unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
