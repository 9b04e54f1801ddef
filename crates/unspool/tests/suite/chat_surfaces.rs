//! Chats with several surfaces, surfaces of any size, and what is left when a host, an agent or a
//! session is gone: the real program in pseudo-terminals.

use std::io::Write;
use std::os::unix::net::UnixListener;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use unspool_live::host::folder::{ChatFolders, StoredChat};
use unspool_live::protocol::{ChatState, Phase};

use crate::chat::{Stage, call, permission, running, signal};
use crate::chat_terminal::{GUARD, application, chat, chat_sized, quit};
use crate::harness::{Machine, until};
use crate::terminal::Terminal;

fn script(prompts: Value) -> Stage {
    Stage::new(json!({"session": "s-1", "prompts": prompts}))
}

/// C-24: two surfaces of one kind are told apart, and nobody is told of an answer of their own.
#[test]
fn the_other_of_two_terminals_learns_who_answered() {
    let stage = script(json!({"go": [call("c"), permission("c", "execute"), {"say": "Allowed."}]}));
    let mut first = chat(&stage);
    first.press("go\r");
    first.shows("tab answers");
    let mut second = application(&stage);
    second.shows("Waiting for you");
    second.press("\r");
    second.shows("allow once  Yes");
    thread::sleep(GUARD);
    second.press("\t1\r");
    first.shows("answered by another terminal: allow once (Yes)");
    second.shows("Allowed.");
    let said = String::from_utf8_lossy(&second.0.raw).into_owned();
    assert!(!said.contains("answered by"), "it answered itself: {}", second.text());
    for terminal in [&mut first, &mut second] {
        quit(terminal);
    }
    stage.end_chats();
}

/// R-X-11: the host is killed; queue and draft are there again, and what is typed then stays too.
#[test]
fn queue_and_draft_are_back_after_the_host_was_killed() {
    let stage =
        script(json!({"go": [{"say": "Working."}, {"wait": "cancel"}], "*": [{"say": "Done."}]}));
    let mut terminal = chat(&stage);
    terminal.press("go\r");
    terminal.shows("Working.");
    terminal.press("queued message\r");
    terminal.shows("queued 1  queued message");
    terminal.press("half a thought");
    until("the draft", || {
        let draft = stage.chats()[0]["state"]["draft"].clone();
        if draft == "half a thought" { Ok(()) } else { Err(draft) }
    });
    let host = stage.chats()[0]["process"].as_u64().unwrap();
    signal(u32::try_from(host).unwrap(), "-9");
    let screen = terminal.shows("enter starts the agent again");
    assert!(screen.contains("queued 1  queued message"), "{screen}");
    assert!(screen.contains("│ half a thought"), "{screen}");
    terminal.press(", whole");
    terminal.shows("│ half a thought, whole");
    quit(&mut terminal);
    // Whoever starts next cleans up.
    let mut terminal = application(&stage);
    terminal.shows("go");
    terminal.press("\r");
    let screen = terminal.shows("│ half a thought, whole");
    assert!(screen.contains("queued 1  queued message"), "{screen}");
    assert!(screen.contains("enter starts the agent again"), "{screen}");
    let script = stage.machine.home().join("script.json");
    assert_eq!(running(script.to_str().unwrap()), Vec::<u32>::new(), "no process is left");
    quit(&mut terminal);
    stage.machine.ok("data", &["delete", "s-1", "--yes"]);
    assert!(stage.chats().is_empty());
}

/// R-003-38: a line of a connection that is over changes nothing of the turn that runs now.
#[test]
fn a_late_line_of_an_old_connection_changes_nothing() {
    let stage = script(json!({"go": [{"say": "Old reply."}, {"wait": "cancel"}],
        "again": [{"say": "New reply."}, {"sleep": 1500}, {"say": " And more."}]}));
    let mut terminal = chat(&stage);
    terminal.press("go\r");
    terminal.shows("Old reply.");
    let capture = stage.chats()[0]["state"]["capture"].as_str().unwrap().to_owned();
    let host = stage.chats()[0]["process"].as_u64().unwrap();
    signal(u32::try_from(host).unwrap(), "-9");
    terminal.shows("enter starts the agent again");
    until("the last word of the old capture", || {
        stage.machine.ok("data", &["sync"]);
        let text = std::fs::read_to_string(&capture).unwrap();
        if text.contains("\"lost\"") { Ok(()) } else { Err(text) }
    });
    terminal.press("again\r");
    terminal.shows("New reply.");
    let chunk = json!({"sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "LATE WORDS"}});
    let message = json!({"jsonrpc": "2.0", "method": "session/update",
        "params": {"sessionId": "s-1", "update": chunk}});
    let line = json!({"t": 1_794_702_908_545_u64, "dir": "a2c", "msg": message});
    let mut old = std::fs::OpenOptions::new().append(true).open(&capture).unwrap();
    writeln!(old, "{line}").unwrap();
    let screen = terminal.shows("And more.");
    assert!(screen.contains("New reply. And more.") && !screen.contains("LATE"), "{screen}");
    stage.machine.ok("data", &["sync"]);
    let turns = stage.turns();
    assert_eq!(turns.len(), 2, "{turns:?}");
    assert!(!format!("{turns:?}").contains("LATE"), "{turns:?}");
    quit(&mut terminal);
    stage.end_chats();
}

/// What is typed after the agent ended survives the application.
#[test]
fn text_typed_after_the_agent_ended_survives() {
    let stage = script(json!({"go": [{"say": "Hello."}, {"exit": 3}]}));
    let mut terminal = chat(&stage);
    terminal.press("go\r");
    terminal.shows("enter starts the agent again");
    terminal.press("\x15typed later");
    terminal.shows("typed later");
    quit(&mut terminal);
    until("its files", || {
        let chats = stage.chats();
        let draft = chats.first().map(|chat| chat["state"]["draft"].clone());
        let text = draft.as_ref().and_then(Value::as_str).unwrap_or_default();
        if text.contains("typed later") { Ok(()) } else { Err(chats) }
    });
    let mut terminal = application(&stage);
    terminal.shows("go");
    terminal.press("\r");
    terminal.shows("typed later");
    quit(&mut terminal);
    stage.end_chats();
}

/// A session that is deleted has no live chat and no files of one; its agent ends.
#[test]
fn deleting_a_session_ends_its_chat() {
    let stage = script(json!({"go": [{"say": "Working."}, {"wait": "cancel"}]}));
    let mut terminal = chat(&stage);
    terminal.press("go\r");
    terminal.shows("Working.");
    terminal.press("secret draft");
    until("the draft", || {
        let draft = stage.chats()[0]["state"]["draft"].clone();
        if draft == "secret draft" { Ok(()) } else { Err(draft) }
    });
    let id = stage.chats()[0]["id"].as_str().unwrap().to_owned();
    stage.machine.ok("data", &["delete", "s-1", "--yes"]);
    assert!(!stage.machine.data("data").join("chats").join(id).exists());
    let script = stage.machine.home().join("script.json");
    assert_eq!(running(script.to_str().unwrap()), vec![terminal.0.child.process_id().unwrap()]);
    stage.machine.ok("data", &["sync"]);
    assert_eq!(stage.machine.json("data", &["list"]), json!([]));
}

/// A host of another version can be read, and is said to be one when somebody wants to drive it.
#[test]
fn a_host_of_another_version_is_read_only() {
    let machine = Machine::new();
    let log = ".claude/projects/-home-dev-weather-app/112b2623-935f-4249-9e9a-c45c61ba0d98.jsonl";
    machine.put("claude-code/discovery-loop/log.jsonl", log);
    machine.ok("data", &["sync"]);
    let session = machine.json("data", &["list"])[0]["agent_session_id"].clone();
    let data = machine.data("data");
    let folders = ChatFolders {
        chats: data.join("chats"),
        captures: data.join("streams"),
        processes: data.join("processes"),
    };
    let folder = folders.create().unwrap();
    let _lock = folder.lock().unwrap().unwrap();
    let state = ChatState {
        phase: Phase::Idle,
        agent: "claude-code".to_owned(),
        session: session.as_str().map(str::to_owned),
        ..ChatState::default()
    };
    folder.write(&StoredChat { state, ..StoredChat::default() }).unwrap();
    let listener = UnixListener::bind(folder.socket()).unwrap();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let hello = json!({"hello": {"version": 99, "chat": "x", "process": 7, "state": {}}});
            let mut client = &client;
            let _ = client.write_all(format!("{hello}\n").as_bytes());
            thread::sleep(Duration::from_millis(100));
        }
    });
    let mut command = portable_pty::CommandBuilder::new(env!("CARGO_BIN_EXE_unspool"));
    command.arg("--data");
    command.arg(&data);
    let mut terminal = Terminal::with(&machine, (100, 36), command, &[]);
    terminal.shows("forecast");
    terminal.press("\r");
    terminal.shows("[OK]");
    terminal.press("c");
    let screen = terminal.shows("another version of unspool runs this chat (process 7)");
    assert!(screen.contains("[OK]"), "its transcript is there: {screen}");
    assert_eq!(machine.json("data", &["chat", "--list"])[0]["live"], true, "nothing was ended");
}

/// A chat at 80×24: the whole question, its answers and the composer fit.
#[test]
fn a_chat_fits_into_80_columns_and_24_lines() {
    let plan = json!({"update": {"sessionUpdate": "plan", "entries": [
        {"content": "Read the tests", "status": "completed"},
        {"content": "Run them", "status": "in_progress"}]}});
    let stage = script(json!({"go": [plan, {"say": "Tests first."}, call("c"),
        permission("c", "execute"), {"say": "All pass."}]}));
    let mut terminal = chat_sized(&stage, (80, 24));
    terminal.press("go\r");
    let screen = terminal.until("question, tasks and composer", |text| {
        [
            "╭─ ? permission",
            "allow once  Yes",
            "refuse      No",
            "waits for you: 1 question",
            "Tasks · 1 of 2",
        ]
        .iter()
        .all(|what| text.contains(what))
    });
    assert_eq!(screen.lines().count(), 24, "{screen}");
    // R-003-44: no scroll bars.
    assert!(!screen.contains(['█', '▐', '░', '▒', '▓', '║']), "{screen}");
    thread::sleep(GUARD);
    terminal.press("\t1");
    let screen = terminal.shows("▸ 1 allow once");
    assert!(screen.contains("enter answers"), "the keys are said: {screen}");
    terminal.press("\r");
    terminal.shows("All pass.");
    quit(&mut terminal);
    stage.end_chats();
}
