//! `unspool completions`: the completion script of a shell, made from the command definitions.

use std::io::{self, Write};

use anyhow::Result;
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

use crate::Cli;

/// Print the completions of a shell
///
/// The packages of Unspool install them. To load them by hand:
///
///   bash:        unspool completions bash > ~/.local/share/bash-completion/completions/unspool
///   zsh:         unspool completions zsh > FOLDER/_unspool, with FOLDER in $fpath
///   fish:        unspool completions fish > ~/.config/fish/completions/unspool.fish
///   PowerShell:  unspool completions powershell | Out-String | Invoke-Expression
///   elvish:      eval (unspool completions elvish | slurp)
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// The program without the commands that only Unspool itself starts: some generators offer those.
fn visible_commands() -> Command {
    let whole = Cli::command();
    let visible = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    Command::new("unspool")
        .version(env!("CARGO_PKG_VERSION"))
        .args(whole.get_arguments().cloned())
        .subcommands(visible)
}

impl Completions {
    pub fn run(self) -> Result<()> {
        // Into memory first: the generator panics if it cannot write, for example to `head`.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut visible_commands(), "unspool", &mut script);
        let mut out = io::stdout().lock();
        out.write_all(&script)?;
        Ok(out.flush()?)
    }
}
