//! `serve --chat`: what the web application needs to drive agents.

use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::Arc;
use std::thread;

use anyhow::Result;
use unspool_server::App;
use unspool_store::database::Database;

use crate::archive::Archive;

/// Lets browsers drive the agents of the local list.
#[cfg(unix)]
pub fn allow(app: &App<Database>, archive: &Archive) -> Result<()> {
    use crate::command::chat;
    let folders = chat::folders(&archive.folder()?);
    let agents = Box::new(|| chat::agents().map_err(|error| format!("{error:#}")));
    let roots = crate::config::Config::load()?.chat.roots;
    app.chats(unspool_server::chat::Chats::new(folders, chat::opener(archive), agents, roots));
    Ok(())
}

#[cfg(not(unix))]
pub fn allow(_: &App<Database>, _: &Archive) -> Result<()> {
    anyhow::bail!("agents cannot be driven on this system yet; leave out --chat")
}

/// Prints another address each time that Enter is pressed: each lets one browser drive.
pub fn print_addresses(app: &Arc<App<Database>>) {
    if !io::stdin().is_terminal() {
        return;
    }
    stderr_line!(
        "unspool: the address lets one browser drive agents, within a minute; press Enter for another"
    );
    let app = Arc::clone(app);
    thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let printed = line.and_then(|_| writeln!(io::stdout(), "{}", app.auth.address()));
            if printed.is_err() {
                return;
            }
        }
    });
}
