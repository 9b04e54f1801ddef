//! Builds a transcript from changes alone. Live views, the store's rows and `show` all use this
//! fold, so a change has one meaning.

use rustc_hash::FxHashMap;

use crate::change::{
    Change, DeltaField, PartMergeField, PartPatch, SkipReason, ToolPatch, TurnMergeField,
    TurnPatch, replace_leading,
};
use crate::id::{PartId, SessionId, TurnId};
use crate::part::{Body, Part, Place};
use crate::session::{
    Facts, Session, SessionState, Step, Transcript, Trigger, Turn, TurnOrigin, TurnState,
};

/// Folds changes into a [`Transcript`].
#[derive(Clone, Debug)]
pub struct TranscriptBuilder {
    session: Session,
    turns: Vec<TurnBuilder>,
    /// The turn of each part.
    parts: FxHashMap<PartId, TurnId>,
    skipped: FxHashMap<SkipReason, u64>,
}

#[derive(Clone, Debug)]
struct TurnBuilder {
    turn: Turn,
    /// The places of `turn.steps`, index by index.
    step_places: Vec<Place>,
}

impl TranscriptBuilder {
    pub fn new(agent: &str, agent_session_id: &str) -> TranscriptBuilder {
        TranscriptBuilder {
            session: Session {
                id: SessionId::of(agent, agent_session_id),
                agent: agent.to_owned(),
                agent_session_id: agent_session_id.to_owned(),
                facts: Facts::default(),
                state: SessionState::default(),
                parent: None,
                forked_from: None,
            },
            turns: Vec::new(),
            parts: FxHashMap::default(),
            skipped: FxHashMap::default(),
        }
    }

    /// The number of skipped events, by reason.
    pub fn skip_counts(&self) -> impl Iterator<Item = (SkipReason, u64)> + '_ {
        self.skipped.iter().map(|(reason, count)| (*reason, *count))
    }

    pub fn apply_all(&mut self, changes: impl IntoIterator<Item = Change>) {
        changes.into_iter().for_each(|change| self.apply(change));
    }

    pub fn apply(&mut self, change: Change) {
        match change {
            Change::SessionUpdated { facts, state } => {
                self.session.parent.clone_from(&facts.reported_parent);
                self.session.forked_from.clone_from(&facts.forked_from);
                self.session.facts = *facts;
                self.session.state = state;
            }
            Change::TurnOpened { turn } => self.turns.push(TurnBuilder::new(turn)),
            Change::TurnUpdated { turn, patch } => {
                if let Some(at) = self.turn(turn) {
                    patch_turn(&mut self.turns[at].turn, *patch);
                }
            }
            Change::TurnRenamed { turn, to } => {
                if let Some(at) = self.turn(turn) {
                    self.turns[at].turn.id = to;
                    let parts = self.turns[at].turn.parts.iter().map(|part| (part.id, to));
                    self.parts.extend(parts);
                }
            }
            Change::TurnMerged { turn, into, take } => self.merge_turns(turn, into, &take),
            Change::StepUpdated { turn, place, step } => {
                if let Some(at) = self.turn(turn) {
                    self.turns[at].upsert_step(place, *step);
                }
            }
            Change::PartOpened { turn, part } => {
                self.adopt_part(turn, *part);
            }
            Change::PartDelta { part, field, text } => {
                if let Some((part, _)) = self.part(part) {
                    grow(part, field, &text);
                }
            }
            Change::PartUpdated { part: id, patch } => {
                if let Some((part, at)) = self.part(id) {
                    let moved = patch.place.is_some_and(|place| place != part.place);
                    patch_part(part, *patch);
                    if moved {
                        self.turns[at].put_back(id);
                    }
                }
            }
            Change::PartRenamed { part: id, to } => {
                if let Some((part, at)) = self.part(id) {
                    part.id = to;
                    let turn = self.turns[at].turn.id;
                    self.parts.remove(&id);
                    self.parts.insert(to, turn);
                }
            }
            Change::PartMerged { part: id, into, take } => {
                if let Some(gone) = self.take_part(id)
                    && let Some((kept, _)) = self.part(into)
                {
                    merge_parts(kept, gone, &take);
                }
            }
            Change::PartRemoved { part: id } => {
                self.take_part(id);
            }
            Change::SnapshotTaken { .. } => {}
            Change::EventSkipped { reason } => *self.skipped.entry(reason).or_default() += 1,
        }
    }

    /// The current transcript.
    pub fn transcript(&self) -> Transcript {
        self.clone().into_transcript()
    }

    pub fn into_transcript(self) -> Transcript {
        let mut turns: Vec<Turn> = self.turns.into_iter().map(|turn| turn.turn).collect();
        turns.iter_mut().for_each(|turn| turn.parts.retain(|part| !part.origin.hidden));
        turns.sort_by_key(|turn| turn.number);
        Transcript { session: self.session, turns }
    }

    /// The transcript including hidden parts, so that the assembler can resume from it. The form
    /// that the store keeps.
    pub fn rows(&self) -> Transcript {
        let turns = self.turns.iter().map(|turn| turn.turn.clone()).collect();
        Transcript { session: self.session.clone(), turns }
    }

    pub fn turn_ids(&self) -> impl Iterator<Item = TurnId> + '_ {
        self.turns.iter().map(|turn| turn.turn.id)
    }

    /// The turns in the order in which they were opened.
    pub fn turns(&self) -> impl Iterator<Item = &Turn> {
        self.turns.iter().map(|turn| &turn.turn)
    }

    /// The turn of a part.
    pub fn turn_of(&self, part: PartId) -> Option<TurnId> {
        self.parts.get(&part).copied()
    }

    /// One turn, by its id.
    pub fn find_turn(&self, id: TurnId) -> Option<&Turn> {
        self.turns.iter().rev().map(|turn| &turn.turn).find(|turn| turn.id == id)
    }

    /// One part, by its id.
    pub fn find_part(&self, id: PartId) -> Option<&Part> {
        let turn = self.find_turn(*self.parts.get(&id)?)?;
        turn.parts.iter().rev().find(|part| part.id == id)
    }

    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Removes a turn and returns it.
    pub fn take_turn(&mut self, id: TurnId) -> Option<Turn> {
        let turn = self.turns.remove(self.turn(id)?).turn;
        turn.parts.iter().for_each(|part| {
            self.parts.remove(&part.id);
        });
        Some(turn)
    }

    /// Adds a complete turn.
    pub fn adopt_turn(&mut self, turn: Turn) {
        self.parts.extend(turn.parts.iter().map(|part| (part.id, turn.id)));
        let step_places = turn.step_places();
        self.turns.push(TurnBuilder { turn, step_places });
    }

    /// Removes a part and returns it.
    pub fn take_part(&mut self, id: PartId) -> Option<Part> {
        let turn = self.parts.remove(&id)?;
        let at = self.turn(turn)?;
        let parts = &mut self.turns[at].turn.parts;
        let found = parts.iter().rposition(|part| part.id == id)?;
        Some(parts.remove(found))
    }

    /// Inserts a part at its place.
    pub fn adopt_part(&mut self, turn: TurnId, part: Part) {
        if let Some(at) = self.turn(turn) {
            self.parts.insert(part.id, turn);
            self.turns[at].insert(part);
        }
    }

    /// Resumes from the head of a stored session, without turns.
    pub fn resume(session: Session) -> TranscriptBuilder {
        let mut builder = TranscriptBuilder::new(&session.agent, &session.agent_session_id);
        builder.session = session;
        builder
    }

    fn turn(&self, id: TurnId) -> Option<usize> {
        // Almost always the newest.
        self.turns.iter().rposition(|turn| turn.turn.id == id)
    }

    fn part(&mut self, id: PartId) -> Option<(&mut Part, usize)> {
        let at = self.turn(*self.parts.get(&id)?)?;
        // Almost always the newest.
        let part = self.turns[at].turn.parts.iter_mut().rev().find(|part| part.id == id)?;
        Some((part, at))
    }

    fn merge_turns(&mut self, turn: TurnId, into: TurnId, take: &[TurnMergeField]) {
        let (Some(from), Some(to)) = (self.turn(turn), self.turn(into)) else { return };
        if from == to {
            return;
        }
        let gone = self.turns.remove(from);
        let to = if from < to { to - 1 } else { to };
        for (place, step) in gone.step_places.iter().zip(&gone.turn.steps) {
            self.turns[to].upsert_step(*place, step.clone());
        }
        let (kept, mut gone) = (&mut self.turns[to].turn, gone.turn);
        merge_turn_fields(kept, &mut gone, take);
        kept.parts.extend(gone.parts);
        kept.parts.sort_by_key(|part| part.place);
        self.parts.extend(kept.parts.iter().map(|part| (part.id, kept.id)));
    }
}

impl TurnBuilder {
    fn new(id: TurnId) -> TurnBuilder {
        TurnBuilder {
            turn: Turn {
                id,
                number: 0,
                trigger: Trigger::default(),
                user: Vec::new(),
                thinking_mode: false,
                state: TurnState::default(),
                abandoned: false,
                inherited: false,
                started: None,
                ended: None,
                steps: Vec::new(),
                parts: Vec::new(),
                origin: TurnOrigin::default(),
            },
            step_places: Vec::new(),
        }
    }

    fn insert(&mut self, part: Part) {
        let at = self.turn.parts.partition_point(|other| other.place <= part.place);
        self.turn.parts.insert(at, part);
    }

    /// Moves a part to the index that its place demands.
    fn put_back(&mut self, id: PartId) {
        if let Some(at) = self.turn.parts.iter().rposition(|part| part.id == id) {
            let part = self.turn.parts.remove(at);
            self.insert(part);
        }
    }

    fn upsert_step(&mut self, place: Place, step: Step) {
        if let Some(at) = self.turn.steps.iter().position(|other| other.id == step.id) {
            self.turn.steps.remove(at);
            self.step_places.remove(at);
        }
        let at = self.step_places.partition_point(|other| *other <= place);
        self.step_places.insert(at, place);
        self.turn.steps.insert(at, step);
    }
}

fn patch_turn(turn: &mut Turn, patch: TurnPatch) {
    set(&mut turn.number, patch.number);
    set(&mut turn.trigger, patch.trigger);
    set(&mut turn.user, patch.user);
    if let Some(leading) = patch.user_replayed {
        replace_leading(&mut turn.user, leading);
    }
    turn.user.extend(patch.user_added);
    set(&mut turn.thinking_mode, patch.thinking_mode);
    set(&mut turn.state, patch.state);
    set(&mut turn.abandoned, patch.abandoned);
    set(&mut turn.inherited, patch.inherited);
    set_option(&mut turn.started, patch.started);
    set(&mut turn.ended, patch.ended);
    set(&mut turn.origin, patch.origin);
}

/// Applies a patch to a part. Fields that the part's kind does not have are left alone.
pub fn patch_part(part: &mut Part, patch: PartPatch) {
    set(&mut part.place, patch.place);
    set_option(&mut part.step, patch.step);
    set_option(&mut part.started, patch.started);
    set_option(&mut part.ended, patch.ended);
    for evidence in patch.evidence {
        // Kept sorted, so that arrival order leaves no trace.
        if let Err(at) = part.evidence.binary_search(&evidence) {
            part.evidence.insert(at, evidence);
        }
    }
    set(&mut part.origin, patch.origin);
    set(&mut part.body, patch.body);
    match &mut part.body {
        Body::Text(text) => {
            set(&mut text.text, patch.text);
            set(&mut text.open, patch.open);
            set(&mut text.citations, patch.citations);
        }
        Body::Reasoning(reasoning) => {
            set(&mut reasoning.text, patch.text);
            set(&mut reasoning.open, patch.open);
            set(&mut reasoning.redacted, patch.redacted);
            // The signer always changes with the signature.
            if patch.signature.is_some() {
                (reasoning.signature, reasoning.signer) = (patch.signature, patch.signer);
            }
            set_option(&mut reasoning.duration_ms, patch.duration_ms);
        }
        Body::Tool(tool) => {
            if let Some(patch) = patch.tool {
                patch_tool(tool, *patch);
            }
        }
        Body::Agent(_)
        | Body::Interjection(_)
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
}

fn patch_tool(tool: &mut crate::part::Tool, patch: ToolPatch) {
    set(&mut tool.call_id, patch.call_id);
    set_option(&mut tool.parent_call_id, patch.parent_call_id);
    set(&mut tool.name, patch.name);
    set_option(&mut tool.input, patch.input);
    set(&mut tool.input_text, patch.input_text);
    set(&mut tool.state, patch.state);
    set_option(&mut tool.output, patch.output);
    set_option(&mut tool.result, patch.result);
    set_option(&mut tool.exit_code, patch.exit_code);
    set_option(&mut tool.duration_ms, patch.duration_ms);
    set_option(&mut tool.question, patch.question);
    set_option(&mut tool.answer, patch.answer);
    set(&mut tool.provider_executed, patch.provider_executed);
    set_option(&mut tool.title, patch.title);
}

fn grow(part: &mut Part, field: DeltaField, text: &str) {
    match (&mut part.body, field) {
        (Body::Text(part), DeltaField::Text) => part.text.push_str(text),
        (Body::Reasoning(part), DeltaField::Text) => part.text.push_str(text),
        (Body::Tool(part), DeltaField::Input) => part.input_text.push_str(text),
        (Body::Tool(part), DeltaField::Output) => {
            part.output.get_or_insert_default().push_str(text);
        }
        (
            Body::Text(_)
            | Body::Reasoning(_)
            | Body::Tool(_)
            | Body::Agent(_)
            | Body::Interjection(_)
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
            | Body::Data(_),
            DeltaField::Text | DeltaField::Input | DeltaField::Output,
        ) => {}
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn set_option<T>(field: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *field = value;
    }
}

/// Copies the fields that the change names.
fn merge_parts(kept: &mut Part, gone: Part, take: &[PartMergeField]) {
    let takes = |field| take.contains(&field);
    let mut patch = PartPatch {
        step: gone.step.filter(|_| takes(PartMergeField::Step)),
        started: gone.started.filter(|_| takes(PartMergeField::Started)),
        ended: gone.ended.filter(|_| takes(PartMergeField::Ended)),
        evidence: gone.evidence,
        ..PartPatch::default()
    };
    if let Body::Tool(tool) = gone.body {
        patch.tool = Some(Box::new(ToolPatch {
            call_id: Some(tool.call_id).filter(|_| takes(PartMergeField::CallId)),
            parent_call_id: tool.parent_call_id.filter(|_| takes(PartMergeField::ParentCallId)),
            name: Some(tool.name).filter(|_| takes(PartMergeField::Name)),
            input: tool.input.filter(|_| takes(PartMergeField::Input)),
            input_text: None,
            state: Some(tool.state).filter(|_| takes(PartMergeField::State)),
            output: tool.output.filter(|_| takes(PartMergeField::Output)),
            result: tool.result.filter(|_| takes(PartMergeField::Result)),
            exit_code: tool.exit_code.filter(|_| takes(PartMergeField::ExitCode)),
            duration_ms: tool.duration_ms.filter(|_| takes(PartMergeField::DurationMs)),
            question: tool.question.filter(|_| takes(PartMergeField::Question)),
            answer: tool.answer.filter(|_| takes(PartMergeField::Answer)),
            provider_executed: takes(PartMergeField::ProviderExecuted)
                .then_some(tool.provider_executed),
            title: tool.title.filter(|_| takes(PartMergeField::Title)),
        }));
    } else if takes(PartMergeField::Body) {
        patch.body = Some(gone.body);
    }
    patch_part(kept, patch);
}

fn merge_turn_fields(kept: &mut Turn, gone: &mut Turn, take: &[TurnMergeField]) {
    for field in take {
        match field {
            TurnMergeField::User => kept.user = std::mem::take(&mut gone.user),
            TurnMergeField::Trigger => kept.trigger = gone.trigger,
            TurnMergeField::Started => kept.started = gone.started,
            TurnMergeField::Abandoned => kept.abandoned = gone.abandoned,
            TurnMergeField::Inherited => kept.inherited = gone.inherited,
        }
    }
}
