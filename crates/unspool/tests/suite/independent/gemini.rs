//! An independent reader of Gemini CLI's chat files. Each line is an operation. Content is ordered
//! by its first appearance, so calls added to an older message come after everything before them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Kind, Lines, Tokens, add, number, string};

#[derive(Default)]
pub struct RawChat {
    /// Text, or the id of a call.
    pub blocks: Vec<(Kind, String)>,
    /// The output that the model got, and whether it failed.
    pub results: BTreeMap<String, (String, bool)>,
    pub tokens: Tokens,
    pub prompts: Vec<String>,
}

pub fn chat(bytes: &[u8]) -> RawChat {
    let mut raw_chat = RawChat::default();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    // Copies of the history, from the context that comes first to the list that ends it.
    let mut copies = false;
    for record in Lines::of(bytes).values {
        let first = string(&record["content"][0]["text"]);
        copies |= first.starts_with("<session_context>");
        copies &= record["$set"]["messages"].is_null();
        if copies {
            continue;
        }
        match string(&record["type"]) {
            "user" => user(&record, &mut raw_chat, &mut seen),
            "gemini" => model(&record, &mut raw_chat, &mut seen),
            _ => {}
        }
    }
    raw_chat
}

fn user(record: &Value, raw_chat: &mut RawChat, seen: &mut BTreeSet<String>) {
    // What hooks added, and files that the prompt mentions, are not the user's words.
    let mut in_files = false;
    for part in record["content"].as_array().into_iter().flatten() {
        let response = &part["functionResponse"];
        if response.is_null() {
            let text = string(&part["text"]);
            let words = match text.strip_prefix("<hook_context>") {
                Some(rest) => rest.split_once("</hook_context>").unwrap().1.trim_start(),
                None => text,
            };
            in_files |= text.contains("--- Content from referenced files ---");
            if !in_files && !words.is_empty() {
                raw_chat.prompts.push(words.to_owned());
            }
            in_files &= !text.contains("--- End of content ---");
        } else if seen.insert(string(&response["id"]).to_owned()) {
            call(response, &response["response"], raw_chat);
        }
    }
}

fn model(record: &Value, raw_chat: &mut RawChat, seen: &mut BTreeSet<String>) {
    if seen.insert(string(&record["id"]).to_owned()) {
        for thought in record["thoughts"].as_array().into_iter().flatten() {
            let (subject, body) = (string(&thought["subject"]), string(&thought["description"]));
            raw_chat.blocks.push((Kind::Reasoning, format!("**{subject}**\n\n{body}")));
        }
        let text = string(&record["content"]);
        if !text.trim().is_empty() {
            raw_chat.blocks.push((Kind::Text, text.to_owned()));
        }
        let tokens = &record["tokens"];
        let tokens = Tokens {
            input: number(&tokens["input"]) - number(&tokens["cached"]) + number(&tokens["tool"]),
            output: number(&tokens["output"]) + number(&tokens["thoughts"]),
            cache_read: number(&tokens["cached"]),
            cache_creation: 0,
        };
        raw_chat.tokens = add(raw_chat.tokens, tokens);
    }
    for made in record["toolCalls"].as_array().into_iter().flatten() {
        if seen.insert(string(&made["id"]).to_owned()) {
            call(made, &made["result"][0]["functionResponse"]["response"], raw_chat);
        }
    }
}

fn call(made: &Value, response: &Value, raw_chat: &mut RawChat) {
    let id = string(&made["id"]).to_owned();
    raw_chat.blocks.push((Kind::Tool, id.clone()));
    let (output, error) = (response["output"].as_str(), response["error"].as_str());
    let stopped = output.is_some_and(|output| output.contains("Command was cancelled by user"));
    let wrong = error.is_some() || made["status"] == "error" || stopped;
    raw_chat.results.insert(id, (output.or(error).unwrap_or_default().to_owned(), wrong));
}
