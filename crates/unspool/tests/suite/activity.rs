//! The activity of a live session, as its log grows line by line.

use unspool_model::session::TurnState;
use unspool_view::present::activity::{Activity, CommandState, Moment};

use crate::case::{captures, fold_in, main_session, root};
use crate::harness::{Machine, recorded};

/// The activities shown while a log grows, without repetitions; `-` between turns.
fn activities(case: &str, file: &str) -> Vec<String> {
    let capture = || {
        let mut all = captures(&root().join("fixtures").join(case));
        all.retain(|capture| capture.file == file);
        all
    };
    let lines = capture()[0].lines.len();
    let mut activities: Vec<String> = Vec::new();
    for count in 1..=lines {
        let mut cut = capture();
        cut[0].lines.truncate(count);
        let session_set = fold_in(&cut, &[0]);
        let transcript = main_session(&session_set).transcript();
        let now = match transcript.turns.last() {
            Some(turn) if turn.state == TurnState::Running => {
                // Looked at the moment that the line was written.
                let now = transcript.ended().unwrap_or_default();
                let moment = Moment {
                    now,
                    last_heard: Some(now),
                    calls_come_late: false,
                    permissions_are_reported: false,
                    command_state: &|_| CommandState::Running,
                };
                match Activity::of(turn, &moment) {
                    Activity::Working { what, .. } => what,
                    Activity::Waiting { what, .. } => format!("? {what}"),
                    other => panic!("{other:?}"),
                }
            }
            Some(_) | None => "-".to_owned(),
        };
        if activities.last() != Some(&now) {
            activities.push(now);
        }
    }
    activities
}

#[test]
fn a_session_says_what_it_does_now() {
    // R-001-34
    let looked = activities("claude-code/discovery-loop", "log.jsonl");
    for what in [
        "working",
        "Bash: git log --oneline -5 && ls -la src",
        "Read: /home/dev/weather-app/src/missing.ts, and 2 more",
        "Edit: /home/dev/weather-app/src/cache.ts +1 −2",
        "Bash: npm test 2>&1 | tail -12",
    ] {
        assert!(looked.iter().any(|activities| activities == what), "{what}: {looked:#?}");
    }
    assert_eq!(looked.last().map(String::as_str), Some("-"), "and then nothing");
    assert!(
        activities("codex/discovery-loop", "log.jsonl")
            .contains(&"exec_command: rg --files".to_owned())
    );
}

#[test]
fn a_question_shows_as_waiting() {
    // R-003-12
    let found = activities("claude-code/question-answered", "log.jsonl");
    let question = "? Which temperature unit should be the default?";
    assert_eq!(found, ["-", "working", question, "working", "-"]);
}

#[test]
fn sub_agents_are_counted_while_they_run() {
    let agents = activities("claude-code/subagents-parallel-and-background", "log.jsonl");
    let expected = [
        "-",
        "working",
        "1 sub-agent",
        "2 sub-agents",
        "1 sub-agent",
        "working",
        "1 sub-agent",
        "-",
        "working",
        "-",
    ];
    assert_eq!(agents, expected);
}

#[test]
fn a_stream_says_what_is_being_said() {
    let stream = activities("claude-code/discovery-loop", "stream.jsonl");
    for what in ["thinking", "writing"] {
        assert!(stream.iter().any(|activities| activities == what), "{what}: {stream:#?}");
    }
}

/// The turn of a session is over, but one of its background agents still runs a command: the session
/// shows that, since a sub-agent has no row of its own in most lists.
#[test]
fn an_idle_session_shows_its_background_agents() {
    let case = "claude-code/subagents-parallel-and-background";
    let machine = Machine::new();
    machine.keep_turns_open();
    let then = jiff::Timestamp::now() - jiff::SignedDuration::from_mins(1);
    let minute = then.strftime("%Y-%m-%dT%H:%M").to_string();
    let lately = |fixture: &str| {
        let text = String::from_utf8(recorded(&format!("{case}/{fixture}"))).unwrap();
        text.replace("2026-11-15T00:23", &minute)
    };
    let log = lately("log.jsonl");
    let lines: Vec<&str> = log.lines().collect();
    let end = lines.iter().position(|line| line.contains("\"end_turn\"")).unwrap();
    let project = ".claude/projects/-home-dev-weather-app";
    let id = "466998a9";
    let id = lines[0].split('"').find(|word| word.starts_with(id)).unwrap().to_owned();
    machine.write(&format!("{project}/{id}.jsonl"), (lines[..=end].join("\n") + "\n").as_bytes());
    for (agent, count) in
        [("a177c218b9dc9b54b", 29), ("a482842dbe7ff6541", 21), ("ab8fb9d0dda59d2e2", 16)]
    {
        let text = lately(&format!("subagents/agent-{agent}.jsonl"));
        let lines: Vec<&str> = text.lines().take(count).collect();
        let path = format!("{project}/{id}/subagents/agent-{agent}");
        machine.write(&format!("{path}.jsonl"), (lines.join("\n") + "\n").as_bytes());
        let meta = recorded(&format!("{case}/subagents/agent-{agent}.meta.json"));
        machine.write(&format!("{path}.meta.json"), &meta);
    }
    machine.ok("data", &["sync"]);
    let listed = machine.json("data", &["list"]);
    let own = listed.as_array().unwrap().iter().find(|row| row["parent"].is_null()).unwrap();
    assert_eq!(own["state"], "idle", "{own}");
    // The command has stood for a minute, and no hook says why.
    assert_eq!(own["activity"]["state"], "maybe-waiting", "{own}");
    let shown = machine.ok("data", &["list", "--width", "80"]);
    let first = shown.lines().next().unwrap();
    assert!(first.contains("claude-code Maybe waiting for you: sleep 4"), "{shown}");
}

/// Copilot takes a prompt out of its log that is cancelled before the first word, and writes nothing
/// else about it.
#[test]
fn a_prompt_that_was_taken_out_of_the_log_is_interrupted() {
    take_prompt_out(false);
}

/// The new file is read before it goes on: seen on a busy machine.
#[test]
fn a_prompt_that_was_taken_out_is_interrupted_once_the_log_goes_on() {
    take_prompt_out(true);
}

fn take_prompt_out(read_between: bool) {
    let machine = Machine::new();
    machine.keep_turns_open();
    let id = "fb8a447d-e0fd-4981-b1e1-38fd57316018";
    let path = format!(".copilot/session-state/{id}/events.jsonl");
    let text = String::from_utf8(recorded("copilot/discovery-loop/log.jsonl")).unwrap();
    let open = text.lines().filter(|line| !line.contains("session.shutdown"));
    let open: String = open.map(|line| format!("{line}\n")).collect();
    let prompt = open.lines().find(|line| line.contains("\"type\":\"user.message\"")).unwrap();
    let record: serde_json::Value = serde_json::from_str(prompt).unwrap();
    let mut next = prompt.to_owned();
    for of in [&record["id"], &record["data"]["interactionId"]] {
        let of = of.as_str().unwrap();
        next = next.replace(of, &of.chars().rev().collect::<String>());
    }
    // The times of its neighbours, some minutes later.
    let at = |minute: &str| record["timestamp"].as_str().unwrap().replace("00:49", minute);
    next = next.replace(&at("00:49"), &at("00:55"));
    let last_turn = || {
        machine.ok("data", &["sync"]);
        let shown = machine.json("data", &["show", id]);
        let turns = shown["turns"].as_array().unwrap();
        (turns.len(), turns.last().unwrap()["state"].as_str().unwrap().to_owned())
    };
    machine.write(&path, format!("{open}{next}\n").as_bytes());
    let (turns, state) = last_turn();
    assert_ne!(state, "interrupted");
    // As Copilot does it: another file without the prompt takes its place, and goes on.
    std::fs::remove_file(machine.home().join(&path)).unwrap();
    let checkpoint = format!(
        r#"{{"type":"session.usage_checkpoint","data":{{}},"id":"c","timestamp":"{}"}}"#,
        at("00:59")
    );
    machine.write(&path, open.as_bytes());
    if read_between {
        // The rest of the file may still come.
        assert_ne!(last_turn().1, "interrupted");
    }
    machine.append(&path, format!("{checkpoint}\n").as_bytes());
    assert_eq!(last_turn(), (turns, "interrupted".to_owned()), "and nothing is lost");
}

/// The same for the first prompt: the new file has no turn at all.
#[test]
fn a_first_prompt_that_was_taken_out_of_the_log_is_interrupted() {
    let machine = Machine::new();
    machine.keep_turns_open();
    let id = "fb8a447d-e0fd-4981-b1e1-38fd57316018";
    let path = format!(".copilot/session-state/{id}/events.jsonl");
    let text = String::from_utf8(recorded("copilot/discovery-loop/log.jsonl")).unwrap();
    let prompt = text.lines().position(|line| line.contains("\"type\":\"user.message\"")).unwrap();
    let with = |lines: usize| text.split_inclusive('\n').take(lines).collect::<String>();
    let last_turn = || {
        machine.ok("data", &["sync"]);
        let shown = machine.json("data", &["show", id]);
        let turns = shown["turns"].as_array().unwrap();
        (turns.len(), turns.last().unwrap()["state"].as_str().unwrap().to_owned())
    };
    machine.write(&path, with(prompt + 1).as_bytes());
    let (turns, state) = last_turn();
    assert_eq!((turns, state != "interrupted"), (1, true));
    std::fs::remove_file(machine.home().join(&path)).unwrap();
    let checkpoint = r#"{"type":"session.usage_checkpoint","data":{},"id":"c","timestamp":"2026-11-15T00:59:00Z"}"#;
    machine.write(&path, format!("{}{checkpoint}\n", with(prompt)).as_bytes());
    assert_eq!(last_turn(), (1, "interrupted".to_owned()));
}
