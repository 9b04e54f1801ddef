use std::cell::Cell;
use std::ops::Range;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::*;
use crate::assemble::order::{AheadShift, Beside, arrange};
use crate::provenance::Positions;

/// What happens to the items of a turn.
#[derive(Clone, Debug)]
enum Step {
    /// A feed reaches an item, by its distance from the newest; a new one if there is none.
    Reach {
        feed: usize,
        back: usize,
    },
    /// A feed reserves a position.
    Skip {
        feed: usize,
    },
    Regroup {
        back: usize,
        group: Option<u8>,
    },
    Remove {
        back: usize,
    },
    /// An item takes over the positions of another one.
    Merge {
        back: usize,
        into: usize,
    },
    /// The order is not needed yet.
    Defer,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let back = || prop_oneof![4 => 0..3usize, 1 => 0..40usize];
    let step = prop_oneof![
        12 => (0..3usize, back()).prop_map(|(feed, back)| Step::Reach { feed, back }),
        8 => (0..3usize).prop_map(|feed| Step::Reach { feed, back: usize::MAX }),
        1 => (0..3usize).prop_map(|feed| Step::Skip { feed }),
        2 => (back(), prop::option::of(0..4u8)).prop_map(|(back, group)| Step::Regroup { back, group }),
        1 => back().prop_map(|back| Step::Remove { back }),
        1 => (back(), back()).prop_map(|(back, into)| Step::Merge { back, into }),
        2 => Just(Step::Defer),
    ];
    prop::collection::vec(step, 1..60)
}

#[derive(Default)]
struct Turn {
    items: Vec<Option<Item<u8>>>,
    next: [u32; 3],
    order: FeedOrder<u8>,
}

impl Turn {
    fn newest(&self, back: usize) -> Option<usize> {
        self.items.len().checked_sub(back.checked_add(1)?)
    }

    fn take(&mut self, step: Step, group: u8) {
        match step {
            Step::Reach { feed, back } => {
                let at = self.newest(back).filter(|at| {
                    self.items[*at].is_some_and(|item: Item<u8>| item.at.0[feed].is_none())
                });
                let at = at.unwrap_or_else(|| {
                    let group = (group < 200).then_some(group / 4);
                    self.items.push(Some(Item::new(Positions::default(), group)));
                    self.items.len() - 1
                });
                if let Some(item) = &mut self.items[at] {
                    item.at.0[feed] = Some(self.next[feed]);
                }
                self.next[feed] += 1;
                self.order.set(at, self.items[at]);
            }
            Step::Skip { feed } => self.next[feed] += 1,
            Step::Regroup { back, group } => {
                let Some(at) = self.newest(back) else { return };
                if let Some(item) = &mut self.items[at] {
                    item.group = group;
                }
                self.order.set(at, self.items[at]);
            }
            Step::Remove { back } => {
                let Some(at) = self.newest(back) else { return };
                self.items[at] = None;
                self.order.set(at, None);
            }
            Step::Merge { back, into } => {
                let (Some(from), Some(into)) = (self.newest(back), self.newest(into)) else {
                    return;
                };
                if from == into || self.items[into].is_none() {
                    return;
                }
                let Some(gone) = self.items[from].take() else { return };
                if let Some(kept) = &mut self.items[into] {
                    for (held, other) in kept.at.0.iter_mut().zip(gone.at.0) {
                        *held = (*held).max(other);
                    }
                }
                // Both have the same position in between.
                self.order.set(into, self.items[into]);
                self.order.set(from, None);
            }
            Step::Defer => {}
        }
    }

    /// All items and their places, as they are kept.
    fn ordered(&self) -> Vec<(usize, Place)> {
        self.order.by_place.iter().map(|(place, item)| (*item as usize, *place)).collect()
    }

    /// All items and their places, ordered from scratch.
    fn expected(&self) -> Vec<(usize, Place)> {
        let held: Vec<usize> =
            (0..self.items.len()).filter(|at| self.items[*at].is_some()).collect();
        let items: Vec<Item<u8>> = held.iter().filter_map(|at| self.items[*at]).collect();
        arrange(&items).into_iter().map(|(item, place)| (held[item], place)).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_equals_one_from_scratch(steps in steps(), ahead in 0..2usize) {
        let mut turn = Turn::default();
        for (nth, step) in steps.into_iter().enumerate() {
            let deferred = matches!(step, Step::Defer);
            // Groups follow each other, as the steps of a turn do; or there are none.
            turn.take(step, if ahead == 0 { nth as u8 } else { 255 });
            if deferred {
                continue;
            }
            turn.order.arrange();
            prop_assert_eq!(turn.ordered(), turn.expected());
        }
    }
}

/// What really happened: an item, and who reports it.
#[derive(Clone, Debug)]
struct Reported {
    feeds: [bool; 3],
    /// The item starts a new group.
    starts_group: bool,
    /// The stream has the words of this item of the log in its last item.
    beside: Option<bool>,
    /// The log has it before the previous one.
    swapped: bool,
}

/// A turn that several feeds report, and who reports how many items at a time.
#[derive(Clone, Debug)]
struct Account {
    items: Vec<Reported>,
    /// The feeds that know groups.
    grouped: [bool; 3],
    bursts: Vec<(usize, usize)>,
    /// One of so many changes is not ordered at once.
    defer: usize,
}

fn accounts(sizes: Range<usize>) -> impl Strategy<Value = Account> {
    // Which feeds have most of the items.
    let usual = prop_oneof![
        6 => Just([false, true, true]),
        3 => Just([true, true, true]),
        2 => Just([true, false, true]),
        1 => Just([true, true, false]),
    ];
    let odd = prop_oneof![Just(1usize), Just(4), Just(1000)];
    (usual, odd).prop_flat_map(move |(usual, odd)| {
        let odd_feeds = prop::array::uniform3(any::<bool>());
        let reported = (0..1000usize, odd_feeds, 0..5u8, 0..40u8, any::<bool>(), 0..40u8).prop_map(
            move |(nth, other, group, beside, before, swapped)| {
                let feeds = if nth % (odd + 2) == 0 && odd < 1000 { other } else { usual };
                let beside = (beside == 0).then_some(before);
                Reported { feeds, starts_group: group == 0, beside, swapped: swapped == 0 }
            },
        );
        let length = prop_oneof![3 => Just(1usize..4), 1 => Just(5..60)];
        let bursts =
            prop::collection::vec((0..3usize, length.prop_flat_map(|length| length)), 0..40);
        let items = prop::collection::vec(reported, sizes.clone());
        let grouped = (any::<bool>(), prop::bool::weighted(0.8))
            .prop_map(|(stream, log)| [false, stream, log]);
        (items, grouped, bursts, 1..8usize).prop_map(|(items, grouped, bursts, defer)| Account {
            items,
            grouped,
            bursts,
            defer,
        })
    })
}

/// The items of an account in the order in which a feed reports them.
fn report(account: &Account, feed: usize) -> Vec<usize> {
    let mut order: Vec<usize> =
        (0..account.items.len()).filter(|item| account.items[*item].feeds[feed]).collect();
    for nth in 1..order.len() {
        if feed == 2 && account.items[order[nth]].swapped {
            order.swap(nth - 1, nth);
        }
    }
    order
}

/// Gives the items of an account to an order, and calls `check` whenever it is up to date.
fn follow(
    account: &Account,
    mut check: impl FnMut(&Turn) -> Result<(), TestCaseError>,
) -> Result<Turn, TestCaseError> {
    let reports = [0, 1, 2].map(|feed| report(account, feed));
    let mut groups = Vec::new();
    for item in &account.items {
        let group = groups.last().copied().unwrap_or_default() + u8::from(item.starts_group);
        groups.push(group);
    }
    let mut turn = Turn { items: vec![None; account.items.len()], ..Turn::default() };
    let mut read = [0; 3];
    let mut changes = 0;
    let rest = [(0, usize::MAX), (1, usize::MAX), (2, usize::MAX)];
    for (feed, length) in account.bursts.iter().copied().chain(rest) {
        let end = read[feed] + length.min(reports[feed].len() - read[feed]);
        for at in reports[feed][read[feed]..end].iter().copied() {
            let position = turn.next[feed];
            turn.next[feed] += 1;
            let had_group = turn.items[at].and_then(|item| item.group);
            let group = Some(groups[at]).filter(|_| account.grouped[feed]);
            let is_new = turn.items[at].is_none();
            let item = turn.items[at].get_or_insert(Item::new(Positions::default(), None));
            // A text that stands beside a part of the stream is not reported there itself.
            if feed == 1 && item.beside.is_some() {
                continue;
            }
            item.at.0[feed] = Some(position);
            if is_new {
                item.group = group;
            }
            turn.order.set(at, turn.items[at]);
            changes += 1;
            if changes % account.defer != 0 || account.defer == 1 {
                turn.order.arrange();
                check(&turn)?;
            }
            // As the fold does: a step and the side of a run are known after the position.
            // A run may be compared with the log when the stream is already ahead of it.
            let back = 1 + at as u32 % 4;
            let previous = turn.next[1].checked_sub(back);
            let Some(item) = &mut turn.items[at] else { continue };
            item.group = had_group.filter(|_| feed < 2).or(group).or(item.group);
            if let (2, Some(before), Some(run), None) =
                (feed, account.items[at].beside, previous, item.at.0[1])
            {
                item.at.0[1] = Some(run);
                item.beside = Some(if before { Beside::Before } else { Beside::After });
            }
            let taken = turn.items[at].and_then(|item| item.rank(Feed::Stream));
            let is_taken = |(other, item): (usize, &Option<Item<u8>>)| {
                other != at
                    && taken.is_some()
                    && item.and_then(|item| item.rank(Feed::Stream)) == taken
            };
            if turn.items.iter().enumerate().any(is_taken)
                && let Some(item) = &mut turn.items[at]
            {
                (item.at.0[1], item.beside) = (None, None);
            }
            turn.order.set(at, turn.items[at]);
        }
        read[feed] = end;
    }
    turn.order.arrange();
    check(&turn)?;
    Ok(turn)
}

#[test]
fn the_order_of_feeds_that_follow_each_other_equals_one_from_scratch() {
    let config =
        ProptestConfig { cases: 20000, failure_persistence: None, ..ProptestConfig::default() };
    let (kinds, changes) = (Cell::new([0; 5]), Cell::new(0));
    let followed = TestRunner::new(config).run(&accounts(1..50), |account| {
        let turn = follow(&account, |turn| {
            prop_assert_eq!(turn.ordered(), turn.expected());
            Ok(())
        })?;
        let Counted { appended, changes: more, .. } = turn.order.counted;
        let sum = |nth: usize| kinds.get()[nth] + appended[nth];
        kinds.set([0, 1, 2, 3, 4].map(sum));
        changes.set(changes.get() + more);
        Ok(())
    });
    assert!(followed.is_ok(), "{}", followed.unwrap_err());
    // Otherwise this test would say nothing about them.
    let (kinds, changes) = (kinds.get(), changes.get());
    assert!(kinds.iter().sum::<usize>() * 2 > changes, "{kinds:?} of {changes}");
    assert!(kinds.iter().all(|kind| kind * 100 > changes), "{kinds:?} of {changes}");
}

#[test]
fn an_order_with_many_items_ahead_equals_one_from_scratch() {
    let config =
        ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() };
    let (shifted, changed) = (Cell::new(0), Cell::new(0));
    let followed = TestRunner::new(config).run(&accounts(60..160), |account| {
        let mut before = AheadShift::default();
        follow(&account, |turn| {
            let shift = turn.order.shift;
            shifted.set(shifted.get() + usize::from(shift != AheadShift::default()));
            changed.set(changed.get() + usize::from(shift != before));
            before = shift;
            prop_assert_eq!(turn.ordered(), turn.expected());
            Ok(())
        })?;
        Ok(())
    });
    assert!(followed.is_ok(), "{}", followed.unwrap_err());
    // Otherwise this test would say nothing about shifts.
    assert!(shifted.get() > 10_000 && changed.get() > 500, "{shifted:?}, {changed:?}");
}

#[test]
fn feeds_that_advance_together_are_not_ordered_again() {
    let mut turn = Turn::default();
    let mut ordered = 0;
    for nth in 0..1000 {
        // Hooks report a call, the log a text and then the call.
        for (feed, back) in [(0, usize::MAX), (2, usize::MAX), (2, 1)] {
            turn.take(Step::Reach { feed, back }, (nth / 10) as u8);
            ordered += turn.order.arrange().len();
        }
    }
    assert!(ordered < 10 * 1000, "{ordered}");
}
