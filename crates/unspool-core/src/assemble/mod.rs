//! The assembler: events in, changes out. It is pure and total: no clock, no randomness, no I/O,
//! no panic and no error. It holds open turns and an index of names. Closed turns leave as changes
//! and can be restored from the store's rows to apply a late event.
//!
//! Each rule has one place: the order across feeds in `order`, merging feeds in `join`, turns in
//! `turn`, steps in `step`, prose in `prose`, the tool state machine and questions in `tool`,
//! sub-agents in `agent`, the end rule in `end`.

mod agent;
mod end;
mod fold;
mod join;
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

use crate::change::{Change, Oddity};
use crate::event::{Event, Key, What};
use crate::id::SessionId;
use crate::session::{Facts, Parent, SessionState, Title};
use crate::telling::{Evidence, Field, Name, Ranks, Telling};

use fold::TurnFold;
use names::Index;
pub use prose::prose_likeness;
pub use restore::{Cursor, Outline};
pub use tool::likeness;

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
    cursors: FxHashMap<(Telling, u16), (u64, u32)>,
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
    nameless: Option<part::At>,
    /// Named prose that this feed has not ended.
    open: Vec<part::At>,
    /// A later source that replays the feed from the start, and its position.
    again: Option<Again>,
}

/// A truncated or rewritten log is read again as another source. Until that source reaches new
/// records, its unnamed events belong to the turn it replays, not to the feed's current turn.
#[derive(Clone, Copy, Debug)]
struct Again {
    source: u16,
    /// `None` until it starts a turn that the feed already has.
    turn: Option<usize>,
}

/// The fields that every event has.
#[derive(Clone, Debug)]
struct Head {
    telling: Telling,
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
        let Event { key, telling, at, evidence, turn, generation, what } = event;
        let head = Head { telling, at, evidence, turn };
        if !self.is_news(&head, key) {
            self.count(Oddity::Duplicate);
        } else if !self.is_current(telling, generation) {
            self.count(Oddity::Stale);
        } else {
            match what.into_part() {
                Ok((name, body)) => self.tell_part(&head, name, body),
                Err(what) => self.apply_what(&head, what),
            }
        }
        std::mem::take(&mut self.out)
    }

    fn apply_what(&mut self, head: &Head, what: What) {
        match what {
            What::SessionTold { project, branch, version, cost_usd } => {
                self.tell_session(head, project, branch, version, cost_usd);
            }
            What::TitleTold(title) => self.tell_title(title),
            What::StartedBy(parent) => self.tell_parent(head, parent),
            What::BranchedOff(from) => {
                let claimed = self.facts.ranks.claim(Field::Started, head.telling);
                if claimed && self.facts.forked_from.as_ref() != Some(&from) {
                    self.facts.forked_from = Some(from);
                    self.emit_session();
                }
            }
            What::OutcomesOnly(only) => {
                if self.facts.outcomes_only != only {
                    self.facts.outcomes_only = only;
                    self.emit_session();
                }
            }
            What::SessionEnded => {
                if self.state != SessionState::Ended {
                    self.state = SessionState::Ended;
                    self.emit_session();
                }
            }
            What::TurnStarted { names, trigger, user } => {
                self.start_turn(head, names, trigger, user);
            }
            What::UserAdded(body) => self.add_user(head, body),
            What::ThinkingTold(thinking) => self.tell_thinking(head, thinking),
            What::TurnEnded(reason) => self.end_turn(head, reason),
            What::TurnInherited => self.inherit(head),
            What::Rewound { turns } => self.rewind(&turns),
            What::StepStarted { step, model } => self.start_step(head, step, model),
            What::StepEnded { step, stop_reason } => {
                self.end_step(head, &step);
                self.tell_step(head, step, |fold| {
                    let changed = stop_reason.is_some()
                        && fold.stop_reason.as_deref() != stop_reason.as_deref();
                    if changed {
                        fold.stop_reason = stop_reason.map(Into::into);
                    }
                    changed
                });
            }
            What::UsageTold { step, usage } => {
                self.tell_step(head, step, |fold| {
                    let before = fold.usage;
                    fold.usage.join(usage);
                    fold.usage != before
                });
            }
            What::ProvenanceTold { step, provenance } => {
                self.tell_step(head, step, |fold| {
                    let changed = fold.provenance.as_ref() != Some(&provenance);
                    fold.provenance = Some(provenance);
                    changed
                });
            }
            What::SnapshotTaken { kind, sha256, content } => {
                let seen = crate::id::digest(format!("{kind}\n{sha256}").as_bytes());
                if self.snapshots.insert(seen) {
                    self.out.push(Change::SnapshotTaken { kind, sha256, content });
                }
            }
            What::Grew { voice, block, text } => {
                let is_piece = matches!(block, Some(Name::Piece(..)));
                self.grow_prose(head, voice, block, text);
                if is_piece {
                    let turn = self.turn_for(head);
                    self.settle_pieces(turn);
                }
            }
            What::Said { voice, block, text, detail } => {
                self.say_prose(head, voice, block, text, detail);
                let turn = self.turn_for(head);
                self.settle_pieces(turn);
            }
            What::BlockStarted { block } => self.keep_place(head, block),
            What::BlockEnded { block } => self.end_block(head, &block),
            What::ToolInputGrew { call, name, text } => {
                self.grow_input(head, &call, &name, text);
            }
            What::ToolCalled(call) => self.call_tool(head, *call),
            What::ToolStarted { call } => self.start_tool(head, &call),
            What::ToolOutputGrew { call, text } => self.grow_output(head, &call, text),
            What::ToolEnded { call, end, outcome } => self.end_tool(head, &call, end, outcome),
            What::ToolRefined { call, outcome } => self.refine_tool(head, &call, outcome),
            What::QuestionAsked { call, tool, question, requested } => {
                self.ask(head, &call, &tool, question, requested);
            }
            What::QuestionAnswered { call, answer } => self.answer(head, &call, answer),
            What::AgentStarted { agent, name, task, background } => {
                self.start_agent(head, &agent, name, task, background);
            }
            What::AgentProgressed { agent, activity, background } => {
                self.progress_agent(head, &agent, activity, background);
            }
            What::AgentEnded { agent, end } => self.end_agent(head, &agent, end),
            part @ (What::Interjected(..)
            | What::TasksListed(..)
            | What::SkillLoaded(..)
            | What::McpListed(..)
            | What::ContextAdded(..)
            | What::Compacted(..)
            | What::FileGiven(..)
            | What::SourceCited(..)
            | What::Patched(..)
            | What::Noticed(..)
            | What::Failed(..)
            | What::DataGiven(..)) => {
                if let Ok((name, body)) = part.into_part() {
                    self.tell_part(head, name, body);
                }
            }
        }
    }

    /// Advances the source's cursor. Sources are read in order, so an event at or before the cursor
    /// was already applied.
    fn is_news(&mut self, head: &Head, key: Key) -> bool {
        let position = (head.evidence.offset, key.nth);
        let source = head.evidence.source;
        if let Some(held) = self.cursors.get_mut(&(head.telling, source)) {
            let news = position > *held;
            *held = position.max(*held);
            return news;
        }
        // If the feed already has another source, this one may replay it.
        if self.cursors.keys().any(|(telling, _)| *telling == head.telling) {
            self.tracks[head.telling.index()].again = Some(Again { source, turn: None });
        }
        self.cursors.insert((head.telling, source), position);
        true
    }

    /// The generation guard: events of an older stream than the feed's newest are skipped.
    fn is_current(&mut self, telling: Telling, generation: Option<u32>) -> bool {
        let newest = &mut self.tracks[telling.index()].generation;
        match generation {
            Some(generation) if generation < *newest => false,
            Some(generation) => {
                *newest = generation;
                true
            }
            None => true,
        }
    }

    fn tell_session(
        &mut self,
        head: &Head,
        project: Option<String>,
        branch: Option<String>,
        version: Option<String>,
        cost_usd: Option<f64>,
    ) {
        let before = self.facts.clone();
        // Project and branch are those at the start: the first value of the strongest feed wins.
        let stronger = |ranks: &Ranks, field| ranks.holder(field) < Some(head.telling);
        if project.is_some() && stronger(&self.facts.ranks, Field::Body) {
            self.facts.ranks.claim(Field::Body, head.telling);
            self.facts.project = project;
        }
        if branch.is_some() && stronger(&self.facts.ranks, Field::Name) {
            self.facts.ranks.claim(Field::Name, head.telling);
            self.facts.branch = branch;
        }
        if let Some(version) = self.facts.ranks.take(Field::Title, head.telling, version) {
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

    fn tell_title(&mut self, title: Title) {
        let weaker = self.facts.title.as_ref().is_some_and(|held| held.origin > title.origin);
        if !weaker && self.facts.title.as_ref() != Some(&title) {
            self.facts.title = Some(title);
            self.emit_session();
        }
    }

    /// Sets the parent. A parent with a call id is never replaced by one without.
    fn tell_parent(&mut self, head: &Head, parent: Parent) {
        let held = self.facts.parent.as_ref();
        let knows = held.is_some_and(|held| held.call_id.is_some());
        let vague = parent.call_id.is_none() && knows;
        // A parent with a call id wins over any feed's parent without one.
        let better = parent.call_id.is_some() && !knows;
        let same = held == Some(&parent);
        let before = self.facts.ranks;
        let claimed = self.facts.ranks.claim(Field::ParentCall, head.telling);
        if !vague && (claimed || better) && !same {
            self.facts.parent = Some(parent);
            self.emit_session();
        } else if self.facts.ranks != before {
            self.emit_session();
        }
    }

    fn emit_session(&mut self) {
        self.out
            .push(Change::SessionTold { facts: Box::new(self.facts.clone()), state: self.state });
    }

    fn count(&mut self, what: Oddity) {
        self.out.push(Change::Counted { what });
    }
}
