//! Findings of sessions in the archive. The rules are `unspool_view::finding`'s; this module loads
//! what they read, turn by turn, and releases it through a redactor first, so that no finding can
//! quote a secret. What a session says is kept until the session changes, because lists and pages
//! ask for it again and again.

mod document;
mod session;

use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use unspool_model::id::SessionId;
use unspool_model::session::SessionState;
use unspool_redact::{Redactor, Rules};
use unspool_store::blocking::block_on;
use unspool_store::stats::StatsRequest;
use unspool_store::store::{SessionFilter, StoreError, StoredSession, TurnWindow, View};
use unspool_view::finding::{
    CallCheck, Evidence, HistoryBuilder, PromptFacts, Rule, Shared, SharedFinding, ToolTimes,
    across, findings, weight,
};
use unspool_view::present::UNTITLED;
use unspool_view::present::findings::{self as present, PlacedFinding};

use crate::prompts::{ContextFrames, SessionPrompts, prompts};
use crate::window::Position;
use session::most_first;

pub use document::{
    CostDocument, EvidenceDocument, FindingDocument, FindingsDocument, SessionFindingsDocument,
};
pub use session::SessionFindings;

/// Turns loaded at once.
const TURNS_PER_LOAD: u32 = 16;
/// Sessions listed at once.
const SESSIONS_PER_LOAD: u64 = 200;
/// Sessions whose findings are kept.
const MAX_KEPT: usize = 20_000;
/// How long what is usual for a tool stays so.
const TIMES_LAST: Duration = Duration::from_mins(10);

/// A finding as a line of a list, and where it is to be seen.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FindingEntry {
    pub title: String,
    pub figures: String,
    /// `None` if no part is left that shows it.
    pub position: Option<Position>,
}

/// The findings of several sessions.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Findings {
    /// Newest first.
    pub sessions: Vec<Arc<SessionFindings>>,
    /// Findings that take several sessions.
    pub across: Vec<SharedFinding>,
}

impl Findings {
    /// Those of these sessions, newest first, with what takes several of them.
    pub fn of(sessions: Vec<Arc<SessionFindings>>) -> Findings {
        let across = across(sessions.iter().map(|found| (found.session, &found.shared)));
        Findings { sessions, across }
    }

    /// All places that show a finding.
    pub fn places<'a>(&'a self, placed: &PlacedFinding<'a>) -> Vec<(SessionId, &'a Evidence)> {
        let is_it = |shared: &&SharedFinding| std::ptr::eq(&shared.finding, placed.finding);
        if let Some(shared) = self.across.iter().find(is_it) {
            return shared.places.iter().map(|(id, evidence)| (*id, evidence)).collect();
        }
        let session = placed.place.as_ref().map(|(id, _, _)| *id);
        session.map_or_else(Vec::new, |id| {
            placed.finding.evidence.iter().map(|evidence| (id, evidence)).collect()
        })
    }

    /// Keeps the findings of some rules.
    pub fn retain(&mut self, keeps: impl Fn(Rule) -> bool) {
        self.across.retain(|shared| keeps(shared.finding.rule));
        for session in &mut self.sessions {
            Arc::make_mut(session).rules.retain(|(rule, _)| keeps(*rule));
        }
    }

    /// All findings, the most frequent first, each with the first place that shows it.
    pub fn placed(&self) -> Vec<PlacedFinding<'_>> {
        let titles: FxHashMap<SessionId, &str> =
            self.sessions.iter().map(|found| (found.session, found.title.as_str())).collect();
        let several = self.sessions.len() > 1;
        let title = |session: SessionId| titles.get(&session).copied().filter(|_| several);
        let across = self.across.iter().map(|shared| PlacedFinding {
            finding: &shared.finding,
            sessions: shared.sessions,
            place: shared.places.first().map(|(id, evidence)| (*id, title(*id), evidence)),
        });
        let of_sessions = self.sessions.iter().flat_map(|found| {
            let id = found.session;
            let findings = found.rules.iter().flat_map(|(_, found)| &found.findings);
            findings.map(move |finding| PlacedFinding {
                finding,
                sessions: 1,
                place: finding.evidence.first().map(|evidence| (id, title(id), evidence)),
            })
        });
        let mut placed: Vec<PlacedFinding<'_>> = across.chain(of_sessions).collect();
        placed.sort_by_key(|placed| Reverse(weight(placed.finding)));
        placed
    }
}

/// Looks for findings and keeps them.
#[derive(Debug)]
pub struct Reflection {
    rules: Rules,
    checks: Vec<CallCheck>,
    /// With the `seq` of the session that they are of.
    kept: Mutex<FxHashMap<SessionId, (u64, Arc<SessionFindings>)>>,
    times: Mutex<Option<(Instant, ToolTimes)>>,
    /// `look_later` looks at all.
    looks_ahead: bool,
    /// `look_later` is at it.
    is_looking: AtomicBool,
}

impl Reflection {
    /// `rules` are what is redacted, `checks` the user's own rules for agents.
    pub fn new(rules: Rules, checks: Vec<CallCheck>) -> Reflection {
        Reflection {
            rules,
            checks,
            kept: Mutex::default(),
            times: Mutex::default(),
            looks_ahead: false,
            is_looking: AtomicBool::new(false),
        }
    }

    /// Looks at listed sessions in the background, so that lists can mark them.
    pub fn looking_ahead(self) -> Reflection {
        Reflection { looks_ahead: true, ..self }
    }

    /// The findings of a session.
    pub async fn session<V: View>(
        &self,
        view: &V,
        stored: &StoredSession,
    ) -> Result<Arc<SessionFindings>, StoreError> {
        if let Some(kept) = self.kept(stored) {
            return Ok(kept);
        }
        let found = Arc::new(self.look(view, stored).await?);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(found.session, (stored.seq, found.clone()));
        Ok(found)
    }

    /// The findings of a session, if they are known without looking.
    pub fn kept(&self, stored: &StoredSession) -> Option<Arc<SessionFindings>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (seq, found) = kept.get(&stored.summary.session.id)?;
        (*seq == stored.seq).then(|| found.clone())
    }

    /// The findings of a session, with the places where they are to be seen.
    pub async fn entries<V: View>(
        &self,
        view: &V,
        stored: &StoredSession,
    ) -> Result<Vec<FindingEntry>, StoreError> {
        let found = self.session(view, stored).await?;
        let mut entries = Vec::new();
        for finding in found.rules.iter().flat_map(|(_, found)| &found.findings) {
            let mut position = None;
            if let Some((turn, part)) =
                finding.evidence.first().and_then(|first| Some((first.turn, first.part?)))
            {
                let located = view.locate(stored.row, Some(turn), part).await?;
                position = located.map(|(turn, place)| Position { turn, place });
            }
            let cost = present::cost(&finding.cost);
            let separator = if cost.is_empty() { "" } else { " · " };
            let figures = format!("{}{separator}{cost}", present::rate(finding));
            entries.push(FindingEntry { title: finding.title.clone(), figures, position });
        }
        Ok(entries)
    }

    /// The number of findings of a session, as far as it is known without looking.
    pub fn count_kept(&self, stored: &StoredSession) -> u64 {
        self.kept(stored).map_or(0, |found| found.count() as u64)
    }

    /// Looks at sessions in a thread of its own, so that `kept` has their findings later. One such
    /// thread runs at a time.
    pub fn look_later<V: View>(self: &Arc<Self>, view: V, mut sessions: Vec<StoredSession>) {
        // One that grows would be looked at again for each list.
        let is_live = |stored: &StoredSession| stored.summary.session.state == SessionState::Live;
        sessions.retain(|stored| !is_live(stored) && self.kept(stored).is_none());
        let is_idle = self.looks_ahead && !sessions.is_empty();
        if !is_idle || self.is_looking.swap(true, Ordering::AcqRel) {
            return;
        }
        let reflection = Arc::clone(self);
        thread::spawn(move || {
            for stored in sessions {
                // A session that cannot be read has no mark; its page says why.
                if block_on(reflection.session(&view, &stored)).is_err() {
                    break;
                }
            }
            reflection.is_looking.store(false, Ordering::Release);
        });
    }

    /// The findings of all sessions that pass the filter. `progress` gets the number of sessions
    /// that were looked at.
    pub async fn over<V: View>(
        &self,
        view: &V,
        filter: SessionFilter,
        mut progress: impl FnMut(usize) + Send,
    ) -> Result<Findings, StoreError> {
        let mut sessions: Vec<Arc<SessionFindings>> = Vec::new();
        let mut left = filter.limit.unwrap_or(u64::MAX);
        let mut filter = filter;
        while left > 0 {
            let count = left.min(SESSIONS_PER_LOAD);
            filter.limit = Some(count);
            let listed = view.sessions(filter.clone()).await?;
            for stored in &listed {
                sessions.push(self.session(view, stored).await?);
                progress(sessions.len());
            }
            let Some(last) = listed.last().filter(|_| listed.len() as u64 == count) else { break };
            let started = last.summary.started.map(Timestamp::as_millisecond);
            filter.after = Some((started, last.summary.session.id));
            left -= count;
        }
        Ok(Findings::of(sessions))
    }

    async fn look<V: View>(
        &self,
        view: &V,
        stored: &StoredSession,
    ) -> Result<SessionFindings, StoreError> {
        let mut redactor = Redactor::new(&self.rules);
        let head = redactor.release_summary(stored.summary.clone());
        let mut builder = HistoryBuilder::new(&head.session);
        let mut models: FxHashMap<String, u64> = FxHashMap::default();
        let mut frames = ContextFrames::default();
        let mut number = 0;
        loop {
            let window = TurnWindow::From { number, count: TURNS_PER_LOAD };
            let mut turns = view.turns(stored.row, window).await?;
            let Some(last) = turns.last() else { break };
            number = last.number.saturating_add(1);
            stored.summary.settle(&mut turns, Timestamp::now());
            for turn in turns {
                // Sections of a text that a rule quotes are cut from what is redacted already: half
                // a secret is not recognised.
                frames.add(&turn);
                let turn = redactor.release_turn(turn);
                for step in turn.steps.iter().filter_map(|step| step.model.as_deref()) {
                    *models.entry(step.to_owned()).or_default() += 1;
                }
                builder.add(&turn);
            }
        }
        let session = prompts(view, stored).await?;
        let mut adaptations = session.adaptations(view).await?;
        if session.is_empty() {
            adaptations = frames.finish(&head.session.agent);
        }
        let history = builder
            .with_prompts(self.prompts(view, stored, &session).await?)
            .with_times(self.times(view).await?)
            .with_checks(self.checks.clone())
            .finish();
        let mut rules = findings(&history);
        let mut shared = Shared::of(&history);
        // Names of files and tools in prompts, and secrets that a later turn revealed.
        let mut redact = |text: &mut String| {
            let redacted = redactor.text(text).into_owned();
            *text = redacted;
        };
        let all = rules.iter_mut().flat_map(|(_, found)| &mut found.findings);
        all.for_each(|finding| finding.texts_mut().for_each(&mut redact));
        shared.for_each_text(&mut redact);
        Ok(SessionFindings {
            session: stored.summary.session.id,
            agent_session: head.session.agent_session_id.clone(),
            agent: head.session.agent.clone(),
            title: stored
                .name
                .as_deref()
                .map(|name| redactor.text(name).into_owned())
                .or_else(|| head.title.clone())
                .unwrap_or_else(|| UNTITLED.to_owned()),
            project: head.session.facts.project.clone(),
            started: stored.summary.started,
            sub_agent: stored.is_agent(),
            ended: stored.summary.ended,
            models: most_first(models),
            version: head.session.facts.version.clone(),
            adaptations,
            rules,
            shared,
        })
    }

    async fn prompts<V: View>(
        &self,
        view: &V,
        stored: &StoredSession,
        session: &SessionPrompts,
    ) -> Result<PromptFacts, StoreError> {
        if session.is_empty() {
            return Ok(PromptFacts::default());
        }
        let mut facts = PromptFacts::new(session.calls());
        for (number, check) in self.checks.iter().enumerate() {
            let told = session.find(view, &check.text).await?;
            let requests: Vec<&str> =
                told.iter().map(|call| &*call.prompt.call().request).collect();
            facts.add_check(number, &requests);
        }
        let agents = view.subagents(stored.row).await?.into_iter().map(|agent| agent.session);
        for agent in view.sessions_by_id(agents.collect()).await? {
            facts.add_agent(&PromptFacts::new(prompts(view, &agent).await?.calls()));
        }
        Ok(facts)
    }

    /// How long the calls of each tool take in this archive.
    async fn times<V: View>(&self, view: &V) -> Result<ToolTimes, StoreError> {
        {
            let held = self.times.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, times)) = held.as_ref().filter(|(at, _)| at.elapsed() < TIMES_LAST) {
                return Ok(times.clone());
            }
        }
        let stats = view.stats(StatsRequest::default()).await?;
        let tool = |tool: &unspool_store::stats::ToolFigures| {
            (tool.name.clone(), tool.duration.measured, tool.duration.p95_ms)
        };
        let tools: Vec<_> = stats.tools.iter().map(tool).collect();
        let times =
            ToolTimes::new(tools.iter().map(|(name, count, p95)| (name.as_str(), *count, *p95)));
        let mut held = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Some((Instant::now(), times.clone()));
        Ok(times)
    }
}
