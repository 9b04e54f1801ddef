//! `unspool chat` in a pseudo-terminal with the puppet: composer, questions, queue, drafts.

use std::fs::File;
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime};

use portable_pty::CommandBuilder;
use serde_json::{Value, json};

use crate::chat::{Stage, call, permission, puppet, result};
use crate::harness::{recorded, until};
use crate::terminal::Terminal;

/// Longer than keys are taken for typing after a question appeared.
pub const GUARD: Duration = Duration::from_millis(400);

fn command(stage: &Stage, arguments: &[&str]) -> CommandBuilder {
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_unspool"));
    command.arg("--data");
    command.arg(stage.machine.data("data"));
    command.args(arguments);
    command
}

/// A chat with the puppet, ready for a message.
pub fn chat(stage: &Stage) -> Terminal {
    chat_sized(stage, (100, 36))
}

pub fn chat_sized(stage: &Stage, size: (u16, u16)) -> Terminal {
    let mut command = command(stage, &["chat", "--"]);
    command.arg(puppet());
    command.arg(stage.machine.home().join("script.json"));
    command.arg(stage.log());
    let mut terminal = Terminal::with(&stage.machine, size, command, &[]);
    terminal.shows("· ready");
    terminal
}

/// The application, without a chat.
pub fn application(stage: &Stage) -> Terminal {
    Terminal::with(&stage.machine, (100, 36), command(stage, &[]), &[])
}

fn script(prompts: Value) -> Stage {
    Stage::new(json!({"session": "s-1", "prompts": prompts}))
}

/// What the puppet was sent, as texts.
fn prompts(stage: &Stage) -> Vec<String> {
    let received = stage.received().into_iter();
    let prompts = received.filter(|line| line["method"] == "session/prompt");
    prompts.map(|line| line["params"]["prompt"][0]["text"].as_str().unwrap().to_owned()).collect()
}

fn waits_for_answers(stage: &Stage, expected: &[Value]) {
    until("the answers", || {
        let answers = stage.answers();
        if answers == expected { Ok(()) } else { Err(answers) }
    });
}

/// Leaves the composer, the session and the application.
pub fn quit(terminal: &mut Terminal) {
    terminal.press("\x1b");
    // A key right behind Escape is another key.
    thread::sleep(GUARD);
    terminal.shows("i write");
    terminal.press("qq");
    terminal.ends();
}

/// R-003-12, R-003-43, R-003-52, R-X-10: the question is below its call, with a rounded border, and
/// only a person who saw it answers it.
#[test]
fn a_permission_is_answered_below_its_call() {
    let stage =
        script(json!({"go": [{"say": "Tests first."}, call("c"), permission("c", "execute"),
        result("c", "completed", "12 passed"), {"say": "All pass."}]}));
    let mut terminal = chat(&stage);
    // Keys that were pressed before the question came, and a paste, answer nothing.
    terminal.press("go\r");
    terminal.press("\t1");
    let screen = terminal.until("the question below its call", |text| {
        let below = text.split("execute  cargo test").nth(1).unwrap_or_default();
        let whole = ["╭─ ? permission", "allow once  Yes", "waits for you: 1 question"];
        whole.iter().all(|words| below.contains(words)) && below.contains("tab answers")
    });
    let rows: Vec<&str> = screen.lines().collect();
    let row = |what: &str| {
        let found = rows.iter().position(|row| row.contains(what));
        found.unwrap_or_else(|| panic!("no {what} in {screen}"))
    };
    assert_eq!(row("╭─ ? permission"), row("execute  cargo test") + 1, "{screen}");
    assert!(row("allow once  Yes") < row("waits for you: 1 question"), "{screen}");
    // The border has the colour of the composer's, which has the focus.
    let colour = |what: &str, corner: &str| {
        let row = row(what);
        let column = rows[row].chars().position(|letter| corner.contains(letter)).unwrap();
        let cell = terminal.0.screen.screen().cell(row as u16, column as u16).unwrap();
        (cell.contents().to_owned(), cell.fgcolor())
    };
    let (question, composer) = (colour("╭─ ? permission", "╭"), colour("· waits for you", "╭"));
    assert_eq!(question, composer);
    assert_ne!(question.1, vt100::Color::Default);
    terminal.press("\t");
    terminal.press("\x1b[200~1\r\x1b[201~");
    thread::sleep(GUARD);
    // Tab was too early or not: from here it is in the question.
    terminal.press("\x1b");
    terminal.shows("tab answers");
    assert!(stage.answers().is_empty(), "nobody answered");
    terminal.press("\t");
    terminal.shows("ctrl-c declines");
    // Enter alone and letters answer nothing, and Esc leaves.
    terminal.press("y\r");
    terminal.shows("choose an answer first");
    terminal.press("\x1b");
    terminal.hides("ctrl-c declines");
    assert!(stage.answers().is_empty(), "Esc is no answer");
    terminal.press("\t");
    terminal.shows("ctrl-c declines");
    terminal.press("1");
    terminal.shows("▸ 1 allow once");
    terminal.press("\r");
    let screen = terminal.shows("All pass.");
    assert!(screen.contains("✓ allowed  Yes  answered in the terminal"), "{screen}");
    let yes = json!({"outcome": {"outcome": "selected", "optionId": "y"}});
    waits_for_answers(&stage, &[yes]);
    let turns = stage.turns();
    let answer = &turns[0]["parts"][1]["answer"];
    assert_eq!((&answer["decision"], &answer["by"]), (&json!("allowed"), &json!("terminal")));
    // What was typed while the question came is in the composer, not lost.
    terminal.shows("· ready");
    terminal.press("\x03\x03");
    terminal.ends();
    stage.end_chats();
}

/// R-003-13, R-X-10
#[test]
fn ctrl_c_declines_a_question_and_to_talk_about_it_is_no() {
    let stage = script(json!({"go": [call("c"), permission("c", "execute"), {"say": "First."}],
        "more": [call("d"), permission("d", "execute"), {"say": "Second."}], "*": [{"say": "Third."}]}));
    let mut terminal = chat(&stage);
    terminal.press("go\r");
    terminal.shows("tab answers");
    thread::sleep(GUARD);
    terminal.press("\t");
    terminal.shows("ctrl-c declines");
    terminal.press("\x03");
    terminal.shows("First.");
    terminal.press("more\r");
    terminal.shows("tab answers");
    thread::sleep(GUARD);
    terminal.press("\t3\r");
    terminal.shows("refused; what you write now is the next message");
    terminal.press("use nextest\r");
    terminal.shows("Third.");
    let no = |answer: Value| json!({"outcome": answer});
    waits_for_answers(
        &stage,
        &[no(json!({"outcome": "cancelled"})), no(json!({"outcome": "selected", "optionId": "n"}))],
    );
    assert_eq!(prompts(&stage), ["go", "more", "use nextest"]);
    // The archive tells talking about it from a plain no.
    let answers: Vec<String> =
        stage.turns().iter().map(|turn| turn["parts"][0]["answer"].to_string()).collect();
    assert!(answers[0].contains("\"cancelled\""), "{answers:?}");
    assert!(
        answers[1].contains("\"denied\"") && answers[1].contains("chat about this"),
        "{answers:?}"
    );
    terminal.press("\x03");
    terminal.ends();
    stage.end_chats();
}

/// R-003-13, R-003-52, R-X-09: several choices, own words, and several questions in one answer.
#[test]
fn forms_are_answered_with_choices_and_own_words() {
    let days = json!({"type": "array", "items": {"anyOf": [
        {"const": "mon", "title": "Monday"}, {"const": "tue", "title": "Tuesday"}]}});
    let form = |properties: Value| {
        json!({"form": {"mode": "form", "message": "What now?",
            "requestedSchema": {"type": "object", "properties": properties}}})
    };
    let unit = json!({"type": "string", "title": "Unit", "enum": ["celsius", "kelvin"]});
    let stage = script(json!({
        "one": [form(json!({"days": days, "days_custom": {"type": "string"}})), {"say": "First."}],
        "two": [form(json!({"days": days, "name": {"type": "string"}, "unit": unit})),
            {"say": "Second."}]}));
    let mut terminal = chat(&stage);
    terminal.press("one\r");
    terminal.shows("☐ Monday");
    thread::sleep(GUARD);
    terminal.press("\t1 ");
    terminal.shows("☑ Monday");
    terminal.press("\x1b[B\x1b[Bor Sunday");
    terminal.shows("own words: or Sunday");
    terminal.press("\r");
    terminal.shows("First.");
    terminal.press("two\r");
    terminal.shows("send the answers");
    thread::sleep(GUARD);
    terminal.press("\t2\r");
    terminal.shows("☑ Tuesday");
    terminal.press("Bob\r2\r");
    terminal.shows("◉ kelvin");
    terminal.press("\r");
    terminal.shows("Second.");
    waits_for_answers(
        &stage,
        &[
            json!({"action": "accept", "content": {"days": ["mon"], "days_custom": "or Sunday"}}),
            json!({"action": "accept",
            "content": {"days": ["tue"], "unit": "kelvin", "name": "Bob"}}),
        ],
    );
    terminal.press("\x03");
    terminal.ends();
    stage.end_chats();
}

/// Messages wait while the agent works; they can be changed, moved and taken back.
#[test]
fn queued_messages_are_edited_and_wait_after_an_interruption() {
    let stage =
        script(json!({"go": [{"say": "Working."}, {"wait": "cancel"}], "*": [{"say": "Done."}]}));
    let mut terminal = chat(&stage);
    terminal.press("go\r");
    terminal.shows("Working.");
    terminal.press("first\r");
    terminal.shows("queued 1  first");
    terminal.press("second\x1b\rline\r");
    terminal.shows("queued 2  second  +1 line");
    terminal.press("third\r");
    terminal.shows("queued 3  third");
    // Edit the second, move the third up, take the first back.
    terminal.press("\t\x1b[B\r");
    terminal.shows("editing 2");
    terminal.press("!\r");
    terminal.hides("editing 2");
    terminal.press("\t\x1b[B\x1b[B");
    terminal.shows("▸ queued 3  third");
    terminal.press("\x1b[1;3A");
    terminal.shows("▸ queued 2  third");
    terminal.press("\x1b[A\x1b[3~");
    terminal.shows("▸ queued 1  third");
    terminal.press("\x1b");
    terminal.hides("delete takes back");
    let screen = terminal.shows("│ first");
    assert!(!screen.contains("queued 3"), "{screen}");
    // The draft is no message: only what is queued is held, and sent by Enter.
    terminal.press("\x03");
    terminal.shows("the queue waits: the last message was interrupted");
    terminal.press("\x03\r");
    terminal.until("both replies", |text| text.matches("Done.").count() == 2);
    assert_eq!(prompts(&stage), ["go", "third", "second\nline!"]);
    terminal.press("\x03");
    terminal.ends();
    stage.end_chats();
}

/// Ctrl-S does not wait for the end of the turn.
#[test]
fn a_message_is_sent_at_once_with_one_key() {
    let initialize = json!({"protocolVersion": 1, "agentInfo": {"name": "puppet"},
        "_meta": {"steering": {"supported": true}}});
    let stage = Stage::new(json!({"session": "s-1", "initialize": initialize, "prompts":
        {"go": [{"say": "Working. "}, {"wait": "steering"}, {"say": "Steered."}]}}));
    let mut terminal = chat(&stage);
    terminal.press("go\r");
    terminal.shows("Working.");
    terminal.shows("ctrl-s sends now");
    terminal.press("use tabs\x13");
    terminal.shows("Steered.");
    // The puppet has no log: the message is in the transcript all the same.
    terminal.shows("use tabs");
    assert_eq!(prompts(&stage), ["go"]);
    quit(&mut terminal);
    stage.end_chats();
    // An agent that takes no such messages is interrupted.
    let stage =
        script(json!({"go": [{"say": "Working."}, {"wait": "cancel"}], "*": [{"say": "Done."}]}));
    let mut terminal = chat(&stage);
    terminal.press("go\r");
    terminal.shows("Working.");
    terminal.press("instead\x13");
    terminal.shows("Done.");
    assert_eq!(prompts(&stage), ["go", "instead"]);
    quit(&mut terminal);
    stage.end_chats();
}

/// R-X-10, R-X-11: a question and a draft survive the application; the agent goes on without it.
#[test]
fn a_question_and_a_draft_survive_the_application() {
    let stage = script(json!({"go": [call("c"), permission("c", "execute"), {"say": "Allowed."}]}));
    let mut terminal = chat(&stage);
    terminal.press("go\r");
    terminal.shows("tab answers");
    terminal.press("half a thought");
    terminal.shows("│ half a thought");
    quit(&mut terminal);
    assert_eq!(stage.chats()[0]["live"], true);
    // Another one: whoever opens the session is in the chat.
    let mut terminal = application(&stage);
    terminal.shows("Waiting for you");
    terminal.press("\r");
    terminal.shows("│ half a thought");
    terminal.shows("allow once  Yes");
    thread::sleep(GUARD);
    terminal.press("\t1\r");
    terminal.shows("Allowed.");
    let screen = terminal.shows("· ready");
    assert!(screen.contains("│ half a thought"), "{screen}");
    quit(&mut terminal);
    stage.end_chats();
}

/// R-003-47: `/clear` begins a new session; the archive keeps the old one.
#[test]
fn clear_begins_a_new_session_in_the_same_chat() {
    let stage = Stage::new(json!({"session": "s", "sessions": true,
        "prompts": {"go": [{"say": "Old reply."}], "again": [{"say": "New reply."}]}}));
    let mut terminal = chat(&stage);
    terminal.press("go\r");
    terminal.shows("Old reply.");
    terminal.shows("· ready");
    terminal.press("/cl");
    terminal.shows("▸ /clear");
    terminal.press("\r\r");
    terminal.hides("Old reply.");
    terminal.shows("· ready");
    terminal.press("again\r");
    let screen = terminal.shows("New reply.");
    assert!(!screen.contains("Old reply."), "{screen}");
    assert_eq!(stage.machine.json("data", &["list"]).as_array().unwrap().len(), 2);
    terminal.press("/end\r");
    terminal.shows("enter starts the agent again");
    terminal.press("\x03");
    terminal.ends();
    // The host ends its agent, and then itself.
    until("the end of the chat", || {
        let chats = stage.chats();
        if chats.is_empty() { Ok(()) } else { Err(chats) }
    });
}

/// R-003-47: `/compact` leaves one summary, and what is said then stands below it.
#[test]
fn compact_leaves_one_summary_above_the_new_messages() {
    let compaction = |kind: &str, fields: Value| {
        let mut update = json!({"sessionUpdate": kind, "compactionId": "k-1"});
        update.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        json!({ "update": update })
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    let commands = json!({"sessionUpdate": "available_commands_update", "availableCommands":
        [{"name": "compact", "description": "Summarise the conversation"}]});
    let stage = script(json!({
        "go": [{ "update": commands }, {"say": "Old reply."}],
        // As the composer completes it.
        "/compact ": [
            compaction("compaction_update", json!({"status": "in_progress"})),
            compaction("compaction_summary_chunk", json!({"content": text("They talked about ")})),
            compaction("compaction_summary_chunk", json!({"content": text("the old reply.")})),
            compaction("compaction_update", json!({"status": "completed"})),
            compaction("compaction_update", json!({"status": "completed"}))],
        "again": [{"say": "New reply."}]}));
    let mut terminal = chat(&stage);
    terminal.press("go\r");
    terminal.shows("Old reply.");
    terminal.shows("· ready");
    terminal.press("/comp");
    terminal.shows("▸ /compact");
    terminal.press("\r\r");
    terminal.shows("Conversation compacted");
    terminal.shows("· ready");
    terminal.press("again\r");
    let screen = terminal.shows("New reply.");
    let row = |what: &str| screen.lines().position(|line| line.contains(what)).unwrap_or_default();
    assert_eq!(screen.matches("Conversation compacted").count(), 1, "{screen}");
    assert!(screen.contains("They talked about the old reply."), "{screen}");
    // The words that the summary stands for are above it.
    let (old, summary, new) = (row("Old reply."), row("Conversation compacted"), row("New reply."));
    assert!(old < summary && summary < new, "{screen}");
    let turns = stage.turns();
    let summaries: Vec<&Value> = turns
        .iter()
        .flat_map(|turn| turn["parts"].as_array().unwrap())
        .filter(|part| part["kind"] == "compaction")
        .collect();
    assert_eq!(summaries.len(), 1, "{turns:?}");
    assert_eq!(summaries[0]["summary"], "They talked about the old reply.");
    terminal.press("\x03");
    terminal.ends();
    stage.end_chats();
}

/// R-004-24: an agent that does not start leaves no turn, and the message is back.
#[test]
fn a_message_to_an_agent_that_dies_is_back_in_the_composer() {
    let stage = script(json!({"go": [{"say": "Hello."}]}));
    stage.machine.write("fails", b"");
    let wrapper = "#!/bin/sh\nif [ -e \"$HOME/fails\" ]; then echo 'no licence' >&2; exit 3; fi\nexec \"$@\"\n";
    stage.machine.write("agent.sh", wrapper.as_bytes());
    let mut command = command(&stage, &["chat", "--", "/bin/sh"]);
    command.arg(stage.machine.home().join("agent.sh"));
    command.arg(puppet());
    command.arg(stage.machine.home().join("script.json"));
    command.arg(stage.log());
    let mut terminal = Terminal::with(&stage.machine, (100, 36), command, &[]);
    let screen = terminal.shows("enter starts the agent again");
    assert!(screen.contains("no licence"), "{screen}");
    terminal.press("go");
    terminal.shows("│ go");
    // It is mended: the same key starts the agent and sends the message.
    std::fs::remove_file(stage.machine.home().join("fails")).unwrap();
    terminal.press("\r");
    terminal.shows("Hello.");
    assert_eq!(prompts(&stage), ["go"]);
    assert_eq!(stage.turns().len(), 1);
    terminal.press("\x03");
    terminal.ends();
    stage.end_chats();
}

/// Any session goes on with `c`: here one that Codex wrote, with the command of the configuration.
#[test]
fn a_recorded_session_goes_on_with_one_key() {
    let stage = Stage::new(json!({"prompts": {"*": [{"say": "Going on."}]}}));
    let log = recorded("../crates/unspool/tests/changes/codex-edits/log.jsonl");
    let log = String::from_utf8(log).unwrap();
    let home = stage.machine.home().to_str().unwrap().to_owned();
    let log = log.replace("/home/dev/weather", &home);
    stage.machine.write("log.jsonl", log.as_bytes());
    let file = stage.machine.home().join("log.jsonl");
    stage.machine.ok("data", &["import", file.to_str().unwrap()]);
    let config = format!(
        "[chat.agents.codex]\ncommand = [{:?}, {:?}, {:?}]\n",
        puppet(),
        stage.machine.home().join("script.json"),
        stage.log()
    );
    stage.machine.write(".config/unspool/config.toml", config.as_bytes());
    let mut terminal = application(&stage);
    terminal.shows("Add humidity");
    // Somebody seems to write the log.
    terminal.press("c");
    terminal.shows("another program seems to work on this session");
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    File::options().write(true).open(&file).unwrap().set_modified(hour_ago).unwrap();
    // Nobody writes it, but a process has the session open.
    let mut open = Command::new("sleep").arg("120").spawn().unwrap();
    let session = "01a1ea37-7086-7e30-9677-632a4f0f3490";
    let entry = json!({ "pid": open.id(), "sessionId": session }).to_string();
    let processes = stage.machine.data("data").join("processes");
    std::fs::create_dir_all(&processes).unwrap();
    std::fs::write(processes.join(format!("{}.json", open.id())), entry).unwrap();
    terminal.press("\r");
    terminal.shows("this session is open in another program");
    open.kill().unwrap();
    open.wait().unwrap();
    terminal.press("\r");
    terminal.shows("codex · ready");
    terminal.press("and now?\r");
    terminal.shows("Going on.");
    let listed = stage.machine.json("data", &["list"]);
    assert_eq!(listed.as_array().unwrap().len(), 1, "the same session: {listed}");
    let resumed = stage.received();
    let resumed = resumed.iter().find(|line| line["method"] == "session/resume").unwrap();
    assert_eq!(resumed["params"]["cwd"], json!(stage.machine.home()));
    // The history has the prompts of the session.
    terminal.press("\x1b[A");
    terminal.shows("│ and now?");
    terminal.press("\x03\x03");
    terminal.ends();
    stage.end_chats();
}

/// Files of the project are completed after `@`, and what git ignores is not.
#[test]
fn files_of_the_project_are_completed() {
    let stage = script(json!({"*": [{"say": "Read."}]}));
    stage.machine.write("src/forecast.rs", b"");
    stage.machine.write("target/forecast.rs", b"");
    stage.machine.write(".gitignore", b"target\n");
    let mut terminal = chat(&stage);
    terminal.press("read @forec");
    let screen = terminal.shows("▸ @src/forecast.rs");
    assert!(!screen.contains("@target"), "{screen}");
    terminal.press("\t\r");
    terminal.shows("Read.");
    assert_eq!(prompts(&stage), ["read @src/forecast.rs "]);
    terminal.press("\x03");
    terminal.ends();
    stage.end_chats();
}

/// An agent that died is started again, and equal messages are turns of their own.
#[test]
fn a_message_that_is_repeated_after_a_crash_has_its_own_turn() {
    let stage =
        script(json!({"hello": [{"say": "Hello."}], "crash": [{"say": "Oh."}, {"exit": 3}]}));
    let mut terminal = chat(&stage);
    terminal.press("hello\r");
    terminal.shows("Hello.");
    terminal.press("crash\r");
    terminal.shows("enter starts the agent again");
    terminal.press("hello\r");
    terminal.until("the second reply", |text| text.matches("Hello.").count() == 2);
    terminal.shows("· ready");
    let turns = stage.turns();
    let states: Vec<&str> = turns.iter().map(|turn| turn["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["completed", "failed", "completed"]);
    assert_eq!(prompts(&stage), ["hello", "crash", "hello"]);
    // The message is no draft any more.
    assert!(!terminal.text().contains("│ hello"), "{}", terminal.text());
    terminal.press("\x03");
    terminal.ends();
    stage.end_chats();
}

/// A draft survives the change of a queued message.
#[test]
fn a_draft_is_kept_while_a_queued_message_is_changed() {
    let stage = script(json!({"go": [{"say": "Working."}, {"wait": "cancel"}]}));
    let mut terminal = chat(&stage);
    terminal.press("go\r");
    terminal.shows("Working.");
    terminal.press("first\r");
    terminal.shows("queued 1  first");
    terminal.press("my draft");
    terminal.shows("│ my draft");
    terminal.press("\t\r");
    terminal.shows("editing 1");
    terminal.shows("│ first");
    terminal.press("\x1b");
    terminal.shows("│ my draft");
    terminal.press("\t\r");
    terminal.shows("editing 1");
    terminal.press(" changed\r");
    terminal.shows("queued 1  first changed");
    terminal.shows("│ my draft");
    terminal.press("\x03");
    terminal.shows("the queue waits");
    terminal.press("\x03\x03");
    terminal.ends();
    stage.end_chats();
}

/// Keys that were meant for a question which somebody else answered are not typed elsewhere.
#[test]
fn enter_for_a_question_that_is_gone_sends_no_draft() {
    let stage = script(json!({"go": [call("c"), permission("c", "execute"), {"say": "Allowed."}]}));
    let mut first = chat(&stage);
    first.press("go\r");
    first.shows("tab answers");
    first.press("half a thought");
    first.shows("│ half a thought");
    thread::sleep(GUARD);
    first.press("\t1");
    first.shows("▸ 1 allow once");
    let mut second = application(&stage);
    second.shows("Waiting for you");
    second.press("\r");
    second.shows("allow once  Yes");
    thread::sleep(GUARD);
    second.press("\t2\r");
    second.shows("Allowed.");
    first.hides("? permission");
    first.press("\r");
    first.shows("enter sends");
    assert_eq!(prompts(&stage), ["go"], "{}", first.text());
    assert!(first.text().contains("│ half a thought"), "{}", first.text());
    for terminal in [&mut first, &mut second] {
        quit(terminal);
    }
    stage.end_chats();
}
