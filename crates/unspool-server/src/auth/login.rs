//! The login page: shows the password form (`form`) and handles its submission.

pub mod template;

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
use unspool_store::store::Store;

use super::password::{LOGIN_LIFETIME, LoginOutcome};
use super::{Auth, local_path};
use crate::App;
use crate::problem::Problem;

/// The largest login form, in bytes.
const MAX_FORM_BYTES: usize = 4096;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LoginForm {
    password: String,
    /// The path to redirect to after login.
    to: String,
}

pub async fn form<S: Store>(State(app): State<Arc<App<S>>>, request: Request) -> Response {
    if app.auth.password().is_none() {
        return crate::pages::not_found().await;
    }
    let fields =
        Query::<LoginForm>::try_from_uri(request.uri()).map(|fields| fields.0).unwrap_or_default();
    page(StatusCode::OK, None, &fields.to)
}

fn page(status: StatusCode, wrong: Option<&str>, to: &str) -> Response {
    let page = template::login(wrong, &local_path(to)).into_string();
    // With `no-referrer` browsers send `Origin: null`, and the check in `submit` would fail.
    let headers = [(CACHE_CONTROL, "no-store"), (REFERRER_POLICY, "same-origin")];
    (status, headers, Html(page)).into_response()
}

/// Handles a submitted password.
pub async fn submit<S: Store>(State(app): State<Arc<App<S>>>, request: Request) -> Response {
    let Some(password) = app.auth.password() else { return crate::pages::not_found().await };
    // Prevents login CSRF.
    if !is_from_our_page(&app.auth, request.headers()) {
        let what = "cross-site logins are rejected; use the page /login of this server";
        return Problem::new(StatusCode::FORBIDDEN, what).into_response();
    }
    let secure = origin(request.headers()).is_some_and(|origin| origin.starts_with("https:"));
    let from = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let from = from.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |from| from.0.ip());
    let fields = match read(request).await {
        Ok(fields) => fields,
        Err(problem) => return problem.into_response(),
    };
    match password.try_password(from, fields.password).await {
        LoginOutcome::Accepted(cookie) => {
            let name = app.auth.login_cookie();
            let secure = if secure { "; Secure" } else { "" };
            let age = LOGIN_LIFETIME.as_secs();
            let cookie = format!(
                "{name}={cookie}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{secure}"
            );
            let headers = [(LOCATION, local_path(&fields.to)), (SET_COOKIE, cookie)];
            (StatusCode::SEE_OTHER, headers).into_response()
        }
        LoginOutcome::WrongPassword => {
            page(StatusCode::UNAUTHORIZED, Some("Wrong password."), &fields.to)
        }
        LoginOutcome::Wait(wait) => {
            let seconds = wait.as_secs() + 1;
            let what = format!("Too many wrong passwords; wait {seconds} s and try again.");
            let page = page(StatusCode::TOO_MANY_REQUESTS, Some(&what), &fields.to);
            ([(RETRY_AFTER, seconds.to_string())], page).into_response()
        }
    }
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
    origin(headers).is_some_and(|origin| auth.is_allowed_origin(origin))
}
