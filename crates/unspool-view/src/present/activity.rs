//! What a live session does now, in one line, from the parts of its last turn. Every surface shows
//! the same state and the same words.
//!
//! A state is definite only if something proves it. Agents write nothing while a permission is open
//! unless hooks report it, so a call that stands and does not run is only *maybe* waiting.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use unspool_model::id::{PartId, digest};
use unspool_model::part::{Body, Part, QuestionKind, Tool};
use unspool_model::provenance::Feed;
use unspool_model::session::Turn;
use unspool_model::tools::AsksUser;

use super::tools::{card, shell_command};
use super::{format, tools};
use crate::block::{Tone, text_of};

/// Maximum length of a command or question.
const MAX_SUMMARY_CHARS: usize = 120;
/// A call that usually needs permission and has not run for this long may wait for it.
const MAY_WAIT_AFTER: SignedDuration = SignedDuration::from_secs(10);
/// Without a record for this long, nothing shows that the agent works.
const SILENT_AFTER: SignedDuration = SignedDuration::from_secs(60);

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Activity {
    /// `Bash: npm test`, `writing`, `thinking`, `2 sub-agents`.
    Working { what: String, since: Option<Timestamp> },
    /// A question to the user is open: the question, or the command that needs permission.
    Waiting { what: String, since: Option<Timestamp> },
    /// This call has stood for a while and its command does not run.
    MaybeWaiting { what: String, since: Option<Timestamp> },
    /// Nothing was written since.
    Silent { since: Option<Timestamp> },
}

/// When a turn is looked at, and what is known besides its parts.
#[derive(Clone, Copy)]
pub struct Moment<'a> {
    pub now: Timestamp,
    /// The time of the last record of the session.
    pub last_heard: Option<Timestamp>,
    /// The agent writes calls when they have ended, so a text may be the end of a turn, or a call may
    /// follow that runs or waits.
    pub calls_come_late: bool,
    /// Hooks report this turn, and they report each permission. So a call without one does not wait.
    pub permissions_are_reported: bool,
    /// Whether a command runs or ran.
    pub command_state: &'a dyn Fn(&CommandRequest<'_>) -> CommandState,
}

/// A command that an agent wants to run.
#[derive(Clone, Copy, Debug)]
pub struct CommandRequest<'a> {
    /// The part of its call. None to ask for any command of the agent.
    pub part: Option<PartId>,
    /// Tells apart the questions about the call.
    pub question: u64,
    pub command: &'a str,
    pub since: Option<Timestamp>,
    pub request: Request,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandState {
    /// No process of it was seen.
    NotSeen,
    Running,
    /// It ran, so it was granted. Its process is gone.
    Ran {
        last_seen: Timestamp,
    },
}

/// How a command was requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// A person was asked, so it starts some time later.
    Permission,
    /// It may have started at once.
    Call,
}

impl Moment<'_> {
    /// True if this long has passed since.
    fn is_later(&self, since: Option<Timestamp>, by: SignedDuration) -> bool {
        since.is_some_and(|since| self.now.duration_since(since) >= by)
    }

    /// True if the turn ends with a text and the agent runs nothing that began since.
    fn may_be_over(&self, turn: &Turn) -> bool {
        let last = turn.parts.last().map(|part| &part.body);
        matches!(last, Some(Body::Text(text)) if !text.open)
            && self.is_later(self.last_heard, MAY_WAIT_AFTER)
            && !self.has_new_child()
    }

    /// True if the agent runs something that began since the last record.
    fn has_new_child(&self) -> bool {
        let any = CommandRequest {
            part: None,
            question: 0,
            command: "",
            since: self.last_heard,
            request: Request::Call,
        };
        (self.command_state)(&any) == CommandState::Running
    }

    fn state(&self, part: &Part, tool: &Tool) -> CommandState {
        let Some(command) = shell_command(tool) else { return CommandState::NotSeen };
        let request = match tools::open_question(tool) {
            Some(_) => Request::Permission,
            None => Request::Call,
        };
        (self.command_state)(&CommandRequest {
            part: Some(part.id),
            question: question_key(part, tool),
            command: &command,
            since: part.started,
            request,
        })
    }

    /// True if the command of this call runs, or has just ended: its result is written soon.
    fn runs(&self, part: &Part, tool: &Tool) -> bool {
        match self.state(part, tool) {
            CommandState::NotSeen => false,
            CommandState::Running => true,
            CommandState::Ran { last_seen } => !self.is_later(Some(last_seen), MAY_WAIT_AFTER),
        }
    }

    /// True if the call is one that usually needs permission, has had time to run, and did not.
    fn may_wait(&self, part: &Part, tool: &Tool) -> bool {
        AsksUser::of(&tool.name) == AsksUser::Usually
            && tool.input.is_some()
            && !self.permissions_are_reported
            && self.is_later(part.started, MAY_WAIT_AFTER)
            && self.state(part, tool) == CommandState::NotSeen
    }

    /// The last record, or the last look at which the command of a call ran.
    fn last_sign(&self, turn: &Turn) -> Option<Timestamp> {
        let calls = turn.parts.iter().filter_map(running_tool);
        let seen = calls.filter_map(|(part, tool)| match self.state(part, tool) {
            CommandState::Ran { last_seen } => Some(last_seen),
            CommandState::NotSeen | CommandState::Running => None,
        });
        seen.chain(self.last_heard).max()
    }
}

impl Activity {
    /// The activity of this turn. The oldest open question comes first, because it blocks the
    /// agent. Then running sub-agents, before running calls, which only wait for them. Otherwise
    /// open prose.
    pub fn of(turn: &Turn, moment: &Moment<'_>) -> Activity {
        let waits = |part: &Part| open_question(part, moment);
        if let Some((what, since)) = turn.parts.iter().find_map(waits) {
            return Activity::Waiting { what, since };
        }
        let agents: usize = turn.parts.iter().map(running_agents).sum();
        if agents > 0 {
            return Activity::Working { what: format::count(agents, "sub-agent"), since: None };
        }
        let calls = || turn.parts.iter().filter_map(running_tool);
        // While a command runs, the calls behind it wait for their turn.
        let running = calls().rfind(|(part, tool)| moment.runs(part, tool));
        if running.is_none()
            && let Some((part, tool)) = calls().find(|(part, tool)| moment.may_wait(part, tool))
        {
            return Activity::MaybeWaiting { what: requested(tool), since: part.started };
        }
        let last_sign = moment.last_sign(turn);
        // The clock was set back, or the log has a wrong time: it does not say that the agent works.
        let is_ahead = last_sign.is_some_and(|at| at.duration_since(moment.now) >= SILENT_AFTER);
        let silent = is_ahead
            || moment.is_later(last_sign, SILENT_AFTER)
            || moment.calls_come_late && moment.may_be_over(turn);
        if let Some((part, tool)) = running.or_else(|| calls().next_back().filter(|_| !silent)) {
            let (what, more) = (call(tool), calls().count() - 1);
            let what = if more > 0 { format!("{what}, and {more} more") } else { what };
            return Activity::Working { what, since: part.started };
        }
        if silent {
            return Activity::Silent { since: moment.last_heard };
        }
        let open = turn.parts.iter().rev().find_map(open_prose);
        Activity::Working { what: open.unwrap_or("working").to_owned(), since: None }
    }

    /// True if a person has to do something for the agent to go on.
    pub fn is_waiting(&self) -> bool {
        matches!(self, Activity::Waiting { .. })
    }

    /// The order in lists: the most urgent first, sessions that do nothing last.
    pub fn order(activity: Option<&Activity>) -> u8 {
        match activity {
            Some(Activity::Waiting { .. }) => 0,
            Some(Activity::MaybeWaiting { .. }) => 1,
            Some(Activity::Working { .. } | Activity::Silent { .. }) => 2,
            None => 3,
        }
    }

    /// `Waiting for you`, for the states that need an explanation before what they are about.
    pub fn label(&self) -> Option<&'static str> {
        match self {
            Activity::Working { .. } => None,
            Activity::Waiting { .. } => Some("Waiting for you"),
            Activity::MaybeWaiting { .. } => Some("Maybe waiting for you"),
            Activity::Silent { .. } => Some("No activity"),
        }
    }

    /// The call, the question or the prose that it is about.
    pub fn what(&self) -> Option<&str> {
        match self {
            Activity::Working { what, .. }
            | Activity::Waiting { what, .. }
            | Activity::MaybeWaiting { what, .. } => Some(what),
            Activity::Silent { .. } => None,
        }
    }

    pub fn since(&self) -> Option<Timestamp> {
        match self {
            Activity::Working { since, .. }
            | Activity::Waiting { since, .. }
            | Activity::MaybeWaiting { since, .. }
            | Activity::Silent { since } => *since,
        }
    }

    /// How long it has been so, in steps that do not change with every look.
    pub fn duration(&self, now: Timestamp) -> Option<String> {
        let seconds = now.duration_since(self.since()?).as_secs();
        Some(match seconds {
            ..10 => return None,
            10..60 => format!("{} s", seconds / 10 * 10),
            60..3600 => format!("{} min", seconds / 60),
            _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        })
    }

    /// `Waiting for you: rm -rf build/ · 2 min`.
    pub fn sentence(&self, now: Timestamp) -> String {
        let said: Vec<&str> = self.label().into_iter().chain(self.what()).collect();
        let said = said.join(": ");
        match (self, self.duration(now)) {
            (Activity::Silent { .. }, Some(duration)) => format!("{said} for {duration}"),
            (_, Some(duration)) => format!("{said} · {duration}"),
            (_, None) => said,
        }
    }

    pub fn tone(&self) -> Tone {
        match self {
            Activity::Working { .. } => Tone::Running,
            Activity::Waiting { .. } | Activity::MaybeWaiting { .. } => Tone::Warning,
            Activity::Silent { .. } => Tone::Muted,
        }
    }

    /// One column. The glyph of work has two frames.
    pub fn glyph(&self, frame: usize) -> &'static str {
        match self {
            Activity::Working { .. } if frame.is_multiple_of(2) => "◐",
            Activity::Working { .. } => "◑",
            Activity::Waiting { .. } | Activity::MaybeWaiting { .. } => "?",
            Activity::Silent { .. } => "…",
        }
    }
}

fn running_tool(part: &Part) -> Option<(&Part, &Tool)> {
    part.body.tool().filter(|tool| !tool.state.is_terminal()).map(|tool| (part, tool))
}

/// An open question. A permission whose command runs or ran was granted: no source says so before
/// the command ends.
fn open_question(part: &Part, moment: &Moment<'_>) -> Option<(String, Option<Timestamp>)> {
    let (part, tool) = running_tool(part)?;
    let question = tools::open_question(tool)?;
    if question.kind == QuestionKind::Permission {
        let stands = moment.state(part, tool) == CommandState::NotSeen;
        return stands.then(|| (requested(tool), part.started));
    }
    let mut texts = question.items.iter().map(|item| item.question.trim());
    let text = texts.find(|text| !text.is_empty());
    let what = text.map(|text| format::first_line(text, MAX_SUMMARY_CHARS));
    Some((what.unwrap_or_else(|| requested(tool)), part.started))
}

/// Tells apart the questions about a call. Hooks have no request ids, but one record per question.
fn question_key(part: &Part, tool: &Tool) -> u64 {
    let asked_by_hooks = part.evidence.iter().filter(|record| record.feed == Feed::Hooks).count();
    let request = tool.question.as_ref().and_then(|question| question.request_id.as_deref());
    let key = (tool.earlier.len(), asked_by_hooks, request.unwrap_or_default());
    digest(format!("{key:?}").as_bytes())
}

fn running_agents(part: &Part) -> usize {
    if let Body::Agent(group) = &part.body {
        group.agents.iter().filter(|agent| !agent.state.is_terminal()).count()
    } else {
        0
    }
}

fn open_prose(part: &Part) -> Option<&'static str> {
    if let Body::Text(text) = &part.body {
        text.open.then_some("writing")
    } else if let Body::Reasoning(reasoning) = &part.body {
        reasoning.open.then_some("thinking")
    } else {
        None
    }
}

/// What a call asks permission for: a command as it is, other calls with their tool.
fn requested(tool: &Tool) -> String {
    match shell_command(tool) {
        Some(command) => format::first_line(&command, MAX_SUMMARY_CHARS),
        None => joined(tool, " "),
    }
}

/// A call as in the head of its card.
fn call(tool: &Tool) -> String {
    joined(tool, ": ")
}

fn joined(tool: &Tool, separator: &str) -> String {
    let card = card(tool);
    let summary = format::first_line(&text_of(&card.summary), MAX_SUMMARY_CHARS);
    if summary.is_empty() { card.title } else { format!("{}{separator}{summary}", card.title) }
}

#[cfg(test)]
#[path = "activity_tests.rs"]
mod tests;
