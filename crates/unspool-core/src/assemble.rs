//! The assembler: events in, changes out. It is pure and total: no clock, no randomness, no I/O,
//! no panic and no error. It holds open turns and an index of names. Closed turns leave as changes
//! and can be restored from the store's rows to apply a late event.
//!
//! Each rule has one place: the order across feeds in `order`, which turns and parts are one
//! in `join`, what a merge takes in `merge`, turns in
//! `turn`, steps in `step`, prose in `prose`, the tool state machine and questions in `tool`,
//! sub-agents in `agent`, the end rule in `end`.

mod agent;
mod end;
mod fold;
mod join;
mod merge;
mod names;
mod order;
mod part;
mod prose;
mod restore;
mod step;
mod tool;
mod turn;

use jiff::Timestamp;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::change::{Change, SkipReason};
use crate::event::{Event, EventKey, EventKind};
use crate::id::SessionId;
use crate::provenance::{Evidence, Feed, Name};
use crate::rank::{Ranks, SessionField};
use crate::session::{Facts, Parent, SessionState, Title};

use fold::TurnFold;
use names::Index;
pub use prose::prose_content_hash;
pub use restore::{Cursor, TurnStub};
pub use tool::content_hash;

/// Folds the events of one session.
#[derive(Clone, Debug)]
pub struct Assembler {
    session: SessionId,
    facts: Facts,
    state: SessionState,
    turns: Vec<TurnFold>,
    index: Index,
    tracks: [Track; 3],
    /// The last record and event applied per feed and source.
    cursors: FxHashMap<(Feed, u16), (u64, u32)>,
    snapshots: FxHashSet<u64>,
    out: Vec<Change>,
}

/// The progress of one feed.
#[derive(Clone, Debug, Default)]
struct Track {
    turn: Option<usize>,
    /// The number of turns it has placed.
    turns: u32,
    generation: u32,
    /// The part that unnamed deltas extend.
    nameless: Option<part::PartIndex>,
    /// Named prose that this feed has not ended.
    open: Vec<part::PartIndex>,
    /// A later source that replays the feed from the start, and its position.
    replay: Option<FeedReplay>,
}

/// A truncated or rewritten log is read again as another source. Until that source reaches new
/// records, its unnamed events belong to the turn it replays, not to the feed's current turn.
#[derive(Clone, Copy, Debug)]
struct FeedReplay {
    source: u16,
    /// `None` until it starts a turn that the feed already has.
    turn: Option<usize>,
}

/// The fields that every event has.
#[derive(Clone, Debug)]
struct Head {
    feed: Feed,
    at: Option<Timestamp>,
    evidence: Evidence,
    turn: Option<Name>,
}

impl Assembler {
    pub fn new(session: SessionId) -> Assembler {
        Assembler {
            session,
            facts: Facts::default(),
            state: SessionState::default(),
            turns: Vec::new(),
            index: Index::default(),
            tracks: Default::default(),
            cursors: FxHashMap::default(),
            snapshots: FxHashSet::default(),
            out: Vec::new(),
        }
    }

    /// Applies one event and returns the resulting changes.
    pub fn apply(&mut self, event: Event) -> Vec<Change> {
        let Event { key, feed, at, evidence, turn, generation, kind } = event;
        let head = Head { feed, at, evidence, turn };
        if !self.is_new(&head, key) {
            self.count(SkipReason::Duplicate);
        } else if !self.is_current(feed, generation) {
            self.count(SkipReason::Stale);
        } else {
            self.apply_kind(&head, kind);
        }
        std::mem::take(&mut self.out)
    }

    fn apply_kind(&mut self, head: &Head, kind: EventKind) {
        match kind {
            EventKind::SessionUpdated { project, branch, version, cost_usd } => {
                self.update_session(head, project, branch, version, cost_usd);
            }
            EventKind::TitleSet(title) => self.set_title(title),
            EventKind::StartedBy(parent) => self.set_parent(head, parent),
            EventKind::BranchedOff(from) => {
                let claimed = self.facts.ranks.claim(SessionField::ForkedFrom, head.feed);
                if claimed && self.facts.forked_from.as_ref() != Some(&from) {
                    self.facts.forked_from = Some(from);
                    self.emit_session();
                }
            }
            EventKind::OutcomesOnly(only) => {
                if self.facts.outcomes_only != only {
                    self.facts.outcomes_only = only;
                    self.emit_session();
                }
            }
            EventKind::SessionEnded => {
                if self.state != SessionState::Ended {
                    self.state = SessionState::Ended;
                    self.emit_session();
                }
            }
            EventKind::TurnStarted { names, trigger, user } => {
                self.start_turn(head, names, trigger, user);
            }
            EventKind::UserAdded(body) => self.add_user(head, body),
            EventKind::ThinkingUpdated(thinking) => self.set_thinking(head, thinking),
            EventKind::TurnEnded(reason) => self.end_turn(head, reason),
            EventKind::TurnInherited => self.inherit(head),
            EventKind::Rewound { turns } => self.rewind(&turns),
            EventKind::StepStarted { step, model } => self.start_step(head, step, model),
            EventKind::StepEnded { step, stop_reason } => {
                self.end_step(head, &step);
                self.update_step(head, step, |fold| {
                    let changed = stop_reason.is_some()
                        && fold.stop_reason.as_deref() != stop_reason.as_deref();
                    if changed {
                        fold.stop_reason = stop_reason.map(Into::into);
                    }
                    changed
                });
            }
            EventKind::UsageUpdated { step, usage } => {
                self.update_step(head, step, |fold| {
                    let before = fold.usage;
                    fold.usage.join(usage);
                    fold.usage != before
                });
            }
            EventKind::ProvenanceUpdated { step, provenance } => {
                self.update_step(head, step, |fold| {
                    let changed = fold.provenance.as_ref() != Some(&provenance);
                    fold.provenance = Some(provenance);
                    changed
                });
            }
            EventKind::SnapshotTaken { kind, sha256, content } => {
                let seen = crate::id::digest(format!("{kind}\n{sha256}").as_bytes());
                if self.snapshots.insert(seen) {
                    self.out.push(Change::SnapshotTaken { kind, sha256, content });
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
            EventKind::QuestionAsked { call, tool, question, requested } => {
                self.ask(head, &call, &tool, question, requested);
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
        if let Some(held) = self.cursors.get_mut(&(head.feed, source)) {
            let news = position > *held;
            *held = position.max(*held);
            return news;
        }
        // If the feed already has another source, this one may replay it.
        if self.cursors.keys().any(|(feed, _)| *feed == head.feed) {
            self.tracks[head.feed.index()].replay = Some(FeedReplay { source, turn: None });
        }
        self.cursors.insert((head.feed, source), position);
        true
    }

    /// The generation guard: events of an older stream than the feed's newest are skipped.
    fn is_current(&mut self, feed: Feed, generation: Option<u32>) -> bool {
        let newest = &mut self.tracks[feed.index()].generation;
        match generation {
            Some(generation) if generation < *newest => false,
            Some(generation) => {
                *newest = generation;
                true
            }
            None => true,
        }
    }

    fn update_session(
        &mut self,
        head: &Head,
        project: Option<String>,
        branch: Option<String>,
        version: Option<String>,
        cost_usd: Option<f64>,
    ) {
        let before = self.facts.clone();
        // Project and branch are those at the start: the first value of the strongest feed wins.
        let stronger = |ranks: &Ranks<SessionField>, field| ranks.holder(field) < Some(head.feed);
        if project.is_some() && stronger(&self.facts.ranks, SessionField::Project) {
            self.facts.ranks.claim(SessionField::Project, head.feed);
            self.facts.project = project;
        }
        if branch.is_some() && stronger(&self.facts.ranks, SessionField::Branch) {
            self.facts.ranks.claim(SessionField::Branch, head.feed);
            self.facts.branch = branch;
        }
        if let Some(version) = self.facts.ranks.take(SessionField::Version, head.feed, version) {
            self.facts.version = Some(version);
        }
        // Costs are running totals.
        if let Some(cost) = cost_usd {
            self.facts.cost_usd = Some(self.facts.cost_usd.map_or(cost, |held| held.max(cost)));
        }
        if let Some(at) = head.at {
            self.facts.started = Some(self.facts.started.map_or(at, |held| held.min(at)));
        }
        if self.facts != before {
            self.emit_session();
        }
    }

    fn set_title(&mut self, title: Title) {
        let weaker = self.facts.title.as_ref().is_some_and(|held| held.origin > title.origin);
        if !weaker && self.facts.title.as_ref() != Some(&title) {
            self.facts.title = Some(title);
            self.emit_session();
        }
    }

    /// Sets the parent. A parent with a call id is never replaced by one without.
    fn set_parent(&mut self, head: &Head, parent: Parent) {
        let held = self.facts.reported_parent.as_ref();
        let knows = held.is_some_and(|held| held.call_id.is_some());
        let vague = parent.call_id.is_none() && knows;
        // A parent with a call id wins over any feed's parent without one.
        let better = parent.call_id.is_some() && !knows;
        let same = held == Some(&parent);
        let before = self.facts.ranks;
        let claimed = self.facts.ranks.claim(SessionField::Parent, head.feed);
        if !vague && (claimed || better) && !same {
            self.facts.reported_parent = Some(parent);
            self.emit_session();
        } else if self.facts.ranks != before {
            self.emit_session();
        }
    }

    fn emit_session(&mut self) {
        self.out.push(Change::SessionUpdated {
            facts: Box::new(self.facts.clone()),
            state: self.state,
        });
    }

    fn count(&mut self, reason: SkipReason) {
        self.out.push(Change::EventSkipped { reason });
    }
}
