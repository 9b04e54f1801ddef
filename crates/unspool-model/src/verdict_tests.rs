use super::*;

/// A generator of numbers (SplitMix64), so that each run simulates the same sessions.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Sessions in which something happens at this rate. `spread`: how far the rate of a session is
    /// from it, so that events come in clusters.
    fn arm(&mut self, rate: f64, spread: f64, sessions: usize, each: u64) -> Vec<SessionCount> {
        let mut session = || {
            let rate = rate + if self.next() < 0.5 { spread } else { -spread };
            let events = (0..each).filter(|_| self.next() < rate).count() as u64;
            SessionCount { events, opportunities: each }
        };
        (0..sessions).map(|_| session()).collect()
    }

    /// The shares of comparisons that say `fewer` and `more`.
    fn shares(&mut self, rates: (f64, f64), spread: f64, each: (usize, u64)) -> (f64, f64) {
        // Enough that chance moves a share by a fifth of a point.
        const RUNS: usize = 20_000;
        let (mut fewer, mut more) = (0, 0);
        for _ in 0..RUNS {
            let without = self.arm(rates.0, spread, each.0, each.1);
            let with = self.arm(rates.1, spread, each.0, each.1);
            match compare(&without, &with).verdict {
                Verdict::Fewer => fewer += 1,
                Verdict::More => more += 1,
                Verdict::Same | Verdict::TooLittle => {}
            }
        }
        [fewer, more].map(|count| f64::from(count) / RUNS as f64).into()
    }
}

/// Comparisons of equal groups say `fewer` in at most 5 %, also where sessions differ; without the design
/// effect it would be 11 % there.
#[test]
fn equal_groups_are_rarely_said_to_differ() {
    let mut random = Random(7);
    for rate in [0.1, 0.5] {
        for each in [(5, 4), (20, 3)] {
            let (fewer, more) = random.shares((rate, rate), 0.0, each);
            assert!(fewer <= 0.05 && more <= 0.05, "{fewer}, {more} at {rate} with {each:?}");
        }
    }
    for (rate, spread, each) in [
        (0.2, 0.13, (6, 10)),
        (0.3, 0.15, (6, 10)),
        (0.3, 0.15, (5, 20)),
        (0.3, 0.25, (5, 10)),
        (0.2, 0.1, (20, 5)),
    ] {
        let (fewer, more) = random.shares((rate, rate), spread, each);
        assert!(fewer <= 0.05 && more <= 0.05, "{fewer}, {more} in clusters at {rate}, {each:?}");
    }
}

/// 30 % that became 10 % are seen in 80 % of comparisons with 60 opportunities on each side.
#[test]
fn a_large_difference_is_mostly_seen() {
    let mut random = Random(11);
    for each in [(5, 12), (6, 10), (20, 3)] {
        let (fewer, more) = random.shares((0.3, 0.1), 0.0, each);
        assert!(fewer >= 0.8 && more == 0.0, "{fewer}, {more} with {each:?}");
    }
}

fn sessions(counts: &[(u64, u64)]) -> Vec<SessionCount> {
    let count = |&(events, opportunities): &(u64, u64)| SessionCount { events, opportunities };
    counts.iter().map(count).collect()
}

#[test]
fn no_verdict_without_enough_sessions_and_opportunities() {
    let all = |count: usize, each: u64| sessions(&vec![(each, each); count]);
    let none = |count: usize, each: u64| sessions(&vec![(0, each); count]);
    assert_eq!(compare(&all(5, 4), &none(5, 4)).verdict, Verdict::Fewer);
    assert_eq!(compare(&none(5, 4), &all(5, 4)).verdict, Verdict::More);
    assert_eq!(compare(&all(4, 50), &none(4, 50)).verdict, Verdict::TooLittle, "four sessions");
    assert_eq!(compare(&all(5, 4), &none(6, 3)).verdict, Verdict::TooLittle, "18 opportunities");
    // A session without an opportunity is none.
    let idle: Vec<_> = all(4, 5).into_iter().chain(none(3, 0)).collect();
    assert_eq!(compare(&idle, &none(5, 4)).verdict, Verdict::TooLittle);
    assert_eq!(compare(&[], &[]).lower, None);
    let equal = sessions(&[(3, 100); 20]);
    assert_eq!(compare(&equal, &equal).verdict, Verdict::Same);
}

#[test]
fn one_odd_session_does_not_decide() {
    let one = sessions(&[(20, 20), (0, 20), (0, 20), (0, 20), (0, 20)]);
    let none = sessions(&[(0, 20); 5]);
    let compared = compare(&one, &none);
    assert!(compared.design_effect > 10.0, "{compared:?}");
    assert_eq!(compared.verdict, Verdict::TooLittle);
}

/// Against closed forms.
#[test]
fn distributions_agree_with_tables() {
    let close = |one: f64, other: f64| assert!((one - other).abs() < 1e-6, "{one} is not {other}");
    close(ln_gamma(0.5), 0.572_364_942_924_700_1);
    close(ln_gamma(100.0), 359.134_205_369_575_4);
    // I_x(1, b) and I_x(a, 1) have closed forms, and I_x(2, 2) is x² (3 - 2x).
    close(incomplete_beta(0.3, 1.0, 4.0), 1.0 - 0.7f64.powi(4));
    close(incomplete_beta(0.3, 4.0, 1.0), 0.3f64.powi(4));
    close(incomplete_beta(0.7, 2.0, 2.0), 0.49 * 1.6);
    // Between equal posteriors there is no difference; P(X < Y) of Beta(1, 2) and Beta(2, 1) is 5/6.
    let counted = |events, others| Counted { events, others };
    close(chance_of_less(counted(6, 14), counted(6, 14)), 0.5);
    close(chance_of_less(counted(0, 1), counted(1, 0)), 5.0 / 6.0);
    let (low, high) = jeffreys(counted(0, 20));
    assert!(low == 0.0 && (0.11..0.13).contains(&high), "{low} {high}");
}
