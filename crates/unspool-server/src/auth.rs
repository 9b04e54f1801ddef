//! Authentication and request checks, run before every handler (`guard`).
//!
//! The server is for the person who started it, not for other users of the machine or other sites
//! in the browser. A browser exchanges the token in the printed URL, a one-time code or the password
//! for a login of its own (`browser_login.rs`); programs send the token. Requests with a foreign
//! `Host` (DNS rebinding) and cross-site requests and sockets are rejected. When the server listens
//! beyond loopback, clients log in with a password.

mod browser_login;
mod client;
mod drive;
pub mod login;
mod one_time_code;
mod password;
mod request_limits;
mod throttle;
mod url_login;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, HOST, LOCATION, ORIGIN,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use tokio::time::sleep;
use unspool_query::ship;
use unspool_store::store::Store;

use crate::App;
use crate::health;
use crate::mcp;
use crate::problem::Problem;
use crate::secret::{SECRET_CHARS, random_secret};
use crate::shares::{GUEST_PATH, Share, ShareStore};
use client::BrowserMarks;
use drive::{DRIVE, DriveAccess};
use one_time_code::OneTimeCodes;
use password::PasswordAuth;
use request_limits::{malformed, too_large};

pub use browser_login::LoginStore;
pub use password::{hash_password, is_password_hash};

/// Pages load only our own assets; inline scripts and styles are forbidden.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The query parameters of the printed URL and of a URL that works once.
const TOKEN: &str = "token";
const CODE: &str = "code";
/// How long a browser stays logged in by the token or a one-time code.
const LOGIN_LIFETIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How often an open stream checks that its login was not ended.
const LOGIN_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Cookies of one name that are looked up.
const MAX_COOKIES: usize = 4;

/// The token, the logins, and the host names that the server answers to.
pub struct Auth {
    token: String,
    port: u16,
    logins: LoginStore,
    /// The links of guests, if there may be any.
    shares: Option<ShareStore>,
    codes: OneTimeCodes,
    marks: BrowserMarks,
    /// Set if browsers may drive agents.
    drive: Option<DriveAccess>,
    remote: Option<Remote>,
}

/// What a server needs that other machines can reach.
pub struct RemoteAccess {
    /// Allowed host names (`--name`), with or without a port.
    pub names: Vec<String>,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpAddr>,
    pub password_hash: String,
}

/// Set when the server listens beyond loopback.
struct Remote {
    address: IpAddr,
    names: Vec<String>,
    trusted_proxies: Vec<IpAddr>,
    password: PasswordAuth,
}

/// The login of the browser that sent a request.
struct BrowserLogin {
    cookie: String,
}

impl Auth {
    /// Loopback only.
    pub fn new(token: String, port: u16, logins: LoginStore) -> Auth {
        let (codes, marks) = (OneTimeCodes::default(), BrowserMarks::new(&token));
        Auth { token, port, logins, shares: None, codes, marks, drive: None, remote: None }
    }

    /// For remote clients that know the password, at this address or under these names.
    pub fn remote(token: String, at: SocketAddr, logins: LoginStore, access: RemoteAccess) -> Auth {
        let RemoteAccess { names, trusted_proxies, password_hash } = access;
        let password = PasswordAuth::new(password_hash);
        let remote = Remote { address: at.ip(), names, trusted_proxies, password };
        Auth { remote: Some(remote), ..Auth::new(token, at.port(), logins) }
    }

    /// Lets guests see what was shared with them.
    pub fn with_shares(self, shares: ShareStore) -> Auth {
        Auth { shares: Some(shares), ..self }
    }

    /// What the link of a guest shows, while it is valid.
    pub fn share(&self, token: &str, now: Timestamp) -> Option<Share> {
        self.shares.as_ref()?.find(token, now)
    }

    /// The URL to open, with the token; with a code for driving, if that is possible.
    pub fn address(&self) -> String {
        format!("{}/?{TOKEN}={}{}", self.origin(), self.token, self.drive_code())
    }

    /// The parameter that lets one browser drive agents, if that is possible.
    fn drive_code(&self) -> String {
        let code = self.drive.as_ref().and_then(DriveAccess::issue_code);
        code.map(|code| format!("&{DRIVE}={code}")).unwrap_or_default()
    }

    /// A URL that logs one browser in, once and within a minute. None if the system provides no
    /// random bytes.
    pub fn one_time_address(&self) -> Option<String> {
        let code = self.codes.issue(Instant::now())?;
        Some(format!("{}/?{CODE}={code}{}", self.origin(), self.drive_code()))
    }

    /// Scheme, host and port of this server.
    pub fn origin(&self) -> String {
        let address = self.remote.as_ref().map(|remote| remote.address);
        let host = match address.filter(|address| !address.is_unspecified()) {
            None => "127.0.0.1".to_owned(),
            Some(IpAddr::V4(four)) => four.to_string(),
            Some(IpAddr::V6(six)) => format!("[{six}]"),
        };
        format!("http://{host}:{}", self.port)
    }

    pub(crate) fn password(&self) -> Option<&PasswordAuth> {
        self.remote.as_ref().map(|remote| &remote.password)
    }

    fn is_allowed_host(&self, host: &str) -> bool {
        let (name, port) = split(host);
        let ours = port == Some(self.port);
        if ours && matches!(name, "127.0.0.1" | "localhost" | "[::1]") {
            return true;
        }
        let Some(remote) = &self.remote else { return false };
        // DNS rebinding needs a name: an IP address of ours is always safe.
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let here = |address: IpAddr| remote.address.is_unspecified() || address == remote.address;
        (ours && address.is_ok_and(here)) || self.is_allowed_name(host)
    }

    /// True if the host is one of the allowed names, as written or at our port. A proxy in front of
    /// us has its own port, which browsers omit when it is the default.
    fn is_allowed_name(&self, host: &str) -> bool {
        let (name, port) = split(host);
        let at_our_port = port.is_none_or(|port| port == self.port);
        let names = self.remote.iter().flat_map(|remote| &remote.names);
        names.into_iter().any(|allowed| {
            allowed.eq_ignore_ascii_case(host)
                || (at_our_port && allowed.eq_ignore_ascii_case(name))
        })
    }

    /// True if a page of this origin may send requests to us at `host`: a page of the same host, or
    /// of a name that was given. Other IP addresses may be of other machines.
    fn is_allowed_origin(&self, origin: &str, host: &str) -> bool {
        match origin.split_once("://") {
            Some(("http", from)) => {
                let same = from.eq_ignore_ascii_case(host) && self.is_allowed_host(from);
                same || self.is_allowed_name(from)
            }
            // Only a proxy in front of us terminates TLS, and a proxy has a name.
            Some(("https", host)) => self.is_allowed_name(host),
            Some(_) | None => false,
        }
    }

    /// Browsers share cookies between ports of a host: the port in the name separates instances.
    fn cookie(&self) -> String {
        format!("unspool-{}", self.port)
    }

    /// Logs a browser in. Returns the value of its cookie.
    fn log_in(&self, lifetime: Duration) -> Result<String, Problem> {
        self.logins.add(lifetime, SystemTime::now()).map_err(|error| {
            let what = format!(
                "cannot store the login: {error}; check the folder `logins` in the data folder"
            );
            Problem::internal(what)
        })
    }

    /// The login of the browser that sent a request.
    fn login(&self, headers: &HeaderMap) -> Option<BrowserLogin> {
        let (now, name) = (SystemTime::now(), self.cookie());
        let mut given = cookies(headers, &name).take(MAX_COOKIES);
        let valid = given.find(|one| self.logins.is_valid(one, now))?;
        Some(BrowserLogin { cookie: valid.to_owned() })
    }

    fn has_token(&self, headers: &HeaderMap) -> bool {
        let value = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        // The name of the scheme is case-insensitive (RFC 9110).
        let given = value.and_then(|value| value.split_once(' '));
        given.is_some_and(|(scheme, token)| {
            scheme.eq_ignore_ascii_case("Bearer") && constant_time_eq(token, &self.token)
        })
    }

    /// Completes when the login of a request expires or is ended, for streams that outlive their
    /// request. Never completes for a program that sent the token.
    pub async fn login_ended(&self, headers: HeaderMap) {
        let login = self.login(&headers).filter(|_| !self.has_token(&headers));
        let Some(login) = login else { return std::future::pending().await };
        while self.logins.is_valid(&login.cookie, SystemTime::now()) {
            sleep(LOGIN_CHECK_INTERVAL).await;
        }
    }
}

/// The values of the cookies with this name.
fn cookies<'h>(headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = &'h str> {
    let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = all.flat_map(|value| value.split(';')).filter_map(|one| one.trim().split_once('='));
    pairs.filter(move |(key, _)| *key == name).map(|(_, value)| value)
}

/// The value of a `Set-Cookie` header that keeps a login for this long.
fn login_cookie(auth: &Auth, value: &str, lifetime: Duration) -> String {
    let (name, age) = (auth.cookie(), lifetime.as_secs());
    format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}")
}

/// Splits a `Host` into name and port.
fn split(host: &str) -> (&str, Option<u16>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port.parse().unwrap_or(0))),
        Some(_) | None => (host, None),
    }
}

/// Restricts a redirect target to this server: `//evil.example` would be another host.
fn local_path(path: &str) -> String {
    let path = path.trim_start_matches(['/', '\\']);
    let plain = !path.contains(|c: char| c.is_control() || c == '\\');
    format!("/{}", if plain { path } else { "" })
}

/// Compares in constant time.
fn constant_time_eq(given: &str, secret: &str) -> bool {
    let differs = given.bytes().zip(secret.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == secret.len() && differs == 0
}

/// Middleware: rejects a request, or runs it and adds the security headers.
pub async fn guard<S: Store>(
    State(app): State<Arc<App<S>>>,
    request: Request,
    next: Next,
) -> Response {
    let login = app.auth.login(request.headers());
    let mut response = match reject(&app.auth, &request, login.as_ref()) {
        Some(refusal) => refusal,
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    // `entry`: the page of a guest has the policy of an exported file.
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // `entry`: the login page sets another policy, since its form needs a referrer.
    headers.entry(REFERRER_POLICY).or_insert(HeaderValue::from_static("no-referrer"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache"));
    response
}

fn reject(auth: &Auth, request: &Request, login: Option<&BrowserLogin>) -> Option<Response> {
    let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    if let Some(refusal) = malformed(request).or_else(|| too_large(request)) {
        return Some(refusal.into_response());
    }
    if !text(HOST).is_some_and(|host| auth.is_allowed_host(host)) {
        let what = match auth.remote {
            None => "this server accepts only the hosts 127.0.0.1 and localhost; use one of them",
            Some(_) => {
                "unknown host name; start the server with --name HOST, or use its IP address"
            }
        };
        return Some(Problem::new(StatusCode::MISDIRECTED_REQUEST, what).into_response());
    }
    let upgrade = request.headers().contains_key("upgrade");
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let origin = text(ORIGIN);
    let host = text(HOST).unwrap_or_default();
    let foreign = origin.is_some_and(|origin| !auth.is_allowed_origin(origin, host));
    let path = request.uri().path();
    let for_programs = path == mcp::PATH || path.starts_with("/api");
    if foreign && (upgrade || changes || path == mcp::PATH) {
        let what = "cross-site requests are rejected; use the pages of this server";
        return Some(Problem::new(StatusCode::FORBIDDEN, what).into_response());
    }
    // A browser says where a request comes from. One that does not may be tricked by another site.
    let by_program = auth.has_token(request.headers());
    // A collector has a token of its own kind, which its handlers check, and no browser.
    if changes && is_ship(path) {
        return origin.map(|_| {
            let what = "pages cannot send sessions; use `unspool ship`";
            Problem::new(StatusCode::FORBIDDEN, what).into_response()
        });
    }
    if changes && origin.is_none() && !by_program && for_programs {
        let what = "changes need an Origin header, which browsers send; programs send the token as Authorization: Bearer";
        return Some(Problem::new(StatusCode::FORBIDDEN, what).into_response());
    }
    // The token in the path is all that a guest has, and it opens this one page.
    if !changes && !upgrade && path.starts_with(GUEST_PATH) {
        return None;
    }
    if !changes && !upgrade && matches!(path, health::HEALTHY | health::READY) {
        return None;
    }
    if let Some(answer) = url_login::exchange(auth, request, login) {
        return Some(answer);
    }
    if login.is_some() || by_program {
        return None;
    }
    if auth.password().is_none() {
        let what =
            "not logged in; open the URL that `unspool serve` printed: it contains the token";
        return Some(Problem::new(StatusCode::UNAUTHORIZED, what).into_response());
    }
    // The login page and its assets need no login.
    if path == "/login" || path.starts_with("/assets/") {
        return None;
    }
    let page = text(ACCEPT).is_some_and(|accept| accept.contains("text/html"));
    if page && !upgrade && !changes && !for_programs {
        let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
        let target = format!("/login?to={}", crate::api::percent_encode(&format!("{path}{query}")));
        return Some((StatusCode::SEE_OTHER, [(LOCATION, target)]).into_response());
    }
    let what = "not logged in; log in at /login, or send the token of the data folder as Authorization: Bearer";
    Some(Problem::new(StatusCode::UNAUTHORIZED, what).into_response())
}

/// True for the routes of collectors.
fn is_ship(path: &str) -> bool {
    path == ship::PATH || path == ship::HELLO_PATH
}

#[cfg(test)]
#[path = "auth_tests.rs"]
mod tests;
