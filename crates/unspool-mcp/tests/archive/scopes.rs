//! Whose sessions a client is told of.

use std::path::Path;

use serde_json::{Value, json};
use unspool_mcp::Scope;
use unspool_model::id::SessionId;
use unspool_query::request::Request;

use crate::machine::{Client, Log, Machine};

const OURS: &str = "11111111-aaaa-4aaa-8aaa-111111111111";
const BELOW: &str = "22222222-aaaa-4aaa-8aaa-222222222222";
const NEIGHBOUR: &str = "33333333-aaaa-4aaa-8aaa-333333333333";

fn machine() -> Machine {
    let machine = Machine::new();
    for (id, folder, word) in [
        (OURS, "/home/dev/app", "papaya"),
        (BELOW, "/home/dev/app/web", "quince"),
        (NEIGHBOUR, "/home/dev/app-old", "medlar"),
    ] {
        let mut log = Log::new(id, folder);
        log.turn(&format!("Find fruit {word}"), "Hm.", "ls", &format!("fruit {word}"), "There.");
        machine.read_text(&format!("{id}.jsonl"), log.text());
    }
    machine
}

/// All that any tool tells without a session.
fn all_answers(client: &Client) -> String {
    let mut told = String::new();
    for (tool, arguments) in [
        ("list_sessions", json!({ "sub_agents": true })),
        ("search_sessions", json!({ "query": "fruit", "count": 50 })),
        ("search_sessions", json!({ "kind": "title", "query": "fruit" })),
        ("search_sessions", json!({ "tool": "Bash" })),
        ("get_stats", json!({ "by": "project" })),
        ("get_session", json!({})),
        ("get_turn", json!({})),
    ] {
        told.push_str(&client.try_call(tool, arguments).map_or_else(|it| it, |it| it.to_string()));
    }
    told
}

#[test]
fn a_project_has_its_folder_and_what_is_below_and_no_neighbour() {
    let machine = machine();
    let ours = machine.server(Scope::folder(Path::new("/home/dev/app")));
    let all = all_answers(&ours);
    assert!(all.contains("papaya") && all.contains("quince"), "{all}");
    assert!(!all.contains("medlar") && !all.contains("app-old"), "{all}");
    assert_eq!(ours.call("get_stats", json!({}))["sessions"], 2);
    let neighbour = SessionId::of("claude-code", NEIGHBOUR).to_string();
    let error = ours.try_call("get_session", json!({ "session": neighbour })).unwrap_err();
    assert!(error.contains("of the project /home/dev/app"), "{error}");
    let everything = all_answers(&machine.server(Scope::All));
    assert!(everything.contains("medlar"));
    let nothing = machine.server(Scope::folder(Path::new("/srv")));
    assert_eq!(nothing.sessions(), Vec::<Value>::new());
    let error = nothing.try_call("get_session", json!({})).unwrap_err();
    assert!(error.contains("unspool sync"), "{error}");
}

#[test]
fn private_sessions_are_in_no_answer() {
    let machine = machine();
    let session = SessionId::of("claude-code", BELOW);
    machine.submit(Request::Tag { session, add: vec!["private".to_owned()], remove: vec![] });
    let client = machine.server(Scope::All);
    let all = all_answers(&client);
    assert!(all.contains("papaya") && !all.contains("quince"), "{all}");
    assert!(!all.contains("/home/dev/app/web"), "{all}");
    assert_eq!(client.call("get_stats", json!({}))["sessions"], 2);
    assert_eq!(client.call("get_stats", json!({ "by": "tool" }))["rows"][0]["calls"], 2);
    for tool in ["get_session", "get_turn", "get_prompt", "get_thoughtflow"] {
        let error = client.try_call(tool, json!({ "session": session.to_string() })).unwrap_err();
        assert!(error.contains("there is no session"), "{tool}: {error}");
    }
}

#[test]
fn the_own_session_is_the_one_that_the_client_says_it_is() {
    let machine = machine();
    let newest = machine.server(Scope::All).call("get_session", json!({}));
    let own = machine.client(Scope::All, None, Some(OURS)).call("get_session", json!({}));
    assert_eq!(own["session"], SessionId::of("claude-code", OURS).to_string());
    let unknown = machine.client(Scope::All, None, Some("44444444")).call("get_session", json!({}));
    assert_eq!(unknown["session"], newest["session"]);
    // An id of another project opens nothing.
    let scope = Scope::folder(Path::new("/home/dev/app"));
    let other = machine.client(scope, None, Some(NEIGHBOUR)).call("get_session", json!({}));
    assert_ne!(other["session"], SessionId::of("claude-code", NEIGHBOUR).to_string());
}

/// Whatever an answer says of a search comes from what the client may see: a guess that is right and
/// one that is wrong get the same sentence.
#[test]
fn a_search_says_nothing_of_what_it_does_not_tell() {
    let machine = machine();
    let session = SessionId::of("claude-code", BELOW);
    machine.submit(Request::Tag { session, add: vec!["private".to_owned()], remove: vec![] });
    let client = machine.server(Scope::All);
    for (right, wrong) in [
        ("quin*", "quix*"),
        ("quince", "quinxe"),
        ("fruit quince", "fruit quinxe"),
        ("\"Find fruit quince\"", "\"Find fruit quinxe\""),
        ("ls --quince", "ls --quinxe"),
    ] {
        let told = client.call("search_sessions", json!({ "query": right })).to_string();
        let guess = client.call("search_sessions", json!({ "query": wrong })).to_string();
        let same = |text: &str| text.replace("quinxe", "quince").replace("quix", "quin");
        assert_eq!(same(&told), same(&guess), "{right}");
    }
}
