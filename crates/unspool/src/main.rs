//! The `unspool` command: one file per command, wiring only.

mod command;
mod paint;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Shows what an AI agent did, in the order in which it happened.
#[derive(Parser)]
#[command(name = "unspool", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Show(command::show::Show),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Some(Command::Show(show)) => show.run(),
        None => Cli::command().print_help().map_err(Into::into),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads us has seen enough.
        Err(error) if command::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // A message may hold a file's name, and that may hold anything.
            for line in format!("unspool: {error:#}").lines() {
                eprintln!("{}", unspool_core::lines::visible(line));
            }
            ExitCode::FAILURE
        }
    }
}
