//! Context for a connection that starts in the middle of a turn: deltas name a message that this
//! capture has not introduced. Without the introduction its parts would form a turn of their own.
//! It comes from an earlier connection, or is fetched from the server.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Number of messages remembered. Running turns are among the latest.
const MAX_MESSAGES: usize = 256;

/// The fields of an event that are needed here.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct CapturedEvent<'a> {
    #[serde(borrow)]
    r#type: Option<&'a str>,
    #[serde(borrow)]
    properties: Properties<'a>,
    /// The global stream (`/global/event`) wraps events in a payload.
    #[serde(borrow)]
    payload: Option<Box<CapturedEvent<'a>>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Properties<'a> {
    #[serde(borrow, rename = "sessionID")]
    session: Option<&'a str>,
    #[serde(borrow, rename = "messageID")]
    message: Option<&'a str>,
    #[serde(borrow)]
    info: Option<Info<'a>>,
    #[serde(borrow)]
    part: Option<Part<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Info<'a> {
    #[serde(borrow)]
    id: Option<&'a str>,
    #[serde(borrow, rename = "parentID")]
    parent: Option<&'a str>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Part<'a> {
    #[serde(borrow, rename = "sessionID")]
    session: Option<&'a str>,
    #[serde(borrow, rename = "messageID")]
    message: Option<&'a str>,
}

/// A message that the server has announced.
struct Message {
    id: String,
    parent: Option<String>,
    /// The event that announced it.
    line: Vec<u8>,
}

/// The messages announced so far, and the ids of those in the current capture.
#[derive(Default)]
pub struct AttachContext {
    messages: VecDeque<Message>,
    here: FxHashSet<String>,
}

/// A message that the current capture has not introduced.
#[derive(PartialEq, Eq, Debug)]
pub struct Unknown {
    pub session: String,
    pub message: String,
}

impl<'a> CapturedEvent<'a> {
    pub fn read(line: &'a [u8]) -> CapturedEvent<'a> {
        // An event that does not parse is captured unchanged.
        let event: CapturedEvent<'a> = serde_json::from_slice(line).unwrap_or_default();
        match event.payload {
            Some(inner) => *inner,
            None => event,
        }
    }

    /// True for heartbeats and connection notices, which belong to no session.
    pub fn is_about_connection(&self) -> bool {
        self.r#type.is_some_and(|kind| kind.starts_with("server."))
    }
}

impl AttachContext {
    /// Starts a new capture.
    pub fn begin(&mut self) {
        self.here.clear();
    }

    /// Registers an event. Returns its message if this capture has not introduced it.
    pub fn note(&mut self, line: &[u8]) -> Option<Unknown> {
        let CapturedEvent { r#type, properties, .. } = CapturedEvent::read(line);
        if r#type == Some("message.updated") {
            let info = properties.info?;
            let id = info.id?.to_owned();
            self.here.insert(id.clone());
            self.messages.retain(|message| message.id != id);
            let parent = info.parent.map(str::to_owned);
            self.messages.push_back(Message { id, parent, line: line.to_owned() });
            if self.messages.len() > MAX_MESSAGES {
                self.messages.pop_front();
            }
            return None;
        }
        let part = properties.part.unwrap_or_default();
        let message = properties.message.or(part.message)?;
        let session = properties.session.or(part.session)?;
        // Report each message once, even if it cannot be fetched.
        let new = self.here.insert(message.to_owned());
        new.then(|| Unknown { session: session.to_owned(), message: message.to_owned() })
    }

    /// The cached events of a message, preceded by those of its parent.
    pub fn cached_events(&mut self, unknown: &Unknown) -> Vec<Vec<u8>> {
        let Some(message) = self.find(&unknown.message) else { return Vec::new() };
        let (line, parent) = (message.line.clone(), message.parent.clone());
        let parent = parent.filter(|parent| self.here.insert(parent.clone()));
        let before = parent.and_then(|parent| Some(self.find(&parent)?.line.clone()));
        before.into_iter().chain([line]).collect()
    }

    /// The parent of a message, if this capture has not introduced it.
    pub fn unknown_parent(&self, message: &str, session: &str) -> Option<Unknown> {
        let parent = self.find(message)?.parent.clone()?;
        let unknown = !self.here.contains(&parent);
        unknown.then(|| Unknown { session: session.to_owned(), message: parent })
    }

    fn find(&self, id: &str) -> Option<&Message> {
        self.messages.iter().find(|message| message.id == id)
    }
}

/// Converts the server's response for one message into the events that announce it. Parts are
/// included for user messages only; those of the model are still growing.
pub fn as_events(answer: &str) -> Vec<Vec<u8>> {
    #[derive(Deserialize)]
    struct MessageResponse<'a> {
        #[serde(borrow)]
        info: &'a RawValue,
        #[serde(borrow, default)]
        parts: Vec<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Role<'a> {
        #[serde(borrow)]
        role: Option<&'a str>,
    }
    let event = |kind: &str, field: &str, value: &RawValue| {
        let value = value.get().replace(['\n', '\r'], " ");
        format!("{{\"type\":\"{kind}\",\"properties\":{{\"{field}\":{value}}}}}").into_bytes()
    };
    let Ok(MessageResponse { info, parts }) = serde_json::from_str(answer) else {
        return Vec::new();
    };
    let of_user = serde_json::from_str(info.get()).is_ok_and(|it: Role| it.role == Some("user"));
    let parts = parts.into_iter().filter(|_| of_user);
    let parts = parts.map(|part| event("message.part.updated", "part", part));
    [event("message.updated", "info", info)].into_iter().chain(parts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: &[u8] =
        br#"{"type":"message.updated","properties":{"info":{"id":"m1","role":"user"}}}"#;
    const REPLY: &[u8] =
        br#"{"type":"message.updated","properties":{"info":{"id":"m2","parentID":"m1"}}}"#;
    const DELTA: &[u8] =
        br#"{"type":"message.part.delta","properties":{"sessionID":"s","messageID":"m2"}}"#;

    #[test]
    fn a_capture_learns_the_message_owner_once() {
        let mut context = AttachContext::default();
        context.begin();
        let unknown = Unknown { session: "s".to_owned(), message: "m2".to_owned() };
        assert_eq!(context.note(DELTA).as_ref(), Some(&unknown));
        assert!(context.cached_events(&unknown).is_empty(), "no event announced it");
        assert!(context.note(USER).is_none() && context.note(REPLY).is_none());
        assert!(context.note(DELTA).is_none());
        context.begin();
        assert_eq!(context.note(DELTA).as_ref(), Some(&unknown));
        assert_eq!(context.cached_events(&unknown), [USER, REPLY]);
        assert!(context.note(DELTA).is_none());
    }

    #[test]
    fn an_answer_becomes_events_with_the_words_of_the_user() {
        let reply = "{\"info\":{\"id\":\"m2\",\n\"parentID\":\"m1\"},\"parts\":[{}]}";
        let events = as_events(reply);
        let mut context = AttachContext::default();
        assert!(events.len() == 1 && context.note(&events[0]).is_none());
        assert_eq!(context.unknown_parent("m2", "s").unwrap().message, "m1");
        let prompt = "{\"info\":{\"id\":\"m1\",\"role\":\"user\"},\"parts\":[{\"id\":\"p\"}]}";
        let said = as_events(prompt);
        assert_eq!(said.len(), 2);
        context.note(&said[0]);
        assert!(context.unknown_parent("m2", "s").is_none());
        assert!(as_events("{\"error\":1}").is_empty());
    }

    #[test]
    fn that_a_server_is_there_is_no_news() {
        let of = |line: &'static [u8]| CapturedEvent::read(line).is_about_connection();
        assert!(of(br#"{"id":"evt_1","type":"server.heartbeat"}"#));
        assert!(of(br#"{"payload":{"type":"server.connected"}}"#));
        assert!(!of(br#"{"type":"session.idle","properties":{}}"#));
    }
}
