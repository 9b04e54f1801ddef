//! The end rule. One function ends a turn, whatever the reason: it closes open parts, interrupts
//! what still runs in the foreground, leaves background agents alone, clears open questions as
//! declined, says why when the turn did not end by itself, and guarantees a reply.

use crate::change::{Change, Oddity, PartPatch, TurnPatch};
use crate::event::EndReason;
use crate::part::{Body, Failure, Kind, Notice, ToolState};
use crate::session::{End, TurnState};
use crate::telling::{Field, Name, Origin, Telling};

use super::order::LAST;
use super::part::{At, body_digest};
use super::{Assembler, Head};

impl Assembler {
    pub(super) fn end_turn(&mut self, head: &Head, reason: EndReason) {
        // Where no turn has begun there is none to end.
        if head.turn.is_none() && self.tracks[head.telling.index()].turn.is_none() {
            return self.count(Oddity::Unknown);
        }
        let turn = self.turn_for(head);
        // Named prose may still grow: hooks tell the end before the last words.
        self.close_nameless(head);
        let end = End { reason, at: head.at };
        // A model that is done waits for the sub-agents that it started in the foreground.
        // Nothing else waits, and an end that was told stays.
        let waits = end.reason == EndReason::Completed && self.waits_for_agents(turn);
        let at = head.telling.index();
        let origin = &mut self.turns[turn].origin;
        if waits {
            origin.deferred[at] = Some(end);
        } else if origin.ends[at].as_ref().is_none_or(|held| is_weaker(held, &end)) {
            origin.ends[at] = Some(end);
        } else {
            return;
        }
        self.emit_turn_origin(turn);
        self.settle(turn);
    }

    /// The last sub-agent in the foreground ended: ends that waited for it take effect, once.
    pub(super) fn end_deferred(&mut self, turn: usize) {
        if self.turns[turn].origin.deferred.iter().all(Option::is_none)
            || self.waits_for_agents(turn)
        {
            return;
        }
        let origin = &mut self.turns[turn].origin;
        for (end, deferred) in origin.ends.iter_mut().zip(&mut origin.deferred) {
            if let Some(deferred) = deferred.take() {
                end.get_or_insert(deferred);
            }
        }
        self.emit_turn_origin(turn);
        self.settle(turn);
    }

    /// Brings a turn into line with how its tellings say it ended.
    pub(super) fn settle(&mut self, turn: usize) {
        let (state, ended, why) = self.verdict(turn);
        let fold = &mut self.turns[turn];
        let patch = TurnPatch {
            state: (fold.state != state).then_some(state),
            ended: (fold.ended != ended).then_some(ended),
            ..TurnPatch::default()
        };
        (fold.state, fold.ended) = (state, ended);
        self.tell_turn(turn, patch);
        if state != TurnState::Running {
            self.close_all(turn);
        }
        for part in 0..self.turns[turn].parts.len() {
            self.settle_foreign((turn, part));
        }
        self.settle_pieces(turn);
        self.tell_ending(turn, state, why);
    }

    /// What the tellings together say: the strongest that knows how the turn ended, else that it
    /// went idle, else that the next one began.
    fn verdict(&self, turn: usize) -> (TurnState, Option<jiff::Timestamp>, Option<String>) {
        let fold = &self.turns[turn];
        let ends =
            || Telling::ALL.into_iter().rev().filter_map(|t| fold.origin.ends[t.index()].as_ref());
        let definite = |end: &&End| !is_vague(&end.reason);
        let idle = |end: &&End| end.reason == EndReason::Idle;
        let told = ends().find(definite).or_else(|| ends().find(idle)).or_else(|| ends().next());
        // A weaker telling may know the time that the stronger one left out.
        let at = told.and_then(|told| told.at).or_else(|| ends().find_map(|end| end.at));
        match told.map(|told| &told.reason) {
            None => (TurnState::Running, None, None),
            Some(EndReason::Completed) => (TurnState::Completed, at, None),
            Some(EndReason::Failed(why)) => (TurnState::Failed, at, why.clone()),
            Some(EndReason::Interrupted) => (TurnState::Interrupted, at, None),
            Some(EndReason::Unseen) => (TurnState::Unknown, at, None),
            // Hooks are silent when a turn is interrupted or fails.
            Some(EndReason::Superseded) if fold.origin.at.0[1..] == [None, None] => {
                (TurnState::Unknown, at, None)
            }
            Some(EndReason::Idle | EndReason::Superseded) => {
                let cut = fold.live_parts().any(|part| {
                    part.tool.as_ref().is_some_and(|tool| {
                        !tool.state.is_terminal()
                            || (tool.state == ToolState::Interrupted
                                && part.origin.ranks.holder(crate::telling::Field::State).is_none())
                    })
                });
                let state = if cut { TurnState::Interrupted } else { TurnState::Completed };
                (state, at, None)
            }
        }
    }

    /// Whether a telling that has every call of the turn has told it to the end.
    fn is_told(&self, turn: usize) -> bool {
        let ends = &self.turns[turn].origin.ends;
        ends[Telling::Log.index()].is_some() || ends[Telling::Stream.index()].is_some()
    }

    /// Marks a call that was made elsewhere, together with its agents.
    pub(super) fn settle_foreign(&mut self, at: At) {
        let told = self.is_told(at.0);
        let part = self.part(at);
        if part.tool.is_none() {
            return;
        }
        let foreign = told && part.is_only_hooks() && !part.origin.asked && !part.gone;
        if part.origin.foreign == foreign {
            return;
        }
        for at in [Some(at), self.agents_of(at)].into_iter().flatten() {
            self.part(at).origin.foreign = foreign;
            self.note(at);
        }
    }

    /// Marks pieces of prose that a stronger telling has whole: it is shown once.
    pub(super) fn settle_pieces(&mut self, turn: usize) {
        if !self.turns[turn].has_pieces {
            return;
        }
        for part in 0..self.turns[turn].parts.len() {
            let at = (turn, part);
            let names = &self.turns[turn].parts[part].origin.names;
            let whole = names.iter().find_map(|name| {
                if let Name::Piece(content, nth, _) = name {
                    Some(Name::Alike(*content, *nth))
                } else {
                    None
                }
            });
            let Some(whole) = whole else { continue };
            let rank = |at: At| self.turns[at.0].parts[at.1].origin.ranks.holder(Field::Body);
            let whole = self.find_part(turn, &whole).and_then(rank);
            let covered = whole > rank(at) && !self.turns[turn].parts[part].gone;
            if self.part(at).origin.foreign != covered {
                self.part(at).origin.foreign = covered;
                self.note(at);
            }
        }
    }

    fn close_all(&mut self, turn: usize) {
        for part in 0..self.turns[turn].parts.len() {
            let at = (turn, part);
            if self.part(at).gone {
                continue;
            }
            let part = self.part(at);
            if let Some(prose) = &mut part.prose
                && prose.open
            {
                prose.open = false;
                part.origin.unfinished = true;
                self.tell(at, PartPatch { open: Some(false), ..PartPatch::default() });
            }
            if self.part(at).tool.as_ref().is_some_and(|tool| !tool.state.is_terminal()) {
                self.advance(at, ToolState::Interrupted);
            }
            if self.part(at).agents.is_some() {
                self.settle_agents(at, None);
            }
        }
    }

    /// A turn that did not end by itself says why, and a turn that ended has a reply.
    fn tell_ending(&mut self, turn: usize, state: TurnState, why: Option<String>) {
        let body = self.ending(turn, state, why);
        let held = self.turns[turn].local.get(&Name::Ending).copied();
        match (held, body) {
            (None, None) => {}
            (Some(part), None) => {
                self.turns[turn].local.remove(&Name::Ending);
                self.remove_part((turn, part));
            }
            (Some(part), Some(body)) => {
                let content = body_digest(&body);
                if self.part((turn, part)).digest != content {
                    self.part((turn, part)).digest = content;
                    self.tell((turn, part), PartPatch { body: Some(body), ..PartPatch::default() });
                }
            }
            (None, Some(body)) => {
                let content = body_digest(&body);
                let origin = Origin { names: vec![Name::Ending], ..Origin::default() };
                // It stands for no record: it has no evidence, no time and no step.
                let at = self.insert_ending(turn, origin, body);
                self.part(at).digest = content;
            }
        }
    }

    fn insert_ending(&mut self, turn: usize, origin: Origin, body: Body) -> (usize, usize) {
        let id = super::fold::id_of(self.session, self.turns[turn].id, &Name::Ending);
        let part = crate::part::Part {
            id: crate::id::PartId(id),
            place: LAST,
            step: None,
            started: None,
            ended: None,
            evidence: Vec::new(),
            origin,
            body,
        };
        let at = (turn, self.turns[turn].parts.len());
        self.turns[turn].parts.push(super::restore::skeleton(&part));
        self.register(at, Name::Ending);
        self.out.push(Change::PartOpened { turn: self.turns[turn].id, part: Box::new(part) });
        at
    }

    fn ending(&self, turn: usize, state: TurnState, why: Option<String>) -> Option<Body> {
        let fold = &self.turns[turn];
        let told = || fold.live_parts().filter(|part| part.origin.names != [Name::Ending]);
        let notice = |code: &str, text: &str| {
            Some(Body::Notice(Notice { code: code.to_owned(), text: text.to_owned() }))
        };
        if fold.is_preamble() {
            return None;
        }
        // What went wrong and was overcome explains nothing: more of the reply came after it.
        let last = told()
            .filter(|part| part.is_prose() || part.tool.is_some())
            .map(|part| part.place)
            .max();
        let explained_by = |kind: Kind| {
            told().any(|part| part.explains && part.kind == kind && Some(part.place) > last)
        };
        let explained = match state {
            TurnState::Failed => explained_by(Kind::Error),
            TurnState::Interrupted => explained_by(Kind::Notice) || explained_by(Kind::Error),
            TurnState::Running | TurnState::Completed | TurnState::Unknown => true,
        };
        match state {
            TurnState::Running | TurnState::Unknown => None,
            TurnState::Interrupted if !explained => notice("interrupted", "Interrupted"),
            TurnState::Failed if !explained => {
                let text = why.unwrap_or_else(|| "The turn failed.".to_owned());
                Some(Body::Error(Failure { text, ..Failure::default() }))
            }
            TurnState::Completed | TurnState::Interrupted | TurnState::Failed => {
                (told().next().is_none() && !fold.is_command)
                    .then(|| notice("no-reply", "No reply"))
                    .flatten()
            }
        }
    }

    /// A turn that had been given a reply because it had none has one now.
    pub(super) fn end_empty(&mut self, turn: usize) {
        if self.turns[turn].local.contains_key(&Name::Ending) {
            let (state, _, why) = self.verdict(turn);
            self.tell_ending(turn, state, why);
        }
    }
}

/// Whether an end does not say how it came about.
fn is_vague(reason: &EndReason) -> bool {
    match reason {
        EndReason::Idle | EndReason::Superseded | EndReason::Unseen => true,
        EndReason::Completed | EndReason::Failed(_) | EndReason::Interrupted => false,
    }
}

/// A telling that says more of an end than it did before is believed, and so is one that says
/// the same again later: some sources repeat the end with each of the last words.
fn is_weaker(held: &End, told: &End) -> bool {
    if held.reason == told.reason {
        return told.at > held.at;
    }
    match (&held.reason, &told.reason) {
        (EndReason::Superseded | EndReason::Idle | EndReason::Unseen, _) => true,
        (EndReason::Completed, EndReason::Failed(_) | EndReason::Interrupted) => true,
        (EndReason::Completed | EndReason::Failed(_) | EndReason::Interrupted, _) => false,
    }
}
