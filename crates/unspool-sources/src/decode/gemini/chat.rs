//! Gemini's chat file: `~/.gemini/tmp/<project>/chats/session-….jsonl`, and for sub-agents
//! `chats/<session>/<agent>.jsonl`. It is a log of operations on a list of messages: a message,
//! written again when it changes, and `$set` for fields of the chat, including the list itself. Up
//! to 0.30 it was one document with the same messages.
//!
//! The list is set when a session is resumed, in the shape of the API and with most fields lost,
//! and when a request failed, without its prompt. So a list only adds messages that are new here,
//! and removes none.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unspool_model::event::{EndReason, Event, EventKind};
use unspool_model::id::{digest, sha256};
use unspool_model::json::Json;
use unspool_model::part::{Body, Data, Failure, File, Notice};
use unspool_model::provenance::{Feed, Name};
use unspool_model::session::{Title, TitleOrigin, Trigger};

use super::super::injected::{is_injected, separate_text};
use super::super::referenced_files::{Referenced, ReferencedFiles};
use super::super::{Decoder, Emitter, Fields, PromptNames, Record, RecordOutcome};
use super::message::Calls;

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChatDecoder {
    /// The chat is a sub-agent's.
    sub_agent: bool,
    begun: bool,
    has_project: bool,
    /// The digest of each message's latest version, by the digest of its type and id.
    #[serde(rename = "told")]
    message_digests: BTreeMap<u64, u64>,
    /// The ids of the prompts in order, and the occurrences of each prompt text.
    prompts: Vec<Arc<str>>,
    #[serde(rename = "alike")]
    prompt_names: PromptNames,
    /// Type and content of each message, in order of first appearance.
    #[serde(default)]
    contents: Vec<u64>,
    /// Gemini writes its history again, with new ids: up to where it has come in `contents`.
    #[serde(default)]
    rewritten: Option<usize>,
    /// The user cancelled the request of this turn.
    #[serde(default)]
    pub(super) cancelled: bool,
    /// The context before the first prompt. It is repeated with each list.
    #[serde(default)]
    context: Option<String>,
    /// The current prompt has no reply yet.
    pub(super) waits: bool,
    /// The model calls of this turn: message id and number.
    pub(super) steps: BTreeMap<Arc<str>, u32>,
    pub(super) calls: Calls,
}

impl Decoder for ChatDecoder {
    fn decode(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        out: &mut Vec<Event>,
    ) -> RecordOutcome {
        let mut emit = Emitter::new(Feed::Log, record, None, out);
        if super::is_head(fields) {
            return self.head(&mut emit, fields);
        }
        if fields.has("$set") {
            return self.set(&mut emit, &fields.fields("$set"));
        }
        if let Some(id) = fields.text("$rewindTo") {
            return self.rewind(&mut emit, &id);
        }
        if fields.has("type") {
            return self.message(&mut emit, fields);
        }
        // The fields after the messages of an old document.
        self.set(&mut emit, fields)
    }

    fn save(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    fn turn(&self) -> Option<Name> {
        self.prompts.last().cloned().map(Name::Prompt)
    }
}

impl ChatDecoder {
    fn head(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        self.sub_agent |= fields.is("kind", "subagent");
        let folders: Vec<String> = fields.read("directories").unwrap_or_default();
        let project = folders.into_iter().next();
        if std::mem::replace(&mut self.begun, true) && project.is_none() {
            return RecordOutcome::Metadata;
        }
        emit.at = fields.time("startTime");
        self.emit_project(emit, project);
        self.set(emit, fields);
        RecordOutcome::Metadata
    }

    fn emit_project(&mut self, emit: &mut Emitter<'_>, project: Option<String>) {
        self.has_project |= project.is_some();
        let (branch, version, cost) = (None, None, None);
        emit.push(EventKind::SessionUpdated { project, branch, version, cost });
    }

    /// Applies changed fields of the chat.
    fn set(&mut self, emit: &mut Emitter<'_>, fields: &Fields<'_>) -> RecordOutcome {
        emit.at = emit.at.or_else(|| fields.time("lastUpdated"));
        if let Some(text) = fields.string("summary").filter(|text| !text.is_empty()) {
            if self.sub_agent {
                // A sub-agent's summary is its result, written when it is done.
                emit.push(EventKind::TurnEnded(EndReason::Completed));
            } else {
                let origin = TitleOrigin::Summary;
                emit.push(EventKind::TitleSet(Title { text, origin }));
            }
        }
        if !fields.has("messages") {
            return RecordOutcome::Metadata;
        }
        let at = emit.at;
        self.rewritten = None;
        let mut made = false;
        let mut listed: Vec<u64> = Vec::new();
        for message in fields.list("messages") {
            let key = key_of(&message);
            listed.push(key);
            if is_context(&message) {
                self.context(emit, &message);
            } else if !self.message_digests.contains_key(&key) {
                made |= self.message(emit, &message) == RecordOutcome::InParts;
            }
        }
        emit.at = at;
        made |= self.removed(emit, &listed);
        if made { RecordOutcome::InParts } else { RecordOutcome::Metadata }
    }

    /// Ends the turn if its prompt is no longer listed: Gemini removes a prompt whose request
    /// failed or was cancelled.
    fn removed(&mut self, emit: &mut Emitter<'_>, listed: &[u64]) -> bool {
        let Some(prompt) = self.prompts.last().filter(|_| self.waits) else { return false };
        if listed.contains(&key("user", prompt)) {
            return false;
        }
        let name = Name::Record(format!("{prompt}/removed").into());
        let text =
            "Gemini CLI took this prompt out of its history: the request failed or was cancelled";
        let notice = Notice { code: "prompt-removed".to_owned(), text: text.to_owned() };
        self.waits = false;
        emit.push(EventKind::Part(Some(name), Body::Notice(notice)));
        emit.push(EventKind::TurnEnded(EndReason::Failed(None)));
        true
    }

    /// Gemini's own first message to the model, which includes the workspace folders.
    fn context(&mut self, emit: &mut Emitter<'_>, message: &Fields<'_>) {
        let Some(text) = message.list("content").find_map(|part| part.string("text")) else {
            return;
        };
        let lines = text.lines().skip_while(|line| !line.contains("Workspace Directories:"));
        let folder = lines.skip(1).find_map(|line| line.trim().strip_prefix("- "));
        if let Some(folder) = folder.filter(|_| !self.has_project) {
            self.emit_project(emit, Some(folder.to_owned()));
        }
        let content = Json::string(&text);
        let (kind, sha256) = ("context".to_owned(), sha256(content.text().as_bytes()));
        emit.push(EventKind::SnapshotTaken { kind, sha256, content });
        if self.prompts.is_empty() {
            self.context = Some(text);
        }
    }

    fn rewind(&mut self, emit: &mut Emitter<'_>, id: &str) -> RecordOutcome {
        let from = self.prompts.iter().position(|prompt| **prompt == *id);
        let turns = self.prompts.iter().skip(from.unwrap_or(self.prompts.len()));
        let turns: Vec<Name> = turns.cloned().map(Name::Prompt).collect();
        if !turns.is_empty() {
            emit.push(EventKind::Rewound { turns });
        }
        RecordOutcome::Metadata
    }

    // ── Messages ────────────────────────────────────────────────────────────────────────────

    fn message(&mut self, emit: &mut Emitter<'_>, message: &Fields<'_>) -> RecordOutcome {
        emit.at = message.time("timestamp").or(emit.at);
        let key = key_of(message);
        let content = message.whole().canonical_digest();
        let previous = self.message_digests.insert(key, content);
        if previous == Some(content) {
            return RecordOutcome::left_out("repeated message");
        }
        if previous.is_none() && self.is_written_again(message) {
            return RecordOutcome::left_out("history written again");
        }
        let id: Arc<str> = message.text("id").unwrap_or_default().into();
        let name = || Some(Name::Record(id.clone()));
        match message.text("type").as_deref() {
            Some("user") => self.user(emit, &id, message),
            Some("gemini") => self.model(emit, &id, message),
            Some("error") => {
                let failure = Failure { text: text_of(message), ..Failure::default() };
                emit.push(EventKind::Part(name(), Body::Error(failure)));
                RecordOutcome::InParts
            }
            // The only record of a turn that the user cancelled.
            Some("info") if text_of(message) == "Request cancelled." => {
                self.cancelled = true;
                emit.push(EventKind::TurnEnded(EndReason::Interrupted));
                RecordOutcome::Metadata
            }
            Some(kind @ ("info" | "warning")) => {
                let code = if kind == "info" { "informational" } else { kind }.to_owned();
                emit.push(EventKind::Part(
                    name(),
                    Body::Notice(Notice { code, text: text_of(message) }),
                ));
                RecordOutcome::InParts
            }
            kind => {
                let kind = kind.unwrap_or("message").to_owned();
                let data = Data { kind, payload: message.whole() };
                emit.push(EventKind::Part(name(), Body::Data(data)));
                RecordOutcome::InParts
            }
        }
    }

    /// True for a copy of an earlier message. After a refused call Gemini writes its history again:
    /// its context, the messages in order with new ids, and then a list.
    fn is_written_again(&mut self, message: &Fields<'_>) -> bool {
        if is_context(message) {
            self.rewritten = Some(0);
            return true;
        }
        let content = content_of(message);
        let earlier = self.rewritten.and_then(|from| self.contents.get(from..));
        let found = earlier.and_then(|earlier| earlier.iter().position(|one| *one == content));
        self.rewritten = self.rewritten.zip(found).map(|(from, found)| from + found + 1);
        if self.rewritten.is_none() {
            self.contents.push(content);
        }
        self.rewritten.is_some()
    }

    fn user(
        &mut self,
        emit: &mut Emitter<'_>,
        id: &Arc<str>,
        message: &Fields<'_>,
    ) -> RecordOutcome {
        let mut responses = message.list("content").filter(|part| part.has("functionResponse"));
        if responses.next().is_some() {
            return self.responses(emit, message);
        }
        let user = user_parts(message);
        // Gemini tells the model what a hook of the session added in a message of its own.
        if is_injected(&user) {
            for (nth, body) in user.into_iter().enumerate() {
                let name = Name::Record(format!("{id}/context/{nth}").into());
                emit.push(EventKind::Part(Some(name), body));
            }
            return RecordOutcome::InParts;
        }
        let by_text = self.prompt_names.next_of(&user);
        let context = self.context.take().map(|text| separate_text(super::NAME, text));
        let user = context.into_iter().flatten().chain(user).collect();
        let names = [Name::Prompt(id.clone())].into_iter().chain(by_text).collect();
        self.prompts.push(id.clone());
        self.waits = true;
        self.cancelled = false;
        self.steps.clear();
        // Gemini prompts a sub-agent that ran out of turns to finish.
        let trigger = match self.sub_agent {
            true if self.prompts.len() > 1 => Trigger::Continuation,
            true => Trigger::Agent,
            false => Trigger::User,
        };
        emit.push(EventKind::TurnStarted { names, trigger, user });
        RecordOutcome::InParts
    }
}

/// The key of a message: type and id. In the list of a resumed session, a reply and the results
/// that follow it have the same id.
fn key_of(message: &Fields<'_>) -> u64 {
    let kind = message.text("type").unwrap_or_default();
    key(&kind, &message.text("id").unwrap_or_default())
}

fn key(kind: &str, id: &str) -> u64 {
    digest(format!("{kind}\n{id}").as_bytes())
}

/// A digest of what a message says, whatever its id and its shape.
fn content_of(message: &Fields<'_>) -> u64 {
    let mut content = message.string("type").unwrap_or_default();
    content.push('\n');
    content.push_str(&text_of(message));
    for part in message.list("content") {
        content.extend(part.fields("functionResponse").text("id").as_deref());
    }
    digest(content.as_bytes())
}

/// True for the context message that Gemini puts first into the list.
fn is_context(message: &Fields<'_>) -> bool {
    let text = message.list("content").find_map(|part| part.string("text"));
    message.is("type", "user") && text.is_some_and(|text| text.starts_with("<session_context>"))
}

pub(super) fn text_of(message: &Fields<'_>) -> String {
    message.string("content").unwrap_or_else(|| {
        let texts = message.list("content").filter(|part| !part.flag("thought"));
        texts.filter_map(|part| part.string("text")).collect()
    })
}

/// The user's own words, the files that they mention, and what hooks and editors added.
fn user_parts(message: &Fields<'_>) -> Vec<Body> {
    if let Some(text) = message.string("content") {
        return separate_text(super::NAME, text);
    }
    let mut files = ReferencedFiles::default();
    let mut user = Vec::new();
    for part in message.list("content") {
        match part.string("text") {
            Some(text) => match files.read(text) {
                Some(Referenced::File(file)) => user.push(Body::File(file)),
                Some(Referenced::Words(text)) => user.extend(separate_text(super::NAME, text)),
                None => {}
            },
            None => user.push(attachment(&part, &mut files)),
        }
    }
    user
}

fn attachment(part: &Fields<'_>, files: &mut ReferencedFiles) -> Body {
    let (data, file) = (part.fields("inlineData"), part.fields("fileData"));
    if !data.is_object() && !file.is_object() {
        return Body::Data(Data { kind: "part".to_owned(), payload: part.whole() });
    }
    let media_type = data.string("mimeType").or_else(|| file.string("mimeType"));
    let media = media_type.as_deref().unwrap_or("application/octet-stream");
    let inline = data.text("data").map(|bytes| format!("data:{media};base64,{bytes}"));
    let url = inline.or_else(|| file.string("fileUri"));
    let name = data.string("displayName").or_else(|| file.string("displayName"));
    let name = files.take_name().or(name);
    Body::File(File { name, media_type, url, text: None })
}
