//! Whether something happens less often in one group of sessions than in another. Counts are per
//! opportunity, and sessions differ: what happens in one session is more alike than what happens in
//! two. So counts are first divided by the design effect that the sessions show (Kish: the variance
//! between sessions over the one that independent events would have), and both groups then have
//! Beta posteriors. `verdict_tests.rs` measures how often a verdict is wrong on simulated groups.

/// Opportunities without which a group says nothing.
pub const MIN_OPPORTUNITIES: u64 = 20;
/// Sessions without which a group says nothing.
pub const MIN_SESSIONS: usize = 5;
/// How sure a verdict has to be. With it and the design effect, at most 5 of 100 comparisons of equal
/// groups say `fewer`, whether or not events come in clusters; 0.97 would see a drop from 30 % to 10 % at
/// sixty opportunities in only 75 of 100.
pub const SURE: f64 = 0.95;
/// How much a design effect grows for a few sessions, divided by their number: few sessions that differ
/// say little about how much sessions differ. Without it 5.2 of 100 comparisons of equal groups with
/// clusters gave a verdict for one side, at a surer level; simulations decided (`verdict_tests.rs`).
const FEW_SESSIONS: f64 = 4.0;
/// Two rates within this distance are the same for practical purposes.
pub const SAME_WITHIN: f64 = 0.1;

/// What one session adds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SessionCount {
    pub events: u64,
    pub opportunities: u64,
}

/// One group of sessions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Arm {
    pub sessions: usize,
    pub events: u64,
    pub opportunities: u64,
    /// The rate with its 95 % interval (Jeffreys); `None` without opportunities.
    pub rate: Option<Rate>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Fewer,
    Same,
    More,
    TooLittle,
}

/// Two groups compared.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Comparison {
    pub without: Arm,
    pub with: Arm,
    /// How much less the counts are worth than independent ones; 1 if sessions do not differ.
    pub design_effect: f64,
    /// The probability that the rate with it is lower.
    pub lower: Option<f64>,
    pub verdict: Verdict,
}

impl Verdict {
    pub const ALL: [Verdict; 4] =
        [Verdict::Fewer, Verdict::Same, Verdict::More, Verdict::TooLittle];

    pub fn name(self) -> &'static str {
        match self {
            Verdict::Fewer => "fewer",
            Verdict::Same => "same",
            Verdict::More => "more",
            Verdict::TooLittle => "too little to say",
        }
    }
}

/// Compares sessions without something and sessions with it.
pub fn compare(without: &[SessionCount], with: &[SessionCount]) -> Comparison {
    let design_effect = design_effect(&[without, with]);
    let [(arm_without, counted_without), (arm_with, counted_with)] =
        [without, with].map(|sessions| arm(sessions, design_effect));
    let has_opportunities = arm_without.opportunities > 0 && arm_with.opportunities > 0;
    let lower = has_opportunities.then(|| chance_of_less(counted_with, counted_without));
    let is_enough =
        |arm: &Arm| arm.opportunities >= MIN_OPPORTUNITIES && arm.sessions >= MIN_SESSIONS;
    let verdict = match lower.filter(|_| is_enough(&arm_without) && is_enough(&arm_with)) {
        None => Verdict::TooLittle,
        Some(lower) if lower >= SURE => Verdict::Fewer,
        Some(lower) if 1.0 - lower >= SURE => Verdict::More,
        Some(_) if are_close(&arm_without, &arm_with) => Verdict::Same,
        Some(_) => Verdict::TooLittle,
    };
    Comparison { without: arm_without, with: arm_with, design_effect, lower, verdict }
}

/// The intervals leave no room for a difference that matters.
fn are_close(one: &Arm, other: &Arm) -> bool {
    let (Some(one), Some(other)) = (one.rate, other.rate) else { return false };
    // Newcombe's interval of a difference.
    let half = |a: f64, b: f64| a.hypot(b);
    let difference = one.value - other.value;
    let low = difference - half(one.value - one.low, other.high - other.value);
    let high = difference + half(one.high - one.value, other.value - other.low);
    low > -SAME_WITHIN && high < SAME_WITHIN
}

fn arm(sessions: &[SessionCount], design_effect: f64) -> (Arm, Counted) {
    let sessions: Vec<&SessionCount> =
        sessions.iter().filter(|session| session.opportunities > 0).collect();
    let events: u64 = sessions.iter().map(|session| events_of(session)).sum();
    let opportunities: u64 = sessions.iter().map(|session| session.opportunities).sum();
    let counted = Counted::new(events, opportunities, design_effect);
    let value = as_f64(events) / as_f64(opportunities.max(1));
    let rate = (opportunities > 0).then(|| {
        let (low, high) = jeffreys(counted);
        Rate { value, low: low.min(value), high: high.max(value) }
    });
    (Arm { sessions: sessions.len(), events, opportunities, rate }, counted)
}

/// A finding may count what its rule does not count as an opportunity.
fn events_of(session: &SessionCount) -> u64 {
    session.events.min(session.opportunities)
}

/// Counts as they would be if each were independent.
#[derive(Clone, Copy, Debug)]
struct Counted {
    events: u32,
    others: u32,
}

impl Counted {
    fn new(events: u64, opportunities: u64, design_effect: f64) -> Counted {
        let worth = as_f64(opportunities) / design_effect;
        // More change nothing, and a sum has so many terms.
        let total = worth.floor().clamp(0.0, 100_000.0);
        let share = as_f64(events) / as_f64(opportunities.max(1));
        let events = (share * total).round();
        Counted { events: as_u32(events), others: as_u32(total - events) }
    }
}

/// The variance between the sessions of each group over the one that independent events would have.
/// Never below 1: sessions that are more alike than chance are chance. What is above 1 counts for more
/// if the sessions are few.
fn design_effect(arms: &[&[SessionCount]]) -> f64 {
    let (mut between, mut binomial, mut freedom) = (0.0, 0.0, 0.0);
    for arm in arms {
        let sessions: Vec<_> = arm.iter().filter(|session| session.opportunities > 0).collect();
        let opportunities: f64 = sessions.iter().map(|session| as_f64(session.opportunities)).sum();
        let events: f64 = sessions.iter().map(|session| as_f64(events_of(session))).sum();
        if sessions.len() < 2 {
            continue;
        }
        let rate = events / opportunities;
        let count = as_f64(sessions.len() as u64);
        let squares: f64 = sessions
            .iter()
            .map(|session| {
                (as_f64(events_of(session)) - rate * as_f64(session.opportunities)).powi(2)
            })
            .sum();
        freedom += count - 1.0;
        between += squares * count / (count - 1.0);
        binomial += opportunities * rate * (1.0 - rate);
    }
    if binomial <= 0.0 {
        return 1.0;
    }
    let above = (between / binomial - 1.0).max(0.0);
    1.0 + above * (1.0 + FEW_SESSIONS / freedom)
}

/// The probability that a rate is lower than another one, from their posteriors with a uniform prior:
/// an exact sum over the events of the other (Evan Miller's formula for two Beta distributions).
fn chance_of_less(one: Counted, other: Counted) -> f64 {
    let [a, b] = [one.events, one.others].map(|count| f64::from(count) + 1.0);
    let d = f64::from(other.others) + 1.0;
    let ends = ln_beta(a, b);
    let term = |nth: u32| {
        let nth = f64::from(nth);
        (ln_beta(a + nth, b + d) - (d + nth).ln() - ln_beta(1.0 + nth, d) - ends).exp()
    };
    let sum: f64 = (0..=other.events).map(term).sum();
    sum.clamp(0.0, 1.0)
}

/// The 95 % interval of a rate (Jeffreys).
fn jeffreys(counted: Counted) -> (f64, f64) {
    let [a, b] = [counted.events, counted.others].map(|count| f64::from(count) + 0.5);
    let low = if counted.events == 0 { 0.0 } else { quantile(0.025, a, b) };
    let high = if counted.others == 0 { 1.0 } else { quantile(0.975, a, b) };
    (low, high)
}

/// Where a Beta distribution has this share below it.
fn quantile(share: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..45 {
        let middle = f64::midpoint(low, high);
        if incomplete_beta(middle, a, b) < share { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// The regularised incomplete beta function, by its continued fraction (Lentz).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast on this side only.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = (a * x.ln() + b * (-x).ln_1p() - ln_beta(a, b)).exp() / a;
    let not_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let (mut c, mut d) = (1.0, 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for nth in 1..300 {
        let m = f64::from(nth);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut step = 1.0;
        for factor in [even, odd] {
            d = 1.0 / not_zero(1.0 + factor * d);
            c = not_zero(1.0 + factor / c);
            step = d * c;
            fraction *= step;
        }
        if (step - 1.0).abs() < 1e-14 {
            break;
        }
    }
    front * fraction
}

fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// The logarithm of the gamma function for 0.5 and more (Stirling's series after a shift).
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 10.0 {
        shift += x.ln();
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    let series =
        (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse / 1680.0))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - shift
}

/// Counts are far below the integers that a float cannot hold.
#[expect(clippy::cast_precision_loss)]
fn as_f64(count: u64) -> f64 {
    count as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn as_u32(value: f64) -> u32 {
    value.max(0.0) as u32
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
