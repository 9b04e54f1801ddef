//! A machine with agents: hooks and logs together, `hooks install`, `doctor`, and the
//! configuration.

use std::fs;

use serde_json::Value;

use crate::case::root;
use crate::harness::{Machine, copy};

const LOG: &str = ".claude/projects/-home-dev-weather-app/log.jsonl";

#[test]
fn hooks_before_with_or_after_the_log_give_the_same_session() {
    // R-X-03: hooks add to the log without duplicating anything.
    for case in ["permission-denied-by-host", "terminal-permissions-and-questions"] {
        let machine = Machine::new();
        let payloads = root().join("fixtures/claude-code").join(case).join("hooks.jsonl");
        let payloads = fs::read_to_string(payloads).unwrap();
        for payload in payloads.lines() {
            let output = machine.run("first", &["hook", "--agent", "claude-code"], payload);
            assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
            assert!(output.stderr.is_empty(), "{output:?}");
        }
        for data in ["log-first", "together"] {
            copy(&machine.data("first").join("hooks"), &machine.data(data).join("hooks"));
        }
        // Hooks, then the log.
        machine.ok("first", &["sync"]);
        machine.put(&format!("claude-code/{case}/log.jsonl"), LOG);
        machine.ok("first", &["sync"]);
        // The log, then hooks.
        let hooks = machine.data("log-first").join("hooks");
        let away = machine.data("log-first").join("away");
        fs::rename(&hooks, &away).unwrap();
        machine.ok("log-first", &["sync"]);
        let alone = session(&machine, "log-first");
        fs::rename(&away, &hooks).unwrap();
        machine.ok("log-first", &["sync"]);
        machine.ok("together", &["sync"]);
        let expected = session(&machine, "together");
        assert_eq!(session(&machine, "first")["turns"], expected["turns"], "{case}");
        assert_eq!(session(&machine, "log-first")["turns"], expected["turns"], "{case}");
        // A terminal's log alone does not distinguish denied from interrupted.
        assert_eq!(alone["turns"] == expected["turns"], case == "permission-denied-by-host");
        // A second sync imports nothing.
        assert_eq!(machine.json("together", &["sync"])["records"], 0);
    }
}

/// The session of the log.
fn session(machine: &Machine, data: &str) -> Value {
    let log = fs::read_to_string(machine.home().join(LOG)).unwrap();
    let records = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let id = records.filter_map(|it| Some(it["sessionId"].as_str()?.to_owned())).next().unwrap();
    machine.json(data, &["show", &id])
}

#[test]
fn a_hook_never_fails_and_never_speaks() {
    // Law 7: the recorder never breaks the agent.
    let machine = Machine::new();
    fs::create_dir_all(machine.home()).unwrap();
    fs::write(machine.data("a-file"), "in the way").unwrap();
    for (data, input) in [("d", ""), ("d", "no JSON"), ("d", "[1,"), ("a-file", "{}")] {
        let output = machine.run(data, &["hook"], input);
        assert_eq!(output.status.code(), Some(0), "{data} {input}");
        assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    }
    assert_eq!(fs::read_to_string(machine.data("a-file")).unwrap(), "in the way");
}

#[test]
fn hooks_are_shown_first_and_written_with_yes() {
    let machine = Machine::new();
    let path = machine.home().join(".claude/settings.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "{\"model\":\"opus\"}").unwrap();
    let shown = machine.ok("d", &["hooks", "install", "--agent", "claude-code"]);
    assert!(shown.contains("+") && shown.contains("hook --agent claude-code"), "{shown}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"model\":\"opus\"}");
    let said = machine.ok("d", &["hooks", "install", "--agent", "claude-code", "--yes"]);
    assert!(said.contains("settings.json.before-unspool"), "{said}");
    let status = machine.json("d", &["hooks", "status"]);
    assert_eq!(status["claude-code"]["installed"], "yes");
    // The installed hook command writes into this data folder.
    let settings: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let command = settings["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap();
    let mut run = std::process::Command::new("/bin/sh");
    machine
        .set_environment(run.arg("-c").arg(format!("echo '{{\"session_id\":\"s\"}}' | {command}")));
    assert!(run.status().unwrap().success());
    assert_eq!(fs::read_dir(machine.data("d").join("hooks")).unwrap().count(), 1);
    assert_eq!(status["codex"]["installed"], "no");
    machine.ok("d", &["hooks", "remove", "--agent", "claude-code", "--yes"]);
    let after: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(after, serde_json::json!({"model": "opus"}));
    let refused = machine.run("d", &["hooks", "install", "--agent", "vim"], "");
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("claude-code, codex"));
}

#[test]
fn the_doctor_says_what_is_here_and_what_is_wrong() {
    let machine = Machine::new();
    machine.put("claude-code/discovery-loop/log.jsonl", LOG);
    let odd = ".claude/projects/-home-dev-weather-app/odd.jsonl";
    machine.put("README.md", odd);
    let report = machine.json("d", &["doctor"]);
    let claude = &report["agents"][0];
    assert_eq!(claude["agent"], "claude-code");
    assert_eq!(claude["files"], 2);
    assert_eq!(claude["versions"]["2.1.325"], 1);
    assert_eq!(claude["unknown_versions"], serde_json::json!([]));
    assert_eq!(claude["problems"].as_array().unwrap().len(), 1);
    assert_eq!(report["archive"]["exists"], false);
    let said = machine.ok("d", &["doctor"]);
    for line in ["Claude Code", "2 logs", "2.1.325 (1)", "odd.jsonl", "~/.codex/sessions"] {
        assert!(said.contains(line), "{line}: {said}");
    }
    // The doctor writes nothing.
    assert!(!machine.data("d").exists());
    // A version without a recording.
    let log = fs::read_to_string(machine.home().join(LOG)).unwrap();
    fs::write(machine.home().join(LOG), log.replace("2.1.325", "2.9.1")).unwrap();
    let said = machine.ok("d", &["doctor"]);
    assert!(said.contains("2.9.1 is newer than what Unspool was tested with"), "{said}");
}

#[test]
fn other_homes_are_read_by_configuration() {
    let machine = Machine::new();
    machine.put("claude-code/discovery-loop/log.jsonl", LOG);
    let other = machine.data("laptop");
    let path = other.join(".claude/projects/p/log.jsonl");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::copy(root().join("fixtures/claude-code/question-answered/log.jsonl"), &path).unwrap();
    let config = machine.home().join(".config/unspool/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, format!("homes = [{:?}]\n", other.to_str().unwrap())).unwrap();
    assert_eq!(machine.json("d", &["sync"])["sessions"], 2);
    fs::write(&config, "hoems = []\n").unwrap();
    let refused = machine.run("d", &["sync"], "");
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("config.toml") && said.contains("fix it"), "{said}");
}

#[test]
fn own_prices_stand_before_the_list() {
    let machine = Machine::new();
    machine.put("claude-code/discovery-loop/log.jsonl", LOG);
    machine.put("codex/discovery-loop/log.jsonl", ".codex/sessions/2026/11/15/rollout-log.jsonl");
    machine.json("d", &["sync"]);
    let costs = || -> Vec<(f64, Option<f64>)> {
        let listed = machine.json("d", &["list", "--agent", "claude-code"]);
        let listed = listed.as_array().unwrap().iter();
        let usages = listed.map(|session| session["usage"].clone());
        let cost = |usage: Value| {
            (usage["cost_usd"].as_f64().unwrap(), usage["estimated_cost_usd"].as_f64())
        };
        usages.map(cost).collect()
    };
    let [(reported, Some(estimated))] = costs()[..] else { panic!("{:?}", costs()) };
    assert!((reported - estimated).abs() < 1e-9, "{reported} {estimated}");
    // The scripted model has no price, and no partial sum is given.
    let codex = machine.json("d", &["list", "--agent", "codex"]);
    assert!(codex[0]["usage"]["output"].as_u64().unwrap() > 0);
    assert!(codex[0]["usage"]["estimated_cost_usd"].is_null(), "{codex}");
    let config = machine.home().join(".config/unspool/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    let own =
        "[prices.claude-opus-5-5]\ninput = 0\noutput = 1e6\ncache_read = 0\ncache_write = 0\n";
    fs::write(&config, own).unwrap();
    let [(still, Some(dear))] = costs()[..] else { panic!("{:?}", costs()) };
    let output = machine.json("d", &["stats", "--agent", "claude-code"]);
    assert_eq!((still, dear), (reported, output["totals"]["usage"]["output"].as_f64().unwrap()));
    fs::write(&config, "[prices.claude-opus-5-5]\ninput = -1\noutput = 1\n").unwrap();
    let refused = machine.run("d", &["list"], "");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1));
    assert!(said.contains("claude-opus-5-5") && said.contains("million tokens"), "{said}");
}

#[test]
fn a_folder_is_the_same_however_it_is_named() {
    let machine = Machine::new();
    let payload = r#"{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"Hello"}"#;
    machine.run("d", &["hook", "--agent", "claude-code"], payload);
    machine.ok("d", &["sync"]);
    let mut relative = std::process::Command::new(env!("CARGO_BIN_EXE_unspool"));
    machine.set_environment(relative.args(["--data", "d", "sync", "--json"]));
    let output = relative.current_dir(machine.data("")).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["records"], 0, "what was read is not read again");
}

/// Files and folders below a folder, with their modes.
#[cfg(unix)]
fn modes(folder: &std::path::Path, found: &mut Vec<(String, u32)>) {
    use std::os::unix::fs::PermissionsExt;
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let mode = entry.symlink_metadata().unwrap().permissions().mode() & 0o777;
        found.push((entry.display().to_string(), mode));
        if entry.is_dir() {
            modes(&entry, found);
        }
    }
}

#[cfg(unix)]
#[test]
fn what_the_program_writes_is_the_owners_alone_under_any_umask() {
    // R-003-46
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::new();
    machine.put("claude-code/discovery-loop/log.jsonl", LOG);
    let program = env!("CARGO_BIN_EXE_unspool");
    let run = |script: &str| {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &format!("umask 0; {script}")]);
        machine.set_environment(&mut shell);
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let data = machine.data("d").display().to_string();
    run(&format!("{program} --data {data} sync"));
    run(&format!("echo '{{}}' | {program} --data {data} hook --agent claude-code"));
    let id = machine.json("d", &["list"])[0]["id"].as_str().unwrap().to_owned();
    run(&format!("{program} --data {data} export {id} --to markdown -o {data}/out.md"));
    let mut found = Vec::new();
    modes(&machine.data("d"), &mut found);
    assert!(found.len() > 3, "{found:?}");
    for (path, mode) in &found {
        let is_folder = std::path::Path::new(path).is_dir();
        // Folders are inside the data folder, which others cannot enter.
        assert!(is_folder || mode & 0o077 == 0, "{path} has mode {mode:o}");
    }
    assert!(!machine.ok("d", &["doctor"]).contains("other users"));
    // An archive of an earlier version was created with the mode of the umask.
    let (folder, archive) = (machine.data("d"), machine.data("d").join("unspool.db"));
    fs::set_permissions(&archive, fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    machine.ok("d", &["sync"]);
    assert_eq!(archive.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let said = machine.ok("d", &["doctor"]);
    assert!(said.contains("other users of this machine can read the data folder"), "{said}");
}
