//! What the agent lets its user set: modes, models and other options. The user names them by name,
//! the wire has ids; some agents use addresses as ids.

use serde_json::{Value, json};

use super::update::{MAX_LISTED, label};
use super::{Chat, Sent};
use crate::outgoing;
use crate::protocol::{AgentOption, OptionChoice, Phase, Setter};
use crate::wire::RpcError;

/// The most options of an agent.
const MAX_OPTIONS: usize = 20;
/// A larger option is left out: the state goes to clients in one message.
const MAX_OPTION_BYTES: usize = 256 * 1024;
/// A longer value is no name of a mode or model.
const MAX_VALUE: usize = 2000;

impl Chat {
    /// The options in the reply that opens a session.
    pub(super) fn read_options(&mut self, reply: &Value) {
        let mut options = config_options(&reply["configOptions"]);
        let has = |options: &[AgentOption], category: &str| {
            options.iter().any(|option| option.category == category)
        };
        if !has(&options, "mode") {
            options.extend(mode_option(&reply["modes"]));
        }
        if !has(&options, "model") {
            options.extend(model_option(&reply["models"]));
        }
        options.retain(is_short);
        self.state.options = options;
    }

    /// The agent reports all of its options anew.
    pub(super) fn options_changed(&mut self, update: &Value) {
        let mut new = config_options(&update["configOptions"]);
        new.retain(is_short);
        if new.is_empty() {
            return;
        }
        self.state.options.retain(|option| {
            option.setter != Setter::Option
                && new.iter().all(|other| other.category != option.category)
        });
        self.state.options.splice(..0, new);
    }

    pub(super) fn mode_changed(&mut self, update: &Value) {
        let mode = update["currentModeId"].clone();
        let held = self.state.options.iter_mut().find(|option| option.category == "mode");
        let is_name = mode.as_str().is_some_and(|name| name.len() <= MAX_VALUE);
        if let (Some(option), true) = (held, is_name) {
            option.value = mode;
        }
    }

    /// Sets an option to a value that the agent offers.
    pub(super) fn set(&mut self, option: &str, value: &Value) -> Result<(), String> {
        let known = self.state.options.iter().position(|held| held.id == option);
        let Some(at) = known else { return Err(format!("the agent has no option `{option}`")) };
        let held = &self.state.options[at];
        let offered = match held.choices.as_slice() {
            [] => value.is_boolean(),
            choices => choices.iter().any(|choice| choice.value == *value),
        };
        if !offered {
            return Err(format!("{} cannot be {value}", held.name));
        }
        self.send_option(at, value.clone(), false);
        Ok(())
    }

    /// Sets the option of a category to the choice with this name or id.
    pub(super) fn set_by_name(&mut self, category: &str, name: &str) -> Result<(), String> {
        let at = self.state.options.iter().position(|option| option.category == category);
        let Some(at) = at else {
            return Err(format!("the agent offers no {category}s; leave out --{category}"));
        };
        let choices = &self.state.options[at].choices;
        let lower = name.to_lowercase();
        let is_it = |choice: &&OptionChoice| {
            let id = choice.value.as_str().unwrap_or_default();
            let last = id.rsplit(['#', '/']).next().unwrap_or_default();
            id == name || last == name || choice.name.to_lowercase() == lower
        };
        let Some(value) = choices.iter().find(is_it).map(|choice| choice.value.clone()) else {
            let names: Vec<&str> = choices.iter().map(|choice| choice.name.as_str()).collect();
            return Err(format!(
                "the agent has no {category} “{name}”; it has {}",
                names.join(", ")
            ));
        };
        if self.state.options[at].value != value {
            self.send_option(at, value, true);
        }
        Ok(())
    }

    fn send_option(&mut self, at: usize, value: Value, required: bool) {
        let Some(session) = self.state.session.clone() else { return };
        let held = &mut self.state.options[at];
        let (option, setter) = (held.id.clone(), held.setter);
        let before = std::mem::replace(&mut held.value, value.clone());
        let id = self.request(Sent::Set { option: option.clone(), before, required });
        let text = value.as_str().unwrap_or_default();
        self.send(&match setter {
            Setter::Option => outgoing::set_option(&id, &session, &option, &value),
            Setter::Mode => outgoing::set_mode(&id, &session, text),
            Setter::Model => outgoing::set_model(&id, &session, text),
        });
    }

    pub(super) fn option_set(
        &mut self,
        option: &str,
        before: Value,
        required: bool,
        result: Result<String, RpcError>,
        now: u64,
    ) {
        match result {
            Ok(reply) => {
                let reply: Value = serde_json::from_str(&reply).unwrap_or_default();
                self.options_changed(&reply);
                if self.state.phase == Phase::Idle && !self.waits_for_setting() {
                    self.deadline = None;
                }
                self.send_next(now);
            }
            Err(error) => {
                let held = self.state.options.iter_mut().find(|held| held.id == option);
                let name = held.map_or_else(
                    || option.to_owned(),
                    |held| {
                        held.value = before;
                        held.name.clone()
                    },
                );
                let why = format!("the agent did not set {name}: {}", error.message);
                if required {
                    return self.end(why);
                }
                self.state.notice = Some(why);
            }
        }
    }

    /// True while the reply to a setting is missing that a prompt must wait for.
    pub(super) fn waits_for_setting(&self) -> bool {
        self.requests.values().any(|sent| matches!(sent, Sent::Set { required: true, .. }))
    }
}

fn is_short(option: &AgentOption) -> bool {
    serde_json::to_vec(option).is_ok_and(|bytes| bytes.len() <= MAX_OPTION_BYTES)
}

fn config_options(list: &Value) -> Vec<AgentOption> {
    let option = |option: &Value| {
        let id = option["id"].as_str()?.to_owned();
        let choices = option["options"].as_array().into_iter().flatten();
        // Options may come in groups.
        let choices = choices.flat_map(|choice| match choice["options"].as_array() {
            Some(group) => group.iter().collect::<Vec<_>>(),
            None => vec![choice],
        });
        Some(AgentOption {
            name: label(option["name"].as_str().unwrap_or(&id)),
            category: option["category"].as_str().unwrap_or(&id).to_owned(),
            value: option["currentValue"].clone(),
            choices: choices.filter_map(|item| choice(item, "value")).take(MAX_LISTED).collect(),
            setter: Setter::Option,
            id,
        })
    };
    list.as_array().into_iter().flatten().filter_map(option).take(MAX_OPTIONS).collect()
}

fn choice(item: &Value, id: &str) -> Option<OptionChoice> {
    let value = item.get(id)?.clone();
    // Sent back as it is, so it cannot be cut.
    if value.as_str().is_some_and(|value| value.len() > MAX_VALUE) {
        return None;
    }
    let text = |name: &str| item[name].as_str().map(label);
    let name = text("name").or_else(|| value.as_str().map(str::to_owned))?;
    Some(OptionChoice { value, name, description: text("description") })
}

fn mode_option(modes: &Value) -> Option<AgentOption> {
    let choices = modes["availableModes"].as_array()?;
    Some(AgentOption {
        id: "mode".to_owned(),
        name: "Mode".to_owned(),
        category: "mode".to_owned(),
        value: json!(modes["currentModeId"].as_str().unwrap_or_default()),
        choices: choices.iter().filter_map(|item| choice(item, "id")).take(MAX_LISTED).collect(),
        setter: Setter::Mode,
    })
}

fn model_option(models: &Value) -> Option<AgentOption> {
    let choices = models["availableModels"].as_array()?;
    Some(AgentOption {
        id: "model".to_owned(),
        name: "Model".to_owned(),
        category: "model".to_owned(),
        value: json!(models["currentModelId"].as_str().unwrap_or_default()),
        choices: choices
            .iter()
            .filter_map(|item| choice(item, "modelId"))
            .take(MAX_LISTED)
            .collect(),
        setter: Setter::Model,
    })
}
