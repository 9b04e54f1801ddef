//! What an open question of an agent is about: the command, the diff, and whatever else the call
//! gets. The agent describes it as a tool call of the Agent Client Protocol.

use serde_json::Value;

use super::diff;
use crate::block::{Block, Code, Field, Span};

/// What a question is about. `text` is the question, which is not repeated.
pub fn question_subject(subject: &Value, text: &str) -> Vec<Block> {
    let mut blocks = subject_blocks(subject);
    // A command of one line may be the question already.
    let repeats = |block: &Block| {
        if let Block::Code(code) = block {
            text == format!("Allow {}?", code.text) || text == format!("Allow `{}`?", code.text)
        } else {
            false
        }
    };
    blocks.retain(|block| !repeats(block));
    blocks
}

fn subject_blocks(subject: &Value) -> Vec<Block> {
    let mut blocks = Vec::new();
    let input = &subject["rawInput"];
    let command = match &input["command"] {
        Value::String(command) => Some(command.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            Some(words.join(" ")).filter(|command| !command.is_empty())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    };
    let code = |language: &str, text: String| {
        Block::Code(Code { language: Some(language.to_owned()), text, ..Code::default() })
    };
    let has_command = command.is_some();
    blocks.extend(command.map(|command| code("sh", command)));
    for content in subject["content"].as_array().into_iter().flatten() {
        let text = |name: &str| content[name].as_str().unwrap_or_default();
        match content["type"].as_str() {
            Some("diff") => {
                let path = content["path"].as_str();
                blocks.push(Block::Diff(diff::between(
                    path,
                    text("oldText"),
                    text("newText"),
                    None,
                )));
            }
            Some("content") => {
                let text = content["content"]["text"].as_str().unwrap_or_default();
                if !text.trim().is_empty() {
                    blocks.push(code("", text.to_owned()));
                }
            }
            Some(_) | None => {}
        }
    }
    blocks.extend(other_input(subject, has_command));
    blocks
}

/// What Codex tells its client about a request of its own: nothing of it changes what is allowed,
/// and the options are the buttons.
const CODEX_FIELDS: [&str; 5] =
    ["call_id", "turn_id", "started_at_ms", "available_decisions", "parsed_cmd"];

/// Whatever else the call gets: a mail has a recipient. What is shown already is left out.
fn other_input(subject: &Value, has_command: bool) -> Vec<Block> {
    let contents = || subject["content"].as_array().into_iter().flatten();
    let is_shown = |value: &Value| {
        contents().any(|content| {
            let texts = [&content["path"], &content["oldText"], &content["newText"]];
            let lines = content["content"]["text"].as_str().into_iter().flat_map(str::lines);
            texts.contains(&value)
                || value.as_str().is_some_and(|text| lines.into_iter().any(|line| line == text))
        })
    };
    let input = subject["rawInput"].as_object().into_iter().flatten();
    let is_codex = subject["rawInput"]["call_id"].is_string()
        && subject["rawInput"]["call_id"] == subject["toolCallId"];
    let rest = input.filter(|(name, value)| {
        !(has_command && *name == "command"
            || is_codex && CODEX_FIELDS.contains(&name.as_str())
            || is_shown(value))
    });
    let field = |(name, value): (&String, &Value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Field::new(name.as_str(), vec![Span::plain(text)])
    };
    let fields: Vec<Field> = rest.map(field).collect();
    if fields.is_empty() { Vec::new() } else { vec![Block::Fields { fields }] }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_bookkeeping_of_codex_is_not_what_a_question_is_about() {
        let mut subject = json!({ "toolCallId": "call_7", "rawInput": {
            "call_id": "call_7", "turn_id": "t", "started_at_ms": 1_794_703_408_949_u64,
            "command": ["/bin/bash", "-lc", "make"], "cwd": "/home/dev", "reason": "to build",
            "available_decisions": ["approved", "abort"],
            "parsed_cmd": [{ "type": "unknown", "cmd": "make" }],
        } });
        let names = |subject: &Value| -> Vec<String> {
            let blocks = question_subject(subject, "Allow?");
            let fields = blocks.iter().find_map(|block| {
                if let Block::Fields { fields } = block { Some(fields) } else { None }
            });
            fields.unwrap().iter().map(|field| field.name.clone()).collect()
        };
        assert_eq!(names(&subject), ["cwd", "reason"]);
        // Another agent's tool may take arguments of these names.
        subject["toolCallId"] = json!("other");
        assert_eq!(names(&subject).len(), 7);
    }
}
