//! The password for access from other machines. Only its hash is stored.

use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};

use anyhow::{Context, Result, anyhow, bail};
use unspool_ingest::lock::DataFolder;
use unspool_server::{hash_password, is_password_hash};

use super::secret;

/// Shorter passwords are too easy to guess.
const MIN_PASSWORD_CHARS: usize = 8;

/// Reads a new password and stores its hash.
pub fn set(folder: &DataFolder) -> Result<()> {
    let password = if io::stdin().is_terminal() { ask_twice()? } else { line()? };
    if password.chars().count() < MIN_PASSWORD_CHARS {
        bail!("the password must have at least {MIN_PASSWORD_CHARS} characters");
    }
    let hash = hash_password(&password).ok_or_else(|| anyhow!("the system has no random bytes"))?;
    let context = || format!("cannot use {}", folder.path().display());
    folder.create().with_context(context)?;
    let path = folder.path().join("password");
    secret::write_private(&path, &hash)?;
    stderr_line!("unspool: the password is set; its hash is in {}", path.display());
    // Whoever logged in with the old password has to log in again.
    super::revoke_logins(folder)
}

/// Loads the stored hash, if there is one.
pub fn load_hash(folder: &DataFolder) -> Result<Option<String>> {
    let path = folder.path().join("password");
    let hash = match fs::read_to_string(&path) {
        Ok(hash) => hash.trim().to_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", path.display()));
        }
    };
    if !is_password_hash(&hash) {
        bail!("{} is damaged; set the password again with --set-password", path.display());
    }
    Ok(Some(hash))
}

fn line() -> Result<String> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).context("cannot read the password")?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

fn ask_twice() -> Result<String> {
    let password = ask("New password: ")?;
    if ask("Again: ")? != password {
        bail!("the passwords differ; nothing was changed");
    }
    Ok(password)
}

/// Prompts on the terminal without echo.
fn ask(what: &str) -> Result<String> {
    eprint!("{what}");
    io::stderr().flush()?;
    let shown = Hidden::begin();
    let answer = line();
    drop(shown);
    eprintln!();
    answer
}

/// Turns terminal echo off until dropped.
#[cfg(unix)]
struct Hidden(Option<rustix::termios::Termios>);

#[cfg(unix)]
impl Hidden {
    fn begin() -> Hidden {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let Ok(before) = tcgetattr(io::stdin()) else { return Hidden(None) };
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        let hidden = tcsetattr(io::stdin(), OptionalActions::Flush, &silent).is_ok();
        Hidden(hidden.then_some(before))
    }
}

#[cfg(unix)]
impl Drop for Hidden {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        if let Some(before) = &self.0 {
            // If this fails, the user can run `stty echo`.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

#[cfg(not(unix))]
struct Hidden;

#[cfg(not(unix))]
impl Hidden {
    fn begin() -> Hidden {
        Hidden
    }
}
