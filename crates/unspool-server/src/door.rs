//! Who may come in. The page is for the person who started the program and for nobody else on the
//! machine or in the browser: a token in the printed address becomes a cookie, requests under
//! another host's name are turned away (DNS rebinding), and so are those that another site sends
//! (cross-site requests and sockets). Where it can be reached from elsewhere, there is a password.

mod gate;
pub mod login;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, COOKIE, HOST,
    LOCATION, ORIGIN, REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use unspool_store::contract::Store;

use crate::App;
use crate::problem::Problem;
use gate::Gate;

pub use gate::{hash_password, is_password_hash};

/// What pages may do: load what is ours, and nothing else. No script and no style stands in a page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The name of the cookie, and of the token in an address.
const TOKEN: &str = "token";

/// Nothing that is sent to us is longer than this, in bytes: all of it, its address, its headers.
const LONGEST: u64 = 64 * 1024;
const LONGEST_ADDRESS: usize = 8 * 1024;
const LONGEST_HEADERS: usize = 32 * 1024;

/// The secret, and the names under which we answer.
pub struct Door {
    token: String,
    port: u16,
    elsewhere: Option<Elsewhere>,
}

/// What holds where others can reach us.
struct Elsewhere {
    address: IpAddr,
    /// Names under which we are known, with a port or without.
    names: Vec<String>,
    gate: Gate,
}

impl Door {
    /// For this machine alone.
    pub fn new(token: String, port: u16) -> Door {
        Door { token, port, elsewhere: None }
    }

    /// For whoever can reach this address, or one of these names, and knows the password.
    pub fn elsewhere(token: String, at: SocketAddr, names: Vec<String>, password: String) -> Door {
        let elsewhere = Elsewhere { address: at.ip(), names, gate: Gate::new(password) };
        Door { token, port: at.port(), elsewhere: Some(elsewhere) }
    }

    /// A new secret. None where the system gives no random bytes.
    pub fn secret() -> Option<String> {
        let mut bytes = [0; 24];
        getrandom::fill(&mut bytes).ok()?;
        Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The address to be opened.
    pub fn address(&self) -> String {
        format!("{}/?{TOKEN}={}", self.origin(), self.token)
    }

    /// What every address here begins with.
    pub fn origin(&self) -> String {
        let address = self.elsewhere.as_ref().map(|elsewhere| elsewhere.address);
        let host = match address.filter(|address| !address.is_unspecified()) {
            None => "127.0.0.1".to_owned(),
            Some(IpAddr::V4(four)) => four.to_string(),
            Some(IpAddr::V6(six)) => format!("[{six}]"),
        };
        format!("http://{host}:{}", self.port)
    }

    pub(crate) fn gate(&self) -> Option<&Gate> {
        self.elsewhere.as_ref().map(|elsewhere| &elsewhere.gate)
    }

    fn is_host(&self, host: &str) -> bool {
        let (name, port) = split(host);
        let ours = port == Some(self.port);
        if ours && matches!(name, "127.0.0.1" | "localhost" | "[::1]") {
            return true;
        }
        let Some(elsewhere) = &self.elsewhere else { return false };
        // An address is nobody's name: no page of another's can be under it.
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let here =
            |address: IpAddr| elsewhere.address.is_unspecified() || address == elsewhere.address;
        (ours && address.is_ok_and(here)) || self.is_name(host)
    }

    /// Whether it is one of the names that were given: as it was given, or at our port. A proxy in
    /// front of us has a port of its own, which a browser leaves out.
    fn is_name(&self, host: &str) -> bool {
        let (name, port) = split(host);
        let at_our_port = port.is_none_or(|port| port == self.port);
        let names = self.elsewhere.iter().flat_map(|elsewhere| &elsewhere.names);
        names.into_iter().any(|known| {
            known.eq_ignore_ascii_case(host) || (at_our_port && known.eq_ignore_ascii_case(name))
        })
    }

    fn is_origin(&self, origin: &str) -> bool {
        match origin.split_once("://") {
            Some(("http", host)) => self.is_host(host),
            // Only a proxy in front of us speaks it.
            Some(("https", host)) => self.is_name(host),
            Some(_) | None => false,
        }
    }

    /// Cookies of all ports of a host are one jar: the port tells ours from another instance's.
    fn cookie(&self) -> String {
        format!("unspool-{}", self.port)
    }

    fn login_cookie(&self) -> String {
        format!("unspool-login-{}", self.port)
    }

    fn is_known(&self, headers: &HeaderMap) -> bool {
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let bearer = text(AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        let held = text(COOKIE).into_iter().flat_map(|all| all.split(';'));
        let held: Vec<(&str, &str)> = held.filter_map(|one| one.trim().split_once('=')).collect();
        let under = |name: String| {
            held.iter().filter(move |(key, _)| *key == name).map(|(_, value)| *value)
        };
        let mut told = under(self.cookie()).chain(bearer);
        told.any(|token| is_same(token, &self.token))
            || self
                .gate()
                .is_some_and(|gate| under(self.login_cookie()).any(|cookie| gate.is_inside(cookie)))
    }
}

/// A host's name, and its port where there is one.
fn split(host: &str) -> (&str, Option<u16>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port.parse().unwrap_or(0))),
        Some(_) | None => (host, None),
    }
}

/// A path here, whatever somebody wrote: `//elsewhere` would be another host.
fn at_home(path: &str) -> String {
    let path = path.trim_start_matches(['/', '\\']);
    let plain = !path.contains(|c: char| c.is_control() || c == '\\');
    format!("/{}", if plain { path } else { "" })
}

/// Takes as long for a wrong secret as for the right one.
fn is_same(told: &str, secret: &str) -> bool {
    let differs = told.bytes().zip(secret.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    told.len() == secret.len() && differs == 0
}

/// Looks at every request before anything else does.
pub async fn guard<S: Store>(
    State(app): State<Arc<App<S>>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match turn_away(&app.door, &request) {
        Some(refusal) => refusal,
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // A form that is sent without one says nothing of where it stood.
    headers.entry(REFERRER_POLICY).or_insert(HeaderValue::from_static("no-referrer"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache"));
    response
}

fn turn_away(door: &Door, request: &Request) -> Option<Response> {
    let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    if let Some(refusal) = too_much(request) {
        return Some(refusal.into_response());
    }
    if !text(HOST).is_some_and(|host| door.is_host(host)) {
        let what = match door.elsewhere {
            None => {
                "this server answers under 127.0.0.1 and localhost only; ask it under one of them"
            }
            Some(_) => {
                "this server does not answer under that name; start it with --name HOST, or use its address"
            }
        };
        return Some(Problem::new(StatusCode::MISDIRECTED_REQUEST, what).into_response());
    }
    let upgrade = request.headers().contains_key("upgrade");
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let origin = text(ORIGIN);
    let foreign = origin.is_some_and(|origin| !door.is_origin(origin));
    if foreign && (upgrade || changes) {
        let what = "requests of other sites are not answered; use the pages of this server";
        return Some(Problem::new(StatusCode::FORBIDDEN, what).into_response());
    }
    if let Some(answer) = let_in(door, request) {
        return Some(answer);
    }
    if door.is_known(request.headers()) {
        return None;
    }
    if door.gate().is_none() {
        let what = "open the address that `unspool serve` printed: it has the token";
        return Some(Problem::new(StatusCode::UNAUTHORIZED, what).into_response());
    }
    // The page that asks for the password, and what it looks like, are for everybody.
    let path = request.uri().path();
    if path == "/login" || path.starts_with("/assets/") {
        return None;
    }
    let page = text(ACCEPT).is_some_and(|accept| accept.contains("text/html"));
    if page && !upgrade && !changes && !path.starts_with("/api") {
        let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
        let target = format!("/login?to={}", crate::api::escaped(&format!("{path}{query}")));
        return Some((StatusCode::SEE_OTHER, [(LOCATION, target)]).into_response());
    }
    let what = "log in at /login, or send the token of the data folder as Authorization: Bearer";
    Some(Problem::new(StatusCode::UNAUTHORIZED, what).into_response())
}

/// Nobody has a reason to send so much.
fn too_much(request: &Request) -> Option<Problem> {
    let headers = request.headers();
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if length.is_some_and(|length| length.parse::<u64>().is_ok_and(|length| length > LONGEST)) {
        let what = format!("a request has {LONGEST} bytes at most; send less");
        return Some(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, what));
    }
    let uri = request.uri();
    if uri.path().len() + uri.query().map_or(0, str::len) > LONGEST_ADDRESS {
        let what = format!("an address has {LONGEST_ADDRESS} bytes at most; ask for less at once");
        return Some(Problem::new(StatusCode::URI_TOO_LONG, what));
    }
    let size: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if size > LONGEST_HEADERS {
        let what =
            format!("headers have {LONGEST_HEADERS} bytes at most; send fewer, or delete cookies");
        return Some(Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, what));
    }
    None
}

/// The address with the token leads to the same page without it, and leaves a cookie.
fn let_in(door: &Door, request: &Request) -> Option<Response> {
    let uri = request.uri();
    let mut asked: Vec<&str> = uri.query().unwrap_or_default().split('&').collect();
    let at = asked.iter().position(|field| field.starts_with("token="))?;
    let told = asked.remove(at).strip_prefix("token=")?;
    if !is_same(told, &door.token) {
        return None;
    }
    let query = asked.join("&");
    let target =
        if query.is_empty() { uri.path().to_owned() } else { format!("{}?{query}", uri.path()) };
    let target = at_home(&target);
    let name = door.cookie();
    let cookie = format!("{name}={told}; HttpOnly; SameSite=Strict; Path=/; Max-Age=31536000");
    let headers = [(LOCATION, target), (SET_COOKIE, cookie)];
    Some((StatusCode::SEE_OTHER, headers).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_answered() {
        let door = Door::new("t".to_owned(), 8123);
        for ours in ["127.0.0.1:8123", "localhost:8123", "[::1]:8123"] {
            assert!(door.is_host(ours), "{ours}");
            assert!(door.is_origin(&format!("http://{ours}")), "{ours}");
        }
        for other in ["evil.example:8123", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.evil:8123", ""] {
            assert!(!door.is_host(other), "{other}");
        }
        for other in ["https://127.0.0.1:8123", "null", "http://evil.example"] {
            assert!(!door.is_origin(other), "{other}");
        }
    }

    #[test]
    fn elsewhere_the_names_that_were_given_are_answered_too() {
        let names = vec!["desk.example".to_owned(), "proxy.example:8443".to_owned()];
        let at = |address: &str| {
            let at = SocketAddr::new(address.parse().unwrap(), 8123);
            Door::elsewhere("t".to_owned(), at, names.clone(), String::new())
        };
        let one = at("192.0.2.5");
        for ours in [
            "127.0.0.1:8123",
            "192.0.2.5:8123",
            "desk.example:8123",
            "DESK.example",
            "proxy.example:8443",
        ] {
            assert!(one.is_host(ours), "{ours}");
            assert!(one.is_origin(&format!("http://{ours}")), "{ours}");
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
            assert!(!one.is_host(other), "{other}");
        }
        // TLS is a proxy's, and a proxy has a name.
        assert!(one.is_origin("https://desk.example") && !one.is_origin("https://192.0.2.5:8123"));
        assert!(one.address().starts_with("http://192.0.2.5:8123/?token="));
        // Every address that is ours, and no name that was not given.
        let all = at("0.0.0.0");
        assert!(all.is_host("192.0.2.6:8123") && all.is_host("[2001:db8::1]:8123"));
        assert!(!all.is_host("evil.example:8123") && !all.is_host("192.0.2.6:80"));
        assert!(all.address().starts_with("http://127.0.0.1:8123/?token="));
        assert!(at("2001:db8::5").address().starts_with("http://[2001:db8::5]:8123/?token="));
    }

    #[test]
    fn no_path_leads_to_another_host() {
        for (told, meant) in [
            ("/s/x?a=1", "/s/x?a=1"),
            ("//evil.example/x", "/evil.example/x"),
            ("\\\\evil.example", "/evil.example"),
            ("/\\evil.example", "/evil.example"),
            ("http://evil.example", "/http://evil.example"),
            ("", "/"),
            ("/a\r\nb", "/"),
        ] {
            assert_eq!(at_home(told), meant);
        }
    }

    #[test]
    fn the_token_is_compared_whole() {
        assert!(is_same("abc", "abc"));
        assert!(!is_same("ab", "abc") && !is_same("abcd", "abc") && !is_same("", "abc"));
    }
}
