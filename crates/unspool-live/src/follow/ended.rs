//! The chat that drove the agent and has ended. Queue and draft are in its files, for whoever goes on
//! with the session; what is typed now is kept there too.

use std::time::Duration;

use tokio::time::sleep;

use crate::chat::ChatSpec;
use crate::host::folder::{ChatFolder, ChatFolders, StoredChat};
use crate::protocol::{ChatState, Outcome, Phase};

/// How often, and how many times, the end of its host is waited for.
const WAIT: Duration = Duration::from_millis(20);
const WAITS: usize = 100;

pub(super) struct EndedChat {
    id: String,
    spec: ChatSpec,
    pub state: ChatState,
}

impl EndedChat {
    /// How a chat ended whose connection is gone.
    pub fn of(id: String, spec: ChatSpec, mut state: ChatState) -> EndedChat {
        if state.phase != Phase::Ended {
            let lost = "the connection to the agent was lost";
            (state.phase, state.reason) = (Phase::Ended, Some(lost.to_owned()));
        }
        EndedChat { id, spec, state }
    }

    /// The chat of these files, if a message or a draft of it is left.
    pub fn left(folder: &ChatFolder, stored: StoredChat) -> Option<EndedChat> {
        let StoredChat { spec, state, .. } = stored;
        let is_empty = state.queue.is_empty() && state.draft.is_empty();
        (!is_empty).then(|| EndedChat { id: folder.id.clone(), spec, state })
    }

    /// Keeps what is typed. The files of a chat without queue and draft are gone.
    pub async fn keep_draft(&mut self, folders: &ChatFolders, text: String) -> Outcome {
        match self.try_keep(folders, text).await {
            Ok(()) => Outcome::Accepted,
            Err(error) => Outcome::Refused(format!("the draft cannot be kept: {error}")),
        }
    }

    async fn try_keep(&mut self, folders: &ChatFolders, text: String) -> std::io::Result<()> {
        self.state.draft = text;
        let is_empty = self.state.queue.is_empty() && self.state.draft.is_empty();
        let mut waits = 0;
        let (folder, _lock) = loop {
            // Its host removes it when it ends.
            let folder = match folders.find(&self.id) {
                Some(folder) => folder,
                None if is_empty => return Ok(()),
                None => folders.create()?,
            };
            match folder.lock() {
                Ok(Some(lock)) => break (folder, lock),
                Ok(None) | Err(_) if waits < WAITS => waits += 1,
                Ok(None) => return Err(std::io::Error::other("the chat has not ended yet")),
                Err(error) => return Err(error),
            }
            sleep(WAIT).await;
        };
        self.id.clone_from(&folder.id);
        if is_empty {
            return folder.remove();
        }
        let (spec, state) = (self.spec.clone(), self.state.clone());
        folder.write(&StoredChat { spec, state, ..StoredChat::default() })
    }
}
