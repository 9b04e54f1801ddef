//! The login page: shows the password form (`form`) and handles its submission. The logout page ends
//! the login of the browser that it is sent from.

pub mod template;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Form;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, FromRequest, Query, Request, State};
use axum::http::header::{
    CACHE_CONTROL, HOST, LOCATION, ORIGIN, REFERRER_POLICY, RETRY_AFTER, SET_COOKIE,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{AppendHeaders, Html, IntoResponse, Response};
use serde::Deserialize;
use unspool_store::store::Store;

use super::client::{Browser, Client, LoginHistory, client_network};
use super::drive::{DriveAccess, key_fragment};
use super::password::PasswordOutcome;
use super::{Auth, cookies, local_path, login_cookie};
use crate::App;
use crate::problem::Problem;

/// The largest login form, in bytes.
const MAX_FORM_BYTES: usize = 4096;
/// How long a login by password is valid. Remote clients often share a machine with others.
const PASSWORD_LOGIN_LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How long the mark of a browser is kept.
const MARK_LIFETIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LoginForm {
    password: String,
    /// The path to redirect to after login.
    to: String,
}

pub async fn form<S: Store>(State(app): State<Arc<App<S>>>, request: Request) -> Response {
    if app.auth.password().is_none() {
        return crate::pages::not_found(request.headers().clone()).await;
    }
    let fields =
        Query::<LoginForm>::try_from_uri(request.uri()).map(|fields| fields.0).unwrap_or_default();
    let page = page(StatusCode::OK, None, &fields.to);
    if browser(&app.auth, request.headers()).is_some() {
        return page;
    }
    match app.auth.marks.issue() {
        Some(mark) => {
            let security = security(request.headers());
            (AppendHeaders([(SET_COOKIE, mark_cookie(&app.auth, &mark, security))]), page)
                .into_response()
        }
        // Without a mark the client is counted by its network.
        None => page,
    }
}

fn page(status: StatusCode, wrong: Option<&str>, to: &str) -> Response {
    let page = template::login(wrong, &local_path(to)).into_string();
    // With `no-referrer` browsers send `Origin: null`, and the check in `submit` would fail.
    let headers = [(CACHE_CONTROL, "no-store"), (REFERRER_POLICY, "same-origin")];
    (status, headers, Html(page)).into_response()
}

/// Handles a submitted password.
pub async fn submit<S: Store>(State(app): State<Arc<App<S>>>, request: Request) -> Response {
    let Some(password) = app.auth.password() else {
        return crate::pages::not_found(request.headers().clone()).await;
    };
    // Prevents login CSRF.
    if !is_from_our_page(&app.auth, request.headers()) {
        let what = "cross-site logins are rejected; use the page /login of this server";
        return Problem::new(StatusCode::FORBIDDEN, what).into_response();
    }
    let security = security(request.headers());
    let client = client(&app.auth, &request);
    let fields = match read(request).await {
        Ok(fields) => fields,
        Err(problem) => return problem.into_response(),
    };
    match password.try_password(&client, fields.password).await {
        PasswordOutcome::Right => match app.auth.log_in(PASSWORD_LOGIN_LIFETIME) {
            Ok(cookie) => accept(&app.auth, &client, &cookie, security, &fields.to),
            Err(problem) => problem.into_response(),
        },
        PasswordOutcome::Wrong => {
            page(StatusCode::UNAUTHORIZED, Some("Wrong password."), &fields.to)
        }
        PasswordOutcome::Wait(wait) => {
            let seconds = wait.as_secs() + 1;
            let what = format!("Too many wrong passwords; wait {seconds} s and try again.");
            let page = page(StatusCode::TOO_MANY_REQUESTS, Some(&what), &fields.to);
            ([(RETRY_AFTER, seconds.to_string())], page).into_response()
        }
    }
}

/// Sets the cookies of a browser that logged in.
fn accept(auth: &Auth, client: &Client, cookie: &str, security: Security, to: &str) -> Response {
    let login = login_cookie(auth, cookie, PASSWORD_LOGIN_LIFETIME) + security.attribute();
    let driver = auth.drive.as_ref().and_then(DriveAccess::add_browser);
    let fragment = driver.as_ref().map(key_fragment).unwrap_or_default();
    let mut headers = vec![(LOCATION, local_path(to) + &fragment), (SET_COOKIE, login)];
    if let Some(driver) = driver {
        headers.push((SET_COOKIE, auth.drive_cookie(&driver.cookie) + security.attribute()));
    }
    if let Some(browser) = &client.browser {
        let mark = auth.marks.sign(&browser.id, LoginHistory::LoggedIn);
        headers.push((SET_COOKIE, mark_cookie(auth, &mark, security)));
    }
    (StatusCode::SEE_OTHER, AppendHeaders(headers)).into_response()
}

pub async fn logout_form() -> Response {
    let headers = [(CACHE_CONTROL, "no-store"), (REFERRER_POLICY, "same-origin")];
    (headers, Html(template::logout().into_string())).into_response()
}

/// Ends the login of this browser.
pub async fn log_out<S: Store>(State(app): State<Arc<App<S>>>, headers: HeaderMap) -> Response {
    if !is_from_our_page(&app.auth, &headers) {
        let what = "cross-site requests are rejected; use the page /logout of this server";
        return Problem::new(StatusCode::FORBIDDEN, what).into_response();
    }
    if let Some(login) = app.auth.login(&headers)
        && let Err(error) = app.auth.logins.remove(&login.cookie)
    {
        let what = format!(
            "cannot end the login: {error}; `unspool serve --revoke-logins` ends all logins"
        );
        return Problem::internal(what).into_response();
    }
    if let (Some(drive), Some(driver)) = (&app.auth.drive, app.auth.driver(&headers)) {
        drive.remove_browser(&driver.cookie);
    }
    let cookie = login_cookie(&app.auth, "", Duration::ZERO);
    let headers = [(SET_COOKIE, cookie), (CACHE_CONTROL, "no-store".to_owned())];
    (headers, Html(template::logged_out().into_string())).into_response()
}

/// Whether the browser reached the server over TLS, through a proxy.
#[derive(Clone, Copy)]
enum Security {
    Tls,
    Plain,
}

impl Security {
    fn attribute(self) -> &'static str {
        match self {
            Security::Tls => "; Secure",
            Security::Plain => "",
        }
    }
}

fn security(headers: &HeaderMap) -> Security {
    let tls = origin(headers).is_some_and(|origin| origin.starts_with("https:"));
    if tls { Security::Tls } else { Security::Plain }
}

fn mark_name(auth: &Auth) -> String {
    format!("unspool-browser-{}", auth.port)
}

/// `Lax`: a link from another site leads to the login page as well, and must not replace the mark.
fn mark_cookie(auth: &Auth, mark: &str, security: Security) -> String {
    let (name, age) = (mark_name(auth), MARK_LIFETIME.as_secs());
    let secure = security.attribute();
    format!("{name}={mark}; HttpOnly; SameSite=Lax; Path=/login; Max-Age={age}{secure}")
}

fn browser(auth: &Auth, headers: &HeaderMap) -> Option<Browser> {
    cookies(headers, &mark_name(auth)).find_map(|mark| auth.marks.verify(mark))
}

fn client(auth: &Auth, request: &Request) -> Client {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip());
    let proxies = auth.remote.as_ref().map(|remote| remote.trusted_proxies.as_slice());
    let network = client_network(peer, proxies.unwrap_or_default(), request.headers());
    Client { network, browser: browser(auth, request.headers()) }
}

async fn read(request: Request) -> Result<LoginForm, Problem> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, MAX_FORM_BYTES).await.map_err(|_| {
        let what = format!("the login form is too large: the limit is {MAX_FORM_BYTES} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, what)
    })?;
    let request = Request::from_parts(parts, Body::from(body));
    let form = Form::<LoginForm>::from_request(request, &()).await;
    form.map(|form| form.0).map_err(|error| {
        Problem::new(error.status(), format!("{}; use the form on /login", error.body_text()))
    })
}

fn origin(headers: &HeaderMap) -> Option<&str> {
    headers.get(ORIGIN).and_then(|value| value.to_str().ok())
}

fn is_from_our_page(auth: &Auth, headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
    origin(headers).is_some_and(|origin| auth.is_allowed_origin(origin, host))
}
