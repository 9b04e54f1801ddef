//! The texts of a step in pictures: a short title and a tooltip. Both are made from the ThoughtFlow
//! document alone and contain only visible characters.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;
use unspool_model::json::Json;

use super::document::{Conversation, FlowStep, Label};
use crate::html::text::safe;

/// The longest title, in characters (R-002-25).
pub const MAX_TITLE_CHARS: usize = 140;
/// The longest tooltip, in characters.
pub const MAX_TOOLTIP_CHARS: usize = 2000;

/// The fields of a payload as raw JSON.
struct PayloadFields(BTreeMap<String, Box<RawValue>>);

impl PayloadFields {
    fn of(payload: Option<&Json>) -> PayloadFields {
        PayloadFields(payload.and_then(Json::read).unwrap_or_default())
    }

    fn text(&self, name: &str) -> Option<String> {
        self.0.get(name).and_then(|raw| serde_json::from_str(raw.get()).ok())
    }

    /// A string as text, anything else as JSON.
    fn shown(&self, name: &str) -> Option<String> {
        let raw = self.0.get(name)?.get();
        if raw == "null" {
            return None;
        }
        Some(self.text(name).unwrap_or_else(|| raw.to_owned()))
    }
}

/// The title and the tooltip of a step.
pub struct StepText {
    pub title: String,
    pub tooltip: String,
}

impl StepText {
    pub fn of(step: &FlowStep) -> StepText {
        let started = PayloadFields::of(step.payload_started.as_ref());
        let completed = PayloadFields::of(step.payload_completed.as_ref());
        let either = |name: &str| started.shown(name).or_else(|| completed.shown(name));
        let text = || either("text").unwrap_or_default();
        let (title, tooltip) = match Label::of_name(&step.label) {
            Label::UserMessage | Label::AssistantMessage => (text(), text()),
            Label::AssistantCall => {
                let model = either("model").unwrap_or_else(|| "a model".to_owned());
                (model.clone(), model_call(&model, &started, &completed))
            }
            Label::ToolCall => {
                let name = either("name").unwrap_or_else(|| "a tool".to_owned());
                let input = started.shown("arguments").or_else(|| started.shown("arguments_text"));
                let input = input.unwrap_or_default();
                let state = completed.shown("state").unwrap_or_default();
                let title = started.shown("title").unwrap_or_else(|| input_summary(&input));
                (format!("{name} {title}"), format!("{name} ({state})\n{input}"))
            }
            Label::ToolOutput | Label::ToolError => {
                let value = completed.shown("output").or_else(|| completed.shown("result"));
                let value = value.or_else(|| completed.shown("state")).unwrap_or_default();
                (value.clone(), value)
            }
            Label::PolicySnapshot
            | Label::ToolSchemasSnapshot
            | Label::ContextPreamble
            | Label::ChannelPreamble => {
                let version: String =
                    either("version").unwrap_or_default().chars().take(12).collect();
                (format!("{} {version}", step.label), whole(step))
            }
            Label::PromptAdaptations => {
                let length = either("content_length").unwrap_or_default();
                (format!("adaptations, {length} characters"), whole(step))
            }
            Label::Generic => {
                // A foreign label is more specific than the kind.
                let own = (step.label != Label::Generic.name()).then(|| step.label.clone());
                let kind = own.or_else(|| either("kind")).unwrap_or_default();
                let says = ["text", "summary", "name", "code", "trigger", "title", "data_kind"];
                let says =
                    says.into_iter().find_map(|name| either(name).filter(|it| !it.is_empty()));
                let says = says.or_else(|| list_names(&completed)).unwrap_or_default();
                let title = if says.is_empty() {
                    kind
                } else {
                    format!("{kind}: {}", first_sentence(&says))
                };
                (title, whole(step))
            }
        };
        let title = first_sentence(&title);
        let title = if title.is_empty() { step.label.clone() } else { title };
        StepText { title: safe(&title).into_owned(), tooltip: cut(&tooltip, MAX_TOOLTIP_CHARS) }
    }
}

/// The tooltip of a model call: model, arguments and response (R-002-24).
fn model_call(model: &str, started: &PayloadFields, completed: &PayloadFields) -> String {
    let mut lines = vec![format!("model: {model}")];
    lines.extend(started.shown("arguments").map(|arguments| format!("arguments: {arguments}")));
    for name in ["response_id", "status", "stop_reason", "usage"] {
        lines.extend(completed.shown(name).map(|value| format!("{name}: {value}")));
    }
    lines.join("\n")
}

/// All fields of both payloads.
fn whole(step: &FlowStep) -> String {
    let payloads = [&step.payload_started, &step.payload_completed].into_iter().flatten();
    let mut lines = Vec::new();
    for payload in payloads {
        let fields = PayloadFields::of(Some(payload));
        for name in fields.0.keys() {
            lines.extend(fields.shown(name).map(|value| format!("{name}: {value}")));
        }
    }
    lines.join("\n")
}

/// A title for a part without text: the names in its list.
fn list_names(part: &PayloadFields) -> Option<String> {
    if part.shown("redacted").as_deref() == Some("true") {
        return Some("redacted".to_owned());
    }
    let list = ["agents", "items", "servers"].into_iter().find_map(|name| part.shown(name))?;
    let list: Vec<Value> = serde_json::from_str(&list).ok()?;
    let named = list.iter().filter_map(|one| {
        let value = ["name", "text", "task"].map(|field| one[field].as_str().unwrap_or_default());
        value.into_iter().find(|text| !text.is_empty())
    });
    Some(named.collect::<Vec<_>>().join(", ")).filter(|names| !names.is_empty())
}

/// A summary of a tool input: its most specific text field.
fn input_summary(input: &str) -> String {
    let fields: Option<BTreeMap<String, Box<RawValue>>> = serde_json::from_str(input).ok();
    let texts = fields
        .into_iter()
        .flatten()
        .filter_map(|(name, raw)| Some((name, serde_json::from_str::<String>(raw.get()).ok()?)));
    // Common names of the main field, most specific first.
    let about = ["command", "file_path", "path", "filePath", "pattern", "query", "url", "prompt"];
    let mut texts: Vec<(String, String)> = texts.collect();
    texts.sort_by_key(|(name, _)| about.iter().position(|one| one == name).unwrap_or(about.len()));
    match texts.into_iter().next() {
        Some((name, path)) if name.to_lowercase().contains("path") => short_path(&path),
        Some((_, text)) => text,
        None => input.to_owned(),
    }
}

/// The last two segments of a path: most paths share their start.
fn short_path(path: &str) -> String {
    let names: Vec<&str> = path.rsplit('/').take(3).collect();
    match names.as_slice() {
        [file, folder, _] => format!("…/{folder}/{file}"),
        _ => path.to_owned(),
    }
}

/// The first sentence of a text, on one line and within the title limit.
pub fn first_sentence(text: &str) -> String {
    let mut title = String::new();
    let mut before = ' ';
    for (count, c) in text.trim_start().chars().enumerate() {
        if matches!(c, '\n' | '\r') || (c == ' ' && matches!(before, '.' | '!' | '?')) {
            break;
        }
        if count + 1 == MAX_TITLE_CHARS {
            title.push('…');
            break;
        }
        title.push(if c == '\t' { ' ' } else { c });
        before = c;
    }
    title.trim_end().to_owned()
}

/// Truncates a text and appends how many characters are missing.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => safe(text).into_owned(),
        Some((at, _)) => {
            let (kept, rest) = text.split_at(at);
            format!("{}\n… and {} more characters", safe(kept), rest.chars().count())
        }
    }
}

/// A duration in readable units.
pub fn format_duration(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{seconds}.{} s", milliseconds % 1000 / 100),
        60_000..3_600_000 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

impl Conversation {
    /// The heading of a run: number, status and duration.
    pub fn heading(&self, number: usize) -> String {
        let mut heading = format!("Run {number} · {}", self.status.name());
        if let Some(duration) = self.duration_ms {
            heading.push_str(" · ");
            heading.push_str(&format_duration(duration));
        }
        heading
    }

    /// The dependency edges as indices of `steps`. If no step has dependencies, each depends on the
    /// one before it (R-002-23).
    pub fn edges(&self) -> Vec<(usize, usize)> {
        let places: rustc_hash::FxHashMap<&str, usize> =
            self.steps.iter().enumerate().map(|(at, step)| (step.step_id.as_str(), at)).collect();
        let mut edges = Vec::new();
        for (to, step) in self.steps.iter().enumerate() {
            let from = step.depends_on.0.iter().filter_map(|id| places.get(id.as_str()));
            edges.extend(from.filter(|from| **from != to).map(|from| (*from, to)));
        }
        if edges.is_empty() {
            return (1..self.steps.len()).map(|to| (to - 1, to)).collect();
        }
        edges
    }
}
