//! Authentication and request limits: every refusal, with raw requests to the real program.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::case::root;
use crate::harness::Machine;
use crate::test_server::{HttpResponse, Server, Socket};

/// A server over one session.
fn local(machine: &Machine) -> Server {
    let log = root().join("fixtures/claude-code/discovery-loop/log.jsonl");
    machine.ok("data", &["import", log.to_str().unwrap()]);
    Server::begin(machine, "data", &[])
}

#[test]
fn requests_need_the_token_and_our_host_name() {
    let machine = Machine::new();
    let server = local(&machine);
    let port = server.port;
    for path in [
        "/",
        "/api/sessions",
        "/api/live",
        "/api/openapi.json",
        "/assets/app.js",
        "/login",
        "/nothing",
    ] {
        for token in ["", "Bearer ", "Bearer wrong", "Basic x"] {
            let detail = server.request("GET", path, &[("authorization", token)]).problem(401);
            assert!(detail.contains("unspool serve"), "{path}: {detail}");
        }
        for host in [
            String::new(),
            "evil.example".to_owned(),
            format!("evil.example:{port}"),
            "127.0.0.1".to_owned(),
            "127.0.0.1:1".to_owned(),
        ] {
            let detail = server.request("GET", path, &[("host", &host)]).problem(421);
            assert!(detail.contains("127.0.0.1"), "{path}: {detail}");
        }
    }
    assert_eq!(server.get("/api/sessions").status, 200);
    let bearer = format!("bearer {}", server.token);
    let answer = server.request("GET", "/api/sessions", &[("authorization", &bearer)]);
    assert_eq!(answer.status, 200, "the name of the scheme has no case");
    // Without a password there is no login page.
    server.get("/login").problem(404);
    server.request("POST", "/login", &[]).problem(404);
}

#[test]
fn other_sites_open_no_sockets_and_send_nothing() {
    let machine = Machine::new();
    let server = local(&machine);
    let upgrade = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="),
    ];
    for origin in ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1", ""] {
        let foreign = [("origin", origin)];
        if !origin.is_empty() {
            let detail =
                server.request("GET", "/api/live", &[&upgrade[..], &foreign].concat()).problem(403);
            assert!(detail.contains("cross-site"), "{detail}");
            server.request("POST", "/api/sessions", &foreign).problem(403);
        }
    }
    server
        .request(
            "POST",
            "/api/sessions",
            &[("origin", &format!("http://127.0.0.1:{}", server.port))],
        )
        .problem(405);
}

#[test]
fn oversized_requests_are_refused() {
    let machine = Machine::new();
    let server = local(&machine);
    let detail =
        server.request("POST", "/api/sessions", &[("content-length", "65537")]).problem(413);
    assert!(detail.contains("65536 bytes"), "{detail}");
    let long = "x".repeat(9000);
    let detail = server.get(&format!("/api/search?q={long}")).problem(414);
    assert!(detail.contains("too long"), "{detail}");
    let large = "x".repeat(40_000);
    let detail = server.request("GET", "/api/sessions", &[("x-large", &large)]).problem(431);
    assert!(detail.contains("cookies"), "{detail}");
    // An invalid length is a bad request.
    assert_eq!(server.request("POST", "/api/sessions", &[("content-length", "many")]).status, 400);
}

/// Sends a message on a new socket and returns the first one received; empty if it was closed.
fn send_text(server: &Server, text: &[u8]) -> String {
    let mut socket = Socket::open(server);
    socket.send_text(text);
    socket.receive_text().unwrap_or_default()
}

#[test]
fn a_frame_that_is_too_large_is_not_read() {
    let machine = Machine::new();
    let server = local(&machine);
    let id = server.json("/api/sessions")[0]["id"].as_str().unwrap().to_owned();
    let subscription = format!("{{\"subscribe\":\"{id}\"}}");
    let heard = send_text(&server, subscription.as_bytes());
    assert!(heard.contains(&id), "{heard}");
    // The same padded with spaces: at most 64 KiB.
    let padded =
        |length: usize| format!("{subscription}{}", " ".repeat(length - subscription.len()));
    let heard = send_text(&server, padded(60_000).as_bytes());
    assert!(heard.contains(&id), "{heard}");
    assert_eq!(send_text(&server, padded(70_000).as_bytes()), "");
    // Invalid messages get an error.
    for nonsense in ["{", "[]", "{\"subscribe\":1}", "{\"subscribe\":\"x\",\"form\":\"morse\"}"] {
        let heard = send_text(&server, nonsense.as_bytes());
        assert!(heard.contains("\"type\":\"error\""), "{nonsense}: {heard}");
    }
    assert_eq!(server.get("/api/sessions").status, 200, "it goes on");
}

#[test]
fn no_path_traversal() {
    let machine = Machine::new();
    let server = local(&machine);
    for path in [
        "/assets/../Cargo.toml",
        "/assets/..%2f..%2fCargo.toml",
        "/assets/%2e%2e/%2e%2e/etc/passwd",
        "/assets/....//etc/passwd",
        "/../../etc/passwd",
        "/s/..%2f..%2f..%2fetc%2fpasswd",
        "/api/sessions/..%2ftoken",
        "/api/sessions/..%2f..%2ftoken/export?to=jsonl",
        "//etc/passwd",
        "/%00",
    ] {
        let response = server.get(path);
        assert_eq!(response.status, 404, "{path}");
        let text = String::from_utf8_lossy(&response.body);
        assert!(!text.contains("root:") && !text.contains(&server.token), "{path}: {text}");
    }
}

const PASSWORD: &str = "a long password & more";

fn set_password(machine: &Machine) {
    let output = machine.run("data", &["serve", "--set-password"], &format!("{PASSWORD}\n"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn listening_beyond_loopback_needs_a_password() {
    let machine = Machine::new();
    for options in [["--listen", "0.0.0.0"], ["--listen", "192.0.2.1"], ["--name", "desk.example"]]
    {
        let output = machine.run("data", &[&["serve", "--port", "0"][..], &options].concat(), "");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{options:?}: {said}");
        assert!(said.contains("--set-password") && output.stdout.is_empty(), "{said}");
    }
    // Loopback needs no password.
    drop(Server::begin(&machine, "data", &["--listen", "127.0.0.1"]));
    for (password, why) in
        [("short\n", "8 characters"), ("\n", "8 characters"), ("", "8 characters")]
    {
        let output = machine.run("data", &["serve", "--set-password"], password);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(why), "{password:?}: {said}");
        assert!(!machine.data("data").join("password").exists());
    }
    set_password(&machine);
    let path = machine.data("data").join("password");
    let kept = fs::read_to_string(&path).unwrap();
    assert!(kept.starts_with("$argon2id$") && !kept.contains(PASSWORD), "{kept}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0);
    }
    fs::write(&path, "no hash").unwrap();
    let output = machine.run("data", &["serve", "--listen", "0.0.0.0", "--port", "0"], "");
    assert!(String::from_utf8_lossy(&output.stderr).contains("--set-password"));
}

/// Sends the form of the login page.
fn log_in(server: &Server, password: &str, to: &str, origin: &str) -> HttpResponse {
    let escape = |text: &str| text.replace('&', "%26").replace(' ', "+").replace('/', "%2F");
    let body = format!("password={}&to={}", escape(password), escape(to));
    let mut lines = vec![
        "POST /login HTTP/1.0".to_owned(),
        format!("host: 127.0.0.1:{}", server.port),
        "content-type: application/x-www-form-urlencoded".to_owned(),
        format!("content-length: {}", body.len()),
    ];
    if !origin.is_empty() {
        lines.push(format!("origin: {origin}"));
    }
    server.send(&lines, body.as_bytes())
}

#[test]
fn the_password_logs_in() {
    let machine = Machine::new();
    set_password(&machine);
    let mut command = machine.command(
        "data",
        &["serve", "--port", "0", "--listen", "0.0.0.0", "--name", "desk.example"],
    );
    command.stderr(Stdio::piped());
    let (server, said) = Server::begin_with(command);
    let ours = format!("http://127.0.0.1:{}", server.port);
    let nobody = ("authorization", "");

    // A browser is redirected to the login page; a program gets a next step.
    let html = ("accept", "text/html,*/*");
    let response = server.request("GET", "/s/abc?before=3", &[nobody, html]);
    assert_eq!(
        (response.status, response.header("location")),
        (303, Some("/login?to=%2Fs%2Fabc%3Fbefore%3D3"))
    );
    for path in ["/", "/api/sessions", "/api/live"] {
        let detail = server.request("GET", path, &[nobody]).problem(401);
        assert!(detail.contains("/login") && detail.contains("Bearer"), "{detail}");
    }
    server.request("GET", "/api/sessions", &[nobody, html]).problem(401);
    let page = server.request("GET", "/login?to=%2Fs%2Fabc", &[nobody]);
    let text = String::from_utf8(page.body.clone()).unwrap();
    assert!(
        page.status == 200
            && text.contains("type=\"password\"")
            && text.contains("value=\"/s/abc\""),
        "{text}"
    );
    assert!(!text.contains("<script") && !text.contains("style="), "{text}");
    assert_eq!(
        page.header("referrer-policy"),
        Some("same-origin"),
        "else a browser does not say where the form stood"
    );
    assert_eq!(server.request("GET", "/assets/style.css", &[nobody]).status, 200);

    // From our own page only.
    for origin in ["", "null", "http://evil.example", "https://127.0.0.1"] {
        log_in(&server, PASSWORD, "/", origin).problem(403);
    }
    // A wrong password starts a delay in which even the right one is refused.
    let wrong = log_in(&server, "wrong", "/s/abc", &ours);
    assert_eq!(wrong.status, 401);
    assert!(String::from_utf8_lossy(&wrong.body).contains("Wrong password"));
    assert!(wrong.header("set-cookie").is_none());
    let soon = log_in(&server, PASSWORD, "/", &ours);
    assert_eq!(soon.status, 429);
    assert!(soon.header("retry-after").is_some() && soon.header("set-cookie").is_none());
    thread::sleep(Duration::from_millis(1100));

    let right = log_in(&server, PASSWORD, "//evil.example/", &ours);
    assert_eq!((right.status, right.header("location")), (303, Some("/evil.example/")));
    let cookie = right.header("set-cookie").unwrap();
    assert!(cookie.contains("; HttpOnly; SameSite=Strict; Path=/; Max-Age=604800"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    assert!(!cookie.contains(&server.token));
    for path in ["/", "/api/sessions"] {
        assert_eq!(
            server.request("GET", path, &[nobody, ("cookie", cookie)]).status,
            200,
            "{path}"
        );
    }
    // The server keeps the session: no other cookie value is accepted.
    let (name, value) = cookie.split_once('=').unwrap();
    let other = format!("{name}={}", "0".repeat(value.len()));
    server.request("GET", "/api/sessions", &[nobody, ("cookie", &other)]).problem(401);

    // Only the given host names and IP addresses are accepted.
    let port = server.port;
    for host in
        [format!("desk.example:{port}"), "desk.example".to_owned(), format!("192.0.2.9:{port}")]
    {
        assert_eq!(
            server.request("GET", "/api/sessions", &[("host", &host)]).status,
            200,
            "{host}"
        );
    }
    for host in [format!("evil.example:{port}"), "192.0.2.9:1".to_owned()] {
        assert!(
            server.request("GET", "/", &[("host", &host)]).problem(421).contains("--name"),
            "{host}"
        );
    }
    // The login accepts only a form, and a short one.
    let mut lines = vec![
        "POST /login HTTP/1.0".to_owned(),
        format!("host: 127.0.0.1:{port}"),
        format!("origin: {ours}"),
    ];
    assert!(server.send(&lines, b"").problem(415).contains("/login"));
    lines.push("content-type: application/x-www-form-urlencoded".to_owned());
    lines.push("content-length: 5000".to_owned());
    server.send(&lines, &[b'x'; 5000]).problem(413);

    // The warning on stderr explains the risk.
    let said = said.lock().unwrap().clone();
    for word in ["encrypted", "SSH tunnel", "TLS"] {
        assert!(said.contains(word), "{said}");
    }
}
