//! The header of a turn: the facts that every surface shows above it, in the same order and words.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use unspool_model::session::{Trigger, Turn, TurnState, Usage};

use super::{elapsed, format};
use crate::block::Tone;

/// The state of a turn or call whose end no source reports: its agent is gone, or went on without it.
pub(super) const INFERRED_INTERRUPTION: &str = "interrupted (inferred: no end recorded)";

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TurnHeader {
    pub number: u32,
    pub trigger: Trigger,
    pub state: TurnState,
    /// False if the state was inferred.
    pub observed: bool,
    pub tone: Tone,
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    pub duration_ms: Option<u64>,
    pub usage: Usage,
    /// Models in order of first use.
    pub models: Vec<String>,
    pub abandoned: bool,
    /// The turn was copied from the session that this one was forked from.
    pub inherited: bool,
}

/// A fact in the header of a turn, apart from the metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeaderFact {
    pub kind: HeaderFactKind,
    pub text: &'static str,
    /// Its own colour, if any.
    pub tone: Option<Tone>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeaderFactKind {
    /// The trigger of the turn.
    Trigger,
    /// The state: running or how it ended.
    State,
    Abandoned,
    Inherited,
}

impl TurnHeader {
    pub(super) fn of(turn: &Turn) -> TurnHeader {
        let models = turn.models().into_iter().map(str::to_owned).collect();
        TurnHeader {
            number: turn.number,
            trigger: turn.trigger,
            state: turn.state,
            observed: turn.is_end_observed(),
            tone: match turn.state {
                TurnState::Running => Tone::Running,
                TurnState::Completed => Tone::Ok,
                TurnState::Failed => Tone::Failed,
                TurnState::Interrupted => Tone::Interrupted,
                TurnState::Unknown => Tone::Muted,
            },
            started: turn.started,
            ended: turn.ended,
            duration_ms: elapsed(turn.started, turn.ended),
            usage: turn.usage(),
            models,
            abandoned: turn.abandoned,
            inherited: turn.inherited,
        }
    }

    /// The state, and whether it was inferred.
    pub fn state_text(&self) -> &'static str {
        match self.state {
            TurnState::Interrupted if !self.observed => INFERRED_INTERRUPTION,
            TurnState::Completed if !self.observed => "completed (inferred: no end recorded)",
            TurnState::Failed if !self.observed => "failed (inferred: no end recorded)",
            TurnState::Running
            | TurnState::Completed
            | TurnState::Failed
            | TurnState::Interrupted
            | TurnState::Unknown => self.state.name(),
        }
    }

    /// The title of the turn.
    pub fn label(&self) -> String {
        match self.number {
            0 => "Before the first prompt".to_owned(),
            number => format!("Turn {number}"),
        }
    }

    /// Trigger, state, and whether the turn is abandoned or inherited.
    pub fn facts(&self) -> Vec<HeaderFact> {
        // Turn 0 holds the parts before the first prompt and has no trigger.
        let trigger =
            if self.number == 0 { "before the first prompt" } else { self.trigger.name() };
        let mut all = vec![
            HeaderFact { kind: HeaderFactKind::Trigger, text: trigger, tone: None },
            HeaderFact {
                kind: HeaderFactKind::State,
                text: self.state_text(),
                tone: Some(self.tone),
            },
        ];
        if self.abandoned {
            let tone = Some(Tone::Warning);
            all.push(HeaderFact { kind: HeaderFactKind::Abandoned, text: "abandoned", tone });
        }
        if self.inherited {
            let text = "from the forked session";
            all.push(HeaderFact { kind: HeaderFactKind::Inherited, text, tone: None });
        }
        all
    }

    /// `12.4 s`, `1,729 tokens + 12.2k cached`: the metrics that are available.
    pub fn metrics(&self) -> Vec<String> {
        // Zero if the log has one time for the start and the end: not a duration.
        let took = self.duration_ms.filter(|took| *took > 0);
        let mut all: Vec<String> = took.map(format::duration).into_iter().collect();
        let tokens = format::token_phrase(self.usage.fresh(), self.usage.cache_read);
        all.extend(Some(tokens).filter(|tokens| !tokens.is_empty()));
        all
    }
}
