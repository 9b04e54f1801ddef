//! A machine in a temporary folder: a home directory in which agents write, archives beside it, and
//! the real program, run once or with `--watch`.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use unspool_store::database::Database;

use crate::case::root;

/// The longest wait for anything, on any machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// A home directory, and archives beside it.
pub struct Machine(TempDir);

impl Machine {
    pub fn new() -> Machine {
        let machine = Machine(TempDir::new().unwrap());
        fs::create_dir_all(machine.home()).unwrap();
        machine
    }

    pub fn home(&self) -> PathBuf {
        self.0.path().join("home")
    }

    pub fn data(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Copies a fixture to a path in the home directory.
    pub fn put(&self, fixture: &str, path: &str) {
        self.write(path, &recorded(fixture));
    }

    /// Writes a whole file, replacing it.
    pub fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub fn append(&self, path: &str, bytes: &[u8]) {
        let path = self.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(bytes).unwrap();
    }

    /// Keeps the recorder from ending turns whose agent is gone. Some recordings end in the middle
    /// of a turn, and a server would end it while a test looks at it twice.
    pub fn keep_turns_open(&self) {
        self.write(".config/unspool/config.toml", b"idle_after = 1000000000\n");
    }

    /// A command of the program with this home directory.
    pub fn command(&self, data: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_unspool"));
        command.arg("--data").arg(self.data(data)).args(arguments);
        self.set_environment(&mut command);
        command
    }

    pub fn set_environment(&self, command: &mut Command) {
        command
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    }

    pub fn run(&self, data: &str, arguments: &[&str], input: &str) -> Output {
        let mut child = self.command(data, arguments).spawn().unwrap();
        // It may exit before it has read its input.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    #[track_caller]
    pub fn ok(&self, data: &str, arguments: &[&str]) -> String {
        let output = self.run(data, arguments, "");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[track_caller]
    pub fn json(&self, data: &str, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok(data, &[arguments, &["--json"]].concat())).unwrap()
    }

    /// Every session of an archive with its turns, sorted by id. `None` while there is no archive.
    pub fn sessions(&self, data: &str) -> Option<Vec<Value>> {
        let listed = self.run(data, &["list", "--json"], "");
        let listed: Vec<Value> = serde_json::from_slice(&listed.stdout).ok()?;
        let mut ids: Vec<&str> = listed.iter().filter_map(|it| it["id"].as_str()).collect();
        ids.sort_unstable();
        let shown = ids.iter().map(|id| {
            let mut shown = self.json(data, &["show", id]);
            // Record counts and warnings depend on how often a file was rewritten.
            let fields = shown.as_object_mut().unwrap();
            fields.remove("records");
            fields.remove("warnings");
            shown
        });
        Some(shown.collect())
    }
}

/// An archive of these recordings, opened read-only, and its folder.
#[track_caller]
pub fn archive_of(paths: &[PathBuf]) -> (Database, TempDir) {
    let folder = TempDir::new().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_unspool"))
        .arg("--data")
        .arg(folder.path())
        .arg("import")
        .args(paths)
        .env_remove("UNSPOOL_DATA")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (Database::open_to_read(&folder.path().join("unspool.db")).unwrap(), folder)
}

/// A fixture as it was recorded.
pub fn recorded(fixture: &str) -> Vec<u8> {
    fs::read(root().join("fixtures").join(fixture)).unwrap()
}

/// Its lines, each with its end.
pub fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// `sync --watch`, running.
pub struct WatchProcess(Child);

impl WatchProcess {
    pub fn begin(mut command: Command) -> WatchProcess {
        // Its output is not read; a full pipe would block it.
        WatchProcess(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }

    pub fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for WatchProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Polls until the check succeeds. Panics with the last result at the deadline.
#[track_caller]
pub fn until<T: std::fmt::Debug>(what: &str, mut check: impl FnMut() -> Result<(), T>) {
    let begun = Instant::now();
    loop {
        match check() {
            Ok(()) => return,
            Err(last) if begun.elapsed() > DEADLINE => panic!("{what} never came: {last:?}"),
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Copies the files of a folder.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    let files = from.read_dir().unwrap().map(Result::unwrap);
    for entry in files.filter(|entry| entry.path().is_file()) {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}
