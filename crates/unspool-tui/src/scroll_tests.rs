use super::*;

struct Heights(Vec<usize>);

impl EntryHeights for Heights {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn height(&self, entry: usize) -> usize {
        self.0.get(entry).copied().unwrap_or(0)
    }
}

/// The steps of a case.
enum Step {
    /// New heights of the entries, without a move.
    Become(&'static [usize]),
    /// A new height of the screen.
    Resize(usize),
    By(isize),
    Start,
    End,
    Show(usize),
}
use Step::{Become, By, End, Resize, Show, Start};

/// The line at the top, counted from the first, and whether the scroll follows the end.
fn play(steps: &[Step]) -> (usize, bool) {
    let (mut entries, mut view, mut scroll) = (Heights(vec![]), 10, Scroll::at_end());
    for step in steps {
        match step {
            Become(heights) => entries = Heights(heights.to_vec()),
            Resize(lines) => view = *lines,
            By(lines) => scroll.move_by(&entries, view, *lines),
            Start => scroll.go_to_start(&entries, view),
            End => scroll.go_to_end(&entries, view),
            Show(entry) => scroll.show(&entries, view, *entry),
        }
        scroll.settle(&entries, view);
    }
    let above: usize = entries.0.iter().take(scroll.top.entry).sum();
    (above + scroll.top.line, scroll.following)
}

// R-003-42, R-X-12: every case.
#[test]
fn sticky_scrolling() {
    let long: &[usize] = &[10, 10, 10];
    let longer: &[usize] = &[10, 10, 10, 5];
    #[rustfmt::skip]
    let cases: &[(&str, &[Step], (usize, bool))] = &[
        ("nothing is there", &[], (0, true)),
        ("what fits stays at its start and is followed", &[Become(&[3])], (0, true)),
        ("first overflow", &[Become(&[3]), Become(&[3, 9])], (2, true)),
        ("growth of the last piece", &[Become(&[3, 9]), Become(&[3, 19])], (12, true)),
        ("growth while pinned", &[Become(long), Become(longer)], (25, true)),
        ("up pauses", &[Become(long), By(-1)], (19, false)),
        ("growth while paused moves nothing", &[Become(long), By(-5), Become(longer)], (15, false)),
        ("growth above what is looked at", &[Become(long), By(-5), Become(&[14, 10, 10])], (19, false)),
        ("back at the end resumes", &[Become(long), By(-5), By(5)], (20, true)),
        ("and is pinned again", &[Become(long), By(-5), By(5), Become(longer)], (25, true)),
        ("beyond the end is the end", &[Become(long), By(-5), By(500)], (20, true)),
        ("not quite at the end is not at the end", &[Become(long), By(-5), By(4), Become(longer)], (19, false)),
        ("up where all is in sight is no movement", &[Become(&[3]), By(-1), Become(long)], (20, true)),
        ("shrinking while pinned", &[Become(longer), Become(&[10, 5])], (5, true)),
        ("shrinking to what fits", &[Become(longer), Become(&[5])], (0, true)),
        ("and growing again", &[Become(longer), Become(&[5]), Become(long)], (20, true)),
        ("shrinking while paused clamps, and does not resume", &[Become(longer), By(-5), Become(&[10, 5]), Become(long)], (5, false)),
        ("a smaller screen while pinned", &[Become(long), Resize(5)], (25, true)),
        ("a larger screen while pinned", &[Become(long), Resize(15)], (15, true)),
        ("a larger screen while paused", &[Become(long), By(-2), Resize(15)], (15, false)),
        ("a screen of one line", &[Become(long), Resize(1)], (29, true)),
        ("a card opens after the return to the end", &[Become(long), By(-9), End, Become(&[10, 10, 30])], (40, true)),
        ("a card above opens while paused", &[Become(long), By(-15), Become(&[10, 30, 10])], (5, false)),
        ("another width makes everything higher while pinned", &[Become(long), Become(&[20, 20, 20])], (50, true)),
        ("to the start", &[Become(long), Start], (0, false)),
        ("to the start where all is in sight", &[Become(&[3]), Start, Become(long)], (20, true)),
        ("to the end", &[Become(long), Start, End], (20, true)),
        ("to a piece above", &[Become(long), Show(1)], (10, false)),
        ("to a piece in sight", &[Become(&[4, 4, 4, 4]), Start, Show(1)], (0, false)),
        ("to a piece below", &[Become(&[4, 4, 4, 4]), Start, Show(2)], (2, false)),
        ("to the last piece", &[Become(&[4, 4, 4, 4]), Start, Show(3)], (6, true)),
        ("to a piece higher than the screen", &[Become(&[4, 30, 4]), Start, Show(1)], (4, false)),
        ("pieces without lines are nowhere", &[Become(&[0, 10, 0, 10, 0]), By(-3)], (7, false)),
    ];
    for (name, steps, expected) in cases {
        assert_eq!(play(steps), *expected, "{name}");
    }
}

#[test]
fn moving_down_and_up_returns_to_the_start() {
    let entries = Heights(vec![3, 0, 7, 1, 0, 0, 12, 4]);
    let total: usize = entries.0.iter().sum();
    for down in 0..total {
        let position = forward(&entries, ScrollPosition::default(), down);
        let above: usize = entries.0.iter().take(position.entry).sum();
        assert_eq!(above + position.line, down);
        assert_eq!(back(&entries, position, down), ScrollPosition::default(), "{down}");
    }
}
