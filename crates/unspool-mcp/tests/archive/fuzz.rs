//! Nothing that a client sends makes the server panic, and the answers stay within their limits.

use std::sync::OnceLock;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use rmcp::service::serve_server;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use unspool_mcp::{Scope, tools};
use unspool_store::database::DatabaseView;

use crate::machine::{Client, Machine};

/// One archive for all cases: they only read.
fn client() -> &'static (Machine, Client) {
    static CLIENT: OnceLock<(Machine, Client)> = OnceLock::new();
    CLIENT.get_or_init(|| {
        let cases = ["claude-code/discovery-loop", "claude-code/odd-output", "codex/steered"];
        let machine = Machine::with_cases(&cases);
        let client = machine.server(Scope::All);
        assert!(client.sessions().len() >= 3);
        (machine, client)
    })
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((any::<String>(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Arguments that are nearly right: known names, values of any kind, cursors of other tools.
fn arguments() -> impl Strategy<Value = (usize, Map<String, Value>)> {
    let values = prop_oneof![
        any_json(),
        (0u64..9).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop::sample::select(vec![
            "",
            "0.0",
            "1.1",
            "1.99999999999",
            "user.1",
            "user.18446744073709551615",
            "never.x",
            "99999999999999999999",
            "-1",
            "previous",
            "failed",
            "tool",
            "text",
            "yesterday",
            "\"",
            "*",
            "NOT",
            "a NOT a",
            "\u{0}",
            "../..",
            "%",
            "cache",
        ])
        .prop_map(Value::from),
        "[a-z0-9]{1,8}".prop_map(Value::from),
    ];
    let count = tools::<DatabaseView>().len();
    (0..count, vec((any::<prop::sample::Index>(), values), 0..5)).prop_map(|(tool, given)| {
        let tools = tools::<DatabaseView>();
        let names: Vec<&str> = tools[tool].all_parameters().map(|it| it.name).collect();
        let fields = given.into_iter().map(|(at, value)| (at.get(&names).to_string(), value));
        (tool, fields.collect())
    })
}

/// The longest answer to arguments that are accepted: a limit may be written as a text.
fn limit_of(given: &Map<String, Value>) -> u64 {
    let asked = given.get("limit").and_then(|limit| {
        let float = || limit.as_f64().map(|float| float as u64);
        limit.as_u64().or_else(float).or_else(|| limit.as_str()?.trim().parse().ok())
    });
    asked.unwrap_or(8_000).clamp(2_000, 40_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_arguments_get_an_answer_within_its_limit_or_a_sentence((tool, given) in arguments()) {
        let (_, client) = client();
        let name = tools::<DatabaseView>()[tool].name;
        let limit = limit_of(&given);
        match client.0.call(name, given).unwrap() {
            Ok(answer) => {
                let chars = answer.document().to_string().chars().count() as u64;
                prop_assert!(chars <= limit, "{chars} of {limit}");
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn any_name_and_any_object_is_no_panic(name in ".*", given in any_json()) {
        let (_, client) = client();
        if let Value::Object(given) = given {
            let _ = client.0.call(&name, given);
        }
    }
}

/// Sends these lines after the handshake, and then asks for the tools: the server is still there.
fn survives(lines: Vec<Vec<u8>>) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let server = client().1.0.clone();
        let serving = tokio::spawn(async move {
            let running = serve_server(server, tokio::io::split(theirs)).await;
            if let Ok(running) = running {
                let _ = running.waiting().await;
            }
        });
        let (mut reading, mut writing) = tokio::io::split(ours);
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "fuzz", "version": "0" } } });
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let mut sent = format!("{hello}\n{ready}\n").into_bytes();
        for line in lines {
            sent.extend(line.into_iter().filter(|byte| *byte != b'\n'));
            sent.push(b'\n');
        }
        let last = json!({ "jsonrpc": "2.0", "id": "the last one", "method": "tools/list" });
        sent.extend(format!("{last}\n").into_bytes());
        let write = async {
            let _ = writing.write_all(&sent).await;
        };
        let read = async {
            let mut text = Vec::new();
            let mut chunk = [0u8; 4096];
            loop {
                let Ok(count) = reading.read(&mut chunk).await else { return false };
                text.extend_from_slice(&chunk[..count]);
                if String::from_utf8_lossy(&text).contains("\"id\":\"the last one\"") {
                    return true;
                }
                if count == 0 {
                    return false;
                }
            }
        };
        let both = async { tokio::join!(write, read).1 };
        let answered = tokio::time::timeout(Duration::from_secs(20), both).await.unwrap_or(false);
        drop(writing);
        serving.abort();
        answered && !serving.await.is_err_and(|error| error.is_panic())
    })
}

fn nearly_json_rpc() -> impl Strategy<Value = Vec<u8>> {
    let methods = vec![
        "tools/call",
        "tools/list",
        "resources/read",
        "resources/list",
        "prompts/get",
        "prompts/list",
        "ping",
        "initialize",
        "completion/complete",
        "notifications/cancelled",
        "server/discover",
        "subscriptions/listen",
        "tasks/get",
        "logging/setLevel",
        "no/such",
    ];
    let request =
        (prop::sample::select(methods), any_json(), any_json()).prop_map(|(method, id, params)| {
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
                .to_string()
                .into_bytes()
        });
    let call = (any::<String>(), any_json()).prop_map(|(name, arguments)| {
        let params = json!({ "name": name, "arguments": arguments });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
            .to_string()
            .into_bytes()
    });
    prop_oneof![
        request,
        call,
        any_json().prop_map(|value| value.to_string().into_bytes()),
        vec(any::<u8>(), 0..200),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lines_of_any_kind_do_not_end_the_server(lines in vec(nearly_json_rpc(), 0..12)) {
        prop_assert!(survives(lines));
    }
}
