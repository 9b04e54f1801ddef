//! Verifies the password of remote clients, at the pace that `throttle.rs` allows.

use std::time::{Duration, Instant};

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use tokio::time::sleep;

use super::client::Client;
use super::throttle::{Admission, Throttle};

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
    throttle: Throttle,
    /// One verification at a time: Argon2id takes 19 MB.
    verifying: tokio::sync::Mutex<()>,
}

/// The result of a login attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordOutcome {
    Right,
    Wrong,
    /// Not verified: retry after this long.
    Wait(Duration),
}

impl PasswordAuth {
    pub fn new(hash: String) -> PasswordAuth {
        PasswordAuth {
            hash,
            throttle: Throttle::default(),
            verifying: tokio::sync::Mutex::default(),
        }
    }

    pub async fn try_password(&self, client: &Client, password: String) -> PasswordOutcome {
        match self.throttle.admit(client, Instant::now()) {
            Admission::Refused(wait) => return PasswordOutcome::Wait(wait),
            Admission::After(wait) => sleep(wait).await,
        }
        let _one = self.verifying.lock().await;
        let hash = self.hash.clone();
        let verified = tokio::task::spawn_blocking(move || verify(&hash, &password)).await;
        if !verified.unwrap_or(false) {
            return PasswordOutcome::Wrong;
        }
        self.throttle.accept(client);
        PasswordOutcome::Right
    }
}

fn verify(hash: &str, password: &str) -> bool {
    PasswordHash::new(hash)
        .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
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
}
