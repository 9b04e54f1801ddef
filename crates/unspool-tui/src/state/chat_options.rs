//! The agent's modes and models.

// Each list handles some of the keys and ignores the rest.
#![allow(clippy::wildcard_enum_match_arm)]

use crossterm::event::KeyEvent;
use unspool_live::protocol::{AgentOption, Command};

use super::{Effect, Overlay, State};
use crate::keys::Action;

impl State {
    /// Shift-Tab: the next mode of the agent.
    pub(super) fn next_mode(&mut self) -> Vec<Effect> {
        let Some(mode) = self.chat.as_ref().and_then(|chat| chat.option("mode")) else {
            self.set_status("this agent has no modes");
            return Vec::new();
        };
        let at = mode.choices.iter().position(|choice| choice.value == mode.value);
        let next = at.map_or(0, |at| (at + 1) % mode.choices.len().max(1));
        let Some(choice) = mode.choices.get(next) else { return Vec::new() };
        let (option, value) = (mode.id.clone(), choice.value.clone());
        let name = choice.name.clone();
        self.set_status(format!("mode: {name}"));
        self.send_command(Command::Set { option, value })
    }

    /// `/mode` and `/model`: sets by name, or shows the choices.
    pub(super) fn choose_option(&mut self, category: &str, name: Option<&str>) -> Vec<Effect> {
        let option = self.chat.as_ref().and_then(|chat| chat.option(category)).cloned();
        let Some(option) = option else {
            self.set_status(format!("this agent offers no {category}s"));
            return Vec::new();
        };
        let Some(name) = name else {
            let current = option.choices.iter().position(|choice| choice.value == option.value);
            self.overlay = Some(Overlay::Option { at: current.unwrap_or(0), option });
            return Vec::new();
        };
        let lower = name.to_lowercase();
        let named = option.choices.iter().find(|choice| {
            choice.name.to_lowercase() == lower || choice.value.as_str() == Some(name)
        });
        match named {
            Some(choice) => {
                let value = choice.value.clone();
                self.send_command(Command::Set { option: option.id, value })
            }
            None => {
                self.set_status(format!("✕ there is no {category} {name}; /{category} lists them"));
                Vec::new()
            }
        }
    }

    /// A key while the choices of an option are shown.
    pub(super) fn press_in_option(
        &mut self,
        option: AgentOption,
        at: usize,
        key: KeyEvent,
    ) -> Vec<Effect> {
        let last = option.choices.len().saturating_sub(1);
        let at = match self.keys.action(key) {
            Some(Action::Down) => (at + 1).min(last),
            Some(Action::Up) => at.saturating_sub(1),
            Some(Action::Open) => {
                let Some(choice) = option.choices.get(at) else { return Vec::new() };
                let value = choice.value.clone();
                return self.send_command(Command::Set { option: option.id, value });
            }
            _ => return Vec::new(),
        };
        self.overlay = Some(Overlay::Option { option, at });
        Vec::new()
    }
}
