//! A server of the team in a folder of its own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::compare::{self, Exports};

/// Clock ticks a second, in `/proc`.
const TICKS: f64 = 100.0;

pub struct Server {
    program: PathBuf,
    folder: PathBuf,
    store: Option<String>,
    port: u16,
    child: Option<Child>,
    pub token: String,
    /// The most memory that was seen, in kB, and the processor time of processes that were killed.
    peak: u64,
    seconds: f64,
    kills: u32,
}

impl Server {
    pub fn begin(program: &Path, folder: &Path, store: Option<&str>) -> Result<Server> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let mut server = Server {
            program: program.canonicalize().context("no such program")?,
            folder: folder.to_owned(),
            store: store.map(str::to_owned),
            port,
            child: None,
            token: String::new(),
            peak: 0,
            seconds: 0.0,
            kills: 0,
        };
        fs::create_dir_all(folder.join("office/.config/unspool"))?;
        // Recordings end in the middle of turns.
        let settings = folder.join("office/.config/unspool/config.toml");
        fs::write(settings, "idle_after = 1000000000\n")?;
        let output = server.command(&["team", "token", "fleet"]).output()?;
        if !output.status.success() {
            bail!("no token: {}", String::from_utf8_lossy(&output.stderr));
        }
        server.token = String::from_utf8(output.stdout)?.trim().to_owned();
        server.serve()?;
        Ok(server)
    }

    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--data").arg(self.folder.join("team"));
        if let Some(store) = &self.store {
            command.args(["--store", store]);
        }
        command.args(arguments).env("HOME", self.folder.join("office"));
        command.env_remove("CLAUDE_CONFIG_DIR").env_remove("XDG_DATA_HOME");
        command
    }

    fn serve(&mut self) -> Result<()> {
        let mut command = self.command(&["serve", "--port", &self.port.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let mut line = String::new();
        let out = child.stdout.take().context("no output")?;
        BufReader::new(out).read_line(&mut line)?;
        self.child = Some(child);
        if !line.starts_with("http://") {
            bail!("the server does not start: {line}");
        }
        Ok(())
    }

    /// Notes how much memory and time it has used.
    pub fn look(&mut self) {
        self.peak = self.peak.max(self.memory().unwrap_or_default());
    }

    /// The most memory that the process had, in kB.
    fn memory(&self) -> Option<u64> {
        let id = self.child.as_ref()?.id();
        let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.split_whitespace().next()?.parse().ok()
    }

    fn processor_seconds(&self) -> Option<f64> {
        let id = self.child.as_ref()?.id();
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let (_, fields) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks: f64 =
            fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
        Some(ticks / TICKS)
    }

    /// Kills it with SIGKILL and starts it again.
    pub fn kill_and_begin(&mut self) -> Result<()> {
        self.look();
        self.seconds += self.processor_seconds().unwrap_or_default();
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        self.kills += 1;
        self.serve()
    }

    pub fn usage(&mut self) -> String {
        self.look();
        let seconds = self.seconds + self.processor_seconds().unwrap_or_default();
        let kills = match self.kills {
            0 => String::new(),
            kills => format!(", killed {kills} times"),
        };
        format!("at most {:.0} MB, {seconds:.1} s of processor time{kills}", self.peak as f64 / 1e3)
    }

    pub fn exports(&self) -> Result<Exports> {
        let mut check = self.command(&["db", "check"]);
        let output = check.stdout(Stdio::piped()).stderr(Stdio::piped()).output()?;
        if !output.status.success() {
            bail!("db check: {}", String::from_utf8_lossy(&output.stderr));
        }
        compare::exports(self.command(&["export", "--all", "--to", "jsonl"]))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
