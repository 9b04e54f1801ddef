//! The head of the session: which feed decides each fact, and which value stays. Every change of
//! the head leaves as one `SessionUpdated`.

use jiff::Timestamp;

use crate::change::Change;
use crate::price::ReportedCost;
use crate::rank::{Ranks, SessionField};
use crate::session::{ForkedFrom, Parent, SessionState, Title};

use super::{Assembler, Head};

impl Assembler {
    pub(super) fn update_session(
        &mut self,
        head: &Head,
        project: Option<String>,
        branch: Option<String>,
        version: Option<String>,
        cost: Option<ReportedCost>,
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
        if let Some(cost) = cost {
            let cost = self.facts.cost().map_or(cost, |held| held.join(cost));
            (self.facts.cost_usd, self.facts.cost_tokens) = (Some(cost.usd), cost.tokens);
        }
        if let Some(at) = head.at {
            self.facts.started = Some(self.facts.started.map_or(at, |held| held.min(at)));
        }
        if self.facts != before {
            self.emit_session();
        }
    }

    pub(super) fn set_title(&mut self, title: Title) {
        let weaker = self.facts.title.as_ref().is_some_and(|held| held.origin > title.origin);
        if !weaker && self.facts.title.as_ref() != Some(&title) {
            self.facts.title = Some(title);
            self.emit_session();
        }
    }

    /// Sets the parent. A parent with a call id is never replaced by one without.
    pub(super) fn set_parent(&mut self, head: &Head, parent: Parent) {
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

    pub(super) fn set_forked_from(&mut self, head: &Head, from: ForkedFrom) {
        let claimed = self.facts.ranks.claim(SessionField::ForkedFrom, head.feed);
        if claimed && self.facts.forked_from.as_ref() != Some(&from) {
            self.facts.forked_from = Some(from);
            self.emit_session();
        }
    }

    pub(super) fn set_outcomes_only(&mut self, only: bool) {
        if self.facts.outcomes_only != only {
            self.facts.outcomes_only = only;
            self.emit_session();
        }
    }

    /// Of several sizes the largest one stays, so that the order of feeds does not matter.
    pub(super) fn set_context_window(&mut self, model: String, tokens: u64) {
        let held = self.facts.context_windows.get(&model).copied();
        if held < Some(tokens) {
            self.facts.context_windows.insert(model, tokens);
            self.emit_session();
        }
    }

    pub(super) fn end_session(&mut self, head: &Head) {
        let ended_at = head.at.or(Some(Timestamp::MAX));
        if self.facts.ended_at < ended_at {
            self.facts.ended_at = ended_at;
            self.state = self.state_by_time();
            self.emit_session();
        }
    }

    /// A process that opened the session after it ended takes the end back, as a turn does.
    pub(super) fn resume_session(&mut self, head: &Head) {
        if self.facts.resumed_at < head.at {
            self.facts.resumed_at = head.at;
            self.state = self.state_by_time();
            self.emit_session();
        }
    }

    /// A turn that began after the session ended takes the end back: the session was resumed. Times
    /// decide, because feeds come in any order.
    pub(super) fn note_turn_begin(&mut self, head: &Head) {
        self.newest_turn_at = self.newest_turn_at.max(head.at);
        let state = self.state_by_time();
        if self.state != state {
            self.state = state;
            self.emit_session();
        }
    }

    fn state_by_time(&self) -> SessionState {
        let ended_at = self.facts.ended_at;
        let begun_at = self.newest_turn_at.max(self.facts.resumed_at);
        match ended_at.is_some() && begun_at <= ended_at {
            true => SessionState::Ended,
            false => SessionState::default(),
        }
    }

    pub(super) fn emit_session(&mut self) {
        self.emit(Change::SessionUpdated {
            facts: Box::new(self.facts.clone()),
            state: self.state,
        });
    }
}
