//! `unspool man`: man pages in roff, one per command and sub-command, made from the command
//! definitions.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;

use crate::Cli;

/// Print the man page of a command, or write all of them
///
/// `unspool man show | man -l -` shows the page of `unspool show`. The packages of Unspool install
/// all pages, so that `man unspool-show` finds it.
#[derive(Args)]
pub struct Manual {
    /// The command, such as `show` or `db check`; without it the page of unspool itself
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    command: Vec<String>,
    /// Write the pages of all commands into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Manual {
    pub fn run(self) -> Result<()> {
        let mut program = without_help(Cli::command());
        // Gives each sub-command its full name, such as `unspool-db-check`.
        program.build();
        if let Some(folder) = &self.out {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create the folder {}", folder.display()))?;
            return write_pages(&program, folder);
        }
        let mut page = Vec::new();
        Man::new(find(&program, &self.command)?.clone()).render(&mut page)?;
        let mut out = io::stdout().lock();
        out.write_all(&page)?;
        Ok(out.flush()?)
    }
}

/// Without the `help` commands, which repeat every page.
fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

fn find<'a>(program: &'a Command, names: &[String]) -> Result<&'a Command> {
    let mut command = program;
    for name in names {
        command = match command.find_subcommand(name) {
            Some(command) => command,
            None => bail!("{} has no command `{name}`; see `{0} --help`", full_name(command)),
        };
    }
    Ok(command)
}

fn full_name(command: &Command) -> String {
    command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned()
}

/// The page of a command and those of its sub-commands.
fn write_pages(command: &Command, folder: &Path) -> Result<()> {
    let man = Man::new(command.clone());
    let path = folder.join(man.get_filename());
    man.generate_to(folder).with_context(|| format!("cannot write {}", path.display()))?;
    command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .try_for_each(|command| write_pages(command, folder))
}
