//! A running `unspool serve` with a raw HTTP and WebSocket client, which can also send requests
//! that no regular client would.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::Machine;

pub struct Server {
    child: Child,
    pub port: u16,
    pub token: String,
}

pub struct HttpResponse {
    pub status: u16,
    head: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpResponse {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers(name).next()
    }

    /// All headers with this name.
    pub fn headers(&self, name: &str) -> impl Iterator<Item = &str> {
        let found = self.head.iter().filter(move |(found, _)| found.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The cookie whose name begins so, as a browser sends it back: name and value.
    #[track_caller]
    pub fn cookie(&self, name: &str) -> String {
        let mut set = self.headers("set-cookie").filter(|cookie| cookie.starts_with(name));
        let cookie = set.next().unwrap_or_else(|| panic!("no cookie {name}"));
        cookie.split(';').next().unwrap().to_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The detail of a problem response with this status (`application/problem+json`).
    #[track_caller]
    pub fn problem(&self, status: u16) -> String {
        let text = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, status, "{text}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{text}");
        let found = self.json();
        assert_eq!(found["status"], status);
        found["detail"].as_str().unwrap().to_owned()
    }

    /// The next page, from the Link header.
    pub fn next(&self) -> Option<String> {
        let link = self.header("link")?;
        let (address, kind) = link.split_once(">; rel=").unwrap();
        assert_eq!(kind, "\"next\"");
        Some(address.strip_prefix('<').unwrap().to_owned())
    }
}

impl Server {
    pub fn begin(machine: &Machine, data: &str, options: &[&str]) -> Server {
        let mut command = machine.command(data, &["serve", "--port", "0"]);
        command.args(options).stderr(Stdio::null());
        Server::begin_with(command).0
    }

    /// Starts it and collects its stderr.
    pub fn begin_with(mut command: Command) -> (Server, Arc<Mutex<String>>) {
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        if let Some(stderr) = child.stderr.take() {
            let said = said.clone();
            thread::spawn(move || {
                for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                    said.lock().unwrap().push_str(&line);
                }
            });
        }
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim();
        let (origin, token) = address.split_once("/?token=").unwrap_or_else(|| panic!("{address}"));
        let port = origin.rsplit(':').next().unwrap().parse().unwrap();
        (Server { child, port, token: token.to_owned() }, said)
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// True if the process ends by itself in this time.
    pub fn ends_within(&mut self, limit: Duration) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < limit {
            if self.child.try_wait().unwrap().is_some() {
                return true;
            }
            thread::sleep(Duration::from_millis(50));
        }
        false
    }

    /// The exit code of the process, which ends by itself in this time.
    #[track_caller]
    pub fn exit_code(&mut self, limit: Duration) -> Option<i32> {
        assert!(self.ends_within(limit), "it still runs");
        self.child.wait().unwrap().code()
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Sends header lines and a body, and reads until the server closes the connection.
    #[track_caller]
    pub fn send(&self, lines: &[String], body: &[u8]) -> HttpResponse {
        let mut stream = self.connect();
        let head = format!("{}\r\n\r\n", lines.join("\r\n"));
        // It may respond and close before it has read everything.
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(body);
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text);
        response(&text)
    }

    /// An HTTP request with the token, unless the headers override it.
    #[track_caller]
    pub fn request(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> HttpResponse {
        let host = format!("127.0.0.1:{}", self.port);
        let token = format!("Bearer {}", self.token);
        let mut lines = vec![format!("{method} {path} HTTP/1.0")];
        let usual = [("host", host.as_str()), ("authorization", token.as_str())];
        let found = |name: &str| headers.iter().any(|(header_name, _)| *header_name == name);
        let usual = usual.iter().filter(|(name, _)| !found(name));
        let all = usual.chain(headers).filter(|(_, value)| !value.is_empty());
        lines.extend(all.map(|(name, value)| format!("{name}: {value}")));
        self.send(&lines, b"")
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> HttpResponse {
        self.request("GET", path, &[])
    }

    /// Like `get`, for a server that may end at any moment. None if it ended before it answered.
    pub fn get_unless_ended(&self, path: &str) -> Option<HttpResponse> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let token = &self.token;
        let head = format!(
            "GET {path} HTTP/1.0\r\nhost: 127.0.0.1:{}\r\nauthorization: Bearer {token}\r\n\r\n",
            self.port
        );
        stream.write_all(head.as_bytes()).ok()?;
        let mut text = Vec::new();
        stream.read_to_end(&mut text).ok()?;
        if text.is_empty() { None } else { Some(response(&text)) }
    }

    #[track_caller]
    pub fn json(&self, path: &str) -> Value {
        let response = self.get(path);
        assert_eq!(response.status, 200, "{path}: {}", String::from_utf8_lossy(&response.body));
        response.json()
    }
}

/// A socket at `/api/live`.
pub struct Socket(TcpStream);

impl Socket {
    /// Connects with the token.
    pub fn open(server: &Server) -> Socket {
        Socket::connect_over(server.connect(), server.port, &server.token)
    }

    /// Connects with this header instead of the token.
    pub fn open_with(server: &Server, header: &str) -> Socket {
        Socket::upgrade(server.connect(), server.port, header)
    }

    /// Does the WebSocket handshake over an open stream.
    pub fn connect_over(stream: TcpStream, port: u16, token: &str) -> Socket {
        Socket::upgrade(stream, port, &format!("authorization: Bearer {token}"))
    }

    fn upgrade(mut stream: TcpStream, port: u16, header: &str) -> Socket {
        write!(
            stream,
            "GET /api/live HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n{header}\r\n\
             connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        .unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
        Socket(stream)
    }

    /// Sends a text frame with a zero mask. Ignores errors: the server may close in the middle.
    pub fn send_text(&mut self, text: &[u8]) {
        let mut frame = vec![0x81];
        match text.len() {
            short @ 0..126 => frame.push(0x80 | short as u8),
            length => {
                frame.push(0x80 | 127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend(text);
        let _ = self.0.write_all(&frame);
    }

    /// The next text frame. `None` if the connection was closed.
    pub fn receive_text(&mut self) -> Option<String> {
        loop {
            let mut head = [0; 2];
            self.0.read_exact(&mut head).ok()?;
            let length = match head[1] & 0x7f {
                126 => u64::from(u16::from_be_bytes(self.bytes()?)),
                127 => u64::from_be_bytes(self.bytes()?),
                short => u64::from(short),
            };
            let mut text = vec![0; length as usize];
            self.0.read_exact(&mut text).ok()?;
            match head[0] & 0x0f {
                1 => return Some(String::from_utf8(text).unwrap()),
                8 => return None,
                _ => {}
            }
        }
    }

    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes).ok()?;
        Some(bytes)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn response(text: &[u8]) -> HttpResponse {
    let end = text.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no answer: {}", String::from_utf8_lossy(text)));
    let head = String::from_utf8(text[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let head = lines.filter_map(|line| line.split_once(": "));
    let head = head.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    HttpResponse { status, head, body: text[end + 4..].to_vec() }
}
