//! `unspool chat -p --detach`: the agent goes on in a process of its own.

use std::io::Write;

use anyhow::{Result, bail};
use serde_json::json;
use unspool_live::chat::ChatSpec;
use unspool_live::client::attach;
use unspool_live::protocol::{ChatState, ClientMessage, Command, HostMessage, Outcome, Phase};

use super::headless::BY;
use super::open::start;
use crate::archive::Archive;
use crate::terminal_writer;

/// Starts the host in a process of its own and returns when the agent has the message.
pub(super) fn detach(archive: &Archive, spec: ChatSpec, text: String, json: bool) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (id, state) = runtime.block_on(async {
        let folder = start(archive, spec, ChatState::default()).await?;
        let mut attached = attach(&folder).await?;
        let command = Command::prompt(text);
        attached.commands.send(ClientMessage { number: 0, by: BY.to_owned(), command }).await?;
        let mut fields = attached.state.fields();
        let mut state = attached.state;
        loop {
            match attached.messages.recv().await {
                Some(HostMessage::Changed(changed)) => {
                    fields.extend(changed);
                    state = ChatState::of_fields(fields.clone()).unwrap_or(state);
                }
                Some(HostMessage::Done { outcome: Outcome::Refused(why), .. }) => {
                    let command = Command::End;
                    let end = ClientMessage { number: 0, by: BY.to_owned(), command };
                    let _ = attached.commands.send(end).await;
                    // The connection closes when the agent is gone.
                    while attached.messages.recv().await.is_some() {}
                    bail!("{why}");
                }
                Some(HostMessage::Hello { .. } | HostMessage::Done { .. }) => {}
                None => bail!("the chat ended before the agent had the message"),
            }
            let sent = state.phase == Phase::Running && state.queue.is_empty();
            if sent || state.phase == Phase::Ended || state.last_turn.is_some() {
                break;
            }
        }
        anyhow::Ok((folder.id, state))
    })?;
    if state.phase == Phase::Ended {
        bail!("{}", state.reason.unwrap_or_else(|| "the chat ended".to_owned()));
    }
    if json {
        let session = state.session;
        return super::super::write_json_line(&json!({"chat": id, "agent_session_id": session}));
    }
    let mut out = terminal_writer::stdout();
    writeln!(out, "chat {id}: `unspool chat --list` shows it, `unspool chat --end {id}` ends it")?;
    Ok(out.flush()?)
}
