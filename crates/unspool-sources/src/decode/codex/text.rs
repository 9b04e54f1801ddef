//! Parsers for text that Codex itself writes: headers of tool output, messages between agents,
//! quoted commands. They never search inside text written by a model or a tool.

use unspool_model::event::ToolEnd;
use unspool_model::part::{Body, File, Text};

use super::super::Fields;
use super::super::injected::separate;

/// The text of a field that is a string or a list of content items.
pub(super) fn content_text(fields: &Fields<'_>, name: &str) -> String {
    match fields.string(name) {
        Some(text) => text,
        None => {
            let texts: Vec<String> =
                fields.list(name).filter_map(|piece| piece.string("text")).collect();
            texts.join("")
        }
    }
}

/// The status of a call, read from the first lines of its output.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OutputStatus {
    /// The process or script is still running under this id.
    Runs(String),
    Ended(ToolEnd, Option<i64>),
}

/// Derives the status of a call from its output.
pub(super) fn said(tool: &str, output: &str) -> OutputStatus {
    let head = output.split("\nOutput:\n").next().unwrap_or(output);
    let line = |prefix: &str| head.lines().find_map(|line| line.strip_prefix(prefix));
    let ended = |end| OutputStatus::Ended(end, None);
    let aborted = output == "aborted by user"
        || output.starts_with("aborted by user after ")
        || (output.starts_with("Wall time: ") && output.ends_with("\naborted by user"));
    if aborted {
        return ended(ToolEnd::Interrupted);
    }
    let rejected = head.starts_with("exec_command failed") && head.contains("Rejected(");
    if rejected || head.starts_with("patch rejected") || head.starts_with("approval policy is") {
        return ended(ToolEnd::Denied);
    }
    let failed = [
        "exec_command failed",
        "write_stdin failed",
        "unsupported call: ",
        "unsupported custom tool call: ",
        "failed to parse function arguments",
        "apply_patch verification failed",
        "unable to locate image",
        "unable to read image",
        "Script failed\n",
    ];
    if failed.iter().any(|prefix| output.starts_with(prefix)) {
        return ended(ToolEnd::Failed);
    }
    if let Some(id) = line("Script running with cell ID ") {
        return OutputStatus::Runs(id.trim().to_owned());
    }
    let process = output.starts_with("Chunk ID: ") || output.starts_with("Exit code: ");
    if process {
        if let Some(id) = line("Process running with session ID ") {
            return OutputStatus::Runs(id.trim().to_owned());
        }
        let code = line("Process exited with code ").or_else(|| line("Exit code: "));
        let code: Option<i64> = code.and_then(|code| code.trim().parse().ok());
        let end = match code {
            Some(code) if code != 0 => ToolEnd::Failed,
            Some(_) | None => ToolEnd::Completed,
        };
        return OutputStatus::Ended(end, code);
    }
    // Agent tools return a JSON object on success and a plain error text otherwise.
    let agents = matches!(tool, "spawn_agent" | "wait_agent" | "interrupt_agent" | "list_agents");
    let refused = agents && !output.trim_start().starts_with('{') && !output.is_empty();
    ended(if refused { ToolEnd::Failed } else { ToolEnd::Completed })
}

/// The payload of a message between agents, without its header lines.
pub(super) fn payload(content: &Fields<'_>) -> String {
    let mut text = String::new();
    for piece in content.list("content") {
        let value = piece.string("text").or_else(|| piece.string("encrypted_content"));
        text.push_str(&value.unwrap_or_default());
    }
    match text.split_once("\nPayload:\n") {
        Some((head, rest)) if head.starts_with("Message Type: ") => rest.to_owned(),
        Some(_) | None => text,
    }
}

/// The script in a `<shell> -c <script>` command; `None` for any other command.
pub(super) fn script(words: &[String]) -> Option<String> {
    match words {
        [shell, flag, script]
            if matches!(flag.as_str(), "-lc" | "-c")
                && matches!(
                    shell.rsplit('/').next(),
                    Some("bash" | "sh" | "zsh" | "dash" | "fish")
                ) =>
        {
            Some(script.clone())
        }
        _ => None,
    }
}

/// Splits a command line as a shell does; `None` if a quote is left open.
pub(super) fn words(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next()? {
                        '\'' => break,
                        inner => word.push(inner),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next()? {
                        '"' => break,
                        '\\' => match letters.next()? {
                            inner @ ('"' | '\\' | '$' | '`') => word.push(inner),
                            '\n' => {}
                            inner => word.extend(['\\', inner]),
                        },
                        inner => word.push(inner),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(letters.next()?),
            plain => word.get_or_insert_default().push(plain),
        }
    }
    words.extend(word);
    Some(words)
}

/// The parts of a user message. A local image is followed by an item with its bytes.
pub(super) fn user_parts(item: &Fields<'_>) -> Vec<Body> {
    let pieces: Vec<Fields<'_>> = item.list("content").collect();
    let mut parts: Vec<Body> = Vec::new();
    for piece in pieces {
        match piece.text("type").as_deref() {
            Some("text" | "Text" | "input_text") => {
                let text = piece.string("text").unwrap_or_default();
                if !text.is_empty() {
                    parts.push(Body::Text(Text { text, ..Text::default() }));
                }
            }
            Some("local_image" | "localImage") => {
                let path = piece.string("path");
                let name = path.as_deref().map(|path| path.rsplit('/').next().unwrap_or(path));
                let name = name.map(str::to_owned);
                let media_type = None;
                parts.push(Body::File(File { name, media_type, url: path, text: None }));
            }
            Some("image" | "input_image") => {
                let url = piece.string("image_url").or_else(|| piece.string("url"));
                parts.push(Body::File(picture(url)));
            }
            kind => {
                let kind = kind.unwrap_or("input").to_owned();
                let payload = piece.whole();
                parts.push(Body::Data(unspool_model::part::Data { kind, payload }));
            }
        }
    }
    separate(super::NAME, parts)
}

/// An image by its URL.
pub(super) fn picture(url: Option<String>) -> File {
    let value = url.as_deref().and_then(|url| url.strip_prefix("data:"));
    let media_type = value.and_then(|value| Some(value.split_once(';')?.0.to_owned()));
    let media_type = media_type.or_else(|| Some("image/*".to_owned()));
    File { name: None, media_type, url, text: None }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
