//! `unspool export`: sessions in another form.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use unspool_engine::exchange::{self, FORMATS, Format};
use unspool_store::blocking::wait;
use unspool_store::contract::{SessionFilter, Store};

use crate::archive::{Archive, find};

/// Write sessions in another form
#[derive(Args)]
pub struct Export {
    /// Sessions: their ids, unique starts of them, or the agents' own ids
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    sessions: Vec<String>,
    /// Every session of the archive
    #[arg(long)]
    all: bool,
    /// The form: jsonl has everything that is stored, and `unspool import` takes it back
    #[arg(long, value_name = "FORMAT", value_parser = format())]
    to: Format,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn format() -> impl TypedValueParser<Value = Format> {
    let known = PossibleValuesParser::new(FORMATS);
    known.try_map(|name| Format::of_name(&name).ok_or("there is no such form"))
}

impl Export {
    pub fn run(self, archive: &Archive) -> Result<()> {
        let store = archive.read()?;
        let sessions = match self.all {
            true => wait(store.sessions(SessionFilter::default()))?,
            false => self.sessions.iter().map(|id| find(&store, id)).collect::<Result<Vec<_>>>()?,
        };
        if sessions.is_empty() {
            bail!("there is nothing to export: the archive has no sessions");
        }
        match self.output {
            Some(path) => {
                // Written beside it first: half an export must not look like one.
                let partial = path.with_extension("partial");
                let context = || format!("cannot write {}", path.display());
                let file = File::create(&partial).with_context(context)?;
                let mut out = BufWriter::new(file);
                for stored in &sessions {
                    exchange::write(&store, stored, self.to, &mut out)?;
                }
                out.into_inner().map_err(|error| error.into_error())?.sync_all()?;
                std::fs::rename(&partial, &path).with_context(context)?;
                eprintln!("unspool: {} sessions are in {}", sessions.len(), path.display());
            }
            None => {
                let mut out = BufWriter::new(io::stdout().lock());
                for stored in &sessions {
                    exchange::write(&store, stored, self.to, &mut out)?;
                }
                out.flush()?;
            }
        }
        Ok(())
    }
}
