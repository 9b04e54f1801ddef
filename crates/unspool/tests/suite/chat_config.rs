//! What a chat gives its agent: MCP servers, a wrapper, files that a message mentions, a log-in; and
//! how a host ends.

use std::fs;

use serde_json::{Value, json};

use crate::chat::{Stage, running, signal};
use crate::harness::until;

fn stage(script: Value) -> Stage {
    let mut script = script;
    script["session"] = json!("s-1");
    Stage::new(script)
}

fn config(stage: &Stage, text: &str) {
    stage.machine.write(".config/unspool/config.toml", text.as_bytes());
}

fn request(stage: &Stage, method: &str) -> Value {
    let found = stage.received().into_iter().find(|line| line["method"] == method);
    found.unwrap_or_else(|| panic!("{method} was not sent"))
}

#[test]
fn mcp_servers_come_from_the_configuration() {
    let stage = stage(json!({"prompts": {"go": [{"say": "ok"}]}}));
    config(
        &stage,
        "[chat.mcp.files]\ncommand = [\"mcp-files\", \"--root\", \"${ROOT}\"]\n\
         env = { TOKEN = \"${TOKEN}\" }\n\
         [chat.mcp.far]\nurl = \"https://mcp.example\"\n\
         [chat.mcp.unset]\ncommand = [\"x\", \"${NOT_SET_ANYWHERE}\"]\n",
    );
    let mut command = stage.command(&["-p", "go"]);
    let output = command.env("ROOT", "/srv").env("TOKEN", "t0ken").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let servers = request(&stage, "session/new")["params"]["mcpServers"].clone();
    let expected = json!([{"name": "files", "command": "mcp-files", "args": ["--root", "/srv"],
        "env": [{"name": "TOKEN", "value": "t0ken"}]}]);
    assert_eq!(servers, expected, "the puppet takes no servers by address");
    for entry in fs::read_dir(stage.machine.data("data").join("streams")).unwrap().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap();
        assert!(text.contains("files") && !text.contains("t0ken"), "{text}");
    }
    config(&stage, "[chat.mcp.bad]\nurl = \"u\"\ncommand = [\"c\"]\n");
    let output = stage.chat(&["-p", "go"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("[chat.mcp.bad]") && text.contains("either `command` or `url`"),
        "{text}"
    );
}

#[test]
fn an_agent_starts_behind_the_wrapper_of_the_configuration() {
    let stage = stage(json!({"prompts": {"go": [{"say": "ok"}]}}));
    let seen = stage.machine.home().join("wrapped");
    config(
        &stage,
        &format!("[chat]\nwrap = [\"sh\", \"-c\", \"echo $0 > {}; exec $0 $@\"]\n", seen.display()),
    );
    let output = stage.chat(&["-p", "go"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(fs::read_to_string(&seen).unwrap().contains("puppet"));
}

/// The first block is what was typed; files of the project follow as links.
#[test]
fn mentioned_files_are_linked() {
    let stage = stage(json!({"prompts": {"*": [{"say": "ok"}]}}));
    stage.machine.write("src/main.rs", b"fn main() {}");
    let text = "see @src/main.rs, not @../etc/passwd";
    let output = stage.chat(&["-p", text]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let blocks = request(&stage, "session/prompt")["params"]["prompt"].clone();
    assert_eq!(blocks[0], json!({"type": "text", "text": text}));
    assert_eq!(blocks.as_array().unwrap().len(), 2);
    assert_eq!(
        (&blocks[1]["type"], &blocks[1]["name"]),
        (&json!("resource_link"), &json!("src/main.rs"))
    );
    let uri = blocks[1]["uri"].as_str().unwrap();
    assert!(uri.starts_with("file:///") && uri.ends_with("/src/main.rs"), "{uri}");
    let user = stage.turns()[0]["user"].clone();
    assert_eq!((&user[0]["text"], &user[1]["name"]), (&json!(text), &json!("src/main.rs")));
}

#[test]
fn the_agent_logs_in_on_request() {
    let script = json!({"refuse": {"code": -32000, "message": "Authentication required"},
        "initialize": {"protocolVersion": 1, "authMethods": [{"id": "oauth", "name": "Google"}]},
        "prompts": {"go": [{"say": "ok"}]}});
    let stage = stage(script);
    let output = stage.chat(&["-p", "go"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("--log-in oauth"), "{text}");
    let output = stage.chat(&["-p", "go", "--log-in", "oauth"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(request(&stage, "authenticate")["params"]["methodId"], "oauth");
}

/// A host ends on SIGTERM, also when its files are gone.
#[test]
#[cfg(target_os = "linux")]
fn a_host_whose_files_are_gone_ends_on_a_signal() {
    let mark = format!("3605.{}", std::process::id());
    let stage = stage(json!({"prompts": {
        "go": [{"start": ["sleep", mark]}, {"say": "x"}, {"wait": "cancel"}]}}));
    let output = stage.chat(&["-p", "go", "--detach"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    until("its process", || if running(&mark).len() == 1 { Ok(()) } else { Err(()) });
    let host = stage.chats()[0]["process"].as_u64().unwrap();
    fs::remove_dir_all(stage.machine.data("data")).unwrap();
    signal(u32::try_from(host).unwrap(), "-TERM");
    until("the end", || {
        let lives = fs::exists(format!("/proc/{host}/exe")).unwrap();
        if !lives && running(&mark).is_empty() { Ok(()) } else { Err(()) }
    });
}
