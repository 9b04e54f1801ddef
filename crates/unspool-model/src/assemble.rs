//! The assembler: events in, changes out. It is pure and total: no clock, no randomness, no I/O,
//! no panic and no error. It holds open turns and an index of names. Closed turns leave as changes
//! and can be restored from the store's rows to apply a late event.
//!
//! Each rule has one place: the order across feeds in `order`, which turns and parts are one
//! in `join`, the order of a feed's files in `source_order`, what a merge takes in `merge`, the head of the session in `session`, turns in
//! `turn`, steps in `step`, prose in `prose`, prose without names in `runs`, the tool state machine and questions in `tool`,
//! sub-agents in `agent`, the end rule in `end`.

mod agent;
mod end;
mod feed_order;
mod fold;
mod fragments;
mod join;
mod lookups;
mod membership;
mod merge;
mod message_record;
mod names;
mod order;
mod part;
mod part_sets;
mod prose;
mod restore;
mod runs;
mod session;
mod source_order;
mod step;
mod tool;
mod turn;

use std::collections::BTreeSet;

use jiff::Timestamp;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::change::{Change, SkipReason};
use crate::event::{Event, EventKey, EventKind};
use crate::id::{PartId, SessionId, TurnId};
use crate::provenance::{Evidence, Feed, Name};
use crate::session::{Facts, SessionState};

use feed_order::FeedOrder;
use fold::TurnFold;
pub use fold::part_id;
use names::Index;
pub use prose::prose_content_hash;
pub use restore::{Cursor, TurnStub};
pub use tool::content_hash;

/// The capacity up to which the map of one event's changes is used again for the next event.
const MAX_EMITTED_CAPACITY: usize = 64;

/// Folds the events of one session.
#[derive(Clone, Debug)]
pub struct Assembler {
    session: SessionId,
    facts: Facts,
    state: SessionState,
    /// When the newest turn began.
    newest_turn_at: Option<Timestamp>,
    turns: Vec<TurnFold>,
    /// The index of each turn that was not merged into another.
    turn_index: FxHashMap<TurnId, usize>,
    /// The highest number of a turn.
    last_number: u32,
    /// The order of the turns, once two feeds have placed some.
    turn_order: Option<Box<FeedOrder<()>>>,
    index: Index,
    tracks: [Track; 3],
    /// The last record and event applied per feed and source.
    cursors: FxHashMap<(Feed, u16), (u64, u32)>,
    /// The cursors that moved since the last `take_moved_cursors`.
    moved_cursors: FxHashSet<(Feed, u16)>,
    /// The newest generation of the streams of each source.
    generations: FxHashMap<(Feed, u16), u32>,
    /// When each source placed its first turn, in milliseconds.
    source_starts: FxHashMap<(Feed, u16), i64>,
    snapshots: FxHashSet<u64>,
    /// Parts that may have changed since the sets of their turns were counted.
    noted: Vec<part::PartIndex>,
    /// Turns with runs to compare with the log.
    stale_runs: BTreeSet<usize>,
    out: Vec<Change>,
    /// The last change in `out` that opens or updates a part.
    emitted: FxHashMap<PartId, usize>,
}

/// The progress of one feed.
#[derive(Clone, Debug, Default)]
struct Track {
    /// The turn of the source that is furthest.
    turn: Option<usize>,
    /// That source.
    source: Option<u16>,
    /// The number of turns it has placed.
    turns: u32,
    /// The part that unnamed deltas extend.
    nameless: Option<part::PartIndex>,
    /// Named prose that this feed has not ended.
    open: Vec<part::PartIndex>,
    /// The other sources of the feed, and their positions.
    others: FxHashMap<u16, OtherSource>,
    /// The latest start of a source that placed a turn.
    latest_start: Option<i64>,
    /// A source that began earlier has placed a turn after that one's.
    out_of_order: bool,
}

/// A source that is not the furthest of its feed. Its unnamed events belong to its own turn.
#[derive(Clone, Copy, Debug)]
struct OtherSource {
    /// `None` until it starts a turn.
    turn: Option<usize>,
    /// It repeats what the feed already has: a truncated or rewritten log is read again as another
    /// source.
    replays: bool,
}

/// The fields that every event has.
#[derive(Clone, Debug)]
struct Head {
    feed: Feed,
    at: Option<Timestamp>,
    evidence: Evidence,
    turn: Option<Name>,
}

impl Head {
    /// True for an event about the session as a whole: its source does not move by it.
    fn is_about_session(&self) -> bool {
        self.turn == Some(Name::Session)
    }
}

impl Assembler {
    pub fn new(session: SessionId) -> Assembler {
        Assembler {
            session,
            facts: Facts::default(),
            state: SessionState::default(),
            newest_turn_at: None,
            turns: Vec::new(),
            turn_index: FxHashMap::default(),
            last_number: 0,
            turn_order: None,
            index: Index::default(),
            tracks: Default::default(),
            cursors: FxHashMap::default(),
            moved_cursors: FxHashSet::default(),
            source_starts: FxHashMap::default(),
            generations: FxHashMap::default(),
            snapshots: FxHashSet::default(),
            noted: Vec::new(),
            stale_runs: BTreeSet::new(),
            out: Vec::new(),
            emitted: FxHashMap::default(),
        }
    }

    /// Applies one event and returns the resulting changes.
    pub fn apply(&mut self, event: Event) -> Vec<Change> {
        let Event { key, feed, at, evidence, turn, generation, kind } = event;
        let head = Head { feed, at, evidence, turn };
        if !self.is_new(&head, key) {
            self.count(SkipReason::Duplicate);
        } else if !self.is_current(&head, generation) {
            self.count(SkipReason::Stale);
        } else {
            if kind.is_activity() {
                self.revive(&head);
            }
            self.apply_kind(&head, kind);
        }
        self.recount();
        self.settle_runs();
        self.recount();
        self.forget_emitted();
        std::mem::take(&mut self.out)
    }

    fn apply_kind(&mut self, head: &Head, kind: EventKind) {
        match kind {
            EventKind::SessionUpdated { project, branch, version, cost } => {
                self.update_session(head, project, branch, version, cost);
            }
            EventKind::TitleSet(title) => self.set_title(title),
            EventKind::StartedBy(parent) => self.set_parent(head, parent),
            EventKind::BranchedOff(from) => self.set_forked_from(head, from),
            EventKind::OutcomesOnly(only) => self.set_outcomes_only(only),
            EventKind::ContextWindowReported { model, tokens } => {
                self.set_context_window(model, tokens);
            }
            EventKind::SessionEnded => self.end_session(head),
            EventKind::SessionResumed => self.resume_session(head),
            EventKind::TurnStarted { names, trigger, user } => {
                self.start_turn(head, names, trigger, user);
            }
            EventKind::UserAdded(body) => self.add_user(head, body),
            EventKind::MessageRecordNamed { is_reply, id, parent } => {
                self.name_record(head, is_reply, id, parent);
            }
            EventKind::ThinkingUpdated(thinking) => self.set_thinking(head, thinking),
            EventKind::TurnEnded(reason) => self.end_turn(head, reason),
            EventKind::TurnInherited => self.inherit(head),
            EventKind::Rewound { turns } => self.rewind(&turns),
            EventKind::StepStarted { step, model } => self.start_step(head, step, model),
            EventKind::StepEnded { step, stop_reason } => self.end_step(head, step, stop_reason),
            EventKind::UsageUpdated { step, usage } => self.join_usage(head, step, usage),
            EventKind::ProvenanceUpdated { step, provenance } => {
                self.set_provenance(head, step, provenance);
            }
            EventKind::RequestNamed { step, request } => self.name_request(head, step, request),
            EventKind::PromptRecorded(record) => self.emit(Change::PromptRecorded(record)),
            EventKind::SnapshotTaken { kind, sha256, content } => {
                let seen = crate::id::digest(format!("{kind}\n{sha256}").as_bytes());
                if self.snapshots.insert(seen) {
                    self.emit(Change::SnapshotTaken { kind, sha256, content });
                }
            }
            EventKind::ProseDelta { prose_kind, block, text } => {
                let is_fragment = matches!(block, Some(Name::ContentFragment(..)));
                self.grow_prose(head, prose_kind, block, text);
                if is_fragment {
                    let turn = self.turn_for(head);
                    self.settle_fragments(turn);
                }
            }
            EventKind::ProseCompleted { prose_kind, block, text, detail } => {
                self.say_prose(head, prose_kind, block, text, detail);
                let turn = self.turn_for(head);
                self.settle_fragments(turn);
            }
            EventKind::BlockStarted { block } => self.reserve_place(head, block),
            EventKind::BlockEnded { block } => self.end_block(head, &block),
            EventKind::ToolInputDelta { call, name, text } => {
                self.grow_input(head, &call, &name, text);
            }
            EventKind::ToolCalled(call) => self.call_tool(head, *call),
            EventKind::ToolStarted { call } => self.start_tool(head, &call),
            EventKind::ToolOutputDelta { call, text } => self.grow_output(head, &call, text),
            EventKind::ToolEnded { call, end, outcome } => self.end_tool(head, &call, end, outcome),
            EventKind::ToolRefined { call, outcome } => self.refine_tool(head, &call, outcome),
            EventKind::QuestionAsked { call, tool, question, requested, inferred } => {
                self.ask(head, &call, &tool, question, requested, inferred);
            }
            EventKind::QuestionAnswered { call, answer } => self.answer(head, &call, answer),
            EventKind::AgentStarted { agent, name, task, background } => {
                self.start_agent(head, &agent, name, task, background);
            }
            EventKind::AgentProgressed { agent, activity, background } => {
                self.progress_agent(head, &agent, activity, background);
            }
            EventKind::AgentEnded { agent, end } => self.end_agent(head, &agent, end),
            EventKind::Part(name, body) => self.upsert_part(head, name, body),
        }
    }

    /// Advances the source's cursor. Sources are read in order, so an event at or before the cursor
    /// was already applied.
    fn is_new(&mut self, head: &Head, key: EventKey) -> bool {
        let position = (head.evidence.offset, key.nth);
        let source = head.evidence.source;
        self.moved_cursors.insert((head.feed, source));
        if let Some(held) = self.cursors.get_mut(&(head.feed, source)) {
            let news = position > *held;
            *held = position.max(*held);
            return news;
        }
        // If the feed already has another source, this one may replay it.
        let track = &mut self.tracks[head.feed.index()];
        let others = self.cursors.keys().any(|(feed, _)| *feed == head.feed);
        if source != Evidence::RECORDER && others {
            track.others.insert(source, OtherSource { turn: None, replays: true });
        } else if track.turns == 0 {
            track.source = Some(source);
        }
        self.cursors.insert((head.feed, source), position);
        true
    }

    /// The generation guard: events of an older stream than the newest of their source are skipped.
    /// Each source counts its own streams: with one count for all of them, the result would depend
    /// on which file is read first.
    fn is_current(&mut self, head: &Head, generation: Option<u32>) -> bool {
        let Some(generation) = generation else { return true };
        let newest = self.generations.entry((head.feed, head.evidence.source)).or_default();
        *newest = generation.max(*newest);
        generation == *newest
    }

    /// Adds a change to those of this event.
    fn emit(&mut self, change: Change) {
        match &change {
            Change::PartOpened { part, .. } => drop(self.emitted.insert(part.id, self.out.len())),
            Change::PartUpdated { part, .. } => drop(self.emitted.insert(*part, self.out.len())),
            Change::TurnUpdated { .. } => {}
            // From here on, the same id may mean another part.
            Change::SessionUpdated { .. }
            | Change::TurnOpened { .. }
            | Change::TurnRenamed { .. }
            | Change::TurnMerged { .. }
            | Change::StepUpdated { .. }
            | Change::PartDelta { .. }
            | Change::PartRenamed { .. }
            | Change::PartMerged { .. }
            | Change::PartMoved { .. }
            | Change::StepRemoved { .. }
            | Change::PartRemoved { .. }
            | Change::PromptRecorded(_)
            | Change::SnapshotTaken { .. }
            | Change::EventSkipped { .. } => self.forget_emitted(),
        }
        self.out.push(change);
    }

    fn forget_emitted(&mut self) {
        // Clearing a map takes as long as it once was large.
        if self.emitted.capacity() > MAX_EMITTED_CAPACITY {
            self.emitted = FxHashMap::default();
        }
        self.emitted.clear();
    }

    fn count(&mut self, reason: SkipReason) {
        self.emit(Change::EventSkipped { reason });
    }
}

#[cfg(test)]
mod growth_tests;
