//! An independent reader of Claude Code's raw JSON, to check the product against. It shares no code
//! and no types with the product, and is written for clarity, not for speed: whole files in memory,
//! one `Value` per line.
//!
//! It derives the order that a person would find in the log: model messages in the order of their
//! first appearance, and in each message its blocks by index.

// Each test file uses only some of it. A missing fixture is a panic.
#![allow(dead_code, unused_imports, clippy::panic)]

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

pub mod ai_sdk;
pub mod aider;
pub mod cline;
pub mod codex;
pub mod continue_dev;
pub mod copilot;
pub mod droid;
pub mod gemini;
mod hooks;
pub mod kilo;
pub mod mini_swe_agent;
mod opencode;
pub mod pi;
pub mod qwen;
pub mod raw_session;
mod stream;

pub use hooks::{Question, hook_questions, hook_questions_of};
pub use opencode::opencode;
pub use stream::{Stream, stream_blocks, stream_of};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Reasoning,
    Text,
    Tool,
    /// An error text written by the CLI itself.
    Error,
    /// A kind of block unknown to this reader.
    Other,
}

/// One block of a model message.
#[derive(Clone, PartialEq, Debug)]
pub struct Block {
    pub kind: Kind,
    /// The id of the message, or of the record if it has none.
    pub message: String,
    pub index: usize,
    /// Text, reasoning or error. Empty for a tool and for redacted reasoning.
    pub text: String,
    /// For a tool: its id, its name and its input.
    pub call: Option<Call>,
    pub redacted: bool,
    /// The stream marks the block as discarded; the log never has it.
    pub abandoned: bool,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    pub id: String,
    pub name: String,
    pub input: Value,
}

/// The result of a tool call.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolResult {
    /// The content if it is a string, else its text blocks joined with line ends.
    pub text: String,
    pub is_error: bool,
    /// The record's `toolUseResult`; `Null` where there is none.
    pub structured: Value,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_creation: u64,
}

/// The agent's own count over the whole session and its sub-agents.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CostState {
    pub tokens: Tokens,
    pub cost_usd: f64,
}

/// The expected content of a log.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Log {
    pub session_id: Option<String>,
    /// The blocks of the main thread in order; of the side chain when the file is one.
    pub blocks: Vec<Block>,
    /// By the id of the call.
    pub results: BTreeMap<String, ToolResult>,
    /// Of the messages that `blocks` come from.
    pub tokens: Tokens,
    /// Of side chains written into the main thread's file (up to 1.0.x).
    pub side_chain_tokens: Tokens,
    pub cost_state: Option<CostState>,
    /// A sub-agent that only warmed up, without a task (2.0.x).
    pub warm_up: bool,
    /// Lines that are not blank.
    pub records: usize,
    /// Those of side chains in the main thread's file.
    pub side_records: usize,
    /// The numbers, from 1, of lines that are not JSON.
    pub unparsable: Vec<usize>,
}

/// Reads a log.
pub fn log(path: &Path) -> Log {
    log_of(&bytes_of(path))
}

pub fn log_of(bytes: &[u8]) -> Log {
    log_of_lines(Lines::of(bytes))
}

/// A sub-agent whose records are in the main thread's file.
pub struct Chain {
    /// The uuid of its first record.
    pub root: String,
    /// The call whose prompt is its first message.
    pub call: Option<String>,
    pub log: Log,
}

/// The side chains of a main thread's file, in the order in which they begin.
pub fn chains(path: &Path) -> Vec<Chain> {
    let lines = Lines::of(&bytes_of(path)).values;
    let is_side = |record: &&Value| record["isSidechain"] == true && record["agentId"].is_null();
    let by_uuid: BTreeMap<&str, &Value> =
        lines.iter().map(|record| (string(&record["uuid"]), record)).collect();
    let root_of = |record: &Value| {
        let mut root = string(&record["uuid"]);
        while let Some(parent) = by_uuid.get(root).and_then(|record| record["parentUuid"].as_str())
        {
            root = parent;
        }
        root.to_owned()
    };
    let mut chains: Vec<(String, Vec<Value>)> = Vec::new();
    for record in lines.iter().filter(is_side) {
        let root = root_of(record);
        match chains.iter_mut().find(|(held, _)| *held == root) {
            Some((_, records)) => records.push(record.clone()),
            None => chains.push((root, vec![record.clone()])),
        }
    }
    let blocks = |record: &Value| record["message"]["content"].as_array().cloned();
    let calls: Vec<Value> = lines.iter().filter_map(blocks).flatten().collect();
    let called_with = |prompt: &Value| {
        let call = calls.iter().find(|call| call["input"]["prompt"] == *prompt)?;
        Some(string(&call["id"]).to_owned())
    };
    let chain = |(root, values): (String, Vec<Value>)| {
        let call = values.first().and_then(|first| called_with(&first["message"]["content"]));
        let records = values.len();
        Chain { root, call, log: log_of_lines(Lines { values, records, unparsable: Vec::new() }) }
    };
    chains.into_iter().map(chain).collect()
}

fn log_of_lines(lines: Lines) -> Log {
    let is_tree = |record: &Value| {
        ["user", "assistant", "attachment", "system"].contains(&string(&record["type"]))
    };
    let is_side = |record: &Value| record["isSidechain"] == true;
    let tree: Vec<&Value> = lines.values.iter().filter(|record| is_tree(record)).collect();
    let all_side = !tree.is_empty() && tree.iter().all(|record| is_side(record));

    let mut log = Log { records: lines.records, unparsable: lines.unparsable, ..Log::default() };
    let mut main = Messages::default();
    let mut side = Messages::default();
    // Records that a fork copied are older than its file, and are counted in the original.
    let mut own = Messages::default();
    let time = |record: &Value| record["timestamp"].as_str().map(str::to_owned);
    let begun = lines.values.iter().find_map(time);
    let is_own = |record: &Value| {
        let (Some(begun), Some(at)) = (&begun, time(record)) else { return true };
        // 1.0.x gives all copied records the same time and drops their request ids.
        if at == *begun && record["requestId"].is_null() {
            return false;
        }
        let second = |text: &str| text.get(..19).map(str::to_owned);
        at >= *begun || second(&at) == second(begun)
    };
    let first = tree.first().map(|record| &record["message"]["content"]);
    log.warm_up = all_side && first.is_some_and(|content| content == "Warmup");
    let inline = |record: &&&Value| is_side(record) && !all_side;
    log.side_records = tree.iter().filter(inline).count();
    for record in &lines.values {
        if let Some(id) = record["sessionId"].as_str() {
            log.session_id.get_or_insert_with(|| id.to_owned());
        }
        match string(&record["type"]) {
            "assistant" if is_side(record) && !all_side => side.take_record(record),
            "assistant" => {
                main.take_record(record);
                if is_own(record) {
                    own.take_record(record);
                }
            }
            "user" => take_results(record, &mut log.results),
            "cost-state" => log.cost_state = Some(cost_state(record)),
            _ => {}
        }
    }
    log.tokens = own.tokens();
    log.side_chain_tokens = side.tokens();
    log.blocks = main.blocks();
    log
}

/// The lines of a file, parsed. Only the byte 0x0A ends a line.
pub struct Lines {
    pub values: Vec<Value>,
    pub records: usize,
    pub unparsable: Vec<usize>,
}

impl Lines {
    pub fn of(bytes: &[u8]) -> Lines {
        let mut lines = Lines { values: Vec::new(), records: 0, unparsable: Vec::new() };
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            if line.trim_ascii().is_empty() {
                continue;
            }
            lines.records += 1;
            match serde_json::from_slice(line) {
                Ok(value) => lines.values.push(value),
                Err(_) => lines.unparsable.push(number),
            }
        }
        lines
    }
}

/// Model messages in the order in which they were first seen.
#[derive(Default)]
pub struct Messages {
    seen: Vec<Message>,
}

struct Message {
    id: String,
    blocks: Vec<Block>,
    /// How many blocks have appeared, for records without a block index.
    appeared: usize,
    /// Of the record with the most output tokens; zero for the CLI's own texts.
    tokens: Tokens,
}

impl Messages {
    fn position(&self, id: &str) -> Option<usize> {
        self.seen.iter().position(|message| message.id == id)
    }

    fn message(&mut self, id: &str) -> &mut Message {
        let at = self.position(id).unwrap_or_else(|| {
            let blocks = Vec::new();
            let tokens = Tokens::default();
            self.seen.push(Message { id: id.to_owned(), blocks, appeared: 0, tokens });
            self.seen.len() - 1
        });
        &mut self.seen[at]
    }

    /// Takes an assistant record of a log or an assistant frame of a stream; they differ only in
    /// the names of their flags.
    fn take_record(&mut self, record: &Value) {
        let body = &record["message"];
        let id = body["id"].as_str().or(record["uuid"].as_str()).unwrap_or_default();
        let is_error =
            record["isApiErrorMessage"] == true || record["is_api_error_message"] == true;
        let message = self.message(id);
        for content in body["content"].as_array().into_iter().flatten() {
            let stated_index = record["apiBlockIndex"].as_u64().map(|index| index as usize);
            let index = stated_index.unwrap_or(message.appeared);
            message.appeared += 1;
            let mut block = block(id, index, content);
            if is_error {
                block.kind = Kind::Error;
            }
            message.blocks.push(block);
        }
        if body["model"] != "<synthetic>" {
            let tokens = tokens(&body["usage"]);
            if tokens.output >= message.tokens.output {
                message.tokens = tokens;
            }
        }
    }

    /// All blocks, in order, without empty ones.
    fn blocks(mut self) -> Vec<Block> {
        for message in &mut self.seen {
            message.blocks.sort_by_key(|block| block.index);
        }
        let blocks = self.seen.into_iter().flat_map(|message| message.blocks);
        blocks.filter(|block| !shows_nothing(block)).collect()
    }

    fn tokens(&self) -> Tokens {
        self.seen.iter().fold(Tokens::default(), |sum, message| add(sum, message.tokens))
    }
}

fn shows_nothing(block: &Block) -> bool {
    match block.kind {
        Kind::Text | Kind::Reasoning => !block.redacted && block.text.trim().is_empty(),
        Kind::Tool | Kind::Error | Kind::Other => false,
    }
}

/// A block as the API writes it.
fn block(message: &str, index: usize, content: &Value) -> Block {
    let (kind, text) = match string(&content["type"]) {
        "thinking" => (Kind::Reasoning, string(&content["thinking"])),
        "redacted_thinking" => (Kind::Reasoning, ""),
        "text" => (Kind::Text, string(&content["text"])),
        "tool_use" | "server_tool_use" | "mcp_tool_use" => (Kind::Tool, ""),
        _ => (Kind::Other, ""),
    };
    let call = (kind == Kind::Tool).then(|| Call {
        id: string(&content["id"]).to_owned(),
        name: string(&content["name"]).to_owned(),
        input: content["input"].clone(),
    });
    Block {
        kind,
        message: message.to_owned(),
        index,
        text: text.to_owned(),
        call,
        redacted: content["type"] == "redacted_thinking",
        abandoned: false,
    }
}

fn take_results(record: &Value, results: &mut BTreeMap<String, ToolResult>) {
    let content = record["message"]["content"].as_array().map_or(&[][..], Vec::as_slice);
    let is_result = |block: &&Value| block["type"] == "tool_result";
    // The record has one structured result: assign it only if there is one block.
    let alone = content.iter().filter(is_result).count() == 1;
    for block in content.iter().filter(is_result) {
        let structured = if alone { record["toolUseResult"].clone() } else { Value::Null };
        let result = ToolResult {
            text: result_text(&block["content"]),
            is_error: block["is_error"] == true,
            structured,
        };
        results.insert(string(&block["tool_use_id"]).to_owned(), result);
    }
}

fn result_text(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let blocks = content.as_array().map_or(&[][..], Vec::as_slice);
    let texts = blocks.iter().filter(|block| block["type"] == "text");
    texts.map(|block| string(&block["text"])).collect::<Vec<_>>().join("\n")
}

fn tokens(usage: &Value) -> Tokens {
    Tokens {
        input: number(&usage["input_tokens"]),
        output: number(&usage["output_tokens"]),
        cache_read: number(&usage["cache_read_input_tokens"]),
        cache_creation: number(&usage["cache_creation_input_tokens"]),
    }
}

fn cost_state(record: &Value) -> CostState {
    let models = record["modelUsage"].as_object();
    let counted = models.into_iter().flat_map(|models| models.values()).map(|usage| Tokens {
        input: number(&usage["inputTokens"]),
        output: number(&usage["outputTokens"]),
        cache_read: number(&usage["cacheReadInputTokens"]),
        cache_creation: number(&usage["cacheCreationInputTokens"]),
    });
    CostState {
        tokens: counted.fold(Tokens::default(), add),
        cost_usd: record["totalCostUSD"].as_f64().unwrap_or_default(),
    }
}

pub fn add(one: Tokens, other: Tokens) -> Tokens {
    Tokens {
        input: one.input + other.input,
        output: one.output + other.output,
        cache_read: one.cache_read + other.cache_read,
        cache_creation: one.cache_creation + other.cache_creation,
    }
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

fn bytes_of(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
