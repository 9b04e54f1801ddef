//! Publishing: a subscriber that loads a session and applies the published changes has the stored
//! state, whenever it subscribed and however far it lagged.

use proptest::prelude::*;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;
use unspool_ingest::recorder::Recorder;
use unspool_ingest::recorder::batch::{IngestMode, Packer};
use unspool_ingest::recorder::session_writer::SessionWriter;
use unspool_model::change::ChangeSet;
use unspool_model::change::Delta;
use unspool_model::event::EndReason::{self, Completed};
use unspool_model::event::ProseKind::Text;
use unspool_model::id::SessionId;
use unspool_model::session::Turn;
use unspool_model::transcript::TranscriptBuilder;
use unspool_store::blocking::block_on;
use unspool_store::store::{Store, TurnWindow, View, Viewer};

use crate::harness::{AGENT, Harness, ask};
use crate::model::{Outcome, same};
use crate::recorder::check_property;
use crate::script::*;
use crate::script_strategies::any_script;
use crate::test_archive::TestArchive;

/// A subscriber to one session.
struct Follower {
    published: Receiver<ChangeSet>,
    id: SessionId,
    /// None until the session is stored.
    held: Option<(u64, TranscriptBuilder)>,
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
        let found = block_on(store.view(Viewer::Sole).session(self.id)).unwrap();
        self.held = found.map(|stored| {
            let mut builder = TranscriptBuilder::resume(stored.summary.session);
            let turns = block_on(store.view(Viewer::Sole).whole_turns(stored.row, TurnWindow::All))
                .unwrap();
            turns.into_iter().for_each(|turn| builder.adopt_turn(turn));
            (stored.seq, builder)
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
            match (&published.delta, &mut self.held) {
                (Some(delta), Some((seq, builder))) if published.from_seq == *seq => {
                    // R-000-13: who follows would find the same to be touched.
                    let mut expected = Delta::default();
                    for change in &delta.changes {
                        expected.push(change.clone(), builder);
                        builder.apply(change.clone());
                    }
                    assert_eq!(delta.touched, expected.touched);
                    *seq = published.seq;
                    self.applied += 1;
                }
                (Some(_) | None, _) => self.load(store),
            }
        }
    }

    fn turns(&self) -> Vec<Turn> {
        let mut turns = self.held.as_ref().map_or(Vec::new(), |(_, builder)| builder.rows().turns);
        turns.sort_by_key(|turn| turn.number);
        turns
    }
}

/// The operations while a session is recorded and followed.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there are few, and they are short-lived")]
enum FollowOp {
    Apply(Line),
    Commit,
    Subscribe,
    Leave,
    /// Pauses or resumes all subscribers.
    TogglePause,
}

fn ops() -> impl Strategy<Value = Vec<FollowOp>> {
    let op = prop_oneof![
        4 => Just(None),
        3 => Just(Some(FollowOp::Commit)),
        2 => Just(Some(FollowOp::Subscribe)),
        1 => Just(Some(FollowOp::Leave)),
        1 => Just(Some(FollowOp::TogglePause)),
    ];
    (any_script(25), prop::collection::vec(op, 40)).prop_map(|(script, between)| {
        let apply = script.into_iter().map(|line| Some(FollowOp::Apply(line)));
        apply.zip(between).flat_map(|(apply, between)| [apply, between]).flatten().collect()
    })
}

pub fn whoever_follows_holds_what_is_stored<H: TestArchive>() {
    // R-000-13 R-000-14 R-X-14
    check_property(48, ops(), |ops| follow::<H>(ops));
}

fn follow<H: TestArchive>(ops: &[FollowOp]) -> Outcome {
    let harness = Harness::<H>::new();
    let id = SessionId::of(AGENT, "s");
    let mut packer = harness.packer(IngestMode::Live);
    let mut writer = harness.open(AGENT, "s");
    let mut followers: Vec<Follower> = Vec::new();
    let mut is_paused = false;
    for op in ops.iter().chain([&FollowOp::TogglePause, &FollowOp::Commit]) {
        match op {
            FollowOp::Apply(line) => {
                harness.recorder.take(&mut writer, line.clone().event(0)).unwrap();
                continue;
            }
            FollowOp::Subscribe => followers.push(Follower::new(&harness.recorder, id)),
            FollowOp::Leave => drop(followers.pop()),
            FollowOp::TogglePause => is_paused = !is_paused,
            FollowOp::Commit => harness.commit(&mut packer, &mut writer),
        }
        if is_paused {
            continue;
        }
        let found = block_on(harness.view().session(id)).unwrap();
        for follower in &mut followers {
            follower.follow(harness.store());
            let seq = follower.held.as_ref().map(|(seq, _)| *seq);
            same("seq", &seq, &found.as_ref().map(|stored| stored.seq))?;
            if let Some(stored) = &found {
                let turns =
                    block_on(harness.view().whole_turns(stored.row, TurnWindow::All)).unwrap();
                same("followed", &turns, &follower.turns())?;
            }
        }
    }
    Ok(())
}

fn apply<H: TestArchive>(
    harness: &Harness<H>,
    packer: &mut Packer,
    writer: &mut SessionWriter,
    line: Line,
) {
    harness.take(writer, [line]);
    harness.commit(packer, writer);
}

pub fn subscribers_receive_changes_from_their_subscription_on<H: TestArchive>() {
    // R-000-13
    let harness = Harness::<H>::new();
    let id = SessionId::of(AGENT, "s");
    let mut packer = harness.packer(IngestMode::Live);
    let mut writer = harness.open(AGENT, "s");
    apply(&harness, &mut packer, &mut writer, ask("p", "hello"));
    // An event is applied before anyone subscribes and committed after.
    harness.take(&mut writer, [grew(Text, "un")]);
    let mut follower = Follower::new(&harness.recorder, id);
    harness.take(&mut writer, [grew(Text, "told")]);
    harness.commit(&mut packer, &mut writer);
    let first = follower.published.try_recv().unwrap();
    assert_eq!((first.from_seq, first.seq, first.delta.is_none()), (1, 3, true));
    assert_eq!((first.agent.as_str(), first.agent_session_id.as_str()), (AGENT, "s"));
    follower.load(harness.store());
    // From then on the subscriber never reloads.
    for nth in 0..20 {
        apply(&harness, &mut packer, &mut writer, grew(Text, &format!(" {nth}")));
        follower.follow(harness.store());
    }
    assert_eq!((follower.loads, follower.applied), (2, 20));
    // An event that changes nothing still increments the seq.
    harness.take(&mut writer, [grew(Text, "!")]);
    harness.recorder.take(&mut writer, grew(Text, "!").event(0)).unwrap();
    harness.commit(&mut packer, &mut writer);
    follower.follow(harness.store());
    let row = harness.session("s").row;
    let stored = block_on(harness.view().whole_turns(row, TurnWindow::All)).unwrap();
    assert_eq!(follower.turns(), stored);
    assert!(follower.turns()[0].content().ends_with("18 19!"));
    // A commit without changes publishes nothing.
    harness.commit(&mut packer, &mut writer);
    assert!(follower.published.try_recv().is_err());
}

pub fn who_falls_behind_loads_again<H: TestArchive>() {
    // R-000-13 R-X-14
    let harness = Harness::<H>::new();
    let id = SessionId::of(AGENT, "s");
    let mut packer = harness.packer(IngestMode::Live);
    let mut writer = harness.open(AGENT, "s");
    apply(&harness, &mut packer, &mut writer, ask("p", "hello"));
    let mut slow = Follower::new(&harness.recorder, id);
    let mut quick = Follower::new(&harness.recorder, id);
    for nth in 0..1100 {
        apply(&harness, &mut packer, &mut writer, grew(Text, &format!("{nth} ")));
        if nth % 50 == 0 {
            quick.follow(harness.store());
        }
    }
    slow.follow(harness.store());
    assert!(slow.loads > 1, "it was notified that it lagged");
    let row = harness.session("s").row;
    let stored = block_on(harness.view().whole_turns(row, TurnWindow::All)).unwrap();
    assert_eq!(slow.turns(), stored);
    quick.follow(harness.store());
    assert_eq!(quick.turns(), stored);
    assert_eq!(quick.loads, 2, "reloaded only for events from before it subscribed");
}

pub fn a_session_is_followed_through_restarts_of_its_recorder<H: TestArchive>() {
    // R-000-13 C-21: subscribers do not notice that the recorder resumed the session.
    let harness = Harness::<H>::new();
    let id = SessionId::of(AGENT, "s");
    let mut follower = Follower::new(&harness.recorder, id);
    let mut packer = harness.packer(IngestMode::Live);
    for nth in 0..5 {
        let mut writer = harness.open(AGENT, "s");
        for line in [
            ask(&format!("p{nth}"), "more"),
            grew_in(Text, block("m", nth), "and "),
            grew_in(Text, block("m", nth), "more"),
            over(Completed),
        ] {
            apply(&harness, &mut packer, &mut writer, line);
        }
        // Other sessions do not interfere.
        harness.record("other", [ask(&format!("q{nth}"), "x")]);
        follower.follow(harness.store());
        let row = harness.session("s").row;
        let stored = block_on(harness.view().whole_turns(row, TurnWindow::All)).unwrap();
        assert_eq!(follower.turns(), stored);
    }
    assert_eq!(follower.loads, 2, "before it was there, and when it came");
}

pub fn a_failed_turn_is_followed_to_the_error_that_is_stored<H: TestArchive>() {
    // R-004-25 R-004-16 R-X-01: before any content, and in the middle of a text.
    for before in [vec![], vec![grew(Text, "par")]] {
        let harness = Harness::<H>::new();
        let mut packer = harness.packer(IngestMode::Live);
        let mut writer = harness.open(AGENT, "s");
        let mut follower = Follower::new(&harness.recorder, SessionId::of(AGENT, "s"));
        let end = over(EndReason::Failed(Some("quota exceeded".to_owned())));
        for line in [vec![ask("p", "hello")], before.clone(), vec![end]].concat() {
            apply(&harness, &mut packer, &mut writer, line);
            follower.follow(harness.store());
        }
        let row = harness.session("s").row;
        let stored = block_on(harness.view().whole_turns(row, TurnWindow::All)).unwrap();
        assert_eq!(follower.turns(), stored);
        let shown: Vec<String> = stored[0].parts.iter().map(show).collect();
        let mut expected: Vec<&str> = before.iter().map(|_| r#"text:"par""#).collect();
        expected.push(r#"error:"quota exceeded""#);
        assert_eq!(shown, expected);
        assert_eq!(stored[0].state.name(), "failed");
    }
}
