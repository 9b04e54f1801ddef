//! Password login for remote clients. A correct password yields a random cookie that is kept in
//! memory; wrong passwords are throttled per client network with exponential backoff.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};

use super::Auth;

/// How long a login is valid.
pub const LOGIN_LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The number of logins kept; the oldest are dropped first.
const MAX_LOGINS: usize = 1000;
/// The longest wait after a wrong password.
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// Failures are forgotten after this long without an attempt.
const FAILURE_MEMORY: Duration = Duration::from_secs(15 * 60);

/// The Argon2id hash to store: slow to brute-force.
pub fn hash_password(password: &str) -> Option<String> {
    Argon2::default().hash_password(password.as_bytes()).ok().map(|hash| hash.to_string())
}

/// True if the text is a hash made by `hash_password`.
pub fn is_password_hash(text: &str) -> bool {
    PasswordHash::new(text).is_ok_and(|hash| hash.algorithm.as_str() == "argon2id")
}

pub struct PasswordAuth {
    hash: String,
    /// Login cookies and when they expire.
    logins: Mutex<HashMap<String, Instant>>,
    wrong: Mutex<HashMap<IpAddr, WrongPassword>>,
    /// One verification at a time: Argon2id takes 19 MB.
    verifying: tokio::sync::Mutex<()>,
}

/// Failed attempts of one client network.
struct WrongPassword {
    attempts: u32,
    /// Attempts before this time are refused unverified.
    until: Instant,
}

/// The result of a login attempt.
#[derive(Debug, PartialEq, Eq)]
pub enum LoginOutcome {
    /// The login cookie.
    Accepted(String),
    WrongPassword,
    /// Not verified: retry after this long.
    Wait(Duration),
}

impl PasswordAuth {
    pub fn new(hash: String) -> PasswordAuth {
        PasswordAuth {
            hash,
            logins: Mutex::default(),
            wrong: Mutex::default(),
            verifying: tokio::sync::Mutex::default(),
        }
    }

    pub fn is_logged_in(&self, cookie: &str) -> bool {
        lock(&self.logins).get(cookie).is_some_and(|until| *until > Instant::now())
    }

    /// Verifies a password sent from this address.
    pub async fn try_password(&self, from: IpAddr, password: String) -> LoginOutcome {
        let from = client_network(from);
        if let Some(wait) = self.register_attempt(from, Instant::now()) {
            return LoginOutcome::Wait(wait);
        }
        let _one = self.verifying.lock().await;
        let hash = self.hash.clone();
        let right = tokio::task::spawn_blocking(move || verify(&hash, &password)).await;
        let cookie = Auth::secret().filter(|_| right.unwrap_or(false));
        let Some(cookie) = cookie else { return LoginOutcome::WrongPassword };
        lock(&self.wrong).remove(&from);
        self.remember(cookie.clone(), Instant::now());
        LoginOutcome::Accepted(cookie)
    }

    /// Registers an attempt before it is verified, so that parallel attempts cannot bypass the
    /// backoff. Returns how long to wait if it comes too soon.
    fn register_attempt(&self, from: IpAddr, now: Instant) -> Option<Duration> {
        let mut wrong = lock(&self.wrong);
        wrong.retain(|_, held| held.until + FAILURE_MEMORY > now);
        let held = wrong.entry(from).or_insert(WrongPassword { attempts: 0, until: now });
        if held.until > now {
            return Some(held.until - now);
        }
        let wait = Duration::from_secs(1 << held.attempts.min(6)).min(MAX_BACKOFF);
        held.attempts += 1;
        held.until = now + wait;
        None
    }

    fn remember(&self, cookie: String, now: Instant) {
        let mut logins = lock(&self.logins);
        logins.retain(|_, until| *until > now);
        if logins.len() >= MAX_LOGINS {
            let oldest = logins.iter().min_by_key(|(_, until)| **until);
            if let Some(oldest) = oldest.map(|(cookie, _)| cookie.clone()) {
                logins.remove(&oldest);
            }
        }
        logins.insert(cookie, now + LOGIN_LIFETIME);
    }
}

fn verify(hash: &str, password: &str) -> bool {
    PasswordHash::new(hash)
        .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
}

/// An IPv6 client usually controls its whole /64: throttle by network.
fn client_network(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V4(four) => four.into(),
        IpAddr::V6(six) => {
            let bits = u128::from_be_bytes(six.octets()) >> 64 << 64;
            Ipv6Addr::from(bits).into()
        }
    }
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_kept_as_a_hash_of_its_own() {
        let (one, two) =
            (hash_password("correct horse").unwrap(), hash_password("correct horse").unwrap());
        assert_ne!(one, two, "each has its salt");
        assert!(one.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{one}");
        assert!(is_password_hash(&one) && !is_password_hash("correct horse"));
        assert!(verify(&one, "correct horse"));
        assert!(!verify(&one, "correct horsf") && !verify(&one, "") && !verify("", ""));
    }

    #[test]
    fn who_is_wrong_waits_longer_each_time() {
        let password = PasswordAuth::new(String::new());
        let from: IpAddr = "192.0.2.7".parse().unwrap();
        let mut now = Instant::now();
        let mut waited = Vec::new();
        for _ in 0..9 {
            assert_eq!(password.register_attempt(from, now), None);
            // Retried at once: refused.
            let wait = password.register_attempt(from, now).unwrap();
            waited.push(wait.as_secs());
            assert_eq!(
                password.register_attempt(from, now + wait / 2).map(|wait| wait.as_secs()),
                Some(wait.as_secs() / 2)
            );
            now += wait;
        }
        assert_eq!(waited, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(
            password.register_attempt("192.0.2.8".parse().unwrap(), now),
            None,
            "other clients are not affected"
        );
        // Failures are forgotten after a pause.
        now += MAX_BACKOFF + FAILURE_MEMORY;
        assert_eq!(password.register_attempt(from, now), None);
        assert_eq!(password.register_attempt(from, now), Some(Duration::from_secs(1)));
    }

    #[test]
    fn a_network_is_one() {
        let of = |text: &str| client_network(text.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1:2:3"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.7"), "192.0.2.7");
    }

    #[test]
    fn a_log_in_holds_for_a_while() {
        let password = PasswordAuth::new(String::new());
        let now = Instant::now();
        password.remember("a".to_owned(), now);
        assert!(
            password.is_logged_in("a") && !password.is_logged_in("b") && !password.is_logged_in("")
        );
        // The oldest goes when there are too many.
        for nth in 0..MAX_LOGINS {
            password.remember(format!("c{nth}"), now + Duration::from_secs(1));
        }
        assert!(!password.is_logged_in("a") && password.is_logged_in("c0"));
        // Expired logins are dropped.
        password.remember("z".to_owned(), now + LOGIN_LIFETIME + Duration::from_secs(2));
        assert_eq!(lock(&password.logins).len(), 1);
    }
}
