//! `unspool chat --agents`, `--list` and `--end`.

use std::io::Write;
use std::time::Duration;

use anyhow::{Result, bail};
use unspool_live::client::{self, ListedChat, attach};
use unspool_live::host::folder::ChatFolder;
use unspool_live::protocol::{ClientMessage, Command, HostMessage, Phase};
use unspool_model::id::SessionId;
use unspool_view::lines::make_visible;

use super::{folders, launch};
use crate::archive::Archive;
use crate::terminal_writer;

/// How long a host may take to end its agent: it waits for it, then kills it.
const END_TIME: Duration = Duration::from_secs(10);

pub fn agents(json: bool) -> Result<()> {
    let agents = launch::agents()?;
    if json {
        return super::super::write_json(&agents);
    }
    let mut out = terminal_writer::stdout();
    let width = agents.iter().map(|agent| agent.name.len()).max().unwrap_or(0);
    for agent in &agents {
        let how = match (&agent.program, &agent.install) {
            (Some(program), _) => program.display().to_string(),
            (None, Some(install)) => format!("not found; {install}"),
            (None, None) => format!("{} was not found", agent.command[0]),
        };
        writeln!(out, "{:width$}  {}", make_visible(&agent.name), make_visible(&how))?;
    }
    Ok(out.flush()?)
}

pub fn list(archive: &Archive, json: bool) -> Result<()> {
    let chats = client::list(&folders(&archive.folder()?));
    if json {
        return super::super::write_json(&chats);
    }
    let mut out = terminal_writer::stdout();
    if chats.is_empty() {
        writeln!(out, "no chat runs; `unspool chat -p TEXT --detach` starts one")?;
    }
    for chat in &chats {
        let state = &chat.state;
        let session = state.session.as_deref().unwrap_or("no session");
        let line = format!(
            "{}  {}  {}  {}  {session}",
            chat.id,
            describe(chat),
            state.agent,
            state.folder.display()
        );
        writeln!(out, "{}", make_visible(&line))?;
    }
    Ok(out.flush()?)
}

fn describe(chat: &ListedChat) -> String {
    let questions = chat.state.questions.len();
    let base = match (chat.live, chat.state.phase) {
        (false, _) => "ended",
        (true, Phase::Running) if chat.state.answers_only => "asks in its own terminal",
        (true, Phase::Starting) => "starting",
        (true, Phase::Idle) => "idle",
        (true, Phase::Running | Phase::Cancelling) if questions > 0 => "waiting for you",
        (true, Phase::Running) => "working",
        (true, Phase::Cancelling) => "stopping",
        (true, Phase::Ended) => "ending",
    };
    match chat.state.queue.len() {
        0 => base.to_owned(),
        queued => format!("{base}, {queued} queued"),
    }
}

/// Ends a chat, and waits until its processes are gone.
pub fn end(archive: &Archive, chat: &str) -> Result<()> {
    let folders = folders(&archive.folder()?);
    let found = folders.all().into_iter().filter(|folder| folder.id.starts_with(chat));
    let found: Vec<_> = found.collect();
    let folder = match found.as_slice() {
        [folder] => folder,
        [] => bail!("there is no chat {chat}; `unspool chat --list` shows those that run"),
        [_, ..] => bail!("{chat} begins the ids of several chats; give more of the id"),
    };
    let is_question = folder.read().is_some_and(|stored| stored.state.answers_only);
    if is_question && folder.is_live() {
        bail!(
            "{} is a question of an agent that runs in its own terminal; answer it, or end the \
             agent there",
            folder.id
        );
    }
    end_folder(folder)
}

/// Ends the chats of a session that is to be deleted, and removes their files: they have its prompts.
pub fn forget(archive: &Archive, session: SessionId) -> Result<()> {
    for (folder, _) in client::chats_of(&folders(&archive.folder()?), session) {
        end_folder(&folder)?;
        // A host removes its own.
        let _ = folder.remove();
    }
    Ok(())
}

fn end_folder(folder: &ChatFolder) -> Result<()> {
    if !folder.is_live() {
        if let Some(agent) = folder.read().and_then(|stored| stored.agent) {
            unspool_live::host::process::kill_left_processes(agent, &folder.id);
        }
        return Ok(folder.remove()?);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut attached = attach(folder).await?;
        let message =
            ClientMessage { number: 0, by: "command line".to_owned(), command: Command::End };
        let sent = attached.commands.send(message).await;
        if sent.is_err() {
            bail!("the chat ended by itself");
        }
        let gone = async {
            while let Some(message) = attached.messages.recv().await {
                match message {
                    HostMessage::Hello { .. }
                    | HostMessage::Changed(_)
                    | HostMessage::Done { .. } => {}
                }
            }
        };
        if tokio::time::timeout(END_TIME, gone).await.is_err() {
            bail!("the chat did not end in {} seconds; try again", END_TIME.as_secs());
        }
        Ok(())
    })
}
