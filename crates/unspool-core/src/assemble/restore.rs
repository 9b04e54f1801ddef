//! Releasing closed turns from memory, and restoring them from the store's rows when a late event
//! needs them.

use serde::{Deserialize, Serialize};

use crate::event::Event;
use crate::id::TurnId;
use crate::part::{Body, Part, Place};
use crate::provenance::{Feed, Name};
use crate::rank::PartField;
use crate::session::{Session, Transcript, Trigger, Turn, TurnState};

use super::fold::{AgentsFold, PartFold, Prose, StepFold, ToolFold, TurnFold};
use super::order::{Item, arrange, spine_place};
use super::{Assembler, FeedReplay};

/// A turn that stays in the store: its head without parts and steps, and the digests of all global
/// names of its parts and steps.
pub struct TurnStub {
    pub turn: Turn,
    pub names: Vec<u64>,
}

impl Turn {
    /// The place of each step.
    pub fn step_places(&self) -> Vec<Place> {
        let items: Vec<Item<()>> =
            self.steps.iter().map(|step| Item { at: step.at, group: None }).collect();
        let mut places = vec![Place::default(); items.len()];
        for (step, place) in arrange(&items) {
            places[step] = place;
        }
        places
    }

    /// The digests of all global names of its parts and steps.
    pub fn name_digests(&self) -> Vec<u64> {
        let parts = self.parts.iter().flat_map(|part| &part.origin.names);
        let steps = self.steps.iter().map(|step| &step.name);
        let names = parts.chain(steps).filter(|name| !name.is_local());
        names.map(Name::digest).collect()
    }
}

/// The last event applied from one source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Cursor {
    #[serde(rename = "telling")]
    pub feed: Feed,
    pub source: u16,
    pub offset: u64,
    pub nth: u32,
}

impl Assembler {
    /// Resumes from a complete stored session.
    pub fn resume(transcript: &Transcript) -> Assembler {
        let mut assembler = Assembler::new(transcript.session.id);
        assembler.facts = transcript.session.facts.clone();
        assembler.state = transcript.session.state;
        for turn in &transcript.turns {
            assembler.restore(turn);
        }
        assembler
    }

    /// Resumes from a stored session without loading its turns. The assembler knows which names
    /// lead to which turn and requests a turn ([`Assembler::needs`]) when an event refers to it.
    /// Turns that were not settled must be restored before the first event.
    pub fn resume_from_stubs(
        session: &Session,
        outlines: impl IntoIterator<Item = TurnStub>,
    ) -> Assembler {
        let mut assembler = Assembler::new(session.id);
        assembler.facts = session.facts.clone();
        assembler.state = session.state;
        for TurnStub { turn, names } in outlines {
            let at = assembler.turns.len();
            let mut fold = fold_turn(&turn);
            fold.stored = true;
            for name in &fold.origin.names {
                assembler.index.turns.insert(name, at);
            }
            let turn = super::names::small(at);
            assembler.index.stored.extend(names.into_iter().map(|name| (name, turn)));
            assembler.catch_up(at, &fold);
            assembler.turns.push(fold);
        }
        assembler
    }

    /// The cursor of each source of each feed: the offset of the record, and the index of the
    /// event in it.
    pub fn cursors(&self) -> impl Iterator<Item = Cursor> + '_ {
        self.cursors.iter().map(|(&(feed, source), &(offset, nth))| Cursor {
            feed,
            source,
            offset,
            nth,
        })
    }

    /// Sets the cursor of a source.
    pub fn set_cursor(&mut self, cursor: Cursor) {
        let Cursor { feed, source, offset, nth } = cursor;
        self.cursors.insert((feed, source), (offset, nth));
    }

    /// Resumes a source that stopped in this turn. If another source of the feed is further, this
    /// one replays it.
    pub fn resume_at(&mut self, feed: Feed, source: u16, turn: &Name) {
        let turn = self.index.turns.get(turn);
        let track = &mut self.tracks[feed.index()];
        if turn.is_some() && turn != track.turn {
            track.replay = Some(FeedReplay { source, turn });
        }
    }

    /// The turns that must be restored before this event can be applied.
    pub fn needs(&self, event: &Event) -> Vec<TurnId> {
        let mut needed: Vec<TurnId> = event
            .kind
            .names()
            .iter()
            .chain(&event.turn)
            .flat_map(|name| self.turns_of(name))
            .map(|turn| &self.turns[turn])
            .chain(self.turn_without_name(event).map(|turn| &self.turns[turn]))
            .filter(|turn| turn.stored)
            .map(|turn| turn.id)
            .collect();
        needed.sort_unstable();
        needed.dedup();
        needed
    }

    /// The turns that a name leads to.
    fn turns_of(&self, name: &Name) -> impl Iterator<Item = usize> {
        let turn = self.index.turns.get(name);
        let step = self.index.steps.get(name).map(|step| step.0);
        let part = self.index.parts.get(name).map(|part| part.0);
        let stored = self.index.stored.get(&name.digest()).map(|turn| *turn as usize);
        [turn, step, part, stored].into_iter().flatten()
    }

    /// The turn of an event that names none.
    fn turn_without_name(&self, event: &Event) -> Option<usize> {
        let replay = self.tracks[event.feed.index()].replay;
        let replay = replay.filter(|replay| replay.source == event.evidence.source);
        let preamble = || self.index.turns.get(&Name::Preamble);
        self.current_turn(event.feed, replay).or_else(preamble)
    }

    /// Releases a settled turn: drops its parts and keeps its names. Returns whether it did.
    pub fn release(&mut self, id: TurnId) -> bool {
        let Some(at) = self.find_turn(id).filter(|at| self.can_release(*at)) else { return false };
        let turn = &mut self.turns[at];
        turn.parts = Vec::new();
        turn.steps = Vec::new();
        turn.local = Default::default();
        turn.occurrences = Default::default();
        turn.stored = true;
        true
    }

    /// True if the session has no turns.
    pub fn has_no_turns(&self) -> bool {
        self.turns.iter().all(|turn| turn.gone)
    }

    /// True if a turn can be released: nothing in it is open or running.
    pub fn is_settled(&self, id: TurnId) -> bool {
        self.find_turn(id).is_some_and(|at| self.can_release(at))
    }

    fn find_turn(&self, id: TurnId) -> Option<usize> {
        self.turns.iter().rposition(|turn| turn.id == id && !turn.gone)
    }

    fn can_release(&self, at: usize) -> bool {
        if self.tracks.iter().any(|track| track.turn == Some(at)) {
            return false;
        }
        let turn = &self.turns[at];
        // A feed may still extend a block that it has not ended.
        let reported =
            self.tracks.iter().flat_map(|track| track.open.iter().chain(&track.nameless));
        let growing = reported.into_iter().any(|open| open.0 == at);
        let busy = turn.parts.iter().any(|part| {
            part.agents.as_ref().is_some_and(|agents| {
                agents.agents.iter().any(|existing| !existing.state.is_terminal())
            })
        });
        turn.state != TurnState::Running && !busy && !growing
    }

    /// Restores a turn from its stored form.
    pub fn restore(&mut self, turn: &Turn) {
        let existing = self.turns.iter().position(|held| held.id == turn.id && !held.gone);
        if existing.is_some_and(|at| !self.turns[at].stored) {
            return;
        }
        let at = existing.unwrap_or(self.turns.len());
        let fold = fold_turn(turn);
        for (part, held) in fold.parts.iter().enumerate() {
            for name in &held.origin.names {
                if !name.is_local() {
                    self.index.parts.insert(name, (at, part));
                }
            }
        }
        for (step, held) in fold.steps.iter().enumerate() {
            if !held.name.is_local() {
                self.index.steps.insert(&held.name, (at, step));
            }
        }
        for name in &fold.origin.names {
            self.index.turns.insert(name, at);
        }
        if existing.is_none() {
            self.catch_up(at, &fold);
        }
        self.resume_prose(at, &fold);
        if at == self.turns.len() {
            self.turns.push(fold);
        } else {
            self.turns[at] = fold;
        }
    }

    /// Each feed continues in the last turn that it reached.
    fn catch_up(&mut self, at: usize, turn: &TurnFold) {
        for feed in Feed::ALL {
            let Some(position) = turn.origin.at.of(feed) else { continue };
            let track = &mut self.tracks[feed.index()];
            if position >= track.turns {
                track.turns = position + 1;
                track.turn = Some(at);
            }
        }
    }

    /// Re-registers open prose. Released turns have none.
    fn resume_prose(&mut self, at: usize, turn: &TurnFold) {
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
    fold.inherited = turn.inherited;
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
    place_steps(&mut fold, turn);
    for part in &turn.parts {
        let held = skeleton(part);
        for feed in Feed::ALL {
            if let Some(position) = held.origin.at.of(feed) {
                let placed = &mut fold.placed[feed.index()];
                *placed = (*placed).max(position + 1);
            }
        }
        let at = fold.parts.len();
        for name in held.origin.names.iter().filter(|name| name.is_local()) {
            fold.local.insert(name.clone(), at);
            fold.has_fragments |= matches!(name, Name::ContentFragment(..));
        }
        fold.has_reasoning |= matches!(part.body, Body::Reasoning(_));
        for (class, content, nth) in &held.origin.occurrences {
            let count = fold.occurrences.entry((*class, *content)).or_default();
            *count = (*count).max(nth + 1);
            fold.local.insert(Name::ByContent(*content, *nth), at);
        }
        fold.parts.push(held);
    }
    for kept in &fold.origin.reserved_places {
        let placed = &mut fold.placed[kept.feed.index()];
        *placed = (*placed).max(kept.position + 1);
    }
    for step in &fold.steps {
        for feed in Feed::ALL {
            if let Some(position) = step.at.of(feed) {
                let stepped = &mut fold.stepped[feed.index()];
                if position >= *stepped {
                    *stepped = position + 1;
                    fold.step[feed.index()] = Some(step.id);
                }
            }
        }
    }
    fold
}

fn place_steps(fold: &mut TurnFold, turn: &Turn) {
    for (step, place) in fold.steps.iter_mut().zip(turn.step_places()) {
        step.place = place;
    }
}

/// The in-memory state of a part.
pub(super) fn skeleton(part: &Part) -> PartFold {
    let strongest_feed = part.origin.ranks.holder(PartField::Body);
    let source = part.evidence.iter().rev().find(|evidence| Some(evidence.feed) == strongest_feed);
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
                owner: strongest_feed.unwrap_or(Feed::Log),
                source: source.unwrap_or_default(),
                text: text.to_owned(),
                open,
            })
        })
    };
    // Open prose has no final digest yet.
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
                provider_executed: tool.provider_executed,
                question: tool.question.as_ref().map(|question| question.kind),
                request_id: tool.question.as_ref().and_then(|q| q.request_id.clone()),
                inferred: tool.answer.as_ref().filter(|_| !observed).map(|a| a.decision),
                question_digest: tool.question.as_ref().map_or(0, |question_digest| {
                    crate::id::digest(format!("{:?}", question_digest.items).as_bytes())
                }),
                grown_by: grown_by(part),
                content_hashes: part
                    .origin
                    .occurrences
                    .iter()
                    .map(|(_, content, _)| *content)
                    .collect(),
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

/// The source that extends a call's text: the latest source of a log, or the capture that began
/// it.
fn grown_by(part: &Part) -> Option<u16> {
    let ranks = &part.origin.ranks;
    let strongest_feed =
        ranks.holder(PartField::InputText).or(ranks.holder(PartField::OutputText))?;
    let mut sources = part
        .evidence
        .iter()
        .filter(|reported| reported.feed == strongest_feed)
        .map(|reported| reported.source);
    if strongest_feed == Feed::Log { sources.max() } else { sources.next() }
}
