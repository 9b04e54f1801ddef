//! Publishing: a subscriber that loads a session and applies the published changes has the stored
//! state, whenever it subscribed and however far it lagged.

use proptest::prelude::*;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;
use unspool_core::event::EndReason::Completed;
use unspool_core::event::Voice::Text;
use unspool_core::id::SessionId;
use unspool_core::session::Turn;
use unspool_core::transcript::Mirror;
use unspool_store::batch::{Pace, Packer};
use unspool_store::blocking::wait;
use unspool_store::contract::{Store, Window};
use unspool_store::fold::SessionFold;
use unspool_store::recorder::{Published, Recorder};

use crate::desk::{AGENT, Desk, ask};
use crate::dress::any_script;
use crate::home::Home;
use crate::model::{Outcome, same};
use crate::recording::hold;
use crate::script::*;

/// A subscriber to one session.
struct Follower {
    published: Receiver<Published>,
    id: SessionId,
    /// None until the session is stored.
    held: Option<(u64, Mirror)>,
    loads: u64,
    applied: u64,
}

impl Follower {
    /// Subscribes before loading, so there is no gap.
    fn new<S: Store>(recorder: &Recorder<S>, id: SessionId) -> Follower {
        let published = recorder.subscribe();
        let mut follower = Follower { published, id, held: None, loads: 0, applied: 0 };
        follower.load(recorder.store());
        follower
    }

    fn load<S: Store>(&mut self, store: &S) {
        self.loads += 1;
        let found = wait(store.find(self.id.to_string())).unwrap().pop();
        self.held = found.map(|stored| {
            let mut mirror = Mirror::resume(stored.summary.session);
            let turns = wait(store.whole_turns(stored.row, Window::All)).unwrap();
            turns.into_iter().for_each(|turn| mirror.adopt_turn(turn));
            (stored.seq, mirror)
        });
    }

    /// Applies all pending change sets.
    fn follow<S: Store>(&mut self, store: &S) {
        loop {
            let published = match self.published.try_recv() {
                Ok(published) => published,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
                Err(TryRecvError::Lagged(_)) => {
                    self.load(store);
                    continue;
                }
            };
            assert!(published.from_seq < published.seq, "something happened");
            let seq = self.held.as_ref().map_or(0, |(seq, _)| *seq);
            if published.session != self.id || published.seq <= seq {
                continue;
            }
            match (&published.changes, &mut self.held) {
                (Some(changes), Some((seq, mirror))) if published.from_seq == *seq => {
                    mirror.apply_all(changes.iter().cloned());
                    *seq = published.seq;
                    self.applied += 1;
                }
                (Some(_) | None, _) => self.load(store),
            }
        }
    }

    fn turns(&self) -> Vec<Turn> {
        let mut turns = self.held.as_ref().map_or(Vec::new(), |(_, mirror)| mirror.rows().turns);
        turns.sort_by_key(|turn| turn.number);
        turns
    }
}

/// The operations while a session is recorded and followed.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there are few, and they are short-lived")]
enum Beat {
    Tell(Line),
    Commit,
    Subscribe,
    Leave,
    /// Pauses or resumes all subscribers.
    Rest,
}

fn beats() -> impl Strategy<Value = Vec<Beat>> {
    let beat = prop_oneof![
        4 => Just(None),
        3 => Just(Some(Beat::Commit)),
        2 => Just(Some(Beat::Subscribe)),
        1 => Just(Some(Beat::Leave)),
        1 => Just(Some(Beat::Rest)),
    ];
    (any_script(25), prop::collection::vec(beat, 40)).prop_map(|(script, between)| {
        let tell = script.into_iter().map(|line| Some(Beat::Tell(line)));
        tell.zip(between).flat_map(|(tell, between)| [tell, between]).flatten().collect()
    })
}

pub fn whoever_follows_holds_what_is_stored<H: Home>() {
    // R-000-13 R-000-14 R-X-14
    hold(48, beats(), |beats| follow::<H>(beats));
}

fn follow<H: Home>(beats: &[Beat]) -> Outcome {
    let desk = Desk::<H>::new();
    let id = SessionId::of(AGENT, "s");
    let mut packer = desk.packer(Pace::Live);
    let mut fold = desk.open(AGENT, "s");
    let mut followers: Vec<Follower> = Vec::new();
    let mut rests = false;
    for beat in beats.iter().chain([&Beat::Rest, &Beat::Commit]) {
        match beat {
            Beat::Tell(line) => {
                desk.recorder.take(&mut fold, line.clone().event(0)).unwrap();
                continue;
            }
            Beat::Subscribe => followers.push(Follower::new(&desk.recorder, id)),
            Beat::Leave => drop(followers.pop()),
            Beat::Rest => rests = !rests,
            Beat::Commit => desk.commit(&mut packer, &mut fold),
        }
        if rests {
            continue;
        }
        let found = wait(desk.store().find(id.to_string())).unwrap().pop();
        for follower in &mut followers {
            follower.follow(desk.store());
            let seq = follower.held.as_ref().map(|(seq, _)| *seq);
            same("seq", &seq, &found.as_ref().map(|stored| stored.seq))?;
            if let Some(stored) = &found {
                let turns = wait(desk.store().whole_turns(stored.row, Window::All)).unwrap();
                same("followed", &turns, &follower.turns())?;
            }
        }
    }
    Ok(())
}

fn tell<H: Home>(desk: &Desk<H>, packer: &mut Packer, fold: &mut SessionFold, line: Line) {
    desk.take(fold, [line]);
    desk.commit(packer, fold);
}

pub fn changes_are_told_to_those_who_listened_as_they_came<H: Home>() {
    // R-000-13
    let desk = Desk::<H>::new();
    let id = SessionId::of(AGENT, "s");
    let mut packer = desk.packer(Pace::Live);
    let mut fold = desk.open(AGENT, "s");
    tell(&desk, &mut packer, &mut fold, ask("p", "hello"));
    // An event is applied before anyone subscribes and committed after.
    desk.take(&mut fold, [grew(Text, "un")]);
    let mut follower = Follower::new(&desk.recorder, id);
    desk.take(&mut fold, [grew(Text, "told")]);
    desk.commit(&mut packer, &mut fold);
    let first = follower.published.try_recv().unwrap();
    assert_eq!((first.from_seq, first.seq, first.changes.is_none()), (1, 3, true));
    assert_eq!((first.agent.as_str(), first.agent_session_id.as_str()), (AGENT, "s"));
    follower.load(desk.store());
    // From then on the subscriber never reloads.
    for nth in 0..20 {
        tell(&desk, &mut packer, &mut fold, grew(Text, &format!(" {nth}")));
        follower.follow(desk.store());
    }
    assert_eq!((follower.loads, follower.applied), (2, 20));
    // An event that changes nothing still increments the seq.
    desk.take(&mut fold, [grew(Text, "!")]);
    desk.recorder.take(&mut fold, grew(Text, "!").event(0)).unwrap();
    desk.commit(&mut packer, &mut fold);
    follower.follow(desk.store());
    let row = desk.session("s").row;
    let stored = wait(desk.store().whole_turns(row, Window::All)).unwrap();
    assert_eq!(follower.turns(), stored);
    assert!(follower.turns()[0].content().ends_with("18 19!"));
    // A commit without changes publishes nothing.
    desk.commit(&mut packer, &mut fold);
    assert!(follower.published.try_recv().is_err());
}

pub fn who_falls_behind_loads_again<H: Home>() {
    // R-000-13 R-X-14
    let desk = Desk::<H>::new();
    let id = SessionId::of(AGENT, "s");
    let mut packer = desk.packer(Pace::Live);
    let mut fold = desk.open(AGENT, "s");
    tell(&desk, &mut packer, &mut fold, ask("p", "hello"));
    let mut slow = Follower::new(&desk.recorder, id);
    let mut quick = Follower::new(&desk.recorder, id);
    for nth in 0..1100 {
        tell(&desk, &mut packer, &mut fold, grew(Text, &format!("{nth} ")));
        if nth % 50 == 0 {
            quick.follow(desk.store());
        }
    }
    slow.follow(desk.store());
    assert!(slow.loads > 1, "it was notified that it lagged");
    let row = desk.session("s").row;
    let stored = wait(desk.store().whole_turns(row, Window::All)).unwrap();
    assert_eq!(slow.turns(), stored);
    quick.follow(desk.store());
    assert_eq!(quick.turns(), stored);
    assert_eq!(quick.loads, 2, "reloaded only for events from before it subscribed");
}

pub fn a_session_is_followed_through_restarts_of_its_recorder<H: Home>() {
    // R-000-13 C-21: subscribers do not notice that the recorder resumed the session.
    let desk = Desk::<H>::new();
    let id = SessionId::of(AGENT, "s");
    let mut follower = Follower::new(&desk.recorder, id);
    let mut packer = desk.packer(Pace::Live);
    for nth in 0..5 {
        let mut fold = desk.open(AGENT, "s");
        for line in [
            ask(&format!("p{nth}"), "more"),
            grew_in(Text, block("m", nth), "and "),
            grew_in(Text, block("m", nth), "more"),
            over(Completed),
        ] {
            tell(&desk, &mut packer, &mut fold, line);
        }
        // Other sessions do not interfere.
        desk.record("other", [ask(&format!("q{nth}"), "x")]);
        follower.follow(desk.store());
        let row = desk.session("s").row;
        let stored = wait(desk.store().whole_turns(row, Window::All)).unwrap();
        assert_eq!(follower.turns(), stored);
    }
    assert_eq!(follower.loads, 2, "before it was there, and when it came");
}
