//! Logs a browser in by a secret in its URL: the token, or a one-time code. The answer sets the
//! browser's cookie and redirects to the URL without the secret.

use std::time::Instant;

use axum::extract::Request;
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{Method, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Response};

use super::drive::{Driver, key_fragment};
use super::one_time_code::CodeUse;
use super::{
    Auth, BrowserLogin, CODE, DRIVE, LOGIN_LIFETIME, TOKEN, constant_time_eq, local_path,
    login_cookie,
};
use crate::problem::Problem;

/// The answer to a request whose URL has a valid secret. None if it has none.
pub fn exchange(auth: &Auth, request: &Request, login: Option<&BrowserLogin>) -> Option<Response> {
    let outcome = match (secret(request, TOKEN), secret(request, CODE)) {
        (Some(token), _) if constant_time_eq(token, &auth.token) => log_in(auth, login),
        // A HEAD request shows a page to nobody, and would use the code up.
        (None, Some(code)) if request.method() == Method::GET => use_code(auth, code, login)?,
        // A browser that is logged in gets the right to drive.
        (None, None) if login.is_some() && secret(request, DRIVE).is_some() => log_in(auth, login),
        (Some(_) | None, _) => return None,
    };
    let answer = outcome.map(|cookie| {
        let cookie = (SET_COOKIE, login_cookie(auth, &cookie, LOGIN_LIFETIME));
        let driver = drive(auth, request);
        let fragment = driver.as_ref().map(key_fragment).unwrap_or_default();
        let drives = driver.map(|driver| (SET_COOKIE, auth.drive_cookie(&driver.cookie)));
        let location = (LOCATION, target(request) + &fragment);
        let headers: Vec<_> = [location, cookie].into_iter().chain(drives).collect();
        (StatusCode::SEE_OTHER, AppendHeaders(headers))
    });
    Some(answer.into_response())
}

/// The secrets with which the browser drives agents, for the code in its URL.
fn drive(auth: &Auth, request: &Request) -> Option<Driver> {
    let code = secret(request, DRIVE).filter(|_| request.method() == Method::GET)?;
    auth.drive.as_ref()?.exchange(code, auth.driver(request.headers()).as_ref())
}

/// The cookie of the browser's login: the one that it has, or a new one.
fn log_in(auth: &Auth, login: Option<&BrowserLogin>) -> Result<String, Problem> {
    login.map_or_else(|| auth.log_in(LOGIN_LIFETIME), |login| Ok(login.cookie.clone()))
}

/// None if the code is invalid: the request is then handled as if it had none.
fn use_code(
    auth: &Auth,
    code: &str,
    login: Option<&BrowserLogin>,
) -> Option<Result<String, Problem>> {
    match auth.codes.exchange(code, Instant::now(), || log_in(auth, login)) {
        Err(problem) => Some(Err(problem)),
        Ok(CodeUse::First(cookie)) => Some(Ok(cookie)),
        Ok(CodeUse::Repeated(cookie)) if login.is_some_and(|login| login.cookie == cookie) => {
            Some(Ok(cookie))
        }
        Ok(CodeUse::Repeated(cookie)) => {
            // If it cannot be removed, it expires.
            let _ = auth.logins.remove(&cookie);
            let what = "this login link works once and was already used: the browser that used it \
                        is logged out; open the URL that `unspool serve` printed";
            Some(Err(Problem::new(StatusCode::UNAUTHORIZED, what)))
        }
        Ok(CodeUse::Invalid) => None,
    }
}

fn secret<'r>(request: &'r Request, name: &str) -> Option<&'r str> {
    fields(request).find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
}

fn fields(request: &Request) -> impl Iterator<Item = &str> {
    request.uri().query().unwrap_or_default().split('&')
}

/// The URL without its secrets.
fn target(request: &Request) -> String {
    let is_secret = |field: &&str| {
        field.split_once('=').is_some_and(|(name, _)| [TOKEN, CODE, DRIVE].contains(&name))
    };
    let rest: Vec<&str> = fields(request).filter(|field| !is_secret(field)).collect();
    let (path, query) = (request.uri().path(), rest.join("&"));
    local_path(&if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") })
}
