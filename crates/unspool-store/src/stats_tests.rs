use super::*;

#[test]
fn percentiles_are_durations_that_something_took() {
    let of = |mut milliseconds: Vec<u32>| {
        let total = milliseconds.iter().copied().map(u64::from).sum();
        let figures = DurationFigures::of(&mut milliseconds, total, 0);
        (figures.median_ms, figures.p95_ms, figures.measured, figures.total_ms)
    };
    assert_eq!(of(vec![]), (None, None, 0, 0));
    assert_eq!(of(vec![7]), (Some(7), Some(7), 1, 7));
    assert_eq!(of(vec![9, 1]), (Some(1), Some(9), 2, 10));
    assert_eq!(of(vec![3, 1, 2]), (Some(2), Some(3), 3, 6));
    assert_eq!(of((1..=100).rev().collect()), (Some(50), Some(95), 100, 5050));
    assert_eq!(of((1..=1000).collect()), (Some(500), Some(950), 1000, 500_500));
}

#[test]
fn a_share_of_nothing_is_no_number() {
    assert_eq!(share(0, 0), None);
    assert_eq!(share(1, 4), Some(0.25));
}
