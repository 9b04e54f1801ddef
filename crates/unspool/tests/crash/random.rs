//! Deterministic random numbers from a seed (SplitMix64).

use std::time::Duration;

pub struct Random(u64);

impl Random {
    /// Each test gets its own sequence.
    pub fn new(test: &str) -> Random {
        let seed = std::env::var("UNSPOOL_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed: u64 = seed.unwrap_or(20_261_115);
        println!("UNSPOOL_SEED={seed}");
        Random(seed ^ crate::corpus::hash(test.as_bytes()))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub fn delay(&mut self, longest: Duration) -> Duration {
        let share = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        longest.mul_f64(share)
    }
}
