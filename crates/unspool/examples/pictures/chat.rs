//! Pictures of a chat: a scripted agent (`tests/puppet`) works, asks and waits.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use portable_pty::CommandBuilder;
use serde_json::{Value, json};

use super::{Studio, Terminal};

/// High enough for what is shown, and no higher: the head of the session names a temporary folder.
const SIZE: (u16, u16) = (110, 32);
const SHORT_SIZE: (u16, u16) = (110, 22);
/// Keys are taken for typing until a question has been on the screen for a moment.
const GUARD: Duration = Duration::from_millis(400);

pub fn take_pictures(studio: &Studio, puppet: &Path) {
    let mut chat = open(studio, puppet, "permission", SIZE);
    chat.until(&["· ready"]);
    chat.press("Why does the forecast show yesterday's weather?\r");
    chat.until(&["one hour too long"]);
    chat.press("Fix it, and run the tests\r");
    chat.until(&["tab answers"]);
    thread::sleep(GUARD);
    chat.press("\t");
    chat.press("\x1b[B");
    chat.until(&["▸ 1 allow once"]);
    studio.take(&mut chat, "terminal-chat-permission-dark");
    drop(chat);
    end(studio, "permission");

    let mut chat = open(studio, puppet, "question", SHORT_SIZE);
    chat.until(&["· ready"]);
    chat.press("Plan the release notes\r");
    chat.until(&["tab answers"]);
    thread::sleep(GUARD);
    chat.press("\t1 \x1b[B\x1b[B ");
    chat.until(&["3 ☑"]);
    studio.take(&mut chat, "terminal-chat-question-dark");
    drop(chat);
    end(studio, "question");

    let mut chat = open(studio, puppet, "queue", SHORT_SIZE);
    chat.until(&["· ready"]);
    chat.press("Move the cache into its own crate\r");
    chat.until(&["Tasks · 1 of 4"]);
    chat.press("then update the changelog\r");
    chat.until(&["queued 1"]);
    chat.press("and say what is left\r");
    chat.until(&["queued 2"]);
    studio.take(&mut chat, "terminal-chat-queue-dark");
    drop(chat);
    end(studio, "queue");

    let mut chat = open(studio, Path::new("/bin/false"), "refused", super::SHORT_SIZE);
    chat.until(&["enter starts the agent again"]);
    chat.press("Why does the forecast show yesterday's weather?");
    chat.until(&["yesterday"]);
    studio.take(&mut chat, "terminal-chat-refused-dark");
}

/// Ends the agent, which would work on.
fn end(studio: &Studio, name: &str) {
    let data = studio.home.join(name).join("data");
    for chat in fs::read_dir(data.join("chats")).unwrap().flatten() {
        let mut command = Command::new(&studio.program);
        command.env_clear().env("HOME", studio.home.join(name)).arg("--data").arg(&data);
        // The folder of sessions is no chat.
        let _ = command.args(["chat", "--end"]).arg(chat.file_name()).output().unwrap();
    }
}

/// A chat in an archive of its own: other chats must not show in it.
fn open(studio: &Studio, agent: &Path, name: &str, size: (u16, u16)) -> Terminal {
    let folder = studio.home.join(name);
    let project = folder.join("weather-app");
    fs::create_dir_all(&project).unwrap();
    let script = folder.join("script.json");
    fs::write(&script, self::script().to_string()).unwrap();
    let config = folder.join("config.toml");
    let text = format!(
        "[terminal]\ntheme = \"mocha\"\nmotion = false\n[chat]\nlinger = 0\n\
         [chat.agents.claude-code]\ncommand = [{agent:?}, {script:?}]\n"
    );
    fs::write(&config, text).unwrap();
    let mut command = CommandBuilder::new(&studio.program);
    command.env_clear();
    command.env("HOME", &folder);
    command.env("UNSPOOL_CONFIG", config);
    command.env("TERM", "xterm-256color");
    command.env("COLORTERM", "truecolor");
    command.cwd(&project);
    command.arg("--data");
    command.arg(folder.join("data"));
    command.args(["chat", "--agent", "claude-code"]);
    Terminal::open(command, size)
}

fn script() -> Value {
    let call = |id: &str, title: &str, kind: &str, input: Value| {
        json!({"call": {"toolCallId": id, "title": title, "kind": kind, "status": "pending",
            "rawInput": input}})
    };
    let done = |id: &str, text: &str| {
        json!({"update": {"sessionUpdate": "tool_call_update", "toolCallId": id,
            "status": "completed",
            "content": [{"type": "content", "content": {"type": "text", "text": text}}]}})
    };
    let command = json!({"command": "cargo test --workspace\ncargo clippy -- -D warnings"});
    let options = json!([
        {"optionId": "once", "name": "Yes", "kind": "allow_once"},
        {"optionId": "always", "name": "Yes, and don't ask again for cargo", "kind": "allow_always"},
        {"optionId": "no", "name": "No, and tell Claude what to do differently",
            "kind": "reject_once"}]);
    let entry =
        |text: &str, status: &str| json!({"content": text, "status": status, "priority": "medium"});
    let form = json!({"mode": "form", "toolCallId": "q", "message": "What belongs into the notes?",
        "requestedSchema": {"type": "object", "required": ["parts"], "properties": {
            "parts": {"type": "array", "items": {"anyOf": [
                {"const": "new", "title": "New features", "description": "12 merged branches"},
                {"const": "fixes", "title": "Fixes", "description": "31, of which 4 were reported by users"},
                {"const": "breaking", "title": "Breaking changes", "description": "the key of the cache"}]}},
            "parts_custom": {"type": "string"}}}});
    json!({
        "session": "0198c0de-7a11-7000-8000-000000000001",
        "prompts": {
            "Why does the forecast show yesterday's weather?": [
                {"think": "The cache keeps a forecast. Let me look at its key and its lifetime."},
                call("r", "src/cache.rs", "read", json!({"path": "src/cache.rs"})),
                done("r", "pub const LIFETIME: Duration = Duration::from_secs(7200);"),
                {"say": "The cache keeps a forecast one hour too long: `LIFETIME` is 7200 seconds, and the \
                    provider updates every hour."}],
            "Fix it, and run the tests": [
                {"say": "I set the lifetime to 3600 seconds. The tests show whether anything relied on it."},
                call("t", "Run the tests", "execute", command.clone()),
                {"permission": {"toolCall": {"toolCallId": "t", "title": "Run the tests",
                    "kind": "execute", "rawInput": command}, "options": options}}],
            "Plan the release notes": [
                {"say": "There are 43 commits since the last release. Before I write, one question."},
                call("q", "AskUserQuestion", "other", json!({})),
                {"form": form}],
            "Move the cache into its own crate": [
                {"update": {"sessionUpdate": "plan", "entries": [
                    entry("Find who uses the cache", "completed"),
                    entry("Make the crate and move the code", "in_progress"),
                    entry("Change the callers", "pending"),
                    entry("Run the tests", "pending")]}},
                call("g", "Cache::", "search", json!({"pattern": "Cache::"})),
                done("g", "src/main.rs\nsrc/forecast.rs"),
                {"say": "Two files use the cache. I make the crate now."},
                {"wait": "cancel"}]
        }
    })
}
