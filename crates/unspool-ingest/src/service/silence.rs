//! Ends the turns and sessions of agents that are gone. No source records that an agent was killed,
//! so its turn would run for ever. The recorder ends it (`EndReason::Lost`) if its sources were
//! silent for a while and its process is gone: the registered one, or else every process of the
//! agent in the session's project. Where processes cannot be seen, only a long silence counts. A
//! session between two turns ends in the same way (`SessionEnded`), but never by silence alone.
//!
//! The end is an event like any other: it is folded, stored and published, and the next event of
//! the session takes it back.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::{SignedDuration, Timestamp};
use unspool_model::event::{EndReason, Event, EventKind};
use unspool_model::id::SessionId;
use unspool_model::live::MAX_SILENCE;
use unspool_model::provenance::Feed;
use unspool_model::session::{SessionState, Turn, TurnState};
use unspool_query::processes::{AgentProcess, ProcessList};
use unspool_sources::agents::{Agent, ProcessFiles};
use unspool_sources::discover::{Environment, ProcessSource};
use unspool_store::blocking::block_on;
use unspool_store::rows::received_from;
use unspool_store::store::{SessionFilter, Store, StoreError, StoredSession, View, Viewer};

use crate::lock::DataFolder;
use crate::process_registry::{ProcessRegistry, Registered};
use crate::recorder::Recorder;
use crate::recorder::batch::IngestMode;
use crate::recorder::session_writer::{SessionWriter, recorder_event};
use crate::report::SyncReport;
use crate::service::remote_folder::is_remote;
use crate::stdin_capture;
use crate::sync::FileCandidate;

/// Interval of checks, unless the limit is shorter.
const MAX_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// A dead process has written its last line by then.
const MIN_SILENCE: Duration = Duration::from_secs(5);

/// How soon after its first write the process of a session is looked for.
const FIRST_LOOK: Duration = Duration::from_millis(300);

/// A session that was silent for longer is not watched until it is written to again.
const MAX_IDLE: SignedDuration = SignedDuration::from_hours(24);

/// A first sync of a large home may find hundreds of turns without an end. One commit for each of
/// them would cost more than the rest of its import.
const SESSIONS_PER_COMMIT: usize = 64;

/// A longer chain of sub-agents is a loop.
const MAX_AGENT_DEPTH: usize = 16;

/// A process that said it waits has written its last record, or writes it at this moment.
const RESTING_SILENCE: Duration = Duration::from_secs(1);

/// When a turn without an end counts as left by its agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SilencePolicy {
    /// After this long without a write, if its process was seen and is gone.
    pub gone_after: Duration,
    /// After this long, if no process of it was ever seen: it may run where we cannot see it.
    pub unseen_after: Duration,
    /// After this long, if that cannot be known.
    pub unknown_after: Duration,
    /// Our own folder of hook payloads: many sessions share its files.
    pub hook_spool: PathBuf,
    /// Home folders whose agents run on other machines.
    pub other_homes: Vec<PathBuf>,
    /// What says which process runs which session.
    pub process_sources: Vec<ProcessSource>,
}

impl SilencePolicy {
    pub fn new(idle_after: Duration, folder: &DataFolder, environment: &Environment) -> Self {
        let agents = environment.process_sources();
        let path = folder.processes();
        let hooks = ProcessSource { program: None, path, files: ProcessFiles::Entries };
        SilencePolicy {
            gone_after: idle_after.min(MIN_SILENCE),
            unseen_after: idle_after,
            unknown_after: Duration::try_from(MAX_SILENCE).unwrap_or(idle_after),
            hook_spool: folder.spool(),
            other_homes: environment.other_homes.clone(),
            process_sources: agents.chain([hooks]).collect(),
        }
    }
}

/// Checks the sessions that may have lost their agent.
pub struct SilenceCheck {
    policy: SilencePolicy,
    /// Sessions that may have a running turn or a process that waits for the next one.
    candidates: BTreeSet<SessionId>,
    /// Those of them whose process was seen.
    seen: BTreeSet<SessionId>,
    due: Instant,
}

impl SilenceCheck {
    /// Begins with the sessions of the archive that have a turn without an end, or were written to
    /// lately.
    pub fn new<S: Store>(
        recorder: &Recorder<S>,
        policy: SilencePolicy,
    ) -> Result<SilenceCheck, StoreError> {
        let view = recorder.store().view(Viewer::Sole);
        let since = Some((Timestamp::now() - MAX_IDLE).as_millisecond());
        let lately = block_on(view.sessions(SessionFilter { since, ..SessionFilter::default() }))?;
        let lately = lately.iter().map(|stored| stored.summary.session.id);
        let running = block_on(view.sessions_with_running_turns())?;
        let candidates = running.into_iter().chain(lately).collect();
        Ok(SilenceCheck { policy, candidates, seen: BTreeSet::new(), due: Instant::now() })
    }

    /// Adds the sessions that were written to.
    pub fn add(&mut self, report: &SyncReport) {
        self.candidates.extend(&report.changed);
        // A short run is over before the next regular check.
        if report.changed.iter().any(|id| !self.seen.contains(id)) {
            self.due = self.due.min(Instant::now() + FIRST_LOOK);
        }
    }

    /// When to check next. None while there is no session to check.
    pub fn due(&self) -> Option<Instant> {
        (!self.candidates.is_empty()).then_some(self.due)
    }

    /// Ends what has to be ended, if a check is due.
    pub fn run<S: Store>(&mut self, recorder: &Recorder<S>) -> Result<(), StoreError> {
        if self.due().is_none_or(|due| due > Instant::now()) {
            return Ok(());
        }
        self.due = Instant::now() + MAX_CHECK_INTERVAL.min(self.policy.gone_after / 2);
        let view = recorder.store().view(Viewer::Sole);
        let ids = self.candidates.iter().copied().collect();
        let mut sessions = block_on(view.sessions_by_id(ids))?;
        sessions.retain(|stored| stored.summary.is_running() || is_between_turns(stored));
        self.candidates = sessions.iter().map(|stored| stored.summary.session.id).collect();
        self.seen.retain(|id| self.candidates.contains(id));
        let mut presence = Presence::default();
        for group in sessions.chunks(SESSIONS_PER_COMMIT) {
            let mut packer = recorder.packer(IngestMode::Live)?;
            let mut writers = Vec::new();
            for stored in group {
                let last_write = self.last_write(&view, stored)?;
                let owner = process_owner(&view, stored)?;
                let sighting = presence.look(&self.policy, stored, &owner, &last_write);
                let id = stored.summary.session.id;
                if matches!(sighting, Sighting::Present | Sighting::Resting) {
                    self.seen.insert(id);
                }
                if is_lost(&self.policy, stored, &last_write, sighting, self.seen.contains(&id))
                    && let Some(mut writer) = end(recorder, &view, stored, last_write.at)?
                {
                    packer.add(&mut writer)?;
                    writers.push(writer);
                }
            }
            recorder.commit(&mut packer, &mut writers)?;
        }
        Ok(())
    }

    fn last_write(
        &self,
        view: &impl View,
        stored: &StoredSession,
    ) -> Result<LastWrite, StoreError> {
        let mut found = LastWrite { at: None, reach: Reach::Local };
        for file in block_on(view.source_files(stored.row))? {
            let is_received = received_from(&file.path).is_some();
            let path = PathBuf::from(file.path);
            if path.starts_with(&self.policy.hook_spool) {
                continue;
            }
            if self.policy.other_homes.iter().any(|home| path.starts_with(home))
                || is_received
                || path.parent().is_some_and(is_remote)
            {
                found.reach = Reach::Remote;
            }
            if stdin_capture::is_being_written(&path) {
                found.reach = Reach::Alive;
            }
            let stamp = match is_received {
                true => Some(file.stamp),
                false => FileCandidate::of(&path).stamp,
            };
            let modified = stamp.and_then(|stamp| u64::try_from(stamp.modified).ok());
            found.at = found.at.max(modified.map(|nanos| UNIX_EPOCH + Duration::from_nanos(nanos)));
        }
        let heard = stored.summary.last_heard().map(SystemTime::from);
        // Without a file the records' own times are all there is.
        found.at = found.at.or(heard);
        Ok(found)
    }
}

/// The last write to the sources of a session.
struct LastWrite {
    at: Option<SystemTime>,
    reach: Reach,
}

/// Whether the agent's process can be seen from here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Local,
    Remote,
    /// Its output is being piped into this archive.
    Alive,
}

/// True if its last turn is over and its agent may wait for the next prompt.
fn is_between_turns(stored: &StoredSession) -> bool {
    let session = &stored.summary.session;
    let now = Timestamp::now();
    let heard = stored.summary.last_heard();
    session.state == SessionState::Idle
        && !stored.is_agent()
        && heard.is_some_and(|heard| now.duration_since(heard) < MAX_IDLE)
}

/// The processes of this machine and their sessions, read once.
#[derive(Default)]
struct Presence(Option<Option<(ProcessList, ProcessRegistry)>>);

/// What a look at the processes says about a session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sighting {
    Present,
    /// Its process is there and waits for a prompt.
    Resting,
    /// The process that was registered for it is dead.
    Dead,
    /// No process of its agent could be it.
    Absent,
    /// Processes cannot be seen, or the session is of another machine.
    Unknown,
}

impl Presence {
    fn look(
        &mut self,
        policy: &SilencePolicy,
        stored: &StoredSession,
        owner: &str,
        last_write: &LastWrite,
    ) -> Sighting {
        let (Some(written), Reach::Local) = (last_write.at, last_write.reach) else {
            return Sighting::Unknown;
        };
        let known = self.0.get_or_insert_with(|| {
            let processes = ProcessList::read()?;
            let registry = ProcessRegistry::read(&policy.process_sources, &processes);
            Some((processes, registry))
        });
        let session = &stored.summary.session;
        let program = Agent::named(&session.agent).and_then(Agent::program);
        let (Some(program), Some((processes, registry))) = (program, known) else {
            return Sighting::Unknown;
        };
        match registry.process_of(owner, processes) {
            // It said so after its last record: the turn was cancelled before it wrote anything. Its
            // background agents go on.
            Registered::Idle(at) if at >= written && !stored.is_agent() => Sighting::Resting,
            Registered::Alive | Registered::Idle(_) => Sighting::Present,
            Registered::Dead => Sighting::Dead,
            Registered::No => {
                let project = session.facts.project.as_deref().map(Path::new);
                let wanted = AgentProcess { program, project, started_before: written };
                let present = processes.has(&wanted, &registry.others(owner, processes));
                if present { Sighting::Present } else { Sighting::Absent }
            }
        }
    }
}

/// The agent's id of the session whose process runs this one: a sub-agent runs in the process of the
/// session that started it.
fn process_owner(view: &impl View, stored: &StoredSession) -> Result<String, StoreError> {
    let mut session = stored.summary.session.clone();
    for _ in 0..MAX_AGENT_DEPTH {
        let Some(parent) = &session.parent else { break };
        let Some(found) = block_on(view.sessions_by_id(vec![parent.session]))?.pop() else { break };
        session = found.summary.session;
    }
    Ok(session.agent_session_id)
}

/// True if the session is silent for long enough to say that its agent is gone.
fn is_lost(
    policy: &SilencePolicy,
    stored: &StoredSession,
    last_write: &LastWrite,
    sighting: Sighting,
    seen: bool,
) -> bool {
    let Some(written) = last_write.at else { return false };
    let Ok(silence) = SystemTime::now().duration_since(written) else { return false };
    match sighting {
        Sighting::Present => false,
        Sighting::Resting => {
            stored.summary.is_running() && silence >= policy.gone_after.min(RESTING_SILENCE)
        }
        Sighting::Dead => silence >= policy.gone_after,
        Sighting::Absent if seen => silence >= policy.gone_after,
        Sighting::Absent => silence >= policy.unseen_after,
        Sighting::Unknown => {
            last_write.reach != Reach::Alive
                && stored.summary.is_running()
                && silence >= policy.unknown_after.max(policy.unseen_after)
        }
    }
}

/// Ends a session, or its last turn if that is running, without writing it. None if it cannot be
/// ended.
fn end<S: Store>(
    recorder: &Recorder<S>,
    view: &impl View,
    stored: &StoredSession,
    last_write: Option<SystemTime>,
) -> Result<Option<SessionWriter>, StoreError> {
    let Some(number) = block_on(view.sizes(stored.row))?.last().map(|size| size.number) else {
        return Ok(None);
    };
    let Some(turn) = block_on(view.head(stored.row, number))? else { return Ok(None) };
    let session = &stored.summary.session;
    let kind = match (turn.state, stored.summary.is_running()) {
        (TurnState::Running, _) => EventKind::TurnEnded(EndReason::Lost),
        (_, false) => EventKind::SessionEnded,
        (_, true) => return Ok(None),
    };
    let Some(event) = lost_event(&turn, stored, last_write, kind) else {
        return Ok(None);
    };
    let Some(mut writer) = recorder.open(&session.agent, &session.agent_session_id)? else {
        return Ok(None);
    };
    recorder.take(&mut writer, event)?;
    tracing::info!(session = %session.id, turn = number, "the agent of this session is gone");
    Ok(Some(writer))
}

/// The event that ends a turn or a session.
fn lost_event(
    turn: &Turn,
    stored: &StoredSession,
    last_write: Option<SystemTime>,
    kind: EventKind,
) -> Option<Event> {
    let feed = Feed::ALL.into_iter().rev().find(|feed| turn.origin.at.of(*feed).is_some())?;
    let since = last_write?.duration_since(UNIX_EPOCH).ok()?;
    let offset = u64::try_from(since.as_millis()).ok()?;
    let name = turn.origin.names.iter().min().cloned();
    // An end before the session was opened again would end nothing.
    let at = stored.summary.last_heard().max(stored.summary.session.facts.resumed_at);
    Some(recorder_event(feed, name, at, offset, kind))
}
