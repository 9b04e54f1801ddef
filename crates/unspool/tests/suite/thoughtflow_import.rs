//! ThoughtFlow documents of other programs, imported and exported again.

use serde_json::Value;

use crate::case::root;
use crate::harness::Machine;

/// The JSON that an export of an imported document gives.
fn given_back(case: &str) -> (Value, Value) {
    let machine = Machine::new();
    let fixture = format!("thoughtflow/{case}/log.json");
    machine.put(&fixture, "session.json");
    machine.ok("d", &["import", machine.home().join("session.json").to_str().unwrap()]);
    let id = machine.json("d", &["list"])[0]["id"].as_str().unwrap().to_owned();
    let exported = machine.ok("d", &["export", &id, "--to", "thoughtflow"]);
    let source = std::fs::read(root().join("fixtures").join(fixture)).unwrap();
    (serde_json::from_slice(&source).unwrap(), serde_json::from_str(&exported).unwrap())
}

#[test]
fn a_document_of_another_program_is_given_back_as_it_was() {
    // R-002-04, R-002-43: its ids, times, arguments, previews and labels; and nothing is added.
    let (source, exported) = given_back("two-channels");
    assert_eq!(exported, source);
    // Conversations that have ended; the others may still be written.
    let (source, exported) = given_back("written-by-others");
    assert_eq!(exported["session_id"], source["session_id"]);
    let runs = |document: &Value| document["conversations"].as_array().unwrap().clone();
    let ended =
        |run: &Value| ["completed", "aborted", "error"].map(Value::from).contains(&run["status"]);
    let ended: Vec<Value> = runs(&source).into_iter().filter(ended).collect();
    assert!(ended.len() > 1);
    for run in ended {
        assert!(runs(&exported).contains(&run), "{run}\n{exported}");
    }
}
