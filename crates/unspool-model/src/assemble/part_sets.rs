//! What the end rule must know about the parts of a turn: which of them the end closes, hides or
//! shows, and which explain it. Kept up to date part by part, so that the cost of an end does not
//! grow with the turn.
//!
//! `Assembler::part` notes every part that may have changed, and `Assembler::recount` compares the
//! noted parts with what they contributed before. No rule has to remember to update a set.

use std::collections::BTreeSet;

use crate::part::{Kind, Place, ToolState};
use crate::provenance::{HiddenReason, Name};
use crate::rank::{AgentField, PartField};

use super::Assembler;
use super::agent::inferred_state;
use super::fold::{PartFold, TurnFold};
use super::fragments::Fragments;
use super::names::small;
use super::part::PartIndex;
use super::runs::Runs;

/// The parts of one turn, by what the end rule does with them.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct PartSets {
    /// What each part contributes, index by index.
    facts: Vec<PartFacts>,
    /// Parts that the end of the turn closes.
    closable: BTreeSet<u32>,
    /// Calls that are hidden or shown contrary to the rule, if log or stream cover the turn to its
    /// end, and if they do not.
    misfits: [BTreeSet<u32>; 2],
    /// Visible prose and calls, by place.
    replies: BTreeSet<(Place, u32)>,
    /// Visible errors and notices that explain an end, by place.
    errors: BTreeSet<(Place, u32)>,
    notices: BTreeSet<(Place, u32)>,
    /// The number of visible parts that a source reported.
    visible: usize,
    /// The number of visible calls that did not end, or only by inference.
    cut: usize,
    /// The number of agents parts, of visible ones with a running foreground agent, and of those
    /// with any agent that has not ended.
    agents: usize,
    waiting: usize,
    busy: usize,
    /// The number of reasoning parts.
    reasonings: usize,
    pub fragments: Fragments,
}

/// What one part contributes to the sets of its turn.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct PartFacts {
    place: Place,
    closable: bool,
    misfits: [bool; 2],
    reply: bool,
    error: bool,
    notice: bool,
    visible: bool,
    cut: bool,
    agents: bool,
    waiting: bool,
    busy: bool,
    reasoning: bool,
}

impl PartFacts {
    /// `unsettled`: the end of the turn would change the state of an agent in it.
    fn of(part: &PartFold, unsettled: bool) -> PartFacts {
        let visible = !part.gone && !part.origin.is_hidden() && part.origin.names != [Name::Ending];
        let tool = part.tool.as_ref();
        let running = tool.is_some_and(|tool| !tool.state.is_terminal());
        let cut = part.is_interrupted_by_end();
        let growing = part.prose.as_ref().is_some_and(|prose| prose.open);
        let agents = || part.agents.iter().flat_map(|agents| &agents.agents);
        let misfit = |covered: bool| tool.is_some() && part.origin.hidden != part.hides(covered);
        PartFacts {
            place: part.place,
            closable: !part.gone && (growing || running || unsettled),
            misfits: [misfit(false), misfit(true)],
            reply: visible && (part.is_prose() || tool.is_some()),
            error: visible && part.explains && part.kind == Kind::Error,
            notice: visible && part.explains && part.kind == Kind::Notice,
            visible,
            cut: visible && (running || cut),
            agents: !part.gone && part.agents.is_some(),
            waiting: visible
                && agents().any(|entry| !entry.background && !entry.state.is_terminal()),
            busy: !part.gone && agents().any(|entry| !entry.state.is_terminal()),
            reasoning: !part.gone && part.kind == Kind::Reasoning,
        }
    }
}

impl PartFold {
    /// True for a call whose end no feed reports: the end of its turn interrupted it.
    pub fn is_interrupted_by_end(&self) -> bool {
        let inferred = self.origin.ranks.holder(PartField::State).is_none();
        let tool = self.tool.as_ref().filter(|_| inferred);
        tool.is_some_and(|tool| tool.state == ToolState::Interrupted)
    }

    /// Why a call must be hidden: hooks alone report it, although log or stream cover its turn to
    /// the end, so a sub-agent made it.
    pub fn hides(&self, covered: bool) -> Option<HiddenReason> {
        let hidden = covered && self.is_only_hooks() && !self.origin.awaited_answer && !self.gone;
        hidden.then_some(HiddenReason::SubAgentCall)
    }
}

impl PartSets {
    pub const fn new() -> PartSets {
        PartSets {
            facts: Vec::new(),
            closable: BTreeSet::new(),
            misfits: [BTreeSet::new(), BTreeSet::new()],
            replies: BTreeSet::new(),
            errors: BTreeSet::new(),
            notices: BTreeSet::new(),
            visible: 0,
            cut: 0,
            agents: 0,
            waiting: 0,
            busy: 0,
            reasonings: 0,
            fragments: Fragments::new(),
        }
    }

    fn update(&mut self, part: usize, facts: PartFacts) {
        if self.facts.len() <= part {
            self.facts.resize(part + 1, PartFacts::default());
        }
        let before = std::mem::replace(&mut self.facts[part], facts);
        if before == facts {
            return;
        }
        let part = small(part);
        let set = |set: &mut BTreeSet<u32>, was: bool, is: bool| {
            if is {
                set.insert(part);
            } else if was {
                set.remove(&part);
            }
        };
        set(&mut self.closable, before.closable, facts.closable);
        set(&mut self.misfits[0], before.misfits[0], facts.misfits[0]);
        set(&mut self.misfits[1], before.misfits[1], facts.misfits[1]);
        let by_place = |set: &mut BTreeSet<(Place, u32)>, was: bool, is: bool| {
            if was && !(is && before.place == facts.place) {
                set.remove(&(before.place, part));
            }
            if is {
                set.insert((facts.place, part));
            }
        };
        by_place(&mut self.replies, before.reply, facts.reply);
        by_place(&mut self.errors, before.error, facts.error);
        by_place(&mut self.notices, before.notice, facts.notice);
        let count = |count: &mut usize, before: bool, now: bool| {
            *count = (*count + usize::from(now)).saturating_sub(usize::from(before));
        };
        count(&mut self.visible, before.visible, facts.visible);
        count(&mut self.cut, before.cut, facts.cut);
        count(&mut self.agents, before.agents, facts.agents);
        count(&mut self.waiting, before.waiting, facts.waiting);
        count(&mut self.busy, before.busy, facts.busy);
        count(&mut self.reasonings, before.reasoning, facts.reasoning);
    }

    /// The parts that the end of the turn closes, in the order in which they were opened.
    pub fn closable(&self) -> Vec<usize> {
        self.closable.iter().map(|part| *part as usize).collect()
    }

    /// The calls whose visibility contradicts the rule.
    pub fn misfits(&self, covered: bool) -> Vec<usize> {
        self.misfits[usize::from(covered)].iter().map(|part| *part as usize).collect()
    }

    /// True if a visible call did not end.
    pub fn has_cut_call(&self) -> bool {
        self.cut > 0
    }

    pub fn has_agents(&self) -> bool {
        self.agents > 0
    }

    /// True if a foreground sub-agent in a visible part is running.
    pub fn waits_for_agents(&self) -> bool {
        self.waiting > 0
    }

    /// True if any sub-agent has not ended.
    pub fn has_busy_agents(&self) -> bool {
        self.busy > 0
    }

    pub fn has_reasoning(&self) -> bool {
        self.reasonings > 0
    }

    /// True if no source reported a part that is visible.
    pub fn is_empty(&self) -> bool {
        self.visible == 0
    }

    /// True if an error explains the end. One that is followed by more of the reply was recovered
    /// from and explains nothing.
    pub fn has_final_error(&self) -> bool {
        is_after(&self.errors, &self.replies)
    }

    /// True if a notice explains the end.
    pub fn has_final_notice(&self) -> bool {
        is_after(&self.notices, &self.replies)
    }
}

fn is_after(set: &BTreeSet<(Place, u32)>, other: &BTreeSet<(Place, u32)>) -> bool {
    let last = |set: &BTreeSet<(Place, u32)>| set.last().map(|(place, _)| *place);
    last(set) > last(other)
}

impl Assembler {
    /// A part that is about to change.
    pub(super) fn part(&mut self, at: PartIndex) -> &mut PartFold {
        let part = &mut self.turns[at.0].parts[at.1];
        if !part.noted {
            part.noted = true;
            self.noted.push(at);
        }
        part
    }

    /// A part that does not change.
    pub(super) fn peek(&self, at: PartIndex) -> &PartFold {
        &self.turns[at.0].parts[at.1]
    }

    /// Brings the sets of all turns up to date with the parts that changed.
    pub(super) fn recount(&mut self) {
        while let Some(at) = self.noted.pop() {
            self.turns[at.0].parts[at.1].noted = false;
            self.recount_part(at);
            // The states of agents follow from their call.
            if self.turns[at.0].lookups.sets.has_agents()
                && let Some(agents) = self.agents_of(at)
            {
                self.recount_part(agents);
            }
        }
    }

    fn recount_part(&mut self, at: PartIndex) {
        let part = self.peek(at);
        let facts = PartFacts::of(part, self.has_unsettled_agents(at));
        let (key, rank) = (part.fragment_of(), part.origin.ranks.holder(PartField::Body));
        let item = part.item();
        let TurnFold { lookups, order, parts, .. } = &mut self.turns[at.0];
        lookups.sets.update(at.1, facts);
        lookups.sets.fragments.update(at.1, key, rank);
        let part = &parts[at.1];
        match &mut lookups.runs {
            Some(runs) => runs.update(at.1, part),
            None if part.is_run() => lookups.runs = Some(Box::new(Runs::of(parts))),
            None => {}
        }
        if lookups.runs.as_ref().is_some_and(|runs| runs.is_stale()) {
            self.stale_runs.insert(at.0);
        }
        if let Some(order) = order {
            order.set(at.1, item);
        }
    }

    /// True if the end of the turn changes the inferred state of an agent in this part.
    fn has_unsettled_agents(&self, at: PartIndex) -> bool {
        let Some(agents) = &self.peek(at).agents else { return false };
        let tool = self.tool_state_of(at.0, &agents.call_id);
        agents.agents.iter().any(|entry| {
            entry.ranks.holder(AgentField::State).is_none()
                && entry.state != inferred_state(entry, tool, true)
        })
    }

    /// Counts a turn from its parts: after a merge, or when it was loaded.
    pub(super) fn recount_turn(&mut self, turn: usize) {
        self.noted.retain(|at| at.0 != turn);
        self.turns[turn].lookups.sets = PartSets::new();
        self.turns[turn].lookups.runs = None;
        self.turns[turn].order = None;
        self.turns[turn].step_order = None;
        for part in 0..self.turns[turn].parts.len() {
            self.turns[turn].parts[part].noted = false;
            self.recount_part((turn, part));
        }
    }

    /// Compares what is kept about every turn with a count from its parts and steps, for tests.
    #[doc(hidden)]
    pub fn check_bookkeeping(&self) -> Result<(), String> {
        for (turn, fold) in self.turns.iter().enumerate() {
            if !fold.gone && self.turn_index.get(&fold.id) != Some(&turn) {
                return Err(format!("turn {turn} is not found by its id"));
            }
            for step in fold.steps.iter().filter(|step| step.name.is_local()) {
                let first = fold.steps.iter().position(|other| other.name == step.name);
                if self.find_step(turn, &step.name).map(|(_, step)| step) != first {
                    return Err(format!("turn {turn}: step {:?} is not {first:?}", step.name));
                }
            }
            let lost = fold.lookups.parts.iter().find(|(_, part)| fold.parts[**part].gone);
            if let Some((name, part)) = lost {
                return Err(format!("turn {turn}: {name:?} leads to part {part}, which is gone"));
            }
            let mut counted = self.clone();
            counted.recount_turn(turn);
            let (sets, expected) =
                (&self.turns[turn].lookups.sets, &mut counted.turns[turn].lookups.sets);
            sets.fragments.check(&expected.fragments)?;
            self.check_fragments(turn)?;
            expected.fragments = sets.fragments.clone();
            if sets != expected {
                return Err(format!("turn {turn}: {sets:#?}\ncounted: {expected:#?}"));
            }
        }
        let kept = self.turns.iter().filter(|turn| !turn.gone).count();
        if kept == self.turn_index.len() { Ok(()) } else { Err("an id leads nowhere".to_owned()) }
    }
}
