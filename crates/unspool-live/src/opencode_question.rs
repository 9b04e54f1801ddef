//! Questions of an OpenCode server that is followed, and the requests that answer them. Its own
//! dialog stays as it is; the first answer counts, and the server refuses a late one.

use serde_json::{Value, json};

use crate::chat::update::{cut, label};
use crate::chat::{MAX_OPTIONS, MAX_QUESTION_BYTES, MAX_SUBJECT_BYTES, ValidAnswer};
use crate::form::FormField;
use crate::project_files::percent_encode;
use crate::protocol::{OpenQuestion, PermissionKind, PermissionOption, RequestedInput};

/// A question, by the server's id.
#[derive(Clone, PartialEq, Debug)]
pub struct OpencodeQuestion {
    pub id: String,
    pub session: String,
    call: Option<String>,
    /// The project, where a server has several.
    directory: Option<String>,
    kind: Kind,
}

#[derive(Clone, PartialEq, Debug)]
enum Kind {
    Permission { action: String, patterns: Vec<String>, always: Vec<String>, metadata: Value },
    Form(Vec<Value>),
}

/// What an event says about questions.
#[derive(Clone, PartialEq, Debug)]
pub enum QuestionEvent {
    Asked(OpencodeQuestion),
    /// The question of this id is over: how, in a word.
    Over(String, &'static str),
    /// The session of this id does not work: an abort ends its questions without a word.
    Rests(String),
}

/// What to send to the server.
#[derive(Clone, PartialEq, Debug)]
pub struct Reply {
    pub path: String,
    pub body: Value,
}

impl QuestionEvent {
    /// Reads an event of `/event` or `/global/event`.
    pub fn of_event(event: &[u8]) -> Option<QuestionEvent> {
        // Most events are pieces of text: they are not parsed.
        let head = &event[..event.len().min(2048)];
        let mentions = |word: &[u8]| head.windows(word.len()).any(|window| window == word);
        if ![&b"permission."[..], b"question.", b"session."].iter().any(|word| mentions(word)) {
            return None;
        }
        let event: Value = serde_json::from_slice(event).ok()?;
        let directory = event["directory"].as_str().map(str::to_owned);
        let event = if event["payload"].is_object() { &event["payload"] } else { &event };
        let properties = &event["properties"];
        let name = event["type"].as_str()?.replace(".v2.", ".");
        let request = || properties["requestID"].as_str().map(str::to_owned);
        match name.as_str() {
            "permission.asked" | "question.asked" => {
                let mut question = OpencodeQuestion::permission(properties)
                    .or_else(|| OpencodeQuestion::form(properties))?;
                question.directory = directory;
                Some(QuestionEvent::Asked(question))
            }
            "session.idle" | "session.deleted" => {
                let session = &properties["sessionID"];
                let session = session.as_str().or(properties["info"]["id"].as_str())?;
                Some(QuestionEvent::Rests(session.to_owned()))
            }
            "permission.replied" => {
                let how = match properties["reply"].as_str() {
                    Some("reject") => "refused",
                    Some("once" | "always") => "allowed",
                    Some(_) | None => "answered",
                };
                Some(QuestionEvent::Over(request()?, how))
            }
            "question.replied" => Some(QuestionEvent::Over(request()?, "answered")),
            "question.rejected" => Some(QuestionEvent::Over(request()?, "declined")),
            _ => None,
        }
    }
}

impl OpencodeQuestion {
    /// A permission as the server lists it.
    pub fn permission(listed: &Value) -> Option<OpencodeQuestion> {
        let texts = |name: &str| -> Vec<String> {
            let all = listed[name].as_array().into_iter().flatten();
            all.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let kind = Kind::Permission {
            action: listed["permission"].as_str()?.to_owned(),
            patterns: texts("patterns"),
            always: texts("always"),
            metadata: listed["metadata"].clone(),
        };
        OpencodeQuestion::of(listed, kind)
    }

    /// Questions to a person as the server lists them.
    pub fn form(listed: &Value) -> Option<OpencodeQuestion> {
        let questions = listed["questions"].as_array()?;
        if questions.is_empty() || questions.len() > MAX_OPTIONS {
            return None;
        }
        let questions = questions.clone();
        OpencodeQuestion::of(listed, Kind::Form(questions))
    }

    fn of(listed: &Value, kind: Kind) -> Option<OpencodeQuestion> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let (id, session) = (text(&listed["id"])?, text(&listed["sessionID"])?);
        // The id becomes a path: nothing else is asked of the server.
        if id.is_empty() || !id.chars().all(|one| one.is_ascii_alphanumeric() || one == '_') {
            return None;
        }
        let call = text(&listed["tool"]["callID"]);
        Some(OpencodeQuestion { id, session, call, directory: None, kind })
    }

    /// The question as clients show it.
    pub fn open(&self, since: u64) -> OpenQuestion {
        let (text, kind, subject) = match &self.kind {
            Kind::Permission { action, patterns, always, metadata } => {
                let option = |id: &str, label: String, kind| PermissionOption {
                    id: id.to_owned(),
                    label,
                    kind,
                };
                let mut options = vec![option("once", "Yes".into(), PermissionKind::AllowOnce)];
                if !always.is_empty() {
                    let label = label(&format!("Always: {}", always.join(", ")));
                    options.push(option("always", label, PermissionKind::AllowAlways));
                }
                options.push(option("reject", "No".into(), PermissionKind::RejectOnce));
                let what = metadata["command"].as_str().filter(|command| !command.contains('\n'));
                let what = what.map(|command| format!("`{command}`"));
                let what = what.unwrap_or_else(|| format!("{action} {}", patterns.join(", ")));
                let subject = subject(action, metadata);
                let text = cut(&format!("Allow {}?", what.trim()), MAX_QUESTION_BYTES);
                (text, RequestedInput::Permission(options), subject)
            }
            Kind::Form(questions) => {
                let fields: Vec<FormField> = questions.iter().enumerate().map(field).collect();
                let text = match fields.as_slice() {
                    [field] => field.text.clone(),
                    [] | [_, ..] => format!("{} questions", fields.len()),
                };
                (text, RequestedInput::Form(fields), Value::Null)
            }
        };
        OpenQuestion {
            id: "0".to_owned(),
            request: format!("\"{}\"", self.id).as_str().into(),
            session: self.session.clone(),
            call: self.call.clone(),
            text,
            kind,
            subject,
            since,
        }
    }

    /// What an answer is for the server. `words` go to the model with a refusal.
    pub fn reply(&self, answer: &ValidAnswer<'_>, words: Option<&str>) -> Reply {
        let words = words.map(str::trim).filter(|words| !words.is_empty());
        let directory = self
            .directory
            .as_deref()
            .map(|path| format!("?directory={}", percent_encode(path.as_bytes())));
        let directory = directory.unwrap_or_default();
        let reply = |kind: &str, what: &str, body: Value| Reply {
            path: format!("/{kind}/{}/{what}{directory}", self.id),
            body,
        };
        match (&self.kind, answer) {
            (Kind::Permission { .. }, ValidAnswer::Option(option)) if option.kind.allows() => {
                reply("permission", "reply", json!({"reply": option.id}))
            }
            (Kind::Permission { .. }, _) => {
                let mut body = json!({"reply": "reject"});
                if let Some(words) = words {
                    body["message"] = json!(words);
                }
                reply("permission", "reply", body)
            }
            (Kind::Form(questions), ValidAnswer::Form(content)) => {
                let fields = questions.iter().enumerate().map(field);
                let answers: Vec<Vec<String>> = fields.map(|field| field.texts(content)).collect();
                reply("question", "reply", json!({"answers": answers}))
            }
            (Kind::Form(_), _) => reply("question", "reject", json!({})),
        }
    }
}

fn subject(action: &str, metadata: &Value) -> Value {
    let size = metadata.to_string().len();
    if size > MAX_SUBJECT_BYTES {
        return json!({"title": action, "omitted_bytes": size});
    }
    json!({"title": action, "rawInput": metadata})
}

/// The field of the n-th question. OpenCode takes own words too, unless it says otherwise.
fn field((at, question): (usize, &Value)) -> FormField {
    let takes_own_words = question["custom"] != Value::Bool(false);
    FormField::of_question(at, question, question["multiple"] == Value::Bool(true), takes_own_words)
}

#[cfg(test)]
#[path = "opencode_question_tests.rs"]
mod tests;
