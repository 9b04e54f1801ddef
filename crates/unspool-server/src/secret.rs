//! Random secrets: tokens, one-time codes, cookies, links for guests.

/// The length of a secret.
pub const SECRET_CHARS: usize = 48;

/// A new random secret. None if the system provides no random bytes.
pub fn random_secret() -> Option<String> {
    let mut bytes = [0; SECRET_CHARS / 2];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
