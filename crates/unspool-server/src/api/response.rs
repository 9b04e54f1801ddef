//! What API handlers return: JSON with an ETag, a stream or a file.

use axum::body::Body;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, LINK};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use unspool_model::id::digest;

use super::request_params::RequestParams;
use super::stream::body_within;
use crate::large_responses::ResponsePermit;
use crate::problem::Problem;

pub enum ApiResponse {
    /// The client's copy is current: 304.
    NotModified {
        tag: String,
    },
    Json {
        body: Vec<u8>,
        tag: String,
        next: Option<String>,
        permit: Option<ResponsePermit>,
    },
    /// Server-sent events for clients of the AI SDK.
    Events(Body),
    /// 204: nothing to return, and no error.
    NoContent,
    File {
        name: String,
        media_type: &'static str,
        body: Body,
    },
}

impl ApiResponse {
    /// A document with an ETag computed from its content.
    pub fn json(params: &RequestParams, document: &impl Serialize) -> Result<ApiResponse, Problem> {
        ApiResponse::page(params, document, None)
    }

    /// A page of a list, and the URL of the next one.
    pub fn page(
        params: &RequestParams,
        document: &impl Serialize,
        next: Option<String>,
    ) -> Result<ApiResponse, Problem> {
        let body = to_json(document)?;
        let tag = tag([digest(&body), digest(next.as_deref().unwrap_or_default().as_bytes())]);
        if params.has_etag(&tag) {
            return Ok(ApiResponse::NotModified { tag });
        }
        Ok(ApiResponse::Json { body, tag, next, permit: None })
    }

    /// The same response with an ETag that says more than that of its content.
    pub fn with_tag(mut self, tag: String) -> ApiResponse {
        match &mut self {
            ApiResponse::Json { tag: held, .. } | ApiResponse::NotModified { tag: held } => {
                *held = tag
            }
            ApiResponse::Events(_) | ApiResponse::NoContent | ApiResponse::File { .. } => {}
        }
        self
    }

    /// The same response, which holds a permit until a large body is sent.
    pub fn within(mut self, held: ResponsePermit) -> ApiResponse {
        if let ApiResponse::Json { permit, .. } = &mut self {
            *permit = Some(held);
        }
        self
    }
}

pub fn to_json(document: &impl Serialize) -> Result<Vec<u8>, Problem> {
    serde_json::to_vec(document).map_err(|error| {
        let what = format!(
            "cannot serialise the response ({error}); `unspool db check` may find the cause"
        );
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, what)
    })
}

/// An ETag of these numbers. Weak, since the response may be compressed.
pub fn tag(of: impl IntoIterator<Item = u64>) -> String {
    let bytes: Vec<u8> = of.into_iter().flat_map(u64::to_le_bytes).collect();
    format!("W/\"{:016x}\"", digest(&bytes))
}

impl IntoResponse for ApiResponse {
    fn into_response(self) -> Response {
        match self {
            ApiResponse::NotModified { tag } => {
                (StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response()
            }
            ApiResponse::Json { body, tag, next, permit } => {
                let head = [(CONTENT_TYPE, "application/json".to_owned()), (ETAG, tag)];
                let body = match permit.and_then(|permit| permit.for_sending(body.len())) {
                    Some(permit) => body_within(permit, body),
                    None => body.into(),
                };
                let mut response = (head, body).into_response();
                let link = next.map(|next| format!("<{next}>; rel=\"next\""));
                if let Some(link) = link.and_then(|link| HeaderValue::from_str(&link).ok()) {
                    response.headers_mut().insert(LINK, link);
                }
                response
            }
            ApiResponse::Events(body) => {
                let head = [
                    (CONTENT_TYPE.as_str(), "text/event-stream"),
                    ("x-vercel-ai-ui-message-stream", "v1"),
                    // Keeps nginx from buffering the stream.
                    ("x-accel-buffering", "no"),
                ];
                (head, body).into_response()
            }
            ApiResponse::NoContent => StatusCode::NO_CONTENT.into_response(),
            ApiResponse::File { name, media_type, body } => {
                let name = format!("attachment; filename=\"{name}\"");
                let head = [(CONTENT_TYPE, media_type.to_owned()), (CONTENT_DISPOSITION, name)];
                (head, body).into_response()
            }
        }
    }
}
