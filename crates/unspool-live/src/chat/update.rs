//! `session/update`: most of it is for the archive. The chat reads what clients need beside the
//! transcript.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Chat;
use crate::protocol::{PlanEntry, SlashCommand};

/// The most entries of a list that an agent may send.
pub(super) const MAX_LISTED: usize = 300;
/// Longer labels and descriptions are cut: the state goes to every client with each change of it.
const MAX_LABEL: usize = 1000;
/// How many calls of a turn are remembered.
const MAX_CALLS: usize = 10_000;
/// A longer id or kind of a call is not remembered.
const MAX_ID: usize = 1000;

#[derive(Deserialize)]
struct Update<'a> {
    #[serde(borrow)]
    update: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    #[serde(default)]
    session_update: String,
    #[serde(default)]
    tool_call_id: Option<String>,
    #[serde(default)]
    kind: Option<String>,
}

impl Chat {
    pub(super) fn update(&mut self, params: &str) {
        let update = serde_json::from_str::<Update<'_>>(params);
        let Ok(update) = update.map(|update| update.update.get()) else {
            self.state.junk += 1;
            return;
        };
        let Ok(head) = serde_json::from_str::<Head>(update) else { return };
        let whole = || serde_json::from_str::<Value>(update).unwrap_or_default();
        match head.session_update.as_str() {
            "tool_call" | "tool_call_update" => {
                if let (Some(id), Some(kind)) = (head.tool_call_id, head.kind)
                    && self.call_kinds.len() < MAX_CALLS
                    && id.len() + kind.len() <= MAX_ID
                {
                    self.call_kinds.insert(id, kind);
                }
            }
            "plan" => self.state.plan = plan(&whole()),
            "available_commands_update" => self.state.commands = commands(&whole()),
            "current_mode_update" => self.mode_changed(&whole()),
            "config_option_update" => self.options_changed(&whole()),
            _ => {}
        }
    }
}

/// A text for people, cut if it is too long.
pub fn label(text: &str) -> String {
    cut(text, MAX_LABEL)
}

/// The beginning of a text in this many bytes, with a mark where it is cut.
pub fn cut(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let mut end = bytes;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

fn plan(update: &Value) -> Vec<PlanEntry> {
    let entries = update["entries"].as_array().into_iter().flatten().take(MAX_LISTED);
    let text = |entry: &Value, name: &str| label(entry[name].as_str().unwrap_or_default());
    entries
        .map(|entry| PlanEntry { text: text(entry, "content"), status: text(entry, "status") })
        .collect()
}

fn commands(update: &Value) -> Vec<SlashCommand> {
    let commands = update["availableCommands"].as_array().into_iter().flatten().take(MAX_LISTED);
    let text = |command: &Value, name: &str| command[name].as_str().map(label);
    commands
        .filter_map(|command| {
            let description = text(command, "description").unwrap_or_default();
            Some(SlashCommand { name: text(command, "name")?, description })
        })
        .collect()
}
