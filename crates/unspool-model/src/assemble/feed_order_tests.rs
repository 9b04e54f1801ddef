use proptest::prelude::*;

use super::*;
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
                self.order.set(from, None);
                self.order.set(into, self.items[into]);
            }
            Step::Defer => {}
        }
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
            let order = turn.order.by_place.iter().map(|(place, item)| (*item as usize, *place));
            prop_assert_eq!(order.collect::<Vec<_>>(), turn.expected());
        }
    }
}

#[test]
fn feeds_that_advance_together_are_not_ordered_again() {
    let mut turn = Turn::default();
    let mut ordered = 0;
    for nth in 0..1000 {
        // Hooks report a call, the log a text and then the call.
        for (feed, back) in [(0, usize::MAX), (2, usize::MAX), (2, 1)] {
            turn.take(Step::Reach { feed, back }, (nth / 10) as u8);
            ordered += turn.order.arrange().items.len();
        }
    }
    assert!(ordered < 10 * 1000, "{ordered}");
}
