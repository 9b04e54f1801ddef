//! Who may drive agents (`serve --chat`). The token is a file, which every program of the user can
//! read, the agents too; so it allows reading only. What allows driving is in the memory of this
//! process: cookies of browsers that used a one-time code, or that logged in with the password while
//! this process runs. A request must also say that it comes from a page of this server.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};

use super::one_time_code::{CodeUse, OneTimeCodes};
use super::{Auth, MAX_COOKIES, constant_time_eq, cookies, random_secret};

/// The browsers that may drive. The first one goes when there are more.
const MAX_BROWSERS: usize = 64;

/// The query parameter of the code.
pub const DRIVE: &str = "drive";

#[derive(Default)]
pub struct DriveAccess {
    codes: OneTimeCodes,
    /// The cookies of the browsers that may drive.
    browsers: Mutex<Vec<String>>,
}

impl DriveAccess {
    /// A code that lets one browser drive, once and within a minute.
    pub fn issue_code(&self) -> Option<String> {
        self.codes.issue(Instant::now())
    }

    /// The cookie of one more browser. None if the system has no random bytes.
    pub fn add_browser(&self) -> Option<String> {
        let cookie = random_secret()?;
        let mut browsers = self.browsers.lock().unwrap_or_else(PoisonError::into_inner);
        if browsers.len() >= MAX_BROWSERS {
            browsers.remove(0);
        }
        browsers.push(cookie.clone());
        Some(cookie)
    }

    pub fn remove_browser(&self, cookie: &str) {
        let mut browsers = self.browsers.lock().unwrap_or_else(PoisonError::into_inner);
        browsers.retain(|held| held != cookie);
    }

    /// Exchanges a code for a cookie. A code that is shown twice was stolen by one of the two, so
    /// neither may drive.
    pub fn exchange(&self, code: &str) -> Option<String> {
        let add = || self.add_browser().ok_or(());
        match self.codes.exchange(code, Instant::now(), add).ok()? {
            CodeUse::First(cookie) => Some(cookie),
            CodeUse::Repeated(cookie) => {
                self.remove_browser(&cookie);
                None
            }
            CodeUse::Invalid => None,
        }
    }

    fn knows(&self, cookie: &str) -> bool {
        let browsers = self.browsers.lock().unwrap_or_else(PoisonError::into_inner);
        browsers.iter().any(|held| constant_time_eq(cookie, held))
    }
}

impl Auth {
    /// Lets browsers drive agents.
    pub fn with_drive(self) -> Auth {
        Auth { drive: Some(DriveAccess::default()), ..self }
    }

    pub(super) fn drive_cookie(&self, value: &str) -> String {
        format!("{}={value}; HttpOnly; SameSite=Strict; Path=/", self.drive_name())
    }

    fn drive_name(&self) -> String {
        format!("unspool-drive-{}", self.port)
    }

    /// The cookie with which a browser drives.
    pub(super) fn driver(&self, headers: &HeaderMap) -> Option<String> {
        let (drive, name) = (self.drive.as_ref()?, self.drive_name());
        let mut given = cookies(headers, &name).take(MAX_COOKIES);
        given.find(|cookie| drive.knows(cookie)).map(str::to_owned)
    }

    /// True if the browser that asks for a page may drive.
    pub fn is_driver(&self, headers: &HeaderMap) -> bool {
        self.driver(headers).is_some()
    }

    /// True if a request may drive: it has the cookie, and a page of this server sent it. Programs
    /// and pages of other sites send no such `Origin`.
    pub fn may_drive(&self, headers: &HeaderMap) -> bool {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let host = text(HOST).unwrap_or_default();
        let own_page = text(ORIGIN).is_some_and(|origin| self.is_allowed_origin(origin, host));
        own_page && self.is_driver(headers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::LoginStore;

    fn auth() -> Auth {
        let logins = LoginStore::in_data_folder(std::path::Path::new("unused"));
        Auth::new("token".to_owned(), 7787, logins).with_drive()
    }

    fn headers(cookie: &str, origin: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "127.0.0.1:7787".parse().unwrap());
        headers.insert("cookie", cookie.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_a_page_of_this_server_with_the_cookie_drives() {
        let auth = auth();
        let drive = auth.drive.as_ref().unwrap();
        let code = drive.issue_code().unwrap();
        let cookie = drive.exchange(&code).unwrap();
        let held = format!("unspool-drive-7787={cookie}");
        let own = Some("http://127.0.0.1:7787");
        assert!(auth.may_drive(&headers(&held, own)));
        for foreign in [
            None,
            Some("null"),
            Some("http://127.0.0.1:7788"),
            Some("http://localhost:7787"),
            Some("https://127.0.0.1:7787"),
            Some("http://evil.example"),
        ] {
            assert!(!auth.may_drive(&headers(&held, foreign)), "{foreign:?}");
        }
        assert!(!auth.may_drive(&headers("unspool-drive-7787=token", own)));
        assert!(!auth.may_drive(&headers(&format!("unspool-drive-7788={cookie}"), own)));
        // The code was stolen: whoever used it first may not drive any more.
        assert_eq!(drive.exchange(&code), None);
        assert!(!auth.may_drive(&headers(&held, own)));
    }

    #[test]
    fn without_drive_nobody_drives() {
        let logins = LoginStore::in_data_folder(std::path::Path::new("unused"));
        let auth = Auth::new("token".to_owned(), 7787, logins);
        let own = Some("http://127.0.0.1:7787");
        assert!(!auth.may_drive(&headers("unspool-drive-7787=", own)));
        assert!(auth.one_time_address().is_some_and(|address| !address.contains("drive=")));
    }
}
