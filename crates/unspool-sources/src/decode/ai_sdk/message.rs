//! Parts of messages, shared by stored chats and streams.

use jiff::Timestamp;
use serde_json::Value;
use unspool_model::agent::{SIGNATURE_FIELDS, signature_field};
use unspool_model::event::{EventKind, ProseDetail, ProseKind};
use unspool_model::json::Json;
use unspool_model::part::{Body, Data, Failure, File, Interjection, SourceLink, Text};
use unspool_model::provenance::Name;
use unspool_model::session::Usage;

use super::super::{Emitter, Fields};
use super::part_names::{Calls, PartNames};
use super::tool;
use super::unmapped::UnmappedFields;

/// The state of decoding one assistant message.
pub(super) struct Reply<'m> {
    pub message: &'m str,
    pub part_names: PartNames,
    pub calls: &'m mut Calls,
    pub rest: UnmappedFields,
    pub model: Option<String>,
    /// The current step.
    pub step: Option<Name>,
    /// It has an unfinished part.
    pub open: bool,
}

impl Reply<'_> {
    /// Decodes one part of a stored message.
    pub fn part(&mut self, emit: &mut Emitter<'_>, index: u32, part: &Fields<'_>) {
        let kind = part.string("type").unwrap_or_default();
        match &*kind {
            "step-start" => {
                self.start_step(emit);
                self.rest.keep_except(index, part, &["type"]);
            }
            "text" if exported_error(&part.fields("providerMetadata")).is_some() => {
                self.error(emit, index, part);
            }
            "text" => {
                let citations: Vec<Json> = part.read("citations").unwrap_or_default();
                let detail = ProseDetail { citations, ..ProseDetail::default() };
                self.say(emit, ProseKind::Text, index, part, detail);
            }
            "reasoning" => {
                let empty = part.text("text").is_none_or(|text| text.is_empty());
                let (detail, is_all) = reasoning_detail(&part.fields("providerMetadata"), empty);
                if !is_all {
                    self.rest.keep_present(index, part, "providerMetadata");
                }
                self.say(emit, ProseKind::Reasoning, index, part, detail);
            }
            _ => match tool::tool_name(part) {
                Some(name) => {
                    let id = part.text("toolCallId").unwrap_or_default();
                    self.need_step(emit);
                    let call = self.calls.id(self.message, &id);
                    self.open |= !tool::part(emit, &call, &name, part, index, &mut self.rest);
                    self.part_names.pass(&id);
                }
                None => {
                    emit_standalone_part(emit, &mut self.part_names, &mut self.rest, index, part)
                }
            },
        }
    }

    /// An error that our own export wrote as text (R-001-23).
    fn error(&mut self, emit: &mut Emitter<'_>, index: u32, part: &Fields<'_>) {
        let Some(failure) = exported_error(&part.fields("providerMetadata")) else { return };
        self.need_step(emit);
        let name = self.part_names.part("text");
        let text = part.string("text").unwrap_or_default();
        emit.push(EventKind::Part(Some(name), Body::Error(Failure { text, ..failure })));
        let mut mapped_fields = vec!["type", "text", "providerMetadata"];
        mapped_fields.extend(part.is("state", "done").then_some("state"));
        self.rest.keep_except(index, part, &mapped_fields);
    }

    pub fn start_step(&mut self, emit: &mut Emitter<'_>) {
        let step = self.part_names.step();
        self.step = Some(step.clone());
        emit.push(EventKind::StepStarted { step, model: self.model.clone() });
    }

    /// Starts a step if there is none: the model's parts need one, even if the application marks no
    /// steps.
    fn need_step(&mut self, emit: &mut Emitter<'_>) {
        if self.step.is_none() {
            self.start_step(emit);
        }
    }

    fn say(
        &mut self,
        emit: &mut Emitter<'_>,
        prose_kind: ProseKind,
        index: u32,
        part: &Fields<'_>,
        detail: ProseDetail,
    ) {
        self.need_step(emit);
        let kind = prose_kind_name(prose_kind);
        let name = self.part_names.part(kind);
        let text = part.string("text").unwrap_or_default();
        let unfinished = part.is("state", "streaming");
        self.open |= unfinished;
        let mut mapped_fields = vec!["type"];
        mapped_fields.extend(part.is_text("text").then_some("text"));
        mapped_fields.extend(part.is("state", "done").then_some("state"));
        match prose_kind {
            ProseKind::Text => {
                let citations: Option<Vec<Json>> = part.read("citations");
                mapped_fields.extend(citations.map(|_| "citations"));
            }
            ProseKind::Reasoning => mapped_fields.push("providerMetadata"),
        }
        self.rest.keep_except(index, part, &mapped_fields);
        if text.trim().is_empty() && !detail.redacted {
            // Blank prose makes no part; keep all its fields.
            for name in ["type", "text", "citations", "providerMetadata"] {
                self.rest.keep_present(index, part, name);
            }
            return;
        }
        emit.push(EventKind::ProseCompleted { prose_kind, block: Some(name), text, detail });
    }
}

/// The error that our own export wrote in the metadata of a text, without its words. None if there
/// is anything else in the metadata.
pub(super) fn exported_error(metadata: &Fields<'_>) -> Option<Failure> {
    let (ours, error) = (metadata.fields("unspool"), metadata.fields("unspool").fields("error"));
    let alone = error.is_object() && metadata.each().count() == 1 && ours.each().count() == 1;
    let known = error.each().all(|(name, _)| matches!(&*name, "code" | "status"));
    let (code, status) = (error.string("code"), error.number("status"));
    (alone && known).then_some(Failure { code, status, ..Failure::default() })
}

pub(super) fn prose_kind_name(prose_kind: ProseKind) -> &'static str {
    match prose_kind {
        ProseKind::Text => "text",
        ProseKind::Reasoning => "reasoning",
    }
}

/// Decodes a part that is complete by itself and the same in a message and in a stream.
pub(super) fn emit_standalone_part(
    emit: &mut Emitter<'_>,
    part_names: &mut PartNames,
    rest: &mut UnmappedFields,
    index: u32,
    part: &Fields<'_>,
) {
    let kind = part.string("type").unwrap_or_default();
    match &*kind {
        "file" | "reasoning-file" => {
            emit.push(EventKind::Part(Some(part_names.part("file")), Body::File(file(part))));
            rest.keep_except(index, part, &FILE_FIELDS);
            rest.keep_non_texts(index, part, &FILE_FIELDS);
            if kind != "file" {
                rest.keep(index, "type", Json::string(&kind));
            }
        }
        "source-url" | "source-document" => {
            let (url, title) = (part.string("url"), part.string("title"));
            let source = SourceLink { url, title, quote: None };
            emit.push(EventKind::Part(Some(part_names.part("source")), Body::Source(source)));
            rest.keep_except(index, part, &["type", "url", "title"]);
            rest.keep_non_texts(index, part, &["url", "title"]);
        }
        "steering-message" => {
            let texts: Vec<String> =
                part.list("parts").filter_map(|part| part.string("text")).collect();
            let id = part.string("id").unwrap_or_default();
            let name = part_names.own("steering", &id);
            emit.push(EventKind::Part(
                Some(name),
                Body::Interjection(Interjection { text: texts.join("\n") }),
            ));
            for given in part.list("parts").filter(|part| part.is("type", "file")) {
                emit.push(EventKind::Part(Some(part_names.part("file")), Body::File(file(&given))));
            }
            rest.keep_except(index, part, &["type"]);
        }
        _ => {
            let name = match part.text("id") {
                Some(id) if kind.starts_with("data-") => part_names.own(&kind, &id),
                Some(_) | None => part_names.part("data"),
            };
            emit.push(EventKind::Part(Some(name), Body::Data(data(part))));
        }
    }
}

const FILE_FIELDS: [&str; 4] = ["type", "mediaType", "url", "filename"];

fn file(part: &Fields<'_>) -> File {
    let (name, media_type) = (part.string("filename"), part.string("mediaType"));
    File { name, media_type, url: part.string("url"), text: None }
}

fn data(part: &Fields<'_>) -> Data {
    let kind = part.string("type").filter(|kind| !kind.is_empty());
    Data { kind: kind.unwrap_or_else(|| "part".to_owned()), payload: part.whole() }
}

/// A part of a user message.
pub(super) fn user_part(rest: &mut UnmappedFields, index: u32, part: &Fields<'_>) -> Body {
    match part.text("type").as_deref() {
        Some("text") => {
            rest.keep_except(index, part, &["type", "text", "state"]);
            rest.keep_non_texts(index, part, &["text", "state"]);
            let text = part.string("text").unwrap_or_default();
            Body::Text(Text { text, ..Text::default() })
        }
        Some("file") => {
            rest.keep_except(index, part, &FILE_FIELDS);
            rest.keep_non_texts(index, part, &FILE_FIELDS);
            Body::File(file(part))
        }
        Some(_) | None => Body::Data(data(part)),
    }
}

/// The signature that a provider attached to reasoning, and whether nothing else is attached.
pub(super) fn reasoning_detail(metadata: &Fields<'_>, empty: bool) -> (ProseDetail, bool) {
    let providers: Vec<_> = metadata.each().map(|(name, _)| name).collect();
    let signed = providers.iter().find_map(|provider| {
        let reported = metadata.fields(provider);
        let text = |name: &'static str| Some((name, reported.string(name)?));
        let (name, text) =
            SIGNATURE_FIELDS.into_iter().filter_map(text).find(|(_, text)| !text.is_empty())?;
        Some((provider.clone().into_owned(), name, text))
    });
    let Some((signer, name, signature)) = signed else {
        return (ProseDetail::default(), providers.is_empty());
    };
    let alone = providers.len() == 1 && metadata.fields(&signer).each().count() == 1;
    let is_all = alone && name == signature_field(&signer, empty);
    // Our own exports write `unspool` for an unknown signer.
    let (signature, signer) = (Some(signature), Some(signer).filter(|name| name != "unspool"));
    (ProseDetail { signature, signer, redacted: empty, ..ProseDetail::default() }, is_all)
}

/// The time of a message, if the application stored one.
pub(super) fn time(fields: &Fields<'_>) -> Option<Timestamp> {
    const NAMES: [&str; 6] =
        ["createdAt", "created_at", "timestamp", "startedAt", "started_at", "time"];
    let metadata = fields.fields("metadata");
    let of = |fields: &Fields<'_>| {
        NAMES.into_iter().find_map(|name| {
            let number = || {
                let number: f64 = fields.raw(name)?.parse().ok()?;
                // Seconds or milliseconds since 1970: no chat is older than 1973.
                let scale = if number < 1e11 { 1000.0 } else { 1.0 };
                Timestamp::from_millisecond((number * scale) as i64).ok()
            };
            fields.time(name).or_else(number)
        })
    };
    of(fields).or_else(|| of(&metadata))
}

/// The model, if the application stored it in the metadata.
pub(super) fn model(metadata: &Value) -> Option<String> {
    let names = ["model", "modelId", "model_id"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let own = names.into_iter().find_map(|name| text(metadata.get(name)?));
    own.or_else(|| text(metadata.get("response")?.get("modelId")?))
}

/// The token usage of a message, if the application stored it in the metadata. Since version 6 the
/// input includes cached tokens, with a count of them.
pub(super) fn usage(metadata: &Value) -> Option<Usage> {
    let reported = ["totalUsage", "usage"].into_iter().find_map(|name| metadata.get(name))?;
    let count = |path: &[&str]| {
        path.iter().try_fold(reported, |value, name| value.get(name)).and_then(Value::as_u64)
    };
    let any = |paths: [&[&str]; 2]| paths.into_iter().find_map(count);
    let input = any([&["inputTokens"], &["promptTokens"]]);
    let output = any([&["outputTokens"], &["completionTokens"]]);
    if input.is_none() && output.is_none() {
        return None;
    }
    let cache_read = any([&["inputTokenDetails", "cacheReadTokens"], &["cachedInputTokens"]]);
    let cache_write = count(&["inputTokenDetails", "cacheWriteTokens"]);
    let (cache_read, cache_write) = (cache_read.unwrap_or(0), cache_write.unwrap_or(0));
    let fresh = count(&["inputTokenDetails", "noCacheTokens"]);
    let cached = cache_read.saturating_add(cache_write);
    let input = input.unwrap_or(0);
    Some(Usage {
        input: fresh.unwrap_or_else(|| input.checked_sub(cached).unwrap_or(input)),
        output: output.unwrap_or(0),
        cache_read,
        cache_write,
        reasoning: any([&["outputTokenDetails", "reasoningTokens"], &["reasoningTokens"]])
            .unwrap_or(0),
        ..Usage::default()
    })
}
