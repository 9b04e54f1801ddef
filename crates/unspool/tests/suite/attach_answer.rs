//! Questions of an OpenCode server that is followed: answered from here, or in OpenCode first. The
//! server plays recorded events, and takes answers as OpenCode 1.18 does.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command as Process;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use unspool_live::client::{Attached, attach, list};
use unspool_live::host::folder::ChatFolders;
use unspool_live::protocol::{
    ClientMessage, Command, FieldValue, HostMessage, Outcome, RequestedInput, UserAnswer,
};

use crate::harness::{Machine, WatchProcess, recorded, until};

/// Longer than an answer is refused because the question has just come.
const READING: Duration = Duration::from_millis(200);

#[derive(Default)]
struct Played {
    /// The connection of the events.
    stream: Option<TcpStream>,
    /// What is still to be played.
    rest: Vec<String>,
    /// Questions that can be answered.
    open: Vec<String>,
    /// Paths and bodies of what was posted.
    posted: Vec<(String, Value)>,
    /// What `GET /permission` lists.
    listed: Value,
}

#[derive(Clone)]
struct Server {
    url: String,
    played: Arc<Mutex<Played>>,
}

impl Server {
    /// A server that plays a recording up to its first question.
    fn start(case: &str, listed: Value) -> Server {
        let text = String::from_utf8(recorded(&format!("opencode/{case}/stream.sse"))).unwrap();
        let rest = text.split_inclusive("\n\n").map(str::to_owned).collect();
        let played = Played { rest, listed, ..Played::default() };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = Server { url, played: Arc::new(Mutex::new(played)) };
        let shared = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = shared.clone();
                thread::spawn(move || server.serve(stream));
            }
        });
        server
    }

    fn serve(&self, mut stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut head = String::new();
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or_default() <= 2 {
                break;
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            head.push_str(&line);
        }
        let mut words = head.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if path == "/event" {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
            stream.write_all(head.as_bytes()).unwrap();
            self.played.lock().unwrap().stream = Some(stream);
            return self.play_to_question();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let mut played = self.played.lock().unwrap();
        let (status, text) = match (method, path) {
            ("GET", "/permission") => (200, played.listed.to_string()),
            ("POST", path) => {
                let id = path.split('/').nth(2).unwrap().to_owned();
                match played.open.iter().position(|open| *open == id) {
                    Some(at) => {
                        played.open.remove(at);
                        let body = serde_json::from_slice(&body).unwrap();
                        played.posted.push((path.to_owned(), body));
                        (200, "true".to_owned())
                    }
                    None => (404, "{}".to_owned()),
                }
            }
            _ => (404, "[]".to_owned()),
        };
        drop(played);
        let length = text.len();
        let said = format!(
            "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
        );
        let _ = stream.write_all(said.as_bytes());
    }

    /// Plays events up to the next question, or to the end.
    fn play_to_question(&self) {
        let mut played = self.played.lock().unwrap();
        while !played.rest.is_empty() {
            let event = played.rest.remove(0);
            played.stream.as_mut().unwrap().write_all(event.as_bytes()).unwrap();
            if event.contains("\"question.asked\"") || event.contains("\"permission.asked\"") {
                let data = event.trim().strip_prefix("data: ").unwrap();
                let event: Value = serde_json::from_str(data).unwrap();
                let id = event["properties"]["id"].as_str().unwrap().to_owned();
                played.open.push(id);
                return;
            }
        }
    }

    fn posted(&self) -> Vec<(String, Value)> {
        self.played.lock().unwrap().posted.clone()
    }
}

struct Stage {
    machine: Machine,
    runtime: Runtime,
    _recorder: WatchProcess,
}

impl Stage {
    fn follow(server: &Server) -> Stage {
        let machine = Machine::new();
        let mut command: Process =
            machine.command("data", &["sync", "--watch", "--attach", &server.url]);
        command.stdin(std::process::Stdio::null());
        let _recorder = WatchProcess::begin(command);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Stage { machine, runtime: runtime.unwrap(), _recorder }
    }

    fn folders(&self) -> ChatFolders {
        let data = self.machine.data("data");
        let (chats, captures) = (data.join("chats"), data.join("streams"));
        ChatFolders { chats, captures, processes: data.join("processes") }
    }

    #[track_caller]
    fn waits(&self, count: usize) {
        until("the open questions", || match list(&self.folders()) {
            chats if chats.len() == count => Ok(()),
            chats => Err(chats),
        });
    }

    fn attach(&self) -> Attached {
        let folder = self.folders().all().pop().unwrap();
        self.runtime.block_on(attach(&folder)).unwrap()
    }

    fn answer(&self, attached: &mut Attached, answer: UserAnswer) -> Outcome {
        thread::sleep(READING);
        let command = Command::Answer { question: "0".to_owned(), answer };
        let message = ClientMessage { number: 1, by: "terminal".to_owned(), command };
        self.runtime.block_on(async {
            attached.commands.send(message).await.unwrap();
            loop {
                match attached.messages.recv().await.unwrap() {
                    HostMessage::Done { outcome, .. } => return outcome,
                    HostMessage::Changed(_) | HostMessage::Hello { .. } => {}
                }
            }
        })
    }
}

fn form(answers: &[(&str, &[&str])]) -> UserAnswer {
    let value = |chosen: &[&str]| FieldValue {
        chosen: chosen.iter().map(|one| (*one).to_owned()).collect(),
        own_words: None,
    };
    let fields = answers.iter().map(|(name, chosen)| ((*name).to_owned(), value(chosen)));
    UserAnswer::Form(fields.collect())
}

// R-003-49
#[test]
fn a_question_of_opencode_is_answered_from_here() {
    let server = Server::start("question-answered-and-dismissed", json!([]));
    let stage = Stage::follow(&server);
    stage.waits(1);
    let mut attached = stage.attach();
    let question = attached.state.questions[0].clone();
    assert!(attached.state.answers_only);
    let RequestedInput::Form(fields) = &question.kind else { panic!("{question:?}") };
    let chosen: Vec<(String, String)> =
        fields.iter().map(|field| (field.name.clone(), field.choices[0].value.clone())).collect();
    let given: Vec<(&str, Vec<&str>)> =
        chosen.iter().map(|(name, value)| (name.as_str(), vec![value.as_str()])).collect();
    let given: Vec<(&str, &[&str])> =
        given.iter().map(|(name, values)| (*name, values.as_slice())).collect();
    assert_eq!(stage.answer(&mut attached, form(&given)), Outcome::Accepted);
    let (path, body) = server.posted().remove(0);
    assert!(path.starts_with("/question/que_") && path.ends_with("/reply"), "{path}");
    let expected: Vec<Value> = chosen.iter().map(|(_, value)| json!([value])).collect();
    assert_eq!(body, json!({"answers": expected}));
    // The session of the archive is the one that it is about.
    until("its session in the archive", || {
        let sessions = stage.machine.sessions("data").unwrap_or_default();
        let is_it = |one: &Value| one["session"]["agent_session_id"] == question.session.as_str();
        if sessions.iter().any(is_it) { Ok(()) } else { Err(sessions) }
    });
    stage.waits(0);
}

/// OpenCode's own dialog was quicker: the question goes, and a late answer is refused.
#[test]
fn an_answer_in_opencode_takes_the_question_away() {
    let server = Server::start("question-answered-and-dismissed", json!([]));
    let stage = Stage::follow(&server);
    stage.waits(1);
    let mut attached = stage.attach();
    // Answered there, but its event has not come yet.
    server.played.lock().unwrap().open.clear();
    let outcome = stage.answer(&mut attached, UserAnswer::Decline);
    let Outcome::Refused(why) = outcome else { panic!("{outcome:?}") };
    assert!(why.contains("answered already"), "{why}");
    server.play_to_question();
    until("the next question", || match list(&stage.folders()) {
        chats if chats.len() == 1 && chats[0].state.questions[0] != attached.state.questions[0] => {
            Ok(())
        }
        chats => Err(chats),
    });
    assert!(server.posted().is_empty());
}

/// What was asked before we came is in the server's list.
#[test]
fn a_permission_from_before_is_found() {
    let listed = json!([{"id": "per_9", "sessionID": "ses_9", "permission": "bash",
        "patterns": ["./deploy.sh"], "metadata": {"command": "./deploy.sh"}, "always": [],
        "tool": {"messageID": "msg_9", "callID": "call_9"}}]);
    let server = Server::start("discovery-loop", listed);
    server.played.lock().unwrap().open.push("per_9".to_owned());
    let stage = Stage::follow(&server);
    stage.waits(1);
    let mut attached = stage.attach();
    assert_eq!(attached.state.questions[0].text, "Allow `./deploy.sh`?");
    let outcome = stage.answer(&mut attached, UserAnswer::Option("once".to_owned()));
    assert_eq!(outcome, Outcome::Accepted);
    let expected = ("/permission/per_9/reply".to_owned(), json!({"reply": "once"}));
    assert_eq!(server.posted(), [expected]);
}
