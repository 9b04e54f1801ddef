use std::fs;

use serde_json::{Value, json};

use super::*;

fn lines(path: &Path) -> Vec<Value> {
    let mut text = String::new();
    open(path).unwrap().unwrap().read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_index_is_given_with_its_bodies() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path().join("index.jsonl");
    let line = json!({ "session_id": "s", "request_file": "a.request.json" });
    fs::write(&index, format!("{line}\n")).unwrap();
    fs::write(
        folder.path().join("a.request.json"),
        "{\n \"a b\": \"c \\\" d\\\\\" , \"e\":1\r\n}\n",
    )
    .unwrap();
    let mut text = String::new();
    open(&index).unwrap().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(
        text,
        format!("{{\"trace_index\":{line},\"payload\":{{\"a b\":\"c \\\" d\\\\\",\"e\":1}}}}\n")
    );
    assert!(is_payload(&folder.path().join("a.request.json")));
    assert!(!is_payload(&index));
    // Anything else of this name is read as it is.
    fs::write(&index, "{\"type\":\"user\",\"sessionId\":\"s\"}\n").unwrap();
    assert!(open(&index).unwrap().is_none());
}

#[cfg(unix)]
#[test]
fn bodies_outside_the_folder_are_refused_and_named() {
    let outside = tempfile::tempdir().unwrap();
    let folder = outside.path().join("trace");
    fs::create_dir_all(folder.join("payloads")).unwrap();
    fs::write(outside.path().join("secret.json"), "{\"key\":1}").unwrap();
    std::os::unix::fs::symlink("../../secret.json", folder.join("payloads/link.json")).unwrap();
    fs::write(folder.join("payloads/cut.json"), "{\"a\":").unwrap();
    let absolute = outside.path().join("secret.json").display().to_string();
    let names = [
        "../secret.json",
        &absolute,
        "payloads/link.json",
        "payloads/none.json",
        "payloads/cut.json",
    ];
    let record = |name: &str| {
        let payload = json!({ "type": "inference_started", "request_payload": { "path": name } });
        format!("{}\n", json!({ "rollout_id": "r", "payload": payload }))
    };
    let index = folder.join("trace.jsonl");
    fs::write(&index, names.iter().map(|name| record(name)).collect::<String>()).unwrap();
    let lines = lines(&index);
    assert_eq!(lines.len(), names.len());
    for (line, name) in lines.iter().zip(names) {
        assert!(line.get("payload").is_none(), "{line}");
        assert!(line["problem"].as_str().unwrap().starts_with(name), "{line}");
    }
}

#[test]
fn a_line_that_is_not_json_is_given_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path().join("trace.jsonl");
    let good = "{\"rollout_id\":\"r\",\"payload\":{}}";
    fs::write(&index, format!("{good}\n{{\"rollout\n{good}\n{{\"cut")).unwrap();
    let mut text = String::new();
    open(&index).unwrap().unwrap().read_to_string(&mut text).unwrap();
    let whole = format!("{{\"trace_index\":{good}}}\n");
    assert_eq!(text, format!("{whole}{{\"rollout\n{whole}{{\"cut"));
}
