use super::*;

/// Letters in the order in which each feed placed them; digits are groups.
fn arranged(log: &str, stream: &str, hooks: &str, groups: &[(char, u8)]) -> String {
    let mut letters: Vec<char> = log.chars().chain(stream.chars()).chain(hooks.chars()).collect();
    letters.sort_unstable();
    letters.dedup();
    let items: Vec<Item<u8>> = letters
        .iter()
        .map(|letter| {
            let mut at = Positions::default();
            for (feed, sequence) in [(Feed::Log, log), (Feed::Stream, stream), (Feed::Hooks, hooks)]
            {
                if let Some(position) = sequence.chars().position(|other| other == *letter) {
                    at.set(feed, position as u32);
                }
            }
            let group = groups.iter().find(|(of, _)| of == letter).map(|(_, group)| *group);
            Item::new(at, group)
        })
        .collect();
    let placed = arrange(&items);
    assert!(placed.is_sorted_by_key(|(_, place)| *place), "{placed:?}");
    placed.into_iter().map(|(item, _)| letters[item]).collect()
}

#[test]
fn the_spine_places_and_the_others_are_set_between() {
    assert_eq!(arranged("abc", "abc", "b", &[]), "abc");
    // Dropped by the log: after its predecessor in the stream.
    assert_eq!(arranged("abc", "axbc", "", &[]), "axbc");
    assert_eq!(arranged("bc", "xbc", "", &[]), "xbc");
    // The stream runs ahead of the log.
    assert_eq!(arranged("ab", "abxy", "", &[]), "abxy");
    // Hooks run ahead of both.
    assert_eq!(arranged("ab", "abc", "bd", &[]), "abcd");
    // Nothing but hooks.
    assert_eq!(arranged("", "", "ab", &[]), "ab");
}

#[test]
fn what_was_cut_off_stays_with_its_step() {
    // The stream saw x in step 1 and nothing after; the log went on with step 2.
    assert_eq!(arranged("abc", "ax", "", &[('a', 1), ('x', 1), ('b', 2), ('c', 2)]), "axbc");
}

#[test]
fn what_the_spine_alone_has_of_a_step_comes_before_what_it_has_not() {
    // The log has the script s of step 1, the stream the calls x and y inside it.
    let steps = [('a', 1), ('s', 1), ('x', 1), ('y', 1), ('b', 2)];
    assert_eq!(arranged("asb", "axyb", "", &steps), "asxyb");
    // But never after an item that is later in both; an item without a step keeps its position.
    assert_eq!(arranged("abs", "axyb", "", &steps), "axybs");
    assert_eq!(arranged("asb", "axnyb", "", &steps), "asxnyb");
}

#[test]
fn the_spine_is_never_renumbered() {
    let items = |second: bool| {
        let mut all = vec![Item::<u8>::new(Positions([None, None, Some(0)]), None)];
        all.push(Item::new(Positions([None, None, Some(1)]), None));
        if second {
            all[0].at.set(Feed::Stream, 0);
            all[1].at.set(Feed::Stream, 2);
            all.push(Item::new(Positions([None, Some(1), None]), None));
        }
        arrange(&all)
    };
    let (alone, both) = (items(false), items(true));
    assert_eq!(alone[0], both[0]);
    assert_eq!(alone[1], both[2]);
    assert_eq!(both[1].0, 2);
}
