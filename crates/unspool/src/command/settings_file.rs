//! Shows a planned change of an agent's settings, and makes it: for `hooks` and `mcp install`.

use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::Result;
use unspool_ingest::settings::SettingsPlan;
use unspool_view::lines::make_visible;
use unspool_view::present::changes::unified_hunks;
use unspool_view::present::diff::between;

/// Shows the change, or makes it with `yes`. `nothing`: what to say if there is nothing to do. True
/// if the settings are as planned.
pub fn apply(plan: &SettingsPlan, yes: bool, nothing: &str) -> Result<bool> {
    if plan.changes_nothing() {
        writeln!(io::stdout(), "nothing to do: {nothing}")?;
        return Ok(true);
    }
    if yes {
        make(plan)?;
        return Ok(true);
    }
    show(plan)?;
    stderr_line!(
        "unspool: nothing was written; run the command again with --yes to make this change"
    );
    Ok(false)
}

/// The same, but asks on a terminal.
pub fn ask_and_apply(plan: &SettingsPlan, yes: bool, nothing: &str) -> Result<bool> {
    if yes || plan.changes_nothing() || !io::stdin().is_terminal() {
        return apply(plan, yes, nothing);
    }
    show(plan)?;
    eprint!("Make this change in {}? [y/N] ", make_visible(&plan.path.to_string_lossy()));
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    if !matches!(answer.trim(), "y" | "Y" | "yes") {
        stderr_line!("unspool: nothing was written");
        return Ok(false);
    }
    make(plan)?;
    Ok(true)
}

fn show(plan: &SettingsPlan) -> Result<()> {
    let path = plan.path.display();
    let [before, after] =
        [&plan.before, &plan.after].map(|text| text.as_deref().unwrap_or_default());
    let diff = unified_hunks(&between(None, before, after, Some(1)));
    for line in format!("--- {path}\n+++ {path}\n{diff}").lines() {
        writeln!(io::stdout(), "{}", make_visible(line))?;
    }
    Ok(())
}

fn make(plan: &SettingsPlan) -> Result<()> {
    let backup = plan.apply()?;
    writeln!(io::stdout(), "wrote {}", plan.path.display())?;
    if let Some(backup) = backup {
        writeln!(io::stdout(), "the previous settings are in {}", backup.display())?;
    }
    Ok(())
}

/// The place in PATH that leads to this program, if there is one: it stays when a package manager
/// installs another version.
pub fn own_program() -> String {
    let Ok(here) = std::env::current_exe().and_then(|path| path.canonicalize()) else {
        return "unspool".to_owned();
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut named = std::env::split_paths(&path)
        .map(|folder| folder.join("unspool"))
        .filter(|path| path.is_absolute() && path.exists());
    let first = named.next().filter(|path| path.canonicalize().is_ok_and(|path| path == here));
    first.unwrap_or(here).to_string_lossy().into_owned()
}
