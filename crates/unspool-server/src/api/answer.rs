//! What API handlers return: JSON with an ETag, a stream or a file.

use axum::body::Body;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, LINK};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use unspool_core::id::digest;

use super::asked::Asked;
use crate::problem::Problem;

pub enum Answer {
    /// The client's copy is current: 304.
    Known {
        tag: String,
    },
    Json {
        body: Vec<u8>,
        tag: String,
        next: Option<String>,
    },
    /// Server-sent events for clients of the AI SDK.
    Events(Body),
    /// 204: nothing to return, and no error.
    Nothing,
    File {
        name: String,
        media_type: &'static str,
        body: Body,
    },
}

impl Answer {
    /// A document with an ETag computed from its content.
    pub fn json(asked: &Asked, document: &impl Serialize) -> Result<Answer, Problem> {
        Answer::page(asked, document, None)
    }

    /// A page of a list, and the URL of the next one.
    pub fn page(
        asked: &Asked,
        document: &impl Serialize,
        next: Option<String>,
    ) -> Result<Answer, Problem> {
        let body = written(document)?;
        let tag = tag([digest(&body), digest(next.as_deref().unwrap_or_default().as_bytes())]);
        if asked.knows(&tag) {
            return Ok(Answer::Known { tag });
        }
        Ok(Answer::Json { body, tag, next })
    }
}

pub fn written(document: &impl Serialize) -> Result<Vec<u8>, Problem> {
    serde_json::to_vec(document).map_err(|error| {
        let what =
            format!("cannot serialise the response ({error}); `unspool db check` may tell why");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, what)
    })
}

/// An ETag of these numbers. Weak, since the response may be compressed.
pub fn tag(of: impl IntoIterator<Item = u64>) -> String {
    let bytes: Vec<u8> = of.into_iter().flat_map(u64::to_le_bytes).collect();
    format!("W/\"{:016x}\"", digest(&bytes))
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        match self {
            Answer::Known { tag } => (StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response(),
            Answer::Json { body, tag, next } => {
                let head = [(CONTENT_TYPE, "application/json".to_owned()), (ETAG, tag)];
                let mut response = (head, body).into_response();
                let link = next.map(|next| format!("<{next}>; rel=\"next\""));
                if let Some(link) = link.and_then(|link| HeaderValue::from_str(&link).ok()) {
                    response.headers_mut().insert(LINK, link);
                }
                response
            }
            Answer::Events(body) => {
                let head = [
                    (CONTENT_TYPE.as_str(), "text/event-stream"),
                    ("x-vercel-ai-ui-message-stream", "v1"),
                    // Keeps nginx from buffering the stream.
                    ("x-accel-buffering", "no"),
                ];
                (head, body).into_response()
            }
            Answer::Nothing => StatusCode::NO_CONTENT.into_response(),
            Answer::File { name, media_type, body } => {
                let name = format!("attachment; filename=\"{name}\"");
                let head = [(CONTENT_TYPE, media_type.to_owned()), (CONTENT_DISPOSITION, name)];
                (head, body).into_response()
            }
        }
    }
}
