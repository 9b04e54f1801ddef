//! The program's own log and `doctor --bundle`: quiet by default, and without secrets or content.

use std::fs;

use serde_json::Value;

use crate::harness::{Machine, until};
use crate::test_server::Server;

/// Secrets, put together here so that no scanner takes this file for a leak.
fn secrets() -> [String; 2] {
    let token = format!("{}_{}", "ghp", "x7Qm2Zk9Lp4Rt8Vb3Nc6Wd1Hf5Js0Ya2Ge4u");
    let key =
        format!("{}-{}", "sk-ant-api03", "Zq8Lm3Xw7Rt2Vb9Nc4Kd6Hf1Js5Ya0Ge8Pu2To7Ei3Wd9Mb4Lc6");
    [token, key]
}

/// A machine with a session whose folder and text have a secret.
fn machine() -> Machine {
    let machine = Machine::new();
    let [token, key] = secrets();
    let path = format!(".claude/projects/-home-{token}/log.jsonl");
    let line = serde_json::json!({
        "type": "user", "uuid": "u", "sessionId": "s", "timestamp": "2026-01-02T03:04:05Z",
        "cwd": format!("/srv/{token}"), "version": "2.0.0",
        "message": { "role": "user", "content": format!("the walrus said {key}") },
    });
    machine.write(&path, format!("{line}\nnot JSON {key}\n").as_bytes());
    machine
}

/// The program warns of the unreadable line; log lines begin with a time.
fn assert_only_warnings(stderr: &[u8]) {
    let stderr = String::from_utf8_lossy(stderr);
    assert!(stderr.lines().all(|line| line.starts_with("unspool: ")), "{stderr}");
}

#[test]
fn nothing_is_logged_by_default() {
    let machine = machine();
    for arguments in [["sync"].as_slice(), &["list"], &["doctor"], &["search", "walrus"]] {
        let output = machine.run("data", arguments, "");
        assert!(output.status.success(), "{arguments:?} {output:?}");
        assert_only_warnings(&output.stderr);
    }
    let output = machine.command("data", &["sync"]).env("UNSPOOL_LOG", "debug").output().unwrap();
    let logged = String::from_utf8(output.stderr).unwrap();
    assert!(logged.contains("sync") && logged.contains("unchanged_files=1"), "{logged}");
    let wrong = machine.command("data", &["list"]).env("UNSPOOL_LOG", "a=b=c").output().unwrap();
    assert_eq!(wrong.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("invalid UNSPOOL_LOG"), "{wrong:?}");
    // Law 7: a hook is silent, whatever its environment says.
    for filter in ["trace", "a=b=c"] {
        let hook = machine.command("data", &["hook"]).env("UNSPOOL_LOG", filter).output().unwrap();
        assert!(hook.status.success() && hook.stderr.is_empty(), "{hook:?}");
    }
}

#[test]
fn a_bundle_has_what_a_report_needs_and_no_secret() {
    let machine = machine();
    let (log, bundle) = (machine.data("own.log"), machine.data("bundle.json"));
    let (log, bundle) = (log.to_str().unwrap(), bundle.to_str().unwrap());
    for arguments in [["sync"].as_slice(), &["search", "walrus"]] {
        let arguments = [&["--log", log], arguments].concat();
        let output = machine.command("data", &arguments).env("UNSPOOL_LOG", "trace").output();
        assert_only_warnings(&output.unwrap().stderr);
    }
    machine.ok("data", &["--log", log, "doctor", "--bundle", bundle]);
    let logged = fs::read_to_string(log).unwrap();
    for span in ["sync", "write", "query"] {
        assert!(logged.contains(span), "{span} is not in {logged}");
    }
    assert!(!logged.contains("walrus") && !logged.contains(&secrets()[1]), "{logged}");

    let text = fs::read_to_string(bundle).unwrap();
    for secret in secrets().iter().chain([&machine.home().display().to_string()]) {
        assert!(!text.contains(secret), "{secret} is in {text}");
    }
    assert!(!text.contains("walrus"), "{text}");
    let bundle: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(bundle["unspool"], env!("CARGO_PKG_VERSION"));
    assert_eq!(bundle["platform"]["os"], std::env::consts::OS);
    assert_eq!(bundle["schema"]["archive"], bundle["schema"]["program"]);
    assert_eq!(bundle["counts"]["sessions"], 1);
    assert!(bundle["data_folder"].as_array().unwrap().iter().any(|it| it["name"] == "unspool.db"));
    assert!(bundle["doctor"]["agents"].is_array() && !bundle["log"].as_array().unwrap().is_empty());
}

#[test]
fn a_request_is_logged_with_its_path_and_without_its_query() {
    let machine = machine();
    let log = machine.data("own.log");
    let server = Server::begin(&machine, "data", &["--log", log.to_str().unwrap()]);
    let printed = format!("/?token={}", server.token);
    assert_eq!(server.request("GET", &printed, &[]).status, 303);
    assert_eq!(server.request("GET", "/api/search?q=walrus", &[]).status, 200);
    until("the request is logged", || {
        let logged = fs::read_to_string(&log).unwrap_or_default();
        let fine = logged.contains("request{method=GET path=\"/api/search\" status=200}");
        if fine { Ok(()) } else { Err(logged) }
    });
    let logged = fs::read_to_string(&log).unwrap();
    assert!(!logged.contains("walrus") && !logged.contains(&server.token), "{logged}");
}
