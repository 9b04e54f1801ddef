//! `unspool export`: sessions in another format.

mod report;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use unspool_export::export;
use unspool_export::project::{ALL, Options, Projection, Sdk, TurnRange, WriteMethod};
use unspool_model::id::SessionId;
use unspool_redact::{RedactionReport, Rules};
use unspool_store::blocking::block_on;
use unspool_store::database::DatabaseView;
use unspool_store::replace_file::FileReplacement;
use unspool_store::store::{SessionFilter, StoredSession, View};

use crate::archive::{Archive, find};
use crate::{config, terminal_writer};

/// Export sessions in another format
#[derive(Args)]
pub struct Export {
    /// Sessions of the archive: their ids, unique prefixes of them, or the agents' own ids
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    sessions: Vec<String>,
    /// Export every session of the archive
    #[arg(long)]
    all: bool,
    /// The output format
    #[arg(long, value_name = "FORMAT", value_parser = projection())]
    to: &'static Projection,
    /// Write to this file instead of standard output; several sessions go into a folder
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The AI SDK version that will read it: 7 adds fields that older versions reject
    #[arg(long, value_name = "VERSION", value_parser = ["5", "6", "7"])]
    sdk: Option<String>,
    /// Include your notes and bookmarks: in markdown, html, text, json and jsonl
    #[arg(long)]
    notes: bool,
    /// Only these turns: 3, or 3-7. In markdown, html and text
    #[arg(long, value_name = "TURNS", value_parser = turns, conflicts_with = "all")]
    turns: Option<TurnRange>,
    /// Do not redact secrets; asks for confirmation
    #[arg(long, conflicts_with = "dry_run")]
    no_redact: bool,
    /// Do not ask for confirmation
    #[arg(long, requires = "no_redact")]
    yes: bool,
    /// Write nothing; list what would be redacted, and where
    #[arg(long, conflicts_with = "output")]
    dry_run: bool,
}

fn projection() -> impl TypedValueParser<Value = &'static Projection> {
    let values = ALL.iter().map(|one| PossibleValue::new(one.name).help(one.about));
    let values = PossibleValuesParser::new(values);
    values.try_map(|name| Projection::named(&name).ok_or("unknown format"))
}

/// `3`, or `3-7`.
pub fn turns(text: &str) -> Result<TurnRange, String> {
    TurnRange::parse(text)
        .ok_or_else(|| format!("expected the numbers of turns, like 3 or 3-7, and not “{text}”"))
}

impl Export {
    pub fn run(self, archive: &Archive) -> Result<()> {
        let view = archive.view()?;
        let sessions = match self.all {
            true => block_on(view.sessions(SessionFilter::default()))?,
            false => self.sessions.iter().map(|id| find(&view, id)).collect::<Result<Vec<_>>>()?,
        };
        if sessions.is_empty() {
            bail!("there is nothing to export: the archive has no sessions");
        }
        self.check(&sessions)?;
        if self.no_redact && !self.yes {
            confirm()?;
        }
        let rules = if self.no_redact { None } else { Some(config::redaction()?) };
        let sdk = if self.sdk.as_deref() == Some("7") { Sdk::Seven } else { Sdk::Common };
        let prices = config::prices()?;
        let mut exporter = Exporter {
            view: &view,
            projection: self.to,
            options: Options {
                sdk,
                prices,
                notes: self.notes,
                turns: self.turns,
                ..Options::default()
            },
            rules,
            replaced: Vec::new(),
        };
        if self.dry_run {
            if matches!(self.to.method, WriteMethod::Stored) {
                let name = self.to.name;
                bail!("{name} is the lossless format and is never redacted; leave out --dry-run");
            }
            exporter.all(&sessions, &mut io::sink())?;
            return report::list(&exporter.replaced);
        }
        // Only JSON lines can be concatenated; other formats are one file per session. --all always
        // writes a folder, even if there is only one session today.
        let together =
            matches!(self.to.method, WriteMethod::Stored) || sessions.len() == 1 && !self.all;
        match self.output {
            Some(path) if together && !path.is_dir() => {
                exporter.file(&path, &sessions)?;
                stderr_line!("unspool: {} in {}", count_phrase(sessions.len()), path.display());
            }
            Some(folder) => {
                let context = || format!("cannot create the folder {}", folder.display());
                fs::create_dir_all(&folder).with_context(context)?;
                for stored in &sessions {
                    let (id, form) = (stored.summary.session.id, self.to.extension);
                    exporter
                        .file(&folder.join(format!("{id}.{form}")), std::slice::from_ref(stored))?;
                }
                stderr_line!("unspool: {} in {}", count_phrase(sessions.len()), folder.display());
            }
            None if together => {
                let mut out = terminal_writer::stdout();
                exporter.all(&sessions, &mut out)?;
                out.flush()?;
            }
            None => bail!(
                "{} writes one file per session; choose the folder with -o FOLDER",
                self.to.name
            ),
        }
        report::warn(&exporter.replaced);
        Ok(())
    }
}

impl Export {
    /// Refuses what the format has no place for.
    fn check(&self, sessions: &[StoredSession]) -> Result<()> {
        // The AI SDK refuses a list without messages.
        if let [stored] = sessions
            && self.to.name == "uimessage"
            && stored.summary.turns == 0
        {
            bail!(
                "there is nothing to export: session {} has no messages",
                stored.summary.session.id
            );
        }
        if self.notes && !self.to.has_notes {
            bail!("{} has no place for notes; leave out --notes", self.to.name);
        }
        if self.turns.is_some() && !self.to.has_turns {
            let name = self.to.name;
            bail!("{name} has whole sessions; leave out --turns, or choose markdown, html or text");
        }
        Ok(())
    }
}

/// Confirms an export without redaction. Without a terminal, --yes is required.
fn confirm() -> Result<()> {
    if !io::stdin().is_terminal() {
        bail!("secrets would be written in plain text; add --yes to confirm");
    }
    eprint!("Secrets will be written in plain text. Continue? [y/N] ");
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => bail!("nothing was written; omit --no-redact to redact secrets"),
    }
}

fn count_phrase(sessions: usize) -> String {
    if sessions == 1 { "1 session".to_owned() } else { format!("{sessions} sessions") }
}

struct Exporter<'a> {
    view: &'a DatabaseView,
    projection: &'static Projection,
    options: Options,
    rules: Option<Rules>,
    /// The redaction report of each session.
    replaced: Vec<(SessionId, RedactionReport)>,
}

impl Exporter<'_> {
    fn all(&mut self, sessions: &[StoredSession], out: &mut dyn Write) -> Result<()> {
        for stored in sessions {
            let (projection, options) = (self.projection, &self.options);
            let rules = self.rules.as_ref();
            let report = export::write(self.view, stored, projection, options, rules, out)?;
            self.replaced.push((stored.summary.session.id, report));
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, sessions: &[StoredSession]) -> Result<()> {
        let context = || format!("cannot write {}", path.display());
        let mut out = FileReplacement::begin(path).with_context(context)?;
        self.all(sessions, &mut out)?;
        out.commit().with_context(context)
    }
}
