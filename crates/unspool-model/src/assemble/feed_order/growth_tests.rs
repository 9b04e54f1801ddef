//! The number of items that are placed while a turn is read event by event must grow with the turn
//! only: each event of a feed that follows another concerns few items, at whatever distance.

use std::sync::Arc;

use super::Counted;
use crate::assemble::Assembler;
use crate::event::{CallRef, Event, EventKey, EventKind, ToolCall};
use crate::id::SessionId;
use crate::provenance::{Evidence, Feed, Name};
use crate::session::Trigger;

/// One turn as a feed reports it: a step with two calls each. `lacks_some`: every tenth call is not
/// reported.
fn calls(feed: Feed, count: u32, lacks_some: bool) -> Vec<Event> {
    let mut kinds = vec![EventKind::TurnStarted {
        names: vec![Name::Prompt("prompt".into())],
        trigger: Trigger::User,
        user: Vec::new(),
    }];
    for nth in 0..count {
        // Hooks know no steps.
        if feed != Feed::Hooks && nth % 2 == 0 {
            let step = Name::Message(format!("message {nth}").into());
            kinds.push(EventKind::StepStarted { step, model: None });
        }
        if lacks_some && nth % 10 == 5 {
            continue;
        }
        let id: Arc<str> = format!("call {nth}").into();
        kinds.push(EventKind::ToolCalled(Box::new(ToolCall {
            call: CallRef::Id(id),
            parent_call_id: None,
            name: "Read".to_owned(),
            content_hash: u64::from(nth),
            input: None,
            provider_executed: false,
            title: None,
            running: true,
        })));
    }
    let event = |(offset, kind): (u64, EventKind)| {
        let source = feed.index() as u16;
        let evidence = Evidence { feed, source, offset, length: 1, digest: offset };
        let key = EventKey { record: offset, nth: 0 };
        Event { key, feed, at: None, evidence, turn: None, generation: None, kind }
    };
    (0..).zip(kinds).map(event).collect()
}

/// How many parts and steps are placed while these feeds are read one after the other. One of them
/// may lack some parts.
fn placed(feeds: &[(Feed, u32)], lacking: Option<Feed>) -> usize {
    let mut assembler = Assembler::new(SessionId::of("agent", "session"));
    for (feed, count) in feeds {
        for event in calls(*feed, *count, lacking == Some(*feed)) {
            assembler.apply(event);
        }
    }
    let [turn] = &assembler.turns[..] else { panic!("{} turns", assembler.turns.len()) };
    let parts = turn.order.as_ref().map_or(0, |order| order.counted.placed);
    let steps = turn.step_order.as_ref().map_or(0, |order| order.counted.placed);
    let counted = turn.order.as_ref().map_or(Counted::default(), |order| order.counted);
    assert!(counted.changes > 0, "{feeds:?}: the order was not used");
    parts + steps
}

/// Reads four times as many calls and compares the work.
fn assert_linear(lacking: Option<Feed>, feeds: impl Fn(u32) -> Vec<(Feed, u32)>) {
    let (small, large) = (feeds(1000), feeds(4000));
    let (few, many) = (placed(&small, lacking), placed(&large, lacking));
    assert!(few <= 20 * 1000, "{small:?}: {few}");
    assert!(many <= 4 * few + 100, "{large:?}: {many}, and {few} for a quarter");
}

#[test]
fn a_log_after_a_stream_is_ordered_in_linear_time() {
    assert_linear(None, |count| vec![(Feed::Stream, count), (Feed::Log, count)]);
}

#[test]
fn a_stream_far_ahead_of_its_log_is_ordered_in_linear_time() {
    assert_linear(None, |count| vec![(Feed::Log, 1), (Feed::Stream, count)]);
}

#[test]
fn a_feed_after_a_stronger_one_is_ordered_in_linear_time() {
    assert_linear(None, |count| vec![(Feed::Log, count), (Feed::Stream, count)]);
    assert_linear(None, |count| vec![(Feed::Log, count), (Feed::Hooks, count)]);
}

#[test]
fn three_feeds_one_after_the_other_are_ordered_in_linear_time() {
    use Feed::{Hooks, Log, Stream};
    for feeds in
        [[Hooks, Stream, Log], [Stream, Hooks, Log], [Hooks, Log, Stream], [Log, Stream, Hooks]]
    {
        assert_linear(None, |count| feeds.iter().map(|feed| (*feed, count)).collect());
    }
}

#[test]
fn parts_that_only_one_feed_has_are_ordered_in_linear_time() {
    use Feed::{Hooks, Log, Stream};
    for feeds in [[Stream, Log], [Log, Stream], [Log, Hooks], [Hooks, Log]] {
        assert_linear(Some(Log), |count| feeds.iter().map(|feed| (*feed, count)).collect());
    }
}
