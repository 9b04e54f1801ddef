//! Logins of browsers: each has a cookie of its own, which expires and can be revoked. Throttled
//! passwords: nobody is refused because of somebody else's mistakes.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;

use crate::harness::{Machine, until};
use crate::test_server::{HttpResponse, Server, Socket};

const NOBODY: (&str, &str) = ("authorization", "");

/// Opens the URL that the server printed, like a browser, and returns its cookie.
fn log_in_by_token(server: &Server) -> String {
    let path = format!("/s/abc?before=3&token={}", server.token);
    let response = server.request("GET", &path, &[NOBODY]);
    assert_eq!((response.status, response.header("location")), (303, Some("/s/abc?before=3")));
    response.cookie("unspool-")
}

/// The status of a request with a cookie.
fn status(server: &Server, cookie: &str) -> u16 {
    server.request("GET", "/api/sessions", &[NOBODY, ("cookie", cookie)]).status
}

fn login_files(machine: &Machine) -> Vec<PathBuf> {
    let entries = fs::read_dir(machine.data("d").join("logins")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_browser_gets_a_login_instead_of_the_token() {
    let machine = Machine::new();
    let server = Server::begin(&machine, "d", &[]);
    let response = server.request("GET", &format!("/?token={}", server.token), &[NOBODY]);
    let set = response.header("set-cookie").unwrap();
    assert!(set.ends_with("; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000"), "{set}");
    assert!(!set.contains(&server.token), "{set}");
    let cookie = response.cookie("unspool-");
    assert_eq!(status(&server, &cookie), 200);
    // The token itself is no cookie, and the stored name of a login is none.
    let name = format!("unspool-{}", server.port);
    assert_eq!(status(&server, &format!("{name}={}", server.token)), 401);
    let files = login_files(&machine);
    assert_eq!(files.len(), 1);
    let hash = files[0].file_name().unwrap().to_str().unwrap();
    assert_eq!(status(&server, &format!("{name}={hash}")), 401);
    // Only the owner reads it, and it does not have the cookie.
    let value = cookie.split_once('=').unwrap().1;
    assert!(!hash.contains(value) && !fs::read_to_string(&files[0]).unwrap().contains(value));
    for (path, mode) in [(machine.data("d").join("logins"), 0o700), (files[0].clone(), 0o600)] {
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode, "{path:?}");
    }
    // Opening the URL again keeps the login.
    let path = format!("/?token={}", server.token);
    let again = server.request("GET", &path, &[NOBODY, ("cookie", &cookie)]);
    assert_eq!(again.cookie("unspool-"), cookie);

    // It outlives the server, until it expires.
    drop(server);
    let server = Server::begin(&machine, "d", &[]);
    let cookie = format!("unspool-{}={value}", server.port);
    assert_eq!(status(&server, &cookie), 200);
    fs::write(&files[0], "1").unwrap();
    assert_eq!(status(&server, &cookie), 401);
}

#[test]
fn a_browser_logs_out_and_only_that_one() {
    let machine = Machine::new();
    let server = Server::begin(&machine, "d", &[]);
    let (one, two) = (log_in_by_token(&server), log_in_by_token(&server));
    assert_ne!(one, two);
    let page = server.request("GET", "/logout", &[NOBODY, ("cookie", &one)]);
    let text = String::from_utf8(page.body.clone()).unwrap();
    assert!(page.status == 200 && text.contains("action=\"/logout\""), "{text}");
    assert_eq!(page.header("referrer-policy"), Some("same-origin"));
    // Another site cannot log it out.
    for origin in ["", "null", "http://evil.example"] {
        let foreign = [NOBODY, ("cookie", one.as_str()), ("origin", origin)];
        server.request("POST", "/logout", &foreign).problem(403);
    }
    assert_eq!(status(&server, &one), 200);
    let ours = format!("http://127.0.0.1:{}", server.port);
    let out = server.request("POST", "/logout", &[NOBODY, ("cookie", &one), ("origin", &ours)]);
    assert_eq!(out.status, 200);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!((status(&server, &one), status(&server, &two)), (401, 200));
}

#[test]
fn all_logins_are_revoked_from_the_command_line() {
    let machine = Machine::new();
    let server = Server::begin(&machine, "d", &[]);
    let cookies = [log_in_by_token(&server), log_in_by_token(&server)];
    let mut socket = Socket::open_with(&server, &format!("cookie: {}", cookies[0]));
    socket.send_text(br#"{"subscribe":"sessions"}"#);
    let mut program = Socket::open(&server);
    program.send_text(br#"{"read":true}"#);
    assert!(program.receive_text().unwrap().contains("ready"));

    let output = machine.run("d", &["serve", "--revoke-logins"], "");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("2 logins"), "{said}");
    for cookie in &cookies {
        assert_eq!(status(&server, cookie), 401);
    }
    // A stream that is open ends; that of a program goes on.
    while socket.receive_text().is_some() {}
    program.send_text(br#"{"number":1,"query":{"list":{"after":null,"limit":1}}}"#);
    assert!(program.receive_text().unwrap().contains("\"number\":1"));
    assert_eq!(server.get("/api/sessions").status, 200);
}

/// The address that a server gives to the browser, which is a script here.
fn opened_address(machine: &Machine) -> (Server, String) {
    let (bin, opened) = (machine.data("bin"), machine.data("opened"));
    fs::create_dir_all(&bin).unwrap();
    for name in ["xdg-open", "open"] {
        let mut script = fs::File::create(bin.join(name)).unwrap();
        writeln!(script, "#!/bin/sh\nprintf '%s' \"$*\" > {}", opened.display()).unwrap();
        fs::set_permissions(bin.join(name), PermissionsExt::from_mode(0o755)).unwrap();
    }
    let mut command = machine.command("d", &["serve", "--port", "0", "--open"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", bin.display())).stderr(Stdio::null());
    let server = Server::begin_with(command).0;
    let mut address = String::new();
    until("a browser", || {
        address = fs::read_to_string(&opened).unwrap_or_default();
        if address.is_empty() { Err(()) } else { Ok(()) }
    });
    (server, address)
}

#[test]
fn the_browser_is_opened_with_a_code_that_works_once() {
    let machine = Machine::new();
    let (server, address) = opened_address(&machine);
    assert!(!address.contains(&server.token) && address.contains("/?code="), "{address}");
    let path = address.strip_prefix(&format!("http://127.0.0.1:{}", server.port)).unwrap();
    assert_eq!(server.request("HEAD", path, &[NOBODY]).status, 401);
    let response = server.request("GET", path, &[NOBODY]);
    assert_eq!((response.status, response.header("location")), (303, Some("/")));
    let cookie = response.cookie("unspool-");
    assert_eq!(status(&server, &cookie), 200);
    // The same browser may load it again.
    let again = server.request("GET", path, &[NOBODY, ("cookie", &cookie)]);
    assert_eq!((again.status, again.cookie("unspool-")), (303, cookie.clone()));
    // Somebody else has read it in the list of processes: one of the two was not the browser.
    let detail = server.request("GET", path, &[NOBODY]).problem(401);
    assert!(detail.contains("logged out"), "{detail}");
    assert_eq!(status(&server, &cookie), 401);
    for other in ["/?code=", "/?code=0", &format!("/?code={}", server.token)] {
        server.request("GET", other, &[NOBODY]).problem(401);
    }
}

const PASSWORD: &str = "a long password";

fn remote_server(machine: &Machine, options: &[&str]) -> Server {
    machine.run("d", &["serve", "--set-password"], &format!("{PASSWORD}\n"));
    Server::begin(machine, "d", &[&["--name", "desk.example"], options].concat())
}

/// Sends a password, with headers.
fn try_password(server: &Server, password: &str, headers: &[(&str, &str)]) -> HttpResponse {
    let body = format!("password={}&to=/", password.replace(' ', "+"));
    let mut lines = vec![
        "POST /login HTTP/1.0".to_owned(),
        format!("host: 127.0.0.1:{}", server.port),
        format!("origin: http://127.0.0.1:{}", server.port),
        "content-type: application/x-www-form-urlencoded".to_owned(),
        format!("content-length: {}", body.len()),
    ];
    lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
    server.send(&lines, body.as_bytes())
}

/// Sends wrong passwords until the client has to wait: verification may take as long as the first
/// waits.
fn lock_out(server: &Server, headers: &[(&str, &str)]) {
    for _ in 0..10 {
        match try_password(server, "wrong", headers).status {
            401 => {}
            429 => return,
            other => panic!("{other}"),
        }
    }
    panic!("it never has to wait");
}

/// Opens the login page in a new browser and returns its mark.
fn new_browser(server: &Server) -> String {
    server.request("GET", "/login", &[NOBODY]).cookie("unspool-browser-")
}

#[test]
fn the_mistakes_of_one_browser_do_not_lock_out_another() {
    let machine = Machine::new();
    let server = remote_server(&machine, &[]);
    let (one, two) = (new_browser(&server), new_browser(&server));
    assert_ne!(one, two);
    lock_out(&server, &[("cookie", &one)]);
    assert_eq!(try_password(&server, PASSWORD, &[("cookie", &one)]).status, 429, "its own");
    // A program without cookies, too.
    lock_out(&server, &[]);
    assert_eq!(try_password(&server, PASSWORD, &[]).status, 429);
    let right = try_password(&server, PASSWORD, &[("cookie", &two)]);
    assert_eq!(right.status, 303);
    let login = right.cookie(&format!("unspool-{}", server.port));
    assert_eq!(status(&server, &login), 200);
    let trusted = right.cookie("unspool-browser-");
    // Many new browsers slow down the next new one, but not one that has logged in before.
    for _ in 0..8 {
        let mark = new_browser(&server);
        assert_eq!(try_password(&server, "wrong", &[("cookie", &mark)]).status, 401);
    }
    assert_eq!(try_password(&server, PASSWORD, &[("cookie", &trusted)]).status, 303);
    // A forged mark is none.
    let forged = trusted.replace("=old.", "=old.0");
    lock_out(&server, &[]);
    assert_eq!(try_password(&server, PASSWORD, &[("cookie", &forged)]).status, 429);
    // A new password ends the logins of the old one.
    machine.run("d", &["serve", "--set-password"], "another password\n");
    assert_eq!(status(&server, &login), 401);
}

#[test]
fn a_proxy_says_who_connects_only_if_it_is_trusted() {
    let machine = Machine::new();
    let from = |address| [("x-forwarded-for", address)];
    let server = remote_server(&machine, &["--trusted-proxy", "127.0.0.1"]);
    lock_out(&server, &from("192.0.2.1"));
    assert_eq!(try_password(&server, PASSWORD, &from("192.0.2.1")).status, 429);
    let forged = from("192.0.2.9, 192.0.2.1");
    assert_eq!(try_password(&server, PASSWORD, &forged).status, 429, "the client wrote the first");
    assert_eq!(try_password(&server, PASSWORD, &from("192.0.2.2")).status, 303);
    drop(server);
    let server = remote_server(&machine, &[]);
    lock_out(&server, &from("192.0.2.1"));
    assert_eq!(try_password(&server, PASSWORD, &from("192.0.2.2")).status, 429);
}
