//! Errors as `application/problem+json` (RFC 9457). `detail` says what failed and what to do next.

use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use unspool_query::times::NotATime;
use unspool_store::store::{StoreError, StoreErrorKind};

pub struct Problem {
    status: StatusCode,
    detail: String,
    /// What a program can do next. A page does not show it.
    api_hint: Option<&'static str>,
}

impl Problem {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Problem {
        Problem { status, detail: detail.into(), api_hint: None }
    }

    pub fn bad_request(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, detail)
    }

    pub fn not_found(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, detail)
    }

    pub fn internal(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    }

    pub fn no_session(id: &str) -> Problem {
        let detail = format!("there is no session {id} in the archive");
        Problem { api_hint: Some("; /api/sessions lists them"), ..Problem::not_found(detail) }
    }

    pub fn status(&self) -> StatusCode {
        self.status
    }

    pub fn detail(&self) -> &str {
        &self.detail
    }
}

/// The answer to a method that a route does not support.
pub async fn method_not_allowed(method: Method) -> Response {
    let what = format!(
        "{method} is not allowed here; use GET or HEAD. /api/openapi.json lists what can be changed"
    );
    let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, what);
    ([(ALLOW, "GET, HEAD")], problem).into_response()
}

impl From<NotATime> for Problem {
    fn from(error: NotATime) -> Problem {
        Problem::bad_request(error.to_string())
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        let status = match error.kind() {
            StoreErrorKind::Missing => StatusCode::NOT_FOUND,
            StoreErrorKind::Busy
            | StoreErrorKind::Gone
            | StoreErrorKind::Overtaken
            | StoreErrorKind::Unreachable
            | StoreErrorKind::NotEncrypted => StatusCode::SERVICE_UNAVAILABLE,
            StoreErrorKind::Foreign
            | StoreErrorKind::Newer { .. }
            | StoreErrorKind::Older { .. }
            | StoreErrorKind::NotEmpty
            | StoreErrorKind::Address
            | StoreErrorKind::ReadOnly
            | StoreErrorKind::Full
            | StoreErrorKind::NotWritable
            | StoreErrorKind::NotOpened
            | StoreErrorKind::Damaged
            | StoreErrorKind::Payload
            | StoreErrorKind::Index
            | StoreErrorKind::Disk
            | StoreErrorKind::Database
            | StoreErrorKind::Closed => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Problem::new(status, error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let document = serde_json::json!({
            "type": "about:blank",
            "title": self.status.canonical_reason(),
            "status": self.status.as_u16(),
            "detail": self.detail + self.api_hint.unwrap_or_default(),
        });
        let kind = [(CONTENT_TYPE, "application/problem+json")];
        (self.status, kind, document.to_string()).into_response()
    }
}
