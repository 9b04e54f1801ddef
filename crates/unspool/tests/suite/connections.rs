//! Clients that are slow, silent or ambiguous: they get no resources for long and keep nobody out.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::harness::Machine;
use crate::test_server::Server;

/// A server that may open this many files.
fn server(machine: &Machine, files: u32) -> Server {
    let program = env!("CARGO_BIN_EXE_unspool");
    let data = machine.data("data").display().to_string();
    let mut shell = Command::new("sh");
    let script = format!("ulimit -n {files}; exec {program} --data {data} serve --port 0");
    shell.args(["-c", &script]).stdout(Stdio::piped()).stderr(Stdio::null());
    machine.set_environment(&mut shell);
    Server::begin_with(shell).0
}

#[test]
fn half_sent_requests_keep_nobody_out_and_are_closed() {
    let machine = Machine::new();
    let server = server(&machine, 256);
    let mut silent: Vec<_> = (0..140).map(|_| server.connect()).collect();
    for stream in &mut silent {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: 127").unwrap();
    }
    assert_eq!(server.request("GET", "/api/sessions", &[]).status, 200);
    // The read timeout of the test is longer than the server's.
    for stream in &mut silent {
        let mut rest = Vec::new();
        let closed = stream.read_to_end(&mut rest);
        assert!(closed.is_ok(), "{closed:?}");
        assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
    }
}

#[test]
fn a_half_sent_request_does_not_keep_the_server_alive() {
    let machine = Machine::new();
    let mut server = server(&machine, 256);
    let mut silent = server.connect();
    silent.write_all(b"GET / HTTP/1.1\r\nHost: 127").unwrap();
    assert_eq!(server.request("GET", "/api/sessions", &[]).status, 200);
    let process = server.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &process]).status().unwrap().success());
    assert!(server.ends_within(Duration::from_secs(30)), "it still runs");
}

#[test]
fn an_ambiguous_request_is_refused_as_a_problem() {
    let machine = Machine::new();
    let server = server(&machine, 256);
    let host = format!("Host: 127.0.0.1:{}", server.port);
    let lines = ["GET / HTTP/1.0".to_owned(), host, "Host: evil.example".to_owned()];
    assert!(server.send(&lines, b"").problem(400).contains("two Host headers"));
    let host = format!("Host: 127.0.0.1:{}", server.port);
    let own = format!("Origin: http://127.0.0.1:{}", server.port);
    let lines = ["GET / HTTP/1.0".to_owned(), host, own, "Origin: http://evil.example".to_owned()];
    assert!(server.send(&lines, b"").problem(400).contains("two Origin headers"));
    for path in ["/s/%ff", "/api/sessions/%c3%28", "/thoughtflow/%80.json"] {
        assert!(server.request("GET", path, &[]).problem(400).contains("UTF-8"), "{path}");
    }
    assert_eq!(server.request("GET", "/s/%e2%9c%93", &[]).status, 404);
}
