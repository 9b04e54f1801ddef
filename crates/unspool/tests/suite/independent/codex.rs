//! An independent reader of Codex's rollouts: the model's text, reasoning and calls in file order,
//! the outputs, and the tokens of each response.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::Kind;

#[derive(Default, Debug)]
pub struct Rollout {
    /// Text and reasoning by their content, calls by their ids.
    pub blocks: Vec<(Kind, String)>,
    /// The output that the model got, by call, if the process had ended by then.
    pub outputs: BTreeMap<String, String>,
    pub output_tokens: u64,
    pub input_tokens: u64,
    /// It continues a history that starts in another file.
    pub goes_on: bool,
}

pub fn rollout(text: &str) -> Rollout {
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let meta = &lines[0]["payload"];
    let (id, mut rollout) = (meta["id"].as_str().unwrap(), Rollout::default());
    rollout.goes_on = meta["history_base"].is_object();
    let copied = lines.get(1).is_some_and(|line| line["type"] == "session_meta");
    let own = |line: &Value| line["payload"]["turn_attribution"]["parent_turn_id"].is_string();
    let start = match meta["parent_thread_id"].is_string() && copied {
        true => lines.iter().position(own).unwrap_or(lines.len()),
        false => 0,
    };
    for (at, line) in lines.iter().enumerate().skip(start) {
        let payload = &line["payload"];
        match (line["type"].as_str().unwrap(), payload["type"].as_str().unwrap_or_default()) {
            ("response_item", _) => model_item(&mut rollout, &lines, at),
            ("event_msg", "item_completed") => shown_item(&mut rollout, payload, id),
            ("event_msg", "patch_apply_end") => {
                let call = payload["call_id"].as_str().unwrap();
                if call.starts_with("exec-") {
                    rollout.blocks.push((Kind::Tool, call.to_owned()));
                }
            }
            // A fork's copied responses are not counted again.
            ("token_usage_record", _) if payload["turn_id"].as_str().unwrap() > id => {
                let count = |name: &str| payload["usage"][name].as_u64().unwrap_or(0);
                rollout.output_tokens += count("output_tokens");
                rollout.input_tokens += count("input_tokens");
            }
            _ => {}
        }
    }
    // Older versions record only totals.
    if !lines.iter().any(|line| line["type"] == "token_usage_record") {
        let mut totals =
            lines.iter().filter_map(|line| line["payload"]["info"].get("total_token_usage"));
        if let Some(total) = totals.next_back() {
            rollout.output_tokens = total["output_tokens"].as_u64().unwrap();
            rollout.input_tokens = total["input_tokens"].as_u64().unwrap();
        }
    }
    rollout
}

fn model_item(rollout: &mut Rollout, lines: &[Value], at: usize) {
    let item = &lines[at]["payload"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let joined = |list: &Value, with: &str| {
        let pieces = list.as_array().into_iter().flatten();
        let texts: Vec<String> = pieces.map(|piece| text(&piece["text"])).collect();
        texts.join(with)
    };
    match item["type"].as_str().unwrap_or_default() {
        "message" if item["role"] == "assistant" && !is_summary(lines, at) => {
            let said = joined(&item["content"], "");
            match said.split_once("<proposed_plan>\n") {
                Some((before, plan)) => {
                    let plan = plan.split("</proposed_plan>").next().unwrap_or_default();
                    for part in [before, plan].into_iter().filter(|part| !part.is_empty()) {
                        rollout.blocks.push((Kind::Text, part.to_owned()));
                    }
                }
                None => rollout.blocks.push((Kind::Text, said)),
            }
        }
        "reasoning" if !is_summary(lines, at) => {
            rollout.blocks.push((Kind::Reasoning, joined(&item["summary"], "\n\n")));
        }
        "function_call" | "custom_tool_call" | "tool_search_call" => {
            rollout.blocks.push((Kind::Tool, text(&item["call_id"])));
        }
        "web_search_call" => rollout.blocks.push((Kind::Tool, text(&item["id"]))),
        "function_call_output" | "custom_tool_call_output" if item["name"].is_null() => {
            let output = match item["output"].as_str() {
                Some(output) => output.to_owned(),
                None => joined(&item["output"], ""),
            };
            if !output.contains("Process running with session ID") {
                rollout.outputs.insert(text(&item["call_id"]), output);
            }
        }
        _ => {}
    }
}

/// True if the program itself requested this: only its own records precede the compaction.
fn is_summary(lines: &[Value], at: usize) -> bool {
    let follows = lines[at + 1..].iter().find(|line| {
        let kind = line["payload"]["type"].as_str().unwrap_or_default();
        let model = line["type"] == "response_item" && matches!(kind, "message" | "reasoning");
        !(model || line["type"] == "token_usage_record" || kind == "token_count")
    });
    follows.is_some_and(|line| line["type"] == "compacted")
}

/// Calls without a model item: those inside scripts, and those of a reviewer.
fn shown_item(rollout: &mut Rollout, event: &Value, thread: &str) {
    let item = &event["item"];
    let id = item["id"].as_str().unwrap_or_default().to_owned();
    let foreign = event["thread_id"].as_str().is_some_and(|of| of != thread);
    match item["type"].as_str().unwrap_or_default() {
        "CommandExecution" | "FileChange" if foreign || id.starts_with("exec-") => {
            rollout.blocks.push((Kind::Tool, id));
        }
        "Reasoning" if foreign => {
            let pieces = item["summary_text"].as_array().into_iter().flatten();
            let texts: Vec<&str> = pieces.filter_map(Value::as_str).collect();
            rollout.blocks.push((Kind::Reasoning, texts.join("\n\n")));
        }
        "EnteredReviewMode" => rollout.blocks.push((Kind::Tool, id)),
        _ => {}
    }
}

/// The rollout of a case, compressed or not.
pub fn rollout_of(case: &Path) -> Option<Rollout> {
    let (plain, packed) = (case.join("log.jsonl"), case.join("log.jsonl.zst"));
    if plain.exists() {
        return Some(rollout(&std::fs::read_to_string(plain).unwrap()));
    }
    let bytes = zstd::decode_all(std::fs::File::open(packed).ok()?).unwrap();
    Some(rollout(&String::from_utf8(bytes).unwrap()))
}
