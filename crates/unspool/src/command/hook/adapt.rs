//! `unspool hook --adapt`: prints what a session gets. It reads one small file and no database, and
//! whatever goes wrong, it prints nothing: the agent then works as if it were not there.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use unspool_query::adaptations::{Delivery, HookPayload, State, hook_answer, state_file};

/// The agent waits for us. Stalled input or a stalled disk may not keep it.
const TIMEOUT: Duration = Duration::from_millis(500);
/// What a payload says first is what is needed of it; a larger one is none.
const MAX_PAYLOAD_BYTES: u64 = 8 * 1024 * 1024;

pub fn run(data: PathBuf, agent: String, event: Option<String>) {
    let (done, wait) = channel();
    let folder = data.clone();
    thread::spawn(move || {
        let _ = done.send(answer(&folder, &agent, event.as_deref()));
    });
    let Ok(Some((printed, delivery))) = wait.recv_timeout(TIMEOUT) else { return };
    let mut out = std::io::stdout().lock();
    if out.write_all(printed.as_bytes()).and_then(|()| out.flush()).is_ok() {
        // Only what was printed was delivered.
        let _ = delivery.append(&data);
    }
}

fn answer(data: &Path, agent: &str, event: Option<&str>) -> Option<(String, Delivery)> {
    let mut text = String::new();
    std::io::stdin().lock().take(MAX_PAYLOAD_BYTES).read_to_string(&mut text).ok()?;
    let payload: HookPayload = serde_json::from_str(&text).ok()?;
    let state = State::read(&state_file(data)).ok()??;
    hook_answer(&state, agent, event, &payload, Timestamp::now())
}
