//! Limits how fast passwords can be tried. Whoever is wrong waits; others do not:
//!
//! - A browser with a mark (`client.rs`) waits for its own failures only. A client without one is
//!   counted by its network.
//! - Marks cost nothing, so new browsers of one network are also verified at a limited pace. They
//!   are slowed down, not refused. A browser that has logged in before is not.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::client::{Client, LoginHistory};

/// The longest wait after a wrong password.
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// Failures are forgotten after this long without an attempt.
const FAILURE_MEMORY: Duration = Duration::from_secs(15 * 60);
/// So many new browsers of a network may fail before the next ones are slowed down.
const UNPACED_FAILURES: u32 = 5;
/// The longest time between two attempts of new browsers of one network.
const MAX_PACE: Duration = Duration::from_secs(5);
/// An attempt that would have to wait longer is refused: its connection would be closed anyway.
const MAX_PACE_WAIT: Duration = Duration::from_secs(30);

#[derive(Default)]
pub struct Throttle {
    failures: Mutex<HashMap<Sender, Failures>>,
    paces: Mutex<HashMap<IpAddr, Failures>>,
}

/// Whose failures are counted together.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Sender {
    Network(IpAddr),
    Browser(String),
}

struct Failures {
    attempts: u32,
    /// When the next attempt may be verified.
    until: Instant,
}

/// What happens to an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It is verified after this long.
    After(Duration),
    /// It is not verified; the client may try again after this long.
    Refused(Duration),
}

impl Throttle {
    /// Registers an attempt before it is verified, so that parallel attempts cannot bypass the
    /// waits.
    pub fn admit(&self, client: &Client, now: Instant) -> Admission {
        let sender = sender(client);
        if let Some(until) = lock(&self.failures).get(&sender).map(|failures| failures.until)
            && until > now
        {
            return Admission::Refused(until - now);
        }
        // The pace comes before the failures: a flood of new marks leaves no entry for each.
        let is_new = |history| history == LoginHistory::New;
        let is_paced = client.browser.as_ref().is_some_and(|browser| is_new(browser.history));
        let turn = if is_paced { self.pace(client.network, now) } else { Duration::ZERO };
        if turn > MAX_PACE_WAIT {
            return Admission::Refused(turn);
        }
        match self.back_off(sender, now) {
            Some(wait) => Admission::Refused(wait),
            None => Admission::After(turn),
        }
    }

    /// The password was right: the attempts of this client were no failures.
    pub fn accept(&self, client: &Client) {
        lock(&self.failures).remove(&sender(client));
        if let Some(pace) = lock(&self.paces).get_mut(&client.network) {
            pace.attempts = pace.attempts.saturating_sub(1);
        }
    }

    /// How long the sender has to wait, if its last attempt was too recent.
    fn back_off(&self, sender: Sender, now: Instant) -> Option<Duration> {
        let mut all = lock(&self.failures);
        let failures = remembered(&mut all, sender, now);
        if failures.until > now {
            return Some(failures.until - now);
        }
        failures.until = now + Duration::from_secs(1 << failures.attempts.min(6)).min(MAX_BACKOFF);
        failures.attempts += 1;
        None
    }

    /// How long a new browser waits for its turn. A longer wait than the maximum is not a turn.
    fn pace(&self, network: IpAddr, now: Instant) -> Duration {
        let mut all = lock(&self.paces);
        let pace = remembered(&mut all, network, now);
        let turn = pace.until.max(now);
        let wait = turn - now;
        if wait <= MAX_PACE_WAIT {
            pace.attempts += 1;
            let slow = pace.attempts.saturating_sub(UNPACED_FAILURES);
            pace.until = turn + Duration::from_secs(u64::from(slow)).min(MAX_PACE);
        }
        wait
    }
}

fn sender(client: &Client) -> Sender {
    match &client.browser {
        Some(browser) => Sender::Browser(browser.id.clone()),
        None => Sender::Network(client.network),
    }
}

fn remembered<K: Eq + Hash>(all: &mut HashMap<K, Failures>, key: K, now: Instant) -> &mut Failures {
    all.retain(|_, failures| failures.until + FAILURE_MEMORY > now);
    all.entry(key).or_insert(Failures { attempts: 0, until: now })
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "throttle_tests.rs"]
mod tests;
