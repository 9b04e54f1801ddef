//! The server goes into every agent's settings and comes out again.

use std::fs;

use super::*;

fn command() -> McpCommand {
    let arguments = ["--data", "/home/me/my data", "mcp"].map(str::to_owned).to_vec();
    McpCommand { program: "/usr/bin/unspool".to_owned(), arguments }
}

/// What an agent's settings may look like before.
fn before(agent: &str) -> (&'static str, &'static str) {
    match agent {
        "claude-code" => (
            ".claude.json",
            "{\n  \"numStartups\": 3,\n  \"mcpServers\": {\n    \"other\": {\"type\":\"http\",  \"url\":\"http://x\"}\n  },\n  \"projects\": { \"/a\": {} }\n}\n",
        ),
        "codex" => (
            ".codex/config.toml",
            "# mine\nmodel = \"gpt-5\"\n\n[mcp_servers.other]\ncommand = \"x\" # keep\n",
        ),
        "gemini" => (".gemini/settings.json", "{\n  \"theme\": \"dark\"\n}\n"),
        "copilot" => (".copilot/mcp-config.json", "{\n  \"other\": 1\n}\n"),
        "opencode" => (".config/opencode/opencode.json", "{\n  \"$schema\": \"s\"\n}\n"),
        other => panic!("{other}"),
    }
}

#[test]
fn the_server_goes_in_and_comes_out_and_everything_else_stays() {
    for agent in agents() {
        for there in [true, false] {
            let home = tempfile::tempdir().unwrap();
            let environment =
                Environment { home: Some(home.path().to_owned()), ..Environment::default() };
            let (file, text) = before(agent);
            let path = home.path().join(file);
            if there {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, text).unwrap();
            }
            let plan = plan_install(&environment, agent, &command()).unwrap();
            assert_eq!(plan.path, path);
            assert_eq!(plan.apply().unwrap().is_some(), there, "a backup");
            let written = fs::read_to_string(&path).unwrap();
            assert!(written.contains("/home/me/my data"), "{written}");
            if there {
                for line in
                    text.lines().filter(|line| line.contains("other\":") || line.contains('#'))
                {
                    let line = line.trim_end_matches(',');
                    assert!(written.contains(line), "{agent}: {line} is not in\n{written}");
                }
            }
            assert!(plan_install(&environment, agent, &command()).unwrap().changes_nothing());
            let other = McpCommand { program: "/opt/unspool".to_owned(), ..command() };
            assert!(!plan_install(&environment, agent, &other).unwrap().changes_nothing());
            let removed = plan_remove(&environment, agent).unwrap();
            if there {
                assert_eq!(removed.after.as_deref(), Some(text), "{agent}");
            }
            removed.apply().unwrap();
            assert!(plan_remove(&environment, agent).unwrap().changes_nothing());
        }
    }
}

#[test]
fn settings_that_cannot_be_changed_safely_stay_and_the_error_has_the_entry() {
    let home = tempfile::tempdir().unwrap();
    let environment = Environment { home: Some(home.path().to_owned()), ..Environment::default() };
    for (agent, text) in [
        ("opencode", "{\n  // a comment\n  \"mcp\": {}\n}\n"),
        ("claude-code", "{ \"mcpServers\": [] }"),
        ("codex", "mcp_servers = { other = { command = \"x\" } }\n"),
        ("codex", "mcp_servers.unspool = { command = \"x\" }\n"),
        ("codex", "not toml"),
    ] {
        let path = home.path().join(before(agent).0);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let error = plan_install(&environment, agent, &command()).unwrap_err().to_string();
        assert!(error.contains("/usr/bin/unspool"), "{agent}: {error}");
        assert!(error.contains(&path.display().to_string()), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    let error = plan_install(&environment, "aider", &command()).unwrap_err().to_string();
    assert!(error.contains("claude-code, codex, gemini, copilot, opencode"), "{error}");
}

#[test]
fn a_variable_moves_the_settings_of_claude_code() {
    let folder = tempfile::tempdir().unwrap();
    let variables = [("CLAUDE_CONFIG_DIR", folder.path().to_owned())].into();
    let environment = Environment { variables, ..Environment::default() };
    let plan = plan_install(&environment, "claude-code", &command()).unwrap();
    assert_eq!(plan.path, folder.path().join(".claude.json"));
}
