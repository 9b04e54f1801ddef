//! Frames: a client that folds them by their documented rules ends up with what is stored.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use unspool_model::assemble::Assembler;
use unspool_model::change::{Change, Delta, merged};
use unspool_model::document::{BodyDocument, PartDocument};
use unspool_model::event::Event;
use unspool_model::id::SessionId;
use unspool_model::part::Body;
use unspool_model::provenance::Feed;
use unspool_model::session::Transcript;
use unspool_model::transcript::TranscriptBuilder;
use unspool_server::frames_encoder::FramesEncoder;

use crate::by_source::{SOURCES, by_source};
use crate::harness::{Machine, lines, recorded, until};
use crate::laws::{SessionEvents, session_events};
use crate::test_server::{Server, Socket};

/// A client written from the documentation alone.
#[derive(Default)]
struct Client {
    seq: u64,
    messages: Vec<Message>,
    /// How often a channel and a reply were started.
    channels: usize,
    starts: usize,
}

struct Message {
    id: String,
    role: String,
    parts: Vec<(String, Value)>,
    ended: bool,
}

impl Client {
    /// Applies a frame. Fails if one is missing before it.
    fn take(&mut self, frame: &Value) -> Result<(), String> {
        let seq = frame["seq"].as_u64().unwrap();
        if seq <= self.seq {
            return Ok(());
        }
        if seq != self.seq + 1 {
            return Err(format!("{} is followed by {seq}", self.seq));
        }
        self.seq = seq;
        let text = |field: &str| frame[field].as_str().unwrap_or_default().to_owned();
        let id = text("message");
        match frame["type"].as_str().unwrap() {
            "channel.start" => {
                self.channels += 1;
                self.messages.clear();
            }
            "message.start" => {
                self.starts += usize::from(frame["role"] == "assistant");
                self.start(id, text("role"), &text("replaces"));
            }
            "message.delta" => {
                let (kind, part) = (text("kind"), text("part"));
                let held = self.part(&id, &part);
                match kind.as_str() {
                    "tool-input" => add(&mut held["input_text"], &text("text")),
                    "tool-output" => add(&mut held["output"], &text("text")),
                    "text" | "thinking" => {
                        held["kind"] = if kind == "text" { "text" } else { "reasoning" }.into();
                        add(&mut held["text"], &text("text"));
                    }
                    _ => *held = frame["data"].clone(),
                }
            }
            "message.tool_call" => {
                let held = self.part(&id, &text("part"));
                held["kind"] = "tool".into();
                held["call_id"] = frame["tool_call_id"].clone();
                for field in ["name", "input", "state"] {
                    held[field] = frame[field].clone();
                }
            }
            "message.tool_result" => {
                let held = self.part(&id, &text("part"));
                assert_eq!(held["kind"], "tool", "a result stands behind its call");
                assert_eq!(held["call_id"], frame["tool_call_id"], "of the same id");
                assert_eq!(frame["is_error"], frame["state"] != "completed");
                for field in ["state", "output"] {
                    held[field] = frame[field].clone();
                }
            }
            "message.end" => {
                let at = self.messages.iter().position(|held| held.id == id).unwrap();
                assert!(!self.messages[at].ended, "{id} ends once");
                self.messages[at].ended = true;
            }
            other => panic!("{other}"),
        }
        Ok(())
    }

    fn start(&mut self, id: String, role: String, replaces: &str) {
        let new = Message { id, role, parts: Vec::new(), ended: false };
        let existing = self.messages.iter().position(|held| held.id == new.id);
        let replaced = self.messages.iter().position(|held| held.id == replaces);
        match (existing, replaced) {
            (Some(at), _) => self.messages[at] = new,
            (None, Some(at)) => self.messages[at] = new,
            (None, None) => self.messages.push(new),
        }
    }

    fn part(&mut self, message: &str, part: &str) -> &mut Value {
        let held = self.messages.iter_mut().find(|held| held.id == message).unwrap();
        assert!(!held.ended, "nothing is added to what has ended");
        let at = held.parts.iter().position(|(id, _)| id == part).unwrap_or_else(|| {
            held.parts.push((part.to_owned(), json!({})));
            held.parts.len() - 1
        });
        &mut held.parts[at].1
    }

    fn written(&self) -> Vec<Value> {
        let written = self.messages.iter().map(|message| {
            let parts: Vec<Value> = message.parts.iter().map(|(_, part)| essence(part)).collect();
            json!({ "role": message.role, "parts": parts, "ended": message.ended })
        });
        written.collect()
    }
}

fn add(field: &mut Value, text: &str) {
    *field = format!("{}{text}", field.as_str().unwrap_or_default()).into();
}

/// The fields of a part that a client must have.
fn essence(part: &Value) -> Value {
    match part["kind"].as_str().unwrap() {
        "text" | "reasoning" => json!([part["kind"], part["text"]]),
        "tool" => json!(["tool", part["name"], part["input"], part["state"], part["output"]]),
        _ => {
            let mut part = part.clone();
            let fields = part.as_object_mut().unwrap();
            for name in ["id", "step", "started_at", "ended_at"] {
                fields.remove(name);
            }
            part
        }
    }
}

/// The stored transcript in the client's form.
fn stored(transcript: &Transcript) -> Vec<Value> {
    let agent = &transcript.session.agent;
    let mut messages = Vec::new();
    for turn in &transcript.turns {
        let user = turn.user.iter().map(|body| BodyDocument { agent, body });
        let user: Vec<Value> =
            user.map(|body| essence(&serde_json::to_value(body).unwrap())).collect();
        if !user.is_empty() {
            messages.push(json!({ "role": "user", "parts": user, "ended": true }));
        }
        let parts = PartDocument::all(agent, turn, &turn.parts);
        let parts: Vec<Value> =
            parts.map(|part| essence(&serde_json::to_value(part).unwrap())).collect();
        let ended = turn.state.name() != "running";
        // A running reply starts with its first part.
        if ended || !parts.is_empty() {
            messages.push(json!({ "role": "assistant", "parts": parts, "ended": ended }));
        }
    }
    messages
}

#[track_caller]
fn assert_same(whose: &str, client: &Client, transcript: &Transcript) {
    // A preamble whose parts another feed has placed in their turns is an empty message.
    let is_blank =
        |message: &Value| message["role"] == "assistant" && message["parts"] == json!([]);
    let without_preamble = |mut messages: Vec<Value>| {
        let skipped = usize::from(messages.first().is_some_and(is_blank));
        messages.split_off(skipped)
    };
    let session_events = without_preamble(client.written());
    let stored = without_preamble(stored(transcript));
    for (at, (session_events, stored)) in session_events.iter().zip(&stored).enumerate() {
        assert_eq!(session_events, stored, "{whose}: message {at}");
    }
    assert_eq!(session_events.len(), stored.len(), "{whose}");
}

/// The changes of each event.
fn changes(session_events: &SessionEvents, events: &[Event]) -> Vec<Vec<Change>> {
    let mut assembler =
        Assembler::new(SessionId::of(session_events.agent, &session_events.session));
    events.iter().map(|event| assembler.apply(event.clone())).collect()
}

/// Applies changes and returns them as the recorder publishes them.
fn delta(builder: &mut TranscriptBuilder, changes: Vec<Change>) -> Delta {
    let mut delta = Delta::default();
    for change in changes {
        delta.push(change.clone(), builder);
        builder.apply(change);
    }
    delta
}

fn empty(session_events: &SessionEvents) -> TranscriptBuilder {
    TranscriptBuilder::new(session_events.agent, &session_events.session)
}

/// Streams changes in batches of this size to a client connected from the start, and to others that
/// connect later.
fn stream(whose: &str, session_events: &SessionEvents, events: &[Event], size: usize) -> Client {
    let mut builder = empty(session_events);
    let mut channel = FramesEncoder::new(builder.session().clone(), Vec::new());
    let mut client = Client::default();
    let take = |client: &mut Client, frames: Vec<Value>| {
        frames.iter().for_each(|frame| client.take(frame).unwrap());
    };
    take(&mut client, channel.snapshot());
    let mut late: Vec<(FramesEncoder, Client)> = Vec::new();
    // As the socket does it: complete turns leave memory, and the session is loaded again if needed.
    let mut light: Vec<(FramesEncoder, Client)> = Vec::new();
    let load = |channel: &mut FramesEncoder, client: &mut Client, rows: Transcript| {
        take(client, channel.restart(rows.session));
        let mut turns = rows.turns;
        turns.sort_by_key(|turn| turn.number);
        turns.chunks(2).for_each(|turns| take(client, channel.add_turns(turns.to_vec())));
    };
    let pieces: Vec<Vec<Change>> = changes(session_events, events);
    let count = pieces.len().div_ceil(size);
    for (nth, piece) in pieces.chunks(size).enumerate() {
        let delta = delta(&mut builder, merged(piece.iter().flatten().cloned()));
        let frames = channel.frames(&delta);
        let restarted = frames.iter().any(|frame| frame["type"] == "channel.start");
        take(&mut client, frames);
        for (channel, client) in &mut late {
            take(client, channel.frames(&delta));
        }
        let touched = &delta.touched;
        let mut changed = touched.turns.iter().chain(&touched.renumbered);
        let only_opens =
            touched.renamed.is_empty() && changed.all(|turn| touched.opened.contains(turn));
        for (channel, client) in &mut light {
            match channel.frames_in_memory(&delta) {
                Some(frames) => take(client, frames),
                None => {
                    assert!(restarted || !only_opens, "{whose} at {nth}: for a new turn");
                    load(channel, client, builder.rows());
                }
            }
        }
        // At every quarter, compare, and connect another client.
        if nth % (count / 4).max(1) == 0 {
            assert_same(&format!("{whose} at {nth}"), &client, &builder.transcript());
            let rows = builder.rows();
            let mut channel = FramesEncoder::new(rows.session.clone(), Vec::new());
            let mut client = Client::default();
            load(&mut channel, &mut client, rows.clone());
            light.push((channel, client));
            let mut channel = FramesEncoder::new(rows.session, rows.turns);
            let mut client = Client::default();
            take(&mut client, channel.snapshot());
            late.push((channel, client));
        }
    }
    let transcript = builder.transcript();
    assert_same(whose, &client, &transcript);
    for (at, (_, client)) in late.iter().chain(&light).enumerate() {
        assert_same(&format!("{whose}, who came {at}."), client, &transcript);
    }
    client
}

/// The events of the feeds in this order.
fn in_order(events: &[Event], order: &[Feed]) -> Vec<Event> {
    let of = |feed: &Feed| {
        let feed = *feed;
        events.iter().filter(move |event| event.feed == feed).cloned()
    };
    order.iter().flat_map(of).collect()
}

by_source!(folding_the_frames_of_every_recording_gives_what_is_stored);

fn folding_the_frames_of_every_recording_gives_what_is_stored(source: &str) {
    // R-000-12 R-000-13 R-000-14
    use Feed::{Hooks, Log, Stream};
    for session_events in session_events(source) {
        let feeds: BTreeSet<Feed> = session_events.events.iter().map(|event| event.feed).collect();
        let mut orders: Vec<Vec<Feed>> = vec![vec![Log, Stream, Hooks], vec![Hooks, Stream, Log]];
        orders.extend(feeds.iter().map(|feed| vec![*feed]));
        for order in orders {
            let events = in_order(&session_events.events, &order);
            for size in [1, 5, usize::MAX] {
                let size = size.min(events.len().max(1));
                stream(
                    &format!("{} {order:?} by {size}", session_events.case),
                    &session_events,
                    &events,
                    size,
                );
            }
        }
    }
}

#[test]
fn a_client_of_the_last_turns_gets_no_earlier_turns() {
    let mut seen = 0;
    for session_events in SOURCES.into_iter().flat_map(session_events) {
        let events = in_order(&session_events.events, &[Feed::Log]);
        let pieces = changes(&session_events, &events);
        let mut builder = empty(&session_events);
        pieces[..pieces.len() / 2]
            .iter()
            .for_each(|piece| builder.apply_all(piece.iter().cloned()));
        let mut rows = builder.rows();
        let Some(first) = rows.turns.iter().map(|turn| turn.number).max() else { continue };
        rows.turns.retain(|turn| turn.number == first);
        let mut channel = FramesEncoder::new(rows.session, rows.turns);
        let mut client = Client::default();
        let mut frames = channel.snapshot();
        for piece in &pieces[pieces.len() / 2..] {
            frames.extend(channel.frames(&delta(&mut builder, piece.clone())));
        }
        frames.iter().for_each(|frame| client.take(frame).unwrap());
        let mut transcript = builder.transcript();
        transcript.turns.retain(|turn| turn.number >= first);
        assert_same(&session_events.case, &client, &transcript);
        seen += usize::from(first > 1);
    }
    assert!(seen > 5, "{seen} had turns before");
}

#[test]
fn growing_messages_are_never_restarted() {
    // A stream alone, delta by delta: each reply starts once unless something follows its end.
    let mut again = BTreeSet::new();
    for session_events in ["claude-code", "codex"].into_iter().flat_map(session_events) {
        let events = in_order(&session_events.events, &[Feed::Stream]);
        if events.is_empty() {
            continue;
        }
        let client = stream(&session_events.case, &session_events, &events, 1);
        assert_eq!(client.channels, 1, "{}", session_events.case);
        let replies = client.messages.iter().filter(|it| it.role == "assistant").count();
        if client.starts > replies {
            again.insert(session_events.case);
        }
    }
    assert_eq!(again, BTreeSet::from(["aborted-and-late-item".to_owned()]));
}

#[test]
fn duplicate_frames_are_ignored_and_gaps_are_detected() {
    // R-000-12 R-000-13
    let session_events = session_events("claude-code")
        .into_iter()
        .find(|session_events| session_events.case == "discovery-loop")
        .unwrap();
    let mut builder = empty(&session_events);
    let mut channel = FramesEncoder::new(builder.session().clone(), Vec::new());
    let mut frames = channel.snapshot();
    for piece in changes(&session_events, &session_events.events) {
        frames.extend(channel.frames(&delta(&mut builder, piece)));
    }
    assert!(frames.len() > 20);
    for (at, frame) in frames.iter().enumerate() {
        assert_eq!(frame["seq"], at as u64 + 1, "no number is left out, none comes twice");
        let positions = ["place", "position", "index", "order", "offset"];
        assert!(positions.iter().all(|name| frame.get(name).is_none()), "{frame}");
    }
    let mut client = Client::default();
    for frame in frames.iter().flat_map(|frame| [frame, frame]) {
        client.take(frame).unwrap();
    }
    assert_same("twice", &client, &builder.transcript());
    let mut gap = Client::default();
    let outcome: Result<(), String> = frames
        .iter()
        .enumerate()
        .filter(|(at, _)| *at != 7)
        .try_for_each(|(_, frame)| gap.take(frame));
    assert_eq!(outcome, Err("7 is followed by 9".to_owned()));
    // Reasoning, text and tool calls have their own frames.
    let kinds: BTreeSet<&str> = frames.iter().filter_map(|frame| frame["type"].as_str()).collect();
    let all = [
        "channel.start",
        "message.delta",
        "message.end",
        "message.start",
        "message.tool_call",
        "message.tool_result",
    ];
    assert_eq!(kinds, BTreeSet::from(all));
    // C-01: this dialect says `thinking`.
    assert!(frames.iter().any(|frame| frame["kind"] == "thinking"));
    assert!(!frames.iter().any(|frame| frame["kind"] == "reasoning"));
    assert!(
        builder
            .transcript()
            .turns
            .iter()
            .flat_map(|turn| &turn.parts)
            .any(|part| matches!(part.body, Body::Tool(_)))
    );
}

/// The messages of a session, from its turns as `show --json` prints them.
fn messages_of(shown: &Value) -> Vec<Value> {
    let mut messages = Vec::new();
    for turn in shown["turns"].as_array().unwrap() {
        for (role, field) in [("user", "user"), ("assistant", "parts")] {
            let parts: Vec<Value> = turn[field].as_array().unwrap().iter().map(essence).collect();
            if !parts.is_empty() {
                messages.push(json!([role, parts]));
            }
        }
    }
    messages
}

#[test]
fn a_frames_client_gets_the_stored_and_the_live_part() {
    // R-000-12, with the real program: half of a log exists, the rest is appended line by line.
    let machine = Machine::new();
    let log = ".claude/projects/-home-dev-weather-app/112b2623-935f-4249-9e9a-c45c61ba0d98.jsonl";
    let whole = recorded("claude-code/discovery-loop/log.jsonl");
    let lines = lines(&whole);
    let (first, rest) = lines.split_at(lines.len() / 2);
    machine.write(log, &first.concat());
    let server = Server::begin(&machine, "data", &[]);
    let session = || server.json("/api/sessions")[0]["id"].as_str().map(str::to_owned);
    until("the session", || session().map(|_| ()).ok_or("none"));
    let mut socket = Socket::open(&server);
    let subscription = json!({ "subscribe": session().unwrap(), "form": "frames" });
    socket.send_text(subscription.to_string().as_bytes());
    let mut client = Client::default();
    let mut receive_text = |client: &mut Client| {
        // The read timeout fails the test if a frame never arrives.
        let frame: Value = serde_json::from_str(&socket.receive_text().unwrap()).unwrap();
        client.take(&frame).unwrap();
    };
    while client.messages.len() < 2 {
        receive_text(&mut client);
    }
    rest.iter().for_each(|line| machine.append(log, line));
    let path = machine.home().join(log);
    let shown = machine.json("data", &["show", path.to_str().unwrap()]);
    let expected = messages_of(&shown);
    assert!(expected.len() >= 2);
    let session_events = |client: &Client| -> Vec<Value> {
        let written = client.written();
        written.iter().map(|message| json!([message["role"], message["parts"]])).collect()
    };
    while session_events(&client) != expected {
        receive_text(&mut client);
    }
    assert_eq!(client.channels, 1);
}

/// The content blocks of two model calls, and the result in a record of its own, by its call id.
#[test]
fn stored_blocks_and_results_become_the_golden_list() {
    // R-000-02 R-000-03 R-000-06 R-001-18, C-01, C-03
    let record = |kind: &str, nth: u32, content: Value| {
        let message = json!({ "id": format!("m{nth}"), "role": kind, "content": content });
        let record =
            json!({ "type": kind, "uuid": nth.to_string(), "sessionId": "s", "message": message });
        format!("{record}\n")
    };
    let log = [
        record("user", 1, json!("Mend it.")),
        record(
            "assistant",
            2,
            json!([
                { "type": "thinking", "thinking": "Where?", "signature": "s1" },
                { "type": "text", "text": "I look." },
                { "type": "tool_use", "id": "t1", "name": "Read", "input": { "file_path": "a" } },
            ]),
        ),
        record("user", 3, json!([{ "type": "tool_result", "tool_use_id": "t1", "content": "x" }])),
        record(
            "assistant",
            4,
            json!([
                { "type": "thinking", "thinking": "There.", "signature": "s2" },
                { "type": "text", "text": "Done." },
            ]),
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    std::fs::write(&path, log.concat()).unwrap();
    let mut session_set = unspool_sources::in_memory::SessionSet::default();
    session_set.read_file(&path, &mut |_| {}).unwrap();
    let transcript = crate::case::main_session(&session_set).transcript();
    let mut channel = FramesEncoder::new(transcript.session, transcript.turns);
    let frames = channel.snapshot();
    let starts = frames.iter().filter(|frame| frame["type"] == "message.start");
    let reply = starts.filter(|frame| frame["role"] == "assistant").collect::<Vec<_>>();
    assert_eq!(reply.len(), 1, "{frames:#?}");
    let users = frames.iter().filter(|frame| frame["role"] == "user").count();
    assert_eq!(users, 1, "a record of results is no message of the user");
    let of_reply = frames.iter().filter(|frame| frame["message"] == reply[0]["message"]);
    let list: Vec<[String; 2]> = of_reply
        .filter_map(|frame| {
            let field = |name: &str| frame[name].as_str().unwrap_or_default().to_owned();
            match frame["type"].as_str().unwrap() {
                "message.delta" => Some([field("kind"), field("text")]),
                "message.tool_call" => Some(["tool_call".to_owned(), field("tool_call_id")]),
                "message.tool_result" => Some(["tool_result".to_owned(), field("tool_call_id")]),
                _ => None,
            }
        })
        .collect();
    let expected = [
        ["thinking", "Where?"],
        ["text", "I look."],
        ["tool_call", "t1"],
        ["tool_result", "t1"],
        ["thinking", "There."],
        ["text", "Done."],
    ];
    assert_eq!(list, expected.map(|part| part.map(str::to_owned)));
}
