//! The terminal application's remote backend: its responses equal those of the local archive,
//! writes are announced, it reconnects, and errors have a next step.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json, to_value};
use unspool_model::change::ChangeSet;
use unspool_model::change::Urgency;
use unspool_model::id::SessionId;
use unspool_model::part::Place;
use unspool_model::price::Prices;
use unspool_query::live::{Update, Updates};
use unspool_query::reader::{Query, Response, Settings, answer};
use unspool_query::request::Request;
use unspool_query::window::{Anchor, PartFilter, Position, Size};
use unspool_redact::Rules;
use unspool_server::{App, Auth, LoginStore};
use unspool_store::blocking::block_on;
use unspool_store::database::{Database, DatabaseView};
use unspool_store::store::{Store, Viewer};
use unspool_tui::backend::{Backend, BackendEvent, Credentials, RemoteBackend, RemoteError};
use unspool_tui::event::AppEvent;
use unspool_view::present::Item;

use crate::case::root;
use crate::harness::{Machine, lines, recorded};
use crate::test_server::{Server, Socket};

const LOG: &str = ".claude/projects/-home-dev-weather-app/log.jsonl";
const LOOP: &str = "claude-code/discovery-loop/log.jsonl";
/// The longest wait for anything, on any machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// A remote backend and its events.
struct Reader {
    backend: RemoteBackend,
    received: Receiver<AppEvent>,
    number: u64,
}

impl Reader {
    fn connect(address: &str, credentials: Credentials) -> Result<Reader, RemoteError> {
        let (sender, received) = channel();
        Ok(Reader {
            backend: RemoteBackend::connect(address, credentials, sender)?,
            received,
            number: 0,
        })
    }

    fn of(server: &Server) -> Reader {
        Reader::connect(&address(server), Credentials::default()).unwrap_or_else(|e| panic!("{e}"))
    }

    #[track_caller]
    fn next(&self) -> BackendEvent {
        match self.received.recv_timeout(DEADLINE).unwrap() {
            AppEvent::Backend(received) => received,
            other => panic!("{other:?}"),
        }
    }

    /// Sends a query and waits for its response, ignoring updates.
    #[track_caller]
    fn send_query(&mut self, query: Query) -> Response {
        self.number += 1;
        self.backend.send_query(self.number, query);
        self.answer()
    }

    #[track_caller]
    fn answer(&self) -> Response {
        loop {
            match self.next() {
                BackendEvent::Response(number, answer) if number == self.number => return answer,
                BackendEvent::Update(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

/// The address as the server prints it.
fn address(server: &Server) -> String {
    format!("http://127.0.0.1:{}/?token={}", server.port, server.token)
}

fn local(machine: &Machine) -> Server {
    let log = root().join("fixtures").join(LOOP);
    machine.ok("data", &["import", log.to_str().unwrap()]);
    Server::begin(machine, "data", &[])
}

const LIST: Query = Query::List { after: None, limit: 10 };

/// Every kind of query that the application sends for one session.
/// Findings are counted in the background: one side may have them before the other.
fn without_findings(mut response: Response) -> Response {
    match &mut response {
        Response::List { sessions, .. } => sessions.iter_mut().for_each(|row| row.findings = 0),
        Response::Session(Some(row)) => row.findings = 0,
        Response::Window(window) => window.session_row.findings = 0,
        _ => {}
    }
    response
}

fn queries(session: SessionId, archive: &DatabaseView, settings: &Settings) -> Vec<Query> {
    let whole = Size { parts: 2000, block: 2000, long: 4000 };
    let send_query = |anchor, filter, size| Query::Window { session, anchor, filter, size };
    let Response::Window(loaded) =
        block_on(answer(archive, settings, send_query(Anchor::End, None, whole)))
    else {
        panic!("{session} has no window")
    };
    let mut places: Vec<(Position, _)> = Vec::new();
    for turn in &loaded.view.turns {
        let at = |place: Place| Position { turn: turn.header.number, place };
        for item in &turn.items {
            match item {
                Item::Part(part) => places.push((at(part.place), part.id)),
                Item::Reasoning(block) => {
                    places.extend(block.parts.iter().map(|part| (at(part.place), part.id)));
                }
            }
        }
    }
    let mut queries = vec![
        Query::Session { id: session.to_string() },
        Query::Search { query: "the".to_owned(), session: Some(session), limit: 50 },
        send_query(Anchor::End, Some(PartFilter::Errors), whole),
    ];
    let (first, middle, last) = match &places[..] {
        [] => Default::default(),
        all => (all.first(), all.get(all.len() / 2), all.last()),
    };
    for parts in [3, 160] {
        let size = Size { parts, block: parts, long: 2 * parts as u64 };
        queries.push(send_query(Anchor::End, None, size));
        if let (Some((first, _)), Some((middle, _)), Some((last, _))) = (first, middle, last) {
            queries.push(send_query(Anchor::Around(*middle), None, size));
            queries.push(send_query(Anchor::Before(*middle), None, size));
            queries.push(send_query(Anchor::After(*middle), None, size));
            queries.push(send_query(Anchor::Between(*first, *middle), None, size));
            queries.push(send_query(Anchor::Between(*middle, *last), None, size));
        }
    }
    queries
}

#[test]
fn a_remote_reader_gets_what_a_local_one_gets() {
    let machine = Machine::new();
    machine.keep_turns_open();
    for agent in unspool_sources::agents::AGENTS.iter().map(|agent| agent.name) {
        let folder = root().join("fixtures").join(agent);
        machine.run("data", &["import", folder.to_str().unwrap()], "");
    }
    let server = Server::begin(&machine, "data", &[]);
    let archive = Database::open_to_read(&machine.data("data").join("unspool.db")).unwrap();
    let archive = archive.view(Viewer::Sole);
    let settings = Settings::new(Prices::with(BTreeMap::new()), Rules::standard());
    let mut reader = Reader::of(&server);
    assert_eq!(reader.backend.name(), Some(&*format!("127.0.0.1:{}", server.port)));

    let (mut compared, mut pictures) = (0, 0);
    let mut same = |query: Query| -> Response {
        let here = without_findings(block_on(answer(&archive, &settings, query.clone())));
        let there = without_findings(reader.send_query(query.clone()));
        compared += 1;
        // Images are not sent: no terminal shows them. Everything else is equal, also in its types.
        if format!("{here:?}").contains("preview: Some(") {
            pictures += 1;
        } else {
            assert_eq!(there, here, "{query:?}");
        }
        assert_eq!(to_value(&there).unwrap(), to_value(&here).unwrap(), "{query:?}");
        there
    };

    let all: Value = server.json("/api/sessions?limit=1000");
    let ids: Vec<SessionId> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|it| SessionId(it["id"].as_str().unwrap().parse().unwrap()))
        .collect();
    assert!(ids.len() > 50, "{}", ids.len());
    let Response::List { sessions, .. } = same(Query::List { after: None, limit: 500 }) else {
        panic!("no list")
    };
    assert!(sessions.len() > 40 && sessions.iter().all(|it| !it.sub_agent));
    assert!(matches!(
        same(Query::List { after: None, limit: 3 }),
        Response::List { more: true, .. }
    ));
    for query in ["the", "read \"weather\"", "nothing that anybody ever said"] {
        same(Query::Search { query: query.to_owned(), session: None, limit: 100 });
    }
    assert_eq!(same(Query::Session { id: "nobody".to_owned() }), Response::Session(None));
    for id in &ids {
        for query in queries(*id, &archive, &settings) {
            assert!(!matches!(same(query.clone()), Response::Failed(_)), "{query:?}");
        }
    }
    assert!(compared > 10 * ids.len() && pictures * 10 < compared, "{pictures} of {compared}");
}

#[test]
fn queries_are_bounded_by_the_server() {
    let machine = Machine::new();
    let server = local(&machine);
    let mut reader = Reader::of(&server);
    let Response::List { sessions, more } =
        reader.send_query(Query::List { after: None, limit: u64::MAX })
    else {
        panic!("no list")
    };
    assert!(sessions.len() == 1 && !more);
    let (id, huge) = (sessions[0].id, Size { parts: usize::MAX, block: 0, long: u64::MAX });
    let query = Query::Window { session: id, anchor: Anchor::End, filter: None, size: huge };
    assert!(matches!(reader.send_query(query), Response::Window(_)));
    // A query that the server would refuse by closing is not sent.
    let query = "x".repeat(70_000);
    let Response::Failed(what) =
        reader.send_query(Query::Search { query, session: None, limit: 1 })
    else {
        panic!("it was asked")
    };
    assert!(what.contains("shorten it"), "{what}");
    assert!(matches!(reader.send_query(LIST), Response::List { .. }), "it goes on");
    // Remote changes are refused.
    reader.backend.change(Request::Delete { session: id });
    match reader.next() {
        BackendEvent::ChangeDone(Err(what)) => {
            assert!(what.contains("run unspool there"), "{what}")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_write_is_announced_within_a_second() {
    let machine = Machine::new();
    let text = recorded(LOOP);
    let lines = lines(&text);
    let (begun, rest) = lines.split_at(lines.len() / 2);
    machine.write(LOG, &begun.concat());
    let server = Server::begin(&machine, "data", &[]);
    let mut reader = Reader::of(&server);
    let begun = Instant::now();
    let session = loop {
        match reader.send_query(LIST) {
            Response::List { sessions, .. } if !sessions.is_empty() => break sessions[0].id,
            other => assert!(begun.elapsed() < DEADLINE, "{other:?}"),
        }
    };
    let mut quickest = DEADLINE;
    let mut received = 0;
    for line in rest {
        machine.append(LOG, line);
        let appended = Instant::now();
        // Not every record changes the session.
        while let Ok(event) = reader.received.recv_timeout(Duration::from_secs(1)) {
            if let AppEvent::Backend(BackendEvent::Update(Update::Written(write))) = event {
                assert_eq!((write.session, write.urgency), (session, Urgency::State));
                quickest = quickest.min(appended.elapsed());
                received += 1;
                break;
            }
        }
    }
    assert!(
        received > rest.len() / 2 && quickest < Duration::from_secs(1),
        "{received}, {quickest:?}"
    );
}

#[test]
fn a_reader_reconnects_to_a_restarted_server() {
    let machine = Machine::new();
    let server = local(&machine);
    let mut reader = Reader::of(&server);
    let before = reader.send_query(LIST);
    let port = server.port.to_string();
    // Killed, without a close frame.
    drop(server);
    let reason = loop {
        match reader.next() {
            BackendEvent::Lost(reason) => break reason,
            BackendEvent::Update(_) => {}
            other => panic!("{other:?}"),
        }
    };
    assert!(!reason.is_empty());
    // Queried while disconnected.
    reader.number = 77;
    reader.backend.send_query(77, LIST);
    let mut command = machine.command("data", &["serve", "--port", &port]);
    command.stderr(Stdio::null());
    let (_server, _) = Server::begin_with(command);
    assert!(matches!(reader.next(), BackendEvent::Connected), "told once that it is lost");
    assert_eq!(reader.answer(), before);
    assert_eq!(reader.send_query(LIST), before);
}

#[track_caller]
fn refused(address: &str, credentials: Credentials) -> String {
    Reader::connect(address, credentials).err().unwrap_or_else(|| panic!("{address}")).to_string()
}

#[test]
fn an_unauthorised_reader_gets_a_next_step() {
    let machine = Machine::new();
    let server = local(&machine);
    let plain = format!("http://127.0.0.1:{}", server.port);
    let token =
        |token: &str| Credentials { token: Some(token.to_owned()), ..Credentials::default() };
    let password =
        |it: &str| Credentials { password: Some(it.to_owned()), ..Credentials::default() };

    let said = refused(&plain, Credentials::default());
    assert!(said.contains("UNSPOOL_TOKEN") && said.contains("UNSPOOL_PASSWORD"), "{said}");
    for (address, credentials) in [
        (format!("{plain}/?token=wrong"), Credentials::default()),
        (plain.clone(), token("wrong")),
        (plain.clone(), token("wr\nong")),
        // The token in the address overrides the credentials.
        (format!("{plain}/?token=wrong"), token(&server.token)),
    ] {
        let said = refused(&address, credentials);
        assert!(said.contains("rejects this token"), "{said}");
    }
    let said = refused(&plain, password("correct horse"));
    assert!(said.contains("has no password"), "{said}");
    let mut reader =
        Reader::connect(&plain, token(&server.token)).unwrap_or_else(|e| panic!("{e}"));
    assert!(matches!(reader.send_query(LIST), Response::List { .. }));

    // A server with a password.
    machine.run("far", &["serve", "--set-password"], "correct horse battery\n");
    let mut command = machine.command("far", &["serve", "--port", "0", "--listen", "0.0.0.0"]);
    command.stderr(Stdio::null());
    let (far, _) = Server::begin_with(command);
    let plain = format!("http://127.0.0.1:{}", far.port);
    let said = refused(&plain, Credentials::default());
    assert!(said.contains("UNSPOOL_PASSWORD"), "{said}");
    // Log in, also after a wrong token.
    let credentials =
        Credentials { token: Some("wrong".to_owned()), ..password("correct horse battery") };
    let mut reader = Reader::connect(&plain, credentials).unwrap_or_else(|e| panic!("{e}"));
    assert!(matches!(reader.send_query(LIST), Response::List { .. }));
    let said = refused(&plain, password("wrong"));
    assert!(said.contains("rejects this password"), "{said}");
    let said = refused(&plain, password("correct horse battery"));
    assert!(said.contains("wait") && said.contains(" s "), "{said}");
    drop(far);
    let said = refused(&plain, Credentials::default());
    assert!(said.contains("cannot connect to") && said.contains("unspool serve"), "{said}");
}

#[test]
fn other_servers_are_reported() {
    for says in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi",
        "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n",
        "SSH-2.0-OpenSSH_9.6\r\n\r\n",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(says.as_bytes());
        });
        let said = refused(&address, Credentials::default());
        assert!(
            said.contains("no unspool server") && said.contains("correct the address"),
            "{said}"
        );
    }
}

#[test]
fn invalid_queries_are_refused() {
    let machine = Machine::new();
    let server = local(&machine);
    let open = || {
        let mut socket = Socket::open(&server);
        socket.send_text(br#"{"read":true}"#);
        let ready: Value = serde_json::from_str(&socket.receive_text().unwrap()).unwrap();
        assert_eq!(ready, json!({ "type": "ready", "version": env!("CARGO_PKG_VERSION") }));
        socket
    };
    // Skip updates in between.
    let receive_text = |socket: &mut Socket| loop {
        let received: Value = serde_json::from_str(&socket.receive_text()?).unwrap();
        if received["type"] != "lagged" && received["type"] != "written" {
            return Some(received);
        }
    };
    let mut socket = open();
    // An unknown query gets a response: the client may be of another version.
    socket.send_text(br#"{"number":3,"query":{"sing":{}}}"#);
    let received = receive_text(&mut socket).unwrap();
    assert_eq!((&received["type"], &received["number"]), (&json!("response"), &json!(3)));
    assert!(
        received["response"]["failed"].as_str().unwrap().contains("same version"),
        "{received}"
    );
    socket.send_text(br#"{"number":4,"query":{"list":{"after":null,"limit":1}}}"#);
    assert_eq!(
        receive_text(&mut socket).unwrap()["response"]["list"]["sessions"][0]["agent"],
        "claude-code"
    );
    // Without an id there is nothing to respond to.
    for nonsense in ["{", "[]", r#"{"query":{}}"#, r#"{"number":"x","query":{}}"#] {
        let mut socket = open();
        socket.send_text(nonsense.as_bytes());
        let received = receive_text(&mut socket).unwrap();
        assert_eq!(received["type"], "error", "{nonsense}: {received}");
        assert!(received["detail"].as_str().unwrap().contains("query"), "{received}");
        assert_eq!(receive_text(&mut socket), None, "{nonsense}");
    }
    // Larger than 64 KiB: the server closes the connection.
    let query = "x".repeat(70_000);
    let query = json!({ "number": 1, "query": { "search": { "query": query } } });
    let mut socket = open();
    socket.send_text(query.to_string().as_bytes());
    assert_eq!(receive_text(&mut socket), None);
    // More queries than the server's queue holds: all are answered, in order.
    let mut socket = open();
    for number in 0..100 {
        let query = json!({ "number": number, "query": { "session": { "id": "nobody" } } });
        socket.send_text(query.to_string().as_bytes());
    }
    for number in 0..100 {
        assert_eq!(receive_text(&mut socket).unwrap()["number"], number);
    }
    // A client that is no reader must subscribe.
    for nothing in [r#"{"read":false}"#, "{}"] {
        let mut socket = Socket::open(&server);
        socket.send_text(nothing.as_bytes());
        let received = socket.receive_text().unwrap();
        assert!(
            received.contains("\"type\":\"error\"") && received.contains("subscribe"),
            "{received}"
        );
    }
}

#[test]
fn a_slow_reader_learns_that_it_lagged() {
    // R-X-14: a slow reader costs bounded memory, and no response is lost.
    let machine = Machine::new();
    let log = root().join("fixtures").join(LOOP);
    machine.ok("data", &["import", log.to_str().unwrap()]);
    let archive = Database::open_to_read(&machine.data("data").join("unspool.db")).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let at = listener.local_addr().unwrap();
    let logins = LoginStore::in_data_folder(&machine.data("data"));
    let auth = Auth::new("token".to_owned(), at.port(), logins);
    let updates = Updates::default();
    let prices = Prices::with(BTreeMap::new());
    let app = App::new(archive, Settings::new(prices, Rules::standard()), auth, updates.clone());
    runtime.spawn(unspool_server::serve(Arc::clone(&app), listener, std::future::pending()));
    let stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut socket = Socket::connect_over(stream, at.port(), "token");
    let receive_text = |socket: &mut Socket| -> Value {
        serde_json::from_str(&socket.receive_text().unwrap()).unwrap()
    };
    socket.send_text(br#"{"read":true}"#);
    assert_eq!(receive_text(&mut socket)["type"], "ready");
    socket.send_text(br#"{"number":0,"query":{"list":{"after":null,"limit":1}}}"#);
    let id = receive_text(&mut socket)["response"]["list"]["sessions"][0]["id"].take();
    let session = SessionId(id.as_str().unwrap().parse().unwrap());
    let tell = || {
        updates.publish(Update::from(ChangeSet {
            session,
            agent: String::new(),
            agent_session_id: String::new(),
            from_seq: 0,
            seq: 1,
            delta: None,
        }));
    };
    let written = json!({ "type": "written", "session": id, "urgency": "state" });
    tell();
    assert_eq!(receive_text(&mut socket), written, "who listens is told at once");

    // Request more than a connection buffers, and read nothing while many writes are published.
    let size = json!({ "parts": 160, "block": 160, "long": 320 });
    let window = json!({ "session": id, "anchor": "end", "filter": null, "size": size });
    let send_query = |socket: &mut Socket, number: usize| {
        let query = json!({ "number": number, "query": { "window": window } });
        socket.send_text(query.to_string().as_bytes());
    };
    send_query(&mut socket, 1);
    let length = receive_text(&mut socket).to_string().len();
    let query_count = 2 + 24 * 1024 * 1024 / length;
    (2..query_count).for_each(|number| send_query(&mut socket, number));
    (0..50_000).for_each(|_| tell());
    let (mut answered, mut missed, mut others) = (2, 0, 0);
    while answered < query_count || missed == 0 {
        let received = receive_text(&mut socket);
        match received["type"].as_str().unwrap() {
            "response" => {
                assert_eq!(received["number"], answered, "in their order");
                assert_eq!(received["response"]["window"]["session_row"]["id"], id);
                answered += 1;
            }
            "lagged" => missed += 1,
            "written" => others += 1,
            other => panic!("{other}"),
        }
    }
    assert!(missed + others < 1000, "{missed}, {others}");
    tell();
    while receive_text(&mut socket) != written {}
}
