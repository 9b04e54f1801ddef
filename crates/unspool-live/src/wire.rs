//! JSON-RPC as agents write it: one message per line. Nothing here fails: what is no message is
//! returned as such, and the caller keeps its bytes.
//!
//! It is written by hand because the crates of the protocol drop fields that they do not like, and
//! switch on `serde_json/preserve_order` for the whole program, which changes the text of stored
//! fingerprints.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::chat::update::cut;

/// The id of a request as it is written: a number or a string. Both sides count on their own.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(Box<str>);

impl RequestId {
    pub fn number(id: u64) -> RequestId {
        RequestId(id.to_string().into())
    }

    /// The id as JSON.
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

impl From<&str> for RequestId {
    fn from(json: &str) -> RequestId {
        RequestId(json.into())
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.trim_matches('"'))
    }
}

/// A message of the agent. Parameters and results are raw: most of them are only recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    Request {
        id: RequestId,
        method: String,
        params: String,
    },
    Notification {
        method: String,
        params: String,
    },
    Response {
        id: RequestId,
        result: Result<String, RpcError>,
    },
    /// JSON, but no message of JSON-RPC.
    Invalid,
}

/// The error of a response.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
}

/// The longest id of a request.
const MAX_ID: usize = 1000;
/// The sentence of a longer error is cut, in bytes.
const MAX_ERROR: usize = 64 * 1024;
/// The code of an error that asks for a log-in.
pub const AUTH_REQUIRED: i64 = -32000;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ErrorFields {
    code: i64,
    message: String,
    data: ErrorData,
}

/// Agents put the useful sentence in different places.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ErrorData {
    message: Option<String>,
    details: Option<String>,
}

/// The messages of a line as they are written; a batch has several. None if the line is no JSON.
pub fn split(line: &str) -> Option<Vec<&str>> {
    let line = line.trim();
    if line.starts_with('[') {
        let batch: Vec<&RawValue> = serde_json::from_str(line).ok()?;
        return Some(batch.into_iter().map(RawValue::get).collect());
    }
    let whole: &RawValue = serde_json::from_str(line).ok()?;
    Some(vec![whole.get()])
}

/// The messages of a line. None if the line is no JSON.
pub fn parse(line: &str) -> Option<Vec<Message>> {
    Some(split(line)?.into_iter().map(parse_one).collect())
}

pub fn parse_one(text: &str) -> Message {
    let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(text) else { return Message::Invalid };
    let id = envelope.id.filter(|id| id.get() != "null").map(|id| RequestId::from(id.get()));
    // A longer id would come back in each reply.
    let id = id.filter(|id| !id.0.starts_with(['{', '[', 't', 'f']) && id.0.len() <= MAX_ID);
    let raw = |value: Option<&RawValue>| value.map_or("null", RawValue::get).to_owned();
    match (envelope.method, id) {
        (Some(method), Some(id)) => {
            Message::Request { id, method: method.into_owned(), params: raw(envelope.params) }
        }
        (Some(method), None) => {
            Message::Notification { method: method.into_owned(), params: raw(envelope.params) }
        }
        (None, Some(id)) => match (envelope.error, envelope.result) {
            (Some(error), _) => Message::Response { id, result: Err(read_error(error.get())) },
            (None, Some(result)) => Message::Response { id, result: Ok(result.get().to_owned()) },
            // `"result": null` and no result at all are read alike: some agents answer so.
            (None, None) => Message::Response { id, result: Ok("null".to_owned()) },
        },
        (None, None) => Message::Invalid,
    }
}

fn read_error(text: &str) -> RpcError {
    let ErrorFields { code, message, data } = serde_json::from_str(text).unwrap_or_else(|_| {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Plain {
            code: i64,
            message: String,
        }
        // `data` may be anything.
        let Plain { code, message } = serde_json::from_str(text).unwrap_or_default();
        ErrorFields { code, message, data: ErrorData::default() }
    });
    let message = data.message.or(data.details).unwrap_or(message);
    RpcError { code, message: cut(&message, MAX_ERROR) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_kept_as_they_are_written() {
        for id in ["0", "17", "\"a-b\"", "1.5"] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m","params":{{}}}}"#);
            let Message::Request { id: read, .. } = parse(&line).unwrap().remove(0) else {
                panic!("{line}")
            };
            assert_eq!(read.as_json(), id);
        }
    }

    #[test]
    fn a_batch_is_taken_apart() {
        let line = r#"[{"method":"a"},{"id":1,"result":{}},7]"#;
        let messages = parse(line).unwrap();
        assert!(matches!(&messages[0], Message::Notification { method, .. } if method == "a"));
        assert!(matches!(&messages[1], Message::Response { result: Ok(_), .. }));
        assert_eq!(messages[2], Message::Invalid);
    }

    #[test]
    fn what_is_no_message_is_said_to_be_none() {
        assert_eq!(parse("Loading…"), None);
        assert_eq!(parse("{\"id\":"), None);
        for line in ["7", "{}", "[]", r#"{"id":null,"result":1}"#, r#"{"id":{},"result":1}"#] {
            let messages = parse(line).unwrap();
            assert!(messages.iter().all(|message| *message == Message::Invalid), "{line}");
        }
    }

    #[test]
    fn errors_have_the_useful_sentence() {
        let error = |data: &str| {
            let line =
                format!(r#"{{"id":1,"error":{{"code":-32603,"message":"Internal error"{data}}}}}"#);
            let Message::Response { result: Err(error), .. } = parse(&line).unwrap().remove(0)
            else {
                panic!("{line}")
            };
            error.message
        };
        assert_eq!(error(""), "Internal error");
        assert_eq!(error(r#","data":{"details":"no key"}"#), "no key");
        assert_eq!(error(r#","data":"text""#), "Internal error");
    }
}
