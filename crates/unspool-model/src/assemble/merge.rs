//! What a merge takes from the turn or part that goes. The assembler decides it field by field,
//! because it has the ranks, and the change names the fields: whoever applies the change copies
//! them and needs no ranks.

use crate::change::{Change, PartMergeField, TurnMergeField};
use crate::provenance::{Feed, Name};
use crate::rank::{PartField, RankKey, Ranks, TurnField};

use super::Assembler;
use super::fold::{PartFold, ToolFold, TurnFold};

/// The fields of any part, and the ranks that decide about them.
const PART_FIELDS: [(PartMergeField, PartField); 3] = [
    (PartMergeField::Step, PartField::Step),
    (PartMergeField::Started, PartField::Started),
    (PartMergeField::Ended, PartField::Ended),
];

/// The fields of a tool that are ranked one by one.
const TOOL_FIELDS: [(PartMergeField, PartField); 10] = [
    (PartMergeField::ParentCallId, PartField::ParentCall),
    (PartMergeField::Name, PartField::Name),
    (PartMergeField::Input, PartField::Input),
    (PartMergeField::State, PartField::State),
    (PartMergeField::Output, PartField::Output),
    (PartMergeField::Result, PartField::Result),
    (PartMergeField::ExitCode, PartField::ExitCode),
    (PartMergeField::DurationMs, PartField::Duration),
    (PartMergeField::Answer, PartField::Answer),
    (PartMergeField::Title, PartField::Title),
];

const TURN_FIELDS: [(TurnMergeField, TurnField); 3] = [
    (TurnMergeField::User, TurnField::User),
    (TurnMergeField::Trigger, TurnField::Trigger),
    (TurnMergeField::Started, TurnField::Started),
];

/// The fields that a stronger feed set in the one that goes.
fn stronger<'a, F: Copy, K: RankKey>(
    fields: &'a [(F, K)],
    gone: &'a Ranks<K>,
    kept: &'a Ranks<K>,
) -> impl Iterator<Item = F> + 'a {
    let stronger = |rank: K| gone.holder(rank) > kept.holder(rank);
    fields.iter().filter(move |(_, rank)| stronger(*rank)).map(|(field, _)| *field)
}

/// Two parts of one turn with the same name: the one that came from the turn that goes, the other
/// one, and the name.
pub(super) type Twins = (usize, usize, Name);

impl PartFold {
    fn fields_to_take(&self, gone: &PartFold) -> Vec<PartMergeField> {
        let (theirs, ours) = (&gone.origin.ranks, &self.origin.ranks);
        let mut take: Vec<PartMergeField> = stronger(&PART_FIELDS, theirs, ours).collect();
        match (&self.tool, &gone.tool) {
            (Some(tool), Some(other)) => {
                take.extend(stronger(&TOOL_FIELDS, theirs, ours));
                if self.origin.yields_question_to(&gone.origin) {
                    take.push(PartMergeField::Question);
                }
                if tool.call_id.is_empty() && !other.call_id.is_empty() {
                    take.push(PartMergeField::CallId);
                }
                if other.provider_executed && !tool.provider_executed {
                    take.push(PartMergeField::ProviderExecuted);
                }
            }
            (Some(_), None) => {}
            (None, _) => {
                let body = [(PartMergeField::Body, PartField::Body)];
                take.extend(stronger(&body, theirs, ours));
            }
        }
        take
    }

    /// Takes these fields, and what merged parts always share. Returns the names of the other.
    fn absorb(&mut self, gone: PartFold, take: &[PartMergeField]) -> Vec<Name> {
        if take.contains(&PartMergeField::Body) {
            (self.digest, self.kind) = (gone.digest, gone.kind);
        }
        if take.contains(&PartMergeField::Step) {
            self.step = gone.step;
        }
        self.explains |= gone.explains;
        if let (Some(tool), Some(other)) = (&mut self.tool, gone.tool) {
            tool.absorb(*other, take);
        }
        for (held, other) in self.origin.at.0.iter_mut().zip(gone.origin.at.0) {
            *held = (*held).max(other);
        }
        self.origin.ranks.join(gone.origin.ranks);
        self.origin.rejected |= gone.origin.rejected;
        self.origin.awaited_answer |= gone.origin.awaited_answer;
        self.origin.denied |= gone.origin.denied;
        self.origin.absorb_questions(gone.origin.questions);
        self.origin.occurrences.extend(gone.origin.occurrences);
        self.origin.occurrences.sort_unstable();
        gone.origin.names
    }
}

impl ToolFold {
    fn absorb(&mut self, gone: ToolFold, take: &[PartMergeField]) {
        if take.contains(&PartMergeField::State) {
            self.state = gone.state;
            self.reported_state = gone.reported_state;
        }
        if take.contains(&PartMergeField::ExitCode) {
            self.exit_code = gone.exit_code;
        }
        if take.contains(&PartMergeField::Question) {
            self.question = gone.question;
            self.earlier = gone.earlier;
        }
        if take.contains(&PartMergeField::Answer) && gone.answer.is_some() {
            self.answer = gone.answer;
        }
        if take.contains(&PartMergeField::CallId) {
            self.call_id = gone.call_id;
        }
        self.provider_executed |= gone.provider_executed;
        self.content_hashes.extend(gone.content_hashes);
    }
}

impl TurnFold {
    fn fields_to_take(&self, gone: &TurnFold) -> Vec<TurnMergeField> {
        let fields = stronger(&TURN_FIELDS, &gone.origin.ranks, &self.origin.ranks);
        let mut take: Vec<TurnMergeField> = fields.collect();
        if gone.abandoned && !self.abandoned {
            take.push(TurnMergeField::Abandoned);
        }
        if gone.inherited && !self.inherited {
            take.push(TurnMergeField::Inherited);
        }
        take
    }

    /// Takes these fields, the steps and the parts of a turn that goes. Its parts and steps come
    /// after the own ones. Returns parts of both that share a local name.
    fn absorb(&mut self, mut gone: TurnFold, take: &[TurnMergeField]) -> Vec<Twins> {
        if take.contains(&TurnMergeField::Trigger) {
            self.is_command = gone.is_command;
        }
        self.abandoned |= gone.abandoned;
        self.inherited |= gone.inherited;
        self.has_reasoning |= gone.has_reasoning;
        for feed in Feed::ALL {
            let at = feed.index();
            self.step[at] = self.step[at].or(gone.step[at]);
            // As after a restart, when only the last position is known.
            self.placed[at] = self.placed[at].max(gone.placed[at]);
            self.stepped[at] = self.stepped[at].max(gone.stepped[at]);
        }
        // Equal texts and calls of the turn that goes come after the own ones.
        for part in &mut gone.parts {
            for (class, content, nth) in &mut part.origin.occurrences {
                *nth +=
                    self.lookups.occurrences.get(&(*class, *content)).copied().unwrap_or_default();
            }
        }
        for (key, count) in std::mem::take(&mut gone.lookups.occurrences) {
            *self.lookups.occurrences.entry(key).or_default() += count;
        }
        self.absorb_origin(gone.origin);
        let shift = self.parts.len();
        self.parts.extend(gone.parts);
        let step_shift = self.steps.len();
        self.steps.extend(gone.steps);
        (step_shift..self.steps.len()).for_each(|step| self.register_step(step));
        let mut twins = Vec::new();
        for (name, part) in std::mem::take(&mut gone.lookups.parts) {
            match self.lookups.parts.get(&name) {
                None => {
                    self.lookups.parts.insert(name, part + shift);
                }
                Some(own) => twins.push((part + shift, *own, name)),
            }
        }
        // A map has no order, and the merges below must have one.
        twins.sort_unstable();
        twins
    }

    /// Everything of the origin but the names, which may change the turn's id.
    fn absorb_origin(&mut self, gone: crate::session::TurnOrigin) {
        let origin = &mut self.origin;
        for feed in Feed::ALL {
            if let Some(position) = gone.at.of(feed) {
                if origin.at.of(feed).is_none() {
                    origin.source_starts[feed.index()] = gone.source_starts[feed.index()];
                }
                origin.at.set(feed, position);
            }
        }
        let either = |held: &mut Option<_>, other: Option<_>| *held = held.take().or(other);
        origin.ends.iter_mut().zip(gone.ends).for_each(|(held, other)| either(held, other));
        origin.deferred.iter_mut().zip(gone.deferred).for_each(|(held, other)| either(held, other));
        origin.pending_whitespace.extend(gone.pending_whitespace);
        origin.reserved_places.extend(gone.reserved_places);
        for (held, other) in origin.next_positions.iter_mut().zip(gone.next_positions) {
            *held = (*held).max(other);
        }
        // One request with thinking makes a thinking turn.
        origin.thinking = match (origin.thinking, gone.thinking) {
            (Some(a), Some(b)) => Some(a || b),
            (a, b) => a.or(b),
        };
        origin.ranks.join(gone.ranks);
        origin.records.join(gone.records);
    }
}

impl Assembler {
    /// Merges two parts of a turn.
    pub(super) fn merge_parts(&mut self, turn: usize, from: usize, into: usize) {
        let gone = self.part((turn, from));
        gone.gone = true;
        let gone = gone.clone();
        let kept = self.part((turn, into));
        let (part, take) = (gone.id, kept.fields_to_take(&gone));
        let into_id = kept.id;
        let occurrences = gone.origin.occurrences.clone();
        let names = kept.absorb(gone, &take);
        self.emit(Change::PartMerged { part, into: into_id, take });
        for name in names {
            self.name_part((turn, into), name);
        }
        // Later equal texts and calls must not find the part that is gone.
        for (_, content, nth) in occurrences {
            let name = Name::ByContent(content, nth);
            if self.turns[turn].lookups.parts.get(&name) == Some(&from) {
                self.turns[turn].set_local(name, into);
            }
        }
        self.arrange_parts(turn);
        self.emit_origin((turn, into));
        self.settle_answer((turn, into));
        self.settle_tool((turn, into));
        self.settle_hidden((turn, into));
    }

    /// Moves everything of one turn into the fold of another and emits that change. Returns the
    /// names of the turn that is gone, and parts of both that share a local name.
    pub(super) fn absorb_turn(&mut self, from: usize, into: usize) -> (Vec<Name>, Vec<Twins>) {
        let empty = TurnFold { gone: true, ..TurnFold::new(self.turns[from].id) };
        let mut gone = std::mem::replace(&mut self.turns[from], empty);
        self.forget_turn(gone.id, from);
        if let Some(order) = &mut self.turn_order {
            order.set(from, None);
        }
        let names = std::mem::take(&mut gone.origin.names);
        let kept = &mut self.turns[into];
        let (turn, take) = (gone.id, kept.fields_to_take(&gone));
        let twins = kept.absorb(gone, &take);
        let into = kept.id;
        self.emit(Change::TurnMerged { turn, into, take });
        (names, twins)
    }
}
