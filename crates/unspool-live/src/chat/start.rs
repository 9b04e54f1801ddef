//! From the start of the agent to an open session.

use serde::Deserialize;
use serde_json::Value;

use super::update::label;
use super::{Chat, Effect, INITIALIZE_TIMEOUT, SESSION_TIMEOUT, Sent};
use crate::mcp::McpServer;
use crate::outgoing::{self, Continue, Outgoing, PROTOCOL_VERSION};
use crate::protocol::Phase;
use crate::wire::{AUTH_REQUIRED, RpcError};

/// No agent has a longer id of a session, in bytes.
const MAX_SESSION_ID: usize = 1000;

/// The reply to `initialize`. Everything is optional: agents leave out what they do not have.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Initialized {
    protocol_version: Value,
    agent_info: Option<AgentInfo>,
    agent_capabilities: Value,
    /// Read one by one: a strange one must not stop the chat.
    auth_methods: Vec<Value>,
    #[serde(rename = "_meta")]
    meta: Value,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct AgentInfo {
    name: String,
    title: Option<String>,
    version: Option<String>,
}

/// A way to log in.
#[derive(Deserialize, Default)]
#[serde(default)]
struct AuthMethod {
    id: String,
    name: String,
    description: Option<String>,
    /// `terminal`, `env_var`, or else the agent does it itself when it is told to.
    r#type: Option<String>,
    /// Of a terminal: the arguments to run the agent's program with.
    args: Vec<String>,
    /// The variables that hold a key.
    vars: Vec<AuthVariable>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct AuthVariable {
    name: String,
}

impl Chat {
    pub(super) fn initialize(&mut self, now: u64) {
        let id = self.request(Sent::Initialize);
        self.send(&outgoing::initialize(&id));
        self.deadline = Some(now + INITIALIZE_TIMEOUT);
    }

    pub(super) fn initialized(&mut self, result: Result<String, RpcError>, now: u64) {
        let reply = match result {
            Ok(result) => result,
            Err(error) => {
                return self.end(format!("the agent refused to start: {}", error.message));
            }
        };
        let Ok(reply) = serde_json::from_str::<Initialized>(&reply) else {
            return self.end("the agent's reply to `initialize` cannot be read".to_owned());
        };
        if reply.protocol_version.as_u64() != Some(PROTOCOL_VERSION) {
            return self.end(format!(
                "{} speaks version {} of the Agent Client Protocol, unspool speaks version \
                 {PROTOCOL_VERSION}; update the older one",
                self.program_name(),
                reply.protocol_version
            ));
        }
        let info = reply.agent_info.unwrap_or_default();
        let title = info.title.unwrap_or_else(|| info.name.clone());
        let program = [title, info.version.unwrap_or_default()].join(" ");
        let program = match program.trim() {
            "" => self.program_name(),
            program => label(program),
        };
        self.state.program = Some(program);
        if self.spec.agent.is_none() {
            self.state.agent =
                unspool_sources::decode::acp::agent_of_program(&info.name).to_owned();
        }
        let capabilities = &reply.agent_capabilities;
        self.loads = capabilities["loadSession"] == true;
        self.resumes = capabilities["sessionCapabilities"]["resume"].is_object();
        self.state.takes_images = capabilities["promptCapabilities"]["image"] == true;
        self.steers = reply.meta["steering"]["supported"] == true;
        let methods = reply.auth_methods.into_iter();
        let methods: Vec<AuthMethod> =
            methods.filter_map(|method| serde_json::from_value(method).ok()).collect();
        self.auth = describe(&methods, &self.spec.command.join(" "));
        self.effects.push(Effect::OpenCapture { agent: self.state.agent.clone() });
        self.choose_servers(&capabilities["mcpCapabilities"]);
        self.log_in_or_open(now);
    }

    /// Logs in first if the user asked for it. A person does that in a browser: there is no limit.
    fn log_in_or_open(&mut self, now: u64) {
        let Some(method) = self.spec.log_in.clone() else {
            self.deadline = Some(now + SESSION_TIMEOUT);
            return self.open_session();
        };
        self.deadline = None;
        let id = self.request(Sent::LogIn);
        self.send(&outgoing::authenticate(&id, &method));
    }

    pub(super) fn logged_in(&mut self, result: Result<String, RpcError>, now: u64) {
        match result {
            Ok(_) => {
                self.deadline = Some(now + SESSION_TIMEOUT);
                self.open_session();
            }
            Err(error) if self.auth.is_empty() => {
                self.end(format!("the log-in failed: {}", error.message));
            }
            Err(error) => self.end(format!(
                "the log-in failed: {}; the agent offers: {}",
                error.message, self.auth
            )),
        }
    }

    /// The servers of the configuration that this agent can use.
    fn choose_servers(&mut self, capabilities: &Value) {
        let (fit, other): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.servers).into_iter().partition(|one| one.suits(capabilities));
        if !other.is_empty() {
            let names: Vec<&str> = other.iter().map(|server| server.name.as_str()).collect();
            let unusable = format!("the agent cannot use the MCP servers {}", names.join(", "));
            let notices = self.state.notice.take().into_iter().chain([unusable]);
            self.state.notice = Some(notices.collect::<Vec<_>>().join("; "));
        }
        self.servers = fit;
    }

    /// Opens the session: a new one, or the one to go on with.
    fn open_session(&mut self) {
        let Some(session) = self.spec.resume.clone() else { return self.new_session() };
        // Without the history: we have it.
        let how = match (self.resumes, self.loads) {
            (true, _) => Continue::Resume,
            (false, true) => Continue::Load,
            (false, false) => {
                return self.end(format!(
                    "{} cannot go on with an earlier session; start a new one",
                    self.state.program.as_deref().unwrap_or("the agent")
                ));
            }
        };
        self.state.session = Some(session.clone());
        let id = self.request(Sent::Session);
        let (folder, servers) = (self.spec.folder.clone(), self.wire_servers());
        let message = outgoing::continue_session(&id, how, &session, &folder, &servers);
        self.effects.push(Effect::Send(Outgoing::with_servers(message)));
    }

    fn new_session(&mut self) {
        let id = self.request(Sent::Session);
        let (folder, servers) = (self.spec.folder.clone(), self.wire_servers());
        let message = outgoing::new_session(&id, &folder, &servers);
        self.effects.push(Effect::Send(Outgoing::with_servers(message)));
    }

    fn wire_servers(&self) -> Vec<Value> {
        self.servers.iter().map(McpServer::to_wire).collect()
    }

    pub(super) fn session_ready(&mut self, result: Result<String, RpcError>, now: u64) {
        if self.state.phase == Phase::Ended {
            return;
        }
        let reply = match result {
            Ok(reply) => reply,
            Err(error) => return self.session_refused(&error),
        };
        let reply: Value = serde_json::from_str(&reply).unwrap_or_default();
        if let Some(session) = reply["sessionId"].as_str() {
            self.state.session = Some(session.to_owned());
        }
        match &self.state.session {
            None => return self.end("the agent opened a session without an id".to_owned()),
            Some(session) if session.len() > MAX_SESSION_ID => {
                self.state.session = None;
                return self.end("the agent opened a session with a very long id".to_owned());
            }
            Some(_) => {}
        }
        (self.deadline, self.clears) = (None, false);
        self.state.phase = Phase::Idle;
        self.read_options(&reply);
        self.set_wanted();
        if self.waits_for_setting() {
            self.deadline = Some(now + SESSION_TIMEOUT);
        }
        self.send_next(now);
    }

    fn session_refused(&mut self, error: &RpcError) {
        let what = if self.spec.resume.is_some() { "go on with the session" } else { "start" };
        let hint = self.log_in_hint(error);
        // An agent that cannot begin another session keeps the one that it has.
        if std::mem::take(&mut self.clears) {
            (self.state.phase, self.deadline) = (Phase::Idle, None);
            self.state.notice = Some(format!("no new session: {}{hint}", error.message));
            return;
        }
        self.end(format!("the agent could not {what}: {}{hint}", error.message));
    }

    /// How to log in, if that is what is missing.
    pub(super) fn log_in_hint(&self, error: &RpcError) -> String {
        match (error.code, self.auth.as_str()) {
            (AUTH_REQUIRED, "") => "; log in with the agent's own program first".to_owned(),
            (AUTH_REQUIRED, methods) => format!("; to log in: {methods}"),
            _ => String::new(),
        }
    }

    /// Begins a new session in the same chat.
    pub(super) fn clear(&mut self, now: u64) {
        // Messages wait for the new session.
        (self.state.phase, self.clears) = (Phase::Starting, true);
        self.deadline = Some(now + SESSION_TIMEOUT);
        self.new_session();
    }

    /// Sets the mode and the model that the user named.
    fn set_wanted(&mut self) {
        let wanted = [("mode", self.spec.mode.clone()), ("model", self.spec.model.clone())];
        for (category, name) in wanted {
            let Some(name) = name else { continue };
            // Another mode may allow more than the user wants.
            if let Err(why) = self.set_by_name(category, &name) {
                return self.end(why);
            }
        }
    }
}

/// What a person does to log in, in each way that the agent offers.
fn describe(methods: &[AuthMethod], program: &str) -> String {
    let one = |method: &AuthMethod| {
        let name = match &method.description {
            Some(text) if !text.trim().is_empty() => format!("{} ({})", method.name, text.trim()),
            Some(_) | None => method.name.clone(),
        };
        match method.r#type.as_deref() {
            Some("terminal") => {
                let command = [&[program.to_owned()], &method.args[..]].concat().join(" ");
                format!("{name}: run `{command}` in a terminal")
            }
            Some("env_var") if !method.vars.is_empty() => {
                let names: Vec<&str> = method.vars.iter().map(|one| one.name.as_str()).collect();
                format!("{name}: set {} and start again", names.join(", "))
            }
            _ if method.id.is_empty() => name,
            _ => format!("{name}: start the chat with `--log-in {}`", method.id),
        }
    };
    label(&methods.iter().map(one).collect::<Vec<_>>().join("; "))
}
