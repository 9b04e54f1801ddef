//! Messages that are stored as an ordered list of blocks (`thinking`, `text`, `tool_call`,
//! `tool_result`), with the results of calls among them or beside them, by call id. Used by
//! `RowsDecoder`. The order of the blocks is the order of the parts (R-000-02).

use std::borrow::Cow;
use std::collections::BTreeMap;

use unspool_model::legacy::{LegacyBlock, LegacyCall};
use unspool_model::part::{Data, ToolState};

use super::super::Fields;
use super::row::{self, CALL_ID_FIELDS};

pub(super) const BLOCK_FIELDS: [&str; 4] = ["contentBlocks", "content_blocks", "parts", "blocks"];
pub(super) const RESULT_LIST_FIELDS: [&str; 2] = ["toolResults", "tool_results"];

/// What a block is.
enum BlockKind {
    Thinking,
    Text,
    Call,
    Result,
    Other,
}

fn kind_name<'a>(block: &Fields<'a>) -> Cow<'a, str> {
    row::any_text(block, &["type", "kind"]).unwrap_or_default()
}

fn kind(block: &Fields<'_>) -> BlockKind {
    match &*kind_name(block) {
        // C-01: all names of it are read.
        "thinking" | "reasoning" | "think" | "thought" => BlockKind::Thinking,
        "text" => BlockKind::Text,
        "tool_call" | "tool_use" | "tool-call" | "function_call" => BlockKind::Call,
        "tool_result" | "tool-result" | "tool_output" => BlockKind::Result,
        _ => BlockKind::Other,
    }
}

/// The field with the blocks of a row. A `content` that has only texts is one text.
fn block_field(fields: &Fields<'_>) -> Option<&'static str> {
    let named = BLOCK_FIELDS.into_iter().find(|name| fields.list(name).next().is_some());
    let typed = |block: Fields<'_>| match kind(&block) {
        BlockKind::Thinking | BlockKind::Call | BlockKind::Result => true,
        BlockKind::Text | BlockKind::Other => false,
    };
    named.or_else(|| fields.list("content").any(typed).then_some("content"))
}

pub(super) fn has_blocks(fields: &Fields<'_>) -> bool {
    block_field(fields).is_some()
}

/// True if a row has only results of earlier calls, whatever its role (R-001-18).
pub(super) fn has_only_results(fields: &Fields<'_>) -> bool {
    let is_result = |block: Fields<'_>| matches!(kind(&block), BlockKind::Result);
    block_field(fields).is_some_and(|name| fields.list(name).all(is_result))
}

/// The text of a row's blocks, for the user's message.
pub(super) fn text(fields: &Fields<'_>) -> Option<String> {
    let blocks = fields.list(block_field(fields)?);
    let texts = blocks.filter(|block| matches!(kind(block), BlockKind::Text)).map(text_of);
    Some(texts.collect::<Vec<String>>().join("\n"))
}

/// The blocks of a row in order.
pub(super) fn blocks(fields: &Fields<'_>) -> Option<Vec<LegacyBlock>> {
    let mut results = results(fields);
    let mut blocks: Vec<LegacyBlock> = Vec::new();
    for block in fields.list(block_field(fields)?) {
        blocks.push(match kind(&block) {
            BlockKind::Thinking => {
                let thought = row::thinking(&block);
                LegacyBlock::Think(if thought.is_empty() { text_of(block) } else { thought })
            }
            BlockKind::Text => LegacyBlock::Text(text_of(block)),
            BlockKind::Call => {
                let call = LegacyCall { id: call_id(&block), ..row::call(&block) };
                LegacyBlock::Call(match results.remove(&call.id) {
                    Some(LegacyCall { output, state, .. }) => LegacyCall { output, state, ..call },
                    None => call,
                })
            }
            BlockKind::Result => LegacyBlock::Result(result(&block)),
            BlockKind::Other => {
                let kind = kind_name(&block);
                let kind = if kind.is_empty() { "block".to_owned() } else { kind.into_owned() };
                LegacyBlock::Data(Data { kind, payload: block.whole() })
            }
        });
    }
    // Results of calls that are in no block (R-000-07).
    blocks.extend(results.into_values().map(LegacyBlock::Result));
    Some(blocks)
}

fn text_of(block: Fields<'_>) -> String {
    row::text(&block, &row::TEXT_FIELDS)
}

fn call_id(block: &Fields<'_>) -> String {
    let id = row::any_text(block, &CALL_ID_FIELDS).or_else(|| row::any_text(block, &["id"]));
    id.map(Cow::into_owned).unwrap_or_default()
}

/// The results beside the blocks: an object with one per call id, or a list.
fn results(fields: &Fields<'_>) -> BTreeMap<String, LegacyCall> {
    let mut results = BTreeMap::new();
    for name in RESULT_LIST_FIELDS {
        let by_id = fields.fields(name);
        for (id, raw) in by_id.each() {
            let value = by_id.fields(&id);
            let call = match value.is_object() {
                true => result(&value),
                false => LegacyCall {
                    output: Some(by_id.string(&id).unwrap_or_else(|| raw.to_owned())),
                    state: ToolState::Completed,
                    ..LegacyCall::default()
                },
            };
            let id = id.into_owned();
            results.insert(id.clone(), LegacyCall { id, ..call });
        }
        results.extend(fields.list(name).map(|value| (call_id(&value), result(&value))));
    }
    results
}

/// A result: its output, and its state if that is not an error.
fn result(block: &Fields<'_>) -> LegacyCall {
    let call = row::call(block);
    let output = call.output.or_else(|| Some(text_of(*block)));
    let state = match call.state {
        ToolState::Pending | ToolState::Running | ToolState::Completed => ToolState::Completed,
        ToolState::Failed | ToolState::Denied | ToolState::Interrupted => call.state,
    };
    LegacyCall { id: call_id(block), name: String::new(), input: None, output, state, offset: 0 }
}
