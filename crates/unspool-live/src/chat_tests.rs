use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::mcp::McpTransport;
use crate::protocol::{Command, Outcome, PromptImage, RequestedInput, UserAnswer};
use crate::wire::parse;

/// A chat with the lines that it sent.
struct Run {
    chat: Chat,
    now: u64,
    sent: Vec<Value>,
    replies: Vec<Outcome>,
    notes: Vec<Value>,
    stopped: bool,
    /// Delivered prompts that were not reported as written yet.
    unwritten: Vec<Option<u64>>,
    /// Writes are reported at once.
    writes: bool,
}

impl Run {
    fn new(spec: ChatSpec) -> Run {
        let spec = ChatSpec { command: vec!["puppet".to_owned()], ..spec };
        let mut run = Run {
            chat: Chat::new(spec, None),
            now: 1000,
            sent: Vec::new(),
            replies: Vec::new(),
            notes: Vec::new(),
            stopped: false,
            unwritten: Vec::new(),
            writes: true,
        };
        run.take(Input::Started);
        run
    }

    /// A chat with an open session.
    fn idle() -> Run {
        Run::with(ChatSpec::default())
    }

    fn with(spec: ChatSpec) -> Run {
        let mut run = Run::new(spec);
        run.agent(json!({"id": 0, "result": {"protocolVersion": 1}}));
        run.agent(json!({"id": 1, "result": {"sessionId": "s"}}));
        run
    }

    fn take(&mut self, input: Input) {
        let effects = self.chat.take(input, self.now);
        for effect in effects {
            match effect {
                Effect::Send(outgoing) => {
                    let lines = outgoing.lines.iter();
                    self.sent
                        .extend(lines.map(|line| serde_json::from_str::<Value>(line).unwrap()));
                    self.unwritten.push(outgoing.prompt);
                }
                Effect::Reply { outcome, .. } => self.replies.push(outcome),
                Effect::Stop => self.stopped = true,
                Effect::Note(note) => self.notes.push(note),
                Effect::OpenCapture { .. } => {}
            }
        }
        while self.writes && !self.unwritten.is_empty() {
            let prompt = self.unwritten.remove(0);
            self.take(Input::Written { prompt });
        }
    }

    fn agent(&mut self, message: Value) {
        for message in parse(&message.to_string()).unwrap() {
            self.take(Input::Message(message));
        }
    }

    fn client(&mut self, command: Command) -> Outcome {
        self.now += 1000;
        self.quick(command)
    }

    fn quick(&mut self, command: Command) -> Outcome {
        self.take(Input::Client { client: 1, number: 1, by: "test".to_owned(), command });
        self.replies.last().unwrap().clone()
    }

    fn prompt(&mut self, text: &str) -> Outcome {
        self.client(Command::prompt(text.to_owned()))
    }

    fn prompts(&self) -> Vec<&str> {
        let prompts = self.sent.iter().filter(|line| line["method"] == "session/prompt");
        prompts.map(|line| line["params"]["prompt"][0]["text"].as_str().unwrap()).collect()
    }

    /// The reply to the prompt in flight.
    fn finish(&mut self, stop_reason: &str) {
        let id = self.chat.prompt.clone().unwrap();
        let id: Value = serde_json::from_str(id.as_json()).unwrap();
        self.agent(json!({"id": id, "result": {"stopReason": stop_reason}}));
    }

    fn permission(&mut self, id: Value, kind: &str) {
        self.agent(json!({"id": id, "method": "session/request_permission", "params": {
            "sessionId": "s", "toolCall": {"toolCallId": "c", "title": "rm -rf /", "kind": kind},
            "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"},
                {"optionId": "a", "name": "Always", "kind": "allow_always"},
                {"optionId": "n", "name": "No", "kind": "reject_once"}]}}));
    }

    fn answers(&self) -> Vec<&Value> {
        self.sent.iter().filter(|line| line["result"]["outcome"].is_object()).collect()
    }

    fn choose(&mut self, question: &str, option: &str) -> Outcome {
        let answer = UserAnswer::Option(option.to_owned());
        self.client(Command::Answer { question: question.to_owned(), answer })
    }
}

#[test]
fn chat_law_4_one_prompt_is_in_flight_and_the_rest_in_the_queue() {
    let mut run = Run::idle();
    for text in ["one", "two", "three"] {
        assert_eq!(run.prompt(text), Outcome::Accepted);
    }
    assert_eq!(run.prompts(), ["one"]);
    let queued: Vec<_> = run.chat.state.queue.iter().map(|m| (m.id, m.text.clone())).collect();
    assert_eq!(queued, [(1, "two".to_owned()), (2, "three".to_owned())]);
    assert_eq!(run.client(Command::Edit { message: 1, text: "2".into() }), Outcome::Accepted);
    assert_eq!(run.client(Command::Move { message: 2, position: 0 }), Outcome::Accepted);
    run.finish("end_turn");
    assert_eq!(run.prompts(), ["one", "three"]);
    run.finish("end_turn");
    assert_eq!(run.prompts(), ["one", "three", "2"]);
    assert!(matches!(run.client(Command::Remove { message: 1 }), Outcome::Refused(_)));
    assert!(matches!(run.prompt("  "), Outcome::Refused(_)));
}

#[test]
fn the_queue_is_held_after_an_interruption_and_a_failure() {
    let mut run = Run::idle();
    run.prompt("one");
    run.prompt("two");
    assert_eq!(run.client(Command::Cancel), Outcome::Accepted);
    assert_eq!(run.chat.state.phase, Phase::Cancelling);
    run.finish("cancelled");
    assert_eq!(run.prompts(), ["one"]);
    assert!(run.chat.state.held.is_some());
    run.client(Command::Release);
    assert_eq!(run.prompts(), ["one", "two"]);
    run.prompt("three");
    let id = run.chat.prompt.clone().unwrap();
    let id: Value = serde_json::from_str(id.as_json()).unwrap();
    run.agent(json!({"id": id, "error": {"code": -32603, "message": "overloaded"}}));
    assert_eq!(run.chat.state.last_turn.as_ref().unwrap().error.as_deref(), Some("overloaded"));
    assert_eq!(run.prompts(), ["one", "two"]);
    assert_eq!(run.chat.state.held.as_deref(), Some("the last message failed"));
}

/// R-004-24: a prompt that never reached the agent is no turn; it is back where it was typed.
#[test]
fn chat_law_3_no_message_vanishes() {
    let mut run = Run::idle();
    run.writes = false;
    run.prompt("one");
    run.prompt("two");
    run.take(Input::Exited(Exit { code: Some(1), ..Exit::default() }));
    assert_eq!(run.chat.state.phase, Phase::Ended);
    assert_eq!(run.chat.state.draft, "one");
    let queued: Vec<&str> = run.chat.state.queue.iter().map(|m| m.text.as_str()).collect();
    assert_eq!(queued, ["two"]);
}

#[test]
fn queue_and_draft_survive_a_restart() {
    let mut run = Run::idle();
    run.prompt("one");
    run.prompt("two");
    run.client(Command::Draft { question: None, text: "thr".to_owned() });
    let mut again = Chat::new(ChatSpec::default(), Some(run.chat.state.clone()));
    assert_eq!(again.state.queue.len(), 1);
    assert_eq!(again.state.draft, "thr");
    again.take(Input::Started, 0);
    again.take(
        Input::Message(parse(r#"{"id":0,"result":{"protocolVersion":1}}"#).unwrap().remove(0)),
        0,
    );
    let reply = parse(r#"{"id":1,"result":{"sessionId":"s"}}"#).unwrap().remove(0);
    let effects = again.take(Input::Message(reply), 0);
    assert!(effects.is_empty(), "a person lets it go on: {effects:?}");
    assert!(again.state.held.is_some());
}

#[test]
fn chat_law_5_one_answer_per_request_the_first() {
    let mut run = Run::idle();
    run.prompt("one");
    run.permission(json!(7), "execute");
    run.permission(json!("x-1"), "execute");
    assert_eq!(run.chat.state.questions.len(), 2);
    let RequestedInput::Permission(options) = &run.chat.state.questions[0].kind else { panic!() };
    assert_eq!(options[1].kind.word(), "always allow");
    assert!(matches!(run.choose("0", "other"), Outcome::Refused(_)));
    assert_eq!(run.choose("0", "n"), Outcome::Accepted);
    let Outcome::Already { by, answer } = run.choose("0", "y") else { panic!() };
    assert_eq!((by.as_str(), answer.as_str()), ("test", "refuse (No)"));
    assert_eq!(run.choose("1", "y"), Outcome::Accepted);
    let answers = run.answers();
    assert_eq!(answers[0]["id"], 7);
    assert_eq!(answers[0]["result"]["outcome"]["optionId"], "n");
    assert_eq!(answers[1]["id"], "x-1");
    assert_eq!(answers.len(), 2);
}

/// R-X-10: what is pressed before the question could be read is no answer.
#[test]
fn an_answer_that_comes_too_soon_is_refused() {
    let mut run = Run::idle();
    run.prompt("one");
    run.permission(json!(0), "execute");
    let answer = UserAnswer::Option("y".to_owned());
    let command = Command::Answer { question: "0".to_owned(), answer };
    run.now += 149;
    assert!(matches!(run.quick(command.clone()), Outcome::Refused(_)));
    assert!(run.answers().is_empty());
    run.now += 1;
    assert_eq!(run.quick(command), Outcome::Accepted);
}

/// An answer is for the question that the person saw, also if the agent uses its id again.
#[test]
fn an_answer_is_never_taken_for_another_question() {
    let mut run = Run::idle();
    run.prompt("one");
    run.permission(json!(0), "read");
    let seen = run.chat.state.questions[0].id.clone();
    run.agent(json!({"method": "$/cancel_request", "params": {"requestId": 0}}));
    run.permission(json!(0), "execute");
    run.now += 10_000;
    assert!(matches!(run.choose(&seen, "y"), Outcome::Refused(_)));
    assert!(run.answers().is_empty());
}

/// An open question is no silence, and its time never comes.
#[test]
fn a_question_that_stays_open_causes_no_tick() {
    let mut run = Run::idle();
    run.prompt("one");
    run.permission(json!(0), "execute");
    run.now += 10 * SILENCE;
    run.take(Input::Tick);
    assert_eq!(run.chat.next_tick(), None);
    assert_eq!(run.chat.state.silent_since, None);
}

#[test]
fn no_rule_says_yes_after_an_interruption() {
    let mut run = Run::with(ChatSpec { policy: Policy::Allow, ..ChatSpec::default() });
    run.prompt("one");
    run.prompt("two");
    run.client(Command::Cancel);
    run.permission(json!(0), "execute");
    assert_eq!(run.answers()[0]["result"]["outcome"]["outcome"], "cancelled");
    // Some agents end an interrupted turn as if it were complete.
    run.finish("end_turn");
    assert_eq!(run.prompts(), ["one"]);
    assert!(run.chat.state.held.is_some());
}

/// Clients that come and go, days that pass and a start from what was kept are no answer.
#[test]
fn chat_law_7_no_reconnection_and_no_time_out_says_yes() {
    const DAY: u64 = 24 * 3_600_000;
    let mut run = Run::idle();
    run.prompt("one");
    run.permission(json!(7), "read");
    for clients in [0, 1, 0, 2] {
        run.take(Input::Clients(clients));
        run.now += DAY;
        run.take(Input::Tick);
    }
    assert!(run.answers().is_empty(), "{:?}", run.answers());
    assert_eq!(run.chat.state.questions.len(), 1, "it waits");
    let again = Chat::new(ChatSpec::default(), Some(run.chat.state.clone()));
    assert!(again.state.questions.is_empty(), "the agent that asked is gone");
    run.take(Input::Exited(Exit::default()));
    let allowed =
        run.answers().into_iter().any(|line| line["result"]["outcome"]["optionId"] != json!(null));
    assert!(!allowed, "{:?}", run.answers());
}

/// R-003-13: a refusal to talk about the call first is told from a plain one, in the capture and to others.
#[test]
fn an_answer_may_be_to_talk_about_it() {
    let mut run = Run::idle();
    run.prompt("one");
    run.permission(json!("x-1"), "execute");
    let command = Command::Answer { question: "0".to_owned(), answer: UserAnswer::Discuss };
    assert_eq!(run.client(command), Outcome::Accepted);
    assert_eq!(run.answers()[0]["result"]["outcome"]["optionId"], "n");
    let note = run.notes.iter().find(|note| note["what"] == "discuss").unwrap();
    assert_eq!(note["request"], "x-1");
    assert_eq!(run.chat.state.answers[0].answer, "chat about this");
    run.permission(json!(9), "execute");
    assert_eq!(run.choose("1", "n"), Outcome::Accepted);
    assert_eq!(run.notes.iter().filter(|note| note["what"] == "discuss").count(), 1);
}

#[test]
fn messages_wait_for_the_session_after_a_clear() {
    let mut run = Run::idle();
    assert_eq!(run.client(Command::Clear), Outcome::Accepted);
    run.prompt("one");
    assert!(run.prompts().is_empty());
    let id = run.sent.last().unwrap()["id"].clone();
    run.agent(json!({"id": id, "result": {"sessionId": "s-2"}}));
    assert_eq!(run.prompts(), ["one"]);
    assert_eq!(run.sent.last().unwrap()["params"]["sessionId"], "s-2");
    // An agent that has no other session keeps the one it has.
    let mut run = Run::idle();
    run.client(Command::Clear);
    let id = run.sent.last().unwrap()["id"].clone();
    run.agent(json!({"id": id, "error": {"code": -32603, "message": "no"}}));
    assert_eq!((run.chat.state.phase, run.stopped), (Phase::Idle, false));
}

#[test]
fn a_cancellation_answers_every_question_in_one_write() {
    let mut run = Run::idle();
    run.prompt("one");
    run.permission(json!(0), "execute");
    run.agent(json!({"id": 1, "method": "elicitation/create", "params": {"mode": "form",
        "sessionId": "s", "message": "Which?", "requestedSchema": {"properties": {}}}}));
    let before = run.sent.len();
    run.client(Command::Cancel);
    let lines = &run.sent[before..];
    assert_eq!(lines[0]["method"], "session/cancel");
    assert_eq!(lines[1]["result"]["outcome"]["outcome"], "cancelled");
    assert_eq!(lines[2]["result"]["action"], "cancel");
    assert!(run.chat.state.questions.is_empty());
    // No reaction: the request is cancelled too, and ending the agent is offered.
    run.now += CANCEL_TIMEOUT;
    run.take(Input::Tick);
    assert_eq!(run.sent.last().unwrap()["method"], "$/cancel_request");
    assert!(run.chat.state.stuck && !run.stopped);
}

#[test]
fn questions_go_with_their_turn_and_with_their_agent() {
    let mut run = Run::idle();
    run.prompt("one");
    run.permission(json!(0), "execute");
    run.agent(json!({"method": "$/cancel_request", "params": {"requestId": 0}}));
    assert!(run.chat.state.questions.is_empty());
    run.permission(json!(1), "execute");
    run.finish("end_turn");
    assert!(run.chat.state.questions.is_empty());
    assert_eq!(run.answers().last().unwrap()["result"]["outcome"]["outcome"], "cancelled");
    assert!(matches!(run.choose("0", "y"), Outcome::Refused(_)));
    run.prompt("two");
    run.permission(json!(2), "execute");
    run.take(Input::Exited(Exit { signal: Some(9), stderr: "bye\n".into(), ..Exit::default() }));
    assert!(run.chat.state.questions.is_empty());
    let reason = run.chat.state.reason.clone().unwrap();
    assert_eq!(reason, "the agent ended by SIGKILL during the turn\nbye");
}

/// Law: nobody but a person or a rule of theirs says yes.
#[test]
fn rules_answer_as_the_user_said() {
    for (policy, kind, option) in [
        (Policy::Deny, "read", "n"),
        (Policy::AllowReads, "read", "y"),
        (Policy::AllowReads, "search", "y"),
        (Policy::AllowReads, "execute", "n"),
        (Policy::AllowReads, "fetch", "n"),
        (Policy::AllowReads, "other", "n"),
        (Policy::Allow, "execute", "y"),
    ] {
        let mut run = Run::with(ChatSpec { policy, ..ChatSpec::default() });
        run.prompt("one");
        run.permission(json!(0), kind);
        let answers = run.answers();
        assert_eq!(answers[0]["result"]["outcome"]["optionId"], option, "{policy:?} {kind}");
        assert_eq!(run.chat.state.answers[0].by, "rule");
        assert!(run.notes.iter().any(|note| note["by"] == "rule"));
    }
    // Without an option that refuses, nothing is chosen.
    let mut run = Run::with(ChatSpec { policy: Policy::Deny, ..ChatSpec::default() });
    run.prompt("one");
    run.agent(json!({"id": 0, "method": "session/request_permission", "params": {"sessionId": "s",
        "toolCall": {}, "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]}}));
    assert_eq!(run.answers()[0]["result"]["outcome"]["outcome"], "cancelled");
}

#[test]
fn forms_are_checked_before_they_are_sent() {
    let mut run = Run::idle();
    run.prompt("one");
    run.agent(json!({"id": 0, "method": "elicitation/create", "params": {"mode": "form",
        "sessionId": "s", "toolCallId": "c", "message": "Which unit?", "requestedSchema": {
            "required": ["u"], "properties": {"u": {"type": "string", "enum": ["C", "F"]}}}}}));
    let form = |value: &str| {
        let value = crate::protocol::FieldValue { chosen: vec![value.to_owned()], own_words: None };
        let answer = UserAnswer::Form(BTreeMap::from([("u".to_owned(), value)]));
        Command::Answer { question: "0".to_owned(), answer }
    };
    assert!(matches!(run.client(form("K")), Outcome::Refused(_)));
    assert_eq!(run.chat.state.questions.len(), 1);
    assert_eq!(run.client(form("C")), Outcome::Accepted);
    assert_eq!(
        run.sent.last().unwrap()["result"],
        json!({"action": "accept", "content": {"u": "C"}})
    );
    // A page of the agent's choice is not opened.
    run.agent(json!({"id": 1, "method": "elicitation/create", "params": {"mode": "url",
        "message": "Log in", "url": "https://example.org/x"}}));
    assert_eq!(run.sent.last().unwrap()["result"]["action"], "decline");
    assert!(run.chat.state.notice.clone().unwrap().contains("https://example.org/x"));
}

#[test]
fn what_we_do_not_offer_is_refused() {
    let mut run = Run::idle();
    for method in ["fs/read_text_file", "terminal/create", "_vendor/x"] {
        run.agent(json!({"id": 9, "method": method, "params": {}}));
        assert_eq!(run.sent.last().unwrap()["error"]["code"], METHOD_NOT_FOUND);
    }
    run.agent(json!({"id": 9, "method": "session/request_permission", "params": {}}));
    assert_eq!(run.sent.last().unwrap()["error"]["code"], crate::wire::INVALID_PARAMS);
    let junk = run.chat.state.junk;
    run.agent(json!({"id": 4711, "result": {}}));
    run.agent(json!({"hello": 1}));
    assert_eq!(run.chat.state.junk, junk + 2);
}

#[test]
fn modes_and_models_are_named_by_name() {
    let new = json!({"id": 1, "result": {"sessionId": "s",
        "modes": {"currentModeId": "https://x#agent", "availableModes": [
            {"id": "https://x#agent", "name": "Agent"}, {"id": "https://x#plan", "name": "Plan"}]},
        "configOptions": [{"id": "model", "name": "Model", "category": "model", "type": "select",
            "currentValue": "a", "options": [{"value": "a", "name": "Big"}, {"value": "b", "name": "Small"}]}]}});
    let start = |mode: &str, model: &str| {
        let (mode, model) = (Some(mode.to_owned()), Some(model.to_owned()));
        let mut run = Run::new(ChatSpec { mode, model, ..ChatSpec::default() });
        run.agent(json!({"id": 0, "result": {"protocolVersion": 1}}));
        run.agent(new.clone());
        run
    };
    let mut run = start("plan", "small");
    let methods: Vec<&str> = run.sent.iter().filter_map(|line| line["method"].as_str()).collect();
    assert_eq!(methods[2..], ["session/set_mode", "session/set_config_option"]);
    assert_eq!(run.sent[2]["params"]["modeId"], "https://x#plan");
    assert_eq!(run.sent[3]["params"]["value"], "b");
    // The message waits until they are set.
    run.prompt("one");
    assert!(run.prompts().is_empty());
    run.agent(json!({"id": 2, "result": {}}));
    run.agent(json!({"id": 3, "result": {}}));
    assert_eq!(run.prompts(), ["one"]);
    // A mode that is not there ends the chat: another one may allow more.
    let run = start("yolo", "small");
    assert!(run.stopped);
    assert!(run.chat.state.reason.clone().unwrap().contains("it has Agent, Plan"));
    let mut run = start("plan", "small");
    run.prompt("one");
    run.agent(json!({"id": 2, "error": {"code": -32602, "message": "not allowed"}}));
    assert!(run.stopped && run.prompts().is_empty());
}

#[test]
fn a_start_that_fails_says_why() {
    let failed = |messages: &[Value]| {
        let mut run = Run::new(ChatSpec { resume: None, ..ChatSpec::default() });
        run.prompt("one");
        messages.iter().for_each(|message| run.agent(message.clone()));
        assert!(run.stopped && run.prompts().is_empty());
        assert_eq!(run.chat.state.queue.len(), 1, "the message is kept");
        run.chat.state.reason.clone().unwrap()
    };
    let version = failed(&[json!({"id": 0, "result": {"protocolVersion": 2}})]);
    assert!(version.contains("version 2"), "{version}");
    let auth = failed(&[
        json!({"id": 0, "result": {"protocolVersion": 1,
            "authMethods": [{"id": "x", "name": "Log in with Google"}]}}),
        json!({"id": 1, "error": {"code": -32000, "message": "Authentication required"}}),
    ]);
    assert!(auth.contains("Log in with Google"), "{auth}");
    let mut run = Run::new(ChatSpec::default());
    for _ in 0..=MAX_JUNK_LINES {
        run.take(Input::Junk { bytes: 10 });
    }
    assert!(run.chat.state.reason.clone().unwrap().contains("does not speak"));
    let mut run = Run::new(ChatSpec::default());
    run.now += INITIALIZE_TIMEOUT;
    run.take(Input::Tick);
    assert!(run.chat.state.reason.clone().unwrap().contains("did not answer"));
    let mut run = Run::new(ChatSpec { resume: Some("s".into()), ..ChatSpec::default() });
    run.agent(json!({"id": 0, "result": {"protocolVersion": 1}}));
    assert!(run.chat.state.reason.clone().unwrap().contains("cannot go on"));
}

#[test]
fn a_session_goes_on_without_its_history_where_the_agent_can() {
    for (capabilities, method) in [
        (json!({"sessionCapabilities": {"resume": {}}, "loadSession": true}), "session/resume"),
        (json!({"loadSession": true}), "session/load"),
    ] {
        let mut run = Run::new(ChatSpec { resume: Some("s-1".into()), ..ChatSpec::default() });
        run.agent(json!({"id": 0, "result": {"protocolVersion": 1,
            "agentCapabilities": capabilities}}));
        assert_eq!(run.sent[1]["method"], method);
        assert_eq!(run.sent[1]["params"]["sessionId"], "s-1");
        run.agent(json!({"id": 1, "result": {}}));
        assert_eq!(run.chat.state.session.as_deref(), Some("s-1"));
    }
}

#[test]
fn a_chat_that_nobody_needs_ends() {
    let mut run = Run::with(ChatSpec { linger: Some(1000), ..ChatSpec::default() });
    run.take(Input::Clients(1));
    assert_eq!(run.chat.next_tick(), None);
    run.take(Input::Clients(0));
    run.now += 999;
    run.take(Input::Tick);
    assert!(!run.stopped);
    run.now += 1;
    run.take(Input::Tick);
    assert!(run.stopped);
    // Work keeps it.
    let mut run = Run::with(ChatSpec { linger: Some(1000), ..ChatSpec::default() });
    run.prompt("one");
    run.take(Input::Clients(0));
    run.now += 10_000;
    run.take(Input::Tick);
    assert!(!run.stopped);
}

/// R-X-13: silence is said, and nothing is done about it.
#[test]
fn a_silent_agent_is_said_to_be_silent() {
    let mut run = Run::idle();
    run.prompt("one");
    let since = run.now;
    run.now += SILENCE;
    run.take(Input::Tick);
    assert_eq!(run.chat.state.silent_since, Some(since));
    assert_eq!(run.chat.state.phase, Phase::Running);
    run.agent(json!({"method": "session/update", "params": {"sessionId": "s", "update":
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}}}));
    assert_eq!(run.chat.state.silent_since, None);
}

/// Anything that clients and agents may do, in any order.
#[derive(Clone, Debug)]
enum Move {
    Prompt,
    Cancel,
    Release,
    Remove(u64),
    Edit(u64),
    Answer(u64, u8),
    Ask(u64),
    Withdraw(u64),
    Finish(u8),
    Wrote,
    Stray(u64),
    Tick(u64),
    Exit,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        4 => Just(Move::Prompt),
        1 => Just(Move::Cancel),
        2 => Just(Move::Release),
        1 => (0..8u64).prop_map(Move::Remove),
        1 => (0..8u64).prop_map(Move::Edit),
        3 => (0..12u64, 0..4u8).prop_map(|(id, how)| Move::Answer(id, how)),
        3 => (0..6u64).prop_map(Move::Ask),
        1 => (0..6u64).prop_map(Move::Withdraw),
        4 => (0..3u8).prop_map(Move::Finish),
        4 => Just(Move::Wrote),
        1 => (0..20u64).prop_map(Move::Stray),
        2 => (0..400u64).prop_map(Move::Tick),
        1 => Just(Move::Exit),
    ];
    prop::collection::vec(one, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Laws of the chat: no message vanishes, one prompt is in flight, one answer per request, and
    /// nobody but the client says yes.
    #[test]
    fn chat_laws_3_4_5_and_7_hold_in_any_order(moves in moves()) {
        let mut run = Run::idle();
        run.writes = false;
        let (mut accepted, mut removed, mut written) = (Vec::new(), Vec::new(), Vec::new());
        let mut asked: BTreeMap<u64, usize> = BTreeMap::new();
        let mut yes = 0;
        for (nth, next) in moves.into_iter().enumerate() {
            match next {
                Move::Prompt => {
                    let id = run.chat.next_message;
                    let text = format!("m{nth}");
                    if run.quick(Command::prompt(text)) == Outcome::Accepted {
                        accepted.push(id);
                    }
                }
                Move::Cancel => drop(run.quick(Command::Cancel)),
                Move::Release => drop(run.quick(Command::Release)),
                Move::Remove(message) => {
                    if run.quick(Command::Remove { message }) == Outcome::Accepted {
                        removed.push(message);
                    }
                }
                Move::Edit(message) => drop(run.quick(Command::Edit { message, text: "e".into() })),
                Move::Answer(question, how) => {
                    let answer = match how {
                        0 => UserAnswer::Option("y".into()),
                        1 => UserAnswer::Option("n".into()),
                        2 => UserAnswer::Decline,
                        _ => UserAnswer::Option("?".into()),
                    };
                    let question = question.to_string();
                    let outcome = run.quick(Command::Answer { question, answer });
                    yes += usize::from(how == 0 && outcome == Outcome::Accepted);
                }
                Move::Ask(id) => {
                    let open = run.chat.state.questions.iter().any(|q| q.request == RequestId::number(id));
                    if !open && run.chat.state.phase != Phase::Ended {
                        *asked.entry(id).or_default() += 1;
                    }
                    run.permission(json!(id), "execute");
                }
                Move::Withdraw(id) => {
                    run.agent(json!({"method": "$/cancel_request", "params": {"requestId": id}}));
                }
                Move::Finish(how) if run.chat.prompt.is_some() && run.chat.sending.is_none() => {
                    run.finish(["end_turn", "cancelled", "max_tokens"][how as usize]);
                }
                Move::Finish(_) => {}
                Move::Wrote => {
                    if !run.unwritten.is_empty() {
                        let prompt = run.unwritten.remove(0);
                        written.extend(prompt.filter(|_| run.chat.state.phase != Phase::Ended));
                        run.take(Input::Written { prompt });
                    }
                }
                Move::Stray(id) => run.agent(json!({"id": 100 + id, "result": {}})),
                Move::Tick(by) => {
                    run.now += by;
                    run.take(Input::Tick);
                }
                Move::Exit => run.take(Input::Exited(Exit::default())),
            }
            // One prompt in flight.
            let in_flight = run.chat.requests.values().filter(|s| **s == Sent::Prompt);
            prop_assert!(in_flight.count() <= 1);
            // One answer for each question that was asked; the yes of a client, and no other.
            let mut answered: BTreeMap<u64, usize> = BTreeMap::new();
            for answer in run.answers() {
                *answered.entry(answer["id"].as_u64().unwrap()).or_default() += 1;
            }
            for (id, count) in &answered {
                prop_assert!(count <= asked.get(id).unwrap_or(&0), "{id}");
            }
            let allowed = run.answers().iter()
                .filter(|answer| answer["result"]["outcome"]["optionId"] == "y").count();
            prop_assert_eq!(allowed, yes);
            // Accepted is queued, sent, taken back, or in the draft.
            let queued: Vec<u64> = run.chat.state.queue.iter().map(|message| message.id).collect();
            for id in &accepted {
                let places = usize::from(queued.contains(id)) + usize::from(removed.contains(id))
                    + usize::from(written.contains(id));
                let in_draft = run.chat.state.phase == Phase::Ended && !run.chat.state.draft.is_empty();
                prop_assert!(places == 1 || places == 0 && in_draft, "{id}: {places}");
            }
        }
    }
}

/// A chat with an agent that says this about itself.
fn with_agent(initialized: Value) -> Run {
    let mut run = Run::new(ChatSpec::default());
    let mut reply = json!({"protocolVersion": 1});
    reply.as_object_mut().unwrap().extend(initialized.as_object().unwrap().clone());
    run.agent(json!({"id": 0, "result": reply}));
    run.agent(json!({"id": 1, "result": {"sessionId": "s"}}));
    run
}

fn at_once(text: &str) -> Command {
    Command::Prompt { text: text.to_owned(), images: Vec::new(), at_once: true }
}

fn steerings(run: &Run) -> Vec<&Value> {
    run.sent.iter().filter(|line| line["method"] == "_session/steering").collect()
}

#[test]
fn a_message_goes_into_the_turn_where_the_agent_takes_it() {
    let mut run = with_agent(json!({"_meta": {"steering": {"supported": true}}}));
    run.prompt("one");
    run.prompt("later");
    assert_eq!(run.client(at_once("use tabs")), Outcome::Accepted);
    let sent = steerings(&run)[0].clone();
    assert_eq!(sent["params"]["prompt"][0]["text"], "use tabs");
    assert_eq!(sent["params"]["_meta"]["steering"]["idleBehavior"], "promptRequired");
    assert_eq!(run.chat.state.queue.len(), 2, "it is ours until the agent has it");
    run.agent(json!({"id": sent["id"], "result": {"outcome": "injected"}}));
    assert_eq!(run.chat.state.queue[0].text, "later");
    run.finish("end_turn");
    assert_eq!(run.prompts(), ["one", "later"]);
}

/// The turn may end while the message is on its way: it is then the next prompt, once.
#[test]
fn a_message_that_came_too_late_for_the_turn_is_the_next_prompt() {
    for reply in [
        json!({"result": {"outcome": "promptRequired"}}),
        json!({"error": {"code": -32603, "message": "no"}}),
    ] {
        let mut run = with_agent(json!({"_meta": {"steering": {"supported": true}}}));
        run.prompt("one");
        run.client(at_once("two"));
        run.finish("end_turn");
        assert_eq!(run.prompts(), ["one"], "the agent has not said what it did");
        let mut reply = reply;
        reply["id"] = steerings(&run)[0]["id"].clone();
        run.agent(reply);
        assert_eq!(run.prompts(), ["one", "two"]);
        assert!(run.chat.state.queue.is_empty());
    }
}

#[test]
fn a_message_at_once_waits_for_an_open_question() {
    let mut run = with_agent(json!({"_meta": {"steering": {"supported": true}}}));
    run.prompt("one");
    run.permission(json!(7), "edit");
    run.client(at_once("two"));
    assert!(steerings(&run).is_empty());
    run.choose("0", "y");
    assert_eq!(steerings(&run).len(), 1);
}

#[test]
fn a_message_at_once_interrupts_an_agent_that_takes_none() {
    let mut run = Run::idle();
    run.prompt("one");
    run.prompt("later");
    run.client(at_once("now"));
    let cancels = |run: &Run| run.sent.iter().filter(|l| l["method"] == "session/cancel").count();
    assert_eq!(cancels(&run), 1);
    run.finish("cancelled");
    assert_eq!(run.prompts(), ["one", "now"], "the queue is not held: somebody wanted this");
    run.finish("end_turn");
    assert_eq!((run.prompts(), cancels(&run)), (vec!["one", "now", "later"], 1));
}

#[test]
fn images_go_to_agents_that_take_them() {
    let image = PromptImage { media_type: "image/png".to_owned(), data: "aGk=".to_owned() };
    let prompt = |text: &str| Command::Prompt {
        text: text.to_owned(),
        images: vec![image.clone()],
        at_once: false,
    };
    let mut run = Run::idle();
    assert_eq!(run.client(prompt("see")), Outcome::Refused("the agent takes no images".to_owned()));
    let mut run = with_agent(json!({"agentCapabilities": {"promptCapabilities": {"image": true}}}));
    assert_eq!(run.client(prompt("")), Outcome::Accepted);
    let sent = run.sent.last().unwrap();
    let block = json!([{"type": "image", "mimeType": "image/png", "data": "aGk="}]);
    assert_eq!(sent["params"]["prompt"], block);
}

/// Only the names of MCP servers are recorded: the rest may be secret.
#[test]
fn mcp_servers_reach_the_agent_and_their_secrets_no_file() {
    let servers = ["http", "sse"].map(|name| McpServer {
        name: name.to_owned(),
        transport: {
            let headers = BTreeMap::from([("Authorization".to_owned(), "s3cret".to_owned())]);
            let url = "https://mcp.example".to_owned();
            if name == "http" {
                McpTransport::Http { url, headers }
            } else {
                McpTransport::Sse { url, headers }
            }
        },
    });
    let mut chat = Chat::new(ChatSpec::default(), None).with_servers(servers.to_vec());
    chat.take(Input::Started, 0);
    let reply = json!({"id": 0, "result": {"protocolVersion": 1,
        "agentCapabilities": {"mcpCapabilities": {"http": true}}}});
    let message = parse(&reply.to_string()).unwrap().remove(0);
    let effects = chat.take(Input::Message(message), 0);
    let sent = effects.into_iter().find_map(|effect| match effect {
        Effect::Send(outgoing) => Some(outgoing),
        Effect::OpenCapture { .. } | Effect::Note(_) | Effect::Reply { .. } | Effect::Stop => None,
    });
    let Outgoing { lines, recorded, .. } = sent.unwrap();
    assert!(lines[0].contains("s3cret") && !lines[0].contains("sse"), "{lines:?}");
    let recorded: Value = serde_json::from_str(&recorded.unwrap()).unwrap();
    assert_eq!(recorded["params"]["mcpServers"], json!([{"name": "http"}]));
    assert!(chat.state.notice.unwrap().contains("sse"));
}

#[test]
fn an_agent_that_wants_a_log_in_says_how() {
    let methods = json!([
        {"id": "oauth", "name": "Google"},
        {"id": "t", "name": "Claude", "type": "terminal", "args": ["/login"]},
        {"id": "k", "name": "Key", "type": "env_var", "vars": [{"name": "API_KEY"}]}]);
    let initialized = json!({"id": 0, "result": {"protocolVersion": 1, "authMethods": methods}});
    let refused = json!({"code": -32000, "message": "Authentication required"});
    let mut run = Run::new(ChatSpec::default());
    run.agent(initialized.clone());
    run.agent(json!({"id": 1, "error": refused}));
    let reason = run.chat.state.reason.clone().unwrap();
    for words in ["--log-in oauth", "run `puppet /login`", "set API_KEY"] {
        assert!(reason.contains(words), "{words}: {reason}");
    }
    // As the user asked for it: before the session, without a limit of time.
    let mut run = Run::new(ChatSpec { log_in: Some("oauth".to_owned()), ..ChatSpec::default() });
    run.agent(initialized.clone());
    assert_eq!(run.sent.last().unwrap()["params"], json!({"methodId": "oauth"}));
    run.now += 10 * SESSION_TIMEOUT;
    run.take(Input::Tick);
    run.agent(json!({"id": 1, "result": {}}));
    assert_eq!(run.sent.last().unwrap()["method"], "session/new");
    let mut run = Run::new(ChatSpec { log_in: Some("oauth".to_owned()), ..ChatSpec::default() });
    run.agent(initialized);
    run.agent(json!({"id": 1, "error": {"code": 1, "message": "closed"}}));
    assert!(run.chat.state.reason.clone().unwrap().contains("the log-in failed: closed"));
}

/// Nothing that an agent says about log-ins stops the chat.
#[test]
fn strange_ways_to_log_in_are_left_out() {
    let run = with_agent(json!({"authMethods": [{"id": "a", "args": null}, 7, {"name": ["x"]}]}));
    assert_eq!(run.chat.state.phase, Phase::Idle);
}

/// A reply to a message into the turn that never comes: the queue waits for a person.
#[test]
fn a_message_that_the_agent_does_not_confirm_blocks_nothing() {
    let mut run = with_agent(json!({"_meta": {"steering": {"supported": true}}}));
    run.prompt("one");
    run.client(at_once("two"));
    run.finish("end_turn");
    run.now += CANCEL_TIMEOUT;
    run.take(Input::Tick);
    assert!(run.chat.state.held.clone().unwrap().contains("not known"));
    let id = run.chat.state.queue[0].id;
    assert_eq!(run.client(Command::Remove { message: id }), Outcome::Accepted);
    run.prompt("three");
    assert_eq!(run.prompts(), ["one", "three"]);
}

/// Two messages at once do not interrupt each other.
#[test]
fn a_message_at_once_is_for_one_turn_alone() {
    let mut run = Run::idle();
    run.prompt("one");
    run.client(at_once("two"));
    run.client(at_once("three"));
    run.finish("cancelled");
    assert_eq!(run.prompts(), ["one", "two"]);
    let cancels = run.sent.iter().filter(|line| line["method"] == "session/cancel").count();
    assert_eq!(cancels, 1, "the second waits for its turn");
}

/// The composer takes text alone: a message with images stays in the queue.
#[test]
fn a_message_with_images_survives_the_agent() {
    let mut run = with_agent(json!({"agentCapabilities": {"promptCapabilities": {"image": true}}}));
    run.writes = false;
    let images = vec![PromptImage { media_type: "image/png".to_owned(), data: "aGk=".to_owned() }];
    run.client(Command::Prompt { text: "see".to_owned(), images, at_once: false });
    run.take(Input::Exited(Exit::default()));
    assert_eq!((run.chat.state.queue.len(), run.chat.state.draft.as_str()), (1, ""));
}

/// What clients get in one message has an end, whatever the agent sends: otherwise nobody could
/// connect, and nobody could end it.
#[test]
fn a_state_fits_into_one_message_whatever_the_agent_sends() {
    let mut run = Run::new(ChatSpec::default());
    let long = "\u{1}".repeat(70_000);
    let info = json!({"name": "puppet", "title": long, "version": long});
    run.agent(json!({"id": 0, "result": {"protocolVersion": 1, "agentInfo": info}}));
    let option = |nth: usize| {
        json!({"id": format!("{nth}{long}"), "name": long, "category": long, "currentValue": long,
            "options": [{"value": "a", "name": long, "description": long}]})
    };
    let options: Vec<Value> = (0..20).map(option).collect();
    let modes = json!({"currentModeId": long, "availableModes": [{"id": long, "name": long}]});
    run.agent(
        json!({"id": 1, "result": {"sessionId": "s", "configOptions": options, "modes": modes}}),
    );
    run.prompt("go");
    let update = |update: Value| json!({"method": "session/update", "params": {"sessionId": "s", "update": update}});
    let entries = vec![json!({"content": &long[..5_000], "status": &long[..5_000]}); 300];
    run.agent(update(json!({"sessionUpdate": "plan", "entries": entries})));
    run.agent(update(json!({"sessionUpdate": "current_mode_update", "currentModeId": long})));
    run.agent(update(json!({"sessionUpdate": "tool_call", "toolCallId": long, "kind": long})));
    for nth in 0..12 {
        let options = vec![json!({"optionId": long, "name": long, "kind": "allow_once"}); 3];
        run.agent(json!({"id": nth, "method": "session/request_permission", "params": {
            "sessionId": "s", "toolCall": {"toolCallId": long, "title": long}, "options": options}}));
        let schema = json!({"properties": {long.as_str(): {"type": "string", "enum": [long]}}});
        run.agent(json!({"id": format!("f{nth}"), "method": "elicitation/create", "params":
            {"mode": "form", "message": long, "requestedSchema": schema}}));
    }
    let id: Value = serde_json::from_str(run.chat.prompt.clone().unwrap().as_json()).unwrap();
    run.agent(json!({"id": id, "error": {"code": 1, "message": long}}));
    let bytes = serde_json::to_vec(&run.chat.state).unwrap().len();
    assert!(bytes < crate::host::socket::MAX_STATE / 2, "{bytes}");
    assert!(run.chat.call_kinds.is_empty());
}
