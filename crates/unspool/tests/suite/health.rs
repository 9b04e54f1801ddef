//! What a load balancer asks a server: `/healthz` and `/readyz`.

use std::time::Duration;

use rusqlite::Connection;

use crate::case::root;
use crate::harness::{Machine, until};
use crate::test_server::Server;

const NOBODY: (&str, &str) = ("authorization", "");

fn server(machine: &Machine) -> Server {
    let log = root().join("fixtures/claude-code/discovery-loop/log.jsonl");
    machine.ok("data", &["import", log.to_str().unwrap()]);
    Server::begin(machine, "data", &[])
}

#[test]
fn health_needs_no_login_and_tells_nothing() {
    let machine = Machine::new();
    let server = server(&machine);
    for path in ["/healthz", "/readyz"] {
        let answer = server.request("GET", path, &[NOBODY]);
        assert_eq!((answer.status, answer.body.as_slice()), (200, b"ok\n".as_slice()), "{path}");
        assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
        assert_eq!(server.request("HEAD", path, &[NOBODY]).status, 200, "{path}");
        // The exception is for these paths and for reading, and other sites gain no more by it.
        server.request("POST", path, &[NOBODY]).problem(401);
        server.request("GET", &format!("{path}/x"), &[NOBODY]).problem(401);
        server.request("GET", path, &[NOBODY, ("host", "evil.example")]).problem(421);
    }
}

#[test]
fn a_server_whose_archive_cannot_be_read_is_healthy_and_not_ready() {
    let machine = Machine::new();
    let server = server(&machine);
    let archive = Connection::open(machine.data("data").join("unspool.db")).unwrap();
    // As long as one statement takes: the server may write in between.
    archive.busy_timeout(Duration::from_secs(10)).unwrap();
    archive.execute_batch("ALTER TABLE session RENAME TO elsewhere").unwrap();
    let detail = server.request("GET", "/readyz", &[NOBODY]).problem(503);
    assert!(detail.contains("cannot be read") && detail.contains("--log"), "{detail}");
    assert!(!detail.contains("elsewhere") && !detail.contains("unspool.db"), "{detail}");
    assert_eq!(server.request("GET", "/healthz", &[NOBODY]).status, 200);
    archive.execute_batch("ALTER TABLE elsewhere RENAME TO session").unwrap();
    until("it is ready again", || match server.request("GET", "/readyz", &[NOBODY]).status {
        200 => Ok(()),
        status => Err(status.to_string()),
    });
}
