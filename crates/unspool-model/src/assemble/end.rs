//! The end rule. One function ends a turn, whatever the reason: it closes open parts, interrupts
//! running foreground calls, leaves background agents alone, declines open questions, adds the
//! reason if the turn failed or was interrupted, and guarantees a reply.

use crate::change::{Change, PartPatch, SkipReason, TurnPatch};
use crate::event::EndReason;
use crate::part::{Body, Failure, Notice, ToolState};
use crate::provenance::{Feed, Name, Origin, Positions};
use crate::session::{TurnEnd, TurnState};

use super::order::LAST_PLACE;
use super::part::{PartIndex, body_digest};
use super::{Assembler, Head};

impl Assembler {
    pub(super) fn end_turn(&mut self, head: &Head, reason: EndReason) {
        // There is no turn to end.
        let current = self.current_turn(head.feed, head.evidence.source, head.at);
        if head.turn.is_none() && current.is_none() {
            return self.count(SkipReason::Unknown);
        }
        let turn = self.turn_for(head);
        // Named prose stays open: hooks report the end before the last text arrives.
        self.close_nameless(head);
        let end = TurnEnd { reason, at: head.at };
        // Only a completed turn waits for foreground sub-agents. Other reasons take effect at
        // once, and an end that has taken effect stays.
        let waits = end.reason == EndReason::Completed && self.waits_for_agents(turn);
        let at = head.feed.index();
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

    /// Applies deferred ends, once, after the last foreground sub-agent has ended.
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

    /// Recomputes the state of a turn from the ends that its feeds report.
    pub(super) fn settle(&mut self, turn: usize) {
        self.recount();
        let (state, ended, why) = self.verdict(turn);
        let fold = &mut self.turns[turn];
        let patch = TurnPatch {
            state: (fold.state != state).then_some(state),
            ended: (fold.ended != ended).then_some(ended),
            ..TurnPatch::default()
        };
        (fold.state, fold.ended) = (state, ended);
        self.emit_turn_patch(turn, patch);
        if state != TurnState::Running {
            self.close_all(turn);
        }
        self.recount();
        for part in self.turns[turn].lookups.sets.misfits(self.is_covered_to_end(turn)) {
            self.settle_hidden((turn, part));
        }
        self.settle_fragments(turn);
        self.update_ending(turn, state, why);
    }

    /// The combined end: the strongest feed with a definite reason, otherwise idle, otherwise
    /// superseded.
    fn verdict(&self, turn: usize) -> (TurnState, Option<jiff::Timestamp>, Option<String>) {
        let fold = &self.turns[turn];
        let ends =
            || Feed::ALL.into_iter().rev().filter_map(|t| fold.origin.ends[t.index()].as_ref());
        let definite = |end: &&TurnEnd| !is_vague(&end.reason);
        let idle = |end: &&TurnEnd| end.reason == EndReason::Idle;
        // A failure without a message may be an interruption that a weaker feed saw: Gemini's log
        // does not say which.
        let interrupted = |end: &&TurnEnd| end.reason == EndReason::Interrupted;
        let definite = match ends().find(definite) {
            Some(end) if end.reason == EndReason::Failed(None) => {
                ends().find(interrupted).or(Some(end))
            }
            other => other,
        };
        let reported = definite.or_else(|| ends().find(idle)).or_else(|| ends().next());
        // A weaker feed may have the time that the stronger one lacks.
        let at =
            reported.and_then(|reported| reported.at).or_else(|| ends().find_map(|end| end.at));
        match reported.map(|reported| &reported.reason) {
            // No feed has reached the preamble: it only has what belongs to the whole session.
            None if fold.is_preamble() && fold.origin.at == Positions::default() => {
                (TurnState::Completed, None, None)
            }
            None => (TurnState::Running, None, None),
            Some(EndReason::Completed) => (TurnState::Completed, at, None),
            Some(EndReason::Failed(why)) => (TurnState::Failed, at, why.clone()),
            // Every agent reports the end of a turn, so a turn that it left was not complete.
            Some(EndReason::Interrupted | EndReason::Lost) => (TurnState::Interrupted, at, None),
            Some(EndReason::Unseen) => (TurnState::Unknown, at, None),
            // Hooks do not report interrupted or failed turns.
            Some(EndReason::Superseded) if fold.origin.at.0[1..] == [None, None] => {
                (TurnState::Unknown, at, None)
            }
            Some(EndReason::Idle | EndReason::Superseded) => {
                let state = if fold.lookups.sets.has_cut_call() {
                    TurnState::Interrupted
                } else {
                    TurnState::Completed
                };
                (state, at, None)
            }
        }
    }

    /// True if a feed with every call of the turn, the log or the stream, has reported its end.
    fn is_covered_to_end(&self, turn: usize) -> bool {
        let ends = &self.turns[turn].origin.ends;
        let reported = |feed: Feed| {
            ends[feed.index()].as_ref().is_some_and(|end| end.reason != EndReason::Lost)
        };
        reported(Feed::Log) || reported(Feed::Stream)
    }

    /// Hides a call that a sub-agent made, together with its agents part.
    pub(super) fn settle_hidden(&mut self, at: PartIndex) {
        let reported = self.is_covered_to_end(at.0);
        let part = self.part(at);
        if part.tool.is_none() {
            return;
        }
        let hidden = part.hides(reported);
        if part.origin.hidden == hidden {
            return;
        }
        for at in [Some(at), self.agents_of(at)].into_iter().flatten() {
            self.part(at).origin.hidden = hidden;
            self.emit_origin(at);
        }
    }

    fn close_all(&mut self, turn: usize) {
        for part in self.turns[turn].lookups.sets.closable() {
            let at = (turn, part);
            let part = self.part(at);
            if let Some(prose) = &mut part.prose
                && prose.open
            {
                prose.open = false;
                part.origin.unfinished = true;
                self.emit_part_patch(at, PartPatch { open: Some(false), ..PartPatch::default() });
            }
            if self.part(at).tool.as_ref().is_some_and(|tool| !tool.state.is_terminal()) {
                self.advance(at, ToolState::Interrupted);
            }
            if self.part(at).agents.is_some() {
                self.settle_agents(at, None);
            }
        }
        // Hiding a call may have ended the wait for its agents.
        if self.turns[turn].lookups.sets.has_agents() {
            self.end_deferred(turn);
        }
    }

    /// Adds, replaces or removes the part that explains the end or stands in for a missing reply.
    fn update_ending(&mut self, turn: usize, state: TurnState, why: Option<String>) {
        self.recount();
        let body = self.ending(turn, state, why);
        let held = self.turns[turn].lookups.parts.get(&Name::Ending).copied();
        match (held, body) {
            (None, None) => {}
            (Some(part), None) => {
                self.turns[turn].lookups.parts.remove(&Name::Ending);
                self.remove_part((turn, part));
            }
            (Some(part), Some(body)) => {
                let content = body_digest(&body);
                if self.part((turn, part)).digest != content {
                    self.part((turn, part)).digest = content;
                    self.emit_part_patch(
                        (turn, part),
                        PartPatch { body: Some(body), ..PartPatch::default() },
                    );
                }
            }
            (None, Some(body)) => {
                let content = body_digest(&body);
                let origin = Origin { names: vec![Name::Ending], ..Origin::default() };
                // No record is behind it, so it has no evidence, time or step.
                let at = self.insert_ending(turn, origin, body);
                self.part(at).digest = content;
            }
        }
    }

    fn insert_ending(&mut self, turn: usize, origin: Origin, body: Body) -> (usize, usize) {
        let id = super::fold::id_of(self.session, self.turns[turn].id, &Name::Ending);
        let part = crate::part::Part {
            id: crate::id::PartId(id),
            place: LAST_PLACE,
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
        self.emit(Change::PartOpened { turn: self.turns[turn].id, part: Box::new(part) });
        at
    }

    fn ending(&self, turn: usize, state: TurnState, why: Option<String>) -> Option<Body> {
        let fold = &self.turns[turn];
        let notice = |code: &str, text: &str| {
            Some(Body::Notice(Notice { code: code.to_owned(), text: text.to_owned() }))
        };
        if fold.is_preamble() {
            return None;
        }
        let explained = match state {
            TurnState::Failed => fold.lookups.sets.has_final_error(),
            TurnState::Interrupted => {
                fold.lookups.sets.has_final_notice() || fold.lookups.sets.has_final_error()
            }
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
                (fold.lookups.sets.is_empty() && !fold.is_command)
                    .then(|| notice("no-reply", "No reply"))
                    .flatten()
            }
        }
    }

    /// Updates the stand-in reply of a turn that has just got a part.
    pub(super) fn end_empty(&mut self, turn: usize) {
        if self.turns[turn].lookups.parts.contains_key(&Name::Ending) {
            self.recount();
            let (state, _, why) = self.verdict(turn);
            self.update_ending(turn, state, why);
        }
    }
}

/// True if the reason does not say how the turn ended.
fn is_vague(reason: &EndReason) -> bool {
    match reason {
        EndReason::Idle | EndReason::Superseded | EndReason::Unseen | EndReason::Lost => true,
        EndReason::Completed | EndReason::Failed(_) | EndReason::Interrupted => false,
    }
}

/// True if a feed's new end replaces the one it reported before: it is more specific, or the same
/// at a later time. Some sources repeat the end with each of the last records.
fn is_weaker(held: &TurnEnd, reported: &TurnEnd) -> bool {
    if held.reason == reported.reason {
        return reported.at > held.at;
    }
    match (&held.reason, &reported.reason) {
        (EndReason::Lost, _) => true,
        (_, EndReason::Lost) => false,
        (EndReason::Superseded | EndReason::Idle | EndReason::Unseen, _) => true,
        (EndReason::Completed, EndReason::Failed(_) | EndReason::Interrupted) => true,
        (EndReason::Completed | EndReason::Failed(_) | EndReason::Interrupted, _) => false,
    }
}
