//! A hook of an agent in its own terminal that waits until somebody answers. A hook that prints
//! nothing leaves the agent's dialog as it is.

pub mod end;
pub mod question;
pub mod watch;

use std::future::Future;
use std::io;

use crate::host::folder::{ChatFolders, StoredProcess};
use crate::question_host::{self, now};
use question::{Decision, HookQuestion};
use watch::Watch;

/// What to wait for.
pub struct Wait {
    pub folders: ChatFolders,
    pub agent: &'static str,
    pub question: HookQuestion,
    pub watch: Watch,
    /// The agent's process: it and what it started must not answer.
    pub caller: Option<StoredProcess>,
}

/// An answer that was accepted.
pub struct Accepted<'a> {
    pub decision: Decision,
    /// The surface.
    pub by: &'a str,
}

/// Waits for an answer, which `deliver` hands to the agent, or until the question is over without
/// one. `terminated` ends it at once.
pub async fn wait(
    spec: Wait,
    terminated: impl Future<Output = ()>,
    mut deliver: impl FnMut(&Accepted<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let Wait { folders, agent, question, mut watch, caller } = spec;
    let (project, open) = (question.folder.clone(), question.open(now()));
    let spec = question_host::Wait { folders, agent, project, question: open, caller };
    question_host::wait(
        spec,
        || watch.poll(),
        terminated,
        |given| {
            let decision = question.decide(given.answer, given.words);
            deliver(&Accepted { decision, by: given.by })
        },
    )
    .await
}

#[cfg(test)]
#[path = "answer_hook_tests.rs"]
mod tests;
