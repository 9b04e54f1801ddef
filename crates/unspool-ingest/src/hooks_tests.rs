use std::fs;
use std::path::Path;

use super::*;

fn environment(home: &Path) -> Environment {
    Environment { home: Some(home.to_owned()), ..Environment::default() }
}

const SETTINGS: &str = r#"{
  "model": "opus",
  "zeta": {"b":1,   "a":[ 2 ]},
  "hooks": {
    "Stop": [{"hooks":[{"type":"command","command":"say done"}]}],
    "PreCompact": []
  },
  "alpha": true
}
"#;

#[test]
fn hooks_go_in_and_come_out_and_everything_else_stays() {
    let home = tempfile::tempdir().unwrap();
    let environment = environment(home.path());
    let path = home.path().join(".claude/settings.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, SETTINGS).unwrap();
    assert_eq!(status(&environment, "claude-code"), Some(HookStatus::No));
    let plan =
        plan_install(&environment, "claude-code", "unspool", HookOptions::default()).unwrap();
    let backup = plan.apply().unwrap().unwrap();
    assert_eq!(fs::read_to_string(backup).unwrap(), SETTINGS);
    let text = fs::read_to_string(&path).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["hooks"]["Stop"].as_array().unwrap().len(), 2);
    let command = &value["hooks"]["PreToolUse"][0]["hooks"][0]["command"];
    assert_eq!(command, "unspool hook --agent claude-code");
    assert!(text.contains(r#""zeta": {"b":1,   "a":[ 2 ]}"#), "{text}");
    let places = ["\"model\"", "\"zeta\"", "\"hooks\"", "\"alpha\""].map(|it| text.find(it));
    assert!(places.is_sorted(), "{text}");
    assert!(matches!(status(&environment, "claude-code"), Some(HookStatus::Yes { .. })));
    // Twice is once.
    assert!(
        plan_install(&environment, "claude-code", "unspool", HookOptions::default())
            .unwrap()
            .changes_nothing()
    );
    let removed = plan_remove(&environment, "claude-code").unwrap();
    removed.apply().unwrap();
    let after: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(after, serde_json::from_str::<serde_json::Value>(SETTINGS).unwrap());
    assert!(plan_remove(&environment, "claude-code").unwrap().changes_nothing());
}

#[test]
fn every_agent_gets_hooks_in_its_own_form() {
    let home = tempfile::tempdir().unwrap();
    let environment = environment(home.path());
    for agent in Agent::with_hooks() {
        assert_eq!(status(&environment, agent.name), Some(HookStatus::No), "{}", agent.name);
        let plan =
            plan_install(&environment, agent.name, "unspool", HookOptions::default()).unwrap();
        assert_eq!(plan.before, None);
        assert_eq!(plan.apply().unwrap(), None);
        assert!(matches!(status(&environment, agent.name), Some(HookStatus::Yes { .. })));
        let text = fs::read_to_string(&plan.path).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        for event in agent.hooks.as_ref().unwrap().events {
            assert!(value["hooks"][event].is_array(), "{} {event}", agent.name);
        }
        plan_remove(&environment, agent.name).unwrap().apply().unwrap();
        assert_eq!(status(&environment, agent.name), Some(HookStatus::No), "{}", agent.name);
    }
    assert!(home.path().join(".gemini/settings.json").exists());
    assert!(!home.path().join(".copilot/hooks/unspool.json").exists());
    assert_eq!(status(&environment, "rows"), None);
    assert!(plan_install(&environment, "rows", "unspool", HookOptions::default()).is_err());
}

#[test]
fn settings_that_cannot_be_read_are_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let environment = environment(home.path());
    let path = home.path().join(".gemini/settings.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    for text in ["{ // a comment\n}", "[]", r#"{"hooks": 7}"#, r#"{"hooks": {"Stop": 1}}"#] {
        fs::write(&path, text).unwrap();
        let error =
            plan_install(&environment, "gemini", "unspool", HookOptions::default()).unwrap_err();
        assert!(error.to_string().contains("manually"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[cfg(unix)]
#[test]
fn a_backup_is_as_private_as_the_settings() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(".claude/settings.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    for mode in [0o600, 0o644] {
        fs::write(&path, SETTINGS).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let plan = plan_install(
            &environment(home.path()),
            "claude-code",
            "unspool",
            HookOptions::default(),
        )
        .unwrap();
        let backup = plan.apply().unwrap().unwrap();
        for file in [&backup, &path] {
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, mode, "{file:?}");
        }
    }
}

#[cfg(unix)]
#[test]
fn settings_behind_a_link_are_written_there_and_a_pipe_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let environment = environment(home.path());
    let path = home.path().join(".claude/settings.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::create_dir(home.path().join("dotfiles")).unwrap();
    std::os::unix::fs::symlink("../dotfiles/claude.json", &path).unwrap();
    plan_install(&environment, "claude-code", "unspool", HookOptions::default())
        .unwrap()
        .apply()
        .unwrap();
    assert!(path.is_symlink());
    assert!(home.path().join("dotfiles/claude.json").is_file());
    fs::remove_file(&path).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let error =
        plan_install(&environment, "claude-code", "unspool", HookOptions::default()).unwrap_err();
    assert!(matches!(error, HooksError::Read { .. }), "{error}");
}

#[test]
fn a_byte_order_mark_stays() {
    let home = tempfile::tempdir().unwrap();
    let environment = environment(home.path());
    let path = home.path().join(".gemini/settings.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "\u{feff}{\"model\": \"pro\"}").unwrap();
    plan_install(&environment, "gemini", "unspool", HookOptions::default())
        .unwrap()
        .apply()
        .unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("\u{feff}{") && text.contains("unspool hook"), "{text}");
    plan_remove(&environment, "gemini").unwrap().apply().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("\u{feff}{") && !text.contains("hook"), "{text}");
}

#[test]
fn a_program_that_is_gone_is_noticed() {
    let home = tempfile::tempdir().unwrap();
    let environment = environment(home.path());
    let program = home.path().join("my programs/unspool");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::write(&program, "").unwrap();
    for agent in Agent::with_hooks() {
        let command = format!("'{}' --data /x", program.display());
        plan_install(&environment, agent.name, &command, HookOptions::default())
            .unwrap()
            .apply()
            .unwrap();
        let found = status(&environment, agent.name);
        assert!(matches!(found, Some(HookStatus::Yes { .. })), "{found:?}");
    }
    fs::remove_file(&program).unwrap();
    for agent in Agent::with_hooks() {
        let Some(HookStatus::Other { what, .. }) = status(&environment, agent.name) else {
            panic!("{} does not notice it", agent.name);
        };
        assert!(what.contains("my programs/unspool, which no longer exists"), "{what}");
    }
}

#[test]
fn answering_is_installed_and_removed_with_the_hooks() {
    let home = tempfile::tempdir().unwrap();
    let environment = environment(home.path());
    let path = home.path().join(".claude/settings.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, SETTINGS).unwrap();
    let install = |answers| {
        let plan = plan_install(
            &environment,
            "claude-code",
            "unspool",
            HookOptions { answers, adapts: false },
        )
        .unwrap();
        plan.apply().unwrap();
        plan.after.unwrap()
    };
    let answers = || match status(&environment, "claude-code") {
        Some(HookStatus::Yes { answers, .. }) => answers,
        other => panic!("{other:?}"),
    };
    let plain = install(false);
    assert!(!answers());
    let text = install(true);
    assert!(answers());
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let hook = |event: &str| value["hooks"][event][0]["hooks"][0].clone();
    let waiting = hook("PermissionRequest");
    assert_eq!(waiting["command"], "unspool hook --agent claude-code --answer");
    assert_eq!(waiting["timeout"], ANSWER_TIMEOUT_SECONDS);
    assert_eq!(hook("PreToolUse")["command"], "unspool hook --agent claude-code");
    assert_eq!(hook("PreToolUse")["timeout"], HOOK_TIMEOUT_SECONDS);
    assert_eq!(value["hooks"]["PermissionRequest"].as_array().unwrap().len(), 1);
    assert!(
        plan_install(
            &environment,
            "claude-code",
            "unspool",
            HookOptions { answers: true, adapts: false }
        )
        .unwrap()
        .changes_nothing()
    );
    assert_eq!(install(false), plain);
    install(true);
    plan_remove(&environment, "claude-code").unwrap().apply().unwrap();
    let after: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(after, serde_json::from_str::<serde_json::Value>(SETTINGS).unwrap());
    let refused = plan_install(
        &environment,
        "codex",
        "unspool",
        HookOptions { answers: true, adapts: false },
    )
    .unwrap_err()
    .to_string();
    assert!(refused.contains("would wait for the hook"), "{refused}");
}

#[test]
fn adaptations_are_delivered_by_a_hook_of_their_own() {
    let home = tempfile::tempdir().unwrap();
    let environment = environment(home.path());
    let adapts = HookOptions { adapts: true, ..HookOptions::default() };
    for (agent, events) in [("claude-code", 2), ("codex", 1), ("gemini", 1), ("copilot", 1)] {
        plan_install(&environment, agent, "unspool", HookOptions::default())
            .unwrap()
            .apply()
            .unwrap();
        let recorded = read(&environment, agent_of(agent).unwrap()).unwrap().1.unwrap();
        let plan = plan_install(&environment, agent, "unspool", adapts).unwrap();
        let command = format!("unspool hook --adapt --agent {agent}");
        let after = plan.after.clone().unwrap();
        serde_json::from_str::<serde_json::Value>(&after).unwrap();
        assert_eq!(after.matches(&command).count(), events, "{after}");
        plan.apply().unwrap();
        let found = status(&environment, agent).unwrap();
        assert!(matches!(found, HookStatus::Yes { adapts: true, .. }), "{found:?}");
        // Recording hooks that are installed again leave it.
        let again = plan_install(&environment, agent, "unspool", HookOptions::default()).unwrap();
        assert_eq!(again.after.unwrap().matches(&command).count(), events);
        let removed = plan_remove(&environment, agent).unwrap().after.unwrap_or_default();
        assert!(!removed.contains("unspool hook"), "{removed}");
        assert!(!recorded.contains("--adapt"));
    }
    let refused = plan_install(&environment, "qwen", "unspool", adapts).unwrap_err().to_string();
    assert!(refused.contains("claude-code"), "{refused}");
}

#[test]
fn opencode_reads_adaptations_from_a_file() {
    let home = tempfile::tempdir().unwrap();
    let environment = environment(home.path());
    let file = home.path().join("opencode.md");
    let settings = home.path().join(".config/opencode/opencode.json");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let before = "{\n  \"theme\": \"x\",\n  \"instructions\": [\"a.md\"]\n}\n";
    fs::write(&settings, before).unwrap();
    assert!(!instructions::is_installed(&environment, &file));
    instructions::plan(&environment, &file, true).unwrap().apply().unwrap();
    let after: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&settings).unwrap()).unwrap();
    assert_eq!(after["instructions"], serde_json::json!(["a.md", file.to_str().unwrap()]));
    assert!(instructions::is_installed(&environment, &file));
    instructions::plan(&environment, &file, false).unwrap().apply().unwrap();
    let removed: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&settings).unwrap()).unwrap();
    assert_eq!(removed, serde_json::from_str::<serde_json::Value>(before).unwrap());
}
