//! Validates a request against its row of the route table. Handlers read only validated parameters.

use axum::extract::{FromRequestParts, Query, RawPathParams};
use axum::http::header::IF_NONE_MATCH;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use unspool_export::project::TurnRange;
use unspool_model::id::{Id, digest};
use unspool_query::times::{ACCEPTED_TIMES, parse_time};

use super::parameter::{Parameter, ParameterKind};
use super::route::Route;
use crate::problem::Problem;

/// The validated parameters and headers of a request.
pub struct RequestParams {
    route: &'static Route,
    path: Vec<(String, String)>,
    query: Vec<(&'static str, String)>,
    headers: HeaderMap,
}

impl RequestParams {
    pub async fn of(route: &'static Route, mut parts: Parts) -> Result<RequestParams, Problem> {
        let bad = |what: String| Problem::new(StatusCode::BAD_REQUEST, what);
        let path = RawPathParams::from_request_parts(&mut parts, &())
            .await
            .map_err(|error| bad(format!("{error}; use percent-encoded UTF-8")))?;
        let path: Vec<(String, String)> =
            path.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        for (name, value) in &path {
            check(name, path_parameter(name).0, value)?;
        }
        let raw = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)
            .map_err(|error| bad(format!("{error}; write the query as name=value&name=value")))?;
        let mut query: Vec<(&'static str, String)> = Vec::new();
        for (name, value) in raw.0 {
            let Some(expected) = route.parameters.iter().find(|expected| expected.name == name)
            else {
                return Err(bad(unknown(&name, route)));
            };
            if query.iter().any(|(held, _)| *held == expected.name) {
                return Err(bad(format!("{name} is given more than once; give it once")));
            }
            check(&name, expected.kind, &value)?;
            query.push((expected.name, value));
        }
        if let Some(missing) = route.parameters.iter().find(|expected| {
            expected.required
                && !query
                    .iter()
                    .any(|(name, value)| *name == expected.name && !value.trim().is_empty())
        }) {
            return Err(bad(format!("{} is missing: {}", missing.name, missing.what)));
        }
        Ok(RequestParams { route, path, query, headers: parts.headers })
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// A path parameter.
    pub fn path_param(&self, name: &str) -> &str {
        let found = self.path.iter().find(|(expected, _)| expected == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        debug_assert!(self.route.parameters.iter().any(|expected| expected.name == name), "{name}");
        self.query.iter().find(|(expected, _)| *expected == name).map(|(_, value)| value.as_str())
    }

    pub fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        flag(self.text(name)?)
    }

    pub fn time(&self, name: &str) -> Option<i64> {
        parse_time(self.text(name)?).ok()
    }

    pub fn id(&self, name: &str) -> Option<Id> {
        self.text(name)?.parse().ok()
    }

    /// First and last number of a span.
    pub fn span(&self, name: &str) -> Option<(u32, u32)> {
        span(self.text(name)?)
    }

    /// The page size.
    pub fn limit(&self, default: u64) -> u64 {
        self.number("limit").unwrap_or(default)
    }

    /// A digest of path and query. Requests with different responses have different digests.
    pub fn digest(&self) -> u64 {
        let mut raw = self.route.path.to_owned();
        for (name, value) in self.path.iter().map(|(name, value)| (name.as_str(), value)) {
            raw.push_str(&format!("\n{name}={value}"));
        }
        for (name, value) in &self.query {
            raw.push_str(&format!("\n{name}={value}"));
        }
        digest(raw.as_bytes())
    }

    /// True if the client already has this version.
    pub fn has_etag(&self, tag: &str) -> bool {
        etag_matches(&self.headers, tag)
    }

    /// The URL of the next page, for the `Link` header.
    pub fn next(&self, after: &str) -> String {
        let mut path = String::new();
        for piece in self.route.path.split('/').skip(1) {
            let name = piece.strip_prefix('{').and_then(|piece| piece.strip_suffix('}'));
            path.push('/');
            path.push_str(&percent_encode(name.map_or(piece, |name| self.path_param(name))));
        }
        let kept = self.query.iter().filter(|(name, _)| *name != "after");
        let kept = kept.map(|(name, value)| format!("{name}={}&", percent_encode(value)));
        format!("{path}?{}after={}", kept.collect::<String>(), percent_encode(after))
    }
}

fn unknown(name: &str, route: &Route) -> String {
    let expected: Vec<&str> = route.parameters.iter().map(|expected| expected.name).collect();
    match expected.is_empty() {
        true => format!("there is no parameter {name} here; leave it out"),
        false => format!("there is no parameter {name} here; use {}", expected.join(", ")),
    }
}

/// Checks a value against its kind. The error says which values are valid.
fn check(name: &str, kind: ParameterKind, value: &str) -> Result<(), Problem> {
    let wanted = match kind {
        ParameterKind::Text | ParameterKind::Cursor => return Ok(()),
        ParameterKind::Time => match parse_time(value) {
            Ok(_) => return Ok(()),
            Err(error) => error.to_string(),
        },
        ParameterKind::Flag if flag(value).is_some() => return Ok(()),
        ParameterKind::Flag => "write true or false".to_owned(),
        ParameterKind::Number { min, max } => match value.parse::<u64>() {
            Ok(number) if (min..=max).contains(&number) => return Ok(()),
            Ok(_) | Err(_) => format!("write a number from {min} to {max}"),
        },
        ParameterKind::OneOf(words) if words.contains(&value) => return Ok(()),
        ParameterKind::OneOf(words) => format!("choose one of {}", words.join(", ")),
        ParameterKind::Span if span(value).is_some() => return Ok(()),
        ParameterKind::Span => "write the numbers of turns: 3, or 3-7".to_owned(),
        ParameterKind::Id => match value.parse::<Id>() {
            Ok(_) => return Ok(()),
            Err(error) => error.to_string(),
        },
    };
    let value: String = value.chars().take(80).collect();
    Err(Problem::new(StatusCode::BAD_REQUEST, format!("{name} cannot be {value:?}: {wanted}")))
}

/// True if `If-None-Match` matches this ETag.
pub fn etag_matches(headers: &HeaderMap, tag: &str) -> bool {
    let all = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut expected = all.flat_map(|value| value.split(',')).map(str::trim);
    // Weak comparison: compression does not matter here.
    let bare = tag.trim_start_matches("W/");
    expected.any(|expected| expected == "*" || expected.trim_start_matches("W/") == bare)
}

fn flag(value: &str) -> Option<bool> {
    match value {
        "1" | "true" => Some(true),
        "0" | "false" => Some(false),
        _ => None,
    }
}

fn span(value: &str) -> Option<(u32, u32)> {
    TurnRange::parse(value).map(|TurnRange { first, last }| (first, last))
}

/// The kind and description of a path parameter.
pub fn path_parameter(name: &str) -> (ParameterKind, &'static str) {
    match name {
        "number" => {
            let kind = ParameterKind::Number { min: 0, max: u32::MAX as u64 };
            (kind, "the number of a turn")
        }
        "part" => (ParameterKind::Id, "the id of a part"),
        "item" => (ParameterKind::Text, "the id of an adaptation"),
        _ => (
            ParameterKind::Text,
            "our session id, a unique prefix of it, or the agent's own session id",
        ),
    }
}

/// Percent-encodes text for a URL.
pub fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

impl Parameter {
    /// The JSON Schema of a parameter kind.
    pub fn schema(kind: ParameterKind) -> serde_json::Value {
        use serde_json::json;
        match kind {
            ParameterKind::Text | ParameterKind::Cursor => json!({ "type": "string" }),
            ParameterKind::Time => json!({
                "type": "string",
                "description": ACCEPTED_TIMES,
            }),
            ParameterKind::Flag => json!({ "type": "boolean" }),
            ParameterKind::Number { min, max } => {
                json!({ "type": "integer", "minimum": min, "maximum": max })
            }
            ParameterKind::OneOf(words) => json!({ "type": "string", "enum": words }),
            ParameterKind::Span => json!({ "type": "string", "pattern": "^[0-9]+(-[0-9]+)?$" }),
            ParameterKind::Id => json!({ "type": "string", "pattern": "^[0-9a-hjkmnp-tv-z]{20}$" }),
        }
    }
}
