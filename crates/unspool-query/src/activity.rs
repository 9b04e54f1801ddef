//! What a live session does now. The words and states are `unspool_view`'s; this module reads the
//! few parts that decide, looks for running commands, and lets a session wait for its sub-agents'
//! questions.

use std::path::Path;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use rustc_hash::FxHashSet;
use serde::Serialize;
use unspool_model::context::ContextUse;
use unspool_model::document::SessionDocument;
use unspool_model::id::SessionId;
use unspool_model::live::MAX_SILENCE;
use unspool_model::part::{Kind, Place};
use unspool_model::price::Prices;
use unspool_model::provenance::Feed;
use unspool_model::session::SessionState;
use unspool_model::skeleton::PartSkeleton;
use unspool_sources::agents::Agent;
use unspool_store::store::{SessionFilter, StoreError, StoredSession, View};
use unspool_view::present::UNTITLED;
use unspool_view::present::activity::{Activity, CommandRequest, CommandState, Moment, Request};

use crate::attention::Seen;
use crate::context::context;
use crate::processes::{ProcessList, RunningAgent};
use crate::seen_commands::{self, ProcessMatch};

/// A session in the JSON of a list.
#[derive(Serialize)]
pub struct ListDocument<'a> {
    #[serde(flatten)]
    pub session: SessionDocument<'a>,
    /// None unless it is live.
    pub activity: Option<Activity>,
    /// None unless it is live.
    pub context: Option<ContextUse>,
}

impl<'a> ListDocument<'a> {
    pub async fn of<V: View>(
        view: &V,
        stored: &'a StoredSession,
        prices: &'a Prices,
    ) -> Result<ListDocument<'a>, StoreError> {
        let activity = activity(view, stored).await?;
        let context = match &activity {
            Some(_) => context(view, stored).await?,
            None => None,
        };
        let session = SessionDocument { summary: &stored.summary, prices };
        Ok(ListDocument { session, activity, context })
    }
}

/// Processes that an agent starts this soon after a request are its hooks.
const HOOKS_DURATION: Duration = Duration::from_secs(2);
/// Start times of processes have whole seconds, and so has the boot time that they are added to.
const CLOCK_STEP: Duration = Duration::from_secs(2);

/// Prose is open only at the end of a turn.
const LAST_PARTS: usize = 4;

/// The current activity of a session; None if neither it nor one of its sub-agents is live.
pub async fn activity<V: View>(
    view: &V,
    stored: &StoredSession,
) -> Result<Option<Activity>, StoreError> {
    let now = Timestamp::now();
    let is_live = stored.summary.session.state == SessionState::Live;
    let own = if is_live { own_activity(view, stored, now).await? } else { None };
    if own.as_ref().is_some_and(|own| !matches!(own, Activity::Working { .. })) {
        return Ok(own);
    }
    // A question of a sub-agent is one of the session that started it, and an idle session works as
    // long as its background agents do.
    let agents = view.live_subagents(stored.row).await?;
    if agents.is_empty() {
        return Ok(own);
    }
    let mut working = None;
    for agent in view.sessions_by_id(agents).await? {
        if agent.summary.session.state != SessionState::Live {
            continue;
        }
        let activity = own_activity(view, &agent, now).await?;
        if activity.as_ref().is_some_and(Activity::is_waiting) {
            return Ok(activity);
        }
        working = working.or(activity);
    }
    Ok(own.or(working))
}

/// A session and what it does now.
pub struct ActiveSession {
    pub stored: StoredSession,
    /// None unless it is live.
    pub activity: Option<Activity>,
}

impl ActiveSession {
    pub fn seen(&self) -> Seen<'_> {
        let summary = &self.stored.summary;
        let session = &summary.session;
        Seen {
            session: session.id,
            agent: &session.agent,
            project: session.facts.project.as_deref(),
            title: summary.title.as_deref().unwrap_or(UNTITLED),
            sub_agent: self.stored.is_agent(),
            activity: self.activity.as_ref(),
            last_turn: summary.last_turn,
        }
    }
}

/// These sessions and all sessions that were written to lately.
pub async fn recent_sessions<V: View>(
    view: &V,
    others: &FxHashSet<SessionId>,
) -> Result<Vec<ActiveSession>, StoreError> {
    let lately = (Timestamp::now() - MAX_SILENCE).as_millisecond();
    let recent = SessionFilter { since: Some(lately), ..SessionFilter::default() };
    let mut found = view.sessions(recent).await?;
    let ids: FxHashSet<SessionId> = found.iter().map(|stored| stored.summary.session.id).collect();
    found.extend(view.sessions_by_id(others.difference(&ids).copied().collect()).await?);
    let mut sessions = Vec::with_capacity(found.len());
    for stored in found {
        let activity = activity(view, &stored).await?;
        sessions.push(ActiveSession { stored, activity });
    }
    Ok(sessions)
}

/// The activity of a session without its sub-agents.
async fn own_activity<V: View>(
    view: &V,
    stored: &StoredSession,
    now: Timestamp,
) -> Result<Option<Activity>, StoreError> {
    // Turn numbers start at 0 or 1, so the last turn has one of these two numbers.
    let last = u32::try_from(stored.summary.turns).unwrap_or(u32::MAX);
    let mut found = view.skeleton(stored.row, last).await?;
    if found.is_none() {
        found = view.skeleton(stored.row, last.saturating_sub(1)).await?;
    }
    let Some(skeleton) = found else { return Ok(None) };
    let mut turn = skeleton.turn;
    let places = deciding_places(&skeleton.parts);
    turn.parts = view.parts(stored.row, turn.number, places).await?;
    let session = &stored.summary.session;
    let known = Agent::named(&session.agent);
    let program = known.and_then(Agent::program);
    let project = session.facts.project.as_deref().map(Path::new);
    let agent = program.map(|program| RunningAgent { program, project });
    let command_state = |request: &CommandRequest<'_>| {
        let found = agent.as_ref().map_or(ProcessMatch::None, |agent| find_process(agent, request));
        match request.part {
            Some(part) => seen_commands::look((session.id, part, request.question), found, now),
            None if found == ProcessMatch::None => CommandState::NotSeen,
            None => CommandState::Running,
        }
    };
    let moment = Moment {
        now,
        last_heard: stored.summary.last_heard(),
        calls_come_late: known.is_some_and(|agent| agent.calls_come_late),
        permissions_are_reported: turn.origin.at.of(Feed::Hooks).is_some()
            && known.is_some_and(Agent::hooks_report_permissions),
        command_state: &command_state,
    };
    Ok(Some(Activity::of(&turn, &moment)))
}

/// The process of a command that an agent requested.
fn find_process(agent: &RunningAgent<'_>, request: &CommandRequest<'_>) -> ProcessMatch {
    let (Some(list), Some(since)) = (ProcessList::latest(), request.since.map(SystemTime::from))
    else {
        return ProcessMatch::None;
    };
    let child_since = match request.request {
        Request::Permission => since + HOOKS_DURATION,
        Request::Call => since - CLOCK_STEP,
    };
    if list.runs(agent, request.command, since) {
        ProcessMatch::Command
    } else if list.has_child_since(agent, child_since) {
        ProcessMatch::Child
    } else {
        ProcessMatch::None
    }
}

/// The places of parts that may be open.
fn deciding_places(parts: &[PartSkeleton]) -> Vec<Place> {
    let tail = parts.len().saturating_sub(LAST_PARTS);
    let decides = |(at, part): &(usize, &PartSkeleton)| {
        *at >= tail
            || part.kind == Kind::Agent
            || part.state.is_some_and(|state| !state.is_terminal())
    };
    parts.iter().enumerate().filter(decides).map(|(_, part)| part.place).collect()
}
