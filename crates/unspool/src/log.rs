//! The program's own log, for bug reports: what was synced, written, read and requested, how much of
//! it and how long it took. It has counts, durations and request paths, and no content of sessions.
//! Without `UNSPOOL_LOG` and `--log` nothing is logged.

use std::fs::File;
use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};
use unspool_store::private_file;

/// The environment variable with the filter.
const VARIABLE: &str = "UNSPOOL_LOG";
/// The filter of `--log` without `UNSPOOL_LOG`.
const DEFAULT_FILTER: &str = "info";

/// What stderr shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stderr {
    Lines,
    /// Nothing: the terminal application draws there, and a hook is silent.
    Screen,
}

/// Starts the log: to a file if one is named, otherwise to stderr if `UNSPOOL_LOG` is set.
pub fn start(file: Option<&Path>, stderr: Stderr) -> Result<()> {
    let filter = std::env::var(VARIABLE).ok().filter(|filter| !filter.is_empty());
    match (file, filter) {
        (Some(path), filter) => {
            let targets = parse(filter.as_deref().unwrap_or(DEFAULT_FILTER))?;
            let file =
                open(path).with_context(|| format!("cannot write the log {}", path.display()))?;
            install(targets, fmt::layer().with_writer(file));
        }
        (None, Some(filter)) if stderr == Stderr::Lines => {
            install(parse(&filter)?, fmt::layer().with_writer(io::stderr));
        }
        (None, _) => {}
    }
    Ok(())
}

fn parse(filter: &str) -> Result<Targets> {
    filter.parse().with_context(|| {
        format!(
            "invalid {VARIABLE} `{filter}`: expected a level (error, warn, info, debug, trace) or \
             MODULE=LEVEL, separated by commas"
        )
    })
}

/// Appends: the file holds the runs of a bug in order. Only the user may read it, since it has the
/// paths of projects.
fn open(path: &Path) -> io::Result<File> {
    private_file::options().create(true).append(true).open(path)
}

fn install<W>(
    targets: Targets,
    layer: fmt::Layer<
        tracing_subscriber::Registry,
        fmt::format::DefaultFields,
        fmt::format::Format,
        W,
    >,
) where
    W: for<'w> fmt::MakeWriter<'w> + Send + Sync + 'static,
{
    // The end of a span says how long it took.
    let layer = layer.with_ansi(false).with_span_events(FmtSpan::CLOSE).with_filter(targets);
    // Fails only if there is a subscriber already: this is called once.
    let _ = tracing_subscriber::registry().with(layer).try_init();
}
