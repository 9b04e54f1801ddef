//! What the page shows of a chat: the state of the host as fields of a message. Text of the agent is
//! painted here, so that it is text everywhere. Only fields that changed are sent.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde_json::{Map, Value, json};
use unspool_export::html::text::safe;
use unspool_live::protocol::{AgentOption, ChatState, GivenAnswer, Phase, PlanEntry, changed};
use unspool_view::present::format;

use super::SURFACE;
use super::question::QuestionView;

/// The fields that a page has.
#[derive(Default)]
pub struct Panel {
    sent: Map<String, Value>,
    answers_seen: u64,
    /// The open questions. What they are about may be long, so each is painted once.
    questions: BTreeMap<String, QuestionView>,
}

impl Panel {
    /// A page that learns only now of the chat is not told of answers before.
    pub fn new(state: &ChatState) -> Panel {
        let answers_seen = state.answers.last().map_or(0, |answer| answer.number);
        Panel { answers_seen, ..Panel::default() }
    }

    /// The message with what changed of a chat, if anything did.
    pub fn show(&mut self, state: &ChatState) -> Option<Value> {
        self.questions.retain(|id, _| state.questions.iter().any(|open| open.id == *id));
        for open in &state.questions {
            let held = self.questions.entry(open.id.clone());
            let held = held.or_insert_with(|| QuestionView::new(open, state.answers_only));
            held.draft = state.answer_drafts.get(&open.id).cloned().unwrap_or_default();
        }
        let questions = state.questions.iter().filter_map(|open| self.questions.get(&open.id));
        let fields = fields(state, &questions.collect::<Vec<_>>());
        self.update(fields)
    }

    /// The message with the fields that changed.
    fn update(&mut self, fields: Map<String, Value>) -> Option<Value> {
        let mut differing = changed(&self.sent, &fields);
        self.sent = fields;
        if differing.is_empty() {
            return None;
        }
        differing.insert("type".to_owned(), "chat".into());
        Some(Value::Object(differing))
    }

    /// The last answer that somebody else gave: everybody learns who answered (C-24). `own` are the
    /// questions that this page answered.
    pub fn other_answer(
        &mut self,
        state: &ChatState,
        own: &BTreeMap<u64, String>,
    ) -> Option<Value> {
        let seen = self.answers_seen;
        let mut new = state.answers.iter().filter(|answer| answer.number > seen);
        let other = |answer: &&GivenAnswer| !own.values().any(|id| *id == answer.question);
        let notice = new.rfind(other).map(|answer| {
            let text = answer.sentence(SURFACE);
            json!({ "type": "notice", "text": safe(&text) })
        });
        self.answers_seen = state.answers.last().map_or(seen, |answer| answer.number);
        notice
    }
}

/// The fields of a chat.
fn fields(state: &ChatState, questions: &[&QuestionView]) -> Map<String, Value> {
    let commands = state.commands.iter().map(|command| {
        json!([safe(&command.name), format::first_line(&safe(&command.description), 80)])
    });
    let value = json!({
        "answers_only": state.answers_only,
        "phase": state.phase,
        "agent": safe(&state.agent),
        "session": state.session,
        "status": status(state),
        "notices": notices(state).into_string(),
        "notice": state.notice.as_deref().map(safe),
        "held": state.held.is_some(),
        "stuck": state.stuck,
        "queue": queue(state).into_string(),
        "queued": state.queue.iter().map(|message| json!([message.id, message.text])).collect::<Vec<_>>(),
        "plan": plan(state).into_string(),
        "options": options(state).into_string(),
        "option_values": option_values(state),
        "questions": questions,
        "commands": commands.collect::<Vec<_>>(),
        "draft": state.draft,
        "takes_images": state.takes_images,
    });
    match value {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
}

/// `Claude Code 1.2 · works`; the page counts the seconds.
fn status(state: &ChatState) -> String {
    let phase = match state.phase {
        _ if state.answers_only => "not driven from here".to_owned(),
        Phase::Starting => "starting".to_owned(),
        Phase::Idle => "ready".to_owned(),
        Phase::Running | Phase::Cancelling if !state.questions.is_empty() => {
            format!("waits for you: {}", format::count(state.questions.len(), "question"))
        }
        Phase::Running => "works".to_owned(),
        Phase::Cancelling => "stopping".to_owned(),
        Phase::Ended => "ended".to_owned(),
    };
    let program = state.program.clone().filter(|_| state.agent.starts_with("acp"));
    let name = program.unwrap_or_else(|| state.agent.clone());
    format!("{} · {phase}", safe(&name))
}

/// What a person should know before they type.
fn notices(state: &ChatState) -> Markup {
    let failed = state.last_turn.as_ref().and_then(|turn| turn.error.as_deref());
    let failed = failed.filter(|_| state.phase == Phase::Idle);
    let ended = state.reason.as_deref().unwrap_or("the agent has ended");
    html! {
        @if state.phase == Phase::Ended { p.tone-failed { "✕ " (safe(ended)) } }
        @if let Some(error) = failed { p.tone-failed { "✕ the last message failed: " (safe(error)) } }
        @if let Some(why) = &state.unrecorded { p.tone-warning { "! not recorded: " (safe(why)) } }
        @if state.stuck { p.tone-warning { "! the agent does not stop: End ends it" } }
        @if state.silent_since.is_some() {
            p.tone-warning { "! the agent has been silent for more than 5 minutes" }
        }
        @if let Some(why) = &state.held { p.tone-warning { "‖ the queue waits: " (safe(why)) } }
    }
}

fn queue(state: &ChatState) -> Markup {
    html! {
        @for (at, message) in state.queue.iter().enumerate() {
            li data-message=(message.id) {
                span.queued { "queued " (at + 1) }
                span.queued-text {
                    (safe(message.text.trim()))
                    @if !message.images.is_empty() {
                        " " span.dim { "+ " (format::count(message.images.len(), "image")) }
                    }
                }
                button type="button" data-queue="up" title="Send earlier" aria-label="Send earlier" disabled[at == 0] { "↑" }
                button type="button" data-queue="down" title="Send later" aria-label="Send later" disabled[at + 1 == state.queue.len()] { "↓" }
                button type="button" data-queue="edit" title="Edit" { "Edit" }
                button type="button" data-queue="remove" title="Take back" aria-label="Take back" { "✕" }
            }
        }
    }
}

/// The plan, while the agent works.
fn plan(state: &ChatState) -> Markup {
    let works = matches!(state.phase, Phase::Running | Phase::Cancelling);
    let mark = |entry: &PlanEntry| match entry.status.as_str() {
        "completed" => "✓",
        "in_progress" => "▸",
        _ => "○",
    };
    html! {
        @if works {
            @for entry in &state.plan {
                li.done[entry.status == "completed"].now[entry.status == "in_progress"] {
                    span aria-hidden="true" { (mark(entry)) " " }
                    (safe(&entry.text))
                }
            }
        }
    }
}

/// Mode, model, and what else the agent lets its user choose.
fn options(state: &ChatState) -> Markup {
    html! {
        @for (at, option) in state.options.iter().enumerate().filter(|(_, option)| !option.choices.is_empty()) {
            label {
                span.dim { (safe(&option.name)) }
                select data-setting=(at) {
                    @for (nth, choice) in option.choices.iter().enumerate() {
                        option value=(nth) selected[choice.value == option.value]
                            title=[choice.description.as_deref().map(safe)] { (safe(&choice.name)) }
                    }
                }
            }
        }
    }
}

fn option_values(state: &ChatState) -> Vec<Value> {
    let value = |option: &AgentOption| {
        let values: Vec<&Value> = option.choices.iter().map(|choice| &choice.value).collect();
        json!({ "id": option.id, "values": values })
    };
    state.options.iter().map(value).collect()
}
