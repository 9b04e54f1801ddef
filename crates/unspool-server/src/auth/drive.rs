//! Who may drive agents (`serve --chat`). The token is a file, which every program of the user can
//! read, the agents too; so it allows reading only. What allows driving is in the memory of this
//! process, and a browser gets it for a one-time code, or for the password while this process runs.
//!
//! A browser has two secrets. The cookie is out of reach of scripts, but browsers send it to every
//! port of this host, and an agent may serve a page there. The key is kept by the pages of this
//! server (`localStorage`), which no other port can read. A request needs both, and must say that it
//! comes from a page of this server.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};

use super::one_time_code::{CodeUse, OneTimeCodes};
use super::{
    Auth, LOGIN_CHECK_INTERVAL, MAX_COOKIES, constant_time_eq, cookies, random_secret, sleep,
};

/// The browsers that may drive. The first one goes when there are more.
const MAX_BROWSERS: usize = 64;

/// The query parameter of the code.
pub const DRIVE: &str = "drive";

/// The header with the key.
pub const KEY_HEADER: &str = "unspool-key";

#[derive(Default)]
pub struct DriveAccess {
    codes: OneTimeCodes,
    browsers: Mutex<Vec<Driver>>,
}

/// The secrets of a browser that may drive.
#[derive(Clone)]
pub struct Driver {
    pub cookie: String,
    pub key: String,
}

impl DriveAccess {
    /// A code that lets one browser drive, once and within a minute.
    pub fn issue_code(&self) -> Option<String> {
        self.codes.issue(Instant::now())
    }

    /// The secrets of one more browser. None if the system has no random bytes.
    pub fn add_browser(&self) -> Option<Driver> {
        let driver = Driver { cookie: random_secret()?, key: random_secret()? };
        let mut browsers = self.browsers.lock().unwrap_or_else(PoisonError::into_inner);
        if browsers.len() >= MAX_BROWSERS {
            browsers.remove(0);
        }
        browsers.push(driver.clone());
        Some(driver)
    }

    pub fn remove_browser(&self, cookie: &str) {
        let mut browsers = self.browsers.lock().unwrap_or_else(PoisonError::into_inner);
        browsers.retain(|held| held.cookie != cookie);
    }

    /// Exchanges a code for the secrets. `present` is the browser that shows it. A code that another
    /// browser shows again was stolen by one of the two, so neither may drive.
    pub fn exchange(&self, code: &str, present: Option<&Driver>) -> Option<Driver> {
        let add = || self.add_browser().map(|driver| driver.cookie).ok_or(());
        match self.codes.exchange(code, Instant::now(), add).ok()? {
            CodeUse::First(cookie) => self.find(&cookie),
            CodeUse::Repeated(cookie) => match present.filter(|present| present.cookie == cookie) {
                Some(present) => Some(present.clone()),
                None => {
                    self.remove_browser(&cookie);
                    None
                }
            },
            CodeUse::Invalid => None,
        }
    }

    fn find(&self, cookie: &str) -> Option<Driver> {
        let browsers = self.browsers.lock().unwrap_or_else(PoisonError::into_inner);
        browsers.iter().find(|held| constant_time_eq(cookie, &held.cookie)).cloned()
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

    /// The browser that sent a request, if its cookie may drive.
    pub(super) fn driver(&self, headers: &HeaderMap) -> Option<Driver> {
        let (drive, name) = (self.drive.as_ref()?, self.drive_name());
        let mut given = cookies(headers, &name).take(MAX_COOKIES);
        given.find_map(|cookie| drive.find(cookie))
    }

    /// True if the browser that asks for a page may drive.
    pub fn is_driver(&self, headers: &HeaderMap) -> bool {
        self.driver(headers).is_some()
    }

    /// True if a request may drive: it has the cookie and the key, and a page of this server sent it.
    pub fn may_drive(&self, headers: &HeaderMap, key: Option<&str>) -> bool {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let host = text(HOST).unwrap_or_default();
        let own_page = text(ORIGIN).is_some_and(|origin| self.is_allowed_origin(origin, host));
        own_page && self.has_key(headers, key)
    }

    /// True if a request has the cookie and the key. Pages send no `Origin` when they read.
    pub fn has_key(&self, headers: &HeaderMap, key: Option<&str>) -> bool {
        let sent = || headers.get(KEY_HEADER).and_then(|value| value.to_str().ok());
        let key = key.or_else(sent).unwrap_or_default();
        self.driver(headers).is_some_and(|driver| constant_time_eq(key, &driver.key))
    }

    /// Completes when the browser may not drive any more, for sockets that outlive their request.
    pub async fn driving_ended(&self, headers: HeaderMap) {
        while self.is_driver(&headers) {
            sleep(LOGIN_CHECK_INTERVAL).await;
        }
    }
}

/// The fragment of a URL that hands the key to the page. Browsers send no fragment to servers.
pub fn key_fragment(driver: &Driver) -> String {
    format!("#{DRIVE}={}", driver.key)
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
    fn only_a_page_of_this_server_with_cookie_and_key_drives() {
        let auth = auth();
        let drive = auth.drive.as_ref().unwrap();
        let code = drive.issue_code().unwrap();
        let driver = drive.exchange(&code, None).unwrap();
        let held = format!("unspool-drive-7787={}", driver.cookie);
        let own = Some("http://127.0.0.1:7787");
        let key = Some(driver.key.as_str());
        assert!(auth.may_drive(&headers(&held, own), key));
        let mut sent = headers(&held, own);
        sent.insert(KEY_HEADER, driver.key.parse().unwrap());
        assert!(auth.may_drive(&sent, None));
        // An agent that serves a page on another port gets the cookie, and can claim any origin.
        for key in [None, Some(""), Some(driver.cookie.as_str()), Some("token")] {
            assert!(!auth.may_drive(&headers(&held, own), key), "{key:?}");
        }
        for foreign in [
            None,
            Some("null"),
            Some("http://127.0.0.1:7788"),
            Some("http://localhost:7787"),
            Some("https://127.0.0.1:7787"),
            Some("http://evil.example"),
        ] {
            assert!(!auth.may_drive(&headers(&held, foreign), key), "{foreign:?}");
        }
        assert!(!auth.may_drive(&headers("unspool-drive-7787=token", own), key));
        let other_port = format!("unspool-drive-7788={}", driver.cookie);
        assert!(!auth.may_drive(&headers(&other_port, own), key));
        // The same browser may show the code again: a tab that was opened twice.
        let again = drive.exchange(&code, Some(&driver)).unwrap();
        assert_eq!(again.key, driver.key);
        assert!(auth.may_drive(&headers(&held, own), key));
        // Another browser may not: whoever used the code first may not drive any more.
        assert!(drive.exchange(&code, None).is_none());
        assert!(!auth.may_drive(&headers(&held, own), key));
    }

    #[test]
    fn without_drive_nobody_drives() {
        let logins = LoginStore::in_data_folder(std::path::Path::new("unused"));
        let auth = Auth::new("token".to_owned(), 7787, logins);
        let own = Some("http://127.0.0.1:7787");
        assert!(!auth.may_drive(&headers("unspool-drive-7787=", own), Some("")));
        assert!(auth.one_time_address().is_some_and(|address| !address.contains("drive=")));
    }
}
