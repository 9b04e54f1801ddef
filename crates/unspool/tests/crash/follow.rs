//! Clients follow a session while a process records it: they subscribe through the change socket,
//! load the session and apply its updates. Whenever a client connects, it ends up with what the
//! archive has, and receives every change exactly once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use unspool_ingest::service::socket::Follower;
use unspool_model::change::ChangeSet;
use unspool_model::id::SessionId;
use unspool_model::session::Turn;
use unspool_model::transcript::TranscriptBuilder;
use unspool_query::live::{Update, Updates};
use unspool_store::blocking::block_on;
use unspool_store::database::DatabaseView;
use unspool_store::store::{Store, TurnWindow, View, Viewer};

use crate::live::{GrowingFile, agents_at_work};
use crate::random::Random;
use crate::sandbox::{DEADLINE, Sandbox, Unspool};

/// A copy of a session, and the sequence number up to which it is current.
struct Replica {
    view: DatabaseView,
    id: SessionId,
    seq: u64,
    builder: TranscriptBuilder,
}

/// The effect of a change set on a replica.
#[derive(Debug)]
enum Outcome {
    /// The changes are already applied.
    None,
    Applied,
    /// The changes do not follow, or are not there: the session was loaded again.
    Reloaded,
}

impl Replica {
    /// Loads a session. None if it is not stored.
    fn load(view: DatabaseView, id: SessionId) -> Option<Replica> {
        let builder = TranscriptBuilder::new("", "");
        let mut replica = Replica { view, id, seq: 0, builder };
        replica.reload().then_some(replica)
    }

    /// False if the session is not stored.
    fn reload(&mut self) -> bool {
        loop {
            let find = || block_on(self.view.session(self.id)).unwrap();
            let Some(stored) = find() else { return false };
            let turns = block_on(self.view.whole_turns(stored.row, TurnWindow::All)).unwrap();
            // A write happened during the read, so the turns may be inconsistent.
            if find().is_none_or(|after| after.seq != stored.seq) {
                continue;
            }
            self.builder = TranscriptBuilder::resume(stored.summary.session);
            turns.into_iter().for_each(|turn| self.builder.adopt_turn(turn));
            self.seq = stored.seq;
            return true;
        }
    }

    fn take(&mut self, written: &ChangeSet) -> Outcome {
        if written.seq <= self.seq {
            return Outcome::None;
        }
        match &written.delta {
            Some(delta) if written.from_seq == self.seq => {
                self.builder.apply_all(delta.changes.iter().cloned());
                self.seq = written.seq;
                Outcome::Applied
            }
            Some(_) | None => {
                assert!(self.reload());
                Outcome::Reloaded
            }
        }
    }

    /// All stored turns, hidden parts included.
    fn rows(&self) -> Vec<Turn> {
        let mut turns = self.builder.rows().turns;
        turns.sort_by_key(|turn| turn.number);
        turns
    }
}

/// A client that follows one session on its own thread.
pub struct FollowingClient {
    id: SessionId,
    unspool: Unspool,
    seq: Arc<AtomicU64>,
    stopped: Arc<AtomicBool>,
    following: JoinHandle<Replica>,
}

impl FollowingClient {
    /// Starts to follow after a delay.
    pub fn open(unspool: &Unspool, session: &str, after: Duration) -> FollowingClient {
        let id = SessionId::of("claude-code", session);
        let (seq, stopped) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let watching = (unspool.clone(), seq.clone(), stopped.clone());
        let following = thread::spawn(move || {
            thread::sleep(after);
            let (unspool, seq, stopped) = watching;
            let mut followed = None;
            while !stopped.load(Ordering::Relaxed) {
                followed = follow(&unspool, id, &seq, &stopped, followed);
            }
            followed.expect("the session was never there")
        });
        FollowingClient { id, unspool: unspool.clone(), seq, stopped, following }
    }

    /// Waits until its sequence number equals the stored one.
    pub fn catch_up(&self) {
        let stored = stored_seq(&self.unspool, self.id).unwrap();
        let begun = Instant::now();
        while self.seq.load(Ordering::Acquire) != stored {
            assert!(!self.following.is_finished(), "it failed");
            let seen = self.seq.load(Ordering::Acquire);
            assert!(begun.elapsed() < DEADLINE, "{seen} was seen, {stored} is stored");
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Stops it after the recorder has ended, and compares its state with the archive.
    pub fn close(self) {
        self.stopped.store(true, Ordering::Relaxed);
        let followed = self.following.join().unwrap();
        let store = self.unspool.store();
        let stored = block_on(store.view(Viewer::Sole).session(self.id)).unwrap().unwrap();
        assert_eq!(followed.seq, stored.seq);
        assert_eq!(
            followed.rows(),
            block_on(store.view(Viewer::Sole).whole_turns(stored.row, TurnWindow::All)).unwrap()
        );
        let mut seen = followed.builder.transcript();
        assert_eq!(
            seen.turns,
            block_on(store.view(Viewer::Sole).turns(stored.row, TurnWindow::All)).unwrap()
        );
        // The parent is joined when the session is read from the store.
        seen.session.parent = stored.summary.session.parent.clone();
        assert_eq!(seen.session, stored.summary.session);
    }
}

pub fn stored_seq(unspool: &Unspool, id: SessionId) -> Option<u64> {
    block_on(unspool.store().view(Viewer::Sole).session(id)).unwrap().map(|stored| stored.seq)
}

/// Follows until the recorder ends. Fails on a duplicate or a missing change.
fn follow(
    unspool: &Unspool,
    id: SessionId,
    seq: &AtomicU64,
    stopped: &AtomicBool,
    held: Option<Replica>,
) -> Option<Replica> {
    let Some(follower) = connect(unspool, stopped) else { return held };
    let updates = Updates::default();
    let mut subscription = updates.subscribe();
    // It drops the sender when the recorder ends, and the subscription ends too.
    let relay = thread::spawn(move || follower.relay(&updates).unwrap());
    let mut followed = match held {
        Some(mut held) => {
            assert!(held.reload());
            held
        }
        None => loop {
            if let Some(followed) = Replica::load(unspool.store().view(Viewer::Sole), id) {
                break followed;
            }
            // Not stored yet: try again after the next write.
            subscription.next_blocking()?;
        },
    };
    let mut last_seq = None;
    loop {
        seq.store(followed.seq, Ordering::Release);
        let published = match subscription.next_blocking() {
            None => {
                relay.join().unwrap();
                return Some(followed);
            }
            Some(Update::Written(published)) => published,
            Some(Update::Lagged) => panic!("nothing was missed"),
        };
        if published.session != id {
            continue;
        }
        assert!(published.from_seq < published.seq);
        assert!(
            last_seq.is_none_or(|last_seq| last_seq == published.from_seq),
            "a gap, or a repeat"
        );
        last_seq = Some(published.seq);
        let before = followed.seq;
        match followed.take(&published) {
            Outcome::None => assert!(published.seq <= before, "a change was passed over"),
            Outcome::Applied => {
                assert_eq!((before, followed.seq), (published.from_seq, published.seq))
            }
            // The recorder had opened the session before we connected.
            Outcome::Reloaded => assert!(published.delta.is_none(), "a gap"),
        }
    }
}

/// Connects to the recorder, waiting until there is one or the test stops.
fn connect(unspool: &Unspool, stopped: &AtomicBool) -> Option<Follower> {
    let begun = Instant::now();
    while !stopped.load(Ordering::Relaxed) {
        if let Some(follower) = Follower::connect(&unspool.folder()).unwrap() {
            return Some(follower);
        }
        assert!(begun.elapsed() < DEADLINE, "nobody records");
        thread::sleep(Duration::from_millis(2));
    }
    None
}

#[test]
fn a_follower_sees_every_change_once() {
    // R-001-34 R-X-14, law 2: clients connect at random moments; no change is missed, duplicated or
    // coalesced away.
    let sandbox = Sandbox::new();
    let unspool = sandbox.unspool("followed");
    let mut random = Random::new("follow");
    let mut growing = agents_at_work(&sandbox);
    let watcher = unspool.watch();
    watcher.report();
    let sessions = [
        "558df950-d3d3-4637-a60d-0275750bc7e7",
        "22dd88e4-454a-41e5-ae9a-096c1bf92030",
        "9c68e3ba-a126-444b-8b25-ea39ba34c06d",
    ];
    let mut clients: Vec<FollowingClient> = Vec::new();
    for round in (1..=12).rev() {
        let session = sessions[random.below(sessions.len())];
        clients.push(FollowingClient::open(
            &unspool,
            session,
            random.delay(Duration::from_millis(700)),
        ));
        let todo = growing.iter().map(GrowingFile::left).sum::<usize>() / round;
        let (mut written, mut records) = (0, 0);
        while written < todo {
            let at = random.below(growing.len());
            let before = growing[at].left();
            records += growing[at].append_some(&mut random);
            written += before - growing[at].left();
        }
        watcher.take(records);
    }
    clients.iter().for_each(FollowingClient::catch_up);
    watcher.kill();
    clients.into_iter().for_each(FollowingClient::close);
}
