//! A collector on one machine and a server on another: what agents write on the first is read on the
//! second, redacted, and nothing else is.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Machine, lines, recorded, until};
use crate::test_server::{HttpResponse, Server};

const LOG: &str = "claude-code/discovery-loop/log.jsonl";
const ROLLOUT: &str = "codex/discovery-loop/log.jsonl";

/// A server with its own home folder, and a laptop.
struct Team {
    laptop: Machine,
    office: Machine,
    server: Server,
    token: String,
}

impl Team {
    fn new() -> Team {
        let (laptop, office) = (Machine::new(), Machine::new());
        laptop.keep_turns_open();
        office.keep_turns_open();
        let token = token(&office, "ann");
        let server = Server::begin(&office, "d", &[]);
        Team { laptop, office, server, token }
    }

    fn command(&self, machine: &Machine, token: &str, options: &[&str]) -> std::process::Command {
        let to = format!("http://127.0.0.1:{}", self.server.port);
        let mut command = machine.command("edge", &["ship", "--to", &to, "--machine", "laptop"]);
        command.args(options).env("UNSPOOL_SHIP_TOKEN", token);
        command
    }

    /// Sends what is there. The report.
    #[track_caller]
    fn ship(&self, options: &[&str]) -> Value {
        let options = [options, &["--once", "--json"]].concat();
        let output = self.command(&self.laptop, &self.token, &options).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The sessions of the server's archive, as lossless exports.
    fn team_exports(&self) -> Vec<String> {
        exports(&self.office, "d")
    }

    fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> HttpResponse {
        let mut lines = vec![
            format!("POST {path} HTTP/1.0"),
            format!("host: 127.0.0.1:{}", self.server.port),
            format!("content-length: {}", body.len()),
        ];
        lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
        self.server.send(&lines, body)
    }
}

#[track_caller]
fn token(office: &Machine, member: &str) -> String {
    let token = office.ok("d", &["team", "token", member]).trim().to_owned();
    assert!(token.starts_with("ust_"), "{token}");
    token
}

/// The lossless exports of an archive, without where files are and how often they were written.
#[track_caller]
fn exports(machine: &Machine, data: &str) -> Vec<String> {
    let output = machine.run(data, &["export", "--all", "--to", "jsonl"], "");
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("the archive has no sessions") {
        return Vec::new();
    }
    assert!(output.status.success(), "{stderr}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut sessions: Vec<String> = Vec::new();
    for line in text.lines() {
        let mut record: Value = serde_json::from_str(line).unwrap();
        let Some(sources) = record.get_mut("sources") else {
            sessions.last_mut().unwrap().push_str(line);
            continue;
        };
        for source in sources.as_array_mut().unwrap() {
            assert!(source.as_object_mut().unwrap().remove("file").is_some());
        }
        assert!(record.as_object_mut().unwrap().remove("seq").is_some());
        sessions.push(record.to_string());
    }
    sessions.sort();
    sessions
}

/// An archive of the laptop's own logs.
fn local_exports(machine: &Machine) -> Vec<String> {
    machine.ok("local", &["sync"]);
    exports(machine, "local")
}

/// A collector that runs until it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_team_reads_what_the_laptop_has() {
    let team = Team::new();
    let log = ".claude/projects/-w/8f6ac1d1-4b8f-4a02-8b35-b1d0e8d4a001.jsonl";
    team.laptop.put(LOG, log);
    team.laptop.put(ROLLOUT, ".codex/sessions/2026/11/15/rollout-2026-11-15T00-30-48-x.jsonl");
    team.laptop.put("gemini/discovery-loop/log.jsonl", ".gemini/tmp/w/chats/session-1.jsonl");
    team.laptop.put("kilo/retries/log.db", ".local/share/kilo/kilo.db");
    let report = team.ship(&["--all"]);
    assert!(report["files"].as_u64() >= Some(4), "{report}");
    let local = local_exports(&team.laptop);
    assert!(local.len() >= 4, "{}", local.len());
    assert_eq!(team.team_exports(), local);
    // Sent once: nothing is left to send, also after the server has restarted.
    assert_eq!(team.ship(&["--all"])["files"], 0);
    let Team { laptop, office, server, token } = team;
    drop(server);
    let server = Server::begin(&office, "d", &[]);
    let team = Team { laptop, office, server, token };
    assert_eq!(team.ship(&["--all"])["files"], 0);
    assert_eq!(team.team_exports(), local);
    // The raw records are in the archive, and a page says from whom they are.
    let listed = team.server.json("/api/sessions");
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    let shown = team.office.json("d", &["show", &id]);
    let part = shown["turns"][0]["parts"][0]["id"].as_str().unwrap();
    let raw = team.server.json(&format!("/api/sessions/{id}/parts/{part}?raw=true"));
    let record = &raw["raw"]["records"][0];
    assert!(record["text"].is_string(), "{raw}");
    assert!(record["file"].as_str().unwrap().starts_with("ship://ann@laptop/"), "{raw}");
}

#[test]
fn what_an_agent_writes_is_followed() {
    let team = Team::new();
    let log = ".claude/projects/-w/8f6ac1d1-4b8f-4a02-8b35-b1d0e8d4a001.jsonl";
    let text = recorded(LOG);
    let mut command = team.command(&team.laptop, &team.token, &["--all"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let collector = Running(child);
    for (nth, line) in lines(&text).into_iter().enumerate() {
        // Written in halves, as an agent may.
        let (one, other) = line.split_at(line.len() / 2);
        team.laptop.append(log, one);
        if nth % 3 == 0 {
            thread::sleep(Duration::from_millis(60));
        }
        team.laptop.append(log, other);
    }
    let local = local_exports(&team.laptop);
    until("the session on the server", || {
        let found = team.team_exports();
        if found == local { Ok(()) } else { Err(found.len()) }
    });
    drop(collector);
}

/// A log in which this text stands in place of a prompt's own.
fn log_with(texts: &[&str]) -> String {
    let record = |(nth, text): (usize, &&str)| {
        let record = serde_json::json!({
            "type": "user", "sessionId": "8f6ac1d1-4b8f-4a02-8b35-b1d0e8d4a001", "cwd": "/w/app",
            "version": "2.1.300", "uuid": format!("0000000{nth}-0000-4000-8000-000000000000"),
            "parentUuid": null, "isSidechain": false, "userType": "external",
            "timestamp": format!("2026-11-01T10:00:0{nth}.000Z"),
            "message": {"role": "user", "content": text},
        });
        format!("{record}\n")
    };
    texts.iter().enumerate().map(record).collect()
}

const SECRET: &str = "Zx9kQ2mN8vB4wP7t";

/// The mark that stands for the secret on the server.
#[track_caller]
fn mark(team: &Team) -> String {
    let found = team.team_exports().concat();
    assert!(!found.contains(SECRET), "{found}");
    let (_, rest) = found.split_once("[redacted:password:").unwrap();
    format!("[redacted:password:{}]", rest.split(']').next().unwrap())
}

#[test]
fn secrets_stay_on_the_laptop() {
    let team = Team::new();
    let log = ".claude/projects/-w/8f6ac1d1-4b8f-4a02-8b35-b1d0e8d4a001.jsonl";
    let assigned = format!("DB_PASSWORD={SECRET}");
    let bare = format!("use {SECRET} here");
    // What nobody can know to be a secret leaves.
    team.laptop.write(log, log_with(&[&bare, "go on"]).as_bytes());
    team.ship(&["--all"]);
    assert!(team.team_exports().concat().contains(SECRET));
    // Later the log says what it is: all of it is sent again.
    let text = log_with(&[&bare, "go on", &assigned, "and on"]);
    team.laptop.write(log, text.as_bytes());
    let report = team.ship(&["--all"]);
    assert_eq!(report["secrets"]["password"], 2, "{report}");
    let sent = mark(&team);
    // The same archive as of the log with the marks in place.
    let other = Machine::new();
    other.keep_turns_open();
    other.write(log, text.replace(SECRET, &sent).as_bytes());
    assert_eq!(team.team_exports(), local_exports(&other));
    // The mark stays the same when more is sent.
    let more = log_with(&[&bare, "go on", &assigned, "and on", &bare]);
    team.laptop.write(log, more.as_bytes());
    team.ship(&["--all"]);
    assert_eq!(mark(&team), sent);
    other.write(log, more.replace(SECRET, &sent).as_bytes());
    assert_eq!(team.team_exports(), local_exports(&other));
    // Nor is it in a file of the server.
    team.office.ok("d", &["db", "check"]);
    assert_eq!(team.server.json(&format!("/api/search?q={SECRET}")), serde_json::json!([]));
}

#[test]
fn only_what_was_named_is_sent() {
    let team = Team::new();
    let log = ".claude/projects/-w/8f6ac1d1-4b8f-4a02-8b35-b1d0e8d4a001.jsonl";
    team.laptop.write(log, log_with(&["one"]).as_bytes());
    let refused = |options: &[&str]| {
        let output = team.command(&team.laptop, &team.token, options).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused(&["--once"]).contains("nothing is sent unless you name it"));
    assert!(refused(&["--once", "--project", "nowhere"]).contains("there is no folder nowhere"));
    let report = team.ship(&["--project", "/w/other"]);
    assert_eq!((&report["files"], &report["withheld"]), (&Value::from(0), &Value::from(1)));
    assert_eq!(team.team_exports(), [""; 0]);
    // What would be sent is shown without a server.
    let shown = team.laptop.ok("edge", &["ship", "--dry-run", "--project", "/w/app", "--json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert!(shown[0]["file"].as_str().unwrap().ends_with(".jsonl"), "{shown}");
    assert_eq!(team.team_exports(), [""; 0]);
    assert_eq!(team.ship(&["--project", "/w/app"])["files"], 1);
    assert_eq!(team.team_exports().len(), 1);
}

#[test]
fn a_token_can_send_and_nothing_else() {
    let team = Team::new();
    let bearer = format!("Bearer {}", team.token);
    let authorization = ("authorization", bearer.as_str());
    for path in ["/api/sessions", "/", "/api/stats", "/api/search?q=a"] {
        let response = team.server.request("GET", path, &[authorization]);
        assert_eq!(response.status, 401, "{path}");
    }
    // Nor does the token of the page send.
    let own = format!("Bearer {}", team.server.token);
    let hello = br#"{"machine":"laptop","files":["/a"]}"#;
    let response = team.post("/api/ship/hello", &[("authorization", &own)], hello);
    assert!(response.problem(401).contains("unspool team token"), "{}", response.status);
    assert_eq!(team.post("/api/ship/hello", &[], hello).status, 401);
    let response = team.post("/api/ship/hello", &[authorization], hello);
    assert_eq!(response.json(), serde_json::json!({"files": [null]}));
    // Revoked, it ends at once.
    team.office.ok("d", &["team", "revoke", "ann"]);
    let response = team.post("/api/ship/hello", &[authorization], hello);
    assert!(response.problem(401).contains("revoked"));
    let mut ship = team.command(&team.laptop, &team.token, &["--all", "--once"]);
    team.laptop.put(LOG, ".claude/projects/-w/8f6ac1d1-4b8f-4a02-8b35-b1d0e8d4a001.jsonl");
    let output = ship.output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("unspool team token"));
}

#[test]
fn one_member_cannot_add_to_the_session_of_another() {
    let team = Team::new();
    let log = ".claude/projects/-w/8f6ac1d1-4b8f-4a02-8b35-b1d0e8d4a001.jsonl";
    team.laptop.write(log, log_with(&["one"]).as_bytes());
    team.ship(&["--all"]);
    let before = team.team_exports();
    let eve = Machine::new();
    eve.write(log, log_with(&["one", "forged"]).as_bytes());
    let token = token(&team.office, "eve");
    let output = team.command(&eve, &token, &["--all", "--once"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("another member's"), "{output:?}");
    assert_eq!(team.team_exports(), before);
    team.laptop.write(log, log_with(&["one", "two"]).as_bytes());
    team.ship(&["--all"]);
    assert_eq!(team.team_exports(), local_exports(&team.laptop));
}

#[test]
fn hostile_requests_are_refused() {
    let team = Team::new();
    let bearer = format!("Bearer {}", team.token);
    let headers = [("authorization", bearer.as_str()), ("unspool-machine", "laptop")];
    let send = |body: &[u8]| team.post("/api/ship", &headers, body);
    let pack = |text: &[u8]| zstd::encode_all(text, 3).unwrap();
    assert!(send(b"no zstd").problem(400).contains("zstd"));
    // 1 GB of zeros in 32 kB.
    let mut bomb = zstd::Encoder::new(Vec::new(), 19).unwrap();
    let zeros = vec![0; 1 << 20];
    (0..1024).for_each(|_| bomb.write_all(&zeros).unwrap());
    assert!(send(&bomb.finish().unwrap()).problem(413).contains("unpacks to more"));
    assert!(send(&vec![0; 17 << 20]).status >= 400);
    for wrong in ["", "../../etc", "a/b", "a b", "\u{1b}[31m"] {
        let headers = [headers[0], ("unspool-machine", wrong)];
        assert_eq!(team.post("/api/ship", &headers, &pack(b"")).status, 400, "{wrong:?}");
    }
    assert_eq!(send(&pack(b"no unit\n")).status, 400);
    // Nothing of it harms those who send what is right.
    team.laptop.put(LOG, ".claude/projects/-w/8f6ac1d1-4b8f-4a02-8b35-b1d0e8d4a001.jsonl");
    team.ship(&["--all"]);
    assert_eq!(team.team_exports(), local_exports(&team.laptop));
    let left = fs::read_dir(team.office.data("d").join("units")).map(Iterator::count);
    assert_eq!(left.unwrap_or_default(), 0, "no file of a request is left");
}

/// A proxy with TLS in front of a server, and the certificate that it shows.
fn tls_proxy(server: u16) -> (u16, String) {
    let shown = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(shown.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![shown.cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let connection = rustls::ServerConnection::new(config.clone()).unwrap();
            // A handshake that the other side gives up is its business.
            let _ = pass_on(rustls::StreamOwned::new(connection, stream), server);
        }
    });
    (port, shown.cert.pem())
}

/// Passes one request on, and its answer back.
fn pass_on(mut from: impl Read + Write, server: u16) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        from.read_exact(&mut byte)?;
        request.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&request).to_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    let mut body = vec![0; length.and_then(|length| length.parse().ok()).unwrap_or(0)];
    from.read_exact(&mut body)?;
    let head = String::from_utf8_lossy(&request);
    let head = head.replacen("\r\n", "\r\nconnection: close\r\n", 1);
    // The name by which this server is reached from here, as proxies send it.
    let head: String = head
        .split_inclusive("\r\n")
        .map(|line| match line.to_lowercase().starts_with("host:") {
            true => format!("host: 127.0.0.1:{server}\r\n"),
            false => line.to_owned(),
        })
        .collect();
    let mut to = TcpStream::connect(("127.0.0.1", server))?;
    to.write_all(head.as_bytes())?;
    to.write_all(&body)?;
    let mut answer = Vec::new();
    to.read_to_end(&mut answer)?;
    from.write_all(&answer)?;
    from.flush()
}

#[test]
fn a_certificate_that_the_system_trusts_is_enough_and_needed() {
    let team = Team::new();
    let log = ".claude/projects/-w/8f6ac1d1-4b8f-4a02-8b35-b1d0e8d4a001.jsonl";
    team.laptop.put(LOG, log);
    let (port, certificate) = tls_proxy(team.server.port);
    let trusted = team.laptop.home().join("server.pem");
    fs::write(&trusted, certificate).unwrap();
    let to = format!("https://localhost:{port}");
    let arguments = ["ship", "--to", &to, "--machine", "laptop", "--all", "--once"];
    let ship = |trusted: Option<&Path>| {
        let mut command = team.laptop.command("edge", &arguments);
        command.env("UNSPOOL_SHIP_TOKEN", &team.token);
        trusted.map(|trusted| command.env("SSL_CERT_FILE", trusted));
        command.output().unwrap()
    };
    let refused = ship(None);
    assert!(!refused.status.success());
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(stderr.contains("certificate"), "{stderr}");
    assert_eq!(team.team_exports(), [""; 0]);
    let sent = ship(Some(&trusted));
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    assert_eq!(team.team_exports(), local_exports(&team.laptop));
}

#[test]
fn a_server_that_is_killed_loses_and_doubles_nothing() {
    let mut team = Team::new();
    let port = team.server.port.to_string();
    let log = ".claude/projects/-w/8f6ac1d1-4b8f-4a02-8b35-b1d0e8d4a001.jsonl";
    let text = recorded(LOG);
    let mut command = team.command(&team.laptop, &team.token, &["--all"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let collector = Running(child);
    let lines = lines(&text);
    for (nth, group) in lines.chunks(lines.len().div_ceil(4)).enumerate() {
        for line in group {
            team.laptop.append(log, line);
            thread::sleep(Duration::from_millis(40));
        }
        if nth < 3 {
            // With SIGKILL, at any moment, and again on the same port.
            let command = team.office.command("d", &["serve", "--port", &port]);
            drop(team.server);
            team.server = Server::begin_with(command).0;
        }
    }
    let local = local_exports(&team.laptop);
    until("the session on the server", || {
        let found = team.team_exports();
        if found == local { Ok(()) } else { Err(found.len()) }
    });
    drop(collector);
    team.office.ok("d", &["db", "check"]);
}
