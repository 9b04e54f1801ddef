//! Chats with agents, from the browser (`serve --chat`). The server relays between a page and the
//! host of a chat; hosts are started by the binary, from the local list of agents. A browser never
//! names a program, and a project only out of the archive's or below the configured folders.

mod files;
mod panel;
mod question;
mod relay;
mod start;

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use axum::http::{HeaderMap, StatusCode};
use unspool_live::agents::Choice;
use unspool_live::host::folder::ChatFolders;
use unspool_live::open::ChatOpener;
use unspool_store::store::Store;

use crate::App;
use crate::problem::Problem;

pub use files::files;
pub use relay::serve;
pub use start::{projects, start};

/// What a browser is told that may only read.
pub const NO_DRIVER: &str = "this browser may not drive agents; press Enter in the terminal of \
     `unspool serve --chat` and open the address that it prints within a minute";

/// The name of this surface, in answers and captures.
const SURFACE: &str = "browser";

/// What the binary provides for chats.
pub struct Chats {
    folders: ChatFolders,
    opener: ChatOpener,
    agents: AgentList,
    /// Every folder below one of these may be a project.
    roots: Vec<PathBuf>,
    /// When the last agent was started.
    last_start: Mutex<Option<Instant>>,
}

/// The agents that can be chosen, or why there are none.
pub type AgentList = Box<dyn Fn() -> Result<Vec<Choice>, String> + Send + Sync>;

impl Chats {
    pub fn new(
        folders: ChatFolders,
        opener: ChatOpener,
        agents: AgentList,
        roots: Vec<PathBuf>,
    ) -> Chats {
        Chats { folders, opener, agents, roots, last_start: Mutex::default() }
    }

    /// The agents that can be started now.
    pub fn installed_agents(&self) -> Result<Vec<Choice>, String> {
        let mut agents = (self.agents)()?;
        agents.retain(|agent| agent.program.is_some());
        Ok(agents)
    }
}

/// The chats of a request that may drive.
fn authorized<'a, S: Store>(app: &'a App<S>, headers: &HeaderMap) -> Result<&'a Chats, Problem> {
    let Some(chats) = app.chats.get() else {
        let what =
            "agents cannot be driven from here; start the server with `unspool serve --chat`";
        return Err(Problem::not_found(what));
    };
    if !app.auth.may_drive(headers, None) {
        return Err(Problem::new(StatusCode::FORBIDDEN, NO_DRIVER));
    }
    Ok(chats)
}
