//! `unspool ship`: sends this machine's sessions to a server.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;
use unspool_ingest::lock::DataFolder;
use unspool_ingest::ship::{Client, Collector, Policy, Round};
use unspool_model::id::sha256;
use unspool_query::processes::machine_name;
use unspool_server::{is_name, random_secret};
use unspool_store::replace_file::replace_file;
use unspool_view::lines::make_visible;

use crate::archive::Archive;
use crate::config;
use crate::progress::size;

/// The variable with the token.
const TOKEN_VARIABLE: &str = "UNSPOOL_SHIP_TOKEN";
/// Our file with the key of redaction tags.
const KEY_FILE: &str = "ship-key";

/// Send this machine's sessions to a server of your team, as agents write them
///
/// Only sessions of the projects that you name are sent, with secrets redacted as in exports. Each
/// replaced secret has a tag, which is the same wherever it occurs; the key of the tags stays here.
/// The logs of the agents are the queue: what could not be sent is sent later, as long as its log
/// exists. Runs until it is interrupted. Whoever runs the server makes the token with `unspool team
/// token MEMBER`. This machine's own archive is not touched.
#[derive(Args)]
pub struct Ship {
    /// The address of the server, such as https://unspool.example.org
    #[arg(long, value_name = "URL", required_unless_present = "dry_run")]
    to: Option<String>,
    /// The token; better in the variable UNSPOOL_SHIP_TOKEN, because other users see arguments
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Send the sessions of this project: a folder, or the address of a git remote without scheme,
    /// such as github.com/acme/app or github.com/acme/*. May be given several times
    #[arg(long, value_name = "PROJECT")]
    project: Vec<String>,
    /// Send all sessions, also those whose project is not known
    #[arg(long, conflicts_with = "project")]
    all: bool,
    /// The name of this machine, as the server shows it [default: its host name and a few digits]
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// Send what is there and exit
    #[arg(long)]
    once: bool,
    /// Show what would be sent and which kinds of secrets were found in it; send nothing
    #[arg(long, conflicts_with = "once")]
    dry_run: bool,
    /// With --dry-run or --once: the report as JSON
    #[arg(long)]
    json: bool,
}

/// A file that would be sent.
#[derive(Serialize)]
struct ShippedFile {
    file: PathBuf,
    bytes: u64,
    secrets: BTreeMap<String, u64>,
}

impl Ship {
    pub fn run(self, archive: &Archive) -> Result<()> {
        if self.project.is_empty() && !self.all {
            bail!(
                "nothing is sent unless you name it: give --project FOLDER or --project \
                 github.com/acme/*, or --all; add --dry-run to see what that would be"
            );
        }
        // The key and the settings are of this machine, wherever its archive is.
        let folder = archive.in_file().folder()?;
        folder.create().context("cannot use the data folder")?;
        let policy = if self.all { Policy::everything() } else { self.policy()? };
        let rules = config::redaction()?;
        let environment = config::environment(&folder)?;
        let own_folder = folder.path().to_owned();
        let key = key(&folder)?;
        let mut collector = Collector::new(environment, own_folder, policy, rules, key.clone());
        if self.dry_run {
            return self.survey(&mut collector);
        }
        let client = self.client(&key)?;
        if self.once {
            let round = collector.send_all(&client)?;
            return self.report(&round);
        }
        let error = collector.run(&client, |outcome| match outcome {
            Ok(round) => tell(&round),
            Err(error) => stderr_line!("unspool: {}", make_visible(&error.to_string())),
        });
        Err(error.into())
    }

    fn policy(&self) -> Result<Policy> {
        let mut patterns = Vec::new();
        for project in &self.project {
            let folder = Path::new(project);
            // A remote has a host with a dot and is no folder here.
            let is_folder = folder.is_absolute() || project.starts_with('.') || folder.is_dir();
            patterns.push(match is_folder {
                true => std::path::absolute(folder)?.to_string_lossy().into_owned(),
                false if project.contains('/') => project.clone(),
                false => bail!(
                    "there is no folder {project}; give a folder, or a git remote such as \
                     github.com/acme/app"
                ),
            });
        }
        Ok(Policy::projects(&patterns))
    }

    fn client(&self, key: &str) -> Result<Client> {
        let Some(server) = &self.to else { bail!("give the address of the server with --to URL") };
        if !server.starts_with("http://") && !server.starts_with("https://") {
            bail!("{server} is no address of a server; it begins with https:// or http://");
        }
        let variable = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
        let Some(token) = self.token.clone().or(variable) else {
            bail!(
                "a token is needed, in the variable {TOKEN_VARIABLE}; whoever runs the server makes \
                 one with `unspool team token MEMBER`"
            );
        };
        let machine = match &self.machine {
            Some(machine) => machine.clone(),
            None => {
                let name = machine_name().unwrap_or_default();
                let name: String =
                    name.chars().filter(|c| is_name(&c.to_string())).take(40).collect();
                // Many machines have the name that they came with.
                let id: String =
                    sha256(format!("machine\0{key}").as_bytes()).chars().take(6).collect();
                [name.as_str(), &id].join("-").trim_start_matches('-').to_owned()
            }
        };
        if !is_name(&machine) {
            bail!("give this machine a name of letters, digits, . - _ with --machine NAME");
        }
        Ok(Client::new(server, token, machine))
    }

    fn survey(&self, collector: &mut Collector) -> Result<()> {
        let found = collector.survey();
        let withheld = collector.withheld();
        let mut out = io::stdout().lock();
        let files = found.into_iter().map(|(file, round)| ShippedFile {
            file,
            bytes: round.bytes,
            secrets: round.secrets,
        });
        let files: Vec<ShippedFile> = files.collect();
        if self.json {
            serde_json::to_writer(&mut out, &files)?;
            writeln!(out)?;
            return Ok(());
        }
        for ShippedFile { file, bytes, secrets } in &files {
            let secrets = list(secrets);
            let secrets =
                if secrets.is_empty() { secrets } else { format!("  redacted: {secrets}") };
            let file = make_visible(&file.to_string_lossy()).into_owned();
            writeln!(out, "{:>9}  {file}{secrets}", size(*bytes))?;
        }
        let bytes = files.iter().map(|file| file.bytes).sum();
        stderr_line!(
            "unspool: {} files with {} would be sent; {withheld} of other projects stay here",
            files.len(),
            size(bytes)
        );
        Ok(())
    }

    fn report(&self, round: &Round) -> Result<()> {
        if self.json {
            let mut out = io::stdout().lock();
            serde_json::to_writer(&mut out, round)?;
            writeln!(out)?;
            return Ok(());
        }
        tell(round);
        if round.files == 0 && round.problems.is_empty() {
            stderr_line!(
                "unspool: nothing new; {} files of other projects stay here",
                round.withheld
            );
        }
        Ok(())
    }
}

/// Says what was sent, on a terminal or if something went wrong.
fn tell(round: &Round) {
    for problem in &round.problems {
        stderr_line!("unspool: {}", make_visible(problem));
    }
    if round.files == 0 || !io::stderr().is_terminal() {
        return;
    }
    let secrets = list(&round.secrets);
    let secrets = if secrets.is_empty() { secrets } else { format!("; redacted: {secrets}") };
    stderr_line!("unspool: sent {} of {} files{secrets}", size(round.bytes), round.files);
}

/// `2 aws-key, 1 password`.
fn list(secrets: &BTreeMap<String, u64>) -> String {
    let each: Vec<String> = secrets.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    each.join(", ")
}

/// The key of this machine's redaction tags. It never leaves.
fn key(folder: &DataFolder) -> Result<Arc<str>> {
    let path = folder.path().join(KEY_FILE);
    match std::fs::read_to_string(&path) {
        Ok(key) if key.trim().len() >= 32 => return Ok(key.trim().into()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", path.display()));
        }
    }
    let key = random_secret().context("the system provides no random bytes")?;
    replace_file(&path, key.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(key.into())
}
