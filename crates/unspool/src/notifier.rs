//! `--notify COMMAND`: runs a command for each alert, with the alert as JSON on its standard input.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustc_hash::FxHashSet;
use unspool_model::id::SessionId;
use unspool_query::activity::{ActiveSession, recent_sessions};
use unspool_query::attention::{Alert, Attention};
use unspool_store::blocking::block_on;
use unspool_store::database::DatabaseView;

/// How often sessions are looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Runs in the background until the process ends.
pub fn spawn(view: DatabaseView, command: String) {
    thread::spawn(move || {
        let mut attention = Attention::default();
        let mut live: FxHashSet<SessionId> = FxHashSet::default();
        loop {
            // If the archive cannot be read now, the next look tries again.
            if let Ok(sessions) = block_on(recent_sessions(&view, &live)) {
                let is_live = |session: &&ActiveSession| session.activity.is_some();
                live = sessions.iter().filter(is_live).map(|one| one.seen().session).collect();
                let now = jiff::Timestamp::now();
                let alerts = attention.update(sessions.iter().map(ActiveSession::seen), now);
                for alert in alerts {
                    run(&command, &alert);
                }
            }
            thread::sleep(LOOK_INTERVAL);
        }
    });
}

/// Starts the command and does not wait for it.
fn run(command: &str, alert: &Alert) {
    let mut shell = Command::new(if cfg!(windows) { "cmd" } else { "sh" });
    shell.args([if cfg!(windows) { "/C" } else { "-c" }, command]);
    // What it prints must not mix with our own output.
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::inherit());
    let mut child = match shell.spawn() {
        Ok(child) => child,
        Err(error) => {
            tracing::warn!(%error, command, "cannot run the command of --notify");
            return;
        }
    };
    let payload = serde_json::to_vec(alert).unwrap_or_default();
    thread::spawn(move || {
        // A command that ends without reading its input is fine.
        if let Some(mut stdin) = child.stdin.take() {
            let _ = stdin.write_all(&payload);
        }
        let _ = child.wait();
    });
}
