//! `unspool chat` without a message: a chat in the terminal application. Also starts the hosts of
//! chats that are opened from there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use unspool_live::chat::{ChatSpec, Policy};
use unspool_live::client::{self, start_detached};
use unspool_live::host::folder::{ChatFolder, StoredChat};
use unspool_live::open::{ChatOpener, ChatRequest, OpenedChat};
use unspool_live::protocol::{ChatState, Phase};
use unspool_model::id::SessionId;
use unspool_store::blocking::block_on;
use unspool_store::store::View;

use super::launch::{Launch, linger, resumed};
use super::{Chat, folders};
use crate::archive::{Archive, find};
use crate::command::terminal;

/// How long a host may take to end its agent.
const END_TIME: Duration = Duration::from_secs(8);

pub(super) fn run(chat: &Chat, archive: &Archive) -> Result<()> {
    if !terminal::is_there() {
        bail!("a chat needs a terminal; send one message with -p TEXT");
    }
    let session = match &chat.resume {
        Some(session) => Some(find(&archive.view()?, session)?.summary.session.id),
        None => None,
    };
    // Whatever is wrong with the command line is said before the terminal is taken over.
    let folder = match session {
        Some(session) => resume(archive, &chat.launch(Policy::Ask)?, session)?,
        None => {
            let spec = chat.launch(Policy::Ask)?.spec(archive)?;
            start_now(archive, spec, ChatState::default())?
        }
    };
    terminal::open_chat(archive, folder.id, session)
}

/// Finds and starts hosts for the terminal application and the web application.
pub fn opener(archive: &Archive) -> ChatOpener {
    let archive = archive.clone();
    // How chats were started: the files of one that has ended may be gone.
    let specs: Mutex<HashMap<String, ChatSpec>> = Mutex::default();
    Arc::new(move |request| {
        let open = || {
            let all = folders(&archive.folder()?);
            let folder = match request {
                ChatRequest::New { agent, project } => {
                    let launch = Launch {
                        agent: Some(agent),
                        project: Some(project),
                        linger: Some(linger()?),
                        ..Launch::default()
                    };
                    start_now(&archive, launch.spec(&archive)?, ChatState::default())?
                }
                ChatRequest::Attach(chat) => {
                    let found = all.find(&chat);
                    found.ok_or_else(|| anyhow!("the chat has ended"))?
                }
                ChatRequest::Find(session) => {
                    let found = chats_of(&archive, session)?.into_iter();
                    let mut live = found.filter(|(folder, stored)| runs(folder, stored));
                    match live.next() {
                        Some((folder, _)) => folder,
                        None => {
                            let stored = find(&archive.view()?, &session.to_string())?;
                            let head = stored.summary.session;
                            let (agent, session) = (head.agent, head.agent_session_id);
                            return Ok(OpenedChat::Session { folders: all, agent, session });
                        }
                    }
                }
                ChatRequest::Resume(session) => {
                    let launch = Launch {
                        resume: Some(session.to_string()),
                        linger: Some(linger()?),
                        ..Launch::default()
                    };
                    resume(&archive, &launch, session)?
                }
                ChatRequest::Restart { chat, session, id } => {
                    let held = specs.lock().unwrap_or_else(PoisonError::into_inner);
                    let spec = held.get(&chat).cloned();
                    drop(held);
                    restart(&archive, &chat, spec, session, id)?
                }
            };
            if let Some(stored) = folder.read() {
                let mut held = specs.lock().unwrap_or_else(PoisonError::into_inner);
                held.insert(folder.id.clone(), stored.spec);
            }
            Ok::<OpenedChat, anyhow::Error>(OpenedChat::Chat(all, folder))
        };
        open().map_err(|error| format!("{error:#}"))
    })
}

/// The chats of a session that have files. Hooks that wait for an answer are none.
fn chats_of(archive: &Archive, session: SessionId) -> Result<Vec<(ChatFolder, StoredChat)>> {
    Ok(client::chats_of(&folders(&archive.folder()?), session))
}

/// The chat of a session: the one that runs, or a new one that goes on with the session.
fn resume(archive: &Archive, launch: &Launch, session: SessionId) -> Result<ChatFolder> {
    let mut kept = ChatState::default();
    let mut left = Vec::new();
    for (folder, stored) in chats_of(archive, session)? {
        if runs(&folder, &stored) {
            return Ok(folder);
        }
        // One that has not ended is about to start.
        let StoredChat { state, .. } = stored;
        if state.phase == Phase::Ended
            && let Some(lock) = folder.lock()?
        {
            keep(&mut kept, state);
            left.push((folder, lock));
        }
    }
    let spec = launch.spec(archive)?;
    let folder = start_now(archive, spec, kept)?;
    // Its queue and drafts are in the new chat.
    left.iter().for_each(|(folder, _lock)| drop(folder.remove()));
    Ok(folder)
}

/// True if a chat can be connected to. Waits for the end of one that is ending.
fn runs(folder: &ChatFolder, stored: &StoredChat) -> bool {
    let until = Instant::now() + END_TIME;
    while folder.is_live() {
        if stored.state.phase != Phase::Ended || Instant::now() > until {
            return true;
        }
        thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Adds the queue and the draft of a chat that has ended.
fn keep(kept: &mut ChatState, mut ended: ChatState) {
    let first = kept.queue.iter().map(|message| message.id + 1).max().unwrap_or(0);
    for (nth, message) in (first..).zip(&mut ended.queue) {
        message.id = nth;
    }
    kept.queue.append(&mut ended.queue);
    if !kept.draft.is_empty() && !ended.draft.is_empty() {
        kept.draft.push('\n');
    }
    kept.draft.push_str(&ended.draft);
}

/// Starts the agent of a chat again that has ended, unless somebody else did.
fn restart(
    archive: &Archive,
    chat: &str,
    spec: Option<ChatSpec>,
    session: Option<String>,
    id: SessionId,
) -> Result<ChatFolder> {
    let mut chats = chats_of(archive, id)?.into_iter();
    if let Some((folder, _)) = chats.find(|(folder, stored)| runs(folder, stored)) {
        return Ok(folder);
    }
    let old = folders(&archive.folder()?).find(chat);
    let stored = old.as_ref().and_then(ChatFolder::read);
    // One without a session is not among those of the session.
    if let (Some(old), Some(stored)) = (&old, &stored) {
        runs(old, stored);
    }
    let kept = stored.as_ref().map(|stored| stored.state.clone()).unwrap_or_default();
    let spec = spec.or(stored.map(|stored| stored.spec));
    let mut spec =
        spec.context("how this chat was started is not known; open its session again")?;
    // A session without a turn is in no log: nothing could be resumed.
    let turns = match &session {
        Some(own) => has_turns(archive, own)?,
        None => false,
    };
    spec.resume = session.filter(|_| turns);
    spec.prompts = match &spec.resume {
        // Equal prompts are told apart by their count, which has grown.
        Some(own) => resumed(archive, own, true)?.prompts,
        None => Default::default(),
    };
    let folder = start_now(archive, spec, kept)?;
    if let Some(old) = old.filter(|old| !old.is_live()) {
        let _ = old.remove();
    }
    Ok(folder)
}

fn has_turns(archive: &Archive, session: &str) -> Result<bool> {
    let view = archive.view()?;
    Ok(match find(&view, session) {
        Ok(stored) => !block_on(view.sizes(stored.row))?.is_empty(),
        Err(_) => false,
    })
}

/// Starts a host in a process of its own.
pub(super) async fn start(
    archive: &Archive,
    spec: ChatSpec,
    kept: ChatState,
) -> Result<ChatFolder> {
    let data = archive.folder()?;
    data.create().with_context(|| format!("cannot use {}", data.path().display()))?;
    let arguments = ["--data".to_owned(), data.path().display().to_string()];
    let program = std::env::current_exe()?;
    Ok(start_detached(&folders(&data), program, &arguments, spec, kept).await?)
}

fn start_now(archive: &Archive, spec: ChatSpec, kept: ChatState) -> Result<ChatFolder> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(start(archive, spec, kept))
}
