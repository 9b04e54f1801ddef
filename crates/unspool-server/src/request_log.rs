//! Logs each request: method, path, status and duration. Not the query string, which has search
//! words and the token of the printed URL, and not the token of a guest.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use tracing::field::Empty;
use tracing::{Instrument, Span, info_span};

use crate::shares::GUEST_PATH;

pub async fn log_request(request: Request, next: Next) -> Response {
    let (method, path) = (request.method(), request.uri().path());
    let path = if path.starts_with(GUEST_PATH) { GUEST_PATH } else { path };
    let span = info_span!("request", %method, path, status = Empty);
    async move {
        let response = next.run(request).await;
        Span::current().record("status", response.status().as_u16());
        response
    }
    .instrument(span)
    .await
}
