//! `unspool show --follow`: prints a session, then each part when it is complete, while the session
//! goes on. Like the terminal application it records while it runs, unless another process does.

use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use jiff::Timestamp;
use unspool_ingest::service::{Service, ServiceEvent};
use unspool_model::id::{PartId, SessionId};
use unspool_model::part::Place;
use unspool_model::session::{SessionState, Turn, TurnState};
use unspool_model::skeleton::PartSkeleton;
use unspool_query::live::Update;
use unspool_query::subagents::subagents;
use unspool_store::blocking::block_on;
use unspool_store::database::DatabaseView;
use unspool_store::store::{StoredSession, View};
use unspool_view::call_groups::call_groups;
use unspool_view::present::notes::NoteViews;

use crate::archive::{Archive, find};
use crate::paint::Joined;
use crate::{artifacts, config, paint};

/// Changes this close together are printed together.
const COALESCE_WINDOW: Duration = Duration::from_millis(50);

/// Prints a session until it is over: it has ended, or no turn is running and nothing was written
/// for a while.
pub fn follow(archive: &Archive, id: &str, style: &paint::Style) -> Result<()> {
    let idle_after = config::idle_after()?;
    // Report an unknown session before anything is recorded.
    let session = find(&archive.view()?, id)?.summary.session.id;
    let folder = archive.folder()?;
    let sources = config::sources(&folder, config::environment(&folder)?)?;
    let service = Service::begin(archive.clone(), sources)?;
    let view = service.view()?;
    let writes = writes(&service, session);
    artifacts::spawn(service.view()?, &folder, service.updates().subscribe())?;
    service.spawn(|event| match event {
        // The next read reports that the archive is gone.
        ServiceEvent::Synced(_) | ServiceEvent::Gone(_) => {}
        ServiceEvent::Failed(error) => stderr_line!("unspool: {:#}", anyhow::Error::from(error)),
    });
    let out = io::BufWriter::new(io::stdout());
    let mut follower = Follower { view, session, style, out, turn: None };
    let mut stored = follower.stored()?;
    paint::head(&stored.summary, &config::prices()?, style, &mut follower.out)?;
    let mut heard = Instant::now();
    if let Some(last) = stored.summary.last_heard() {
        let age = Duration::try_from(Timestamp::now().duration_since(last)).unwrap_or_default();
        heard = heard.checked_sub(age).unwrap_or(heard);
    }
    loop {
        follower.print_new(&stored)?;
        let wait = match stored.summary.state(Timestamp::now()) {
            SessionState::Ended => return Ok(()),
            SessionState::Live => idle_after,
            SessionState::Idle => idle_after.saturating_sub(heard.elapsed()),
        };
        match writes.recv_timeout(wait) {
            Ok(()) => {
                heard = Instant::now();
                thread::sleep(COALESCE_WINDOW);
                writes.try_iter().for_each(drop);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        stored = follower.stored()?;
        if stored.summary.state(Timestamp::now()) == SessionState::Idle
            && heard.elapsed() >= idle_after
        {
            return follower.print_new(&stored);
        }
    }
}

/// A message for every write to the session.
fn writes(service: &Service, session: SessionId) -> Receiver<()> {
    let mut subscription = service.updates().subscribe();
    let (sender, writes) = channel();
    thread::spawn(move || {
        while let Some(update) = subscription.next_blocking() {
            let concerns = match update {
                Update::Written(written) => written.session == session,
                Update::Lagged => true,
            };
            if concerns && sender.send(()).is_err() {
                return;
            }
        }
    });
    writes
}

struct Follower<'a, W: Write> {
    view: DatabaseView,
    session: SessionId,
    style: &'a paint::Style,
    out: W,
    /// The turn that was printed last.
    turn: Option<PrintedTurn>,
}

struct PrintedTurn {
    number: u32,
    /// The parts that were printed. By id: a part may move when another feed tells what was before it.
    parts: HashSet<PartId>,
    /// All of it is printed.
    complete: bool,
}

impl<W: Write> Follower<'_, W> {
    fn stored(&self) -> Result<StoredSession> {
        match block_on(self.view.session(self.session))? {
            Some(stored) => Ok(stored),
            None => find(&self.view, &self.session.to_string()),
        }
    }

    fn notes(&self) -> Result<NoteViews> {
        Ok(NoteViews::of(&block_on(self.view.notes(self.session))?))
    }

    /// Prints the parts that are complete and not printed yet, in order.
    fn print_new(&mut self, stored: &StoredSession) -> Result<()> {
        let begun = self.turn.as_ref().map_or(0, |turn| turn.number);
        let sizes = block_on(self.view.sizes(stored.row))?;
        let last = sizes.last().map_or(0, |size| size.number);
        let from = sizes.partition_point(|size| size.number < begun);
        for size in sizes.get(from..).unwrap_or_default() {
            let Some(head) = block_on(self.view.head(stored.row, size.number))? else { continue };
            // A turn without an end before the last one gets no more parts.
            let ended = head.state != TurnState::Running || size.number < last;
            self.print_turn(stored, head, ended)?;
        }
        Ok(self.out.flush()?)
    }

    fn print_turn(&mut self, stored: &StoredSession, head: Turn, ended: bool) -> Result<()> {
        let number = head.number;
        let known = self.turn.take().filter(|turn| turn.number == number);
        let mut printed = match known {
            Some(printed) if printed.complete => {
                self.turn = Some(printed);
                return Ok(());
            }
            Some(printed) => printed,
            None => {
                let mut settled = vec![head.clone()];
                stored.summary.settle(&mut settled, Timestamp::now());
                let session = &stored.summary.session;
                let joined = Joined { notes: self.notes()?, ..Joined::default() };
                paint::turn_head(session, &settled[0], joined, self.style, &mut self.out)?;
                PrintedTurn { number, parts: HashSet::new(), complete: false }
            }
        };
        let skeleton = block_on(self.view.skeleton(stored.row, number))?;
        let all = skeleton.iter().flat_map(|skeleton| &skeleton.parts);
        let is_new = |part: &&PartSkeleton| !printed.parts.contains(&part.id);
        let new: Vec<Place> = all.filter(is_new).map(|part| part.place).collect();
        let mut parts = block_on(self.view.parts(stored.row, number, new))?;
        if !ended {
            // Nothing is printed before the parts that come before it, and parallel calls are
            // printed together, below a title that counts all of them.
            if let Some(open) = parts.iter().position(|part| part.body.is_open()) {
                let skeletons: Vec<PartSkeleton> = parts.iter().map(PartSkeleton::of).collect();
                let groups = call_groups(&skeletons);
                let cut = groups.iter().find(|group| group.range.contains(&open));
                parts.truncate(cut.map_or(open, |group| group.range.start));
            }
        }
        if !parts.is_empty() {
            printed.parts.extend(parts.iter().map(|part| part.id));
            let turns = [Turn { parts, ..head }];
            let agent = &stored.summary.session.agent;
            let subagents = block_on(subagents(&self.view, agent, &turns))?;
            let joined = Joined { subagents, notes: self.notes()? };
            paint::items(&stored.summary.session, &turns[0], joined, self.style, &mut self.out)?;
        }
        printed.complete = ended;
        self.turn = Some(printed);
        Ok(())
    }
}
