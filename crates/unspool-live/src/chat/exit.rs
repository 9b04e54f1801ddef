//! The end of the agent's process.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Chat, Effect};
use crate::protocol::Phase;

/// How the agent's process ended.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Exit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// The last lines that it wrote to standard error.
    pub stderr: String,
}

impl Chat {
    pub(super) fn exited(&mut self, exit: &Exit) {
        let note = json!({"what": "exit", "code": exit.code, "signal": exit.signal.map(signal_name),
            "stderr": exit.stderr});
        self.effects.push(Effect::Note(note));
        self.stopping = true;
        let how = match (exit.code, exit.signal) {
            (Some(code), _) => format!("with code {code}"),
            (None, Some(signal)) => format!("by {}", signal_name(signal)),
            (None, None) => "without a code".to_owned(),
        };
        let when = match self.state.phase {
            Phase::Starting => " while it started",
            Phase::Running | Phase::Cancelling => " during the turn",
            Phase::Idle | Phase::Ended => "",
        };
        let stderr = exit.stderr.trim_end();
        let said = if stderr.is_empty() { String::new() } else { format!("\n{stderr}") };
        self.end(format!("the agent ended {how}{when}{said}"));
    }
}

/// The name of a signal that ends processes.
fn signal_name(signal: i32) -> String {
    match signal {
        1 => "SIGHUP".to_owned(),
        2 => "SIGINT".to_owned(),
        6 => "SIGABRT".to_owned(),
        9 => "SIGKILL".to_owned(),
        11 => "SIGSEGV".to_owned(),
        13 => "SIGPIPE".to_owned(),
        15 => "SIGTERM".to_owned(),
        other => format!("signal {other}"),
    }
}
