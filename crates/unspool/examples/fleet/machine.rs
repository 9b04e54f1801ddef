//! One machine: a log that grows, and the collector that sends what is new.

use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use unspool_ingest::ship::Client;
use unspool_query::ship::{MAX_UNIT_BYTES, SentTo, Unit, UnitHead};
use unspool_sources::fingerprint::fingerprint;

/// How often a collector sends.
const PAUSE: Duration = Duration::from_millis(250);
/// A server that does not come back in this time is broken.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Machine {
    nth: usize,
    path: String,
    text: Vec<u8>,
    /// Where lines end.
    ends: Vec<usize>,
}

/// What a machine has seen.
#[derive(Default)]
pub struct Sent {
    /// From the line in the log to the answer, in seconds, for each record.
    pub ages: Vec<f32>,
    pub requests: usize,
    pub failed: usize,
}

impl Machine {
    pub fn new(nth: usize, log: &Path) -> Result<Machine> {
        let text = fs::read(log).with_context(|| format!("cannot read {}", log.display()))?;
        let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let ends = ends.map(|(at, _)| at + 1).collect();
        Ok(Machine { nth, path: log.to_string_lossy().into_owned(), text, ends })
    }

    pub fn records(&self) -> usize {
        self.ends.len()
    }

    pub fn bytes(&self) -> u64 {
        self.text.len() as u64
    }

    /// Sends the log while it grows by so many records a second.
    pub fn send(&self, server: &str, token: String, begun: Instant, rate: f64) -> Result<Sent> {
        let client = Client::new(server, token, format!("m{}", self.nth));
        let mut sent = Sent::default();
        let mut taken = SentTo::default();
        let mut heard = Instant::now();
        // Machines do not send at the same moment.
        thread::sleep(PAUSE * (self.nth % 16) as u32 / 16);
        while sent.ages.len() < self.ends.len() {
            let from = usize::try_from(taken.offset)?;
            let first = self.ends.partition_point(|end| *end <= from);
            let written = (begun.elapsed().as_secs_f64() * rate) as usize;
            let written = written.min(self.ends.len());
            let fits = self.ends.partition_point(|end| *end <= from + MAX_UNIT_BYTES);
            let last = written.min(fits.max(first + 1));
            if last > first {
                sent.requests += 1;
                match client.send(std::iter::once(&self.unit(from, self.ends[last - 1])?)) {
                    Ok(receipts) => {
                        let receipt = receipts.into_iter().next().context("no receipt")?;
                        if let Some(refused) = receipt.refused {
                            bail!("{}: {refused}", self.path);
                        }
                        taken = receipt.taken.unwrap_or_default();
                        heard = Instant::now();
                    }
                    Err(error) if error.is_final() || heard.elapsed() > PATIENCE => {
                        return Err(error.into());
                    }
                    Err(_) => {
                        sent.failed += 1;
                        // The server may have taken it.
                        if let Ok(positions) = client.hello(vec![self.path.clone()]) {
                            taken = positions.into_iter().next().flatten().unwrap_or_default();
                            heard = Instant::now();
                        }
                    }
                }
                let now = begun.elapsed().as_secs_f64();
                let done = self.ends.partition_point(|end| *end as u64 <= taken.offset);
                let before = sent.ages.len();
                sent.ages.extend((before..done).map(|n| (now - (n + 1) as f64 / rate) as f32));
            }
            thread::sleep(PAUSE);
        }
        Ok(sent)
    }

    fn unit(&self, from: usize, to: usize) -> Result<Unit> {
        let text = self.text[from..to].to_vec();
        let print = fingerprint(Cursor::new(self.text.as_slice()), to as u64)?;
        let head = UnitHead {
            file: self.path.clone(),
            from: from as u64,
            to: SentTo::new(0, print, to == self.text.len()),
            modified: 0,
            more: false,
            withdraws: false,
            length: text.len(),
        };
        Ok(Unit { head, text })
    }
}
