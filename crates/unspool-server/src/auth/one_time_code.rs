//! One-time codes: `serve --open` gives the browser an address with such a code instead of the
//! token, because the arguments of a process are visible to other users of the machine. A code is
//! exchanged for a login once, within a minute. If somebody shows it again in that time, one of the
//! two was not the browser, and the login that the code gave ends.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{constant_time_eq, random_secret};

/// How long a code is valid: a browser may have to start first.
const CODE_LIFETIME: Duration = Duration::from_secs(60);

#[derive(Default)]
pub struct OneTimeCodes(Mutex<Vec<OneTimeCode>>);

struct OneTimeCode {
    code: String,
    until: Instant,
    /// The cookie of the login that it was exchanged for.
    login: Option<String>,
}

/// What a code gave.
#[derive(PartialEq, Eq, Debug)]
pub enum CodeUse {
    /// A login with this cookie.
    First(String),
    /// Nothing any more. The caller ends the login with this cookie.
    Repeated(String),
    /// Nothing: the code has expired, or was never issued.
    Invalid,
}

impl OneTimeCodes {
    /// A new code. None if the system has no random bytes.
    pub fn issue(&self, now: Instant) -> Option<String> {
        let code = random_secret()?;
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|one| one.until > now);
        codes.push(OneTimeCode { code: code.clone(), until: now + CODE_LIFETIME, login: None });
        Some(code)
    }

    /// Uses a code. `log_in` makes the login of its first use.
    pub fn exchange<E>(
        &self,
        code: &str,
        now: Instant,
        log_in: impl FnOnce() -> Result<String, E>,
    ) -> Result<CodeUse, E> {
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|one| one.until > now);
        let Some(found) = codes.iter_mut().find(|one| constant_time_eq(code, &one.code)) else {
            return Ok(CodeUse::Invalid);
        };
        if let Some(login) = &found.login {
            return Ok(CodeUse::Repeated(login.clone()));
        }
        let cookie = log_in()?;
        found.login = Some(cookie.clone());
        Ok(CodeUse::First(cookie))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log_in() -> Result<String, ()> {
        Ok("cookie".to_owned())
    }

    #[test]
    fn a_code_works_once_and_for_a_minute() {
        let (codes, now) = (OneTimeCodes::default(), Instant::now());
        let (one, two) = (codes.issue(now).unwrap(), codes.issue(now).unwrap());
        assert_ne!(one, two);
        assert_eq!(codes.exchange("", now, log_in), Ok(CodeUse::Invalid));
        // A login that fails does not use the code up.
        assert_eq!(codes.exchange(&one, now, || Err(1)), Err(1));
        assert_eq!(codes.exchange(&one, now, log_in), Ok(CodeUse::First("cookie".to_owned())));
        assert_eq!(codes.exchange(&one, now, log_in), Ok(CodeUse::Repeated("cookie".to_owned())));
        let late = now + CODE_LIFETIME;
        assert_eq!(codes.exchange(&two, late, log_in), Ok(CodeUse::Invalid));
        assert_eq!(codes.exchange(&one, late, log_in), Ok(CodeUse::Invalid));
    }
}
