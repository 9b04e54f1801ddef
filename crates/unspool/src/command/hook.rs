//! `unspool hook`: run by an agent with a payload on standard input. It always returns quickly,
//! prints nothing and succeeds: recording must never break the agent. With `--answer` it then waits
//! for the answer to a question (`hook/answer.rs`); the agent does not wait for it.

mod adapt;
#[cfg(unix)]
mod answer;

use std::io::Read;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use unspool_ingest::hooks::spool::append_payload;
use unspool_ingest::hooks::supported_agents;
use unspool_ingest::process_registry::register_caller;
use unspool_sources::agents::Agent;

use crate::archive::Archive;

/// Record a hook payload from standard input
///
/// `unspool hooks install` configures agents to run this. It returns as soon as the payload is in a
/// file, after a second at most, prints nothing and never fails.
#[derive(Args)]
pub struct Hook {
    #[arg(
        long,
        value_name = "AGENT",
        help = format!("The agent that sends the payload: {}", supported_agents(", "))
    )]
    agent: Option<String>,
    /// The hook event, for agents whose payloads do not name it
    #[arg(long, value_name = "EVENT")]
    event: Option<String>,
    /// Wait until the question of the payload is answered in unspool, and print the answer
    #[arg(long)]
    answer: bool,
    /// Print the adaptations that the session gets, instead of recording the payload
    #[arg(long, conflicts_with = "answer", requires = "agent")]
    adapt: bool,
}

/// The agent waits for us, so neither stalled input nor a stalled disk may keep it. On a busy machine
/// a payload takes longer than usual, and one that is not waited for is lost.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Larger input is not a payload.
const MAX_PAYLOAD_BYTES: u64 = 64 * 1024 * 1024;

impl Hook {
    /// Ignores all errors, because the agent must not see them.
    pub fn run(self, archive: &Archive) {
        let Ok(folder) = archive.folder() else { return };
        if self.adapt {
            let agent = self.agent.unwrap_or_default();
            let data = folder.path().to_owned();
            return adapt::run(data, agent, self.event);
        }
        let (done, wait) = channel();
        let data = folder.clone();
        thread::spawn(move || {
            let mut payload = String::new();
            let read = std::io::stdin().lock().take(MAX_PAYLOAD_BYTES).read_to_string(&mut payload);
            if read.is_err() {
                return;
            }
            let agent = self.agent.or_else(|| agent_of(&payload)).unwrap_or_default();
            let event = self.event.unwrap_or_default();
            let _ = append_payload(&data, &agent, &event, &payload, &now());
            if let Some(session) = session_of(&payload) {
                register_caller(&data, &session);
            }
            let _ = done.send((agent, payload));
        });
        let recorded = wait.recv_timeout(TIMEOUT);
        #[cfg(unix)]
        if let Ok((agent, payload)) = recorded
            && self.answer
        {
            // Whatever goes wrong, the agent's own dialog is there.
            let _ = answer::wait(&folder, &agent, &payload);
        }
        #[cfg(not(unix))]
        drop(recorded);
    }
}

/// The time as the spool has it.
fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// The session that a payload is about, in the spellings of the agents.
fn session_of(payload: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Payload {
        #[serde(alias = "sessionId")]
        session_id: String,
    }
    serde_json::from_str::<Payload>(payload).ok().map(|payload| payload.session_id)
}

fn agent_of(payload: &str) -> Option<String> {
    let agent = Agent::of_payload(&serde_json::from_str(payload).ok()?)?;
    Some(agent.name.to_owned())
}
