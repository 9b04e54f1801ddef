//! Requests that are refused before anybody looks at what they want: too large, or ambiguous.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, HOST, ORIGIN};

use crate::problem::Problem;

/// Limits in bytes: request body, URI, headers.
const MAX_REQUEST_BYTES: u64 = 64 * 1024;
/// Sessions of other machines are larger.
const MAX_SHIP_BYTES: u64 = unspool_query::ship::MAX_BODY_BYTES as u64;
const MAX_HELLO_BYTES: u64 =
    (unspool_query::ship::MAX_HELLO_FILES * unspool_query::ship::MAX_NAME_BYTES) as u64;
const MAX_URI_BYTES: usize = 8 * 1024;
const MAX_HEADER_BYTES: usize = 32 * 1024;

/// Refuses what two programs could read differently: a second `Host` or `Origin`, a path that is
/// not text.
pub fn malformed(request: &Request) -> Option<Problem> {
    for (header, name) in [(HOST, "Host"), (ORIGIN, "Origin"), (AUTHORIZATION, "Authorization")] {
        if request.headers().get_all(header).iter().count() > 1 {
            let what = format!("the request has two {name} headers");
            return Some(Problem::new(StatusCode::BAD_REQUEST, what));
        }
    }
    if !decodes_to_text(request.uri().path()) {
        let what = "the path is not UTF-8; check the percent-encoding of the URL";
        return Some(Problem::new(StatusCode::BAD_REQUEST, what));
    }
    None
}

/// True if the path is UTF-8 when its percent-encoding is undone.
fn decodes_to_text(path: &str) -> bool {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| *first == b'%');
        let decoded = hex
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(decoded.unwrap_or(*first));
        rest = if decoded.is_some() { &after[2..] } else { after };
    }
    std::str::from_utf8(&bytes).is_ok()
}

/// Checks the size limits.
pub fn too_large(request: &Request) -> Option<Problem> {
    let headers = request.headers();
    let limit = match request.uri().path() {
        unspool_query::ship::PATH => MAX_SHIP_BYTES,
        unspool_query::ship::HELLO_PATH => MAX_HELLO_BYTES,
        _ => MAX_REQUEST_BYTES,
    };
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if length.is_some_and(|length| length.parse::<u64>().is_ok_and(|length| length > limit)) {
        let what = format!("the request body is too large: the limit is {limit} bytes");
        return Some(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, what));
    }
    let uri = request.uri();
    if uri.path().len() + uri.query().map_or(0, str::len) > MAX_URI_BYTES {
        let what = format!("the URL is too long: the limit is {MAX_URI_BYTES} bytes");
        return Some(Problem::new(StatusCode::URI_TOO_LONG, what));
    }
    let size: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if size > MAX_HEADER_BYTES {
        let what = format!(
            "the headers are too large: the limit is {MAX_HEADER_BYTES} bytes; delete cookies"
        );
        return Some(Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, what));
    }
    None
}
