//! The measurements of one run, and table rows over many runs.

use std::time::Duration;

pub const HEAD: &str = "what                                      runs    median      best       p95       cpu    memory";

#[derive(Clone, Copy)]
pub struct Sample {
    pub wall: Duration,
    pub processors: Duration,
    /// Bytes; 0 if the command ended before it could be sampled.
    pub memory: u64,
}

impl Sample {
    pub fn to_line(self) -> String {
        let microseconds = [self.wall.as_micros(), self.processors.as_micros()];
        format!("{}\t{}\t{}", microseconds[0], microseconds[1], self.memory)
    }

    pub fn from_line(line: &str) -> Option<Sample> {
        let mut numbers = line.split('\t').map(|field| field.parse().ok());
        let mut next = || numbers.next().flatten();
        Some(Sample {
            wall: Duration::from_micros(next()?),
            processors: Duration::from_micros(next()?),
            memory: next()?,
        })
    }
}

/// Runs by label, in order of first appearance.
#[derive(Default)]
pub struct Samples {
    groups: Vec<(String, Vec<Sample>)>,
}

impl Samples {
    pub fn add(&mut self, label: &str, sample: Sample) {
        match self.groups.iter_mut().find(|(name, _)| name == label) {
            Some((_, group)) => group.push(sample),
            None => self.groups.push((label.to_owned(), vec![sample])),
        }
    }

    /// The median time in seconds.
    pub fn median(&self, label: &str) -> Option<f64> {
        let (_, group) = self.groups.iter().find(|(name, _)| name == label)?;
        Some(percentile(group, |sample| sample.wall.as_secs_f64(), 50))
    }

    pub fn rows(&self) -> impl Iterator<Item = String> {
        self.groups.iter().map(|(label, group)| {
            let wall = |percent| percentile(group, |sample| sample.wall.as_secs_f64(), percent);
            let processors = percentile(group, |sample| sample.processors.as_secs_f64(), 50);
            let memory = group.iter().map(|sample| sample.memory).max().unwrap_or_default();
            format!(
                "{label:<40} {:>5} {:>9} {:>9} {:>9} {:>9} {:>9}",
                group.len(),
                seconds(wall(50)),
                seconds(wall(0)),
                seconds(wall(95)),
                seconds(processors),
                if memory == 0 { "-".to_owned() } else { format!("{:.0} MB", memory as f64 / 1e6) }
            )
        })
    }
}

/// The smallest value that `percent` percent of all values do not exceed.
fn percentile(group: &[Sample], of: impl Fn(&Sample) -> f64, percent: usize) -> f64 {
    let mut values: Vec<f64> = group.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    let rank = (values.len() * percent).div_ceil(100).max(1) - 1;
    values.get(rank).copied().unwrap_or_default()
}

fn seconds(time: f64) -> String {
    if time < 0.1 {
        format!("{:.1} ms", time * 1e3)
    } else if time < 1.0 {
        format!("{:.0} ms", time * 1e3)
    } else {
        format!("{time:.2} s")
    }
}
