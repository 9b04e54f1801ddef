//! Authentication and request checks, run before every handler (`guard`).
//!
//! The server is for the person who started it, not for other users of the machine or other sites
//! in the browser. The token in the printed URL becomes a cookie. Requests with a foreign `Host`
//! (DNS rebinding) and cross-site requests and sockets are rejected. When the server listens beyond
//! loopback, clients log in with a password.

pub mod login;
mod password;
mod request_limits;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, HOST, LOCATION, ORIGIN,
    REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use unspool_store::store::Store;

use crate::App;
use crate::problem::Problem;
use password::PasswordAuth;
use request_limits::{malformed, too_large};

pub use password::{hash_password, is_password_hash};

/// Pages load only our own assets; inline scripts and styles are forbidden.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The query parameter of the printed URL.
const TOKEN: &str = "token";

/// The token, and the host names that the server answers to.
pub struct Auth {
    token: String,
    port: u16,
    remote: Option<RemoteAccess>,
}

/// Set when the server listens beyond loopback.
struct RemoteAccess {
    address: IpAddr,
    /// Allowed host names (`--name`), with or without a port.
    names: Vec<String>,
    password: PasswordAuth,
}

impl Auth {
    /// Loopback only.
    pub fn new(token: String, port: u16) -> Auth {
        Auth { token, port, remote: None }
    }

    /// For remote clients that know the password, at this address or under these names.
    pub fn remote(token: String, at: SocketAddr, names: Vec<String>, password: String) -> Auth {
        let remote =
            RemoteAccess { address: at.ip(), names, password: PasswordAuth::new(password) };
        Auth { token, port: at.port(), remote: Some(remote) }
    }

    /// A new random token. None if the system provides no random bytes.
    pub fn secret() -> Option<String> {
        let mut bytes = [0; 24];
        getrandom::fill(&mut bytes).ok()?;
        Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The URL to open, with the token.
    pub fn address(&self) -> String {
        format!("{}/?{TOKEN}={}", self.origin(), self.token)
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

    fn is_allowed_origin(&self, origin: &str) -> bool {
        match origin.split_once("://") {
            Some(("http", host)) => self.is_allowed_host(host),
            // Only a proxy in front of us terminates TLS, and a proxy has a name.
            Some(("https", host)) => self.is_allowed_name(host),
            Some(_) | None => false,
        }
    }

    /// Browsers share cookies between ports of a host: the port in the name separates instances.
    fn cookie(&self) -> String {
        format!("unspool-{}", self.port)
    }

    fn login_cookie(&self) -> String {
        format!("unspool-login-{}", self.port)
    }

    fn is_authenticated(&self, headers: &HeaderMap) -> bool {
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let bearer = text(AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        let cookies = text(COOKIE).into_iter().flat_map(|all| all.split(';'));
        let cookies: Vec<(&str, &str)> =
            cookies.filter_map(|one| one.trim().split_once('=')).collect();
        let cookies_named = |name: String| {
            cookies.iter().filter(move |(key, _)| *key == name).map(|(_, value)| *value)
        };
        let mut given = cookies_named(self.cookie()).chain(bearer);
        given.any(|token| constant_time_eq(token, &self.token))
            || self.password().is_some_and(|password| {
                cookies_named(self.login_cookie()).any(|cookie| password.is_logged_in(cookie))
            })
    }
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
    let mut response = match reject(&app.auth, &request) {
        Some(refusal) => refusal,
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // `entry`: the login page sets another policy, since its form needs a referrer.
    headers.entry(REFERRER_POLICY).or_insert(HeaderValue::from_static("no-referrer"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache"));
    response
}

fn reject(auth: &Auth, request: &Request) -> Option<Response> {
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
    let foreign = origin.is_some_and(|origin| !auth.is_allowed_origin(origin));
    if foreign && (upgrade || changes) {
        let what = "cross-site requests are rejected; use the pages of this server";
        return Some(Problem::new(StatusCode::FORBIDDEN, what).into_response());
    }
    if let Some(answer) = accept_token(auth, request) {
        return Some(answer);
    }
    if auth.is_authenticated(request.headers()) {
        return None;
    }
    if auth.password().is_none() {
        let what =
            "not logged in; open the URL that `unspool serve` printed: it contains the token";
        return Some(Problem::new(StatusCode::UNAUTHORIZED, what).into_response());
    }
    // The login page and its assets need no login.
    let path = request.uri().path();
    if path == "/login" || path.starts_with("/assets/") {
        return None;
    }
    let page = text(ACCEPT).is_some_and(|accept| accept.contains("text/html"));
    if page && !upgrade && !changes && !path.starts_with("/api") {
        let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
        let target = format!("/login?to={}", crate::api::percent_encode(&format!("{path}{query}")));
        return Some((StatusCode::SEE_OTHER, [(LOCATION, target)]).into_response());
    }
    let what = "not logged in; log in at /login, or send the token of the data folder as Authorization: Bearer";
    Some(Problem::new(StatusCode::UNAUTHORIZED, what).into_response())
}

/// Exchanges a valid `token` parameter for a cookie and redirects to the URL without it.
fn accept_token(auth: &Auth, request: &Request) -> Option<Response> {
    let uri = request.uri();
    let mut fields: Vec<&str> = uri.query().unwrap_or_default().split('&').collect();
    let at = fields.iter().position(|field| field.starts_with("token="))?;
    let given = fields.remove(at).strip_prefix("token=")?;
    if !constant_time_eq(given, &auth.token) {
        return None;
    }
    let query = fields.join("&");
    let target =
        if query.is_empty() { uri.path().to_owned() } else { format!("{}?{query}", uri.path()) };
    let target = local_path(&target);
    let name = auth.cookie();
    let cookie = format!("{name}={given}; HttpOnly; SameSite=Strict; Path=/; Max-Age=31536000");
    let headers = [(LOCATION, target), (SET_COOKIE, cookie)];
    Some((StatusCode::SEE_OTHER, headers).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_answered() {
        let auth = Auth::new("t".to_owned(), 8123);
        for ours in ["127.0.0.1:8123", "localhost:8123", "[::1]:8123"] {
            assert!(auth.is_allowed_host(ours), "{ours}");
            assert!(auth.is_allowed_origin(&format!("http://{ours}")), "{ours}");
        }
        for other in ["evil.example:8123", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.evil:8123", ""] {
            assert!(!auth.is_allowed_host(other), "{other}");
        }
        for other in ["https://127.0.0.1:8123", "null", "http://evil.example"] {
            assert!(!auth.is_allowed_origin(other), "{other}");
        }
    }

    #[test]
    fn elsewhere_the_names_that_were_given_are_answered_too() {
        let names = vec!["desk.example".to_owned(), "proxy.example:8443".to_owned()];
        let at = |address: &str| {
            let at = SocketAddr::new(address.parse().unwrap(), 8123);
            Auth::remote("t".to_owned(), at, names.clone(), String::new())
        };
        let one = at("192.0.2.5");
        for ours in [
            "127.0.0.1:8123",
            "192.0.2.5:8123",
            "desk.example:8123",
            "DESK.example",
            "proxy.example:8443",
        ] {
            assert!(one.is_allowed_host(ours), "{ours}");
            assert!(one.is_allowed_origin(&format!("http://{ours}")), "{ours}");
        }
        for other in [
            "192.0.2.6:8123",
            "192.0.2.5",
            "192.0.2.5:80",
            "desk.example:80",
            "evil.example:8123",
            "proxy.example",
            "[::1",
            ":8123",
            "a.desk.example",
        ] {
            assert!(!one.is_allowed_host(other), "{other}");
        }
        // Only a proxy terminates TLS, and a proxy has a name.
        assert!(
            one.is_allowed_origin("https://desk.example")
                && !one.is_allowed_origin("https://192.0.2.5:8123")
        );
        assert!(one.address().starts_with("http://192.0.2.5:8123/?token="));
        // 0.0.0.0: any IP address, but no name that was not allowed.
        let all = at("0.0.0.0");
        assert!(all.is_allowed_host("192.0.2.6:8123") && all.is_allowed_host("[2001:db8::1]:8123"));
        assert!(!all.is_allowed_host("evil.example:8123") && !all.is_allowed_host("192.0.2.6:80"));
        assert!(all.address().starts_with("http://127.0.0.1:8123/?token="));
        assert!(at("2001:db8::5").address().starts_with("http://[2001:db8::5]:8123/?token="));
    }

    #[test]
    fn no_path_leads_to_another_host() {
        for (given, meant) in [
            ("/s/x?a=1", "/s/x?a=1"),
            ("//evil.example/x", "/evil.example/x"),
            ("\\\\evil.example", "/evil.example"),
            ("/\\evil.example", "/evil.example"),
            ("http://evil.example", "/http://evil.example"),
            ("", "/"),
            ("/a\r\nb", "/"),
        ] {
            assert_eq!(local_path(given), meant);
        }
    }

    #[test]
    fn the_token_is_compared_whole() {
        assert!(constant_time_eq("abc", "abc"));
        assert!(
            !constant_time_eq("ab", "abc")
                && !constant_time_eq("abcd", "abc")
                && !constant_time_eq("", "abc")
        );
    }
}
