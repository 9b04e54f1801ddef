//! The `unspool` command: one file per command, wiring only.

/// Writes a line to stderr. Unlike `eprintln!` it does not panic if the reader has closed the pipe,
/// as `head` does in `unspool … 2>&1 | head`.
macro_rules! stderr_line {
    ($($text:tt)*) => {{
        let _ = std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("{}\n", format_args!($($text)*)),
        );
    }};
}

mod archive;
mod artifacts;
mod chart;
mod command;
mod config;
mod demo;
mod log;
mod notifier;
mod paint;
mod progress;
mod table;
mod terminal_writer;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use unspool_store::postgres::Address;

/// An import makes and drops many small values on two threads. The allocator of glibc took a quarter
/// more time for it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Shows what an AI agent did, in the order in which it happened.
#[derive(Parser)]
#[command(name = "unspool", version, about)]
struct Cli {
    /// Folder of the archive and of Unspool's other files [env: UNSPOOL_DATA]
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Use the archive in this PostgreSQL database instead of the one in the folder, such as
    /// postgres://ann@db.example.org/unspool [env: UNSPOOL_STORE]
    #[arg(long, global = true, value_name = "URL")]
    store: Option<String>,
    /// Read from a running `unspool serve` on this or another machine; give the address it prints
    #[arg(long, value_name = "URL")]
    connect: Option<String>,
    /// Show recorded demo sessions from a separate archive instead of this machine's
    #[arg(long, conflicts_with = "connect")]
    demo: bool,
    /// Append Unspool's own log to this file; UNSPOOL_LOG sets what is logged, such as `debug`
    #[arg(long, global = true, value_name = "FILE")]
    log: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Serve(command::serve::Serve),
    Sync(command::sync::Sync),
    Import(command::import::Import),
    #[cfg(unix)]
    Chat(command::chat::Chat),
    #[cfg(unix)]
    Acp(command::acp::Acp),
    #[cfg(unix)]
    Host(command::host::Host),
    #[cfg(unix)]
    Run(command::run::Run),
    List(command::list::List),
    Show(command::show::Show),
    Changes(command::changes::Changes),
    Compare(command::compare::Compare),
    Blame(command::blame::Blame),
    Commits(command::commits::Commits),
    Log(command::commits::Log),
    Prompt(command::prompt::Prompt),
    Reflect(command::reflect::Reflect),
    Adapt(command::adapt::Adapt),
    Replay(command::terminal::Replay),
    Search(command::search::Search),
    Stats(command::stats::Stats),
    Export(command::export::Export),
    Share(command::share::Share),
    Ship(command::ship::Ship),
    Team(command::team::Team),
    Note(command::note::Note),
    Tag(command::tag::Tag),
    Rename(command::tag::Rename),
    Delete(command::delete::Delete),
    Db(command::db::Db),
    Doctor(command::doctor::Doctor),
    Mcp(command::mcp::Mcp),
    Hooks(command::hooks::Hooks),
    Hook(command::hook::Hook),
    Completions(command::completions::Completions),
    #[command(name = "man")]
    Manual(command::manual::Manual),
}

/// Why a command does not work with a server elsewhere.
fn not_over_connect(command: Option<&Command>) -> &'static str {
    match command {
        #[cfg(unix)]
        Some(Command::Chat(_)) => {
            "--connect shows sessions and drives no agents: open the address of `unspool serve \
             --chat` in a browser, or run `unspool chat` on that machine, for example over ssh"
        }
        _ => "--connect works only with the terminal application and with replay",
    }
}

const NO_COMMAND_IN_DEMO: &str = "--demo works only with the terminal application; `unspool serve \
    --demo` shows the demo in the browser";

fn main() -> ExitCode {
    let Cli { data, store, connect, demo, log, command } = Cli::parse();
    let reads = matches!(command, None | Some(Command::Replay(_)));
    if connect.is_some() && !reads {
        refuse(not_over_connect(command.as_ref()));
    }
    if demo && command.is_some() {
        refuse(NO_COMMAND_IN_DEMO);
    }
    let is_hook = matches!(command, Some(Command::Hook(_)));
    let stderr = if reads || is_hook { log::Stderr::Screen } else { log::Stderr::Lines };
    match log::start(log.as_deref(), stderr) {
        // A hook never fails: it runs without a log.
        Err(error) if !is_hook => return fail(&error),
        Ok(()) | Err(_) => {}
    }
    let archive = match archive_of(data, store.filter(|_| !is_hook), is_hook) {
        Ok(archive) => archive,
        Err(error) => return fail(&error),
    };
    let outcome = match command {
        Some(Command::Serve(serve)) => serve.run(&archive),
        Some(Command::Sync(sync)) => sync.run(&archive),
        Some(Command::Import(import)) => import.run(&archive),
        #[cfg(unix)]
        Some(Command::Chat(chat)) => chat.run(&archive),
        #[cfg(unix)]
        Some(Command::Acp(acp)) => acp.run(&archive),
        #[cfg(unix)]
        Some(Command::Host(host)) => host.run(&archive),
        #[cfg(unix)]
        Some(Command::Run(run)) => run.run(&archive),
        Some(Command::List(list)) => list.run(&archive),
        Some(Command::Show(show)) => show.run(&archive),
        Some(Command::Changes(changes)) => changes.run(&archive),
        Some(Command::Compare(compare)) => compare.run(&archive),
        Some(Command::Blame(blame)) => blame.run(&archive),
        Some(Command::Commits(commits)) => commits.run(&archive),
        Some(Command::Log(log)) => log.run(&archive),
        Some(Command::Prompt(prompt)) => prompt.run(&archive),
        Some(Command::Reflect(reflect)) => reflect.run(&archive),
        Some(Command::Adapt(adapt)) => adapt.run(&archive),
        Some(Command::Replay(replay)) => replay.run(&archive, connect.as_deref()),
        Some(Command::Search(search)) => search.run(&archive),
        Some(Command::Stats(stats)) => stats.run(&archive),
        Some(Command::Export(export)) => export.run(&archive),
        Some(Command::Share(share)) => share.run(&archive),
        Some(Command::Ship(ship)) => ship.run(&archive),
        Some(Command::Team(team)) => team.run(&archive),
        Some(Command::Note(note)) => note.run(&archive),
        Some(Command::Tag(tag)) => tag.run(&archive),
        Some(Command::Rename(rename)) => rename.run(&archive),
        Some(Command::Delete(delete)) => delete.run(&archive),
        Some(Command::Db(db)) => db.run(&archive),
        Some(Command::Doctor(doctor)) => doctor.run(&archive, log.as_deref()),
        Some(Command::Mcp(mcp)) => mcp.run(&archive),
        Some(Command::Hooks(hooks)) => hooks.run(&archive),
        Some(Command::Hook(hook)) => {
            hook.run(&archive);
            // Do not wait for a thread that may still be reading stdin.
            return ExitCode::SUCCESS;
        }
        Some(Command::Completions(completions)) => completions.run(),
        Some(Command::Manual(manual)) => manual.run(),
        None if connect.is_some() => {
            command::terminal::connect(connect.as_deref().unwrap_or_default(), None)
        }
        None if demo => command::terminal::open_demo(&archive),
        None if command::terminal::is_there() => command::terminal::open(&archive, None),
        None => Cli::command().print_help().map_err(Into::into),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of our output has closed the pipe.
        Err(error) if command::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// Ends with an error of usage.
fn refuse(what: &str) -> ! {
    Cli::command().error(clap::error::ErrorKind::ArgumentConflict, what).exit()
}

/// The archive that the options or the environment name. The variables are no settings of the
/// options: clap would repeat them in the usage line of every error.
fn archive_of(
    data: Option<PathBuf>,
    store: Option<String>,
    is_hook: bool,
) -> anyhow::Result<archive::Archive> {
    let data = data.or_else(|| {
        std::env::var_os("UNSPOOL_DATA").filter(|folder| !folder.is_empty()).map(PathBuf::from)
    });
    // A hook never fails, and has nothing to do with an archive.
    let named = || std::env::var("UNSPOOL_STORE").ok().filter(|_| !is_hook);
    let store = store.or_else(named).filter(|url| !url.is_empty());
    let store = store.map(|url| url.parse::<Address>()).transpose()?;
    Ok(archive::open(data, store))
}

/// Prints an error. It may contain file names, and those may contain control characters.
fn fail(error: &anyhow::Error) -> ExitCode {
    for line in format!("unspool: {error:#}").lines() {
        stderr_line!("{}", unspool_view::lines::make_visible(line));
    }
    ExitCode::FAILURE
}
