//! Letting go of closed turns, and taking them back from their rows when a late event needs them.

use crate::event::Event;
use crate::id::TurnId;
use crate::part::{Body, Part};
use crate::session::{Transcript, Trigger, Turn, TurnState};
use crate::telling::{Field, Name, Telling};

use super::Assembler;
use super::fold::{AgentsFold, PartFold, Prose, StepFold, ToolFold, TurnFold};
use super::order::spine_place;

impl Assembler {
    /// An assembler that goes on where a stored session stopped.
    pub fn resume(transcript: &Transcript) -> Assembler {
        let mut assembler = Assembler::new(transcript.session.id);
        assembler.facts = transcript.session.facts.clone();
        assembler.state = transcript.session.state;
        for turn in &transcript.turns {
            assembler.restore(turn);
        }
        assembler
    }

    /// The turns that must be restored before this event can be applied.
    pub fn needs(&self, event: &Event) -> Vec<TurnId> {
        let mut needed: Vec<TurnId> = event
            .what
            .names()
            .iter()
            .chain(&event.turn)
            .flat_map(|name| self.turns_of(name))
            .map(|turn| &self.turns[turn])
            .chain(self.current_turn(event).map(|turn| &self.turns[turn]))
            .filter(|turn| turn.stored)
            .map(|turn| turn.id)
            .collect();
        needed.sort_unstable();
        needed.dedup();
        needed
    }

    /// The turns to which a name leads.
    fn turns_of(&self, name: &Name) -> impl Iterator<Item = usize> {
        let turn = self.index.turns.get(name).copied();
        let step = self.index.steps.get(name).map(|step| step.0);
        let part = self.index.parts.get(name).map(|part| part.0);
        [turn, step, part].into_iter().flatten()
    }

    /// The turn that an event goes to when it names none.
    fn current_turn(&self, event: &Event) -> Option<usize> {
        let preamble = || self.index.turns.get(&Name::Preamble).copied();
        self.tracks[event.telling.index()].turn.or_else(preamble)
    }

    /// Lets a turn that is over go: its parts leave memory, its names stay. Says whether it did.
    pub fn release(&mut self, id: TurnId) -> bool {
        let current: Vec<Option<usize>> = self.tracks.iter().map(|track| track.turn).collect();
        let found = self.turns.iter().rposition(|turn| turn.id == id && !turn.gone);
        let Some(at) = found.filter(|at| !current.contains(&Some(*at))) else { return false };
        let turn = &mut self.turns[at];
        // A telling that has not ended a block may still tell more of it.
        let told = self.tracks.iter().flat_map(|track| track.open.iter().chain(&track.nameless));
        let growing = told.into_iter().any(|open| open.0 == at);
        let busy = turn.parts.iter().any(|part| {
            part.agents
                .as_ref()
                .is_some_and(|agents| agents.agents.iter().any(|known| !known.state.is_terminal()))
        });
        if turn.state == TurnState::Running || busy || growing {
            return false;
        }
        turn.parts = Vec::new();
        turn.steps = Vec::new();
        turn.local = Default::default();
        turn.alike = Default::default();
        turn.stored = true;
        true
    }

    /// Takes a turn back from its stored form.
    pub fn restore(&mut self, turn: &Turn) {
        let known = self.turns.iter().position(|held| held.id == turn.id && !held.gone);
        if known.is_some_and(|at| !self.turns[at].stored) {
            return;
        }
        let at = known.unwrap_or(self.turns.len());
        let fold = fold_turn(turn);
        for (part, held) in fold.parts.iter().enumerate() {
            for name in &held.origin.names {
                if !name.is_local() {
                    self.index.parts.insert(name.clone(), (at, part));
                }
            }
        }
        for (step, held) in fold.steps.iter().enumerate() {
            if !held.name.is_local() {
                self.index.steps.insert(held.name.clone(), (at, step));
            }
        }
        for name in &fold.origin.names {
            self.index.turns.insert(name.clone(), at);
        }
        if known.is_none() {
            self.catch_up(at, &fold);
        }
        if at == self.turns.len() {
            self.turns.push(fold);
        } else {
            self.turns[at] = fold;
        }
    }

    /// Each telling goes on in the last turn that it came to.
    fn catch_up(&mut self, at: usize, turn: &TurnFold) {
        for telling in Telling::ALL {
            let Some(position) = turn.origin.at.of(telling) else { continue };
            let track = &mut self.tracks[telling.index()];
            if position >= track.turns {
                track.turns = position + 1;
                track.turn = Some(at);
            }
        }
        for (part, fold) in turn.parts.iter().enumerate() {
            let Some(prose) = &fold.prose else { continue };
            let track = &mut self.tracks[prose.owner.index()];
            if fold.origin.names.iter().all(Name::is_local) {
                track.nameless = Some((at, part));
            } else {
                track.open.push((at, part));
            }
        }
    }
}

fn fold_turn(turn: &Turn) -> TurnFold {
    let mut fold = TurnFold::new(turn.id);
    fold.number = turn.number;
    fold.origin = turn.origin.clone();
    fold.thinking_mode = turn.thinking_mode;
    fold.is_command = turn.trigger == Trigger::Command;
    fold.state = turn.state;
    fold.ended = turn.ended;
    fold.abandoned = turn.abandoned;
    fold.steps = turn
        .steps
        .iter()
        .map(|step| StepFold {
            id: step.id,
            name: step.name.clone(),
            at: step.at,
            place: Default::default(),
            model: step.model.clone(),
            usage: step.usage,
            stop_reason: step.stop_reason.clone(),
            provenance: step.provenance.clone(),
        })
        .collect();
    place_steps(&mut fold);
    for part in &turn.parts {
        let held = skeleton(part);
        for telling in Telling::ALL {
            if let Some(position) = held.origin.at.of(telling) {
                let placed = &mut fold.placed[telling.index()];
                *placed = (*placed).max(position + 1);
            }
        }
        let at = fold.parts.len();
        for name in held.origin.names.iter().filter(|name| name.is_local()) {
            fold.local.insert(name.clone(), at);
        }
        fold.has_reasoning |= matches!(part.body, Body::Reasoning(_));
        for (class, content, nth) in &held.origin.alike {
            let count = fold.alike.entry((*class, *content)).or_default();
            *count = (*count).max(nth + 1);
            fold.local.insert(Name::Alike(*content, *nth), at);
        }
        fold.parts.push(held);
    }
    for step in &fold.steps {
        for telling in Telling::ALL {
            if let Some(position) = step.at.of(telling) {
                let stepped = &mut fold.stepped[telling.index()];
                if position >= *stepped {
                    *stepped = position + 1;
                    fold.step[telling.index()] = Some(step.id);
                }
            }
        }
    }
    fold
}

fn place_steps(fold: &mut TurnFold) {
    let items: Vec<super::order::Item<()>> =
        fold.steps.iter().map(|step| super::order::Item { at: step.at, group: None }).collect();
    for (step, place) in super::order::arrange(&items) {
        fold.steps[step].place = place;
    }
}

/// What the assembler keeps of a part.
pub(super) fn skeleton(part: &Part) -> PartFold {
    let teller = part.origin.ranks.holder(Field::Body);
    let source = part.evidence.iter().rev().find(|evidence| Some(evidence.telling) == teller);
    let source = source.map(|evidence| evidence.source);
    let mut fold = PartFold {
        id: part.id,
        kind: part.body.kind(),
        place: if part.place == Default::default() { spine_place(0) } else { part.place },
        step: part.step,
        origin: part.origin.clone(),
        gone: false,
        digest: super::part::body_digest(&part.body),
        explains: super::part::explains(&part.body),
        source,
        prose: None,
        tool: None,
        agents: None,
    };
    let unfinished = part.origin.unfinished;
    let prose = |text: &str, open: bool| {
        (open || unfinished).then(|| {
            Box::new(Prose {
                owner: teller.unwrap_or(Telling::Log),
                source: source.unwrap_or_default(),
                text: text.to_owned(),
                open,
            })
        })
    };
    // What still grows has no final content yet.
    let said = |text: &str, open: bool| {
        if open || unfinished { 0 } else { crate::id::digest(text.as_bytes()) }
    };
    match &part.body {
        Body::Text(text) => {
            fold.prose = prose(&text.text, text.open);
            fold.digest = said(&text.text, text.open);
        }
        Body::Reasoning(reasoning) => {
            fold.prose = prose(&reasoning.text, reasoning.open);
            fold.digest = said(&reasoning.text, reasoning.open);
        }
        Body::Tool(tool) => {
            let observed = tool.answer.as_ref().is_some_and(|answer| answer.observed);
            fold.tool = Some(Box::new(ToolFold {
                call_id: tool.call_id.clone(),
                state: tool.state,
                question: tool.question.as_ref().map(|question| question.kind),
                request_id: tool.question.as_ref().and_then(|q| q.request_id.clone()),
                inferred: tool.answer.as_ref().filter(|_| !observed).map(|a| a.decision),
                asked: tool
                    .question
                    .as_ref()
                    .map_or(0, |asked| crate::id::digest(format!("{:?}", asked.items).as_bytes())),
                likenesses: part.origin.alike.iter().map(|(_, content, _)| *content).collect(),
            }));
        }
        Body::Agent(agents) => {
            fold.agents = Some(Box::new(AgentsFold {
                call_id: agents.call_id.clone(),
                agents: agents.agents.clone(),
            }));
        }
        Body::Interjection(_)
        | Body::TaskList(_)
        | Body::SkillLoad(_)
        | Body::McpSnapshot(_)
        | Body::ContextInfo(_)
        | Body::Compaction(_)
        | Body::File(_)
        | Body::Source(_)
        | Body::Patch(_)
        | Body::Notice(_)
        | Body::Error(_)
        | Body::Data(_) => {}
    }
    fold
}
