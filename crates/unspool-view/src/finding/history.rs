//! A session as the rules see it: its calls, failures and compactions in order, with digests and
//! lengths in place of texts. It is built turn by turn, so that a long session is never in memory
//! whole, and each call is parsed once for all rules.

use jiff::Timestamp;
use rustc_hash::FxHashMap;
use unspool_model::agent::{AgentTraits, CallTimes};
use unspool_model::id::PartId;
use unspool_model::part::{Body, Part};
use unspool_model::session::{Session, Trigger, Turn, TurnState};

use super::Evidence;
use super::call::Call;
use super::check::CallCheck;
use super::error_text::first_line;
use super::prompts::PromptFacts;
use super::times::ToolTimes;

/// A session without its texts.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub(super) turns: Vec<TurnFacts>,
    /// In their order.
    pub(super) entries: Vec<Entry>,
    /// The first part of each step.
    pub(super) first_parts: FxHashMap<(u32, u32), PartId>,
    pub(super) call_times: CallTimes,
    pub(super) model_calls: u64,
    pub(super) windows: std::collections::BTreeMap<String, u64>,
    /// What the model calls were sent, if it is known.
    pub(super) prompts: PromptFacts,
    /// How long the calls of each tool usually take.
    pub(super) times: ToolTimes,
    /// The rules of the user that say which calls must not be made.
    pub(super) checks: Vec<CallCheck>,
}

/// A turn without its parts.
#[derive(Clone, Debug)]
pub(super) struct TurnFacts {
    pub number: u32,
    pub trigger: Trigger,
    pub state: TurnState,
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    pub last_part: Option<PartId>,
    /// The beginning of the user's message.
    pub prompt: String,
    /// Tokens that were not read from a cache.
    pub tokens: u64,
    pub model: Option<String>,
}

/// Something that happened in a turn.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub part: PartId,
    pub turn: u32,
    /// The model call, from 1.
    pub step: Option<u32>,
    pub at: Option<Timestamp>,
    pub what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Call(Box<Call>),
    /// A model call failed and was made again.
    Retry(String),
    /// A model call failed for good.
    Failure(String),
    Compaction {
        automatic: bool,
        tokens_before: Option<u64>,
        tokens_after: Option<u64>,
        duration_ms: Option<u64>,
    },
    Other,
}

impl Entry {
    pub fn call(&self) -> Option<&Call> {
        if let What::Call(call) = &self.what { Some(call) } else { None }
    }

    pub fn evidence(&self, what: impl Into<String>) -> Evidence {
        Evidence { turn: self.turn, step: None, part: Some(self.part), what: what.into() }
    }
}

impl History {
    /// The calls, in order.
    pub(super) fn calls(&self) -> impl Iterator<Item = (&Entry, &Call)> {
        self.entries.iter().filter_map(|entry| Some((entry, entry.call()?)))
    }

    /// The entries of each turn, in order.
    pub(super) fn by_turn(&self) -> impl Iterator<Item = &[Entry]> {
        self.entries.chunk_by(|a, b| a.turn == b.turn)
    }

    /// The evidence of a model call: its first part.
    pub(super) fn step_evidence(&self, turn: u32, step: u32, what: String) -> Evidence {
        let part = self.first_parts.get(&(turn, step)).copied();
        Evidence { turn, step: Some(step), part, what }
    }
}

/// Builds a [`History`] from turns in order.
#[derive(Default)]
pub struct HistoryBuilder(History);

impl HistoryBuilder {
    pub fn new(session: &Session) -> HistoryBuilder {
        let windows = session.facts.context_windows.clone();
        let call_times = AgentTraits::of(&session.agent).call_times;
        HistoryBuilder(History { windows, call_times, ..History::default() })
    }

    /// Adds the next turn. One that was copied from another session counts there.
    pub fn add(&mut self, turn: &Turn) {
        if turn.inherited {
            return;
        }
        let history = &mut self.0;
        history.model_calls = history.model_calls.saturating_add(turn.steps.len() as u64);
        let steps: FxHashMap<_, u32> =
            (1..).zip(&turn.steps).map(|(n, step)| (step.id, n)).collect();
        let times = history.call_times;
        for part in &turn.parts {
            let step = part.step.and_then(|step| steps.get(&step).copied());
            if let Some(step) = step {
                history.first_parts.entry((turn.number, step)).or_insert(part.id);
            }
            let at = part.started.or(part.ended);
            let entry =
                Entry { part: part.id, turn: turn.number, step, at, what: what(part, times) };
            history.entries.push(entry);
        }
        let prompt = turn.user.iter().find_map(Body::prose).unwrap_or_default();
        history.turns.push(TurnFacts {
            number: turn.number,
            trigger: turn.trigger,
            state: turn.state,
            started: turn.started,
            ended: turn.ended,
            last_part: turn.parts.last().map(|part| part.id),
            prompt: first_line(prompt),
            tokens: turn.usage().fresh(),
            model: turn.models().last().map(|model| (*model).to_owned()),
        });
    }

    pub fn with_prompts(mut self, prompts: PromptFacts) -> HistoryBuilder {
        self.0.prompts = prompts;
        self
    }

    pub fn with_times(mut self, times: ToolTimes) -> HistoryBuilder {
        self.0.times = times;
        self
    }

    pub fn with_checks(mut self, checks: Vec<CallCheck>) -> HistoryBuilder {
        self.0.checks = checks;
        self
    }

    pub fn finish(self) -> History {
        self.0
    }
}

fn what(part: &Part, times: CallTimes) -> What {
    match &part.body {
        Body::Tool(tool) => What::Call(Box::new(Call::new(tool, part, times))),
        Body::Notice(notice) if notice.code == "retry" => What::Retry(first_line(&notice.text)),
        Body::Error(failure) => What::Failure(first_line(&failure.text)),
        Body::Compaction(compaction) => What::Compaction {
            automatic: compaction.trigger.as_deref() == Some("auto"),
            tokens_before: compaction.tokens_before,
            tokens_after: compaction.tokens_after,
            duration_ms: compaction.duration_ms,
        },
        Body::Text(_)
        | Body::Interjection(_)
        | Body::SkillLoad(_)
        | Body::ContextInfo(_)
        | Body::File(_)
        | Body::Reasoning(_)
        | Body::Agent(_)
        | Body::TaskList(_)
        | Body::McpSnapshot(_)
        | Body::Source(_)
        | Body::Patch(_)
        | Body::Notice(_)
        | Body::Data(_) => What::Other,
    }
}
