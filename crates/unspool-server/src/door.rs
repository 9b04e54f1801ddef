//! Who may come in. The page is for the person who started the program and for nobody else on the
//! machine or in the browser: a token in the printed address becomes a cookie, requests under
//! another host's name are turned away (DNS rebinding), and so are those that another site sends
//! (cross-site requests and sockets).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, HOST, LOCATION, ORIGIN,
    REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use unspool_store::contract::Store;

use crate::App;
use crate::problem::Problem;

/// What pages may do: load what is ours, and nothing else. No script and no style stands in a page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The name of the cookie, and of the token in an address.
const TOKEN: &str = "token";

/// The secret, and the names under which we answer.
pub struct Door {
    token: String,
    port: u16,
}

impl Door {
    pub fn new(token: String, port: u16) -> Door {
        Door { token, port }
    }

    /// A new secret. None where the system gives no random bytes.
    pub fn secret() -> Option<String> {
        let mut bytes = [0; 24];
        getrandom::fill(&mut bytes).ok()?;
        Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The address to be opened.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/?{TOKEN}={}", self.port, self.token)
    }

    fn is_host(&self, host: &str) -> bool {
        let Some((name, port)) = host.rsplit_once(':') else { return false };
        let ours = matches!(name, "127.0.0.1" | "localhost" | "[::1]");
        ours && port.parse() == Ok(self.port)
    }

    fn is_origin(&self, origin: &str) -> bool {
        origin.strip_prefix("http://").is_some_and(|host| self.is_host(host))
    }

    /// Cookies of all ports of a host are one jar: the port tells ours from another instance's.
    fn cookie(&self) -> String {
        format!("unspool-{}", self.port)
    }

    fn is_known(&self, headers: &HeaderMap) -> bool {
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let bearer = text(AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        let name = self.cookie();
        let held = text(COOKIE).into_iter().flat_map(|all| all.split(';'));
        let held = held.filter_map(|one| one.trim().split_once('='));
        let mut told = held.filter(|(key, _)| *key == name).map(|(_, value)| value).chain(bearer);
        told.any(|token| is_same(token, &self.token))
    }
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
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache"));
    response
}

fn turn_away(door: &Door, request: &Request) -> Option<Response> {
    let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    if !text(HOST).is_some_and(|host| door.is_host(host)) {
        let what = "this server answers under 127.0.0.1 and localhost only";
        return Some(Problem::new(StatusCode::MISDIRECTED_REQUEST, what).into_response());
    }
    let upgrade = request.headers().contains_key("upgrade");
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let origin = text(ORIGIN);
    let foreign = origin.is_some_and(|origin| !door.is_origin(origin));
    if foreign && (upgrade || changes) {
        let what = "requests of other sites are not answered";
        return Some(Problem::new(StatusCode::FORBIDDEN, what).into_response());
    }
    if let Some(answer) = let_in(door, request) {
        return Some(answer);
    }
    if !door.is_known(request.headers()) {
        let what = "open the address that `unspool serve` printed: it has the token";
        return Some(Problem::new(StatusCode::UNAUTHORIZED, what).into_response());
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
    // Never to another host: `//elsewhere` would be one.
    let target = format!("/{}", target.trim_start_matches('/'));
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
        let door = Door { token: "t".to_owned(), port: 8123 };
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
    fn the_token_is_compared_whole() {
        assert!(is_same("abc", "abc"));
        assert!(!is_same("ab", "abc") && !is_same("abcd", "abc") && !is_same("", "abc"));
    }
}
