//! The login page: shows the password form (`form`) and handles its submission.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Form;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, FromRequest, Query, Request, State};
use axum::http::header::{
    CACHE_CONTROL, LOCATION, ORIGIN, REFERRER_POLICY, RETRY_AFTER, SET_COOKIE,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use serde::Deserialize;
use unspool_render::page;
use unspool_store::store::Store;

use super::gate::{HOLDS, Tried};
use super::{Door, at_home};
use crate::App;
use crate::problem::Problem;

/// The largest login form, in bytes.
const LONGEST: usize = 4096;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Told {
    password: String,
    /// The path to redirect to after login.
    to: String,
}

pub async fn form<S: Store>(State(app): State<Arc<App<S>>>, request: Request) -> Response {
    if app.door.gate().is_none() {
        return crate::pages::nothing().await;
    }
    let told = Query::<Told>::try_from_uri(request.uri()).map(|told| told.0).unwrap_or_default();
    page(StatusCode::OK, None, &told.to)
}

fn page(status: StatusCode, wrong: Option<&str>, to: &str) -> Response {
    let page = page::login(wrong, &at_home(to)).into_string();
    // With `no-referrer` browsers send `Origin: null`, and the check in `submit` would fail.
    let headers = [(CACHE_CONTROL, "no-store"), (REFERRER_POLICY, "same-origin")];
    (status, headers, Html(page)).into_response()
}

/// Handles a submitted password.
pub async fn enter<S: Store>(State(app): State<Arc<App<S>>>, request: Request) -> Response {
    let Some(gate) = app.door.gate() else { return crate::pages::nothing().await };
    // Prevents login CSRF.
    if !is_from_our_page(&app.door, request.headers()) {
        let what = "cross-site logins are rejected; use the page /login of this server";
        return Problem::new(StatusCode::FORBIDDEN, what).into_response();
    }
    let secure = origin(request.headers()).is_some_and(|origin| origin.starts_with("https:"));
    let from = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let from = from.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |from| from.0.ip());
    let told = match read(request).await {
        Ok(told) => told,
        Err(problem) => return problem.into_response(),
    };
    match gate.try_password(from, told.password).await {
        Tried::Welcome(cookie) => {
            let name = app.door.login_cookie();
            let secure = if secure { "; Secure" } else { "" };
            let age = HOLDS.as_secs();
            let cookie = format!(
                "{name}={cookie}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{secure}"
            );
            let headers = [(LOCATION, at_home(&told.to)), (SET_COOKIE, cookie)];
            (StatusCode::SEE_OTHER, headers).into_response()
        }
        Tried::Wrong => page(StatusCode::UNAUTHORIZED, Some("Wrong password."), &told.to),
        Tried::Wait(wait) => {
            let seconds = wait.as_secs() + 1;
            let what = format!("Too many wrong passwords; wait {seconds} s and try again.");
            let page = page(StatusCode::TOO_MANY_REQUESTS, Some(&what), &told.to);
            ([(RETRY_AFTER, seconds.to_string())], page).into_response()
        }
    }
}

async fn read(request: Request) -> Result<Told, Problem> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, LONGEST).await.map_err(|_| {
        let what = format!("the login form is too large: the limit is {LONGEST} bytes");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, what)
    })?;
    let request = Request::from_parts(parts, Body::from(body));
    let form = Form::<Told>::from_request(request, &()).await;
    form.map(|form| form.0).map_err(|error| {
        Problem::new(error.status(), format!("{}; use the form on /login", error.body_text()))
    })
}

fn origin(headers: &HeaderMap) -> Option<&str> {
    headers.get(ORIGIN).and_then(|value| value.to_str().ok())
}

fn is_from_our_page(door: &Door, headers: &HeaderMap) -> bool {
    origin(headers).is_some_and(|origin| door.is_origin(origin))
}
