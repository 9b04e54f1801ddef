//! The messages of a conversation, as the session file, the events and the result of a sub-agent
//! have them: prompts, replies, results of calls, and commands of the user.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use unspool_model::event::{CallRef, EndReason, EventKind, ToolCall, ToolEnd, ToolOutcome};
use unspool_model::id::{digest, sha256};
use unspool_model::json::Json;
use unspool_model::part::{Body, Data, File, Interjection, Notice, SkillLoad, Text};
use unspool_model::provenance::Name;
use unspool_model::session::Trigger;

use super::super::cost_sum::CostSum;
use super::super::{Emitter, Fields, RecordOutcome};
use super::result::text_of;

/// The state of one conversation.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Conversation {
    /// The id of its session.
    pub session: Arc<str>,
    /// It is a sub-agent's: its prompts come from another conversation.
    pub is_agent: bool,
    /// What follows was copied from the session that this one was forked from.
    pub inherited: bool,
    /// Whether the model is asked to think.
    pub thinking: Option<bool>,
    /// The tools of calls without a result.
    pub calls: BTreeMap<Arc<str>, String>,
    /// The model has not said yet that it is done.
    pub running: bool,
    /// When the latest result came, in milliseconds, if no reply has followed.
    pub result_at: Option<u64>,
    /// The reply that failed, if no other has followed.
    pub failed: Option<Arc<str>>,
    pub cost: CostSum,
}

impl Conversation {
    /// Decodes a message. `entry` is its own id, for files without times of messages. Returns the
    /// name of the turn if it starts one.
    pub fn message(
        &mut self,
        emit: &mut Emitter<'_>,
        message: &Fields<'_>,
        entry: &str,
    ) -> (RecordOutcome, Option<Name>) {
        let key = key_of(message, entry);
        let outcome = match message.text("role").as_deref() {
            Some("user") => return self.user(emit, message, &key),
            Some("bashExecution") => return self.command(emit, message, &key),
            Some("assistant") => self.assistant(emit, message, &key),
            Some("toolResult") => {
                self.result_at = message.number("timestamp").or(Some(u64::MAX));
                let call = message.text("toolCallId").unwrap_or_default();
                self.end_call(emit, &call, message)
            }
            // What the model is told before the conversation.
            Some("system") => {
                let content = message.whole();
                let (kind, sha256) =
                    ("system-policy".to_owned(), sha256(content.text().as_bytes()));
                emit.push(EventKind::SnapshotTaken { kind, sha256, content });
                RecordOutcome::Metadata
            }
            kind => {
                let kind = format!("message/{}", kind.unwrap_or("message"));
                let data = Data { kind, payload: message.whole() };
                emit.push(EventKind::Part(Some(Name::Record(key)), Body::Data(data)));
                RecordOutcome::InParts
            }
        };
        (outcome, None)
    }

    /// Decodes the whole conversation of a sub-agent, which is inside a result.
    pub fn messages(&mut self, emit: &mut Emitter<'_>, result: &Fields<'_>) -> RecordOutcome {
        for (nth, message) in result.list("messages").enumerate() {
            emit.at = time_of(&message).or(emit.at);
            self.message(emit, &message, &nth.to_string());
        }
        RecordOutcome::InParts
    }

    fn user(
        &mut self,
        emit: &mut Emitter<'_>,
        message: &Fields<'_>,
        key: &Arc<str>,
    ) -> (RecordOutcome, Option<Name>) {
        let (user, skill) = user_parts(message);
        // What was typed before the results came was typed while the turn ran.
        let typed = message.number("timestamp").unwrap_or(0);
        let steers = self.running && self.result_at.is_some_and(|at| typed <= at);
        if steers {
            let texts: Vec<&str> = user.iter().filter_map(Body::prose).collect();
            let body = Body::Interjection(Interjection { text: texts.join("\n") });
            emit.push(EventKind::Part(Some(Name::Record(key.clone())), body));
            return (RecordOutcome::InParts, None);
        }
        let trigger = if self.is_agent { Trigger::Agent } else { Trigger::User };
        let name = self.start(emit, key, trigger, user);
        if let Some((name, text)) = skill {
            let skill = SkillLoad { name, call_id: None, text };
            let name = Name::Record(format!("{key}/skill").into());
            emit.push(EventKind::Part(Some(name), Body::SkillLoad(skill)));
        }
        (RecordOutcome::InParts, Some(name))
    }

    pub fn start(
        &mut self,
        emit: &mut Emitter<'_>,
        key: &Arc<str>,
        trigger: Trigger,
        user: Vec<Body>,
    ) -> Name {
        (self.running, self.result_at, self.failed) = (true, None, None);
        self.calls.clear();
        let name = Name::Prompt(key.clone());
        emit.turn = None;
        emit.push(EventKind::TurnStarted { names: vec![name.clone()], trigger, user });
        if let Some(thinking) = self.thinking.filter(|_| trigger == Trigger::User) {
            emit.push(EventKind::ThinkingUpdated(thinking));
        }
        if self.inherited {
            emit.push(EventKind::TurnInherited);
        }
        name
    }

    /// A shell command that the user ran. The model did not ask for it.
    fn command(
        &mut self,
        emit: &mut Emitter<'_>,
        message: &Fields<'_>,
        key: &Arc<str>,
    ) -> (RecordOutcome, Option<Name>) {
        let command = message.string("command").unwrap_or_default();
        let output = message.string("output").unwrap_or_default();
        if self.running {
            let text = format!("! {command}\n{output}");
            let notice = Notice { code: "command-output".to_owned(), text };
            emit.push(EventKind::Part(Some(Name::Record(key.clone())), Body::Notice(notice)));
            return (RecordOutcome::InParts, None);
        }
        let text = format!("! {command}");
        let user = vec![Body::Text(Text { text, ..Text::default() })];
        let name = self.start(emit, key, Trigger::Command, user);
        let input = Json::parse(&serde_json::json!({ "command": command }).to_string());
        emit.push(EventKind::ToolCalled(Box::new(ToolCall {
            call: CallRef::Id(key.clone()),
            parent_call_id: None,
            name: "bash".to_owned(),
            input,
            content_hash: digest(command.as_bytes()),
            provider_executed: false,
            title: None,
            running: true,
        })));
        let end = if message.flag("cancelled") { ToolEnd::Interrupted } else { ToolEnd::Completed };
        let outcome = ToolOutcome {
            output: Some(output),
            result: None,
            exit_code: message.read("exitCode"),
            duration_ms: None,
        };
        emit.push(EventKind::ToolEnded { call: CallRef::Id(key.clone()), end, outcome });
        self.running = false;
        emit.push(EventKind::TurnEnded(EndReason::Completed));
        (RecordOutcome::InParts, Some(name))
    }
}

/// The name of a message that both feeds have: the time at which it began. Messages of the user may
/// have equal times, so their words are added.
fn key_of(message: &Fields<'_>, entry: &str) -> Arc<str> {
    let Some(time) = message.number("timestamp") else { return entry.into() };
    match message.text("role").as_deref() {
        Some("user") => {
            let words = message.string("content").unwrap_or_else(|| text_of(message));
            let words = digest(words.as_bytes());
            format!("{time}/{words:x}").into()
        }
        Some(_) | None => time.to_string().into(),
    }
}

/// The time of a message, from its milliseconds.
pub(super) fn time_of(message: &Fields<'_>) -> Option<Timestamp> {
    let time = i64::try_from(message.number("timestamp")?).ok()?;
    Timestamp::from_millisecond(time).ok()
}

/// The user's own parts, and the skill that the program put before the user's words.
fn user_parts(message: &Fields<'_>) -> (Vec<Body>, Option<(String, String)>) {
    let mut skill = None;
    let mut images = Vec::new();
    let mut said = |text: String, user: &mut Vec<Body>| {
        let (files, text) = mentioned_files(text);
        for file in files {
            match file.text {
                Some(_) => user.push(Body::File(file)),
                None => images.extend(file.name),
            }
        }
        let (held, rest) = skill_of(&text).map_or((None, text.clone()), |(name, body, rest)| {
            (Some((name.to_owned(), body.to_owned())), rest.to_owned())
        });
        skill = skill.take().or(held);
        if !rest.is_empty() || user.is_empty() {
            user.push(Body::Text(Text { text: rest, ..Text::default() }));
        }
    };
    let mut user = Vec::new();
    if let Some(text) = message.string("content") {
        said(text, &mut user);
        return (user, skill);
    }
    let mut attached = Vec::new();
    for block in message.list("content") {
        match block.text("type").as_deref() {
            Some("text") => said(block.string("text").unwrap_or_default(), &mut user),
            Some("image") => {
                attached.push(user.len());
                user.push(Body::File(image(&block)));
            }
            kind => user.push(Body::Data(Data {
                kind: kind.unwrap_or("block").to_owned(),
                payload: block.whole(),
            })),
        }
    }
    // The images of mentioned files come in the order of their tags.
    for (at, path) in attached.into_iter().zip(images) {
        if let Some(Body::File(file)) = user.get_mut(at) {
            file.name = Some(path);
        }
    }
    (user, skill)
}

/// The files that the user mentioned, which Pi puts before the user's words, and these words. An
/// image is an empty tag; its data are in a block of its own.
fn mentioned_files(mut text: String) -> (Vec<File>, String) {
    let mut files = Vec::new();
    while let Some((name, content, rest)) = mentioned_file(&text) {
        let content = Some(content).filter(|content| !content.is_empty());
        let (media_type, url) = (None, None);
        files.push(File { name: Some(name), media_type, url, text: content });
        text = rest;
    }
    (files, text)
}

fn mentioned_file(text: &str) -> Option<(String, String, String)> {
    let (name, rest) = text.strip_prefix("<file name=\"")?.split_once("\">")?;
    // A file may have such a tag itself, but not alone on the last line before the words.
    let (content, rest) = match rest.strip_prefix("</file>") {
        Some(rest) => ("", rest),
        None => rest
            .strip_prefix('\n')?
            .split_once("\n</file>\n")
            .or_else(|| Some((rest.strip_prefix('\n')?.strip_suffix("\n</file>")?, "")))?,
    };
    Some((name.to_owned(), content.to_owned(), rest.strip_prefix('\n').unwrap_or(rest).to_owned()))
}

/// The name and the text of a skill, and the words after it.
fn skill_of(text: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = text.strip_prefix("<skill name=\"")?.split_once('"')?;
    let (body, rest) = rest.split_once('>')?.1.split_once("</skill>")?;
    Some((name, body.trim_matches('\n'), rest.trim_start_matches('\n')))
}

/// An image in a message.
pub(super) fn image(block: &Fields<'_>) -> File {
    let media_type = block.string("mimeType");
    let kind = media_type.as_deref().unwrap_or("application/octet-stream");
    let url = block.text("data").map(|data| format!("data:{kind};base64,{data}"));
    File { name: None, media_type, url, text: None }
}
