//! The Claude Code fixtures as scripts. These tests need only realistic texts and results, so a
//! small reader of the logs is enough, and a change of a decoder does not change them.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;
use unspool_model::assemble::content_hash;
use unspool_model::event::{EventKind, ProseDetail, ProseKind, ToolCall, ToolEnd, ToolOutcome};
use unspool_model::json::Json;
use unspool_model::part::{Body, Data, File};
use unspool_model::session::{Trigger, Usage};

use crate::script::{Line, block, call_id, message, prompt_name, record, said_with, words};

#[derive(Deserialize)]
struct Record<'a> {
    uuid: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow, rename = "toolUseResult")]
    result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    id: Option<String>,
    model: Option<String>,
    #[serde(borrow)]
    content: &'a RawValue,
    usage: Option<Tokens>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Tokens {
    input_tokens: u64,
    output_tokens: u64,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    thinking: Option<String>,
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    tool_use_id: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    is_error: Option<bool>,
}

/// Every case by its name, as the script of one session.
pub fn fixtures() -> Vec<(String, Vec<Line>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let folder = root.join("fixtures/claude-code");
    let mut cases: Vec<PathBuf> =
        folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|case| case.join("log.jsonl").exists());
    cases.sort();
    assert!(cases.len() > 20, "no cases in {}", folder.display());
    let read = |case: &PathBuf| {
        let log = std::fs::read(case.join("log.jsonl")).unwrap();
        let log = String::from_utf8_lossy(&log).into_owned();
        (case.file_name().unwrap().to_string_lossy().into_owned(), script(&log))
    };
    cases.iter().map(read).collect()
}

fn script(log: &str) -> Vec<Line> {
    log.lines().enumerate().flat_map(|(nth, line)| lines(nth, line)).collect()
}

fn lines(nth: usize, line: &str) -> Vec<Line> {
    let Ok(parsed) = serde_json::from_str::<Record<'_>>(line) else { return Vec::new() };
    let uuid = parsed.uuid.clone().unwrap_or_else(|| format!("line {nth}"));
    let inside = parsed.message.and_then(|it| serde_json::from_str::<Message<'_>>(it.get()).ok());
    let Some(inside) = inside else {
        // Any other record becomes a data part.
        let payload = Json::parse(line).unwrap();
        let kind = parsed.kind.unwrap_or_default();
        return vec![
            EventKind::Part(Some(record(&uuid)), Body::Data(Data { kind, payload })).into(),
        ];
    };
    let content = inside.content.get();
    let step = inside.id.as_deref().unwrap_or(&uuid);
    let mut script: Vec<Line> = Vec::new();
    if let Some(model) = inside.model {
        script.push(EventKind::StepStarted { step: message(step), model: Some(model) }.into());
        let used = inside.usage.unwrap_or_default();
        let (input, output) = (used.input_tokens, used.output_tokens);
        let usage = Usage { input, output, ..Usage::default() };
        script.push(EventKind::UsageUpdated { step: message(step), usage }.into());
    }
    let begin = |user: Vec<Body>| EventKind::TurnStarted {
        names: vec![prompt_name(&uuid)],
        trigger: Trigger::User,
        user,
    };
    if let Ok(text) = serde_json::from_str::<String>(content) {
        script.push(begin(vec![words(&text)]).into());
    }
    let blocks: Vec<Block<'_>> = serde_json::from_str(content).unwrap_or_default();
    let asks = parsed.kind.as_deref() == Some("user");
    for (index, part) in blocks.into_iter().enumerate() {
        let name = block(&format!("{step}/{uuid}"), index as u32);
        let json = |raw: Option<&RawValue>| raw.map(Json::raw);
        let kind = match (part.kind.as_str(), part.text, part.thinking) {
            ("text", Some(text), _) if asks => begin(vec![words(&text)]),
            ("text", Some(text), _) => {
                said_with(ProseKind::Text, Some(name), &text, ProseDetail::default()).kind
            }
            ("thinking", _, Some(text)) => {
                said_with(ProseKind::Reasoning, Some(name), &text, ProseDetail::default()).kind
            }
            ("tool_use", _, _) => {
                let (tool, input) = (part.name.unwrap_or_default(), json(part.input));
                EventKind::ToolCalled(Box::new(ToolCall {
                    call: call_id(part.id.as_deref().unwrap_or(&uuid)),
                    parent_call_id: None,
                    content_hash: content_hash(&tool, input.as_ref()),
                    name: tool,
                    input,
                    provider_executed: false,
                    title: None,
                    running: true,
                }))
            }
            ("tool_result", _, _) => EventKind::ToolEnded {
                call: call_id(part.tool_use_id.as_deref().unwrap_or(&uuid)),
                end: if part.is_error == Some(true) { ToolEnd::Failed } else { ToolEnd::Completed },
                outcome: ToolOutcome {
                    output: part.content.map(|raw| {
                        let text = serde_json::from_str::<String>(raw.get());
                        text.unwrap_or_else(|_| raw.get().to_owned())
                    }),
                    result: json(parsed.result),
                    ..ToolOutcome::default()
                },
            },
            ("image", _, _) => begin(vec![
                words("an image"),
                Body::File(File { text: Some(content.to_owned()), ..File::default() }),
            ]),
            (kind, _, _) => {
                let payload = Json::parse(content).unwrap();
                let name = record(&format!("{uuid} {index}"));
                EventKind::Part(Some(name), Body::Data(Data { kind: kind.to_owned(), payload }))
            }
        };
        script.push(kind.into());
    }
    script
}

/// The paths of all files of the fixtures.
pub fn fixture_paths() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("fixtures");
    let mut open = vec![root];
    let mut files = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { open.push(path) } else { files.push(path) }
        }
    }
    files
}
