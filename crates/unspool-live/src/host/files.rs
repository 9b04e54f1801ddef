//! The files of a running chat: the lock of its session, its state, and which process runs it.

use std::fs;

use serde_json::json;

use super::Host;
use super::folder::StoredChat;
use crate::chat::Input;
use crate::protocol::{ChatState, Phase};

impl Host {
    /// Takes the lock of the session as soon as it has an id.
    pub(super) fn claim_session(&mut self) {
        let state = &self.chat.state;
        let Some(session) = state.session.clone() else { return };
        if self.published.0.session.as_ref() == Some(&session) && self.session_lock.is_some() {
            return;
        }
        match self.folders.lock_session(&state.agent, &session) {
            Ok(Some(lock)) => self.session_lock = Some(lock),
            Ok(None) if state.phase != Phase::Ended => {
                let now = self.now();
                let why = "another chat drives this session; `unspool chat --list` shows it";
                let effects = self.chat.take(Input::Failed(why.to_owned()), now);
                self.execute(effects, now);
            }
            // Locks may be unsupported; the session then has whoever comes.
            Ok(None) | Err(_) => {}
        }
    }

    pub(super) fn store(&self) {
        let stored = StoredChat {
            spec: self.chat.spec().clone(),
            state: self.chat.state.clone(),
            host: Some(std::process::id()),
            agent: self.stored_agent,
        };
        // A folder that cannot be written costs a restart its queue, and the chat nothing.
        let _ = self.folder.write(&stored);
        self.register();
    }

    /// Says which process runs the session, for views that show whether it lives.
    pub(super) fn register(&self) {
        let state = &self.chat.state;
        let Some(session) = &state.session else { return };
        let status = match (state.phase, state.questions.is_empty()) {
            (Phase::Starting | Phase::Idle | Phase::Ended, _) => "idle",
            (Phase::Running | Phase::Cancelling, true) => "busy",
            (Phase::Running | Phase::Cancelling, false) => "waiting",
        };
        let id = std::process::id();
        let entry = json!({"pid": id, "sessionId": session, "status": status});
        let path = self.folders.processes.join(format!("{id}.json"));
        if fs::create_dir_all(&self.folders.processes).is_ok() {
            let _ = fs::write(path, entry.to_string());
        }
    }

    /// Leaves no files that nobody needs.
    pub(super) fn finish(mut self) -> ChatState {
        self.flush();
        let path = self.folders.processes.join(format!("{}.json", std::process::id()));
        let _ = fs::remove_file(path);
        let state = self.chat.state.clone();
        if state.queue.is_empty() && state.draft.is_empty() {
            let _ = self.folder.remove();
        }
        state
    }
}
